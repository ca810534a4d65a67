"""A session: the state folder, the ledger and one project, opened together.

A project is known to the host by a random id (`harness.flows.projects`); nothing is written into
the project. Opening one for work first settles what a killed command left
behind (`harness.flows.work`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import InputError
from harness.flows.projects import know_project
from harness.ledger.folder import LedgerFolder
from harness.ledger.key_folder import KeyFolder
from harness.ledger.log import Ledger
from harness.model.clock import format_time
from harness.model.files.project_file import PROJECT_FILE, ProjectFile, read_project_file
from harness.model.files.strict_yaml import MAX_BYTES
from harness.store.blobs import BlobStore
from harness.store.bounded import read_bounded
from harness.store.state import StateFolder, find_state_root, open_state


def read_clock() -> datetime:
    """Return the real time in UTC; the one place of the flows that asks for it."""
    return datetime.now(UTC)


def now_text() -> str:
    """Return the real time as RFC 3339 text."""
    return format_time(read_clock())


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What belongs to this host whatever the project.

    Attributes:
        state: the state folder.
        ledger: the one ledger.
    """

    state: StateFolder
    ledger: Ledger

    @property
    def blobs(self) -> BlobStore:
        """Return the blob store."""
        return self.state.blobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """One project of this host.

    Attributes:
        id: 32 hex digits, random.
        name: as its harness.yaml says.
        root: its folder, links resolved.
        recipes: folder of its recipes.
        policies: folder of its policies.
        demo: it was made by `harness demo`; only there a throw-away policy is accepted.
    """

    id: str
    name: str
    root: Path
    recipes: Path
    policies: Path
    demo: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A host and one of its projects."""

    host: Host
    project: Project

    @property
    def state(self) -> StateFolder:
        """Return the state folder."""
        return self.host.state

    @property
    def ledger(self) -> Ledger:
        """Return the ledger."""
        return self.host.ledger

    @property
    def blobs(self) -> BlobStore:
        """Return the blob store."""
        return self.host.state.blobs


def open_host(environment: Mapping[str, str] | None = None) -> Host:
    """Open the state folder and the ledger, making them on first use.

    Raises:
        StateError: the state folder can't be used.
        LedgerBrokenError: a first host key was begun and is malformed.
    """
    state = open_state(find_state_root(os.environ if environment is None else environment))
    return Host(state=state, ledger=open_ledger(state))


def open_ledger(state: StateFolder) -> Ledger:
    """Open the ledger of a state folder; the host key is made where no ledger has begun.

    Raises:
        StateError: a file can't be read or written.
        LedgerBrokenError: a first host key was begun and is malformed.
    """
    keys = KeyFolder(state.host)
    if LedgerFolder(state.ledger).is_empty():
        keys.make_first()
    return Ledger(state.ledger, keys, now=read_clock)


def find_project_root(start: Path) -> Path:
    """Return the nearest folder at or above `start` that holds a harness.yaml.

    Raises:
        InputError: there is none.
    """
    try:
        here = start.resolve()
        for folder in (here, *here.parents):
            if (folder / PROJECT_FILE).is_file():
                return folder
    except OSError as error:
        raise InputError(f"project: {str(start)!r:.100}: {error.strerror}") from error
    except ValueError as error:  # a NUL byte
        raise InputError(f"project: {str(start)!r:.100}: {error}") from error
    raise InputError(
        f"project: no {PROJECT_FILE} in {start} or above it",
        hint="`harness init` writes one, with commented recipes and policies",
    )


def read_project(root: Path) -> ProjectFile:
    """Read a project's harness.yaml.

    Raises:
        InputError: it can't be read, or every mistake in it.
    """
    path = root / PROJECT_FILE
    try:
        data = read_bounded(path, MAX_BYTES)
    except OSError as error:
        raise InputError(f"{PROJECT_FILE}: {error.strerror}") from error
    return read_project_file(data, PROJECT_FILE)


def open_session(start: Path, *, demo: bool = False) -> Session:
    """Open the host and the project at or above a folder; a new project gets its id.

    Args:
        start: a folder in the project.
        demo: mark a new project as the demonstration project.

    Raises:
        InputError: there is no project here, its harness.yaml has mistakes, or it may be a project
            that was moved here.
        StateError: the state folder can't be used.
    """
    root = find_project_root(start)
    file = read_project(root)
    host = open_host()
    known = know_project(host.state, root, file.name, demo=demo)
    return Session(
        host=host,
        project=Project(
            id=known.id,
            name=file.name,
            root=root,
            recipes=root / file.recipes,
            policies=root / file.policies,
            demo=known.demo,
        ),
    )
