"""Where bytes live: durable writes, blobs by digest, the state folder, the failpoints.

Knows: files and folders below the state folder. Refuses: to know what the bytes mean.
Flow: bytes in, fsync, then their digest out.
"""
