"""A snapshot: a Merkle tree of folders, so that a change costs its path and not the tree.

Format (`harness/folder/v1`): a folder object lists name, type, mode, size and digest of each
entry, sorted by the bytes of the names. A file's digest is that of its content, a symlink's that
of its target, a folder's that of its own canonical bytes (and its size is their number). The
root's digest is the snapshot digest. Modes are git's: 100644, 100755, 120000, 040000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.errors import InputError, VerificationError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest
from harness.model.relpath import parse_name, path_from_json, path_to_json, show

FOLDER_KIND = "harness/folder/v1"

EntryType = Literal["file", "symlink", "folder"]

MODES: Mapping[str, tuple[str, ...]] = {
    "file": ("100644", "100755"),
    "symlink": ("120000",),
    "folder": ("040000",),
}

LoadFolder = Callable[[Digest], bytes]
"""Returns the canonical bytes of a folder object by digest."""


@dataclass(frozen=True, slots=True)
class Node:
    """What stands at one path: type, git mode, size in bytes, digest.

    Attributes:
        type: file, symlink or folder.
        mode: one of `MODES[type]`.
        size: bytes of the content, of the link's target, or of the folder object.
        digest: of those same bytes.
    """

    type: EntryType
    mode: str
    size: int
    digest: Digest

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members of this node."""
        return {"type": self.type, "mode": self.mode, "size": self.size, "digest": self.digest}


Folder = dict[bytes, Node]
"""Entries of one folder by name."""


def parse_node(item: Mapping[str, Any]) -> Node:
    """Read a node's JSON members.

    Raises:
        InputError: unknown type, a mode that does not fit it, a bad size or digest.
    """
    kind, mode, size = item.get("type"), item.get("mode"), item.get("size")
    if kind not in ("file", "symlink", "folder") or mode not in MODES[kind]:
        raise InputError(f"tree entry: type {kind!r:.40} with mode {mode!r:.40} is not known")
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise InputError(f"tree entry: expected a size of 0 or more, got {size!r:.40}")
    return Node(kind, str(mode), size, parse_digest(item.get("digest")))


def folder_bytes(folder: Mapping[bytes, Node]) -> bytes:
    """Return the canonical bytes of a folder."""
    entries = [{**path_to_json(name, "name"), **folder[name].to_json()} for name in sorted(folder)]
    return canonical_bytes({"_type": FOLDER_KIND, "entries": entries})


def folder_node(data: bytes) -> Node:
    """Return the node of a folder object."""
    return Node("folder", "040000", len(data), digest_of(data))


EMPTY_FOLDER = folder_bytes({})


def parse_folder(data: bytes) -> Folder:
    """Read a folder object.

    Raises:
        InputError: not canonical, names unsorted, doubled or not names.
    """
    value = parse_canonical(data, FOLDER_KIND)
    items = value.get("entries")
    if not isinstance(items, list) or set(value) != {"_type", "entries"}:
        raise InputError("folder: expected exactly the member entries, a list")
    folder: Folder = {}
    last: bytes | None = None
    for item in items:
        if not isinstance(item, dict):
            raise InputError("folder: expected every entry to be an object")
        name = parse_name(path_from_json(item, "name"))
        if last is not None and name <= last:
            raise InputError(f"folder: entry {show(name)} is out of order or doubled")
        if len(item) != 5:  # noqa: PLR2004 - the name and the four members of a node
            raise InputError(f"folder: entry {show(name)} has unknown or missing members")
        folder[name] = parse_node(item)
        last = name
    return folder


def load_folder(load: LoadFolder, digest: Digest) -> Folder:
    """Load, check and read one folder object.

    Raises:
        VerificationError: the loaded bytes have another digest.
        InputError: they are not a folder object.
    """
    data = load(digest)
    if digest_of(data) != digest:
        raise VerificationError(f"folder: expected {digest}, got {digest_of(data)}")
    return parse_folder(data)


def walk(load: LoadFolder, root: Digest, prefix: bytes = b"") -> Iterator[tuple[bytes, Node]]:
    """Yield every path below a folder, a folder before what it holds, in byte order of names."""
    for name, node in load_folder(load, root).items():
        path = prefix + name
        yield path, node
        if node.type == "folder":
            yield from walk(load, node.digest, path + b"/")


def look_up(load: LoadFolder, root: Digest, path: bytes) -> Node | None:
    """Return the node at a path, or None."""
    *parents, name = path.split(b"/")
    digest = root
    for parent in parents:
        node = load_folder(load, digest).get(parent)
        if node is None or node.type != "folder":
            return None
        digest = node.digest
    return load_folder(load, digest).get(name)


@dataclass(slots=True)
class _Draft:
    """A folder being edited: its entries, and those of them that are drafts themselves."""

    entries: Folder = field(default_factory=dict)
    open: dict[bytes, _Draft] = field(default_factory=dict)


def replace_paths(
    load: LoadFolder, root: Digest, changes: Iterable[tuple[bytes, Node | None]]
) -> tuple[Node, dict[Digest, bytes]]:
    """Return the tree in which each path holds its new node (None: nothing).

    A new folder's own digest is ignored: its content is what the other changes put into it, so
    list a folder before what it holds. Deleting a folder deletes what it holds.

    Args:
        load: reads the folder objects of the old tree.
        root: the old tree.
        changes: path and new node, applied in the order given.

    Returns:
        The new root's node and every folder object on the changed paths, by digest.

    Raises:
        InputError: a change lies below something that is not a folder.
    """
    top = _Draft(load_folder(load, root))
    for path, node in changes:
        *parents, name = path.split(b"/")
        draft = top
        for parent in parents:
            draft = _descend(load, draft, parent, path)
        draft.open.pop(name, None)
        if node is None:
            draft.entries.pop(name, None)
        elif node.type == "folder":
            draft.open[name] = _Draft()
            draft.entries[name] = node
        else:
            draft.entries[name] = node
    made: dict[Digest, bytes] = {}
    return _close(top, made), made


def _descend(load: LoadFolder, draft: _Draft, name: bytes, path: bytes) -> _Draft:
    if name in draft.open:
        return draft.open[name]
    node = draft.entries.get(name)
    if node is None or node.type != "folder":
        raise InputError(f"tree: {show(path)} lies below {show(name)}, which is not a folder")
    child = draft.open[name] = _Draft(load_folder(load, node.digest))
    return child


def _close(draft: _Draft, made: dict[Digest, bytes]) -> Node:
    for name, child in draft.open.items():
        draft.entries[name] = _close(child, made)
    data = folder_bytes(draft.entries)
    node = folder_node(data)
    made[node.digest] = data
    return node
