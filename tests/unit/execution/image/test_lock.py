from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness.errors import (
    ImageMissingError,
    InputError,
    NewerStateError,
    VerificationError,
)
from harness.execution.image.lock import (
    LOCK_KIND,
    OLDER,
    LockedImage,
    lock_bytes,
    lock_image,
    read_lock,
    resolve_image,
)
from harness.execution.image.origin import Origin
from harness.model.canonical import canonical_bytes
from harness.model.digest import digest_of
from harness.model.image import Image


def locked(name: str, content: bytes = b"one") -> LockedImage:
    image = Image(
        name=name,
        image_id=digest_of(content),
        platform="linux/amd64",
        definition=digest_of(b"definition"),
    )
    return LockedImage(image=image, built_on="2026-01-31T12:00:00.000Z")


def test_what_is_locked_is_resolved_and_other_names_stay(tmp_path: Path) -> None:
    path = tmp_path / "images.lock"
    lock_image(path, locked("b"))
    lock_image(path, locked("a"))
    lock_image(path, locked("b", b"two"))
    assert resolve_image(path, "a") == locked("a").image
    assert resolve_image(path, "b").image_id == digest_of(b"two")
    assert list(read_lock(path)) == ["a", "b"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_where_an_added_image_came_from_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "images.lock"
    origin = Origin(
        kind="registry",
        reference="host:5000/app:1",
        digest=digest_of(b"manifest"),
        content=digest_of(b"config"),
    )
    added = dataclasses.replace(locked("app"), init=digest_of(b"init"), origin=origin)
    lock_image(path, added)
    assert read_lock(path) == {"app": added}


def test_a_lock_of_version_1_is_read_and_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "images.lock"
    path.write_bytes(lock_bytes({"a": locked("a")}, OLDER))
    assert read_lock(path) == {"a": locked("a")}
    lock_image(path, locked("b"))
    assert list(read_lock(path)) == ["a", "b"]
    assert LOCK_KIND.encode() in path.read_bytes()


def test_a_lock_of_a_later_version_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "images.lock"
    path.write_bytes(lock_bytes({"a": locked("a")}, "harness/images/v3"))
    before = path.read_bytes()
    with pytest.raises(NewerStateError, match="expected version 2 at most, got version 3"):
        lock_image(path, locked("b"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "elsewhere"},
        {"digest": "sha256:1"},
        {"reference": 1},
        {"content": None},
        {"more": "x"},
    ],
)
def test_a_malformed_source_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "images.lock"
    digest = digest_of(b"x")
    source = {"kind": "engine", "reference": "a", "digest": digest, "content": digest}
    item = {**locked("a").to_json(), "source": {**source, **change}}
    path.write_bytes(canonical_bytes({"_type": LOCK_KIND, "images": [item]}))
    with pytest.raises(VerificationError, match="not as a build wrote it"):
        read_lock(path)


def test_a_name_that_was_never_built_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(ImageMissingError, match="image python: is not built") as caught:
        resolve_image(tmp_path / "images.lock", "python")
    assert "`harness image build python`" in caught.value.hint
    assert "`harness image add python REF`" in caught.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["python:latest", "Python", "sha256:" + "a" * 64, "a/b"])
def test_a_tag_or_a_digest_is_not_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="image name"):
        resolve_image(tmp_path / "images.lock", name)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"\n",
        lambda data: data.replace(b"harness/images/v2", b"harness/imagos/v2"),
        lambda data: data.replace(b'"builtOn"', b'"builtOm"'),
        lambda data: data.replace(b'"platform"', b'"pletform"'),
        lambda data: data.replace(b"2026", b"26"),
        lambda data: data.replace(b'"name":"a"', b'"name":"z"'),
        lambda _: b"[]",
        lambda _: b"",
    ],
)
def test_a_damaged_lock_is_refused_and_left_as_it_is(tmp_path: Path, change: object) -> None:
    path = tmp_path / "images.lock"
    lock_image(path, locked("a"))
    lock_image(path, locked("b"))
    assert callable(change)
    damaged = change(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(VerificationError, match=r"images\.lock: not as a build wrote it"):
        lock_image(path, locked("c"))
    assert path.read_bytes() == damaged
