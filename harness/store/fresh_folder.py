"""A folder that appears whole: filled beside its place, synced, then put there by one rename.

The place may hold empty folders (what an opened and unused state folder holds) and nothing else.
One process at a time fills it; what a killed one left is emptied by the next.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.errors import StateError
from harness.store.durable import remove_folder, rename, state_error, sync_folder
from harness.store.lock import acquire_lock


def require_empty(place: Path) -> None:
    """Refuse a place that holds anything but empty folders.

    Raises:
        StateError: it holds a file, or is none of a folder, or can't be read.
    """
    try:
        if not place.exists():
            return
        if not place.is_dir():
            raise StateError(f"state folder: expected a folder or nothing at {place}")
        for folder, _, files in os.walk(place, onerror=_raise):
            if files:
                raise StateError(
                    f"state folder: expected nothing in {place}, "
                    f"got {Path(folder, files[0]).relative_to(place)}",
                    hint="name another folder with HARNESS_STATE, or move this one away first",
                )
    except OSError as error:
        raise state_error("look into it", error) from error


@contextlib.contextmanager
def fill_fresh(place: Path) -> Iterator[Path]:
    """Give a folder to fill for the block; it takes its place when the block ends well.

    Args:
        place: where it will be, links followed; see `require_empty`.

    Raises:
        StateError: the place is not empty, another process fills it, or it can't be written.
    """
    place = place.resolve()
    require_empty(place)
    beside = place.with_name(f".{place.name}.restoring")
    made = _make_parents(place.parent)
    try:
        with _held(beside):
            yield beside
            os.sync()  # many files: one sync serves them all
            _take_place(beside, place)
    finally:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _make_parents(folder: Path) -> list[Path]:
    """Make the missing folders above a place; return them, innermost first."""
    missing = [item for item in (folder, *folder.parents) if not item.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise state_error("make the folders above it", error) from error
    return missing


@contextlib.contextmanager
def _held(beside: Path) -> Iterator[None]:
    """Hold the folder to fill, empty; remove what is left of it at the end."""
    try:
        beside.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(beside, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise state_error(f"make {beside.name}", error) from error
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise StateError(f"state folder: {beside} is somebody else's", hint="remove it first")
        os.fchmod(descriptor, 0o700)
        busy = f"state folder: another restore is filling {beside.name}"
        acquire_lock(descriptor, wait_seconds=0, busy=busy)
        for item in list(beside.iterdir()):
            remove_folder(item) if item.is_dir() else item.unlink()
        try:
            yield
        finally:
            remove_folder(beside)
    finally:
        os.close(descriptor)


def _take_place(beside: Path, place: Path) -> None:
    require_empty(place)
    try:
        if place.exists():
            for folder, _, _ in os.walk(place, topdown=False, onerror=_raise):
                if Path(folder) != place:
                    Path(folder).rmdir()
        rename(beside, place)
    except OSError as error:
        raise StateError(
            f"state folder: {place}: {error.strerror}",
            hint="a folder takes its place by one rename: it can't be a mount of its own; name a "
            "folder inside the mount with HARNESS_STATE",
        ) from error
    sync_folder(place.parent)


def _raise(error: OSError) -> None:
    raise error
