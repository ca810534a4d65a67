from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import ImageMissingError, InputError, VerificationError
from harness.execution.image.lock import LockedImage, lock_image, read_lock, resolve_image
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


def test_a_name_that_was_never_built_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(ImageMissingError, match="image python: is not built") as caught:
        resolve_image(tmp_path / "images.lock", "python")
    assert caught.value.hint == "run `harness image build python`"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["python:latest", "Python", "sha256:" + "a" * 64, "a/b"])
def test_a_tag_or_a_digest_is_not_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="image name"):
        resolve_image(tmp_path / "images.lock", name)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data + b"\n",
        lambda data: data.replace(b"harness/images/v1", b"harness/images/v2"),
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
