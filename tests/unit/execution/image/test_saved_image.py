from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import HarnessError, InputError, VerificationError
from harness.execution.image import layer_scan
from harness.execution.image.acquire import take_archive
from harness.execution.image.saved_archive import SavedArchive
from harness.execution.image.saved_image import SavedImage, choose_image, image_layers
from harness.execution.image.saved_manifests import saved_images
from harness.model.digest import digest_of
from tests.fakes.image_archives import (
    HOSTILE_CONFIG,
    Entry,
    TestImage,
    docker_archive,
    docker_files,
    layer,
    layout_files,
    tar_of,
)

APP = TestImage(name="app:1", layers=[layer(("bin", None), ("bin/app", b"app")), layer(("x", b""))])
OTHER = TestImage(name="other:1", layers=[layer(("other", b"other"))])
ARM = TestImage(name="app:1", layers=[layer(("arm", b"arm"))], architecture="arm64")
HERE = "linux/amd64"

Read = Callable[..., tuple[SavedImage, tuple[bytes, ...]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Give what reads an archive to its end: the chosen image and its layers' bytes."""

    def reader(data: bytes, wanted: str = "") -> tuple[SavedImage, tuple[bytes, ...]]:
        given, taken = tmp_path / "given", tmp_path / "taken.tar"
        given.write_bytes(data)
        take_archive(given, taken)
        archive = SavedArchive(taken, "archive given")
        image = choose_image(saved_images(archive), wanted, HERE, archive.what)
        layers = image_layers(archive, image)
        return image, tuple(b"".join(item.read()) for item in layers)

    return reader


def test_an_archive_of_docker_save_is_read_whole(read: Read) -> None:
    image, layers = read(docker_archive(APP))
    assert image.image_id == APP.image_id
    assert image.names == ("app:1",)
    assert list(layers) == APP.layers


def test_one_packed_with_gzip_is_the_same(read: Read) -> None:
    data = docker_archive(APP)
    two_members = gzip.compress(data[:5000]) + gzip.compress(data[5000:]) + bytes(512)
    assert read(gzip.compress(data)) == read(two_members) == read(data)


@pytest.mark.parametrize("nested", [False, True])
def test_an_oci_layout_is_read_whole_and_its_layers_unpacked(read: Read, nested: bool) -> None:
    image, layers = read(tar_of(layout_files(APP, nested=nested)))
    assert (image.image_id, image.names) == (APP.image_id, ("app:1",))
    assert list(layers) == APP.layers


def test_a_newer_docker_save_has_both_forms_and_is_one_image(read: Read) -> None:
    both = {**layout_files(APP), **docker_files(APP)}
    assert read(tar_of(both))[0].image_id == APP.image_id


def test_the_platform_chooses_between_images_of_one_name(read: Read) -> None:
    assert read(tar_of(layout_files(ARM, APP, nested=True)))[0].image_id == APP.image_id
    assert read(docker_archive(ARM, APP), "app:1")[0].image_id == APP.image_id


def test_several_images_are_named_and_one_has_to_be_chosen(read: Read) -> None:
    data = docker_archive(APP, OTHER)
    with pytest.raises(InputError, match="expected one image, got 2; say which") as caught:
        read(data)
    shown = " ".join(str(issue) for issue in caught.value.issues)
    assert all(word in shown for word in ("app:1", "other:1", APP.image_id, OTHER.image_id))
    assert read(data, "other:1")[0].image_id == OTHER.image_id
    assert read(data, OTHER.image_id)[0].image_id == OTHER.image_id
    with pytest.raises(InputError, match="holds no image 'third'"):
        read(data, "third")


def test_the_same_image_twice_is_one(read: Read) -> None:
    assert read(docker_archive(APP, APP))[0].image_id == APP.image_id


def test_another_platform_is_refused_and_named(read: Read) -> None:
    with pytest.raises(InputError, match=r"expected an image for linux/amd64.*'linux/arm64'"):
        read(docker_archive(ARM))


def test_a_layer_that_two_images_share_may_be_a_link_inside(read: Read) -> None:
    files = docker_files(APP)
    (first,) = (name for name in files if files[name] == APP.layers[0])
    data = files.pop(first)
    folder = first.removesuffix("/layer.tar")
    entries: list[Entry] = [
        ("shared/layer.tar", data),
        (f"{folder}/layer.tar", "../shared/layer.tar"),
    ]
    image, layers = read(layer(*entries, *files.items()))
    assert list(layers) == APP.layers
    assert image.image_id == APP.image_id


def test_what_a_worker_does_not_get_is_named(read: Read) -> None:
    image, _ = read(docker_archive(TestImage(layers=APP.layers, settings=HOSTILE_CONFIG)))
    assert image.left_out == (
        *("Entrypoint", "Cmd", "User", "WorkingDir", "Volumes", "OnBuild", "Healthcheck"),
        *("StopSignal", "Env LD_PRELOAD", "Env PATH"),
    )


# ---- what is no sound archive ----


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "./../x"])
def test_a_name_that_climbs_out_is_refused(read: Read, name: str) -> None:
    with pytest.raises(InputError, match="expected names inside it"):
        read(layer((name, b"evil"), *docker_files(APP).items()))


@pytest.mark.parametrize("target", ["/etc/passwd", "../../../etc/passwd"])
def test_a_link_that_climbs_out_is_refused(read: Read, target: str) -> None:
    with pytest.raises(InputError, match="expected names inside it"):
        read(layer(("a/layer.tar", target), *docker_files(APP).items()))


def test_a_device_or_a_name_given_twice_is_refused(read: Read) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        device = tarfile.TarInfo("dev")
        device.type = tarfile.CHRTYPE
        tar.addfile(device)
    with pytest.raises(InputError, match="is no file, folder or link"):
        read(out.getvalue())
    with pytest.raises(InputError, match="each once"):
        read(layer(*docker_files(APP).items(), ("manifest.json", b"[]")))


@pytest.mark.parametrize("name", ["../evil", "a/../../evil"])
def test_a_layer_with_a_name_that_climbs_out_is_refused(read: Read, name: str) -> None:
    evil = TestImage(layers=[layer(("fine", b"")), layer((name, b"evil"))])
    with pytest.raises(InputError, match=r"layer 2 of 2: expected names inside it"):
        read(docker_archive(evil))


def test_every_cut_of_an_archive_is_refused(read: Read) -> None:
    """Every cut before the two zero blocks at the end, packed and unpacked."""
    data = docker_archive(APP)
    used = len(data.rstrip(b"\0"))
    for cut in range(0, used, 467):
        with pytest.raises(HarnessError):
            read(data[:cut])
    packed = gzip.compress(data)
    for cut in range(20, len(packed), 97):
        with pytest.raises(HarnessError):
            read(packed[:cut])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not a whole tar archive"),
        (b"#!/bin/sh\n" * 100, "is not a whole tar archive"),
        (b"\x1f\x8b" + b"no gzip" * 40, "its gzip data is broken"),
        (b"\x28\xb5\x2f\xfd" + b"zstd", "is packed with zstd"),
        (tar_of({"README": b"no image"}), "expected manifest.json or index.json"),
        (tar_of({"manifest.json": b"[]"}), "holds no image"),
        (tar_of({"manifest.json": b"{}"}), "expected a list"),
        (tar_of({"manifest.json": b"[1]"}), "manifest.json: is malformed"),
        (tar_of({"manifest.json": b"not json"}), "manifest.json"),
        (tar_of({"index.json": b"{}"}), "expected a list"),
        (
            tar_of({"manifest.json": b'[{"Config": "c", "RepoTags": null, "Layers": []}]'}),
            "names the file 'c', which is not in it",
        ),
        (
            tar_of({"index.json": json.dumps({"manifests": [{"mediaType": "x"}]}).encode()}),
            "holds no image",
        ),
    ],
)
def test_what_is_no_image_is_refused_by_name(read: Read, data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(data)


def test_a_file_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "nothing", "No such file"),
        (tmp_path, "Is a directory"),
        (Path("/dev/zero"), "expected a regular file"),
    ):
        with pytest.raises(InputError, match=message):
            take_archive(path, tmp_path / "taken")


# ---- digests ----


def test_a_layer_with_other_bytes_is_found(read: Read) -> None:
    evil = docker_archive(APP).replace(b"app" + bytes(509), b"bad" + bytes(509))
    with pytest.raises(VerificationError, match="layer 1 of 2: expected sha256"):
        read(evil)


@pytest.mark.parametrize("what", ["config", "manifest"])
def test_a_blob_of_a_layout_with_other_bytes_is_found(read: Read, what: str) -> None:
    files = layout_files(APP)
    for name, data in files.items():
        if what == "config" and data == APP.config:
            files[name] = data.replace(b'"config"', b'"cunfig"')
        if what == "manifest" and b"layers" in data and data != APP.config:
            files[name] = data + b" "
    with pytest.raises(VerificationError, match="has digest sha256"):
        read(tar_of(files))


def test_a_config_whose_layers_are_not_those_of_the_archive_is_refused(read: Read) -> None:
    files = docker_files(APP)
    manifest = json.loads(files["manifest.json"])
    manifest[0]["Layers"].pop()
    files["manifest.json"] = json.dumps(manifest).encode()
    with pytest.raises(InputError, match="expected 2 layers by the config, got 1"):
        read(tar_of(files))
    with pytest.raises(InputError, match="expected 1 to 126 layers"):
        read(docker_archive(TestImage(layers=[])))


def test_a_layer_that_unpacks_without_end_is_stopped(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer_scan, "MAX_BYTES", 1 << 20)
    bomb = TestImage(layers=[layer(("zeros", bytes(1 << 22)))])
    with pytest.raises(InputError, match="expected at most 1048576 bytes"):
        read(tar_of(layout_files(bomb)))


def test_what_follows_the_end_of_a_layer_counts_for_its_digest(read: Read) -> None:
    padded = TestImage(layers=[layer(("app", b"app")) + bytes(20480)])
    image, layers = read(docker_archive(padded))
    assert [digest_of(item) for item in layers] == image.config["rootfs"]["diff_ids"]


@pytest.mark.parametrize("data", [docker_archive(APP), tar_of(layout_files(APP, nested=True))])
def test_whatever_byte_is_changed_it_is_the_same_image_or_refused(read: Read, data: bytes) -> None:
    chance = random.Random(20260131)  # noqa: S311 - the same each time
    used = len(data.rstrip(b"\0"))
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            changed[chance.randrange(used)] = chance.randrange(256)
        try:
            image, layers = read(bytes(changed))
        except HarnessError:
            continue
        assert [digest_of(item) for item in layers] == image.config["rootfs"]["diff_ids"]
        assert list(layers) == APP.layers or image.image_id != APP.image_id
