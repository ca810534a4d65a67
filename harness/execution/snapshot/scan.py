"""One walk over a live project: what enters, its digests, and everything that may not.

Rules:
    * Folders are held open and names looked up in them, links never followed: who swaps a folder
      for a link while we walk gets a second look, then an error, and never a path outside.
    * FIFOs, sockets, devices, escaping links and what can't be read are all listed in one error;
      no such thing is opened. What is ignored or excluded is not even looked at.
    * The result depends on names, types, contents, targets and the owner's execute bit alone.
    * A folder that is empty enters as one; a folder that holds nothing but what stays out does not
      (else a used working copy would differ from a fresh one).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from harness.errors import InputError
from harness.execution.snapshot.entry_reader import MAX_IGNORE_FILE, EntryReader, Place, node_of
from harness.execution.snapshot.ignore import IGNORE_FILE, IgnoreChain
from harness.execution.snapshot.read_file import ATTEMPTS, MovedError, is_swap, keeps_changing
from harness.execution.snapshot.selection import Selection, Verdict
from harness.execution.snapshot.stat_cache import Facts, Row, Rows, Seen, facts_of
from harness.execution.snapshot.totals import Totals
from harness.model.digest import Digest, digest_of
from harness.model.relpath import MAX_DEPTH, MAX_PATH
from harness.model.tree import folder_bytes
from harness.store.blobs import BlobStore
from harness.store.handles import open_folder_at

# Compared by number: an enum's own look-up is slow, and this is asked for every entry.
_OUT = (int(Verdict.SKIP), int(Verdict.UNSEEN))
_TAKE = int(Verdict.TAKE)

Listing = list[tuple[bytes, os.stat_result]]


class Scan:
    """One walk.

    Args:
        selection: what enters.
        known: what the last walk saw; stale rows do no harm.
        blobs: asked whether it has an object already.
        max_bytes: most bytes of files that may enter.

    Attributes:
        totals: what was gathered.
    """

    def __init__(
        self, selection: Selection, *, known: Rows, blobs: BlobStore, max_bytes: int
    ) -> None:
        self._selection = selection
        self._known = known
        self._blobs = blobs
        self.totals = Totals(max_bytes=max_bytes)
        self._reader = EntryReader(selection, blobs=blobs, totals=self.totals)

    @property
    def made(self) -> dict[Digest, bytes]:
        """Return folder objects, link targets and ignore files that the store may lack."""
        return self._reader.made

    def run(self, root_fd: int) -> Digest:
        """Walk the tree below a held folder and return its digest.

        Raises:
            InputError: something may not enter (all of it is named), there are too many bytes, or
                the project keeps changing.
            VerificationError: an ignore file in the store is damaged.
        """
        try:
            digest, _ = self._walk(root_fd, b"", inside=self._selection.takes_all, above=None)
        except OSError as error:
            raise InputError(f"project: can't be read: {error.strerror}") from error
        self.totals.check()
        return Digest(digest)

    def _walk(
        self, fd: int, path: bytes, *, inside: bool, above: IgnoreChain | None
    ) -> tuple[str, int]:
        """Return digest and size of a folder's object; an empty digest when it does not enter."""
        for _ in range(ATTEMPTS):
            try:
                with self.totals.rewinding():
                    return self._look(fd, path, inside=inside, above=above)
            except MovedError:
                continue
        raise keeps_changing(path)

    def _look(
        self, fd: int, path: bytes, *, inside: bool, above: IgnoreChain | None
    ) -> tuple[str, int]:
        listing = _list(fd)
        known = self._known.get(path)
        ignore, rules = self._enter(fd, path, listing, above)
        place = Place(fd=fd, path=path, inside=inside, rules=rules, known=known)
        named = rules.digest if rules else ""
        trusted = known if known and known.rules == named else None
        if trusted and _is_unchanged(listing, trusted.entries):
            entries = trusted.entries
            self._reader.recount(place, entries)
        else:
            entries = self._read(place, listing, trusted)
        for name, found in listing:
            seen = entries[name]
            if not stat.S_ISDIR(found.st_mode) or seen.verdict in _OUT:
                continue
            # Not in a method of its own: two frames a level keep the deepest tree well below
            # Python's limit on recursion.
            try:
                with open_folder_at(name, fd) as child:
                    _check_same(child, found)
                    result = self._walk(
                        child, place.path_of(name), inside=seen.verdict == _TAKE, above=rules
                    )
            except OSError as error:
                self._refuse_unreadable(place.path_of(name), error)
                continue
            if result != (seen.digest, seen.size):
                entries = {**entries, name: seen._replace(digest=result[0], size=result[1])}
        if known and entries is known.entries and self._has(known.digest):
            self.totals.rows[path] = known
            return known.digest, known.size
        digest, size = self._close(place, entries)
        self.totals.rows[path] = Row(
            rules=named, ignore=ignore, entries=entries, digest=digest, size=size
        )
        return digest, size

    def _read(self, place: Place, listing: Listing, trusted: Row | None) -> dict[bytes, Seen]:
        """Judge every entry of a folder and read what is new; sub-folders come later."""
        entries: dict[bytes, Seen] = {}
        for name, found in listing:
            verdict = self._judge(
                place, name, found, trusted.entries.get(name) if trusted else None
            )
            if verdict in _OUT or stat.S_ISDIR(found.st_mode):
                entries[name] = Seen(verdict, Facts(found.st_mode, 0, 0, 0, 0))
                continue
            try:
                entries[name] = self._reader.take(place, name, found, verdict)
            except OSError as error:
                self._refuse_unreadable(place.path_of(name), error)
                entries[name] = Seen(verdict, facts_of(found))
        return entries

    def _enter(
        self, fd: int, path: bytes, listing: Listing, above: IgnoreChain | None
    ) -> tuple[Seen | None, IgnoreChain | None]:
        """Return the folder's own ignore file and the rules that hold in it."""
        found = next((found for name, found in listing if name == IGNORE_FILE), None)
        if found is None or not stat.S_ISREG(found.st_mode):
            return None, above
        known, where = self._known.get(path), path + b"/" if path else b""
        try:
            seen = self._reader.ignore_file(fd, IGNORE_FILE, found, known.ignore if known else None)
        except OSError as error:
            self._refuse_unreadable(where + IGNORE_FILE, error)
            return None, above
        if seen is None:
            self.totals.refuse(where + IGNORE_FILE, f"is larger than {MAX_IGNORE_FILE} bytes")
            return None, above
        digest = Digest(seen.digest)
        return seen, IgnoreChain(
            folder=where,
            content_digest=digest,
            read=lambda: self._reader.content(digest),
            above=above,
        )

    def _judge(
        self, place: Place, name: bytes, found: os.stat_result, before: Seen | None
    ) -> Verdict:
        if before and stat.S_IFMT(before.facts.mode) == stat.S_IFMT(found.st_mode):
            return Verdict(before.verdict)
        path = place.path_of(name)
        verdict = self._selection.judge(
            path,
            is_folder=stat.S_ISDIR(found.st_mode),
            inside=place.inside,
            rules=place.rules,
        )
        if verdict not in _OUT and (len(path) > MAX_PATH or path.count(b"/") >= MAX_DEPTH):
            self.totals.refuse(path, f"has more than {MAX_DEPTH} names or {MAX_PATH} bytes")
            return Verdict.SKIP
        return verdict

    def _refuse_unreadable(self, path: bytes, error: OSError) -> None:
        if is_swap(error):
            raise MovedError from error
        self.totals.refuse(path, f"can't be read: {error.strerror}")

    def _close(self, place: Place, entries: Mapping[bytes, Seen]) -> tuple[str, int]:
        """Return digest and size of the folder's object; an empty digest when it stays out."""
        folder, skipped, holds = {}, False, False
        for name, seen in entries.items():
            if seen.verdict == Verdict.UNSEEN or seen.secret:
                continue
            if seen.verdict == Verdict.SKIP or not seen.digest:
                skipped = True
                continue
            folder[name] = node_of(seen)
            holds = holds or seen.verdict != Verdict.BESIDE
        if place.path and not holds and (skipped or not place.inside):
            return "", 0
        data = folder_bytes(folder)
        digest = digest_of(data)
        self.made[digest] = data
        return digest, len(data)

    def _has(self, digest: str) -> bool:
        return bool(digest) and self._blobs.has(Digest(digest))


def _list(fd: int) -> Listing:
    """Return names, in byte order, with what `lstat` says of each.

    Raises:
        MovedError: one went away meanwhile.
        OSError: the folder can't be read.
    """
    with os.scandir(fd) as entries:
        try:
            found = [(os.fsencode(e.name), e.stat(follow_symlinks=False)) for e in entries]
        except FileNotFoundError as error:
            raise MovedError from error
    return sorted(found, key=lambda item: item[0])


def _check_same(fd: int, expected: os.stat_result) -> None:
    found = os.fstat(fd)
    if (found.st_dev, found.st_ino) != (expected.st_dev, expected.st_ino):
        raise MovedError


def _is_unchanged(listing: Listing, entries: Mapping[bytes, Seen]) -> bool:
    """Tell whether a folder holds what it held, but for what its sub-folders hold."""
    if len(listing) != len(entries):
        return False
    for name, found in listing:
        seen = entries.get(name)
        if seen is None or seen.facts[0] != found.st_mode:
            return False
        if seen.verdict in _OUT or stat.S_ISDIR(found.st_mode):
            continue
        if seen.facts != facts_of(found) or not (seen.digest or seen.secret):
            return False
    return True
