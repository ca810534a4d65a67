"""The journal of one apply: written before the first effect, gone after the last.

Format (`harness/apply-journal/v1`), canonical JSON: id, diff hash, phase. It names no path of the
project: the changeset is in the blob store under the diff hash, and what was done can be seen in
the tree and the stage. Phases:

    staging     the stage is being filled; the project is untouched
    staged      everything is ready; from here on the project may be between the two states
    committed   the project holds the result; only the stage is left
    rolled-back the project holds the base; only the stage is left

There is at most one: staging refuses while another is there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from harness.errors import InputError, VerificationError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.changeset import Changeset, parse_changeset
from harness.model.digest import Digest, parse_digest
from harness.model.relpath import STAGE_PREFIX
from harness.store.blobs import BlobStore
from harness.store.durable import state_error, sync_folder, write_durably

JOURNAL_KIND = "harness/apply-journal/v1"

Phase = Literal["staging", "staged", "committed", "rolled-back"]

_PHASES: dict[object, Phase] = {phase: phase for phase in get_args(Phase)}
_ID = re.compile(r"[0-9a-f]{16}")
_NAME = "journal.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """One apply that is under way, or was when its process died.

    Attributes:
        folder: the state folder of the project's applies.
        id: 16 hex digits, random.
        diff: the diff hash.
        phase: how far it came.
    """

    folder: Path
    id: str
    diff: Digest
    phase: Phase

    @property
    def stage(self) -> bytes:
        """Return the name of the staging folder in the project's root."""
        return STAGE_PREFIX + self.id.encode("ascii")

    def write(self) -> None:
        """Make it durable.

        Raises:
            StateError: the disk is full, or the folder can't be written.
        """
        body = {"_type": JOURNAL_KIND, "id": self.id, "diff": self.diff, "phase": self.phase}
        write_durably(self.folder / _NAME, canonical_bytes(body))

    def advance(self, phase: Phase) -> Journal:
        """Make a new phase durable and return the journal in it.

        Raises:
            StateError: the disk is full, or the folder can't be written.
        """
        advanced = replace(self, phase=phase)
        advanced.write()
        return advanced

    def changeset(self, blobs: BlobStore) -> Changeset:
        """Return the changeset it applies.

        Raises:
            VerificationError: it is lost or damaged.
        """
        try:
            return parse_changeset(blobs.get(self.diff))
        except InputError as error:
            raise VerificationError(f"apply journal: {error.message}") from error


def open_folder(project: Path) -> Path:
    """Make the folder of a project's applies, empty it of torn writes, and return it.

    Args:
        project: the project's folder in the state folder.

    Raises:
        StateError: it can't be made.
        RuntimeError: an apply is under way: recover it first.
    """
    folder = project / "apply"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (folder / _NAME).exists():
            raise RuntimeError("an apply is under way; recover it first")
        _empty(folder)
    except OSError as error:
        raise state_error("open the apply journal", error) from error
    return folder


def find_pending(project: Path) -> Journal | None:
    """Return the journal of an apply that is under way, or whose process died.

    Args:
        project: the project's folder in the state folder.

    Raises:
        VerificationError: there is a journal, but it is damaged.
        StateError: it can't be read.
    """
    folder = project / "apply"
    try:
        data = (folder / _NAME).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise state_error("read the apply journal", error) from error
    try:
        value = parse_canonical(data, JOURNAL_KIND)
        diff = parse_digest(value.get("diff"))
    except InputError as error:
        raise VerificationError(f"apply journal: {error.message}") from error
    identity, phase = value.get("id"), _PHASES.get(str(value.get("phase")))
    if not isinstance(identity, str) or not _ID.fullmatch(identity) or phase is None:
        raise VerificationError("apply journal: expected an id and a phase")
    return Journal(folder=folder, id=identity, diff=diff, phase=phase)


def remove(journal: Journal) -> None:
    """Remove the journal, then torn writes of it; the apply is over.

    Raises:
        StateError: it can't be removed.
    """
    try:
        (journal.folder / _NAME).unlink(missing_ok=True)
        _empty(journal.folder)
    except OSError as error:
        raise state_error("remove the apply journal", error) from error
    sync_folder(journal.folder)


def _empty(folder: Path) -> None:
    """Remove what writes of a journal left behind when their process died."""
    for torn in folder.iterdir():
        torn.unlink()
