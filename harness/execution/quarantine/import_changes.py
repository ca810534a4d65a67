"""Import: from the upper layer of a finished run to a changeset that waits for approval.

    compare -> intake (decide, hash, store) -> settle -> keep what was there before -> flags

Everything that applying, undoing or showing the change will need is in the blob store afterwards:
content and link targets on both sides, and the folder objects of the result. The snapshot's own
layer may go. Call it only when the container is gone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.errors import VerificationError
from harness.execution.quarantine.compare import NOTHING_GONE, Comparison, Gone
from harness.execution.quarantine.intake import Flag, Intake
from harness.execution.quarantine.rules import ImportRules
from harness.execution.quarantine.settle import settle
from harness.execution.quarantine.upper import Seen, enter, hold_upper, look
from harness.model.changeset import (
    ByProduct,
    Change,
    Changeset,
    build_changeset,
)
from harness.model.digest import Digest
from harness.model.recipe import Output
from harness.model.relpath import show
from harness.model.run_record import Artifact
from harness.model.secrets import SCANNED_HEAD, find_secret
from harness.model.tree import LoadFolder, Node
from harness.model.units import spell_amount
from harness.store.blobs import BlobStore
from harness.store.handles import stat_at

BINARY_HEAD = 8000
"""Where git looks for a NUL byte to tell binary from text: buffer_is_binary in its sources."""

ReadBase = Callable[[bytes], AbstractContextManager[BinaryIO]]
"""Opens the content of a file of the snapshot by its path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What a run left behind.

    Attributes:
        changeset: what may be applied, once approved; it may be empty.
        by_products: the other changes, sorted by path.
        artifacts: the declared outputs that the run made.
        missing: names of the declared outputs that it did not make as regular files, or that
            are too large.
        too_large: of those, what is wrong with each, one line.
        flags: what a reviewer should look at, sorted by path.
    """

    changeset: Changeset
    by_products: tuple[ByProduct, ...]
    artifacts: tuple[Artifact, ...]
    missing: tuple[str, ...]
    too_large: tuple[str, ...]
    flags: tuple[Flag, ...]


def import_changes(
    upper: Path,
    *,
    gone: Gone = NOTHING_GONE,
    base: Digest,
    load: LoadFolder,
    read_base: ReadBase,
    rules: ImportRules,
    blobs: BlobStore,
    max_bytes: int,
) -> Imported:
    """Turn an upper layer into a changeset, by-products, artifacts and flags.

    Args:
        upper: the layer's top folder.
        gone: what is gone without a mark in the layer, as the copy strategy has it.
        base: the snapshot that the layer lies on.
        load: reads the folder objects of the snapshot.
        read_base: opens the content of the snapshot's files.
        rules: which paths may be imported, and the declared outputs.
        blobs: where content goes.
        max_bytes: most bytes of new content to store.

    Raises:
        ContainmentError: the layer is not still, not self-contained, or has too many names.
        VerificationError: the snapshot is damaged.
        StateError: the layer is not there, or content can't be stored.
    """
    intake = Intake(rules, blobs, max_bytes)
    with hold_upper(upper) as top:
        # First, so that a large change does not crowd out the report of the run.
        artifacts, missing, too_large = _collect(intake, top, rules.outputs)
        for found in Comparison(load, intake.enters, gone).run(top, base):
            intake.take(found)
    changes, by_products = settle(intake.candidates)
    _keep_before(changes, read_base, blobs)
    changeset, made = build_changeset(load, base, changes)
    for data in made.values():
        blobs.put(data)
    landing = {change.path for change in changes} | {item.path for item in by_products}
    flags = [flag for flag in intake.flags if flag.path in landing]
    return Imported(
        changeset=changeset,
        by_products=by_products,
        artifacts=artifacts,
        missing=missing,
        too_large=too_large,
        flags=tuple(
            sorted({*flags, *_find_secrets(changeset, blobs), *_find_binaries(changeset, blobs)})
        ),
    )


def _collect(
    intake: Intake, top: int, outputs: tuple[Output, ...]
) -> tuple[tuple[Artifact, ...], tuple[str, ...], tuple[str, ...]]:
    """Store the declared outputs; one that the run did not touch was not made by it.

    Returns:
        Those that are kept, the names of those that are not, and why the ones among them that
        are there are too large.
    """
    artifacts: list[Artifact] = []
    missing: list[str] = []
    too_large: list[str] = []
    for output in outputs:
        with contextlib.ExitStack() as stack:
            seen = _reach(stack, top, output.path.encode("utf-8"))
            stored = None
            if seen and seen.kind == "file":
                is_over = 0 < output.max_bytes < seen.size
                stored = None if is_over else intake.store(seen)
                if stored is None:
                    most = spell_amount("size", output.max_bytes) if is_over else "the workspace"
                    too_large.append(f"output {output.name}: {seen.size} bytes, over {most}")
        if stored is None:
            missing.append(output.name)
        else:
            artifacts.append(
                Artifact(
                    name=output.name,
                    path=output.path,
                    size=stored[1],
                    digest=stored[0],
                    type=output.type,
                )
            )
    return tuple(artifacts), tuple(missing), tuple(too_large)


def _reach(stack: contextlib.ExitStack, top: int, path: bytes) -> Seen | None:
    """Go to one path of the layer, folder by folder; None when it is not there."""
    folder, end = top, path.find(b"/")
    while end >= 0:
        if stat_at(path[:end].rpartition(b"/")[2], folder) is None:
            return None
        seen = look(path[:end], folder)
        if seen.kind != "folder":
            return None
        folder, end = stack.enter_context(enter(seen)), path.find(b"/", end + 1)
    there = stat_at(path.rpartition(b"/")[2], folder) is not None
    return look(path, folder) if there else None


def _keep_before(changes: tuple[Change, ...], read_base: ReadBase, blobs: BlobStore) -> None:
    """Store what the changed paths held, so that undo and the patch need nothing else."""
    for change in changes:
        before = change.before
        if before is None or before.type == "folder" or blobs.has(before.digest):
            continue
        if before.type == "symlink":
            raise VerificationError(f"{show(change.path)}: its target in the snapshot is lost")
        with read_base(change.path) as stream:
            digest, _ = blobs.put_stream(stream)
        if digest != before.digest:
            raise VerificationError(
                f"{show(change.path)}: expected {before.digest} in the snapshot, got {digest}"
            )


def _find_secrets(changeset: Changeset, blobs: BlobStore) -> Iterator[Flag]:
    for change in changeset.changes:
        reason = _secret_in(change.path, change.after, blobs)
        if reason and reason != _secret_in(change.path, change.before, blobs):
            yield Flag(change.path, f"looks like a secret: {reason}")


def _find_binaries(changeset: Changeset, blobs: BlobStore) -> Iterator[Flag]:
    """Flag what the patch can't show as text: git's own rule, a NUL in the first 8,000 bytes."""
    for change in changeset.changes:
        after = change.after
        if after is None or after.type != "file" or change.op == "mode":
            continue
        if b"\0" in next(blobs.chunks(after.digest), b"")[:BINARY_HEAD]:
            yield Flag(change.path, "is binary: the patch shows no text to review")


def _secret_in(path: bytes, node: Node | None, blobs: BlobStore) -> str:
    if node is None or node.type != "file":
        return ""
    head = next(blobs.chunks(node.digest), b"")[:SCANNED_HEAD]
    return find_secret(path, head)
