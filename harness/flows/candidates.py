"""What a shell may offer for a word of the command line: names, hashes and run ids.

Only reads, and only suggests: nothing is made, locked or verified here, because the command that a
word is given to does that. What can't be read offers nothing.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from harness.errors import HarnessError
from harness.execution.image.definition import list_definitions
from harness.execution.image.lock import read_lock
from harness.flows.history import list_plans, list_quarantined, list_runs
from harness.flows.projects import list_projects
from harness.flows.session import find_project_root, read_project
from harness.governance.reviewers import parse_reviewers
from harness.model.entry import Entry, parse_entry
from harness.model.files.policy_file import reviewers_file_of
from harness.store.bounded import read_bounded
from harness.store.resources import find_resources
from harness.store.state import StateFolder, find_state_root

T = TypeVar("T")
P = ParamSpec("P")

_UNREADABLE = (HarnessError, OSError)

NEWEST = 50
"""Most plans, runs or diffs offered; older ones are found with the `list` commands."""

TAIL_BYTES = 512 * 1024
"""How much of the ledger's end is looked at: about a thousand entries, read in 0.1 s."""

_SUFFIX = ".yaml"
_MAX_FILE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One word that fits.

    Attributes:
        value: the word.
        about: what it stands for; empty when the word says it.
    """

    value: str
    about: str = ""


def _or_nothing(read: Callable[P, list[Candidate]]) -> Callable[P, list[Candidate]]:
    """Let a reader offer nothing where something can't be read."""

    @functools.wraps(read)
    def offer(*args: P.args, **words: P.kwargs) -> list[Candidate]:
        try:
            return read(*args, **words)
        except _UNREADABLE:
            return []

    return offer


@_or_nothing
def offer_recipes(start: Path) -> list[Candidate]:
    """Return the names of the recipes of the project at or above a folder."""
    root = find_project_root(start)
    return [Candidate(value=path.stem) for path in _files(root / read_project(root).recipes)]


@_or_nothing
def offer_reviewers(start: Path) -> list[Candidate]:
    """Return the persons in the reviewers files of the project's policies."""
    persons: dict[str, str] = {}
    root = find_project_root(start)
    for path in _files(root / read_project(root).policies):
        with contextlib.suppress(*_UNREADABLE):
            beside = path.parent / reviewers_file_of(read_bounded(path, _MAX_FILE), path.name)
            for reviewer in parse_reviewers(read_bounded(beside, _MAX_FILE)).entries:
                persons.setdefault(reviewer.person, f"reviewer of policy {path.stem}")
    return [Candidate(value=name, about=about) for name, about in persons.items()]


def offer_images() -> list[Candidate]:
    """Return the names of the images that are locked on this host, and of those defined."""
    found: dict[str, str] = {}
    with contextlib.suppress(*_UNREADABLE):
        for name in read_lock(_state().images_lock):
            found[name] = "locked on this host"
    with contextlib.suppress(*_UNREADABLE):
        for name in list_definitions(find_resources("images")):
            found.setdefault(name, "defined, not built yet")
    return [Candidate(value=name, about=about) for name, about in found.items()]


@_or_nothing
def offer_plans(start: Path) -> list[Candidate]:
    """Return the hashes of the newest plans that were not used yet, newest first."""
    project, entries = _recent(start)
    used = {run.plan for run in list_runs(entries, project)}
    return [
        Candidate(value=plan.plan, about=f"plan of {_named(plan.operations)}, {plan.sealed}")
        for plan in _newest_first(list_plans(entries, project))
        if plan.plan not in used
    ]


@_or_nothing
def offer_runs(start: Path) -> list[Candidate]:
    """Return the ids of the newest runs, newest first, and `RUN/OPERATION` where it has several."""
    offered: list[Candidate] = []
    project, entries = _recent(start)
    for run in _newest_first(list_runs(entries, project)):
        names = tuple(item.name for item in run.operations)
        offered.append(Candidate(value=run.run, about=f"{_named(names)}: {run.outcome}"))
        if len(names) > 1:
            offered += [
                Candidate(value=f"{run.run}/{item.name}", about=item.outcome)
                for item in run.operations
            ]
    return offered


@_or_nothing
def offer_diffs(start: Path, *, landed: bool) -> list[Candidate]:
    """Return the hashes of the newest diffs, newest first.

    Args:
        start: a folder in the project.
        landed: those that landed; else those that wait.
    """
    project, entries = _recent(start)
    return [
        Candidate(
            value=item.diff,
            about=f"diff of {item.operation}, run {item.run}: changed paths {item.changes}",
        )
        for item in _newest_first(list_quarantined(entries, project))
        if bool(item.landed) == landed and item.changes
    ]


def _newest_first(items: Sequence[T]) -> Sequence[T]:
    return items[: -NEWEST - 1 : -1]


def _named(operations: Sequence[str]) -> str:
    first, *others = operations
    return f"{first} and {len(others)} more" if others else first


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"*{_SUFFIX}") if path.is_file())


def _state() -> StateFolder:
    """Return the state folder where it would be; it need not exist."""
    return StateFolder(find_state_root(os.environ))


def _recent(start: Path) -> tuple[str, list[Entry]]:
    """Return a project's id and the newest entries of the ledger, as they lie there.

    An entry about a run whose plan was sealed before them is left out: it can't be told alone.
    """
    state = _state()
    root = find_project_root(start)
    project = next((item.id for item in list_projects(state) if item.root == root), "")
    if not project:
        return "", []
    entries = _tail(state.ledger / "entries.jsonl")
    sealed = {entry.body["run"] for entry in entries if entry.verb == "seal"}
    return project, [entry for entry in entries if entry.body.get("run") in sealed]


def _tail(path: Path) -> list[Entry]:
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - TAIL_BYTES))
        lines = stream.read(TAIL_BYTES).split(b"\n")
    whole = lines[1:-1] if size > TAIL_BYTES else lines[:-1]
    return [parse_entry(line) for line in whole]
