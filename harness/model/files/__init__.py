"""The files people write: strict YAML, one schema for each kind, every mistake with its place.

Knows: spellings. Refuses: to open files; bytes come in, values of `harness.model` go out.
Flow: parse_yaml -> check_shape -> read_recipe, read_policy or read_project_file.
"""
