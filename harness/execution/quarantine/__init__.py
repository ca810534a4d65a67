"""What a worker changed, taken in without trusting it: import, reports, the patch to look at.

Knows: an upper layer, the snapshot below it, blobs. Refuses: to write to a project, to follow.
Flow: upper layer in; changeset, by-products, artifacts and flags out.
"""
