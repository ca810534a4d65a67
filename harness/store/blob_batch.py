"""Many small blobs at once: one sync serves them all.

A snapshot's first folder objects come by the thousand, and an fsync for each takes seconds. The
order is the same as for one blob: all bytes are on disk before any of them has its name.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable

from harness.model.digest import digest_of
from harness.store.blobs import BlobStore
from harness.store.durable import remove_folder, rename, state_error, write_all

FEW = 16
"""Up to so many, each is written by itself: a sync(2) waits for every file system of the host."""


def put_blobs(store: BlobStore, items: Iterable[bytes]) -> None:
    """Store blobs; nothing is written for those that are there already.

    Raises:
        StateError: the disk is full or the folder can't be written.
    """
    missing = {digest: data for data in items if not store.has(digest := digest_of(data))}
    if len(missing) <= FEW:
        for data in missing.values():
            store.put(data)
        return
    aside = store.root / "incoming" / secrets.token_hex(8)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        aside.mkdir(mode=0o700, parents=True)
        for number, data in enumerate(missing.values()):
            descriptor = os.open(aside / str(number), flags, 0o400)
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)
        os.sync()
        for number, digest in enumerate(missing):
            target = store.path_of(digest)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            rename(aside / str(number), target)
        os.sync()
    except OSError as error:
        raise state_error("write blobs", error) from error
    finally:
        remove_folder(aside)
