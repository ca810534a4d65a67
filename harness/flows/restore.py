"""Restore: a backup becomes the state of a host that has none, verified before it can be seen.

What was done after the backup was made is not in it, and nobody can tell from it alone. So a
restored ledger says that it was restored, and an approval received before that counts no more: it
may have been used since. A rejection stays.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import (
    HarnessError,
    InputError,
    LedgerBrokenError,
    SandboxUnavailableError,
    VerificationError,
)
from harness.execution.image.lock import read_lock
from harness.flows.images import list_host_images
from harness.flows.named_objects import named_objects
from harness.flows.projects import KnownProject, list_projects
from harness.flows.restored import MARK, mark_bytes, settle_restore
from harness.flows.session import Host, open_host, read_clock
from harness.flows.unpack import unpack
from harness.ledger.kept import read_kept, require_continues
from harness.ledger.key_folder import KeyFolder
from harness.ledger.log import Ledger
from harness.model.backup import Manifest
from harness.store.archive import ArchiveReader
from harness.store.durable import write_durably
from harness.store.fresh_folder import fill_fresh
from harness.store.state import StateFolder, find_state_root


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A state that was restored.

    Attributes:
        root: the state folder.
        manifest: what was in the backup.
        key: the verifier key in force, to compare with the one that was kept.
        problem: why nothing can be signed yet; empty when the private key is there.
        lost_projects: projects whose folder is not where it was.
        missing_images: names of locked images that the engine does not have; None when no engine
            answers.
    """

    root: Path
    manifest: Manifest
    key: str
    problem: str
    lost_projects: tuple[KnownProject, ...]
    missing_images: tuple[str, ...] | None


def restore_state(
    file: Path, *, environment: Mapping[str, str], kept: bytes | None = None
) -> Restored:
    """Restore a backup into a state folder that is missing or empty.

    Args:
        file: the backup.
        environment: says where the state folder is.
        kept: a checkpoint that was given out; the backup must reach as far; an empty
            one is refused.

    Raises:
        InputError: the file can't be read.
        VerificationError: it is damaged, no backup, or not what the checkpoint commits to.
        NewerStateError: a newer harness wrote it.
        StateError: the state folder holds something, or can't be written. Nothing of it is changed
            by any of these.
    """
    root = find_state_root(environment)
    with fill_fresh(root) as folder:
        manifest = _read(file, folder)
        state = StateFolder(folder)
        _verify(state, manifest, kept)
        write_durably(folder / MARK, mark_bytes(manifest.entries, manifest.created))
    host = open_host(environment)
    keys = KeyFolder(host.state.host)
    try:
        settle_restore(host)
        problem = ""
    except LedgerBrokenError as error:
        problem = error.message
    return Restored(
        root=root,
        manifest=manifest,
        key=keys.verifiers()[0].to_text(),
        problem=problem,
        lost_projects=tuple(item for item in list_projects(host.state) if item.place != "here"),
        missing_images=_missing_images(host),
    )


def _read(file: Path, folder: Path) -> Manifest:
    try:
        # O_NONBLOCK: a FIFO in its place must not hang the command.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            return unpack(ArchiveReader(stream), folder)
    except OSError as error:
        raise InputError(f"backup: {file}: {error.strerror}") from error


def _verify(state: StateFolder, manifest: Manifest, kept: bytes | None) -> None:
    """Check that what was unpacked is one whole state."""
    keys = KeyFolder(state.host)
    ledger = Ledger(state.ledger, keys, now=read_clock)
    try:
        report = ledger.verify(watch=(read_kept(kept).size,) if kept is not None else ())
        covered = ledger.signed()
        ours = (manifest.entries, manifest.root, manifest.last)
        if covered is None or (covered.head.tree.size, report.root, report.time) != ours:
            raise VerificationError("backup: its ledger is not the one that its manifest names")
        if covered.head.length != (state.ledger / "entries.jsonl").stat().st_size:
            raise VerificationError("backup: its ledger has lines that no checkpoint covers")
        if manifest.has_key:
            keys.signer()
        if kept is not None:
            require_continues(report, kept)
        for digest in named_objects(covered.entries, state.blobs.get):
            if not state.blobs.has(digest):
                raise VerificationError(
                    f"backup: object {digest} is named by its ledger and missing"
                )
        list_projects(state)
        read_lock(state.images_lock)
    except InputError as error:
        raise VerificationError(f"backup: {error.message}") from error


def _missing_images(host: Host) -> tuple[str, ...] | None:
    try:
        found = list_host_images(host)
    except SandboxUnavailableError:
        return None
    except HarnessError:
        return ()
    return tuple(item.locked.image.name for item in found if not item.info)
