"""`ssh-keygen -Y verify` as the oracle: what we accept, it accepts; where we are stricter is named.

The loops use fixed seeds, so a failure comes back. Times are given as `verify-time` in UTC.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import AuthorityError, InputError
from harness.governance.approvals import (
    ReceivedApproval,
    diff_terms,
    plan_terms,
    verify_approval,
)
from harness.governance.reviewers import parse_reviewers
from harness.governance.ssh_keys import parse_key_blob
from harness.governance.ssh_wire import wire_string
from harness.governance.sshsig import parse_sshsig, verify_sshsig
from harness.model.approval import NAMESPACES
from harness.model.clock import parse_time
from tests.fakes.approval_case import NOW, make_changeset, make_plan, make_policy, sign
from tests.fakes.ssh_signer import STRAIGHT, Bent, FakeSigner, armour, make_signer

SPACE = "plan-approval@harness"
MESSAGE = b'{"_type":"statement"}'
SOFT = make_signer(11)
FIDO = make_signer(12, application=b"ssh:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """Stock ssh-keygen, in a folder of its own."""

    folder: Path

    def accepts(
        self,
        signature: bytes,
        *,
        reviewers: bytes,
        message: bytes = MESSAGE,
        name: str = "alice",
        namespace: str = SPACE,
        at: str = NOW,
    ) -> bool:
        (self.folder / "sig").write_bytes(signature)
        (self.folder / "reviewers").write_bytes(reviewers)
        moment = parse_time(at).strftime("%Y%m%d%H%M%SZ")
        done = subprocess.run(
            [
                *("ssh-keygen", "-Y", "verify", "-f", "reviewers", "-s", "sig"),
                *("-I", name, "-n", namespace, "-O", f"verify-time={moment}"),
            ],
            cwd=self.folder,
            input=message,
            capture_output=True,
            check=False,
            timeout=30,
            env={"PATH": os.environ["PATH"], "TZ": "UTC"},
        )
        return done.returncode == 0


@pytest.fixture
def oracle(tmp_path: Path) -> Oracle:
    return Oracle(folder=tmp_path)


def our_reason(
    signature: bytes, signer: FakeSigner, *, message: bytes = MESSAGE, namespace: str = SPACE
) -> str:
    """Return why we refuse a signature, or an empty text."""
    try:
        verify_sshsig(
            parse_sshsig(signature),
            message,
            namespace=namespace,
            key=parse_key_blob(signer.blob),
        )
    except AuthorityError as error:
        return error.message
    return ""


def line_of(signer: FakeSigner, name: str = "alice") -> bytes:
    return f"{name} {signer.public_text}\n".encode()


ARMOURED = SOFT.sign(MESSAGE, SPACE)
OUR_OWN_RULES = {
    "text after the footer": (ARMOURED + b"more\n", "expected one block"),
    "an empty line": (ARMOURED.replace(b"\n", b"\n\n", 1), "expected one block"),
    "version 0": (SOFT.sign(MESSAGE, SPACE, Bent(version=0)), "expected version 1, got 0"),
    "bytes in reserved": (SOFT.sign(MESSAGE, SPACE, Bent(reserved=b"x")), "empty reserved field"),
    "S beyond the order": (SOFT.sign(MESSAGE, SPACE, Bent(add_order_to_s=True)), "does not hold"),
}


@pytest.mark.parametrize("name", sorted(OUR_OWN_RULES))
def test_where_we_are_stricter_than_ssh_keygen(oracle: Oracle, name: str) -> None:
    signature, message = OUR_OWN_RULES[name]
    assert oracle.accepts(signature, reviewers=line_of(SOFT))
    assert message in our_reason(signature, SOFT)


def test_a_fido_signature_without_touch_is_where_we_are_stricter_too(oracle: Oracle) -> None:
    untouched = FIDO.sign(MESSAGE, SPACE, Bent(flags=0))
    assert oracle.accepts(untouched, reviewers=line_of(FIDO))
    assert "user-presence flag" in our_reason(untouched, FIDO)


@pytest.mark.parametrize("signer", [SOFT, FIDO], ids=["software", "fido"])
@pytest.mark.parametrize(
    ("bent", "accepted"),
    [
        (STRAIGHT, True),
        (Bent(hash="sha256"), True),
        (Bent(hash="sha1"), False),
        (Bent(magic=b"SSHSIX"), False),
        (Bent(version=2), False),
        (Bent(signed_reserved=b"x"), False),
        (Bent(inner_type=b"ssh-ed448"), False),
        (Bent(trailing=b"x"), False),
        (Bent(inner_trailing=b"x"), False),
        (Bent(key_blob=make_signer(13).blob), False),
        (Bent(key_blob=wire_string(b"ssh-rsa")), False),
    ],
)
def test_both_say_the_same_of_each_field(
    oracle: Oracle, signer: FakeSigner, bent: Bent, accepted: bool
) -> None:
    signature = signer.sign(MESSAGE, SPACE, bent)
    assert (our_reason(signature, signer) == "") is accepted
    assert oracle.accepts(signature, reviewers=line_of(signer)) is accepted


def test_both_say_the_same_of_message_and_namespace(oracle: Oracle) -> None:
    for message, namespace, accepted in (
        (MESSAGE, SPACE, True),
        (MESSAGE + b"\n", SPACE, False),
        (b"", SPACE, False),
        (MESSAGE, "diff-approval@harness", False),
        (MESSAGE, SPACE + "x", False),
    ):
        assert (our_reason(ARMOURED, SOFT, message=message, namespace=namespace) == "") is accepted
        said = oracle.accepts(
            ARMOURED, reviewers=line_of(SOFT), message=message, namespace=namespace
        )
        assert said is accepted


STRICTER = re.compile(
    "expected one block|expected version 1, got 0|empty reserved field|user-presence flag"
)


def _flip(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def _cut(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randint(1, 8) :]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.choice([b"\n", b" ", b"A", b"=", b"\0", b"-"]) + data[at:]


def _double(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[: at + 8] + data[at:]


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _cut, _insert, _double)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_done_to_a_signature_we_accept_no_more(oracle: Oracle, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a seed that comes back, no secret
    signer = SOFT if seed % 2 else FIDO
    blob = signer.sign_blob(MESSAGE, SPACE)
    for _ in range(40):
        mutate = rng.choice(MUTATIONS)
        signature = armour(mutate(rng, blob)) if rng.random() < 0.5 else mutate(rng, armour(blob))
        theirs = oracle.accepts(signature, reviewers=line_of(signer))
        reason = our_reason(signature, signer)
        if reason == "":
            assert theirs, signature
        elif theirs:
            assert STRICTER.search(reason), (reason, signature)


NAMES = ("alice", "al", "bob", "carol", "alic", "")
SPACES = (*NAMESPACES.values(), "git")
OPTIONS = (
    "",
    'namespaces="plan-approval@harness"',
    'namespaces="git,diff-approval@harness"',
    'valid-after="20260601Z"',
    'valid-after="20260601120000Z"',
    'valid-after="202606011201Z"',
    'valid-before="20260601Z"',
    'valid-before="20260601120000Z",namespaces="git"',
    'valid-after="20260101Z",valid-before="20270101Z"',
    'valid-after="20270101Z",valid-before="20270102Z"',
)


@pytest.mark.parametrize("options", OPTIONS)
def test_both_judge_a_reviewers_file_alike(oracle: Oracle, options: str) -> None:
    text = (
        f"# people\n\nalice,al {options} {SOFT.public_text} a comment\nbob {FIDO.public_text}\n"
    ).encode()
    reviewers = parse_reviewers(text)
    policy = make_policy(reviewers=text)
    plan = make_plan(policy)
    for terms in (plan_terms(plan), diff_terms(make_changeset(b"a"), plan, "d" * 32)):
        for name in NAMES:
            for signer in (SOFT, FIDO):
                received = sign(terms, signer, name)
                try:
                    verify_approval(received, terms=terms, policy=policy, reviewers=reviewers)
                    ours = True
                except AuthorityError:
                    ours = False
                theirs = oracle.accepts(
                    received.signature,
                    reviewers=text,
                    message=received.statement,
                    name=name,
                    namespace=terms.namespace,
                    at=received.received,
                )
                assert ours is theirs, (name, signer.type, terms.gate)


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_reviewers_file_lets_nobody_in_whom_ssh_keygen_keeps_out(
    oracle: Oracle, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a seed that comes back, no secret
    base = (
        f'alice namespaces="plan-approval@harness",valid-before="20270101Z" {SOFT.public_text} x\n'
        f"bob {FIDO.public_text}\n"
    ).encode()
    accepted = 0
    for _ in range(60):
        text = rng.choice(MUTATIONS)(rng, base)
        try:
            reviewers = parse_reviewers(text)
        except InputError:
            continue
        policy = make_policy(reviewers=text)
        terms = plan_terms(make_plan(policy))
        received = sign(terms, SOFT, "alice")
        try:
            verify_approval(received, terms=terms, policy=policy, reviewers=reviewers)
        except AuthorityError:
            continue
        accepted += 1
        assert oracle.accepts(received.signature, reviewers=text, message=received.statement), text
    assert accepted, "some mutations touch only a comment"


STRICTER_LINES = {
    "a pattern for a name": f"al* {SOFT.public_text}\n",
    "a pattern for a namespace": f'alice namespaces="*@harness" {SOFT.public_text}\n',
    "a local time": f'alice valid-after="20260101" {SOFT.public_text}\n',
    "one key of two persons": f"alice {SOFT.public_text}\nbob {SOFT.public_text}\n",
    "an upper-case option": f'alice NAMESPACES="{SPACE}" {SOFT.public_text}\n',
    "a quoted name": f'"alice" {SOFT.public_text}\n',
    "another line that is broken": f"alice {SOFT.public_text}\nbob ssh-rsa AAAA\n",
}


@pytest.mark.parametrize("name", sorted(STRICTER_LINES))
def test_lines_we_refuse_and_ssh_keygen_reads(oracle: Oracle, name: str) -> None:
    text = STRICTER_LINES[name].encode()
    assert oracle.accepts(ARMOURED, reviewers=text)
    with pytest.raises(InputError, match="is not a reviewers file"):
        parse_reviewers(text)


def test_another_key_type_is_refused_though_ssh_keygen_takes_it(oracle: Oracle) -> None:
    key = oracle.folder / "rsa"
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", key], check=True)
    signature = subprocess.run(
        ["ssh-keygen", "-Y", "sign", "-n", SPACE, "-f", key],
        input=MESSAGE,
        capture_output=True,
        check=True,
    ).stdout
    line = b"alice " + key.with_suffix(".pub").read_bytes()
    assert oracle.accepts(signature, reviewers=line)
    with pytest.raises(AuthorityError, match=r"expected type ssh-ed25519 or .*, got 'ssh-rsa'"):
        parse_sshsig(signature)
    with pytest.raises(InputError) as caught:
        parse_reviewers(line)
    assert "ssh-keygen -t ed25519" in str(caught.value.issues[0])


def test_fingerprints_are_those_of_ssh_keygen(oracle: Oracle) -> None:
    for signer in (SOFT, FIDO):
        path = oracle.folder / "key.pub"
        path.write_text(signer.public_text + "\n")
        shown = subprocess.run(
            ["ssh-keygen", "-l", "-f", path], capture_output=True, text=True, check=True
        ).stdout
        assert shown.split()[1] == parse_key_blob(signer.blob).fingerprint


def test_receipt_is_what_a_window_is_judged_by(oracle: Oracle) -> None:
    text = f'alice valid-before="20260601120000Z" {SOFT.public_text}\n'.encode()
    policy = make_policy(reviewers=text)
    terms = plan_terms(make_plan(policy))
    for at, accepted in (
        ("2026-06-01T12:00:00.000Z", True),
        ("2026-06-01T12:00:00.999Z", True),
        ("2026-06-01T12:00:01.000Z", False),
    ):
        received: ReceivedApproval = sign(terms, SOFT, "alice", received=at)
        try:
            verify_approval(received, terms=terms, policy=policy, reviewers=parse_reviewers(text))
            ours = True
        except AuthorityError:
            ours = False
        said = oracle.accepts(received.signature, reviewers=text, message=received.statement, at=at)
        assert (ours, said) == (accepted, accepted)
