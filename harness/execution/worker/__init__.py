"""One disposable hardened container that runs one operation.

Knows: the engine port, its Docker adapter, init's protocol. Refuses: to judge what was run.
Flow: seal in, facts, captured output and an upper layer out; nothing left on the engine.
"""
