r"""Layers on disk: what each one shows, what it lies on, and which stack shows which snapshot.

    layers/NAME/t/            the tree, mounted read-only below workers; one inode for each path
    layers/NAME/layer.json    snapshot, name of the layer below, owner
    layers/NAME/files.json    every entry with its digest and the facts it had when it was written
    layers/by-digest/HEX      name of the layer on top of the stack that shows the snapshot HEX

Rules:
    * A layer appears whole, by one rename, and never changes after that.
    * Names and paths are short and plain: a mount's options are one page, and `:`, `,` and `\\`
      have a meaning there.
    * Only a stack with all its layers counts; a broken one is as good as none.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import InputError, StateError
from harness.model.digest import PREFIX, Digest, parse_digest
from harness.store.durable import state_error, write_durably

MAX_DEPTH = 16
"""Most layers of a stack; a look-up that misses asks them all."""

MAX_OPTION_BYTES = 3000
"""Most bytes of a stack's paths, joined: mount(2) takes one page, and two more folders go in."""

LAYER_KIND = "harness/layer/v2"

_NAME = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer.

    Attributes:
        folder: where it lies.
        snapshot: what its stack shows.
        below: name of the layer it lies on; empty for a full one.
        owner: user and group id of everything in it.
    """

    folder: Path
    snapshot: Digest
    below: str
    owner: tuple[int, int]

    @property
    def name(self) -> str:
        """Return its short name."""
        return self.folder.name

    @property
    def tree(self) -> Path:
        """Return the folder that is mounted."""
        return self.folder / "t"


def check_layers_path(folder: Path) -> None:
    """Refuse a state folder whose path can't stand in an overlay's mount options.

    Raises:
        StateError: it holds a separator, or is too long.
    """
    text = os.fsencode(folder)
    if any(mark in text for mark in (b":", b",", b"\\", b'"', b"\n")):
        raise StateError(
            f"state folder: expected a path without : , \\ and quotes, got {str(folder.parent)!r}",
            hint="set HARNESS_STATE to a folder with a plain path",
        )
    if len(text) > MAX_OPTION_BYTES // 8:
        raise StateError(
            f"state folder: expected a path of at most {MAX_OPTION_BYTES // 8} bytes, "
            f"got {len(text)}",
            hint="set HARNESS_STATE to a folder with a shorter path",
        )


def find_stack(layers: Path, digest: Digest) -> tuple[Layer, ...]:
    """Return the layers that together show a snapshot, top first; none when there are none.

    Raises:
        StateError: the index can't be read.
    """
    index = layers / "by-digest" / digest.removeprefix(PREFIX)
    try:
        name = index.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"state folder: layer index of {digest}: can't be read") from error
    stack = load_stack(layers, name)
    return stack if stack and stack[0].snapshot == digest else ()


def load_stack(layers: Path, name: str) -> tuple[Layer, ...]:
    """Return a layer and all it lies on, top first; none when one is missing or unreadable."""
    stack: list[Layer] = []
    while name:
        layer = _load_layer(layers, name)
        if layer is None or len(stack) > MAX_DEPTH:
            return ()
        stack.append(layer)
        name = layer.below
    return tuple(stack)


def index_stack(layers: Path, layer: Layer) -> None:
    """Make a layer the top of the stack that shows its snapshot.

    Raises:
        StateError: the disk is full.
    """
    folder = layers / "by-digest"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise state_error("make the layer index", error) from error
    write_durably(folder / layer.snapshot.removeprefix(PREFIX), layer.name.encode() + b"\n")


def has_room(stack: tuple[Layer, ...]) -> bool:
    """Tell whether one more layer fits on a stack."""
    paths = [os.fsencode(layer.tree) for layer in stack]
    longest = max(map(len, paths), default=0) + len(":")
    return 0 < len(stack) < MAX_DEPTH and longest * (len(stack) + 1) <= MAX_OPTION_BYTES


def layer_json(layer: Layer) -> bytes:
    """Return the bytes of `layer.json`."""
    value = {
        "_type": LAYER_KIND,
        "snapshot": layer.snapshot,
        "below": layer.below,
        "owner": list(layer.owner),
    }
    return json.dumps(value).encode()


def _load_layer(layers: Path, name: str) -> Layer | None:
    folder = layers / name
    try:
        if not _NAME.fullmatch(name) or not (folder / "t").is_dir():
            return None
        value = read_layer_json(folder / "layer.json")
        uid, gid = value["owner"]
        return Layer(
            folder=folder,
            snapshot=parse_digest(value["snapshot"]),
            below=str(value["below"]),
            owner=(int(uid), int(gid)),
        )
    except (OSError, ValueError, TypeError, KeyError, InputError):
        return None


def read_layer_json(path: Path) -> dict[str, Any]:
    """Read one of a layer's own files.

    Raises:
        OSError: as `Path.read_bytes`.
        ValueError: it is none, or of another version.
    """
    value = json.loads(path.read_bytes())
    if not isinstance(value, dict) or value.get("_type") != LAYER_KIND:
        raise ValueError("not a layer's file")
    return value
