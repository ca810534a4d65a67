"""What `--json` prints, as JSON Schema: one description for programs, tests and pages.

Knows: every command's output and its version. Refuses: output that no schema describes.
Flow: `table` names the kind of each command's output; `kinds` holds the schema of each kind.
"""
