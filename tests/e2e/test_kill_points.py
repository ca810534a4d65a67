"""SIGKILL of the real command at its failpoints: the next command finds all or nothing.

Each verb is done once with a log of the points it passes, then killed at each of them and given
again. Whatever was the point: the project is exactly as before or as after, the ledger verifies,
no entry is there twice, and nothing is left over on the engine, in the state folder or in the
project.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest

from harness.execution.engine.docker_images import DockerImageEngine
from harness.execution.worker.sweep import state_id
from harness.model.canonical import canonical_bytes
from harness.model.entry import Entry
from harness.model.relpath import STAGE_PREFIX
from tests.e2e.conftest import At
from tests.e2e.driver import Bed, Done

pytestmark = [pytest.mark.docker, pytest.mark.timeout(300)]

EACH, EVERY_THIRD = 1, 3
IN_A_ROW = 6
"""Of so many or more points alike in a row the first two and the last two are tried: what is
written between them are blobs, each by itself and named by its digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """One command and what must hold once it was killed and given again.

    Attributes:
        station: where it is given.
        words: of the command, from the bed's facts.
        again: judges the second time: exit code and message.
    """

    station: str
    words: Callable[[Bed], tuple[str, ...]]
    again: Callable[[Bed, Done], None]


def passes(bed: Bed, done: Done) -> None:
    assert done.code == 0, done.err


def passes_or_landed(bed: Bed, done: Done) -> None:
    """Only an apply that was rolled forward is refused the second time: it landed already."""
    if done.code == 0:
        return
    assert (done.code, "landed already" in done.err) == (4, True), done.err
    assert bed.verbs()[-1] == "apply.done"


def passes_or_interrupted(bed: Bed, done: Done) -> None:
    """A run whose grant was spent is refused, and the ledger says how it ended."""
    if done.code == 0:
        return
    assert (done.code, "spent already" in done.err) == (4, True), done.err
    (run,) = bed.here("runs", "list", "--json").json()
    assert run["kind"] in ("interrupted", "passed")
    assert bed.verbs()[-1] == "run.done"


VERBS = {
    "seal": Verb(station="begun", words=lambda _: ("seal", "few"), again=passes),
    "approve": Verb(  # of a plan; a diff is approved by the very same steps
        station="sealed",
        words=lambda bed: ("approve", bed.facts["plan"], "--key", str(bed.key("ada"))),
        again=passes,
    ),
    "run": Verb(
        station="plan approved",
        words=lambda bed: ("run", bed.facts["plan"], "--quiet"),
        again=passes_or_interrupted,
    ),
    "apply": Verb(
        station="diff approved",
        words=lambda bed: ("apply", bed.facts["diff"]),
        again=passes_or_landed,
    ),
    "undo": Verb(station="applied", words=lambda bed: ("undo", bed.facts["diff"]), again=passes),
}


@pytest.fixture(scope="module")
def engine(engine_url: str) -> Iterator[DockerImageEngine]:
    engine = DockerImageEngine(engine_url)
    yield engine
    engine.close()


def points_of(bed: Bed, words: Sequence[str]) -> list[str]:
    """Do a verb to its end and return the names of the points it passed."""
    log = bed.home / "points"
    log.unlink(missing_ok=True)
    bed(*words, HARNESS_FAILPOINT_LOG=str(log))
    return [line.split(" ")[1] for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    ("name", "every"),
    [
        ("seal", EACH),
        ("approve", EACH),
        ("run", EVERY_THIRD),
        ("undo", EACH),
    ],
)
def test_killed_at_its_points_and_given_again(
    name: str, every: int, at: At, engine: DockerImageEngine
) -> None:
    verb = VERBS[name]
    bed = at(verb.station)
    base = bed.tree()
    points = points_of(bed, verb.words(bed))
    assert bed.tree() == base
    for number in _spread(points)[::every]:
        place = f"{name} killed at {number} of {len(points)}, {points[number - 1]}"
        bed = _kill_and_give_again(verb, number, at, place)
        _require_settled(bed, engine, place)
        assert bed.tree() == base, place


def test_an_apply_killed_at_every_point_is_whole_or_not_at_all(
    at: At, engine: DockerImageEngine
) -> None:
    verb = VERBS["apply"]
    bed = at(verb.station)
    base = bed.tree()
    points = points_of(bed, verb.words(bed))
    result = bed.tree()
    assert base != result
    for number in range(1, len(points) + 1):
        place = f"apply killed at {number} of {len(points)}, {points[number - 1]}"
        bed = _kill_and_give_again(verb, number, at, place)
        _require_settled(bed, engine, place)
        assert bed.tree() == result, place


@pytest.mark.parametrize("where", ["first", "middle", "last"])
def test_any_next_command_settles_a_killed_apply(
    where: str, at: At, engine: DockerImageEngine
) -> None:
    """A person who does something else next finds the same: all of it, for it was decided."""
    bed = at("diff approved")
    words = VERBS["apply"].words(bed)
    points = points_of(bed, words)
    result = bed.tree()
    intent, end = (number for number, name in enumerate(points, 1) if name == "ledger.append.done")
    number = {"first": intent + 1, "middle": (intent + end) // 2, "last": end - 8}[where]
    bed = at("diff approved")
    assert bed.ask(*words, HARNESS_FAILPOINT_KILL=str(number)).code == -signal.SIGKILL
    settled = bed("seal", "few")
    assert "had been interrupted; the project holds the change" in settled.err
    assert bed.tree() == result
    _require_settled(bed, engine, where)


def _spread(points: Sequence[str]) -> list[int]:
    """Return the numbers of the points to try."""
    numbers: list[int] = []
    for _, row in itertools.groupby(enumerate(points, 1), key=lambda item: item[1].split(".")[0]):
        found = [number for number, _ in row]
        is_long = points[found[0] - 1].startswith("rename.") and len(found) >= IN_A_ROW
        numbers += [*found[:2], *found[-2:]] if is_long else found
    return numbers


def _kill_and_give_again(verb: Verb, number: int, at: At, place: str) -> Bed:
    bed = at(verb.station)
    words = verb.words(bed)
    killed = bed.ask(*words, HARNESS_FAILPOINT_KILL=str(number))
    assert killed.code == -signal.SIGKILL, place
    bed.ledger.verify()
    verb.again(bed, bed.here(*words))
    _require_no_doubles(bed.entries(), place)
    return bed


def _require_settled(bed: Bed, engine: DockerImageEngine, place: str) -> None:
    """Require a ledger that verifies and nothing left over anywhere."""
    for warning in bed.ledger.verify().warnings:
        # Killed between line and signature, and nothing was appended since.
        assert "no checkpoint covers them yet; the next append signs" in warning, place
    owned = engine.owned(state_id(bed.state))
    assert (owned.containers, owned.volumes) == ({}, {}), place
    assert [item.name for item in (bed.state / "runs").glob("*")] == [], place
    stage = STAGE_PREFIX.decode()
    assert [item.name for item in bed.project.iterdir() if item.name.startswith(stage)] == []
    assert list((bed.state / "projects").glob("*/apply/*")) == [], place


def _require_no_doubles(entries: list[Entry], place: str) -> None:
    """Require that nothing was recorded twice, and that what was begun has exactly one end."""
    seen = [
        (item.verb, item.phase, canonical_bytes({"_type": "t", **item.body})) for item in entries
    ]
    assert len(set(seen)) == len(seen), place
    for verb, name in (("run", "run"), ("apply", "nonce")):
        begun, ended = (
            [item.body[name] for item in entries if (item.verb, item.phase) == (verb, phase)]
            for phase in ("intent", "done")
        )
        assert begun == ended, place
        assert len(set(begun)) == len(begun), place
    passed = {item.body["run"] for item in entries if item.body.get("kind") == "passed"}
    quarantined = [item.body["run"] for item in entries if item.verb == "quarantine"]
    assert len(set(quarantined)) == len(quarantined), place
    assert passed <= set(quarantined), f"{place}: a run passed and its diff is lost"
