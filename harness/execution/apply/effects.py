"""The effects of an apply on a project, one step at a time, each with its inverse.

Rules:
    * A path is reached anew for each step, folder by folder, links refused; so a folder that was
      swapped for a link in the meantime stops the apply instead of leading it elsewhere.
    * Just before something is moved or replaced it is compared with what was checked.
    * Nothing is ever written through: an inode that the project shares with another place by a
      hard link keeps its content.
    * A new file is linked into place, which fails if something is there by now.
"""

from __future__ import annotations

import errno
import stat
from typing import Literal

from harness.errors import BaseDriftError, ContainmentError
from harness.execution.apply.owner import give_folder_at
from harness.execution.apply.stage import NO_LINKS, write_node
from harness.execution.apply.steps import Step, gives_way
from harness.execution.apply.tree import (
    NoFolderError,
    ProjectTree,
    Standing,
    is_same,
    last_name,
)
from harness.model.changeset import Change, Changeset
from harness.model.relpath import show
from harness.store.blobs import BlobStore
from harness.store.durable import link_at, make_folder_at, remove_at, rename_at
from harness.store.handles import names_in, open_folder_at, same_file, stat_at

State = Literal["before", "after", "between", "foreign"]
"""Of one path: as the base has it, as the result has it, empty between the two steps of a change
of type, or something that is neither."""


class Effects:
    """Carries out steps on a held tree, from and into a held stage.

    Args:
        tree: the project.
        handle: the stage.
        changeset: what is applied.
        blobs: holds the content, should the stage have lost it.
    """

    def __init__(
        self, tree: ProjectTree, handle: int, changeset: Changeset, blobs: BlobStore
    ) -> None:
        self._links = tuple(
            change.path + b"/"
            for change in changeset.changes
            if "symlink" in {node.type for node in (change.before, change.after) if node}
        )
        self._tree = tree
        self._stage = handle
        self._blobs = blobs

    def observe(self, change: Change) -> tuple[State, Standing | None]:
        """Return the state of a path and what stands there.

        Raises:
            OSError: it can't be read.
        """
        try:
            standing = self._tree.look(change.path)
        except NoFolderError:
            standing = None
        except ContainmentError:
            if not change.path.startswith(self._links):
                return "foreign", None
            standing = None  # the link is the change's own, and is observed by itself
        if is_same(standing, change.after):
            return "after", standing
        if is_same(standing, change.before):
            return "before", standing
        if standing is None and gives_way(change):
            return "between", None
        return "foreign", standing

    def do(self, step: Step, standing: Standing | None) -> None:
        """Carry out one step.

        Args:
            step: what to do.
            standing: what was found at its path; it must still be that.

        Raises:
            BaseDriftError: something else is there by now.
            ContainmentError: a folder above it became a link.
            OSError: the operating system refuses.
        """
        path, name = step.change.path, last_name(step.change.path)
        try:
            with self._tree.parent(path) as folder:
                if step.act in ("take", "swap"):
                    self._expect(step, standing, folder)
                if step.act == "take":
                    self._take(step, folder)
                elif step.act == "make":
                    make_folder_at(name, folder_fd=folder, mode=0o777)
                    give_folder_at(name, self._tree.owner, folder_fd=folder)
                elif step.act == "put":
                    self._put(step, folder)
                else:
                    self._ensure(step, step.new)
                    rename_at(step.new, name, source_fd=self._stage, target_fd=folder)
        except FileExistsError as error:
            raise BaseDriftError(f"{show(path)}: something is there by now") from error
        except NoFolderError as error:
            raise BaseDriftError(f"{show(path)}: its folder is gone by now") from error

    def give(self, step: Step) -> None:
        """Give a folder to its owner that a process made and did not come to give away.

        Raises:
            OSError: the operating system refuses.
        """
        if self._tree.owner is not None:
            with self._tree.parent(step.change.path) as folder:
                give_folder_at(last_name(step.change.path), self._tree.owner, folder_fd=folder)

    def undo(self, step: Step) -> None:
        """Take one step back if it was done; a foreign path is left alone.

        Raises:
            OSError: the operating system refuses.
            VerificationError: content is needed from the store, and damaged.
        """
        state, _ = self.observe(step.change)
        if state in ("before", "foreign"):
            return
        name = last_name(step.change.path)
        try:
            with self._tree.parent(step.change.path) as folder:
                if step.act in ("put", "make"):
                    if state == "after":
                        remove_at(name, folder_fd=folder, folder=step.act == "make")
                elif step.act == "swap" or stat_at(name, folder) is None:
                    self._ensure(step, step.old)
                    rename_at(step.old, name, source_fd=self._stage, target_fd=folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:  # a new folder holds what somebody else put there
                raise
        except (NoFolderError, ContainmentError):
            return  # somebody took a folder above it away, and that one is reported as foreign

    def _expect(self, step: Step, standing: Standing | None, folder: int) -> None:
        path = step.change.path
        found = stat_at(last_name(path), folder)
        unchanged = found is not None and standing is not None
        if found is not None and standing is not None:
            # A folder's own times change when its entries go.
            is_folder = stat.S_ISDIR(found.st_mode)
            unchanged = (
                (found.st_dev, found.st_ino) == (standing.stat.st_dev, standing.stat.st_ino)
                if is_folder
                else same_file(found, standing.stat)
            )
        if not unchanged:
            raise BaseDriftError(f"{show(path)}: was changed while the apply was at work")

    def _take(self, step: Step, folder: int) -> None:
        path, before = step.change.path, step.change.before
        rename_at(last_name(path), step.old, source_fd=folder, target_fd=self._stage)
        if before is not None and before.type == "folder":
            with open_folder_at(step.old, self._stage) as taken:
                left = names_in(taken)
            if left:
                raise BaseDriftError(f"{show(path)}: expected to be empty, holds {show(left[0])}")

    def _put(self, step: Step, folder: int) -> None:
        name = last_name(step.change.path)
        self._ensure(step, step.new)
        try:
            link_at(step.new, name, source_fd=self._stage, target_fd=folder)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if stat_at(name, folder) is not None:
                raise FileExistsError(errno.EEXIST, "exists") from error
            rename_at(step.new, name, source_fd=self._stage, target_fd=folder)

    def _ensure(self, step: Step, name: bytes) -> None:
        """Write a node into the stage again when it is no longer there."""
        node = step.change.after if name == step.new else step.change.before
        if node is None or stat_at(name, self._stage) is not None:
            return
        part = name + b".part"
        torn = stat_at(part, self._stage)
        if torn is not None:
            remove_at(part, folder_fd=self._stage, folder=stat.S_ISDIR(torn.st_mode))
        write_node(self._stage, part, node, self._blobs, owner=self._tree.owner)
        rename_at(part, name, source_fd=self._stage, target_fd=self._stage)
