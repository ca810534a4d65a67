"""The walk: an upper layer against the snapshot below it, every difference once.

Rules:
    * A folder that both sides have is entered, never reported: it did not change.
    * What a new, replaced or opaque folder hides is gone unless it was made again; a file made
      again is compared like any other.
    * What is gone may also be named beside the layer, where no disk could mark it.
    * A folder that was replaced by a file or link is followed by everything it held, as deleted.
    * Order: byte order of names, a folder before what it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType

from harness.errors import ContainmentError
from harness.execution.quarantine.upper import Seen, enter, is_opaque, list_names, look
from harness.model.digest import Digest
from harness.model.tree import Folder, LoadFolder, Node, load_folder, walk

MAX_ENTRIES = 1_000_000
"""Most names in one upper layer; beyond it the layer is refused, so that memory stays bounded."""


Gone = Mapping[bytes, AbstractSet[bytes]]
"""By the path of a folder, names that it has in the snapshot and no more."""

NOTHING_GONE: Gone = MappingProxyType({})
"""An overlay's upper layer marks all that is gone itself."""


@dataclass(frozen=True, slots=True)
class Found:
    """One path that may differ.

    Attributes:
        path: where.
        before: what the snapshot has there.
        seen: what the upper layer has there; None: the path is gone.
    """

    path: bytes
    before: Node | None
    seen: Seen | None


class Comparison:
    """One walk over an upper layer.

    Args:
        load: reads the folder objects of the snapshot.
        enters: whether to look into a folder that the snapshot does not have.
        gone: what is gone without a mark in the layer; such a folder stands in the layer.
    """

    def __init__(
        self, load: LoadFolder, enters: Callable[[Found], bool], gone: Gone = NOTHING_GONE
    ) -> None:
        self._load = load
        self._enters = enters
        self._gone_names = gone
        self._entries = 0

    def run(self, upper: int, base: Digest) -> Iterator[Found]:
        """Yield every path that may differ; `seen.folder` is open until the next one.

        Args:
            upper: handle of the layer's top folder.
            base: the snapshot.

        Raises:
            ContainmentError: too many names, or the layer is not still.
            VerificationError: a folder object of the snapshot is damaged.
        """
        return self._merge(upper, load_folder(self._load, base), b"", hides=is_opaque(upper))

    def _merge(self, upper: int, entries: Folder, prefix: bytes, *, hides: bool) -> Iterator[Found]:
        names = list_names(prefix, upper)
        self._entries += len(names)
        if self._entries > MAX_ENTRIES:
            raise ContainmentError(f"workspace: expected at most {MAX_ENTRIES} changed names")
        for name in names:
            yield from self._one(look(prefix + name, upper), entries.get(name), hides=hides)
        hidden: AbstractSet[bytes] = self._gone_names.get(prefix.removesuffix(b"/"), frozenset())
        for name in sorted((entries.keys() if hides else hidden & entries.keys()) - set(names)):
            yield from self._gone(prefix + name, entries[name])

    def _one(self, seen: Seen, before: Node | None, *, hides: bool) -> Iterator[Found]:
        if seen.is_whiteout:
            if before is not None:
                yield from self._gone(seen.path, before)
            return
        if seen.kind == "folder":
            yield from self._folder(seen, before, hides=hides)
            return
        yield Found(seen.path, before, seen)
        if before is not None and before.type == "folder" and seen.kind in ("file", "symlink"):
            yield from self._below(seen.path, before)

    def _folder(self, seen: Seen, before: Node | None, *, hides: bool) -> Iterator[Found]:
        children: Folder = {}
        if before is not None and before.type == "folder":
            children = load_folder(self._load, before.digest)
        else:
            found = Found(seen.path, before, seen)
            yield found
            if not self._enters(found):
                return
        with enter(seen) as inner:
            hidden = hides or is_opaque(inner)
            yield from self._merge(inner, children, seen.path + b"/", hides=hidden)

    def _gone(self, path: bytes, before: Node) -> Iterator[Found]:
        yield Found(path, before, None)
        if before.type == "folder":
            yield from self._below(path, before)

    def _below(self, path: bytes, before: Node) -> Iterator[Found]:
        for child, node in walk(self._load, before.digest, path + b"/"):
            yield Found(child, node, None)
