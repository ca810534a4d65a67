"""What a layer held when it was written: every entry with its digest and its facts.

Packed by folder, so that a check of 100,000 entries that nobody touched compares bytes and decodes
nothing. `files.json` has a list for each folder: its path, its own packed facts, whether it hides
what is below it, the names of what it holds but for folders, joined by slashes, their packed facts,
a letter for the kind of each, and the digests of the files and links among them.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from harness.errors import StateError
from harness.execution.snapshot.facts import Facts, unpack_facts
from harness.execution.snapshot.layers import LAYER_KIND, Layer, read_layer_json
from harness.execution.snapshot.survey import Recorded
from harness.model.digest import PREFIX

_LETTERS = {"file": "f", "symlink": "l", "whiteout": "w"}
_KINDS = {letter: kind for kind, letter in _LETTERS.items()}
_DIGEST_BYTES = 32


class Entry(NamedTuple):
    """One entry of a layer's tree.

    Attributes:
        kind: file, symlink, folder, opaque (a folder that hides what is below) or whiteout.
        digest: of a file's content or a link's target; empty for the others.
        facts: what `lstat` said when it was written.
    """

    kind: str
    digest: str
    facts: Facts


class Written(NamedTuple):
    """One entry, no folder, as the writer made it; `facts` are packed."""

    kind: str
    digest: str
    facts: bytes


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """What one folder of a layer held.

    Attributes:
        path: in the tree; empty for the top.
        own: packed facts of the folder.
        opaque: it hides what is below it.
        names: of what is no folder, in byte order, joined by slashes.
        facts: packed, in the order of the names.
        kinds: a letter for each name.
        digests: of the files and links among them, 32 bytes each.
    """

    path: bytes
    own: bytes
    opaque: bool
    names: bytes
    facts: bytes
    kinds: str
    digests: bytes

    @classmethod
    def pack(
        cls, path: bytes, entries: Mapping[bytes, Written], *, own: bytes, opaque: bool
    ) -> Self:
        """Return a folder's list."""
        ordered = [entries[name] for name in sorted(entries)]
        return cls(
            path=path,
            own=own,
            opaque=opaque,
            names=b"/".join(sorted(entries)),
            facts=b"".join(entry.facts for entry in ordered),
            kinds="".join(_LETTERS[entry.kind] for entry in ordered),
            digests=b"".join(bytes.fromhex(entry.digest[len(PREFIX) :]) for entry in ordered),
        )

    @property
    def recorded(self) -> Recorded:
        """Return what a survey needs."""
        return Recorded(self.path, self.own, self.names, self.facts)

    def entries(self) -> Iterator[tuple[bytes, Entry]]:
        """Yield path and entry of the folder itself, unless it is the top, and of what it holds.

        Raises:
            ValueError: the parts do not fit together.
            struct.error: facts were cut.
        """
        if self.path:
            (own,) = unpack_facts(self.own)
            yield self.path, Entry("opaque" if self.opaque else "folder", "", own)
        above, at = self.path + b"/" if self.path else b"", 0
        names = self.names.split(b"/") if self.names else []
        for name, letter, facts in zip(names, self.kinds, unpack_facts(self.facts), strict=True):
            digest = ""
            if letter in "fl":
                digest = PREFIX + self.digests[at : at + _DIGEST_BYTES].hex()
                at += _DIGEST_BYTES
            yield above + name, Entry(_KINDS[letter], digest, facts)


LayerList = tuple[ListedFolder, ...]
"""Every folder of a layer, those near each other in turn."""


def layer_list_bytes(listed: LayerList) -> bytes:
    """Return the bytes of `files.json`."""
    rows = [
        [
            folder.path.decode("latin-1"),
            b64encode(folder.own).decode(),
            folder.opaque,
            folder.names.decode("latin-1"),
            b64encode(folder.facts).decode(),
            folder.kinds,
            b64encode(folder.digests).decode(),
        ]
        for folder in listed
    ]
    return json.dumps({"_type": LAYER_KIND, "folders": rows}, separators=(",", ":")).encode()


def load_layer_list(layer: Layer) -> LayerList:
    """Return what a layer held when it was written.

    Raises:
        StateError: the list is missing or malformed.
    """
    try:
        value = read_layer_json(layer.folder / "files.json")
        return tuple(
            ListedFolder(
                path.encode("latin-1"),
                b64decode(own),
                bool(opaque),
                names.encode("latin-1"),
                b64decode(facts),
                kinds,
                b64decode(digests),
            )
            for path, own, opaque, names, facts, kinds, digests in value["folders"]
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _unreadable(layer) from error


def list_entries(layer: Layer, listed: LayerList) -> dict[bytes, Entry]:
    """Return every entry of a loaded list by its path in the tree.

    Raises:
        StateError: the list is malformed.
    """
    try:
        return {path: entry for folder in listed for path, entry in folder.entries()}
    except (ValueError, KeyError, struct.error) as error:
        raise _unreadable(layer) from error


def load_entries(layer: Layer) -> dict[bytes, Entry]:
    """Return what a layer held when it was written, by path.

    Raises:
        StateError: the list is missing or malformed.
    """
    return list_entries(layer, load_layer_list(layer))


def _unreadable(layer: Layer) -> StateError:
    return StateError(
        f"layer {layer.name}: its list can't be read",
        hint=f"remove {layer.folder}; sealing again makes it anew",
    )
