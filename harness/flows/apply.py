"""Apply and undo: land an approved diff whole or not at all; make the reverse of one that landed.

Order of an apply: decide, hold the tree, check every base, stage, append the intent (it spends the
nonce), rename, append the end, remove the stage. Whoever dies in between leaves a journal; the
next command on the project ends what was begun, and the ledger says how.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import (
    ApprovalConsumedError,
    AuthorityError,
    BaseDriftError,
    HarnessError,
    InputError,
    Issue,
    StateError,
)
from harness.execution.apply.check import check_base
from harness.execution.apply.commit import commit, recover
from harness.execution.apply.journal import find_pending
from harness.execution.apply.stage import finish, stage
from harness.execution.apply.tree import ProjectTree, hold_tree
from harness.flows.gates import OpenGate, decide_diff_gate, open_gate, refuse_what_cannot_land
from harness.flows.history import list_quarantined
from harness.flows.lookup import pick_exact_diff
from harness.flows.quarantined import Quarantine, load_quarantine
from harness.flows.session import Session
from harness.governance.grants import Check, guard_grant
from harness.model.approval import Approved
from harness.model.changeset import Changeset, by_products_bytes, result_of
from harness.model.digest import Digest, digest_of, short
from harness.model.entry import Entry, Phase
from harness.model.quarantine_record import QuarantineRecord
from harness.model.relpath import show


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A diff that landed.

    Attributes:
        diff: diff hash.
        changeset: what landed; with no change at all nothing was written.
    """

    diff: Digest
    changeset: Changeset


def apply_diff(session: Session, digest: Digest) -> Applied:
    """Land one approved diff.

    Args:
        session: host and project.
        digest: full diff hash.

    Raises:
        InputError: no such diff of this project.
        AuthorityError: not approved, or spent already.
        BaseDriftError: the project changed below it; nothing was written.
        ContainmentError: a path may not be written; nothing was written.
        StateError: the disk refused; everything was rolled back, or the next command goes on.
    """
    entries = session.ledger.entries()
    gate = open_gate(session, entries, digest)
    if gate.quarantine is None:
        raise InputError(
            f"hash: {short(digest)} is a plan, expected a diff",
            hint="`harness run HASH` runs a plan; `harness diff RUN` shows the diff hash",
        )
    landed = gate.quarantine.summary.landed
    if landed:
        raise ApprovalConsumedError(
            f"diff {short(digest)}: landed already, {landed}",
            hint=f"`harness undo {digest}` takes it back",
        )
    refuse_what_cannot_land(gate.quarantine)
    approved = decide_diff_gate(session, entries, gate)
    with hold_tree(session.project.root) as tree:
        _require_nobody_came_before(session, gate, seen=len(entries))
        return _apply_held(session, tree, gate, gate.quarantine, approved, seen=len(entries))


def _require_nobody_came_before(session: Session, gate: OpenGate, *, seen: int) -> None:
    """Refuse what another apply did while this one waited for the tree.

    Without this look its change would be taken for a stranger's.
    """
    if find_pending(session.state.project(session.project.id)) is not None:
        raise StateError(
            "apply: another one died half-way just now", hint="give the command again; it ends that"
        )
    guard_grant(gate.terms, seen=seen)(session.ledger.entries())


def _apply_held(
    session: Session,
    tree: ProjectTree,
    gate: OpenGate,
    quarantine: Quarantine,
    approved: Approved[Changeset],
    *,
    seen: int,
) -> Applied:
    changeset = approved.value
    body = _body(quarantine)
    intent = {
        **body,
        "approvals": [digest_of(item.statement) for item in approved.approvals],
        "base": changeset.base,
        "result": changeset.result,
    }
    check = guard_grant(gate.terms, seen=seen)
    if not changeset.changes:
        _append(session, "intent", intent, check=check)
        _append(session, "done", {**body, "result": "empty"})
        return Applied(diff=quarantine.summary.diff, changeset=changeset)
    found = check_base(tree, changeset, blobs=session.blobs, environment=os.environ)
    journal = stage(
        tree,
        approved,
        found=found,
        blobs=session.blobs,
        project=session.state.project(session.project.id),
    )
    try:
        _append(session, "intent", intent, check=check)
    except AuthorityError:
        finish(tree, journal)
        raise
    # Any other failure leaves the journal: the line may stand on the ledger all the same, and the
    # next command on the project ends the apply accordingly.
    try:
        journal = commit(tree, journal, found=found, blobs=session.blobs)
    except HarnessError:
        _record_failed_commit(session, tree, body)
        raise
    _append(session, "done", {**body, "result": "applied"})
    finish(tree, journal)
    return Applied(diff=quarantine.summary.diff, changeset=changeset)


def _record_failed_commit(session: Session, tree: ProjectTree, body: dict[str, str]) -> None:
    """Say on the ledger that a commit was rolled back; one that hangs half-way is settled later."""
    journal = find_pending(session.state.project(session.project.id))
    if journal is not None and journal.phase == "rolled-back":
        _append(session, "done", {**body, "result": "rolled-back"})
        finish(tree, journal)


def settle_apply(session: Session) -> str:
    """End an apply whose process died.

    Returns:
        What became of it, for people; empty when there was none.

    Raises:
        BaseDriftError: somebody changed the project since; those paths were left as they are, and
            everything else was rolled back.
        StateError: the disk refuses; the next command tries again.
    """
    folder = session.state.project(session.project.id)
    if find_pending(folder) is None:
        return ""
    with hold_tree(session.project.root) as tree:
        journal = find_pending(folder)
        if journal is None:
            return ""
        begun = _begun(session.ledger.entries(), session.project.id, journal.diff)
        journal, recovery = recover(tree, journal, decided=begun is not None, blobs=session.blobs)
        if begun is not None:
            body = {key: begun.body[key] for key in ("diff", "run", "plan", "nonce")}
            result = "applied" if recovery.applied else "rolled-back"
            _append(session, "done", {**body, "result": result})
        finish(tree, journal)
    if recovery.foreign:
        raise BaseDriftError(
            f"apply {short(journal.diff)}: had died half-way, and the project was changed since; "
            "those paths were left as they are and the rest was rolled back",
            issues=tuple(Issue(message="was changed", where=show(p)) for p in recovery.foreign),
        )
    state = "the project holds the change" if recovery.applied else "nothing was changed"
    return f"apply {short(journal.diff)}: had been interrupted; {state}"


def _begun(entries: list[Entry], project: str, diff: Digest) -> Entry | None:
    """Return the intent of an apply that has no end yet."""
    ended = {
        entry.body["nonce"] for entry in entries if entry.verb == "apply" and entry.phase == "done"
    }
    return next(
        (
            entry
            for entry in reversed(entries)
            if entry.verb == "apply"
            and entry.phase == "intent"
            and entry.project == project
            and entry.body["diff"] == diff
            and entry.body["nonce"] not in ended
        ),
        None,
    )


def undo_diff(session: Session, digest: Digest) -> Quarantine:
    """Quarantine the reverse of a diff that landed; it needs an approval of its own.

    Args:
        session: host and project.
        digest: full diff hash.

    Raises:
        InputError: no such diff of this project, or it never landed.
    """
    known = list_quarantined(session.ledger.entries(), session.project.id)
    summary = next((item for item in reversed(known) if item.landed and item.diff == digest), None)
    if summary is None:
        raise InputError(
            f"diff {short(digest)}: has not landed in this project, there is nothing to undo"
        )
    landed = load_quarantine(session, summary)
    blobs = session.blobs
    reverse = landed.changeset.reversed()
    _, made = result_of(blobs.get, reverse.base, reverse.changes)
    for data in made.values():
        blobs.put(data)
    record = QuarantineRecord(
        run=summary.run,
        plan=summary.plan,
        outcome=landed.record.outcome,
        diff=blobs.put(reverse.to_bytes()),
        by_products=blobs.put(by_products_bytes(reverse.base, ())),
        flags=(),
        missing=(),
        undoes=digest,
    )
    session.ledger.append(
        "undo",
        "done",
        project=session.project.id,
        body={
            "run": record.run,
            "operation": summary.operation,
            "plan": record.plan,
            "diff": record.diff,
            "of": digest,
            "byProducts": record.by_products,
            "record": blobs.put(record.to_bytes()),
            "nonce": secrets.token_hex(16),
            "base": reverse.base,
            "result": reverse.result,
            "changes": len(reverse.changes),
        },
    )
    waiting = pick_exact_diff(session.ledger.entries(), session.project.id, record.diff)
    if waiting is None:
        raise RuntimeError("an undo that was just appended is not on the ledger")
    return load_quarantine(session, waiting)


def _body(quarantine: Quarantine) -> dict[str, str]:
    summary = quarantine.summary
    return {
        "diff": summary.diff,
        "run": summary.run,
        "plan": summary.plan,
        "nonce": summary.nonce,
    }


def _append(
    session: Session, phase: Phase, body: Mapping[str, Any], check: Check | None = None
) -> None:
    session.ledger.append("apply", phase, project=session.project.id, body=body, check=check)
