"""The files and links of a folder being walked: from the cache when unchanged, else read.

Rules:
    * Same facts, same content: such a file is not opened, such a link is not read.
    * A file's size is counted before it is opened; one that goes beyond the limit is not opened.
    * A file that looks like a secret is read no further than its head.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass

from harness.execution.snapshot.facts import Facts, facts_of
from harness.execution.snapshot.ignore import IgnoreChain
from harness.execution.snapshot.read_file import (
    ATTEMPTS,
    MovedError,
    Reading,
    keeps_changing,
    read_once,
)
from harness.execution.snapshot.row import Seen
from harness.execution.snapshot.selection import Selection, Verdict
from harness.execution.snapshot.totals import LeftOut, Totals
from harness.model.digest import Digest, digest_of
from harness.model.relpath import link_escapes
from harness.model.tree import Node
from harness.store.blobs import BlobStore
from harness.store.handles import git_mode, kind_of, stat_at

MAX_IGNORE_FILE = 1 << 20
"""Bytes of a `.gitignore`; a larger one is no list that a person wrote."""

KEPT_FILE = 64 << 10
"""Largest file whose content is kept until the layers are written, so that it is read once."""

KEPT_BYTES = 64 << 20
"""Most bytes of such contents."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder being walked.

    Attributes:
        fd: its held handle.
        path: in the project; empty for the root.
        inside: it was taken, and not only passed.
        rules: the ignore rules that hold in it.
        known: its entries as the last walk saw them.
    """

    fd: int
    path: bytes
    inside: bool
    rules: IgnoreChain | None
    known: Mapping[bytes, Seen]

    @property
    def named_rules(self) -> str:
        """Return the digest of the ignore rules; empty without any."""
        return self.rules.digest if self.rules else ""

    def path_of(self, name: bytes) -> bytes:
        """Return the path of a name in it."""
        return self.path + b"/" + name if self.path else name

    def seen_before(self, name: bytes, facts: Facts) -> Seen | None:
        """Return how the last walk saw a file or link that has the same facts still."""
        seen = self.known.get(name)
        same = seen is not None and seen.facts == facts and (seen.digest or seen.secret)
        return seen if same else None


class EntryReader:
    """Takes files and links into the folder being walked.

    Args:
        selection: says what looks like a secret and is not admitted.
        blobs: asked whether it has a link's target or an ignore file already.
        totals: where counts and refusals go.

    Attributes:
        made: bytes that the store may lack.
        contents: what small files held, by digest, up to `KEPT_BYTES`.
    """

    def __init__(self, selection: Selection, *, blobs: BlobStore, totals: Totals) -> None:
        self._selection = selection
        self._blobs = blobs
        self._totals = totals
        self.made: dict[Digest, bytes] = {}
        self.contents: dict[str, bytes] = {}
        self._room = KEPT_BYTES

    def take(self, place: Place, name: bytes, found: os.stat_result, verdict: Verdict) -> Seen:
        """Take what is not a folder; refuse what is neither a file nor a link.

        Raises:
            MovedError: it is something else by now.
            InputError: it keeps changing.
            OSError: it can't be read.
        """
        seen = Seen(verdict, facts_of(found))
        if stat.S_ISREG(found.st_mode):
            return self._file(place, name, found, seen)
        if stat.S_ISLNK(found.st_mode):
            return self._link(place, name, seen)
        kind = kind_of(found.st_mode)
        self._totals.refuse(place.path_of(name), f"is a {kind}, which can't enter a snapshot")
        return seen

    def _file(self, place: Place, name: bytes, found: os.stat_result, seen: Seen) -> Seen:
        path = place.path_of(name)
        before = place.seen_before(name, seen.facts)
        if before:
            seen = before._replace(verdict=seen.verdict)
        elif self._totals.has_room(found.st_size):
            reading = self._read(place, name, found)
            facts = facts_of(reading.found)
            seen = Seen(seen.verdict, facts, reading.digest, facts.size, reading.secret)
        if seen.secret:
            self._totals.left_out.append(LeftOut(path, seen.secret))
            return seen
        self._totals.add_file(seen.facts.size)
        return seen

    def _read(self, place: Place, name: bytes, found: os.stat_result) -> Reading:
        path = place.path_of(name)
        for _ in range(ATTEMPTS):
            pieces: list[bytes] | None = [] if self._is_kept(found.st_size) else None
            try:
                reading = read_once(
                    name,
                    place.fd,
                    found,
                    judge=lambda head: self._selection.find_secret(path, head),
                    sink=None if pieces is None else pieces.append,
                )
            except MovedError:
                again = stat_at(name, place.fd)
                if again is None or not stat.S_ISREG(again.st_mode):
                    raise
                found = again
                if not self._totals.has_room(found.st_size):
                    break
            else:
                if pieces is not None and not reading.secret:
                    self._keep(reading.digest, b"".join(pieces))
                return reading
        raise keeps_changing(path)

    def _is_kept(self, size: int) -> bool:
        return size <= min(KEPT_FILE, self._room)

    def _keep(self, digest: str, content: bytes) -> None:
        if digest not in self.contents:
            self.contents[digest] = content
            self._room -= len(content)

    def _link(self, place: Place, name: bytes, seen: Seen) -> Seen:
        path = place.path_of(name)
        before = place.seen_before(name, seen.facts)
        if before and self._has(before.digest):
            return before._replace(verdict=seen.verdict)
        target = os.readlink(name, dir_fd=place.fd)
        if link_escapes(path, target):
            self._totals.refuse(path, "is a symlink that points outside the project")
            return seen
        digest = digest_of(target)
        self.made[digest] = target
        return Seen(seen.verdict, seen.facts, digest, len(target))

    def ignore_file(
        self, fd: int, name: bytes, found: os.stat_result, before: Seen | None
    ) -> Seen | None:
        """Return the `.gitignore` of a folder as this walk sees it; None when it is too large.

        Its content is in the store or in `made` afterwards.

        Raises:
            MovedError: it changed while it was read.
            OSError: it can't be read.
        """
        facts = facts_of(found)
        if before and before.facts == facts and self._has(before.digest):
            return before
        if found.st_size > MAX_IGNORE_FILE:
            return None
        content = bytearray()
        reading = read_once(name, fd, found, sink=content.extend)
        self.made[reading.digest] = bytes(content)
        return Seen(Verdict.TAKE, facts_of(reading.found), reading.digest, len(content))

    def content(self, digest: Digest) -> bytes:
        """Return what `ignore_file` left in the store or in `made`.

        Raises:
            VerificationError: the store's bytes are damaged.
        """
        return self.made[digest] if digest in self.made else self._blobs.get(digest)

    def _has(self, digest: str) -> bool:
        return bool(digest) and self._blobs.has(Digest(digest))


def node_of(seen: Seen) -> Node:
    """Return the node of an entry that enters."""
    digest = Digest(seen.digest)
    if stat.S_ISDIR(seen.facts.mode):
        return Node("folder", "040000", seen.size, digest)
    if stat.S_ISLNK(seen.facts.mode):
        return Node("symlink", "120000", seen.size, digest)
    return Node("file", git_mode(seen.facts.mode), seen.size, digest)
