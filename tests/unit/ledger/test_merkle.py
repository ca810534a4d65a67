"""Hashes, roots and proofs of RFC 6962."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError, VerificationError
from harness.ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)

LEAVES = [leaf_hash(bytes([number])) for number in range(40)]
sizes = st.integers(1, len(LEAVES))


def plain_root(leaves: list[bytes]) -> bytes:
    """Return the root as RFC 6962 section 2.1 defines it, word for word."""
    if not leaves:
        return EMPTY_ROOT
    if len(leaves) == 1:
        return leaves[0]
    half = 1
    while half * 2 < len(leaves):
        half *= 2
    return node_hash(plain_root(leaves[:half]), plain_root(leaves[half:]))


@pytest.mark.parametrize("size", range(len(LEAVES)))
def test_the_root_is_that_of_the_definition(size: int) -> None:
    assert root_of(LEAVES[:size]) == plain_root(LEAVES[:size])


def test_leaves_and_nodes_have_domains_of_their_own() -> None:
    pair = LEAVES[0] + LEAVES[1]
    assert leaf_hash(pair) != node_hash(LEAVES[0], LEAVES[1])


@given(sizes, st.data())
def test_inclusion_proofs_lead_to_the_root(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    verify_inclusion(
        index=index,
        size=size,
        leaf=LEAVES[index],
        proof=inclusion_proof(LEAVES[:size], index),
        root=root_of(LEAVES[:size]),
    )


@given(sizes, st.data())
def test_consistency_proofs_lead_to_both_roots(size2: int, data: st.DataObject) -> None:
    size1 = data.draw(st.integers(1, size2))
    verify_consistency(
        size1=size1,
        size2=size2,
        root1=root_of(LEAVES[:size1]),
        root2=root_of(LEAVES[:size2]),
        proof=consistency_proof(LEAVES[:size2], size1),
    )


def altered(proof: list[bytes], data: st.DataObject) -> list[bytes]:
    """Return a proof with one bit flipped, one hash left out, or one more."""
    choices = ["more"] + (["flip", "less"] if proof else [])
    match data.draw(st.sampled_from(choices)):
        case "more":
            return [*proof, LEAVES[-1]]
        case "less":
            place = data.draw(st.integers(0, len(proof) - 1))
            return proof[:place] + proof[place + 1 :]
        case _:
            place = data.draw(st.integers(0, len(proof) - 1))
            bad = bytes([proof[place][0] ^ 1]) + proof[place][1:]
            return [*proof[:place], bad, *proof[place + 1 :]]


@given(sizes, st.data())
def test_altered_inclusion_proofs_are_refused(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    proof = altered(inclusion_proof(LEAVES[:size], index), data)
    with pytest.raises(VerificationError, match=r"^inclusion proof: "):
        verify_inclusion(
            index=index,
            size=size,
            leaf=LEAVES[index],
            proof=proof,
            root=root_of(LEAVES[:size]),
        )


@given(sizes, st.data())
def test_altered_consistency_proofs_are_refused(size2: int, data: st.DataObject) -> None:
    size1 = data.draw(st.integers(1, size2))
    proof = altered(consistency_proof(LEAVES[:size2], size1), data)
    with pytest.raises(VerificationError, match=r"^consistency proof: "):
        verify_consistency(
            size1=size1,
            size2=size2,
            root1=root_of(LEAVES[:size1]),
            root2=root_of(LEAVES[:size2]),
            proof=proof,
        )


@pytest.mark.parametrize("length", [0, 31, 33])
def test_what_is_not_a_hash_is_refused_everywhere(length: int) -> None:
    bad: Any = b"x" * length
    with pytest.raises(VerificationError, match=f"expected 32 bytes, got {length}"):
        root_of([bad])
    with pytest.raises(VerificationError, match=f"expected 32 bytes, got {length}"):
        Frontier(size=1, hashes=(bad,))
    with pytest.raises(VerificationError, match=f"expected 32 bytes, got {length}"):
        verify_inclusion(index=0, size=1, leaf=bad, proof=[], root=bad)
    with pytest.raises(VerificationError, match=f"expected 32 bytes, got {length}"):
        verify_consistency(size1=2, size2=2, root1=bad, root2=bad, proof=[])


@pytest.mark.parametrize(("size", "count"), [(0, 1), (1, 0), (3, 1), (4, 2), (-1, 1)])
def test_a_frontier_of_another_shape_is_refused(size: int, count: int) -> None:
    with pytest.raises(VerificationError, match=r"^frontier: expected"):
        Frontier(size=size, hashes=(EMPTY_ROOT,) * count)


@pytest.mark.parametrize(("index", "size"), [(-1, 4), (4, 4), (0, 0)])
def test_there_is_no_proof_for_a_leaf_outside(index: int, size: int) -> None:
    with pytest.raises(InputError, match="inclusion proof: expected a leaf below"):
        inclusion_proof(LEAVES[:size], index)
    with pytest.raises(VerificationError, match="inclusion proof: expected a leaf below"):
        verify_inclusion(index=index, size=size, leaf=LEAVES[0], proof=[], root=EMPTY_ROOT)


@pytest.mark.parametrize(("size1", "size2"), [(0, 4), (5, 4), (-1, 4)])
def test_there_is_no_consistency_with_an_empty_or_a_longer_tree(size1: int, size2: int) -> None:
    with pytest.raises(InputError, match="consistency proof: expected a size of 1"):
        consistency_proof(LEAVES[:size2], size1)
    with pytest.raises(VerificationError, match="consistency proof: expected 1 to"):
        verify_consistency(size1=size1, size2=size2, root1=EMPTY_ROOT, root2=EMPTY_ROOT, proof=[])
