from __future__ import annotations

import io
import tarfile

import pytest

from harness.errors import VerificationError
from harness.execution.image.archive import layer_of
from harness.execution.image.contents import image_contents
from harness.execution.image.init_layer import init_inside, init_layer
from harness.model.digest import digest_of
from tests.fakes.image_archives import layer

INIT = b"init's program"


def members(data: bytes) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: member for member in tar.getmembers()}


def folder(*, mode: int = 0o555, uid: int = 0, more: bool = False) -> bytes:
    """Return an engine's archive of `/.harness`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        top = tarfile.TarInfo(".harness/")
        top.type = tarfile.DIRTYPE
        tar.addfile(top)
        names = [".harness/init", ".harness/more"] if more else [".harness/init"]
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.uid = len(INIT), mode, uid
            tar.addfile(member, io.BytesIO(INIT))
    return out.getvalue()


def test_the_layer_holds_init_and_the_folders_of_a_worker_and_the_same_bytes_each_time() -> None:
    found = members(init_layer(INIT))
    modes = {name: member.mode for name, member in found.items() if "/.wh." not in name}
    assert modes == {
        ".harness": 0o755,
        ".harness/init": 0o555,
        "home": 0o755,
        "home/worker": 0o700,
        "workspace": 0o755,
    }
    assert {(member.uid, member.gid, member.mtime) for member in found.values()} == {
        (0, 0, 315532800)
    }
    assert init_layer(INIT) == init_layer(INIT)


@pytest.mark.parametrize(
    "below",
    [
        layer((".harness", None), (".harness/init", b"evil"), (".harness/more", b"evil")),
        layer((".harness", "evil"), ("evil", None), ("evil/init", b"evil")),
        layer((".harness", b"evil")),
        layer((".harness", None), (".harness/init", "/evil")),
        layer(("workspace", "/etc"), ("home", b"evil")),
    ],
)
def test_whatever_an_image_has_at_these_places_is_hidden(below: bytes) -> None:
    ours = image_contents((layer_of(init_layer(INIT)),), "ours").files
    both = image_contents((layer_of(below), layer_of(init_layer(INIT))), "both").files
    watched = (".harness", "workspace", "home")
    assert {path: what for path, what in both.items() if path.split("/")[0] in watched} == ours


def test_what_an_engine_shows_is_our_init_or_refused() -> None:
    assert init_inside(folder(), "image x") == digest_of(INIT)


@pytest.mark.parametrize(
    "shown",
    [
        folder(mode=0o755),
        folder(mode=0o4555),
        folder(uid=1000),
        folder(more=True),
        layer((".harness", "elsewhere")),
        layer((".harness", None), (".harness/init", "/evil")),
        layer((".harness", b"file")),
        layer(("other", None)),
        layer(),
    ],
)
def test_anything_else_at_inits_place_is_refused(shown: bytes) -> None:
    with pytest.raises(VerificationError, match=r"image x: expected /\.harness/init alone"):
        init_inside(shown, "image x")


def test_an_archive_that_can_not_be_read_is_refused() -> None:
    with pytest.raises(VerificationError, match="can't be read"):
        init_inside(b"no archive", "image x")
