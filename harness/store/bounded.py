"""Reading a file that a person wrote: a regular file, and never more than a bound of it.

A link to a device, a FIFO or a huge file in somebody's project must not hold or fill the
controller.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_bounded(path: Path, most: int) -> bytes:
    """Return a regular file's bytes; links are followed, nothing is waited for.

    Args:
        path: the file.
        most: bytes it may have.

    Raises:
        OSError: as `os.open` and `os.read`; EINVAL when it is no regular file, EFBIG when it has
            more bytes.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "expected a regular file")
        data = stream.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"expected at most {most} bytes")
    return data
