"""The artifacts of a run: find them, and hand out their exact bytes."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.flows.history import OperationRun, RunSummary
from harness.flows.lookup import find_operation, find_run
from harness.flows.records import load_record
from harness.flows.session import Session
from harness.model.run_record import Artifact
from harness.store.export import export_file


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptArtifact:
    """One artifact and where it came from.

    Attributes:
        run: run id.
        operation: the operation that left it.
        artifact: what the run's record says of it.
    """

    run: str
    operation: str
    artifact: Artifact


def list_artifacts(session: Session, given: str) -> tuple[KeptArtifact, ...]:
    """Return the artifacts of a run, or of one operation of it.

    Args:
        session: host and project.
        given: `RUN` or `RUN/OPERATION`.

    Raises:
        InputError: no such run or operation.
        VerificationError: a stored record is missing or differs.
    """
    run, operations = _named(session, given)
    return tuple(
        KeptArtifact(run=run.run, operation=operation.name, artifact=artifact)
        for operation in operations
        if operation.record
        for artifact in load_record(session, run, operation).artifacts
    )


def find_artifact(session: Session, given: str, name: str) -> KeptArtifact:
    """Find one artifact by its name.

    Args:
        session: host and project.
        given: `RUN`, or `RUN/OPERATION` where several operations left one of this name.
        name: the artifact's.

    Raises:
        InputError: none or several fit.
        VerificationError: a stored record is missing or differs.
    """
    kept = list_artifacts(session, given)
    found = [item for item in kept if item.artifact.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        places = ", ".join(f"{item.run}/{item.operation}" for item in found)
        raise InputError(
            f"artifact {name!r:.80}: {len(found)} operations of run {found[0].run} left one",
            hint=f"name one: {places}",
        )
    names = list(dict.fromkeys(item.artifact.name for item in kept))
    near = difflib.get_close_matches(name, names, n=1)
    listed = f"it left: {', '.join(names)}" if names else "it left no artifact"
    raise InputError(
        f"artifact {name!r:.80}: run {given:.120} left none of this name",
        hint=f"did you mean {near[0]!r}?" if near else listed,
    )


def read_artifact(session: Session, kept: KeptArtifact) -> Iterator[bytes]:
    """Yield an artifact's bytes; nothing of it unless all of it is as it was recorded.

    Raises:
        VerificationError: the stored bytes are missing or differ.
        StateError: the disk is failing.
    """
    for _ in session.blobs.chunks(kept.artifact.digest):
        pass  # a reader of a pipe has no way to take back what it was given
    yield from session.blobs.chunks(kept.artifact.digest)


def save_artifact(session: Session, kept: KeptArtifact, target: Path, *, replace: bool) -> None:
    """Write an artifact to a file.

    Args:
        session: host and project.
        kept: which.
        target: where.
        replace: an existing file may go.

    Raises:
        InputError: something has the name already, or it can't be written there.
        VerificationError: the stored bytes are missing or differ; nothing was written.
    """
    export_file(target, session.blobs.chunks(kept.artifact.digest), replace=replace)


def _named(session: Session, given: str) -> tuple[RunSummary, tuple[OperationRun, ...]]:
    entries, project = session.ledger.entries(), session.project.id
    if "/" in given:
        run, operation = find_operation(entries, project, given)
        return run, (operation,)
    run = find_run(entries, project, given)
    return run, run.operations
