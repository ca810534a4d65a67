"""What every command prints with --json is as its published schema says, and so is its error.

The check itself is in the driver: every other test that asks for JSON is held to it too. Here each
command is asked once for its good answer, and once for an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import jsonschema
import pytest

from harness.cli.outputs.table import OUTPUTS
from tests.e2e.conftest import At
from tests.e2e.described import command_of, require_described, validator
from tests.e2e.driver import Bed, borrowed_environment, run_here

pytestmark = pytest.mark.docker

Words = tuple[str, ...]

ASKED: Mapping[str, tuple[str, Callable[[Bed], Words]]] = {
    "setup": ("begun", lambda _: ("setup", "--check")),
    "init": ("begun", lambda bed: ("init", str(bed.home / "new"), "--key", _public(bed))),
    "recipe list": ("begun", lambda _: ("recipe", "list")),
    "recipe show": ("begun", lambda _: ("recipe", "show", "test")),
    "recipe check": ("begun", lambda _: ("recipe", "check")),
    "seal": ("begun", lambda _: ("seal", "few")),
    "plan list": ("sealed", lambda _: ("plan", "list")),
    "plan show": ("plan approved", lambda bed: ("plan", "show", bed.facts["plan"])),
    "approve": ("sealed", lambda bed: ("approve", bed.facts["plan"], *_key(bed))),
    "reject": ("ran", lambda bed: ("reject", bed.facts["diff"], *_key(bed))),
    "run": ("plan approved", lambda bed: ("run", bed.facts["plan"])),
    "diff": ("ran", lambda bed: ("diff", bed.facts["run"], "--patch")),
    "apply": ("diff approved", lambda bed: ("apply", bed.facts["diff"])),
    "undo": ("applied", lambda bed: ("undo", bed.facts["diff"])),
    "runs list": ("ran", lambda _: ("runs", "list")),
    "runs show": ("ran", lambda bed: ("runs", "show", bed.facts["run"])),
    "ledger list": ("applied", lambda _: ("ledger", "list")),
    "ledger show": ("ran", lambda _: ("ledger", "show", "0")),
    "ledger verify": ("ran", lambda _: ("ledger", "verify")),
    "project list": ("sealed", lambda _: ("project", "list")),
    "key show": ("sealed", lambda _: ("key", "show")),
    "key rotate": ("sealed", lambda _: ("key", "rotate")),
    "state backup": ("ran", lambda bed: ("state", "backup", str(bed.home / "new.tar"))),
    "image list": ("begun", lambda _: ("image", "list")),
}
"""By command: the station of the main job, and the words."""

ELSEWHERE = {
    "project move": "the tests of keeping house",
    "project add": "the tests of keeping house",
    "key renew": "the tests of keeping house",
    "state restore": "the tests of keeping house",
    "image build": "the tests of images",
    "image add": "the tests of added images",
    "image verify": "the tests of added images",
    "runs cancel": "the tests of live runs",
    "artifacts list": "the tests of grown recipes",
}
"""Commands whose good answer the driver checks in other tests."""


def _key(bed: Bed) -> Words:
    return "--key", str(bed.key("ada"))


def _public(bed: Bed) -> str:
    return str(bed.key("ada").with_suffix(".pub"))


def test_every_command_is_asked() -> None:
    assert ASKED.keys() | ELSEWHERE.keys() == OUTPUTS.keys()


@pytest.mark.parametrize("command", ASKED)
def test_the_answer_is_described(command: str, at: At) -> None:
    station, words = ASKED[command]
    bed = at(station)
    asked = (*words(bed), "--json")
    assert command_of(asked) == command
    done = bed.here(*asked)
    assert (done.code, done.err) == (0, "")
    body = done.json()
    assert body
    for item in body if OUTPUTS[command].many else [body]:
        item["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        validator(command).validate(body)


ERRORS: Mapping[str, Words] = {
    "usage": ("runs", "list", "--no-such-option"),
    "input": ("seal", "no-such-recipe"),
    "several": ("recipe", "check", "test"),
    "authority": ("run", "PLAN"),
    "state": ("ledger", "verify"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_described(name: str, at: At) -> None:
    bed = at("sealed")
    if name == "several":
        (bed.project / "recipes" / "test.yaml").write_text("version: 2\nkind: none\n")
    if name == "state":
        bed.state.chmod(0o750)
    words = [bed.facts["plan"] if word == "PLAN" else word for word in ERRORS[name]]
    done = bed.here(*words, "--json")
    bed.state.chmod(0o700)
    assert done.code != 0
    assert done.out == ""
    error = json.loads(done.err)
    assert error["_type"] == "harness/output/error/v1"
    assert error["error"]["message"]
    assert (len(error["error"]["issues"]) > 1) == (name == "several")
    validator("error").validate(error)


def test_a_fault_of_ours_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: At
) -> None:
    bed = at("begun")
    monkeypatch.setattr("harness.cli.ledger.open_host", lambda: 1 / 0)
    with borrowed_environment(bed.environment, tmp_path):
        done = run_here("ledger", "verify", "--json")
    assert (done.code, json.loads(done.err)["error"]["code"]) == (70, "internal")
    require_described(done.words, done.out, done.err)
