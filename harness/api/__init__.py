"""The Python API: the main job for people who script it.

Knows: the flows, and plain values that stay as they are. Refuses: a way around a gate; nothing is
run or landed here that `harness run` or `harness apply` would refuse.
Flow: `project` calls flows and returns the values of `values`; `import harness` names all of it.
"""
