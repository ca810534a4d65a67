"""A project frozen: what may enter, its Merkle tree, and the layers a worker is mounted on.

Knows: ignore rules, stat facts, overlay layers. Refuses: to follow a link, to open a device.
Flow: scan and hash, compare with the last layer, write the difference, read it back verified.
"""
