"""Worker images: from a definition to a content id that recipes can be sealed with.

Knows: definitions, bases, wheels, layers, images.lock. Refuses: unpinned input, half-built names.
Flow: definition -> base layer -> wheel layer -> load -> check offline -> tag -> images.lock.
"""
