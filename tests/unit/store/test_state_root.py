from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.errors import StateError
from harness.store.state import find_state_root, open_state


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({"HARNESS_STATE": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"HARNESS_STATE": "", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/sealed-harness"),
        ({"XDG_STATE_HOME": "b", "HOME": "/c"}, "/c/.local/state/sealed-harness"),
    ],
)
def test_the_state_folder_is_where_the_environment_says(
    environment: dict[str, str], root: str
) -> None:
    assert find_state_root(environment) == Path(root)


@pytest.mark.parametrize("environment", [{}, {"HOME": "home"}, {"HOME": ""}])
def test_no_absolute_path_no_state_folder(environment: dict[str, str]) -> None:
    with pytest.raises(StateError, match=r"none of HARNESS_STATE, XDG_STATE_HOME and HOME is set"):
        find_state_root(environment)


def test_a_relative_state_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be another one for each working directory, and often lie in the project."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StateError, match=r"to be an absolute path, got 'relative/state'"):
        find_state_root({"HARNESS_STATE": "relative/state", "HOME": "/home/ada"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_new_state_folder_and_what_was_missing_above_it_are_private(
    umask: int, tmp_path: Path
) -> None:
    earlier = os.umask(umask)
    try:
        open_state(tmp_path / "a" / "b" / "state")
    finally:
        os.umask(earlier)
    made = [tmp_path / "a", *(tmp_path / "a").rglob("*")]
    assert {(place.name, place.stat().st_mode & 0o777) for place in made} == {
        (place.name, 0o700) for place in made
    }


def test_a_folder_that_others_can_enter_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "state"
    root.mkdir()
    root.chmod(0o750)
    with pytest.raises(StateError, match="expected mode 0700, got 0750") as caught:
        open_state(root)
    assert caught.value.hint == f"chmod 700 {root}"
    assert list(root.iterdir()) == []


def test_something_else_in_a_blobs_place_is_an_error_of_the_state_folder(tmp_path: Path) -> None:
    state = tmp_path / "state"
    blobs = open_state(state).blobs
    digest = blobs.put(b"data")
    blobs.path_of(digest).unlink()
    blobs.path_of(digest).mkdir()
    with pytest.raises(StateError, match=r"state folder: read blob sha256:[0-9a-f]{64}: Is a dir"):
        blobs.get(digest)
