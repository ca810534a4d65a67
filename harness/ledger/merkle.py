"""The Merkle tree of RFC 6962 (and RFC 9162): hashes, roots, proofs. Pure.

Rules:
    * A leaf is SHA-256(0x00 || bytes), a node SHA-256(0x01 || left || right): neither can be
      taken for the other. The empty tree's root is SHA-256 of nothing.
    * A hash has 32 bytes. A proof, leaf or root with any other length is refused, also where the
      algorithm would not look at it.
    * A proof is accepted only when all of it was used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.errors import InputError, VerificationError

HASH_SIZE = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """Hash one entry (RFC 6962, section 2.1)."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Hash two subtrees (RFC 6962, section 2.1)."""
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """All that appending needs of a tree: the roots of its perfect subtrees.

    Attributes:
        size: number of leaves.
        hashes: one root per bit set in `size`, the largest (leftmost) subtree first.
    """

    size: int = 0
    hashes: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        """Check the shape.

        Raises:
            VerificationError: the number of hashes does not fit the size, or one is not a hash.
        """
        if self.size < 0 or len(self.hashes) != self.size.bit_count():
            raise VerificationError(
                f"frontier: expected {self.size.bit_count()} hashes for {self.size} leaves, "
                f"got {len(self.hashes)}"
            )
        _require_hashes(self.hashes)

    def append(self, leaf: bytes) -> Frontier:
        """Return the tree with one more leaf hash.

        Raises:
            VerificationError: the leaf is not 32 bytes long.
        """
        hashes, carried, size = list(self.hashes), leaf, self.size
        while size & 1:
            carried = node_hash(hashes.pop(), carried)
            size >>= 1
        return Frontier(size=self.size + 1, hashes=(*hashes, carried))

    def root(self) -> bytes:
        """Return the root of the whole tree."""
        if not self.hashes:
            return EMPTY_ROOT
        root = self.hashes[-1]
        for left in reversed(self.hashes[:-1]):
            root = node_hash(left, root)
        return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """Return the root over leaf hashes.

    Raises:
        VerificationError: a leaf is not 32 bytes long.
    """
    tree = Frontier()
    for leaf in leaves:
        tree = tree.append(leaf)
    return tree.root()


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Prove that one leaf is in the tree (RFC 6962, section 2.1.1).

    Args:
        leaves: every leaf hash of the tree.
        index: position of the leaf, from 0.

    Returns:
        The sibling hashes, from the leaf upwards.

    Raises:
        InputError: there is no such leaf.
        VerificationError: a leaf is not 32 bytes long.
    """
    if not 0 <= index < len(leaves):
        raise InputError(f"inclusion proof: expected a leaf below {len(leaves)}, got {index}")
    if len(leaves) == 1:
        return []
    half = _split(len(leaves))
    if index < half:
        return [*inclusion_proof(leaves[:half], index), root_of(leaves[half:])]
    return [*inclusion_proof(leaves[half:], index - half), root_of(leaves[:half])]


def consistency_proof(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """Prove that the tree begins with the tree of its first leaves (RFC 6962, section 2.1.2).

    Args:
        leaves: every leaf hash of the newer tree.
        size: number of leaves of the older tree.

    Returns:
        The hashes that `verify_consistency` asks for; none when the sizes are equal.

    Raises:
        InputError: the older tree is empty or larger than the newer one.
        VerificationError: a leaf is not 32 bytes long.
    """
    if not 0 < size <= len(leaves):
        raise InputError(f"consistency proof: expected a size of 1 to {len(leaves)}, got {size}")
    return _subproof(leaves, size, known=True)


def verify_inclusion(
    *, index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes
) -> None:
    """Check an inclusion proof (RFC 9162, section 2.1.3.2).

    Args:
        index: position of the leaf, from 0.
        size: number of leaves of the tree.
        leaf: the leaf hash.
        proof: sibling hashes, from the leaf upwards.
        root: the root that a checkpoint signs.

    Raises:
        VerificationError: the proof does not lead from the leaf to the root.
    """
    _require_hashes([leaf, root, *proof])
    if not 0 <= index < size:
        raise VerificationError(f"inclusion proof: expected a leaf below {size}, got {index}")
    position, last, reached = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            raise VerificationError("inclusion proof: is longer than the tree is high")
        if position & 1 or position == last:
            reached = node_hash(sibling, reached)
            position, last = _skip_left_edge(position, last)
        else:
            reached = node_hash(reached, sibling)
        position, last = position >> 1, last >> 1
    if last != 0 or reached != root:
        raise VerificationError("inclusion proof: does not lead to the root")


def verify_consistency(
    *, size1: int, size2: int, root1: bytes, root2: bytes, proof: Sequence[bytes]
) -> None:
    """Check that one tree is the beginning of another (RFC 9162, section 2.1.4.2).

    Args:
        size1: number of leaves of the older tree, at least 1.
        size2: number of leaves of the newer tree.
        root1: root of the older tree.
        root2: root of the newer tree.
        proof: hashes as made by `consistency_proof`.

    Raises:
        VerificationError: the proof does not show it.
    """
    _require_hashes([root1, root2, *proof])
    if not 0 < size1 <= size2:
        raise VerificationError(f"consistency proof: expected 1 to {size2} leaves, got {size1}")
    if size1 == size2:
        if proof or root1 != root2:
            raise VerificationError("consistency proof: one size, but two roots or a proof")
        return
    path = [root1, *proof] if size1.bit_count() == 1 else list(proof)
    if not path or not proof:
        raise VerificationError("consistency proof: is empty")
    position, last = size1 - 1, size2 - 1
    while position & 1:
        position, last = position >> 1, last >> 1
    older = newer = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise VerificationError("consistency proof: is longer than the tree is high")
        if position & 1 or position == last:
            older, newer = node_hash(sibling, older), node_hash(sibling, newer)
            position, last = _skip_left_edge(position, last)
        else:
            newer = node_hash(newer, sibling)
        position, last = position >> 1, last >> 1
    if last != 0 or older != root1 or newer != root2:
        raise VerificationError("consistency proof: does not lead to both roots")


def _skip_left_edge(position: int, last: int) -> tuple[int, int]:
    """Climb the levels at which the right-hand border has no sibling of its own."""
    while position and not position & 1:
        position, last = position >> 1, last >> 1
    return position, last


def _subproof(leaves: Sequence[bytes], size: int, *, known: bool) -> list[bytes]:
    """Return RFC 6962's SUBPROOF; `known`: the verifier has this subtree's root already."""
    if size == len(leaves):
        return [] if known else [root_of(leaves)]
    half = _split(len(leaves))
    if size <= half:
        return [*_subproof(leaves[:half], size, known=known), root_of(leaves[half:])]
    return [*_subproof(leaves[half:], size - half, known=False), root_of(leaves[:half])]


def _split(size: int) -> int:
    """Return the largest power of two below the size."""
    return 1 << ((size - 1).bit_length() - 1)


def _require_hashes(hashes: Iterable[bytes]) -> None:
    for value in hashes:
        if len(value) != HASH_SIZE:
            raise VerificationError(f"merkle hash: expected {HASH_SIZE} bytes, got {len(value)}")
