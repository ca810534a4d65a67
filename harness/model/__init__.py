"""What things are: frozen values, canonical bytes, strict parsing.

Knows: shapes, formats, digests. Refuses: I/O, the clock, the environment.
Flow: bytes in, values out, or one error that lists every mistake.
"""
