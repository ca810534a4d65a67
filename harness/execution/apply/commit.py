"""Commit: all steps, or none. Recovery: the same after the process died.

Order of one apply, and what a SIGKILL at any point leads to:

    check, stage          -> the stage is removed; nothing had happened
    (ledger intent)       -> `decided`: rolled forward
    commit                -> rolled forward if every path is as before or as after, else back
    (ledger done), finish -> the stage is removed

Both ways are safe to repeat: what is still to do is read off the tree itself, never off a list of
what was done.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from harness.errors import ContainmentError, HarnessError, StateError
from harness.execution.apply.check import Found
from harness.execution.apply.effects import Effects, State
from harness.execution.apply.journal import Journal
from harness.execution.apply.stage import cannot_write
from harness.execution.apply.steps import Step, plan_steps
from harness.execution.apply.tree import NoFolderError, ProjectTree, Standing
from harness.model.changeset import Changeset
from harness.store.blobs import BlobStore
from harness.store.durable import make_folder_at
from harness.store.handles import open_folder_at, stat_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How an interrupted apply ended.

    Attributes:
        applied: the project holds the result; else it holds the base again.
        foreign: paths that were neither as before nor as after; they were left as they are, and
            everything else was rolled back.
    """

    applied: bool
    foreign: tuple[bytes, ...] = ()


def commit(tree: ProjectTree, journal: Journal, *, found: Found, blobs: BlobStore) -> Journal:
    """Carry out a staged apply, whole or not at all.

    Args:
        tree: the held project tree.
        journal: in the phase `staged`.
        found: what `check_base` found.
        blobs: holds changeset and content.

    Returns:
        The journal in the phase `committed`; call `finish` when the ledger knows.

    Raises:
        BaseDriftError: a path changed in the meantime; everything was rolled back.
        ContainmentError: a folder became a link in the meantime; everything was rolled back.
        StateError: the operating system refused; everything was rolled back (then the journal
            that `find_pending` returns says so), or the next command will go on with it.
        VerificationError: the changeset or a blob is damaged.
        RuntimeError: it is not staged.
    """
    if journal.phase != "staged":
        raise RuntimeError(f"expected a staged apply, got one in phase {journal.phase}")
    changeset = journal.changeset(blobs)
    states: dict[bytes, State] = {change.path: "before" for change in changeset.changes}
    with _held_stage(tree, journal) as handle:
        effects = Effects(tree, handle, changeset, blobs)
        return _Transaction(tree, journal, changeset, effects).go_forward(states, found)


def recover(
    tree: ProjectTree, journal: Journal, *, decided: bool, blobs: BlobStore
) -> tuple[Journal, Recovery]:
    """End an apply whose process died; call it before anything else is done with the project.

    Args:
        tree: the held project tree.
        journal: from `find_pending`, read while the tree was held.
        decided: whether the ledger holds the intent of this apply.
        blobs: holds changeset and content.

    Returns:
        The journal and how it ended; call `finish` when the ledger knows.

    Raises:
        StateError: the operating system refuses; the next call tries again.
        VerificationError: the changeset or a blob is damaged.
        BaseDriftError: a path changed during the recovery; everything was rolled back.
        ContainmentError: a folder became a link during it; everything was rolled back.
    """
    if journal.phase == "committed":
        return journal, Recovery(applied=True)
    if journal.phase != "staged" or not decided:
        return journal, Recovery(applied=False)
    changeset = journal.changeset(blobs)
    with _held_stage(tree, journal) as handle:
        work = _Transaction(tree, journal, changeset, Effects(tree, handle, changeset, blobs))
        states, found = work.observe()
        foreign = tuple(path for path, state in states.items() if state == "foreign")
        if foreign:
            return work.go_back(), Recovery(applied=False, foreign=foreign)
        return work.go_forward(states, found), Recovery(applied=True)


@dataclass(frozen=True, slots=True)
class _Transaction:
    tree: ProjectTree
    journal: Journal
    changeset: Changeset
    effects: Effects

    def go_forward(self, states: Mapping[bytes, State], found: Found) -> Journal:
        try:
            for step in plan_steps(self.changeset):
                if _is_open(step, states[step.change.path]):
                    self.effects.do(step, found.get(step.change.path))
                elif step.act == "make":
                    self.effects.give(step)
            self._sync()
            return self.journal.advance("committed")
        except (OSError, HarnessError, KeyboardInterrupt) as error:
            self.go_back()
            if isinstance(error, OSError):
                raise cannot_write(error, "everything was rolled back") from error
            raise

    def go_back(self) -> Journal:
        try:
            for step in reversed(plan_steps(self.changeset)):
                self.effects.undo(step)
            self._sync()
        except OSError as error:
            raise cannot_write(
                error, "not all could be rolled back, the next command will go on with it"
            ) from error
        return self.journal.advance("rolled-back")

    def observe(self) -> tuple[dict[bytes, State], dict[bytes, Standing]]:
        states: dict[bytes, State] = {}
        found: dict[bytes, Standing] = {}
        try:
            for change in self.changeset.changes:
                states[change.path], standing = self.effects.observe(change)
                if standing is not None:
                    found[change.path] = standing
        except OSError as error:
            raise cannot_write(error, "an interrupted apply can't be ended") from error
        return states, found

    def _sync(self) -> None:
        """Make the names durable in every folder that still is one of the project's."""
        seen: set[bytes] = set()
        for change in self.changeset.changes:
            above = change.path.rpartition(b"/")[0]
            if above not in seen:
                seen.add(above)
                with (
                    contextlib.suppress(NoFolderError, ContainmentError),
                    self.tree.parent(change.path) as folder,
                ):
                    os.fsync(folder)


def _is_open(step: Step, state: State) -> bool:
    return state == "before" if step.act == "take" else state != "after"


@contextlib.contextmanager
def _held_stage(tree: ProjectTree, journal: Journal) -> Iterator[int]:
    """Hold the stage for the block; one that somebody removed is made again."""
    with contextlib.ExitStack() as stack:
        try:
            if stat_at(journal.stage, tree.root) is None:
                make_folder_at(journal.stage, folder_fd=tree.root, mode=0o700)
            handle = stack.enter_context(open_folder_at(journal.stage, tree.root))
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise StateError("stage of the apply: expected a folder") from error
            raise cannot_write(error, "the apply can't go on") from error
        yield handle
