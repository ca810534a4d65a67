"""Append, prove, read: one signed, append-only list of what was done.

Knows: lines, hashes, checkpoints, the host key. Refuses: what entries mean, history that changed.
Flow: an entry in, one line and one signed checkpoint out; later the same bytes, verified.
"""
