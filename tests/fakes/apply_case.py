"""One project and its state folder, and an apply as the flow does it."""

from __future__ import annotations

from pathlib import Path

from harness.execution.apply.check import check_base
from harness.execution.apply.commit import Recovery, commit, recover
from harness.execution.apply.journal import find_pending
from harness.execution.apply.stage import finish, stage
from harness.execution.apply.tree import hold_tree
from harness.model.changeset import Changeset
from harness.store.blobs import BlobStore
from tests.fakes.trees import Tree, approve, changeset_between, read_tree, write_tree


class ApplyCase:
    """A folder with a project, a blob store and a project's state.

    Args:
        folder: holds all three.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.state = folder / "state"
        self.blobs = BlobStore(folder / "objects")
        self.environment = {"HOME": str(folder / "home")}

    def prepare(self, before: Tree, after: Tree) -> Changeset:
        """Write a project and return the change to it."""
        write_tree(self.root, before)
        return changeset_between(before, after, self.blobs)

    def apply(self, changeset: Changeset) -> None:
        """Apply a changeset, from the check to the end."""
        with hold_tree(self.root, wait_seconds=0) as tree:
            found = check_base(tree, changeset, blobs=self.blobs, environment=self.environment)
            journal = stage(
                tree, approve(changeset), found=found, blobs=self.blobs, project=self.state
            )
            journal = commit(tree, journal, found=found, blobs=self.blobs)
            finish(tree, journal)

    def recover(self, *, decided: bool = True) -> Recovery | None:
        """End an interrupted apply, if there is one."""
        with hold_tree(self.root, wait_seconds=0) as tree:
            journal = find_pending(self.state)
            if journal is None:
                return None
            journal, recovery = recover(tree, journal, decided=decided, blobs=self.blobs)
            finish(tree, journal)
            return recovery

    def tree(self) -> Tree:
        """Return what the project holds, a stage that was left behind included."""
        return read_tree(self.root)
