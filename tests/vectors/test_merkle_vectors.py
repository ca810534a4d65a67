"""RFC 6962 against 196 outside proofs and 9 roots (transparency-dev/merkle, Apache-2.0).

Left out: `subtreeinclusion.json` and `subtreeconsistency.json` (322 cases). They are for the
subtree proofs of a draft (Merkle Tree Certificates) that no RFC defines and no code here makes.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import VerificationError
from harness.ledger.merkle import (
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_of,
    verify_consistency,
    verify_inclusion,
)

pytestmark = pytest.mark.vectors

SHORT_ROOTS = "consistency/additional/sizes-are-equal-one-and-proof-is-empty.json"


def load(vectors: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((vectors / "merkle-rfc6962" / name).read_text())
    return found


def decoded(text: str | None) -> bytes:
    return base64.b64decode(text or "")


def proof_of(case: dict[str, Any]) -> list[bytes]:
    return [decoded(text) for text in case["proof"] or []]


def accepts_inclusion(case: dict[str, Any]) -> bool:
    try:
        verify_inclusion(
            index=case["leafIdx"],
            size=case["treeSize"],
            leaf=decoded(case["leafHash"]),
            proof=proof_of(case),
            root=decoded(case["root"]),
        )
    except VerificationError:
        return False
    return True


def accepts_consistency(case: dict[str, Any]) -> bool:
    try:
        verify_consistency(
            size1=case["size1"],
            size2=case["size2"],
            root1=decoded(case["root1"]),
            root2=decoded(case["root2"]),
            proof=proof_of(case),
        )
    except VerificationError:
        return False
    return True


def test_all_inclusion_proofs(shared_vectors: Path) -> None:
    cases = load(shared_vectors, "inclusion.json")
    wrong = [c["file"] for c in cases if accepts_inclusion(c["case"]) == c["case"]["wantErr"]]
    assert wrong == []
    assert len(cases) == 98


def test_all_consistency_proofs(shared_vectors: Path) -> None:
    cases = load(shared_vectors, "consistency.json")
    wrong = [c for c in cases if accepts_consistency(c["case"]) == c["case"]["wantErr"]]
    assert [c["file"] for c in wrong] == [SHORT_ROOTS]
    assert len(cases) == 98
    # Deliberately stricter: the two roots are equal, but they are not 32 bytes long.
    case = wrong[0]["case"]
    assert case["size1"] == case["size2"]
    assert case["root1"] == case["root2"]
    assert len(decoded(case["root1"])) != 32


def test_the_roots_of_all_tree_sizes(shared_vectors: Path) -> None:
    data = json.loads((shared_vectors / "merkle-rfc6962" / "tree_roots.json").read_text())
    leaves = [leaf_hash(bytes.fromhex(text)) for text in data["leaf_inputs_hex"]]
    roots = [root_of(leaves[:size]).hex() for size in range(len(leaves) + 1)]
    assert roots == data["root_hash_hex_by_tree_size"]


def test_our_proofs_are_those_of_the_accepted_cases(shared_vectors: Path) -> None:
    data = json.loads((shared_vectors / "merkle-rfc6962" / "tree_roots.json").read_text())
    leaves = [leaf_hash(bytes.fromhex(text)) for text in data["leaf_inputs_hex"]]
    roots = {root_of(leaves[:size]): size for size in range(1, len(leaves) + 1)}
    compared = 0
    for item in load(shared_vectors, "inclusion.json"):
        case = item["case"]
        if not case["wantErr"] and roots.get(decoded(case["root"])) == case["treeSize"]:
            size, index = case["treeSize"], case["leafIdx"]
            assert inclusion_proof(leaves[:size], index) == proof_of(case), item["file"]
            compared += 1
    for item in load(shared_vectors, "consistency.json"):
        case = item["case"]
        if not case["wantErr"] and roots.get(decoded(case["root2"])) == case["size2"]:
            size1, size2 = case["size1"], case["size2"]
            assert consistency_proof(leaves[:size2], size1) == proof_of(case), item["file"]
            compared += 1
    assert compared >= 10
