"""A run's workspace: an empty upper layer that the engine lays over the snapshot's layers.

Rules:
    * The snapshot's layers are read-only; what the worker changes is the upper layer.
    * The engine's own `local` volume driver mounts the overlay, so the caller needs no privilege.
    * The parent of the upper layer stays 0700: a worker can store setuid bits in it.
    * A copy uses the same folders: what comes back is written into an upper layer of its own.
Refuses: layer paths that mount options can't carry.
Sources: kernel Documentation/filesystems/overlayfs.rst; mount(2) (options fit one page).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import StateError
from harness.execution.engine.port import ContainerSpec, Engine, VolumeSpec
from harness.execution.worker.remove_tree import remove_tree
from harness.model.digest import Digest
from harness.model.limits import FLOOR, GIB, MIB, Limits
from harness.store.durable import state_error

FREE_FLOOR = GIB // 2
"""Free space on the state folder's disk below which no run starts and a run is ended."""

SOURCE_DATE_EPOCH = 315_532_800
"""1980-01-01: the time of the workspace's own folder, so that results do not tell the date."""

NAME_COST = 4096
"""What one more name counts at least. An empty file, a link and a folder take no blocks on some
disks, but an inode each, and time and memory of whoever reads the tree afterwards."""

TOO_DEEP = 1 << 62
"""What a tree is taken to hold when its paths are longer than the kernel's PATH_MAX."""

_MAX_OPTIONS = 4000
_EMPTY_ARCHIVE = MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The folders of one overlay.

    Attributes:
        folder: holds both; mode 0700.
        upper: what the worker changes.
        work: the kernel's own.
    """

    folder: Path
    upper: Path
    work: Path


def make_workspace(folder: Path, *, uid: int, gid: int) -> Workspace:
    """Make the empty folders of an overlay, owned by the worker.

    Args:
        folder: must not exist.
        uid: the worker's numeric user.
        gid: the worker's numeric group.

    Raises:
        StateError: little free space, or a folder can't be made.
    """
    made = Workspace(folder=folder, upper=folder / "upper", work=folder / "work")
    try:
        folder.mkdir(mode=0o700)
        for path in (made.upper, made.work):
            path.mkdir()
            path.chmod(0o755)
            if os.geteuid() != uid:
                os.chown(path, uid, gid)
        os.utime(made.upper, (SOURCE_DATE_EPOCH, SOURCE_DATE_EPOCH))
        free = free_bytes(folder)
    except OSError as error:
        raise state_error("make a workspace", error) from error
    if free < FREE_FLOOR:
        raise StateError(
            f"state folder: expected {FREE_FLOOR} bytes free, got {free}",
            hint="free some disk space, then give the same command again",
        )
    return made


def free_bytes(folder: Path) -> int:
    """Return the space that a plain user may still fill on a folder's disk.

    Raises:
        OSError: as `os.statvfs`.
    """
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def overlay_options(layers: Sequence[Path], workspace: Workspace) -> Mapping[str, str]:
    """Return the options of the `local` volume driver, top layer first.

    Raises:
        StateError: a path holds what separates options, or the stack is too deep for one page.
    """
    paths = [*layers, workspace.upper, workspace.work]
    for path in paths:
        if not path.is_absolute() or any(sign in str(path) for sign in ":,\\"):
            raise StateError(
                f"state folder: path {str(path)!r} can't be a mount option",
                hint="use a state folder whose path has no colon, comma or backslash",
            )
    lower = ":".join(str(path) for path in layers)
    folders = f"lowerdir={lower},upperdir={workspace.upper},workdir={workspace.work}"
    options = f"nosuid,nodev,{folders},userxattr"
    if len(os.fsencode(options)) > _MAX_OPTIONS:
        raise StateError(
            f"workspace: {len(layers)} layers need more than {_MAX_OPTIONS} bytes of options",
            hint="use a state folder with a shorter path",
        )
    return {"type": "overlay", "device": "overlay", "o": options}


def measure(folder: Path) -> int:
    """Return how much lies below a folder; never raises and never follows a link.

    A file counts with the larger of its size and its blocks, so that neither a sparse file nor
    a preallocated one hides; the content of several links to one file counts once; every name
    counts `NAME_COST` at least. What lies so deep that no path reaches it counts as `TOO_DEEP`.
    A file that was unlinked while open can't be seen here: the free-space floor bounds it.
    """
    total, linked, open_folders = 0, set[int](), [folder]
    while open_folders:
        place = open_folders.pop()
        try:
            found = _facts_of(place)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return TOO_DEEP
            continue
        for name, facts in found:
            cost = max(facts.st_size, facts.st_blocks * 512, NAME_COST)
            if stat.S_ISDIR(facts.st_mode):
                open_folders.append(place / name)
            elif facts.st_nlink > 1:
                if facts.st_ino in linked:
                    cost = NAME_COST
                linked.add(facts.st_ino)
            total += cost
    return total


def _facts_of(folder: Path) -> list[tuple[str, os.stat_result]]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(descriptor) as entries:
            return [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(descriptor)


def remove_workspace(
    engine: Engine, folder: Path, *, image_id: Digest, labels: Mapping[str, str]
) -> None:
    """Remove a workspace whose container and volume are gone; one that is gone is fine.

    After a delete the kernel leaves `work/work` with entries owned by root, which a plain user
    can't remove. Mounting the overlay once more empties it, and an archive call on a created,
    never started container does mount it.

    Args:
        engine: does the mount where it is needed.
        folder: the workspace's folder.
        image_id: any image on that engine; the run's own is one.
        labels: for the volume and the container of the mount.

    Raises:
        StateError: something is still there.
        SandboxUnavailableError: the engine refused the mount.
    """
    if not os.path.lexists(folder):
        return
    remove_tree(folder)
    if os.path.lexists(folder):
        _empty_work(engine, folder, image_id, labels)
        remove_tree(folder)
    if os.path.lexists(folder):
        raise StateError(f"state folder: {folder} can't be removed", hint=f"sudo rm -rf {folder}")


def _empty_work(engine: Engine, folder: Path, image_id: Digest, labels: Mapping[str, str]) -> None:
    name = f"harness-empty-{secrets.token_hex(6)}"
    spare = Workspace(folder=folder, upper=folder / "empty-upper", work=folder / "work")
    lower = folder / "empty-lower"
    try:
        spare.upper.mkdir(exist_ok=True)
        lower.mkdir(exist_ok=True)
    except OSError as error:
        raise state_error("empty a workspace", error) from error
    container = ""
    options = overlay_options([lower], spare)
    engine.create_volume(VolumeSpec(name=name, options=options, labels=labels))
    try:
        container = engine.create_container(
            ContainerSpec(
                name=name,
                image_id=image_id,
                unset_env=(),
                argv=(),
                env={},
                uid=os.geteuid(),
                gid=os.getegid(),
                volume=name,
                limits=Limits(**FLOOR),
                tmp_exec=False,
                labels=labels,
            )
        )
        engine.copy_out(container, "/workspace", limit=_EMPTY_ARCHIVE)
    finally:
        if container:
            engine.remove(container)
        engine.remove_volume(name)
