"""Write a file of a person's own choosing, whole or not at all.

Rules:
    * What is there already stays, unless the caller says that it may go; a link is never followed
      to be written through. A device, a pipe or a socket never goes: whoever names `/dev/null`
      means to write to it.
    * The name is claimed first, so that of two writers one is told. The bytes are written beside it
      and get the name when all of them are there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from harness.errors import InputError
from harness.store.durable import rename, write_all

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


def export_file(target: Path, chunks: Iterable[bytes], *, replace: bool) -> None:
    """Write a file.

    Args:
        target: where.
        chunks: its bytes; what they raise leaves nothing behind.
        replace: an existing file, or link, may go.

    Raises:
        InputError: something has the name already, or it can't be written there.
    """
    if not target.name:
        raise InputError("file: expected a name, got none", hint="name the file to write")
    beside = target.with_name(f".{target.name:.64}.{secrets.token_hex(4)}.new")
    try:
        _refuse_special(target)
        if not replace:
            os.close(os.open(target, _NEW, 0o666))
        try:
            _write(beside, chunks)
            rename(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            if not replace:
                with contextlib.suppress(OSError):
                    target.unlink()
            raise
    except FileExistsError as error:
        raise InputError(
            f"file {target}: is there already", hint="name another, or give --force"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"file {target}: {reason.lower()}") from error


def _refuse_special(target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        mode = target.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
            raise InputError(
                f"file {target}: is a device, a pipe or a socket, and would be replaced",
                hint="name a file, or send standard output there",
            )


def _write(path: Path, chunks: Iterable[bytes]) -> None:
    descriptor = os.open(path, _NEW, 0o666)
    try:
        for chunk in chunks:
            write_all(descriptor, chunk)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
