"""One pass over a layer that somebody else made: its digest, its size, and no name that climbs out.

The engine guards itself against such names too; here they are refused before it sees them.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

from harness.errors import InputError
from harness.execution.image.pieces import Counted, PieceStream
from harness.model.digest import Digest

MAX_BYTES = 64 * 1024**3
"""Most bytes of one unpacked layer; a packed one may be a bomb."""


def scan_layer(pieces: Iterator[bytes], place: str) -> tuple[Digest, int]:
    """Read a layer to its end.

    Args:
        pieces: the tar archive, unpacked.
        place: names the layer, for messages.

    Returns:
        The digest and the number of all bytes.

    Raises:
        InputError: no tar archive, cut off, too large, or with a name that climbs out.
    """
    counted = Counted(pieces)
    bounded = iter(_bounded(counted, place))
    try:
        with tarfile.open(fileobj=io.BufferedReader(PieceStream(bounded)), mode="r|") as layer:
            for member in layer:
                _check_names(member, place)
                layer.members = []  # type: ignore[attr-defined]  # it keeps every header otherwise
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{place}: is not a whole tar archive ({error})") from error
    for _ in bounded:  # what stands after the end of the archive counts for the digest
        pass
    return counted.digest, counted.size


def _bounded(counted: Counted, place: str) -> Iterator[bytes]:
    for piece in counted:
        if counted.size > MAX_BYTES:
            raise InputError(f"{place}: expected at most {MAX_BYTES} bytes")
        yield piece


def _check_names(member: tarfile.TarInfo, place: str) -> None:
    names = (member.name, member.linkname) if member.islnk() else (member.name,)
    for name in names:
        if ".." in name.split("/"):
            raise InputError(
                f"{place}: expected names inside it, got {name!r:.100}",
                hint="do not trust who made this image",
            )
