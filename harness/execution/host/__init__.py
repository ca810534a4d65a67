"""The host below the workers: is there an engine, and if not, may we have one?

Knows: sockets, apt, systemd, an engine of our own. Refuses: anything without consent or root.
Flow: facts -> plan (pure) -> consent -> steps -> an engine that answers; undo takes it back.
"""
