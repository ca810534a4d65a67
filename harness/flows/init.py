"""Init: write the starter set into a folder, without touching what is there."""

from __future__ import annotations

import base64
import getpass
import os
import re
from pathlib import Path

from harness.errors import InputError
from harness.flows.starter import starter_files
from harness.governance.sign import read_public_key
from harness.store.durable import sync_folder, write_all

_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")


def init_project(folder: Path, *, key: Path | None, reviewer: str) -> tuple[list[str], list[str]]:
    """Write harness.yaml, recipes and policies.

    Args:
        folder: the project's root; made when missing.
        key: public key of the first reviewer; `~/.ssh/id_ed25519.pub` when None, if it is there.
        reviewer: the first reviewer's name; the login name when empty.

    Returns:
        Names of the files written, and of those that were there and left alone.

    Raises:
        InputError: the key can't be read, or the folder can't be written.
    """
    public = _public_line(key)
    name = _NOT_IN_NAMES.sub("-", folder.resolve().name.lower()).strip("-.") or "project"
    written: list[str] = []
    kept: list[str] = []
    for file, content in starter_files(name, reviewer or getpass.getuser(), public).items():
        (written if _write_new(folder / file, content) else kept).append(file)
    return written, kept


def _public_line(key: Path | None) -> str:
    chosen = key or Path.home() / ".ssh" / "id_ed25519.pub"
    if key is None and not chosen.exists():
        return ""
    public = read_public_key(chosen)
    return f"{public.type} {base64.b64encode(public.blob).decode('ascii')}"


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
