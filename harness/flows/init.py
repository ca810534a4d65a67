"""Init: write the starter set into a folder, without touching what is there."""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass
from pathlib import Path

from harness.errors import InputError
from harness.flows.caller import caller_home, caller_name
from harness.flows.starter import starter_files
from harness.governance.sign import read_public_key
from harness.governance.ssh_keys import PublicKey
from harness.store.durable import sync_folder, write_all

REVIEWERS = "policies/reviewers"

_PRINCIPAL = re.compile(r"[A-Za-z0-9@._+-]{1,64}")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What init did.

    Attributes:
        written: names of the files written.
        kept: names of the files that were there and were left alone.
        reviewer: name and key of the reviewer who was enrolled; empty when nobody was.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]
    reviewer: str


def init_project(folder: Path, *, key: Path | None, reviewer: str) -> Begun:
    """Write harness.yaml, recipes and policies.

    Args:
        folder: the project's root; made when missing.
        key: public key of the first reviewer; `~/.ssh/id_ed25519.pub` when None, if it is there.
        reviewer: the first reviewer's name; the login name when empty.

    Raises:
        InputError: the key can't be read, the reviewer's name can't stand in the reviewers file, or
            the folder can't be written.
    """
    public = _find_key(key)
    person = reviewer or caller_name()
    line = f"{public.type} {base64.b64encode(public.blob).decode('ascii')}" if public else ""
    if not _PRINCIPAL.fullmatch(person):
        raise InputError(f"reviewer: expected a name without spaces or commas, got {person!r:.60}")
    name = _NOT_IN_NAMES.sub("-", folder.resolve().name.lower()).strip("-.") or "project"
    written: list[str] = []
    kept: list[str] = []
    for file, content in starter_files(name, person, line).items():
        (written if _write_new(folder / file, content) else kept).append(file)
    enrolled = f"{person}, {public.fingerprint}" if public and REVIEWERS in written else ""
    return Begun(written=tuple(written), kept=tuple(kept), reviewer=enrolled)


def _find_key(key: Path | None) -> PublicKey | None:
    if key is not None:
        return read_public_key(key)
    home = caller_home(os.environ)
    usual = home / ".ssh" / "id_ed25519.pub" if home else None
    return read_public_key(usual) if usual and os.path.exists(usual) else None  # noqa: PTH110 - never raises


def _write_new(path: Path, content: bytes) -> bool:
    """Write a file unless something is there; never follow or replace a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        return False
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(f"{path}: {error.strerror}; it was not written") from error
    finally:
        os.close(descriptor)
    sync_folder(path.parent)
    return True
