"""What setup added to this host, on record so that undo can take back exactly that.

Format (`harness/setup/v1`): canonical JSON in the state folder: the packages, sorted, and whether
a file of ours may stand at /usr/sbin/policy-rc.d.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import InputError, VerificationError
from harness.model.canonical import JsonObject, canonical_bytes, parse_canonical
from harness.store.durable import state_error, write_durably
from harness.store.state import StateFolder

RECORD_KIND = "harness/setup/v1"
POLICY_FILE = Path("/usr/sbin/policy-rc.d")
POLICY = (
    b"#!/bin/sh\n# by `harness setup`, while it installs packages: start no service\nexit 101\n"
)
"""invoke-rc.d(8): exit 101 means that the action is not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupRecord:
    """What was added.

    Attributes:
        packages: names, sorted.
        policy: a file of ours stands, or stood until a crash, at `POLICY_FILE`.
    """

    packages: tuple[str, ...] = ()
    policy: bool = False


def read_record(state: StateFolder) -> SetupRecord:
    """Return what is on record; nothing when there is no file.

    Raises:
        VerificationError: the file is not what setup wrote.
        StateError: it can't be read.
    """
    path = _path(state)
    try:
        value = parse_canonical(path.read_bytes(), RECORD_KIND)
        return SetupRecord(
            packages=tuple(str(name) for name in value["packages"]), policy=bool(value["policy"])
        )
    except FileNotFoundError:
        return SetupRecord()
    except OSError as error:
        raise state_error(f"read {path.name}", error) from error
    except (InputError, KeyError, TypeError) as error:
        raise VerificationError(f"{path.name}: not as setup wrote it: {error}") from error


def write_record(state: StateFolder, record: SetupRecord) -> None:
    """Replace the record, durably.

    Raises:
        StateError: it can't be written.
    """
    members: JsonObject = {
        "_type": RECORD_KIND,
        "packages": list(record.packages),
        "policy": record.policy,
    }
    write_durably(_path(state), canonical_bytes(members))


def remove_record(state: StateFolder, *, policy_file: Path = POLICY_FILE) -> None:
    """Forget what was added, once it is gone; remove a policy file that a crash left.

    Raises:
        StateError: the record can't be removed.
    """
    if read_record(state).policy:
        _remove_policy(policy_file)
    try:
        _path(state).unlink(missing_ok=True)
    except OSError as error:
        raise state_error("remove the record of setup", error) from error


@contextlib.contextmanager
def deny_service_starts(state: StateFolder, *, policy_file: Path = POLICY_FILE) -> Iterator[None]:
    """Keep packages from starting services for the block, as on a host without systemd they may.

    A policy file of the host's own is left as it is.

    Raises:
        StateError: the file can't be written or removed.
    """
    if policy_file.exists() and not _is_ours(policy_file):
        yield
        return
    write_record(state, replace(read_record(state), policy=True))
    try:
        policy_file.write_bytes(POLICY)
        policy_file.chmod(0o755)
    except OSError as error:
        raise state_error(f"write {policy_file.name}", error) from error
    try:
        yield
    finally:
        _remove_policy(policy_file)
        write_record(state, replace(read_record(state), policy=False))


def _remove_policy(policy_file: Path) -> None:
    try:
        if policy_file.exists() and _is_ours(policy_file):
            policy_file.unlink()
    except OSError as error:
        raise state_error(f"remove {policy_file.name}", error) from error


def _is_ours(policy_file: Path) -> bool:
    return policy_file.read_bytes() == POLICY


def _path(state: StateFolder) -> Path:
    return state.root / "setup.json"
