"""Staging: everything that is to land is written beside its place first, and made durable.

Rules:
    * The stage is one folder (mode 0700) in the project's root, on the same file system, so that
      each step of the commit is one rename or link.
    * Content is hashed while it is written. New files get the caller's owner and umask; a file
      that gets new content keeps its permissions, so that a private file stays private.
    * Root (sudo, a container's user) makes nothing its own: a new file gets the owner of the
      project's folder, and one that gets new content keeps its owner.
    * What stands at a path that is swapped is kept by a hard link: rolling back restores the very
      inode. Where links are refused, the stored content serves.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from harness.errors import (
    ApprovalInvalidError,
    ApprovalMissingError,
    BaseDriftError,
    HarnessError,
    StateError,
)
from harness.execution.apply.check import Found
from harness.execution.apply.journal import Journal, open_folder, remove
from harness.execution.apply.owner import Owner, give_folder_at, owner_of
from harness.execution.apply.steps import Step, plan_steps
from harness.execution.apply.tree import NoFolderError, ProjectTree, Standing, last_name
from harness.model.approval import Approved
from harness.model.changeset import Changeset
from harness.model.relpath import show
from harness.model.tree import Node
from harness.store.blobs import BlobStore
from harness.store.durable import link_at, make_folder_at, remove_at, write_all
from harness.store.handles import kind_of, names_in, open_folder_at, same_file, stat_at

NO_LINKS = (errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)
"""How file systems and the kernel's `protected_hardlinks` refuse a hard link."""


def stage(
    tree: ProjectTree,
    approved: Approved[Changeset],
    *,
    found: Found,
    blobs: BlobStore,
    project: Path,
) -> Journal:
    """Write what is to land into a stage; the project's own paths stay untouched.

    Args:
        tree: the held project tree.
        approved: the changeset, as governance found it approved.
        found: what `check_base` found just now.
        blobs: holds the content.
        project: the project's folder in the state folder, for the journal.

    Returns:
        The journal, in the phase `staged`.

    Raises:
        ApprovalMissingError: nobody approved it.
        ApprovalInvalidError: an approval is for another hash.
        BaseDriftError: a path changed since the check.
        VerificationError: a blob is missing or damaged.
        StateError: it can't be written; the stage is removed again.
    """
    changeset = approved.value
    _check_approved(approved)
    folder = open_folder(project)
    blobs.put(changeset.to_bytes())
    journal = Journal(
        folder=folder, id=secrets.token_hex(8), diff=changeset.digest, phase="staging"
    )
    journal.write()
    try:
        make_folder_at(journal.stage, folder_fd=tree.root, mode=0o700)
        with open_folder_at(journal.stage, tree.root) as handle:
            for step in plan_steps(changeset):
                _prepare(tree, handle, step, found.get(step.change.path), blobs)
            os.fsync(handle)
        os.fsync(tree.root)
        return journal.advance("staged")
    except (OSError, HarnessError, NoFolderError, KeyboardInterrupt) as error:
        with contextlib.suppress(HarnessError):  # else the next command clears it away
            finish(tree, journal)
        if isinstance(error, OSError):
            raise cannot_write(error, "the project is untouched") from error
        if isinstance(error, NoFolderError):
            raise BaseDriftError("project: changed while the change was staged") from error
        raise


def finish(tree: ProjectTree, journal: Journal) -> None:
    """Remove the stage, then the journal; the apply is over.

    Raises:
        StateError: the stage can't be removed.
    """
    try:
        if stat_at(journal.stage, tree.root) is not None:
            with open_folder_at(journal.stage, tree.root) as handle:
                for name in names_in(handle):
                    is_folder = stat.S_ISDIR(os.lstat(name, dir_fd=handle).st_mode)
                    remove_at(name, folder_fd=handle, folder=is_folder)
            remove_at(journal.stage, folder_fd=tree.root, folder=True)
            os.fsync(tree.root)
    except OSError as error:
        place = show(journal.stage)
        raise StateError(
            f"{place}: {error.strerror}", hint=f"look into {place} of the project, then try again"
        ) from error
    remove(journal)


def write_node(
    handle: int,
    name: bytes,
    node: Node,
    blobs: BlobStore,
    *,
    owner: Owner | None,
    like: os.stat_result | None = None,
) -> None:
    """Write what a node says under a name of the stage, durably.

    Args:
        handle: the stage.
        name: the name in it; nothing is there.
        node: file, symlink or folder.
        blobs: holds its content.
        owner: who gets it, when that is not the caller.
        like: the file it takes the place of, which gives its permissions and, where there is an
            `owner`, that too; None: the caller's umask decides.

    Raises:
        OSError: it can't be written.
        VerificationError: the blob is missing or damaged.
    """
    if node.type == "folder":
        os.mkdir(name, 0o777, dir_fd=handle)
        give_folder_at(name, owner, folder_fd=handle)
        return
    if node.type == "symlink":
        os.symlink(blobs.get(node.digest), name, dir_fd=handle)
        if owner is not None:
            os.chown(name, *owner, dir_fd=handle, follow_symlinks=False)
        return
    runs = node.mode == "100755"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o777 if runs else 0o666, dir_fd=handle)
    try:
        for chunk in blobs.chunks(node.digest):
            write_all(descriptor, chunk)
        if owner is not None:
            os.fchown(descriptor, *(owner_of(like) if like is not None else owner))
        if like is not None:
            fresh = stat.S_IMODE(os.fstat(descriptor).st_mode)
            os.fchmod(descriptor, _permissions(stat.S_IMODE(like.st_mode), fresh, runs=runs))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_write(error: OSError, state: str) -> StateError:
    """Turn an operating-system error about the project into a typed one."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    hint = "free some disk space" if full else "check that you may write to the project"
    return StateError(f"project: {error.strerror}; {state}", hint=f"{hint}, then try again")


def _check_approved(approved: Approved[Changeset]) -> None:
    digest = approved.value.digest
    if not approved.approvals:
        raise ApprovalMissingError(f"change {digest}: expected an approval, got none")
    for signed in approved.approvals:
        if signed.approval.gate != "diff" or signed.approval.subject != digest:
            raise ApprovalInvalidError(
                f"approval: expected one of the change {digest}, got {signed.approval.subject}"
            )


def _prepare(
    tree: ProjectTree, handle: int, step: Step, standing: Standing | None, blobs: BlobStore
) -> None:
    if step.act not in ("put", "swap") or step.change.after is None:
        return
    like = None
    if step.act == "swap":
        if standing is None:
            raise RuntimeError("a path to swap was not checked")
        _keep_old(tree, handle, step, standing, blobs)
        if kind_of(standing.stat.st_mode) == "file":
            like = standing.stat
    write_node(handle, step.new, step.change.after, blobs, owner=tree.owner, like=like)


def _keep_old(
    tree: ProjectTree, handle: int, step: Step, standing: Standing, blobs: BlobStore
) -> None:
    path, before = step.change.path, step.change.before
    with tree.parent(path) as folder:
        try:
            link_at(last_name(path), step.old, source_fd=folder, target_fd=handle)
        except OSError as error:
            if error.errno not in NO_LINKS or before is None:
                raise
            write_node(handle, step.old, before, blobs, owner=tree.owner, like=standing.stat)
            return
    kept = os.lstat(step.old, dir_fd=handle)
    if not same_file(kept, standing.stat):
        raise BaseDriftError(f"{show(path)}: changed while the change was staged")


def _permissions(old: int, fresh: int, *, runs: bool) -> int:
    """Return permission bits: those of the old file, with x added or taken as `chmod` would."""
    if not runs:
        return old & 0o666
    if old & stat.S_IXUSR:
        return old & 0o777
    return (old & 0o666) | stat.S_IXUSR | (fresh & 0o111 & ((old & 0o444) >> 2))
