"""Signing with the real ssh-keygen: file, passphrase, agent, terminal; and each way it can fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import AuthorityError, HarnessError, SandboxUnavailableError
from harness.governance import sign as sign_module
from harness.governance.approvals import ReceivedApproval, plan_terms, verify_approval
from harness.governance.reviewers import parse_reviewers
from harness.governance.sign import read_public_key, sign_statement
from harness.governance.sshsig import parse_sshsig, verify_sshsig
from tests.fakes.approval_case import NOW, make_plan, make_policy, sign
from tests.fakes.ssh_signer import make_signer

PROJECT = Path(__file__).resolve().parents[2]
STATEMENT = b'{"_type":"statement"}'
BASE_ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def make_key(folder: Path, *, passphrase: str = "", name: str = "key") -> Path:
    key = folder / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", passphrase, "-f", key], check=True
    )
    return key


def make_askpass(folder: Path, script: str) -> dict[str, str]:
    program = folder / "askpass"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    return {**BASE_ENV, "SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force"}


def signed(key: Path, environment: Mapping[str, str] = BASE_ENV) -> bytes:
    return sign_statement(
        STATEMENT, gate="plan", key=key, environment=environment, interactive=False
    )


def check(signature: bytes, key: Path) -> None:
    verify_sshsig(
        parse_sshsig(signature),
        STATEMENT,
        namespace="plan-approval@harness",
        key=read_public_key(key),
    )


def refusal(key: Path, environment: Mapping[str, str] = BASE_ENV) -> HarnessError:
    with pytest.raises(HarnessError) as caught:
        signed(key, environment)
    return caught.value


def test_a_key_in_a_file_signs_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    check(signed(key), key)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["key", "key.pub"]


def test_a_key_without_its_public_file_signs_too(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    key.with_suffix(".pub").unlink()
    check(signed(key), key)


def test_the_owner_of_a_locked_key_is_known_without_its_passphrase(tmp_path: Path) -> None:
    key = make_key(tmp_path, passphrase="open sesame")
    assert read_public_key(key) == read_public_key(key.with_suffix(".pub"))


def test_a_passphrase_is_asked_for_by_askpass(tmp_path: Path) -> None:
    key = make_key(tmp_path, passphrase="open sesame")
    check(signed(key, make_askpass(tmp_path, "echo open sesame")), key)


def test_a_wrong_or_missing_passphrase_is_named(tmp_path: Path) -> None:
    key = make_key(tmp_path, passphrase="open sesame")
    for environment in (make_askpass(tmp_path, "echo wrong"), BASE_ENV):
        error = refusal(key, environment)
        assert isinstance(error, AuthorityError)
        assert error.message == "key: expected its passphrase, got none or a wrong one"


def test_nobody_is_waited_for_without_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = make_key(tmp_path, passphrase="open sesame")
    monkeypatch.setattr(sign_module, "DEADLINE_SECONDS", 0.5)
    environment = make_askpass(tmp_path, f"echo $$ > {tmp_path}/pid\nsleep 60")
    began = time.monotonic()
    error = refusal(key, environment)
    assert isinstance(error, AuthorityError)
    assert "expected a signature within" in error.message
    assert time.monotonic() - began < 10
    assert is_gone(int((tmp_path / "pid").read_text())), "askpass goes with ssh-keygen"


def is_gone(pid: int) -> bool:
    """Tell whether a process has ended; a zombie nobody has collected yet has."""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_missing_ssh_keygen_is_the_operators_to_mend(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    error = refusal(key, {"PATH": str(tmp_path)})
    assert isinstance(error, SandboxUnavailableError)
    assert error.message == "ssh-keygen: is not on this host"


def test_a_public_file_without_agent_or_private_half_is_named(tmp_path: Path) -> None:
    key = make_key(tmp_path)
    key.unlink()
    error = refusal(key.with_suffix(".pub"))
    assert isinstance(error, AuthorityError)
    assert "its private half is neither beside the .pub file nor in an agent" in error.message


def test_a_public_file_that_belongs_to_another_key_is_not_signed_for(tmp_path: Path) -> None:
    key, other = make_key(tmp_path), make_key(tmp_path, name="other")
    key.with_suffix(".pub").write_bytes(other.with_suffix(".pub").read_bytes())
    error = refusal(key)
    assert isinstance(error, AuthorityError)
    assert "ssh-keygen: could not sign" in error.message


def test_only_what_ssh_keygen_needs_of_the_environment_is_passed(tmp_path: Path) -> None:
    key = make_key(tmp_path, passphrase="open sesame")
    seen = tmp_path / "seen"
    environment = make_askpass(tmp_path, f"env > {seen}; echo open sesame")
    signed(key, {**environment, "SECRET_TOKEN": "x", "LD_PRELOAD": "/x.so"})
    names = {line.partition("=")[0] for line in seen.read_text().splitlines()}
    assert names & {"SECRET_TOKEN", "LD_PRELOAD"} == set()
    assert "SSH_ASKPASS" in names


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """A real ssh-agent of the test's own."""

    environment: dict[str, str]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    socket = tmp_path / "agent.sock"
    with subprocess.Popen(
        ["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL, env=BASE_ENV
    ) as process:
        for _ in range(100):
            if socket.exists():
                break
            time.sleep(0.05)
        yield Agent(environment={**BASE_ENV, "SSH_AUTH_SOCK": str(socket)})
        process.terminate()


def test_an_agent_signs_for_a_public_file(tmp_path: Path, agent: Agent) -> None:
    key = make_key(tmp_path)
    subprocess.run(["ssh-add", "-q", key], env=agent.environment, check=True)
    key.unlink()
    public = key.with_suffix(".pub")
    check(signed(public, agent.environment), public)


def test_an_agent_that_does_not_hold_the_key_is_named(tmp_path: Path, agent: Agent) -> None:
    key = make_key(tmp_path)
    key.unlink()
    error = refusal(key.with_suffix(".pub"), agent.environment)
    assert "nor in an agent" in error.message


ON_A_TERMINAL = """
import sys
from pathlib import Path
from harness.errors import HarnessError
from harness.governance.sign import sign_statement
key, out, interactive = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "person"
env = {"PATH": sys.argv[4], "HOME": "/nonexistent"}
try:
    out.write_bytes(sign_statement(
        Path(sys.argv[5]).read_bytes(), gate="plan", key=key, environment=env,
        interactive=interactive))
except HarnessError as error:
    out.write_text(error.message)
"""


def run_on_terminal(tmp_path: Path, key: Path, mode: str) -> tuple[bytes, bytes]:
    """Run the signing on a pseudo-terminal, answer its prompt, return screen and result."""
    ours, theirs = os.openpty()
    message, out = tmp_path / "message", tmp_path / "out"
    message.write_bytes(STATEMENT)
    command = [sys.executable, "-c", ON_A_TERMINAL]
    arguments = [str(key), str(out), mode, os.environ["PATH"], str(message)]
    screen = b""
    with subprocess.Popen(
        ["setsid", "--ctty", "--wait", *command, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**BASE_ENV, "PYTHONPATH": str(PROJECT)},
    ) as process:
        os.close(theirs)
        answered = False
        while chunk := _read(ours):
            screen += chunk
            if b"passphrase" in screen and not answered:
                os.write(ours, b"open sesame\n")
                answered = True
        process.wait(timeout=30)
    os.close(ours)
    return screen, out.read_bytes()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # EIO: the other side of a pseudo-terminal was closed
        return b""


def test_a_person_at_the_terminal_is_asked_there(tmp_path: Path) -> None:
    key = make_key(tmp_path, passphrase="open sesame")
    screen, signature = run_on_terminal(tmp_path, key, "person")
    assert b"Enter passphrase" in screen
    check(signature, key)


def test_nobody_is_asked_on_a_terminal_when_no_person_was_promised(tmp_path: Path) -> None:
    key = make_key(tmp_path, passphrase="open sesame")
    screen, message = run_on_terminal(tmp_path, key, "nobody")
    assert b"passphrase" not in screen
    assert message == b"key: expected its passphrase, got none or a wrong one"


def shell_blocks() -> list[str]:
    text = (PROJECT / "docs" / "reference" / "approvals.md").read_text()
    return re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)


def test_the_commands_of_the_reference_page_work_as_written(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    key = make_key(home / ".ssh", name="id_ed25519")
    public = key.with_suffix(".pub").read_text()
    reviewers = f"alice,alice@example.org {public}bob {make_signer(1).public_text}\n".encode()
    policy = make_policy(reviewers=reviewers)
    plan = make_plan(policy)
    terms = plan_terms(plan)
    statement = sign(terms, make_signer(1), "alice").statement
    for name, data in (
        ("approval.json", statement),
        ("reviewers", reviewers),
        ("plan.json", plan.to_bytes()),
    ):
        (tmp_path / name).write_bytes(data)
    signing, checking = shell_blocks()
    for block in (signing, checking):
        done = subprocess.run(
            ["sh", "-eu"],
            input=block,
            cwd=tmp_path,
            env={**BASE_ENV, "HOME": str(home)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:2] == ["alice", "alice@example.org"]
    assert lines[2].startswith('Good "plan-approval@harness" signature for alice with ED25519 key')
    assert lines[3].split()[0] == policy.reviewers_digest.removeprefix("sha256:")
    verified = verify_approval(
        ReceivedApproval(
            statement=statement,
            signature=(tmp_path / "approval.json.sig").read_bytes(),
            received=NOW,
        ),
        terms=terms,
        policy=policy,
        reviewers=parse_reviewers(reviewers),
    )
    assert verified.person == "alice"
