"""Projects as the host knows them: an id each, kept in the state folder with the project's folder.

Rules (decision 0007):
    * A folder that is known has its id; another one gets an id of its own, also a copy.
    * A folder that is not known, while a project of the same name is no longer where it was, may be
      that project: nobody guesses. Whoever moved it says so (`harness project move`), or says that
      it is another one (`harness project add`).
    * Ledger entries hold the id and never a path, so a move changes one record and nothing else.
"""

from __future__ import annotations

import os
import secrets
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from harness.errors import InputError, Issue, StateError
from harness.ledger.log import Ledger
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.files.project_file import PROJECT_FILE
from harness.model.relpath import path_from_json, path_to_json, show
from harness.store.durable import remove_folder, state_error, write_durably
from harness.store.lock import hold_lock
from harness.store.state import StateFolder

PROJECT_RECORD = "harness/project/v1"
SHOWN_DIGITS = 12
"""Digits of an id that people see, and may give."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownProject:
    """One project of this host.

    Attributes:
        id: 32 hex digits, random.
        name: as its harness.yaml said when it was last opened.
        root: its folder, links resolved.
        demo: it was made by `harness demo`.
    """

    id: str
    name: str
    root: Path
    demo: bool

    @property
    def place(self) -> Literal["here", "gone", "unreadable"]:
        """Tell whether its folder still holds a harness.yaml."""
        try:
            return "here" if (self.root / PROJECT_FILE).is_file() else "gone"
        except OSError:
            return "unreadable"


def list_projects(state: StateFolder) -> list[KnownProject]:
    """Return the projects of this host, by name.

    Raises:
        StateError: a record is not as it was written.
    """
    records = sorted((state.root / "projects").glob("*/project.json"))
    return sorted((_read_record(path) for path in records), key=lambda item: (item.name, item.id))


def know_project(state: StateFolder, root: Path, name: str, *, demo: bool) -> KnownProject:
    """Return the project of a folder; a folder that can only be a new one gets an id.

    Args:
        state: the state folder.
        root: the project's folder, links resolved.
        name: as its harness.yaml says.
        demo: it is the demonstration's project.

    Raises:
        InputError: it may be a project that was moved here.
        StateError: a record is not as it was written, or can't be written.
    """
    with _hold_projects(state):
        known = list_projects(state)
        found = next((item for item in known if item.root == root), None)
        if found is not None:
            if found.name != name:
                found = replace(found, name=name)
                _write_record(state, found)
            return found
        if not demo:
            _refuse_moved([item for item in known if item.name == name and not item.demo], root)
        return _add(state, root, name, demo=demo)


def _refuse_moved(namesakes: list[KnownProject], root: Path) -> None:
    """Refuse a folder that may be one of these projects, moved."""
    missing = [item for item in namesakes if item.place != "here"]
    if not missing:
        return
    first = missing[0]
    raise InputError(
        f"project: {_show(root)} is not known, and {first.name!r:.80} is no longer where it was",
        hint=f"was it moved? `harness project move {first.id[:SHOWN_DIGITS]}` keeps its id, ledger "
        "and waiting diffs; is it another one? `harness project add`",
        issues=tuple(
            Issue(message=f"project {item.id[:SHOWN_DIGITS]} was here", where=_show(item.root))
            for item in missing
        ),
    )


def add_project(state: StateFolder, root: Path, name: str) -> KnownProject:
    """Give a folder an id of its own, whatever other projects are called.

    Raises:
        InputError: it is known already.
        StateError: a record is not as it was written, or can't be written.
    """
    with _hold_projects(state):
        for item in list_projects(state):
            if item.root == root:
                raise InputError(
                    f"project: {_show(root)} is known as {item.id[:SHOWN_DIGITS]}",
                    hint="there is nothing to add",
                )
        return _add(state, root, name, demo=False)


def move_project(
    state: StateFolder, ledger: Ledger, given: str, *, root: Path, name: str, old_stays: bool
) -> tuple[KnownProject, Path]:
    """Let a project's id follow its folder.

    Args:
        state: the state folder.
        ledger: takes the entries of the move.
        given: the project's id, 8 or more of its digits, or the folder where it was.
        root: the folder where it is now, links resolved.
        name: as the harness.yaml there says.
        old_stays: a project that is still where it was is another one from now on.

    Returns:
        The project as it is known now, and the folder where it was.

    Raises:
        InputError: no or several such projects, nothing moved, or the folder is another project's.
        StateError: a record is not as it was written, or can't be written.
    """
    with _hold_projects(state):
        known = list_projects(state)
        project = _find(known, given)
        _check_move(project, root, name, old_stays=old_stays)
        there = next((item for item in known if item.root == root), None)
        if there is not None:
            _forget_unused(state, ledger, there)
        body = {"name": name}
        ledger.append("move", "intent", project=project.id, body=body)
        moved = replace(project, root=root, name=name)
        _write_record(state, moved)
        ledger.append("move", "done", project=project.id, body=body)
    return moved, project.root


def _check_move(project: KnownProject, root: Path, name: str, *, old_stays: bool) -> None:
    shown = project.id[:SHOWN_DIGITS]
    if project.root == root:
        raise InputError(
            f"project {shown}: is known at {_show(root)} already", hint="there is nothing to move"
        )
    if project.name != name:
        raise InputError(
            f"project {shown}: expected the name {project.name!r:.80} in {PROJECT_FILE}, "
            f"got {name!r:.80}",
            hint="it looks like another project; if it is the same, give it its old name, move it, "
            "and name it anew",
        )
    if project.place != "gone" and not old_stays and not _is_same(project.root, root):
        raise InputError(
            f"project {shown}: is still at {_show(project.root)}",
            hint="a copy is a project of its own and needs no move; when the id belongs to the "
            "copy, add --old-stays: the old folder gets a new id",
        )


def _forget_unused(state: StateFolder, ledger: Ledger, there: KnownProject) -> None:
    """Let go of an id that a folder got by being looked at; one with a history stays."""
    count = sum(entry.project == there.id for entry in ledger.entries())
    if count:
        raise InputError(
            f"project: {_show(there.root)} is known as {there.id[:SHOWN_DIGITS]}, with {count} "
            "entries on the ledger",
            hint="two histories can't become one; go on with the id that it has",
        )
    remove_folder(state.project(there.id))


def _find(known: list[KnownProject], given: str) -> KnownProject:
    least = 8
    by_id = [item for item in known if len(given) >= least and item.id.startswith(given)]
    found = by_id or [item for item in known if item.root == Path(os.path.abspath(given))]  # noqa: PTH100 - resolve() would follow a link that took the folder's place
    if len(found) != 1:
        problem = "fits several" if found else "is none of this host"
        raise InputError(
            f"project: {given!r:.200} {problem}",
            hint="`harness project list` shows ids and folders",
        )
    return found[0]


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _show(path: Path) -> str:
    return show(os.fsencode(path))


# ---- records ----


def _hold_projects(state: StateFolder) -> AbstractContextManager[None]:
    busy = "projects: another command adds or moves one"
    return hold_lock(state.root / "projects" / "lock", wait_seconds=10, busy=busy)


def _add(state: StateFolder, root: Path, name: str, *, demo: bool) -> KnownProject:
    project = KnownProject(id=secrets.token_hex(16), name=name, root=root, demo=demo)
    try:
        state.project(project.id).mkdir(mode=0o700)
    except OSError as error:
        raise state_error("make a project's folder", error) from error
    _write_record(state, project)
    return project


def _write_record(state: StateFolder, project: KnownProject) -> None:
    record = canonical_bytes(
        {
            "_type": PROJECT_RECORD,
            "name": project.name,
            "demo": project.demo,
            **path_to_json(os.fsencode(project.root), "root"),
        }
    )
    write_durably(state.project(project.id) / "project.json", record)


def _read_record(path: Path) -> KnownProject:
    try:
        value = parse_canonical(path.read_bytes(), PROJECT_RECORD)
        return KnownProject(
            id=path.parent.name,
            name=str(value["name"]),
            root=Path(os.fsdecode(path_from_json(value, "root"))),
            demo=bool(value["demo"]),
        )
    except OSError as error:
        raise state_error(f"read {path.name}", error) from error
    except (InputError, KeyError) as error:
        raise StateError(
            f"state folder: projects/{path.parent.name}/{path.name}: is not as it was written",
            hint="restore it from a backup; without it that project would get a new id",
        ) from error
