"""Strict YAML: one document of mappings, lists and scalars, each with its place.

Rules:
    * UTF-8, at most 256 KiB, 10,000 nodes, 32 levels. A leading byte order mark is dropped and
      CRLF line ends are read as LF, so that a file means the same on every system.
    * No tabs, control characters or invisible direction marks (CVE-2021-42574), written or
      escaped: what a reviewer sees is what is there.
    * No duplicate keys, anchors, aliases, merge keys, tags, directives or second document; keys
      are text.
    * Unquoted values mean what `harness.model.files.plain_scalar` says.

It works on parser events, without recursion, so that no input exhausts the stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import yaml

from harness.model.files.mistakes import MAX_ISSUES, START, Mistakes, Place
from harness.model.files.plain_scalar import Scalar, Surprise, read_plain

MAX_BYTES = 256 * 1024
MAX_NODES = 10_000
MAX_DEPTH = 32

_BOM = b"\xef\xbb\xbf"
# C0 and C1 controls (a newline apart), DEL, the line breaks YAML 1.1 adds, marks of direction,
# surrogates, the byte order mark inside the text, and what PyYAML can't read.
_HIDDEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)
_FIXES: Mapping[str, str] = {
    "while scanning an alias": "quote a text that starts with '*'",
    "while scanning an anchor": "quote a text that starts with '&'",
    "while scanning a tag": "quote a text that starts with '!'",
    "while scanning a directive": "quote a text that starts with '%'",
    "while scanning for the next token": "quote a text that starts with a special character",
    "mapping values are not allowed here": "quote a text that holds ': '",
}

Tree: TypeAlias = "Scalar | tuple[Node, ...] | Mapping[str, Node]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One value of the document.

    Attributes:
        value: a scalar, a tuple of nodes, or a mapping from keys to nodes.
        place: where it starts.
        keys: of a mapping, where each key starts.
        broken: a mistake was reported here already; readers pass over it.
    """

    value: Tree
    place: Place
    keys: Mapping[str, Place] = field(default_factory=dict)
    broken: bool = False

    def plain(self) -> Any:
        """Return the value without places: dict, list, str, int, Decimal, bool or None."""
        if isinstance(self.value, Mapping):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value


def parse_yaml(data: bytes, mistakes: Mistakes) -> Node:
    """Read one strict YAML document.

    Args:
        data: the file's bytes.
        mistakes: takes every mistake after which reading can go on; the caller raises them, when
            it has added its own.

    Returns:
        The root; nodes in which a mistake was found are marked broken.

    Raises:
        InputError: not UTF-8, too large, or not YAML; with all mistakes so far.
    """
    text = _decode(data, mistakes)
    damaged = bool(mistakes.found)
    builder = _Builder(mistakes)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        if not damaged:  # else it may only follow from a character that was replaced
            _note_syntax(error, mistakes)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # PyYAML lets chr() and int() fail on hostile escapes and directives
        mistakes.add(builder.last, f"yaml: cannot be read after this place ({error!r:.60})")
    if builder.root is None and not mistakes.found:
        mistakes.add(START, "the file is empty")
    if builder.root is None or not builder.complete:
        mistakes.stop("not a strict YAML file")
    return builder.root


def _decode(data: bytes, mistakes: Mistakes) -> str:
    if len(data) > MAX_BYTES:
        mistakes.add(START, f"file: expected at most {MAX_BYTES} bytes, got {len(data)}")
        mistakes.stop("not a strict YAML file")
    body = data.removeprefix(_BOM)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8")
        offset = error.start + len(data) - len(body)
        mistakes.add(
            _place_at(before, len(before)),
            f"byte 0x{body[error.start]:02x} at offset {offset} is not UTF-8",
            "save the file as UTF-8",
        )
        mistakes.stop("not a strict YAML file")
    text = text.replace("\r\n", "\n")
    for match in _HIDDEN.finditer(text):
        code = f"U+{ord(match[0]):04X}"
        place = _place_at(text, match.start())
        if match[0] == "\t":
            mistakes.add(place, "a tab is not allowed", 'use spaces; inside "quotes" write \\t')
        else:
            mistakes.add(place, f"the invisible character {code} is not allowed", "remove it")
        if len(mistakes.found) > MAX_ISSUES:
            break
    return _HIDDEN.sub(" ", text)


def _place_at(text: str, index: int) -> Place:
    return Place(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


class _Mark(Protocol):
    """A place as PyYAML counts it: from 0."""

    @property
    def line(self) -> int: ...

    @property
    def column(self) -> int: ...


def _place_of(mark: _Mark | None) -> Place:
    return START if mark is None else Place(mark.line + 1, mark.column + 1)


def _note_syntax(error: yaml.MarkedYAMLError, mistakes: Mistakes) -> None:
    place = _place_of(error.problem_mark or error.context_mark)
    problem = (error.problem or "cannot be read").lower()
    fix = _FIXES.get(error.context or "", _FIXES.get(problem, ""))
    mistakes.add(place, f"yaml: {problem}", fix)


@dataclass(slots=True)
class _Open:
    """A list or mapping that is still being read; a mapping's keys and values alternate."""

    place: Place
    mapping: bool
    broken: bool
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class _Builder:
    """Turns parser events into nodes."""

    mistakes: Mistakes
    root: Node | None = None
    complete: bool = False
    last: Place = START
    count: int = 0
    open: list[_Open] = field(default_factory=list)

    def take(self, event: yaml.Event) -> None:
        place = self.last = _place_of(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent):
            self._start_document(event, place)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._bound(place)
            mapping = isinstance(event, yaml.MappingStartEvent)
            self.open.append(_Open(place, mapping, self._is_marked(event, place)))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.AliasEvent):
            self._bound(place)
            name = f"*{event.anchor}"
            self.mistakes.add(place, f"alias {name:.40} is not allowed", "quote it, or repeat it")
            self._put(Node(value=None, place=place, broken=True))
        elif isinstance(event, yaml.ScalarEvent):
            self._bound(place)
            self._scalar(event, place)
        elif isinstance(event, yaml.StreamEndEvent):
            self.complete = True

    def _start_document(self, event: yaml.DocumentStartEvent, place: Place) -> None:
        if self.root is not None:
            self.mistakes.add(place, "a second document starts here", "one document a file")
            self.mistakes.stop("not a strict YAML file")
        if event.version or event.tags:
            self.mistakes.add(place, "a % directive is not allowed", "remove it")

    def _bound(self, place: Place) -> None:
        self.count += 1
        if self.count > MAX_NODES or len(self.open) >= MAX_DEPTH:
            bound = f"{MAX_NODES} values" if self.count > MAX_NODES else f"{MAX_DEPTH} levels"
            self.mistakes.add(place, f"yaml: expected at most {bound}")
            self.mistakes.stop("not a strict YAML file")

    def _is_marked(self, event: yaml.NodeEvent, place: Place) -> bool:
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            self.mistakes.add(place, f"tag {tag!r:.40} is not allowed", "remove it, or quote it")
        if event.anchor is not None:
            name = f"&{event.anchor}"
            self.mistakes.add(place, f"anchor {name:.40} is not allowed", "remove it, or quote it")
        return tag is not None or event.anchor is not None

    def _scalar(self, event: yaml.ScalarEvent, place: Place) -> None:
        broken = self._is_marked(event, place)
        value: Scalar = event.value
        if event.style is None and not broken:
            meaning = read_plain(event.value)
            if isinstance(meaning, Surprise):
                self.mistakes.add(place, meaning.message, meaning.fix)
                broken = True
            else:
                value = meaning
        hidden = _HIDDEN.search(event.value.replace("\t", ""))
        if hidden and event.style is not None:
            code = f"U+{ord(hidden[0]):04X}"
            self.mistakes.add(place, f"the invisible character {code} is not allowed", "remove it")
            broken = True
        self._put(Node(value=value, place=place, broken=broken))

    def _put(self, node: Node) -> None:
        if self.open:
            self.open[-1].items.append(node)
        else:
            self.root = node

    def _close(self) -> None:
        done = self.open.pop()
        if not done.mapping:
            self._put(Node(value=tuple(done.items), place=done.place, broken=done.broken))
            return
        values: dict[str, Node] = {}
        places: dict[str, Place] = {}
        for key, value in zip(done.items[::2], done.items[1::2], strict=True):
            name = self._key(key)
            if name is None:
                continue
            if name in values:
                first = places[name].line
                self.mistakes.add(
                    key.place, f"key {name!r:.60} is here twice, first in line {first}"
                )
                continue
            values[name], places[name] = value, key.place
        self._put(Node(value=values, place=done.place, keys=places, broken=done.broken))

    def _key(self, key: Node) -> str | None:
        if isinstance(key.value, str):
            # a broken key has its mistake already, and its name still counts as there
            return key.value
        if not key.broken:
            self.mistakes.add(key.place, "key: expected text", "quote it")
        return None
