"""Policies of a project, each below the host's own: built-in ceiling, host, project, recipe."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from harness.errors import InputError
from harness.flows.caller import caller_config
from harness.flows.session import Session
from harness.model.files.policy_file import read_host_isolation, read_policy, reviewers_file_of
from harness.model.files.written import written_fields
from harness.model.limits import Isolation
from harness.model.policy import Policy
from harness.store.bounded import read_bounded

SUFFIX = ".yaml"
MAX_FILE = 1024 * 1024
"""Most bytes of a policy or of a reviewers file; a thousand keys take 150 KiB."""


def read_policy_named(session: Session, name: str) -> Policy:
    """Read one policy file, with its reviewers file, below the host's policy if there is one.

    Raises:
        InputError: no such policy, or every mistake in it, its reviewers, or the host's policy.
    """
    data, file = _read_policy_bytes(session, name)
    beside = session.project.policies / reviewers_file_of(data, file)
    reviewers = _read(
        beside,
        os.path.relpath(beside, session.project.root),
        "it lists who may approve, in OpenSSH's allowed_signers format",
    )
    return read_policy(data, file, name=name, reviewers=reviewers, above=read_host_policy())


def list_policy_names(session: Session) -> list[str]:
    """Return the names of the project's policies, sorted; none when there is no folder."""
    return sorted(path.stem for path in session.project.policies.glob(f"*{SUFFIX}"))


def reviewers_path(session: Session, name: str) -> str:
    """Return the path of a policy's reviewers file below the project's root, for messages.

    Raises:
        InputError: no such policy, or every mistake in it.
    """
    data, file = _read_policy_bytes(session, name)
    beside = session.project.policies / reviewers_file_of(data, file)
    return os.path.relpath(beside, session.project.root)


def _read_policy_bytes(session: Session, name: str) -> tuple[bytes, str]:
    path = session.project.policies / f"{name}{SUFFIX}"
    file = os.path.relpath(path, session.project.root)
    near = difflib.get_close_matches(name, list_policy_names(session), n=1)
    hint = (
        f"did you mean the policy {near[0]!r}?" if near else "`harness init` writes a default one"
    )
    return _read(path, file, hint), file


def read_policy_fields(session: Session, name: str) -> dict[str, str]:
    """Return where each field of a policy stands: `file:line:column`, by `isolation.tmp_exec` say.

    Raises:
        InputError: no such policy, or it is no strict YAML file.
    """
    return written_fields(*_read_policy_bytes(session, name))


def read_host_fields() -> dict[str, str]:
    """Return where each field of the host's policy stands; nothing when there is none.

    Raises:
        InputError: it can't be read.
    """
    found = _read_host_bytes()
    return written_fields(*found) if found else {}


def host_policy_path() -> Path | None:
    """Return where the host's own policy is: `$XDG_CONFIG_HOME/sealed-harness/policy.yaml`.

    None for a caller without a home.
    """
    config = caller_config(os.environ)
    return config / "sealed-harness" / "policy.yaml" if config else None


def read_host_policy() -> Isolation | None:
    """Return the isolation that the host allows at most, or None when it says nothing.

    Raises:
        InputError: every mistake in the file.
    """
    found = _read_host_bytes()
    return read_host_isolation(*found) if found else None


def _read_host_bytes() -> tuple[bytes, str] | None:
    """Return the host policy's bytes and its name, for messages; None when there is none."""
    path = host_policy_path()
    if path is None:
        return None
    try:
        return read_bounded(path, MAX_FILE), path.name
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        # It may hold limits that nobody may pass: what can't be read is not taken for absent.
        raise InputError(
            f"host policy {path}: {error.strerror}",
            hint="let this user read it; HOME or XDG_CONFIG_HOME may be another user's",
        ) from error


def _read(path: Path, file: str, hint: str) -> bytes:
    try:
        return read_bounded(path, MAX_FILE)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}", hint=hint) from error
