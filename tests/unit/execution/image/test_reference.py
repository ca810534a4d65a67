from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InputError
from harness.execution.image.reference import Reference, parse_image_source, parse_reference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("text", "repository", "tag"),
    [
        ("node", "docker.io/library/node", "latest"),
        ("node:20", "docker.io/library/node", "20"),
        ("team/tool:v1", "docker.io/team/tool", "v1"),
        ("localhost/tool", "localhost/tool", "latest"),
        ("127.0.0.1:5000/a/b-c__d:1.2_x", "127.0.0.1:5000/a/b-c__d", "1.2_x"),
        ("ghcr.io/team/tool:v1", "ghcr.io/team/tool", "v1"),
        ("[::1]:5000/tool:1", "[::1]:5000/tool", "1"),
        (f"ghcr.io/team/tool@{DIGEST}", "ghcr.io/team/tool", ""),
        (f"ghcr.io/team/tool:v1@{DIGEST}", "ghcr.io/team/tool", "v1"),
    ],
)
def test_a_reference_is_read_by_the_grammar_of_distribution(
    text: str, repository: str, tag: str
) -> None:
    found = parse_reference(text)
    assert (found.repository, found.tag) == (repository, tag)
    assert found.digest == (DIGEST if "@" in text else None)
    assert parse_reference(str(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        *("", "Node", "node:", ":20", "a//b", "a/../b", "node:20:1", "-node", "node@", "no de"),
        *("node@sha256:12", f"node@{DIGEST[:-1]}", "host:x/node", "host:5000/", "http://h/node"),
        *("node:" + "a" * 129, "a" * 300, "node\n", "user@host/node:1", "ho_st.io/x", "a.b/x\x00"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(InputError):
        parse_reference(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/tmp/image", Path("/tmp/image")),
        ("./image", Path("image")),
        ("../image", Path("../image")),
        ("image.tar", Path("image.tar")),
        ("saved/image.tar.gz", Path("saved/image.tar.gz")),
        ("image.tgz", Path("image.tgz")),
        (DIGEST, DIGEST),
    ],
)
def test_the_form_says_whether_it_is_an_archive_or_an_id(text: str, expected: object) -> None:
    assert parse_image_source(text) == expected


def test_a_file_of_the_same_name_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "node").write_text("no image")
    assert isinstance(parse_image_source("node"), Reference)


@pytest.mark.parametrize("text", ["sha256:12", "sha256:" + "A" * 64])
def test_an_id_is_whole_or_refused(text: str) -> None:
    with pytest.raises(InputError, match="digest"):
        parse_image_source(text)


@given(st.text(max_size=60))
def test_no_text_ends_in_another_error(text: str) -> None:
    try:
        parse_reference(text)
    except InputError:
        return
