"""What a layer held when it was written: every entry with its digest and its facts.

Packed by folder, so that a check of 100,000 entries that nobody touched compares bytes and decodes
nothing. `files.json`: the facts of the top folder, then for each folder its path, its names joined
by slashes, their packed facts, a letter for each kind, and the digests of files and links.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from harness.errors import StateError
from harness.execution.snapshot.facts import Facts, unpack_facts
from harness.execution.snapshot.layers import LAYER_KIND, Layer, read_layer_json
from harness.model.digest import PREFIX

_LETTERS = {"file": "f", "symlink": "l", "folder": "d", "opaque": "o", "whiteout": "w"}
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
    """One entry as the writer made it; `facts` are packed."""

    kind: str
    digest: str
    facts: bytes


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """What one folder of a layer held.

    Attributes:
        path: in the tree; empty for the top.
        names: in byte order, joined by slashes.
        facts: packed, in the order of the names.
        kinds: a letter for each name.
        digests: of the files and links among them, 32 bytes each.
    """

    path: bytes
    names: bytes
    facts: bytes
    kinds: str
    digests: bytes

    @classmethod
    def pack(cls, path: bytes, entries: Mapping[bytes, Written]) -> Self:
        """Return a folder's list."""
        ordered = [entries[name] for name in sorted(entries)]
        return cls(
            path=path,
            names=b"/".join(sorted(entries)),
            facts=b"".join(entry.facts for entry in ordered),
            kinds="".join(_LETTERS[entry.kind] for entry in ordered),
            digests=b"".join(bytes.fromhex(entry.digest[len(PREFIX) :]) for entry in ordered),
        )

    def list_names(self) -> list[bytes]:
        """Return the names, in byte order."""
        return self.names.split(b"/") if self.names else []

    def entries(self) -> Iterable[tuple[bytes, Entry]]:
        """Yield path and entry of everything in it.

        Raises:
            ValueError: the parts do not fit together.
            struct.error: the facts were cut.
        """
        above, at = self.path + b"/" if self.path else b"", 0
        listed = zip(self.list_names(), self.kinds, unpack_facts(self.facts), strict=True)
        for name, letter, facts in listed:
            digest = ""
            if letter in "fl":
                digest = PREFIX + self.digests[at : at + _DIGEST_BYTES].hex()
                at += _DIGEST_BYTES
            yield above + name, Entry(_KINDS[letter], digest, facts)


@dataclass(frozen=True, slots=True)
class LayerList:
    """What a layer held.

    Attributes:
        own: packed facts of the top folder.
        folders: every folder that held something, those above it first.
    """

    own: bytes
    folders: tuple[ListedFolder, ...]

    def to_bytes(self) -> bytes:
        """Return the bytes of `files.json`."""
        rows = [
            [
                folder.path.decode("latin-1"),
                folder.names.decode("latin-1"),
                b64encode(folder.facts).decode(),
                folder.kinds,
                b64encode(folder.digests).decode(),
            ]
            for folder in self.folders
        ]
        value = {"_type": LAYER_KIND, "own": b64encode(self.own).decode(), "folders": rows}
        return json.dumps(value, separators=(",", ":")).encode()


def load_layer_list(layer: Layer) -> LayerList:
    """Return what a layer held when it was written.

    Raises:
        StateError: the list is missing or malformed.
    """
    try:
        value = read_layer_json(layer.folder / "files.json")
        return LayerList(
            b64decode(value["own"]),
            tuple(
                ListedFolder(
                    path.encode("latin-1"),
                    names.encode("latin-1"),
                    b64decode(facts),
                    kinds,
                    b64decode(digests),
                )
                for path, names, facts, kinds, digests in value["folders"]
            ),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _unreadable(layer) from error


def list_entries(layer: Layer, listed: LayerList) -> dict[bytes, Entry]:
    """Return every entry of a loaded list by its path in the tree.

    Raises:
        StateError: the list is malformed.
    """
    try:
        return {path: entry for folder in listed.folders for path, entry in folder.entries()}
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
