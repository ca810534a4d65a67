"""The manual: what `--help` and the man pages say of a command beside its options.

Knows: arguments, exit codes, environment, files, examples. Refuses: a command without a page.
Flow: `page` is the form, `pages` holds one for each command, `sections` renders them.
"""
