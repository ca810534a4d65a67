"""The one layer that makes any image a worker image: our init, and the folders it works in.

Rule: each folder on the way is an entry of its own and `/.harness` is opaque, so that whatever the
image has there (a file, a symlink, another init) is hidden: a layer's folder replaces what is no
folder, and an opaque one has nothing below it (OCI Image Layer Specification, "Whiteouts").
"""

from __future__ import annotations

import io
import tarfile

from harness.errors import VerificationError
from harness.execution.engine.spec import HOME, INIT_PATH
from harness.execution.image.layer import FIXED_TIME
from harness.model.digest import Digest, digest_of
from harness.model.seal import WORKSPACE

INIT_MODE = 0o555
HOME_MODE = 0o700
MAX_INIT = 16 * 1024 * 1024
OPAQUE = ".wh..wh..opq"
"""Name of the marker that hides what lower layers have in a folder."""

INIT_FOLDER = INIT_PATH.rpartition("/")[0].removeprefix("/")


def init_layer(init: bytes) -> bytes:
    """Return the layer with init's program in it."""
    home, worker = HOME.removeprefix("/").split("/")
    workspace = WORKSPACE.removeprefix("/")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as layer:
        for name in (INIT_FOLDER, home, f"{home}/{worker}", workspace):
            mode = HOME_MODE if name.endswith(worker) else 0o755
            layer.addfile(_member(name, tarfile.DIRTYPE, mode))
            if name != home:
                layer.addfile(_member(f"{name}/{OPAQUE}", tarfile.REGTYPE, 0o644))
        program = _member(INIT_PATH.removeprefix("/"), tarfile.REGTYPE, INIT_MODE)
        program.size = len(init)
        layer.addfile(program, io.BytesIO(init))
    return out.getvalue()


def init_inside(archive: bytes, what: str) -> Digest:
    """Return the digest of what an engine shows at init's place in a container of an image.

    Args:
        archive: tar archive of the folder `/.harness`.
        what: names the image, for messages.

    Raises:
        VerificationError: the folder is no folder with one program of root's in it.
    """
    folder, program = INIT_FOLDER, INIT_PATH.removeprefix("/")
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as made:
            found = {member.name.rstrip("/"): member for member in made.getmembers()}
            plain = (
                set(found) == {folder, program}
                and found[folder].isdir()
                and found[program].isreg()
                and (found[program].mode & 0o7777, found[program].uid) == (INIT_MODE, 0)
            )
            stream = made.extractfile(found[program]) if plain else None
            if stream is not None:
                return digest_of(stream.read())
    except tarfile.TarError as error:
        raise VerificationError(f"{what}: the engine's archive can't be read") from error
    raise VerificationError(
        f"{what}: expected {INIT_PATH} alone in its folder, root's, mode 0555; got something else"
    )


def _member(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.mode, member.mtime = kind, mode, FIXED_TIME
    return member
