"""The order of stages: which step follows which, and which adapter is used.

Knows: every layer below; the only place that wires adapters together. Refuses: to render.
Flow: open a session, do one verb, append to the ledger before and after its effect.
"""
