"""Trees as values: written to disk, read back, stored, compared; and random ones.

The comparison here (`changeset_between`) looks at two whole trees and shares no code with the
importer, so that each is an oracle for the other.
"""

# Names are bytes here, as on disk, and Path is text.
# ruff: noqa: PTH102, PTH103, PTH115, PTH118, PTH123, PTH208, PTH211

from __future__ import annotations

import os
import random
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from hypothesis import strategies as st

from harness.model.approval import _MAKER, Approval, Approved, SignedApproval
from harness.model.changeset import Change, Changeset, build_changeset
from harness.model.digest import digest_of
from harness.model.tree import Node, folder_bytes, folder_node
from harness.store.blobs import BlobStore


@dataclass(frozen=True, slots=True)
class File:
    """A file: its content, and whether it may be executed."""

    content: bytes = b""
    runs: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symlink with its text."""

    target: bytes


Tree: TypeAlias = Mapping[bytes, "File | Link | Tree"]
Item: TypeAlias = File | Link | Tree

NAMES = st.sampled_from([b"a", b"b", b"c", b"d", b"a b", b"x\xff", "é".encode(), b'q"\\', b"-n"])
CONTENT = st.sampled_from(
    [b"", b"one\n", b"two\nlines\n", b"no end", b"cr\r\nlf\r\n", b"\0\1\2bin", b"one\ntwo\nthree\n"]
)
FILES = st.builds(File, CONTENT, st.booleans())
LINKS = st.builds(Link, st.sampled_from([b"a", b"b/c", b"./d", b"nowhere"]))
TREES: st.SearchStrategy[Tree] = st.recursive(
    st.dictionaries(NAMES, FILES | LINKS, max_size=4),
    lambda inner: st.dictionaries(NAMES, FILES | LINKS | inner, max_size=4),
    max_leaves=12,
)


def write_tree(root: Path, tree: Tree) -> None:
    """Write a tree into a folder, made when missing."""
    _write(os.fsencode(root), tree)


def read_tree(root: Path) -> Tree:
    """Read a folder as a tree; what is neither file, link nor folder is an error."""
    return _read(os.fsencode(root))


def node_of(item: Item) -> Node:
    """Return the node of an item, a folder's with its real content."""
    if isinstance(item, File):
        mode = "100755" if item.runs else "100644"
        return Node("file", mode, len(item.content), digest_of(item.content))
    if isinstance(item, Link):
        return Node("symlink", "120000", len(item.target), digest_of(item.target))
    return folder_node(folder_bytes({name: node_of(child) for name, child in item.items()}))


def store_tree(tree: Tree, blobs: BlobStore) -> Node:
    """Store folder objects, contents and link targets of a tree; return its root's node."""
    entries: dict[bytes, Node] = {}
    for name, item in tree.items():
        if isinstance(item, File):
            blobs.put(item.content)
            entries[name] = node_of(item)
        elif isinstance(item, Link):
            blobs.put(item.target)
            entries[name] = node_of(item)
        else:
            entries[name] = store_tree(item, blobs)
    data = folder_bytes(entries)
    blobs.put(data)
    return folder_node(data)


def flatten(tree: Tree, prefix: bytes = b"") -> dict[bytes, Item]:
    """Return every path and what stands there."""
    found: dict[bytes, Item] = {}
    for name, item in tree.items():
        found[prefix + name] = item
        if isinstance(item, Mapping):
            found.update(flatten(item, prefix + name + b"/"))
    return found


def changeset_between(before: Tree, after: Tree, blobs: BlobStore) -> Changeset:
    """Compare two trees, both stored on the way."""
    base = store_tree(before, blobs)
    result = store_tree(after, blobs)
    old, new = flatten(before), flatten(after)
    changes = []
    for path in sorted(old.keys() | new.keys()):
        one, two = old.get(path), new.get(path)
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            continue
        if one == two:
            continue
        changes.append(
            Change(
                path,
                None if one is None else node_of(one),
                None if two is None else node_of(two),
            )
        )
    changeset, _ = build_changeset(blobs.get, base.digest, tuple(changes))
    assert changeset.result == result.digest
    return changeset


def approve(changeset: Changeset) -> Approved[Changeset]:
    """Return the changeset as governance would, had somebody signed it."""
    zero = digest_of(b"")
    approval = Approval(
        gate="diff",
        decision="approve",
        subject=changeset.digest,
        project="p",
        plan=zero,
        policy=zero,
        nonce="0" * 32,
        issued_on="2026-01-01T00:00:00.000Z",
        not_after="2027-01-01T00:00:00.000Z",
        reviewer="alice",
    )
    signed = SignedApproval(
        approval=approval,
        statement=approval.to_bytes(),
        signature=b"",
        received="2026-01-01T00:00:00.000Z",
    )
    return Approved(changeset, (signed,), maker=_MAKER)


def write_upper(root: Path, before: Tree, after: Tree, noise: random.Random) -> None:
    """Write an overlay upper layer that turns one tree into another, as a kernel might have.

    The noise copies unchanged files up, and makes folders opaque that need not be.
    """
    os.makedirs(root, exist_ok=True)
    _write_upper(os.fsencode(root), before, after, noise)


def _write_upper(root: bytes, before: Tree, after: Tree, noise: random.Random) -> None:
    for name in before.keys() - after.keys():
        os.mknod(os.path.join(root, name), stat.S_IFCHR | 0o600, os.makedev(0, 0))
    for name, item in after.items():
        path, old = os.path.join(root, name), before.get(name)
        if not isinstance(item, Mapping):
            if item != old or noise.random() < 0.3:
                _write_item(path, item)
        elif isinstance(old, Mapping) and noise.random() < 0.7:
            if item != old or noise.random() < 0.3:
                os.mkdir(path)
                _write_upper(path, old, item, noise)
        elif item != old:
            os.mkdir(path)
            os.setxattr(path, "user.overlay.opaque", b"y")
            _write(path, item)


def _write(root: bytes, tree: Tree) -> None:
    os.makedirs(root, exist_ok=True)
    for name, item in tree.items():
        _write_item(os.path.join(root, name), item)


def _write_item(path: bytes, item: Item) -> None:
    if isinstance(item, File):
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if item.runs else 0o644
        )
        os.write(descriptor, item.content)
        os.close(descriptor)
    elif isinstance(item, Link):
        os.symlink(item.target, path)
    else:
        _write(path, item)


def _read(root: bytes) -> Tree:
    found: dict[bytes, Item] = {}
    for name in os.listdir(root):
        path = os.path.join(root, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            found[name] = Link(os.readlink(path))
        elif stat.S_ISDIR(mode):
            found[name] = _read(path)
        else:
            assert stat.S_ISREG(mode), path
            with open(path, "rb") as stream:
                found[name] = File(stream.read(), bool(mode & 0o100))
    return found
