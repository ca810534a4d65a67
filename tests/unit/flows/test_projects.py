"""Projects keep their id when their folder moves; nobody guesses, and a copy is another project."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from harness.errors import HarnessError, InputError, NewerStateError, StateError
from harness.flows.projects import (
    KnownProject,
    add_project,
    know_project,
    list_projects,
    move_project,
)
from harness.flows.session import Host, open_host
from harness.model.canonical import canonical_bytes


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return open_host({"HARNESS_STATE": str(tmp_path / "state")})


def make(root: Path, name: str = "sample") -> Path:
    root.mkdir(parents=True)
    (root / "harness.yaml").write_text(f"version: 1\nname: {name}\n")
    return root


def know(host: Host, root: Path, name: str = "sample", *, demo: bool = False) -> KnownProject:
    return know_project(host.state, root, name, demo=demo)


def move(
    host: Host, given: str, root: Path, *, name: str = "sample", old_stays: bool = False
) -> KnownProject:
    return move_project(host.state, host.ledger, given, root=root, name=name, old_stays=old_stays)[
        0
    ]


def records(host: Host) -> dict[str, bytes]:
    folder = host.state.root / "projects"
    return {path.parent.name: path.read_bytes() for path in folder.glob("*/project.json")}


def test_a_folder_keeps_its_id_and_another_gets_its_own(host: Host, tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    first = know(host, one)
    assert know(host, one) == first
    assert know(host, two).id != first.id
    assert {item.root for item in list_projects(host.state)} == {one, two}


def test_a_copy_is_another_project(host: Host, tmp_path: Path) -> None:
    one = make(tmp_path / "one")
    first = know(host, one)
    shutil.copytree(one, tmp_path / "copy")
    assert know(host, tmp_path / "copy").id != first.id


def test_a_folder_that_was_moved_is_not_taken_for_a_new_one(host: Host, tmp_path: Path) -> None:
    one = make(tmp_path / "one")
    first = know(host, one)
    one.rename(tmp_path / "two")
    before = records(host)
    with pytest.raises(InputError, match="two is not known, and 'sample' is no longer") as caught:
        know(host, tmp_path / "two")
    assert f"harness project move {first.id[:12]}" in caught.value.hint
    assert "harness project add" in caught.value.hint
    assert [issue.where for issue in caught.value.issues] == [str(one)]
    assert records(host) == before

    moved = move(host, first.id[:12], tmp_path / "two")
    assert (moved.id, moved.root) == (first.id, tmp_path / "two")
    assert know(host, tmp_path / "two") == moved
    entries = host.ledger.entries()
    assert [(entry.verb, entry.phase, entry.project) for entry in entries] == [
        ("move", "intent", first.id),
        ("move", "done", first.id),
    ]
    assert all(str(tmp_path) not in str(entry.body) for entry in entries)


def test_a_folder_that_only_has_the_name_can_be_added(host: Host, tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    first = know(host, one)
    shutil.rmtree(one)
    added = add_project(host.state, two, "sample")
    assert added.id != first.id
    assert know(host, two) == added
    with pytest.raises(InputError, match=f"is known as {added.id[:12]}"):
        add_project(host.state, two, "sample")


def test_another_name_or_the_demonstration_is_no_reason_to_ask(host: Host, tmp_path: Path) -> None:
    one = make(tmp_path / "one")
    know(host, one)
    shutil.rmtree(one)
    assert know(host, make(tmp_path / "two", "other"), "other").name == "other"
    demo = know(host, make(tmp_path / "demo", "click"), "click", demo=True)
    shutil.rmtree(demo.root)
    assert know(host, make(tmp_path / "demo2", "click"), "click", demo=True).id != demo.id
    assert know(host, make(tmp_path / "click", "click"), "click").id != demo.id


def test_a_project_that_was_renamed_is_still_missed_when_it_moves(
    host: Host, tmp_path: Path
) -> None:
    one = make(tmp_path / "one")
    know(host, one)
    know(host, one, "renamed")
    one.rename(tmp_path / "two")
    with pytest.raises(InputError, match="'renamed' is no longer"):
        know(host, tmp_path / "two", "renamed")


@pytest.mark.parametrize("how", ["id", "short id", "folder", "folder with a tail"])
def test_a_project_is_named_by_its_id_or_by_where_it_was(
    host: Host, tmp_path: Path, how: str
) -> None:
    one = make(tmp_path / "one")
    first = know(host, one)
    one.rename(tmp_path / "two")
    given = {
        "id": first.id,
        "short id": first.id[:8],
        "folder": str(one),
        "folder with a tail": f"{one}/../one/",
    }
    assert move(host, given[how], tmp_path / "two").id == first.id


def refused(
    host: Host, says: str, *words: str, error: type[HarnessError] = InputError, **more: object
) -> str:
    before = records(host)
    with pytest.raises(error, match=says) as caught:
        move(host, words[0], Path(words[1]), **more)  # type: ignore[arg-type] # name, old_stays
    assert records(host) == before
    assert host.ledger.entries() == []
    return caught.value.hint


def test_what_can_not_be_moved(host: Host, tmp_path: Path) -> None:
    one, two, three = (make(tmp_path / name) for name in ("one", "two", "three"))
    first, second = know(host, one), know(host, two)
    refused(host, "'abcdefgh' is none of this host", "abcdefgh", str(three))
    refused(host, "is none of this host", first.id[:7], str(three))
    refused(host, "is none of this host", str(tmp_path / "nowhere"), str(three))
    refused(host, "is known at .*one already", first.id, str(one))
    hint = refused(host, "is still at .*one", first.id, str(three))
    assert "--old-stays" in hint
    shutil.rmtree(one)
    refused(host, "expected the name 'sample' .* got 'x'", first.id, str(three), name="x")
    host.state.project(second.id)


def test_a_copy_can_take_the_id_when_told_so(host: Host, tmp_path: Path) -> None:
    one = make(tmp_path / "one")
    first = know(host, one)
    shutil.copytree(one, tmp_path / "copy")
    assert move(host, first.id, tmp_path / "copy", old_stays=True).id == first.id
    assert know(host, one).id != first.id
    assert know(host, tmp_path / "copy").id == first.id


def test_a_folder_with_a_history_of_its_own_takes_no_other(host: Host, tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    first, second = know(host, one), know(host, two)
    shutil.rmtree(one)
    host.ledger.append("seal", "done", project=second.id, body={})
    before = records(host)
    with pytest.raises(InputError, match=f"is known as {second.id[:12]}, with 1 entries"):
        move(host, first.id, two)
    assert records(host) == before


def test_an_id_that_was_never_used_gives_way(host: Host, tmp_path: Path) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    first, second = know(host, one), know(host, two)
    shutil.rmtree(one)
    assert move(host, first.id, two).id == first.id
    assert set(records(host)) == {first.id}
    assert not host.state.project(second.id).exists()


def test_one_folder_under_two_paths_is_no_copy(host: Host, tmp_path: Path) -> None:
    """A bind mount that moved, say: both paths show the same folder."""
    one = make(tmp_path / "one")
    first = know(host, one)
    one.rename(tmp_path / "two")
    one.symlink_to("two")
    assert move(host, first.id, tmp_path / "two").id == first.id


def test_names_that_are_not_utf_8_are_kept(host: Host, tmp_path: Path) -> None:
    one = make(Path(os.fsdecode(os.fsencode(tmp_path) + b"/na\xefve")))
    first = know(host, one)
    assert know(host, one) == first
    one.rename(tmp_path / "two")
    assert move(host, os.fsdecode(os.fsencode(one)), tmp_path / "two").id == first.id


def test_records_that_are_damaged_or_newer_are_refused(host: Host, tmp_path: Path) -> None:
    one = make(tmp_path / "one")
    first = know(host, one)
    path = host.state.project(first.id) / "project.json"
    for data, error, says in (
        (b"garbage", StateError, "is not as it was written"),
        (canonical_bytes({"_type": "harness/project/v2"}), NewerStateError, "got version 2"),
    ):
        path.write_bytes(data)
        for work in (lambda: know(host, one), lambda: list_projects(host.state)):
            with pytest.raises(error, match=says):
                work()
        assert path.read_bytes() == data
