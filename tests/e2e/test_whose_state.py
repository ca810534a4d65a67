"""Whose state folder it is: each user has one of their own, found by what the environment says.

No engine is needed: nothing here gets as far as one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.driver import Bed, listing
from tests.e2e.person import Account, Person, person

pytestmark = pytest.mark.root

ADA = Account(uid=61234, gid=61235, umask=0o000)
NOBODY = "unix:///nonexistent/docker.sock"
LOOK = ("runs", "list")
"""Opens the state folder, and makes it when it is missing."""


@pytest.fixture(scope="module")
def ada() -> Iterator[Person]:
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    with person(ADA, engine=NOBODY) as made:
        yield made


@pytest.fixture
def roots(ada: Person) -> Path:
    """Return a folder where root has one folder open to all, and one of its own."""
    place = ada.home.with_name(f"{ada.home.name}-roots")
    for folder, mode in ((place, 0o755), (place / "open", 0o755), (place / "own", 0o700)):
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    (place / "own" / "state").mkdir(mode=0o700, exist_ok=True)
    return place


@pytest.fixture(autouse=True, scope="module")
def _clean_roots(ada: Person) -> Iterator[None]:
    yield
    place = ada.home.with_name(f"{ada.home.name}-roots")
    for folder in (place / "own" / "state", place / "own", place / "open", place):
        folder.rmdir()


def without_state(ada: Person, **more: str) -> dict[str, str]:
    left_out = ("HARNESS_STATE", "HOME")
    return {name: text for name, text in ada.environment.items() if name not in left_out} | more


MINE = "each user has a state folder of their own"


@pytest.mark.parametrize(
    ("variables", "says", "hint"),
    [
        ({"HARNESS_STATE": "OWN"}, "expected owner 61234, got 0", MINE),
        ({"HARNESS_STATE": "OWN/state"}, "OWN/state: this user may not make or enter it", MINE),
        ({"HARNESS_STATE": "OPEN/new"}, "OPEN/new: this user may not make or enter it", MINE),
        (
            {"HARNESS_STATE": "relative"},
            "expected HARNESS_STATE to be an absolute path",
            "the whole path of a folder that only you can read",
        ),
        ({"HOME": "OWN"}, "this user may not make or enter it", "or HOME where it is another user"),
        ({"HOME": "OPEN"}, "this user may not make or enter it", MINE),
        ({"XDG_STATE_HOME": "OPEN", "HOME": "HERE"}, "this user may not make or enter it", MINE),
        ({}, "none of HARNESS_STATE, XDG_STATE_HOME and HOME is set", "set HARNESS_STATE"),
    ],
)
def test_a_state_folder_that_can_not_be_the_callers_is_refused(
    variables: Mapping[str, str], says: str, hint: str, ada: Person, roots: Path
) -> None:
    places = {"OWN": roots / "own", "OPEN": roots / "open", "HERE": ada.home}

    def fill(text: str) -> str:
        for word, place in places.items():
            text = text.replace(word, str(place))
        return text

    before = _all(roots), _all(ada.home)
    chosen = {name: fill(value) for name, value in variables.items()}
    done = ada.ask_in(without_state(ada, **chosen), *LOOK)
    assert (done.code, done.out) == (6, "")
    assert fill(says) in done.err
    assert hint in done.err
    assert (_all(roots), _all(ada.home)) == before


def test_a_state_folder_that_others_could_enter_is_refused(ada: Person) -> None:
    wide = ada.home / "wide"
    wide.mkdir()
    os.chown(wide, ADA.uid, ADA.gid)
    wide.chmod(0o770)
    done = ada.ask_in(without_state(ada, HARNESS_STATE=str(wide)), *LOOK)
    assert (done.code, [*wide.iterdir()]) == (6, [])
    assert f"expected mode 0700, got 0770\nhint: chmod 700 {wide}" in done.err


def test_root_does_not_work_with_somebody_elses_state(ada: Person) -> None:
    """As with `sudo --preserve-env`: what root wrote there, its owner could not read any more."""
    assert ada(*LOOK).code == 0
    before = _all(ada.state)
    done = Bed.ask(ada, *LOOK)
    assert (done.code, done.out) == (6, "")
    assert f"state folder {ada.state}: expected owner 0, got 61234" in done.err
    assert "with sudo the one that counts is root's" in done.err
    assert _all(ada.state) == before


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        ({"HOME": "HERE/one"}, "one/.local/state/sealed-harness"),
        ({"HOME": "HERE/two", "XDG_STATE_HOME": "relative"}, "two/.local/state/sealed-harness"),
        ({"XDG_STATE_HOME": "HERE/three/deep"}, "three/deep/sealed-harness"),
        ({"XDG_STATE_HOME": "HERE/four", "HARNESS_STATE": "HERE/five"}, "five"),
    ],
)
def test_it_is_made_where_the_environment_says_and_nobody_else_can_look(
    variables: Mapping[str, str], found: str, ada: Person
) -> None:
    chosen = {name: text.replace("HERE", str(ada.home)) for name, text in variables.items()}
    done = ada.ask_in(without_state(ada, **chosen), *LOOK)
    assert (done.code, done.err) == (0, "no runs yet\n")
    state = ada.home / found
    for place in (state, *state.parents):
        if place == ada.home:
            break
        assert place.stat().st_mode & 0o7777 == 0o700, place
        assert (place.stat().st_uid, place.stat().st_gid) == (ADA.uid, ADA.gid)
    assert (state / "ledger").is_dir()


def test_a_host_policy_that_the_caller_may_not_read_is_not_taken_for_absent(
    ada: Person, roots: Path
) -> None:
    done = ada.ask("seal", "few", XDG_CONFIG_HOME=str(roots / "own"))
    assert (done.code, done.out) == (2, "")
    assert "own/sealed-harness/policy.yaml: Permission denied" in done.err
    assert "HOME or XDG_CONFIG_HOME may be another user's" in done.err
    assert ada("ledger", "list", "--json").json() == []


def _all(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Return everything below a folder but for the two files that hold a command's output."""
    return {
        path: (kind, mode, data)
        for path, (kind, mode, _, data) in listing(root).items()
        if path not in (".out", ".err")
    }
