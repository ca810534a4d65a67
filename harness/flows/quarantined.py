"""A quarantined diff with everything a reviewer needs, loaded and checked from the store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from harness.errors import VerificationError
from harness.execution.apply.check import find_refusals
from harness.execution.quarantine.patch import render_patch
from harness.flows.history import Quarantined
from harness.flows.session import Project, Session
from harness.model.changeset import (
    ByProduct,
    Changeset,
    parse_by_products,
    parse_changeset,
    result_of,
)
from harness.model.digest import short
from harness.model.files.project_file import PROJECT_FILE
from harness.model.quarantine_record import QuarantineRecord, parse_quarantine_record

MAX_PATCH = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """One diff in quarantine.

    Attributes:
        summary: what the ledger says of it.
        record: what the run left beside it; its flags with those on what governs the project.
        changeset: what would land.
        by_products: what never will.
        obstacles: paths that may not land, with the reason; empty when nothing stands in the way.
    """

    summary: Quarantined
    record: QuarantineRecord
    changeset: Changeset
    by_products: tuple[ByProduct, ...]
    obstacles: tuple[tuple[bytes, str], ...]


def load_quarantine(session: Session, summary: Quarantined) -> Quarantine:
    """Load a diff and check that its parts belong together.

    Raises:
        VerificationError: stored bytes are missing or differ, or the result does not follow.
        InputError: they are malformed.
    """
    blobs = session.blobs
    record = parse_quarantine_record(blobs.get(summary.record))
    if (record.diff, record.plan) != (summary.diff, summary.plan):
        raise VerificationError(
            f"quarantine {short(summary.diff)}: its record is about {short(record.diff)}"
        )
    changeset = parse_changeset(blobs.get(summary.diff))
    result = result_of(blobs.get, changeset.base, changeset.changes)[0].digest
    if result != changeset.result:
        raise VerificationError(
            f"diff {short(summary.diff)}: expected result {changeset.result}, got {result}"
        )
    return Quarantine(
        summary=summary,
        record=replace(record, flags=(*record.flags, *_flag_governing(session.project, changeset))),
        changeset=changeset,
        by_products=parse_by_products(blobs.get(record.by_products)),
        obstacles=find_refusals(
            session.project.root, changeset, blobs=blobs, environment=os.environ
        ),
    )


def _flag_governing(project: Project, changeset: Changeset) -> Iterator[tuple[bytes, str]]:
    """Flag what decides about later runs: a reviewer must not miss it among many changes."""
    governing = {
        project.root / PROJECT_FILE: "says where this project's policies and recipes are",
        project.policies: "decides who may approve, and what a worker gets",
        project.recipes: "decides what later runs execute",
    }
    for change in changeset.changes:
        path = project.root / os.fsdecode(change.path)
        for place, why in governing.items():
            if path.is_relative_to(place) or place.is_relative_to(path):
                yield change.path, why


def render_quarantine(session: Session, quarantine: Quarantine) -> bytes:
    """Return the patch view of a diff, made by git; `git apply` accepts it.

    Raises:
        SandboxUnavailableError: git is missing.
        InputError: the changed files hold more than 64 MiB.
    """
    return render_patch(quarantine.changeset, blobs=session.blobs, max_bytes=MAX_PATCH)
