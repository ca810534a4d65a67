"""`harness approve` and `harness reject`: a person's signature over one full hash."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.cli.begin import begin
from harness.cli.command import Command
from harness.cli.offer import offer
from harness.cli.options import is_terminal, json_option, print_json, project_option
from harness.cli.plain import plain
from harness.cli.show_diff import print_diff
from harness.cli.show_plan import print_plan
from harness.errors import ApprovalMissingError, InputError
from harness.flows.approve import Received, build_statement, decide, open_for_decision, receive
from harness.flows.caller import caller_home
from harness.flows.gates import OpenGate
from harness.flows.plans import view_plan_of
from harness.flows.session import Session
from harness.model.approval import NAMESPACES, Decision
from harness.model.digest import Digest, parse_given_digest, short

MAX_READ = 1024 * 1024
"""Far more than a statement or a signature has."""

DEFAULT_KEYS = ("id_ed25519", "id_ed25519_sk")

F = TypeVar("F", bound=Callable[..., Any])
_FILE = click.Path(path_type=Path, dir_okay=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The words of the command."""

    given: str
    key: Path | None
    comment: str
    write_statement: Path | None
    reviewer: str
    statement: Path | None
    signature: Path | None
    project: Path
    as_json: bool


def _decision_words(command: F) -> F:
    """Add the argument and the options that both commands share."""
    words = [
        click.argument("given", metavar="HASH", shell_complete=offer("plans", "diffs")),
        click.option(
            "--key", type=_FILE, help="SSH key to sign with; its .pub when an agent holds it."
        ),
        click.option("--comment", default="", help="Free text, signed along."),
        click.option(
            "--write-statement",
            type=_FILE,
            help="Write the statement to this file, to sign it elsewhere.",
        ),
        click.option(
            "--reviewer",
            default="",
            shell_complete=offer("reviewers"),
            help="Who will sign, with --write-statement.",
        ),
        click.option("--statement", type=_FILE, help="A statement that was signed elsewhere."),
        click.option("--signature", type=_FILE, help="Its signature by `ssh-keygen -Y sign`."),
        project_option,
        json_option,
    ]
    for word in reversed(words):
        command = word(command)
    return command


@click.command(cls=Command)
@_decision_words
def approve(**words: Any) -> None:
    """Sign a plan hash or a diff hash with your SSH key.

    On a terminal you are shown what HASH stands for, and asked. Without a terminal a key and the
    full hash must be given here.

    To sign on another machine: --write-statement FILE, there `ssh-keygen -Y sign`, and back here
    --statement FILE --signature FILE.sig.
    """
    _decide("approve", _Asked(**words))


@click.command(cls=Command)
@_decision_words
def reject(**words: Any) -> None:
    """Sign that a plan or a diff must not go on.

    One rejection by a listed reviewer is final for this plan or this diff.
    """
    _decide("reject", _Asked(**words))


def _decide(decision: Decision, asked: _Asked) -> None:
    digest = parse_given_digest(asked.given)
    session = begin(asked.project)
    if asked.write_statement is not None:
        _write_statement(session, digest, decision, asked, asked.write_statement)
        return
    if asked.statement is not None or asked.signature is not None:
        received = _bring_back(session, digest, decision, asked)
    else:
        key = asked.key
        if key is None:
            key = confirm(session, digest, decision)
        received = decide(
            session,
            digest,
            decision=decision,
            key=key,
            comment=asked.comment,
            interactive=is_terminal(),
        )
    _print_received(received, as_json=asked.as_json)


def confirm(
    session: Session, digest: Digest, decision: Decision, *, key: Path | None = None
) -> Path:
    """Show on the terminal what a hash stands for, ask, and return the key to sign with.

    Args:
        session: host and project.
        digest: full plan hash or diff hash.
        decision: approve or reject.
        key: to sign with; the usual one of `~/.ssh` when not given.

    Raises:
        ApprovalMissingError: there is no terminal, or the person said no.
        InputError: no usual key is there.
        AuthorityError: the gate takes no more decisions.
    """
    if not is_terminal():
        raise ApprovalMissingError(
            f"{short(digest)}: nothing is approved without a terminal unless --key is given",
            hint="give --key KEY and the full hash on the command line",
        )
    gate = open_for_decision(session, digest, decision)
    show_gate(session, gate)
    chosen = key or _usual_key()
    if not click.confirm(f"{decision} {gate.gate} {digest} with {chosen}?", err=True):
        raise ApprovalMissingError(
            f"{gate.gate} {short(digest)}: you said no; nothing was signed and it still waits",
            hint=f"`harness reject {digest}` signs that it must not go on",
        )
    return chosen


def show_gate(session: Session, gate: OpenGate) -> None:
    """Print what a decision on a gate is about."""
    if gate.quarantine is None:
        print_plan(view_plan_of(session, session.ledger.entries(), gate.plan.digest))
    else:
        print_diff(session, gate.quarantine)


def _usual_key() -> Path:
    home = caller_home(os.environ)
    folder = home / ".ssh" if home else Path("~/.ssh")
    for name in DEFAULT_KEYS:
        if os.path.exists(folder / name):  # noqa: PTH110 - false where this user can't look
            return folder / name
    raise InputError(
        f"key: none of {', '.join(DEFAULT_KEYS)} is in {folder}",
        hint="give --key KEY; `ssh-keygen -t ed25519` makes one",
    )


def _write_statement(
    session: Session, digest: Digest, decision: Decision, asked: _Asked, target: Path
) -> None:
    if not asked.reviewer:
        raise InputError(
            "--write-statement: expected --reviewer NAME too, as in the reviewers file"
        )
    gate = open_for_decision(session, digest, decision)
    approval = build_statement(
        gate, decision=decision, reviewer=asked.reviewer, comment=asked.comment
    )
    try:
        with target.open("xb") as stream:
            stream.write(approval.to_bytes())
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}") from error
    namespace = NAMESPACES[gate.gate]
    click.echo(f"sign it:     ssh-keygen -Y sign -f KEY -n {namespace} {target}")
    click.echo(
        f"bring back:  harness {decision} {digest} --statement {target} --signature {target}.sig"
    )


def _bring_back(session: Session, digest: Digest, decision: Decision, asked: _Asked) -> Received:
    if asked.statement is None or asked.signature is None:
        raise InputError("--statement and --signature: expected both or neither")
    return receive(
        session,
        digest,
        decision=decision,
        statement=_read(asked.statement),
        signature=_read(asked.signature),
    )


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_READ)  # what is cut is refused as malformed
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error


def _print_received(received: Received, *, as_json: bool) -> None:
    approval = received.verified.signed.approval
    if as_json:
        print_json(
            {
                "gate": approval.gate,
                "decision": approval.decision,
                "subject": approval.subject,
                "reviewer": received.verified.person,
                "presence": received.verified.presence,
                "statement": received.statement,
                "notAfter": approval.not_after,
                "missing": received.missing,
            }
        )
        return
    word = "approved" if approval.decision == "approve" else "rejected"
    click.echo(f"{word} by {plain(received.verified.person)}: {approval.gate} {approval.subject}")
    if received.missing:
        click.echo(f"still missing: {plain(received.missing)}")
    elif approval.decision == "approve":
        verb = "run" if approval.gate == "plan" else "apply"
        click.echo(f"next: harness {verb} {approval.subject}")
