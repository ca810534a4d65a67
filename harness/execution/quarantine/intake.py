"""One difference at a time: decide, hash, store. What is not importable is not even read.

Rules:
    * The apparent size counts before anything is read, so a sparse file of 200 GB costs nothing.
    * Content is hashed while it is stored; a file that only looks changed is found equal.
    * What can't be carried over (setuid bits, hard links, extended attributes) is dropped and said.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from harness.errors import ContainmentError
from harness.execution.quarantine.compare import Found
from harness.execution.quarantine.rules import ImportRules
from harness.execution.quarantine.settle import Candidate
from harness.execution.quarantine.upper import (
    Seen,
    enter,
    foreign_attributes,
    open_content,
    read_target,
)
from harness.model.changeset import ByProduct, Change
from harness.model.digest import PREFIX, Digest, digest_of
from harness.model.relpath import path_to_json, show
from harness.model.tree import EMPTY_FOLDER, Node, folder_node
from harness.store.blobs import CHUNK, BlobStore
from harness.store.handles import git_mode


@dataclass(frozen=True, slots=True, order=True)
class Flag:
    """Something about a path that a reviewer should see.

    Attributes:
        path: where.
        text: what, one line, lower case.
    """

    path: bytes
    text: str

    def to_json(self) -> dict[str, str]:
        """Return the JSON members."""
        return {**path_to_json(self.path), "text": self.text}


class Intake:
    """Takes in what the walk finds.

    Args:
        rules: which paths may be imported.
        blobs: where content goes.
        max_bytes: most bytes of content to store, artifacts included.
    """

    def __init__(self, rules: ImportRules, blobs: BlobStore, max_bytes: int) -> None:
        self._rules = rules
        self._blobs = blobs
        self._left = max_bytes
        self.candidates: list[Candidate] = []
        self.flags: list[Flag] = []

    def enters(self, found: Found) -> bool:
        """Tell whether a new folder can hold anything that may be imported."""
        return self._reason(found) in ("", "outside-writable")

    def take(self, found: Found) -> None:
        """Decide about one difference.

        Raises:
            ContainmentError: the layer is not still.
            StateError: the content can't be stored.
        """
        seen, reason = found.seen, self._reason(found)
        if seen is None:
            self._add(found, Change(found.path, found.before, None), reason)
        elif seen.kind == "folder":
            node = folder_node(EMPTY_FOLDER)  # `build_changeset` puts the real one in its place
            self._add(found, Change(found.path, found.before, node), reason)
            if not reason:
                with enter(seen) as descriptor:
                    self._flag_marks(seen, descriptor)
        elif seen.kind == "symlink":
            self._take_symlink(found, seen, reason)
        elif seen.kind == "file":
            self._take_file(found, seen, reason)
        else:
            self._add(found, None, reason if reason == "git" else "not-importable")

    def store(self, seen: Seen) -> tuple[Digest, int] | None:
        """Store a regular file's content; None when it is larger than what may still come.

        Raises:
            ContainmentError: the file changes while it is read.
            StateError: the content can't be stored.
        """
        if seen.size > self._left:
            return None
        with open_content(seen) as stream, self._blobs.writer() as writer:
            while chunk := stream.read(CHUNK):
                writer.write(chunk)
                if writer.size > seen.size:
                    break
            if writer.size != seen.size:
                raise ContainmentError(
                    f"{show(seen.path)}: expected {seen.size} bytes, got {writer.size}"
                )
            self._left -= writer.size
            return writer.commit(), writer.size

    def _reason(self, found: Found) -> str:
        if found.seen is not None:
            folder = found.seen.kind == "folder"
        else:
            folder = found.before is not None and found.before.type == "folder"
        return self._rules.reason(found.path, folder=folder, new=found.before is None)

    def _take_symlink(self, found: Found, seen: Seen, reason: str) -> None:
        target = read_target(seen)
        node = Node("symlink", "120000", len(target), digest_of(target))
        if node == found.before:
            return
        if not reason:
            self._blobs.put(target)
        self._add(found, Change(found.path, found.before, node), reason)

    def _take_file(self, found: Found, seen: Seen, reason: str) -> None:
        mode, before = git_mode(seen.stat.st_mode), found.before
        if before is not None and before.type == "file" and before.size == seen.size:
            digest = _hash(seen)
            if digest == before.digest:
                if mode != before.mode:
                    node = Node("file", mode, seen.size, digest)
                    self._add_file(found, seen, node, reason)
                return
        if reason:
            self._add(found, None, reason)
            return
        stored = self.store(seen)
        if stored is None:
            self._add(found, None, "too-large")
            self.flags.append(Flag(found.path, f"too large to import: {seen.size} bytes"))
        else:
            self._add_file(found, seen, Node("file", mode, stored[1], stored[0]), reason)

    def _add_file(self, found: Found, seen: Seen, node: Node, reason: str) -> None:
        self._add(found, Change(found.path, found.before, node), reason)
        if not reason:
            with open_content(seen) as stream:
                self._flag_marks(seen, stream.fileno())

    def _flag_marks(self, seen: Seen, descriptor: int) -> None:
        if seen.special_bits:
            self.flags.append(Flag(seen.path, f"mode bits {seen.special_bits} are dropped"))
        if seen.kind == "file" and seen.stat.st_nlink > 1:
            self.flags.append(Flag(seen.path, "hard link: becomes a file of its own"))
        self.flags.extend(
            Flag(
                seen.path,
                f"extended attribute {show(name.encode('utf-8', 'surrogateescape'))} is dropped",
            )
            for name in foreign_attributes(descriptor)
        )

    def _add(self, found: Found, change: Change | None, reason: str) -> None:
        seen, before = found.seen, found.before
        op = "add" if before is None else "delete" if seen is None else "modify"
        kind = seen.kind if seen is not None else before.type if before is not None else ""
        size = seen.size if seen is not None else 0
        self.candidates.append(Candidate(change, ByProduct(found.path, op, kind, size, reason)))


def _hash(seen: Seen) -> Digest:
    seen_bytes = hashlib.sha256()
    with open_content(seen) as stream:
        while chunk := stream.read(CHUNK):
            seen_bytes.update(chunk)
    return Digest(PREFIX + seen_bytes.hexdigest())
