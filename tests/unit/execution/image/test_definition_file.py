from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import HarnessError, InputError
from harness.execution.image.definition_file import (
    IMAGE,
    PythonPart,
    read_definition_file,
    read_requirements,
)
from harness.model.files.schema_parts import Schema
from harness.store.resources import find_resources

GOOD = b"""\
version: 1
description: a test
base:
  suite: bookworm
  packages: [python3, git]
python:
  version: "3.11"
  requirements: requirements.lock
check: [python3, --version]
"""
HASH = "--hash=sha256:" + "a" * 64


def test_a_good_file_is_read_whole() -> None:
    file = read_definition_file(GOOD, "image.yaml")
    assert file.suite == "bookworm"
    assert file.packages == ("python3", "git")
    assert file.python == PythonPart(version="3.11", requirements="requirements.lock")
    assert file.check == ("python3", "--version")


def test_a_definition_needs_no_python() -> None:
    part = b'python:\n  version: "3.11"\n  requirements: requirements.lock\n'
    assert read_definition_file(GOOD.replace(part, b""), "image.yaml").python is None


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (b'"3.11"', b"3.11", "image.yaml:7:12: python.version: expected text"),
        (b"bookworm", b"Bookworm", "image.yaml:4:10: base.suite"),
        (b"[python3, git]", b"[]", "image.yaml:5:13: base.packages: expected at least 1"),
        (b"git]", b"'git;rm']", "image.yaml:5:23: base.packages[1]"),
        (b"requirements.lock", b"../up", "image.yaml:8:17: python.requirements"),
        (b"version: 1", b"version: 2", "image.yaml:1:10: version: expected 1"),
        (b"check:", b"chek:", "unknown field 'chek'"),
    ],
)
def test_a_mistake_has_its_place(old: bytes, new: bytes, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read_definition_file(GOOD.replace(old, new, 1), "image.yaml")
    assert any(place in str(issue) for issue in caught.value.issues), caught.value.issues


def test_every_mistake_is_reported() -> None:
    bad = GOOD.replace(b"bookworm", b"9").replace(b"version: 1", b"version: 9")
    with pytest.raises(InputError) as caught:
        read_definition_file(bad, "image.yaml")
    assert len(caught.value.issues) == 2


@given(st.binary(max_size=400))
def test_no_bytes_end_in_another_error(data: bytes) -> None:
    for read in (read_definition_file, read_requirements):
        try:
            read(data, "x")
        except HarnessError:
            continue


def test_requirements_come_back_one_a_line() -> None:
    text = f"# a comment\n\na==1 \\\n  {HASH} \\\n  {HASH}\nb-c==2.0 {HASH}\n"
    assert read_requirements(text.encode(), "r") == (f"a==1 {HASH} {HASH}", f"b-c==2.0 {HASH}")


@pytest.mark.parametrize(
    "line",
    [
        "a",
        "a==1",
        f"a>=1 {HASH}",
        "a==1 --hash=md5:" + "a" * 32,
        "a==1 --hash=sha256:" + "a" * 63,
        "--extra-index-url https://example.org",
        "-r other.txt",
        f"a @ https://example.org/a.whl {HASH}",
        f"./a.whl {HASH}",
        f"a==1 {HASH} --config-settings=x",
        f"a==1 {HASH} # why",
        f"a==1 {HASH} \\",
        f"a==1 {HASH}; python_version<'4'",
    ],
)
def test_a_line_that_is_not_pinned_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(InputError, match="not all pinned") as caught:
        read_requirements(f"ok==1 {HASH}\n{line}\nevil\n".encode(), "r.lock")
    assert any(issue.where == "r.lock:2:1" for issue in caught.value.issues)


def test_a_comment_can_not_swallow_the_line_after_it() -> None:
    with pytest.raises(InputError) as caught:
        read_requirements(b"# harmless \\\n--index-url=https://example.org\n", "r.lock")
    assert caught.value.issues[0].where == "r.lock:2:1"


def test_no_requirement_at_all_is_a_mistake() -> None:
    with pytest.raises(InputError) as caught:
        read_requirements(b"# nothing\n", "r.lock")
    assert str(caught.value.issues[0]) == "r.lock:1:1: expected at least one requirement"


def test_the_reference_shows_the_definition_that_is_shipped_and_names_every_field() -> None:
    images = find_resources("images")
    page = images.parent / "docs" / "reference" / "images.md"
    text = page.read_text(encoding="utf-8")
    shown = text.split("```yaml\n")[1].split("```")[0]
    shipped = (images / "python" / "image.yaml").read_bytes()
    assert read_definition_file(shown.encode(), "shown") == read_definition_file(shipped, "shipped")
    top: Schema = IMAGE["properties"]
    names = [name for name in top if name not in ("base", "python")]
    names += [f"{part}.{name}" for part in ("base", "python") for name in top[part]["properties"]]
    assert [name for name in names if f"| `{name}` |" not in text] == []
