"""The checks before anything is written: may it land at all, and is the base still the base.

Rules:
    * Whatever can be wrong is looked for first, and all of it is said at once.
    * `ContainmentError`: a path that may never be written, whoever approved it. `BaseDriftError`:
      a path that is not what the change was made on.
    * Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import BaseDriftError, ContainmentError, Issue, StateError
from harness.execution.apply.protected import find_protected, is_protected
from harness.execution.apply.tree import (
    NoFolderError,
    ProjectTree,
    Standing,
    is_same,
    last_name,
    look_at,
)
from harness.model.changeset import Change, Changeset, find_escaping_link, find_obstacles
from harness.model.digest import Digest
from harness.model.relpath import STAGE_PREFIX, fold, show
from harness.model.tree import load_folder
from harness.store.blobs import BlobStore
from harness.store.handles import names_in, open_folder_at

Found = Mapping[bytes, Standing]
"""What stood at each changed path when it was checked; nothing for a path that was free."""


def find_refusals(
    root: Path, changeset: Changeset, *, blobs: BlobStore, environment: Mapping[str, str]
) -> tuple[tuple[bytes, str], ...]:
    """Return every path that may not be written, whoever approved it, with the reason.

    Args:
        root: the project's folder; its git configuration can name a hooks folder.
        changeset: what is to land.
        blobs: holds its content and folder objects.
        environment: names the user's git configuration.

    Raises:
        VerificationError: a blob is missing or damaged.
        StateError: git's own files in the project are there but can't be read.
    """
    protected = find_protected(root, environment)
    return (
        *_obstacles(changeset, blobs),
        *(
            (change.path, "is where git or its hooks lie")
            for change in changeset.changes
            if is_protected(change, protected)
        ),
    )


def check_base(
    tree: ProjectTree, changeset: Changeset, *, blobs: BlobStore, environment: Mapping[str, str]
) -> Found:
    """Check a changeset against the project as it is now; nothing is written.

    Args:
        tree: the held project tree.
        changeset: what is to land.
        blobs: holds its content and folder objects.
        environment: names the user's git configuration, which can name a hooks folder.

    Raises:
        ContainmentError: every path that may not be written, with the reason.
        BaseDriftError: every path that is not as it was in the base snapshot.
        VerificationError: a blob is missing or damaged.
        StateError: a path can't be read.
    """
    refused = list(find_refusals(tree.path, changeset, blobs=blobs, environment=environment))
    drift: list[tuple[bytes, str]] = []
    found: dict[bytes, Standing] = {}
    checker = _Checker(tree, changeset)
    for change in changeset.changes:
        try:
            standing, problems = checker.check(change)
        except ContainmentError as error:
            refused.append((change.path, f"can't be reached: {error.message}"))
        except OSError as error:
            raise StateError(
                f"{show(change.path)}: {error.strerror}",
                hint="make it readable for you; nothing was written",
            ) from error
        else:
            drift += problems
            if standing is not None:
                found[change.path] = standing
    _refuse(refused)
    if drift:
        raise BaseDriftError(
            f"project: {_count(drift)} changed since the snapshot the change was made on",
            issues=_issues(drift),
        )
    return found


class _Checker:
    def __init__(self, tree: ProjectTree, changeset: Changeset) -> None:
        self._tree = tree
        self._gone = {c.path for c in changeset.changes if c.after is None}
        self._changed = {c.path: c for c in changeset.changes}

    def check(self, change: Change) -> tuple[Standing | None, list[tuple[bytes, str]]]:
        """Return what stands at a path and what is wrong with it."""
        if self._below_new_folder(change.path):
            return None, []  # the folder above it is checked, and is not one yet
        try:
            with self._tree.parent(change.path) as folder:
                standing = look_at(last_name(change.path), folder)
                problems = list(self._problems(change, standing, folder))
        except NoFolderError:
            return None, [(change.path, "expected its folder, got none")]
        return standing, problems

    def _problems(
        self, change: Change, standing: Standing | None, folder: int
    ) -> Iterator[tuple[bytes, str]]:
        if not is_same(standing, change.before):
            yield change.path, _difference(change, standing)
        elif change.before is None:
            for name in names_in(folder):
                if self._collides(change.path, name):
                    yield change.path, f"{show(name)} is there, the same name on some systems"
        elif change.before.type == "folder" and standing is not None:
            with open_folder_at(last_name(change.path), folder) as inner:
                left = [n for n in names_in(inner) if change.path + b"/" + n not in self._gone]
            if left:
                yield change.path, f"expected to be empty by then, still holds {show(left[0])}"

    def _collides(self, path: bytes, name: bytes) -> bool:
        other = path[: len(path) - len(last_name(path))] + name
        return other not in self._gone and fold(name) == fold(last_name(path))

    def _below_new_folder(self, path: bytes) -> bool:
        end = path.find(b"/")
        while end >= 0:
            above = self._changed.get(path[:end])
            if above is not None and above.after is not None and above.after.type == "folder":
                return True
            end = path.find(b"/", end + 1)
        return False


def _difference(change: Change, standing: Standing | None) -> str:
    expected = change.before.type if change.before else "nothing"
    if standing is None:
        return f"expected a {expected}, got nothing"
    got = standing.node
    if got is None:
        return f"expected {expected}, got something that is no file, link or folder"
    if change.before is None or got.type != change.before.type:
        return f"expected {expected}, got a {got.type}"
    if got.digest == change.before.digest:
        return f"expected mode {change.before.mode}, got {got.mode}"
    return "its content was changed"


def _obstacles(changeset: Changeset, blobs: BlobStore) -> Iterator[tuple[bytes, str]]:
    yield from find_obstacles(changeset, frozenset(_neighbours(changeset, blobs)))
    for change in changeset.changes:
        if any(name.startswith(STAGE_PREFIX) for name in change.path.split(b"/")):
            yield change.path, "has a name that an apply keeps for itself"
        if change.after is not None and change.after.type == "symlink":
            reason = find_escaping_link(change.path, blobs.get(change.after.digest))
            if reason:
                yield change.path, reason


def _neighbours(changeset: Changeset, blobs: BlobStore) -> Iterator[bytes]:
    """Yield the paths of the result beside the added ones: all that can collide with them."""
    near: set[str] = set()
    for change in changeset.changes:
        if change.before is None:
            folded = fold(change.path).split("/")
            near.update("/".join(folded[:count]) for count in range(len(folded)))
    waiting: list[tuple[bytes, Digest]] = [(b"", changeset.result)] if near else []
    while waiting:
        prefix, digest = waiting.pop()
        for name, node in load_folder(blobs.get, digest).items():
            path = prefix + name
            yield path
            if node.type == "folder" and fold(path) in near:
                waiting.append((path + b"/", node.digest))


def _refuse(refused: list[tuple[bytes, str]]) -> None:
    if refused:
        raise ContainmentError(
            f"change: {_count(refused)} may not be written, whoever approved it",
            issues=_issues(refused),
        )


def _count(found: list[tuple[bytes, str]]) -> str:
    paths = len({path for path, _ in found})
    return "1 path" if paths == 1 else f"{paths} paths"


def _issues(found: list[tuple[bytes, str]]) -> tuple[Issue, ...]:
    return tuple(Issue(message=message, where=show(path)) for path, message in sorted(set(found)))
