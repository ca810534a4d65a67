"""A changeset: what a worker changed, path by path; its digest is the diff hash.

Format (`harness/changeset/v1`): base and result snapshot digests, and per path the node before
and after (null: nothing there). `op` follows from the two and is checked on reading: `add`,
`delete`, `mode` (only the mode differs), `symlink` (a link is involved on either side), else
`modify`. A rename is a delete and an add. A folder is listed where one appears or goes.

By-products (`harness/by-products/v1`) are the other changes: outside the writable paths, ignored,
or of a kind that can't be imported. They have a list and digest of their own; none is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest
from harness.model.relpath import (
    fold,
    link_escapes,
    parse_path,
    path_from_json,
    path_to_json,
    show,
    touches_git,
)
from harness.model.tree import LoadFolder, Node, look_up, parse_node, replace_paths

CHANGESET_KIND = "harness/changeset/v1"
BY_PRODUCTS_KIND = "harness/by-products/v1"

SPACE, DELETE = 0x20, 0x7F
"""Bytes below the first, and the second, are ASCII control characters."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path's node before and after; never the same on both sides.

    Attributes:
        path: where it is, from the project's folder.
        before: what was there; None when nothing was.
        after: what is there now; None when nothing is.
    """

    path: bytes
    before: Node | None
    after: Node | None

    @property
    def op(self) -> str:
        """Return add, delete, mode, symlink or modify."""
        if self.before is None:
            return "add"
        if self.after is None:
            return "delete"
        if "symlink" in (self.before.type, self.after.type):
            return "symlink"
        same_content = (self.before.type, self.before.digest) == (
            self.after.type,
            self.after.digest,
        )
        return "mode" if same_content else "modify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changeset:
    """Changes from one snapshot to another.

    Attributes:
        base: digest of the snapshot before.
        result: digest of the snapshot after.
        changes: sorted by the bytes of their paths.
    """

    base: Digest
    result: Digest
    changes: tuple[Change, ...]

    def to_bytes(self) -> bytes:
        """Return the canonical bytes; their digest is the diff hash."""
        return canonical_bytes(
            {
                "_type": CHANGESET_KIND,
                "base": self.base,
                "result": self.result,
                "changes": [_change_json(change) for change in self.changes],
            }
        )

    @property
    def digest(self) -> Digest:
        """Return the diff hash."""
        return digest_of(self.to_bytes())

    def reversed(self) -> Changeset:
        """Return the changeset that takes this one back."""
        return Changeset(
            base=self.result,
            result=self.base,
            changes=tuple(Change(c.path, c.after, c.before) for c in self.changes),
        )


@dataclass(frozen=True, slots=True)
class ByProduct:
    """A change that is shown but never imported.

    Attributes:
        path: where it happened.
        op: add, delete or modify.
        kind: file, symlink, folder, fifo, socket, character-device or block-device.
        size: bytes, 0 where there are none.
        reason: outside-writable, ignored, output, git, too-large, or not-importable. A new folder
            that is ignored or git's stands for all it holds.
    """

    path: bytes
    op: str
    kind: str
    size: int
    reason: str


def by_products_bytes(base: Digest, items: tuple[ByProduct, ...]) -> bytes:
    """Return the canonical bytes of a list of by-products."""
    return canonical_bytes(
        {
            "_type": BY_PRODUCTS_KIND,
            "base": base,
            "changes": [
                {
                    **path_to_json(item.path),
                    "op": item.op,
                    "kind": item.kind,
                    "size": item.size,
                    "reason": item.reason,
                }
                for item in items
            ],
        }
    )


def parse_by_products(data: bytes) -> tuple[ByProduct, ...]:
    """Read a list of by-products.

    Raises:
        InputError: not canonical or malformed.
    """
    value = parse_canonical(data, BY_PRODUCTS_KIND)
    try:
        return tuple(
            ByProduct(
                path_from_json(item),
                str(item["op"]),
                str(item["kind"]),
                int(item["size"]),
                str(item["reason"]),
            )
            for item in value["changes"]
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"by-products: malformed item: {error}") from error


def build_changeset(
    load: LoadFolder, base: Digest, changes: tuple[Change, ...]
) -> tuple[Changeset, dict[Digest, bytes]]:
    """Sort changes, compute the snapshot they lead to, and give new folders their real nodes.

    Returns:
        The changeset, and every folder object on the changed paths, by digest.

    Raises:
        InputError: a change lies below something that is not a folder.
    """
    ordered = tuple(sorted(changes, key=lambda change: change.path))
    root, made = result_of(load, base, ordered)

    def load_new(digest: Digest) -> bytes:
        return made[digest] if digest in made else load(digest)

    settled = tuple(
        Change(c.path, c.before, look_up(load_new, root.digest, c.path))
        if c.after and c.after.type == "folder"
        else c
        for c in ordered
    )
    return Changeset(base=base, result=root.digest, changes=settled), made


def result_of(
    load: LoadFolder, base: Digest, changes: tuple[Change, ...]
) -> tuple[Node, dict[Digest, bytes]]:
    """Apply sorted changes to the base tree; return the new root and the folder objects made."""
    deletes = [(c.path, None) for c in reversed(changes) if c.after is None]
    rest = [(c.path, c.after) for c in changes if c.after is not None]
    # A folder that stays a folder is not a change; one that appears is filled by later paths.
    return replace_paths(load, base, [*deletes, *rest])


def parse_changeset(data: bytes) -> Changeset:
    """Read a changeset.

    Raises:
        InputError: not canonical, a bad path, an op that does not follow, or out of order.
    """
    value = parse_canonical(data, CHANGESET_KIND)
    items = value.get("changes")
    if not isinstance(items, list) or set(value) != {"_type", "base", "result", "changes"}:
        raise InputError("changeset: expected exactly base, result and a list of changes")
    changes: list[Change] = []
    for item in items:
        change = _parse_change(item)
        if changes and change.path <= changes[-1].path:
            raise InputError(f"changeset: {show(change.path)} is out of order or doubled")
        changes.append(change)
    return Changeset(
        base=parse_digest(value["base"]),
        result=parse_digest(value["result"]),
        changes=tuple(changes),
    )


def find_obstacles(changeset: Changeset, tree: frozenset[bytes]) -> tuple[tuple[bytes, str], ...]:
    """Return every path that may not land, with the reason; the same rules before any write.

    Args:
        changeset: the changes.
        tree: every path of the result snapshot, to find names that collide.

    Returns:
        Pairs of path and reason; empty when nothing stands in the way.
    """
    found: list[tuple[bytes, str]] = []
    links = {c.path for c in changeset.changes if c.after and c.after.type == "symlink"}
    for change in changeset.changes:
        if touches_git(change.path):
            found.append((change.path, "is at or below a git folder, under any of its spellings"))
        if any(byte < SPACE or byte == DELETE for byte in change.path):
            found.append((change.path, "has a control character in its name"))
        if change.after and any(change.path.startswith(link + b"/") for link in links):
            found.append((change.path, "lies below a symlink of the same change"))
    found += _collisions(changeset, tree)
    return tuple(sorted(set(found)))


def find_escaping_link(path: bytes, target: bytes) -> str:
    """Return why a symlink may not land, or an empty text."""
    if link_escapes(path, target):
        return "is a symlink that points outside the project"
    if touches_git(target):
        return "is a symlink that points into a git folder"
    return ""


def _collisions(changeset: Changeset, tree: frozenset[bytes]) -> list[tuple[bytes, str]]:
    added = {c.path for c in changeset.changes if c.before is None}
    if not added:
        return []
    spellings: dict[str, list[bytes]] = {}
    for path in tree | added:
        spellings.setdefault(fold(path), []).append(path)
    return [
        (path, f"is the same name as {show(other)} where case or Unicode form is ignored")
        for path in sorted(added)
        for other in sorted(spellings[fold(path)])
        if other != path
    ]


def _change_json(change: Change) -> dict[str, Any]:
    return {
        **path_to_json(change.path),
        "op": change.op,
        "before": change.before.to_json() if change.before else None,
        "after": change.after.to_json() if change.after else None,
    }


def _parse_change(item: object) -> Change:
    if not isinstance(item, Mapping) or len(item) != 4:  # noqa: PLR2004 - path, op, before, after
        raise InputError("changeset: expected path, op, before and after in every change")
    path = parse_path(path_from_json(item))
    before, after = item.get("before"), item.get("after")
    for side in (before, after):
        if side is not None and (not isinstance(side, Mapping) or len(side) != 4):  # noqa: PLR2004
            raise InputError(f"changeset: {show(path)}: expected a node or null on each side")
    change = Change(
        path,
        None if before is None else parse_node(before),
        None if after is None else parse_node(after),
    )
    if change.before == change.after:
        raise InputError(f"changeset: {show(path)} does not change")
    if item.get("op") != change.op:
        raise InputError(
            f"changeset: {show(path)}: expected op {change.op}, got {item.get('op')!r}"
        )
    return change
