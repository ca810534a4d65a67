from __future__ import annotations

from pathlib import Path

from harness.execution.image.archive import layer_of
from harness.execution.image.compare import PackageChange, compare_contents, compare_images
from harness.execution.image.contents import Contents, image_contents
from harness.model.digest import Digest
from tests.fakes.image_archives import Entry, TestImage, docker_archive, layer
from tests.fakes.image_engine import FakeImageEngine

STATUS = b"""\
Package: git
Status: install ok installed
Version: 1:2.39.2-1
Description: fast
 Version: no field

Package: make
Version: 4.3
"""
LIST = b"/.\n/bin\n/bin/git\n/usr/lib/python3/git.py\n"


def entries(status: bytes = STATUS, program: bytes = b"git") -> tuple[Entry, ...]:
    return (
        ("var/lib/dpkg/status", status),
        ("var/lib/dpkg/info/git:amd64.list", LIST),
        ("var/lib/dpkg/info/git:amd64.md5sums", program),
        ("usr/bin/git", program),
        ("usr/lib/python3/git.py", program),
        ("usr/lib/python3/__pycache__/git.cpython-311.pyc", program),
        ("etc/other", b"other"),
    )


def contents(*layers: bytes) -> Contents:
    return image_contents(tuple(layer_of(data) for data in layers), "image x")


def test_a_changed_package_is_named_and_explains_its_files() -> None:
    newer = STATUS.replace(b"2.39.2-1", b"2.39.5-0")
    found = compare_contents(
        contents(layer(*entries())), contents(layer(*entries(newer, b"newer git")))
    )
    assert found.packages == (PackageChange(name="git", before="1:2.39.2-1", after="1:2.39.5-0"),)
    assert str(found.packages[0]) == "git 1:2.39.2-1 -> 1:2.39.5-0"
    assert found.files == ()


def test_a_package_that_came_or_went_is_named() -> None:
    less = STATUS.partition(b"\nPackage: make")[0]
    found = compare_contents(contents(layer(*entries())), contents(layer(*entries(less))))
    assert [str(change) for change in found.packages] == ["make 4.3 -> absent"]


def test_a_file_that_no_changed_package_owns_is_named() -> None:
    changed = layer(*entries()[:-1], ("etc/other", b"changed"), ("etc/more", b""))
    found = compare_contents(contents(layer(*entries())), contents(changed))
    assert found.packages == ()
    assert found.files == ("etc/more", "etc/other")


def test_the_database_of_packages_counts_when_no_package_changed() -> None:
    other = STATUS.replace(b"fast", b"slow")
    found = compare_contents(contents(layer(*entries())), contents(layer(*entries(other))))
    assert found.files == ("var/lib/dpkg/status",)


def test_whiteouts_hide_what_lies_below() -> None:
    below = layer(("a", None), ("a/one", b"1"), ("a/two", b"2"), ("b", None), ("b/x", b"x"))
    above = layer(("a/.wh.one", b""), ("b/.wh..wh..opq", b""), ("b/y", b"y"))
    assert sorted(contents(below, above).files) == ["a", "a/two", "b", "b/y"]


def test_two_images_of_an_engine_are_compared_and_no_archive_stays(tmp_path: Path) -> None:
    engine = FakeImageEngine()
    images = [
        TestImage(layers=[layer(*entries())]),
        TestImage(layers=[layer(*entries()), layer(("etc/other", b"changed"))]),
    ]
    for image in images:
        engine.load_image([docker_archive(image)])
    before, after = (Digest(image.image_id) for image in images)
    assert compare_images(engine, before, after, tmp_path).files == ("etc/other",)
    assert compare_images(engine, before, before, tmp_path).to_json() == {
        "packages": [],
        "files": [],
    }
    assert list(tmp_path.iterdir()) == []
