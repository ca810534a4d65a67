"""Outside vectors for what approvals rest on: SSHSIG (OpenSSH) and Ed25519 (Wycheproof)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.errors import ApprovalInvalidError
from harness.governance.ssh_keys import parse_key_text, verify_ed25519
from harness.governance.sshsig import parse_sshsig, verify_sshsig

pytestmark = pytest.mark.vectors


def test_openssh_own_sshsig_vector_holds_and_only_for_its_message(shared_vectors: Path) -> None:
    folder = shared_vectors / "sshsig"
    words = (folder / "ed25519.pub").read_text().split()
    key = parse_key_text(words[0], words[1])
    message = (folder / "signed-data").read_bytes()
    signature = parse_sshsig((folder / "ed25519.sig").read_bytes())
    assert signature.hash == "sha512"
    verify_sshsig(signature, message, namespace="unittest", key=key)
    with pytest.raises(ApprovalInvalidError, match="does not hold"):
        verify_sshsig(signature, message + b"\n", namespace="unittest", key=key)


def test_all_wycheproof_ed25519_cases_agree(shared_vectors: Path) -> None:
    suite = json.loads((shared_vectors / "wycheproof-ed25519" / "ed25519_test.json").read_bytes())
    differing: list[int] = []
    seen = 0
    for group in suite["testGroups"]:
        point = bytes.fromhex(group["publicKey"]["pk"])
        for case in group["tests"]:
            seen += 1
            holds = verify_ed25519(point, bytes.fromhex(case["sig"]), bytes.fromhex(case["msg"]))
            if holds != (case["result"] == "valid"):
                differing.append(case["tcId"])
    assert (seen, differing) == (suite["numberOfTests"], [])
    assert seen == 151
