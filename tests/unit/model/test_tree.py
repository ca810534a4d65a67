"""The Merkle tree of a snapshot: canonical folders, look-up, and edits that share what stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError, VerificationError
from harness.model.digest import Digest, digest_of
from harness.model.tree import (
    EMPTY_FOLDER,
    Node,
    folder_bytes,
    folder_node,
    load_folder,
    look_up,
    parse_folder,
    replace_paths,
    walk,
)

Tree = dict[bytes, "bytes | Tree"]

NAMES = st.binary(min_size=1, max_size=4).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)
TREES = st.recursive(
    st.dictionaries(NAMES, st.binary(max_size=3), max_size=4),
    lambda children: st.dictionaries(NAMES, st.binary(max_size=3) | children, max_size=4),
    max_leaves=12,
)


def file_node(content: bytes) -> Node:
    return Node("file", "100644", len(content), digest_of(content))


def store_tree(tree: Tree, objects: dict[Digest, bytes]) -> Node:
    folder = {
        name: file_node(child) if isinstance(child, bytes) else store_tree(child, objects)
        for name, child in tree.items()
    }
    data = folder_bytes(folder)
    objects[digest_of(data)] = data
    return folder_node(data)


def flatten(tree: Tree, prefix: bytes = b"") -> dict[bytes, bytes | None]:
    found: dict[bytes, bytes | None] = {}
    for name, child in tree.items():
        found[prefix + name] = child if isinstance(child, bytes) else None
        if not isinstance(child, bytes):
            found.update(flatten(child, prefix + name + b"/"))
    return found


@given(TREES)
def test_a_folder_is_read_as_it_was_written(tree: Tree) -> None:
    objects: dict[Digest, bytes] = {}
    root = store_tree(tree, objects)
    for digest, data in objects.items():
        assert folder_bytes(parse_folder(data)) == data
        assert digest_of(data) == digest
    walked = dict(walk(objects.__getitem__, root.digest))
    assert walked.keys() == flatten(tree).keys()
    for path, node in walked.items():
        assert look_up(objects.__getitem__, root.digest, path) == node
    assert look_up(objects.__getitem__, root.digest, b"no/such/path") is None


@given(TREES, TREES)
def test_replacing_every_path_gives_exactly_the_other_tree(old: Tree, new: Tree) -> None:
    objects: dict[Digest, bytes] = {}
    before = store_tree(old, objects)
    after = store_tree(new, objects)
    deletes: list[tuple[bytes, Node | None]] = [(path, None) for path in flatten(old)]
    adds = [(path, node) for path, node in walk(objects.__getitem__, after.digest)]
    root, made = replace_paths(
        objects.__getitem__, before.digest, [*sorted(deletes, reverse=True), *adds]
    )
    assert root == after
    assert made[root.digest] == objects[after.digest]


def test_an_edit_makes_only_the_folders_on_its_path() -> None:
    objects: dict[Digest, bytes] = {}
    root = store_tree({b"a": {b"x": b"1"}, b"b": {b"c": {b"y": b"2"}}}, objects)
    _, made = replace_paths(objects.__getitem__, root.digest, [(b"b/c/y", file_node(b"3"))])
    assert len(made) == 3
    assert look_up(objects.__getitem__, root.digest, b"a").digest not in made  # type: ignore[union-attr]


def test_a_change_below_a_file_is_refused() -> None:
    objects: dict[Digest, bytes] = {}
    root = store_tree({b"a": b"file"}, objects)
    with pytest.raises(InputError, match="a/b lies below a, which is not a folder"):
        replace_paths(objects.__getitem__, root.digest, [(b"a/b", file_node(b""))])


def test_a_folder_object_with_other_bytes_is_refused() -> None:
    wrong = digest_of(b"something else")
    with pytest.raises(VerificationError, match="expected sha256"):
        load_folder(lambda _: EMPTY_FOLDER, wrong)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            (
                '{"digest":"sha256:%s","mode":"100644","name":"b","size":0,"type":"file"},'
                '{"digest":"sha256:%s","mode":"100644","name":"a","size":0,"type":"file"}'
            ),
            "a is out of order",
        ),
        (
            '{"digest":"sha256:%s","mode":"100600","name":"a","size":0,"type":"file"}',
            "mode '100600' is not known",
        ),
        (
            '{"digest":"sha256:%s","mode":"100644","name":"..","size":0,"type":"file"}',
            "is not a name",
        ),
        (
            '{"digest":"sha256:%s","mode":"100644","name":"a","size":-1,"type":"file"}',
            "expected a size",
        ),
        (
            '{"digest":"sha256:%s","extra":1,"mode":"100644","name":"a","size":1,"type":"file"}',
            "unknown or missing",
        ),
    ],
)
def test_a_malformed_folder_is_refused(entries: str, message: str) -> None:
    text = '{"_type":"harness/folder/v1","entries":[' + entries.replace("%s", "0" * 64) + "]}"
    with pytest.raises(InputError, match=message):
        parse_folder(text.encode())
