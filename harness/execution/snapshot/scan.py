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
from dataclasses import dataclass

from harness.errors import InputError
from harness.execution.snapshot.entry_reader import MAX_IGNORE_FILE, EntryReader, Place, node_of
from harness.execution.snapshot.facts import facts_of, pack_one
from harness.execution.snapshot.ignore import IGNORE_FILE, IgnoreChain
from harness.execution.snapshot.read_file import ATTEMPTS, MovedError, is_swap, keeps_changing
from harness.execution.snapshot.row import OUT, Row, Seen, mode_only
from harness.execution.snapshot.selection import Selection, Verdict
from harness.execution.snapshot.stat_cache import Rows
from harness.execution.snapshot.totals import Totals
from harness.execution.snapshot.unchanged import Unchanged
from harness.model.digest import Digest, digest_of
from harness.model.relpath import MAX_DEPTH, MAX_PATH
from harness.model.tree import folder_bytes
from harness.store.blobs import BlobStore
from harness.store.handles import names_in, open_folder_at

_TAKE = int(Verdict.TAKE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """A folder being walked, all but its sub-folders done.

    Attributes:
        place: where it is.
        own: packed facts of the folder itself.
        ignore: its own ignore file.
        entries: what was made of its names.
    """

    place: Place
    own: bytes
    ignore: Seen | None
    entries: Mapping[bytes, Seen]


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
        self._unchanged = Unchanged({}, frozenset())

    @property
    def made(self) -> dict[Digest, bytes]:
        """Return folder objects, link targets and ignore files that the store may lack."""
        return self._reader.made

    @property
    def contents(self) -> dict[str, bytes]:
        """Return the files that were read and are small, as far as memory is set aside."""
        return self._reader.contents

    def run(self, root_fd: int) -> Digest:
        """Walk the tree below a held folder and return its digest.

        Raises:
            InputError: something may not enter (all of it is named), there are too many bytes, or
                the project keeps changing.
            VerificationError: an ignore file in the store is damaged.
        """
        self._unchanged = Unchanged.find(root_fd, self._known, self._blobs)
        try:
            if self._unchanged.holds(b"", None):
                digest, _ = self._keep(b"")
            else:
                inside = self._selection.takes_all
                digest, _ = self._walk(root_fd, b"", inside=inside, above=None)
        except OSError as error:
            raise InputError(f"project: can't be read: {error.strerror}") from error
        self.totals.check()
        return Digest(digest)

    def _keep(self, path: bytes) -> tuple[str, int]:
        """Take a folder and all below it as they were."""
        for below, row in self._unchanged.rows(path):
            self.totals.add_row(below, row)
        row = self._known[path]
        return row.digest, row.size

    def _walk(
        self, fd: int, path: bytes, *, inside: bool, above: IgnoreChain | None
    ) -> tuple[str, int]:
        """Return digest and size of a folder's object; an empty digest when it does not enter."""
        for _ in range(ATTEMPTS):
            mark = self.totals.mark()
            try:
                return self._look(fd, path, inside=inside, above=above)
            except MovedError:
                self.totals.rewind(mark)
        raise keeps_changing(path)

    def _look(
        self, fd: int, path: bytes, *, inside: bool, above: IgnoreChain | None
    ) -> tuple[str, int]:
        visit = self._visit(fd, path, inside=inside, above=above)
        place, entries = visit.place, dict(visit.entries)
        for name, seen in visit.entries.items():
            if not seen.is_walked:
                continue
            below, takes = place.path_of(name), seen.verdict == _TAKE
            if self._unchanged.holds(below, place.rules):
                result = self._keep(below)
            else:
                # Not in a method of its own: two frames a level keep the deepest tree well below
                # Python's limit on recursion.
                try:
                    with open_folder_at(name, fd) as child:
                        result = self._walk(child, below, inside=takes, above=place.rules)
                except OSError as error:
                    self._refuse_unreadable(below, error)
                    continue
            entries[name] = seen._replace(digest=result[0], size=result[1])
        return self._close(visit, entries)

    def _visit(self, fd: int, path: bytes, *, inside: bool, above: IgnoreChain | None) -> _Visit:
        """Look at a folder and read what is new in it."""
        own = pack_one(os.fstat(fd))  # first, so that what changes from now on shows next time
        names = names_in(fd)
        try:
            found = [os.stat(name, dir_fd=fd, follow_symlinks=False) for name in names]
        except FileNotFoundError as error:
            raise MovedError from error
        listing = dict(zip(names, found, strict=True))
        known = self._known.get(path)
        ignore, rules = self._enter(fd, path, listing.get(IGNORE_FILE), above)
        place = Place(
            fd=fd,
            path=path,
            inside=inside,
            rules=rules,
            known=known.entries() if known else {},
        )
        trusted = known is not None and known.rules == place.named_rules
        entries = self._read(place, listing, trusted=trusted)
        return _Visit(place=place, own=own, ignore=ignore, entries=entries)

    def _read(
        self, place: Place, listing: Mapping[bytes, os.stat_result], *, trusted: bool
    ) -> dict[bytes, Seen]:
        """Judge every entry of a folder and read what is new; sub-folders come later."""
        entries: dict[bytes, Seen] = {}
        for name, found in listing.items():
            verdict = self._judge(place, name, found, place.known.get(name) if trusted else None)
            if verdict in OUT or stat.S_ISDIR(found.st_mode):
                entries[name] = Seen(verdict, mode_only(found.st_mode))
                continue
            try:
                entries[name] = self._reader.take(place, name, found, verdict)
            except OSError as error:
                self._refuse_unreadable(place.path_of(name), error)
                entries[name] = Seen(verdict, facts_of(found))
        return entries

    def _enter(
        self, fd: int, path: bytes, found: os.stat_result | None, above: IgnoreChain | None
    ) -> tuple[Seen | None, IgnoreChain | None]:
        """Return the folder's own ignore file and the rules that hold in it."""
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
        if verdict not in OUT and (len(path) > MAX_PATH or path.count(b"/") >= MAX_DEPTH):
            self.totals.refuse(path, f"has more than {MAX_DEPTH} names or {MAX_PATH} bytes")
            return Verdict.SKIP
        return verdict

    def _refuse_unreadable(self, path: bytes, error: OSError) -> None:
        if is_swap(error):
            raise MovedError from error
        self.totals.refuse(path, f"can't be read: {error.strerror}")

    def _close(self, visit: _Visit, entries: Mapping[bytes, Seen]) -> tuple[str, int]:
        """Note a folder whose sub-folders were walked; return digest and size of its object."""
        digest, size = self._folder_object(visit.place, entries)
        self.totals.rows[visit.place.path] = Row.pack(
            entries,
            own=visit.own,
            rules=visit.place.named_rules,
            ignore=visit.ignore,
            digest=digest,
            size=size,
        )
        return digest, size

    def _folder_object(self, place: Place, entries: Mapping[bytes, Seen]) -> tuple[str, int]:
        """Return digest and size of a folder's object; an empty digest when it stays out."""
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
