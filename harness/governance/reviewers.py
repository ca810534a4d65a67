"""The reviewers file: OpenSSH `allowed_signers`, read strictly. Pure.

A line is `NAME[,NAME...] [OPTION[,OPTION...]] TYPE BASE64 [COMMENT]` (ssh-keygen(1), ALLOWED
SIGNERS). Rules, each a subset of what `ssh-keygen -Y verify` reads:
    * The names on a line are one person's; the first is the person. A person may own several keys,
      on several lines with the same names. A key belongs to one person and stands on one line.
    * Names are literal: a pattern would let one key speak for names nobody wrote down.
    * Options are `namespaces="..."` (literal), `valid-after="..."` and `valid-before="..."`. Times
      end in Z: without it a time means another moment on every host.
    * Certificates are refused: who may approve would then be decided outside this file.

Every mistake is reported, with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.errors import InputError
from harness.governance.ssh_keys import PublicKey, parse_key_text
from harness.model.digest import Digest, digest_of
from harness.model.files.mistakes import START, Mistakes, Place

MAX_FILE = 64 * 1024
MAX_ENTRIES = 256

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+=/:-]{0,127}")
_NAMESPACE = re.compile(r"[A-Za-z0-9@._+=/:-]{1,128}")
_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"\\]*)")?(?:,(?=[A-Za-z])|$)')
_KEY_TYPE = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-[a-z0-9@.-]+")
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?Z")
_LOCAL_TIME = re.compile(r"\d{8}(?:\d{4}(?:\d\d)?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewer:
    """One line of the file: a person's key and when and for what it counts.

    Attributes:
        person: the first name on the line.
        names: every name on the line; each may be named in a statement.
        key: the public key.
        namespaces: the namespaces the key may sign for; None means all.
        valid_after: first moment at which it counts, or None.
        valid_before: last moment at which it counts, or None.
        line: its line in the file, from 1.
    """

    person: str
    names: tuple[str, ...]
    key: PublicKey
    namespaces: tuple[str, ...] | None
    valid_after: datetime | None
    valid_before: datetime | None
    line: int

    def may_sign_for(self, namespace: str) -> bool:
        """Tell whether the key may sign for a namespace."""
        return self.namespaces is None or namespace in self.namespaces

    def is_valid_at(self, moment: datetime) -> bool:
        """Tell whether a moment is inside the key's window, to the second as in ssh-keygen."""
        second = moment.replace(microsecond=0)
        return (self.valid_after is None or self.valid_after <= second) and (
            self.valid_before is None or second <= self.valid_before
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewers:
    """The whole file.

    Attributes:
        digest: of the exact bytes that were read.
        entries: one per key, in the order of the file.
    """

    digest: Digest
    entries: tuple[Reviewer, ...]

    def by_key(self, key: PublicKey) -> Reviewer | None:
        """Return the line that holds a key."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def person_of(self, name: str) -> str | None:
        """Return the person who bears a name."""
        return next((entry.person for entry in self.entries if name in entry.names), None)

    def persons(self, namespace: str) -> frozenset[str]:
        """Return everybody who has a key that may sign for a namespace."""
        return frozenset(entry.person for entry in self.entries if entry.may_sign_for(namespace))


def parse_reviewers(data: bytes, *, name: str = "reviewers") -> Reviewers:
    """Read a reviewers file.

    Args:
        data: its exact bytes.
        name: the file's name in messages.

    Raises:
        InputError: with every mistake and its line; also when the file is empty of keys.
    """
    if len(data) > MAX_FILE:
        raise InputError(f"{name}: expected at most {MAX_FILE} bytes, got {len(data)}")
    mistakes = Mistakes(name)
    entries: list[Reviewer] = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        try:
            line = _decode_line(raw).strip(" \t")
            if line and not line.startswith("#"):
                entries.append(_parse_line(line, number))
        except InputError as error:
            mistakes.add(Place(number, 1), error.message, error.hint)
    _note_clashes(entries, mistakes)
    if len(entries) > MAX_ENTRIES:
        mistakes.add(START, f"expected at most {MAX_ENTRIES} keys, got {len(entries)}")
    if not entries and not mistakes.found:
        mistakes.add(START, "expected at least one reviewer, got none")
    mistakes.stop_if_any(f"{name}: is not a reviewers file")
    return Reviewers(digest=digest_of(data), entries=tuple(entries))


def _decode_line(raw: bytes) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("line is not UTF-8", hint="save the file as UTF-8") from error
    if "\r" in text:
        raise InputError("line has a carriage return", hint="save the file with LF line ends")
    if not text.replace("\t", " ").isprintable():
        raise InputError("line has a character that does not print", hint="remove it")
    return text


def _parse_line(line: str, number: int) -> Reviewer:
    words = re.split(r"[ \t]+", line)
    names = _parse_names(words[0])
    at = 1
    options: dict[str, str] = {}
    if len(words) > at and not _KEY_TYPE.fullmatch(words[at]):
        options = _parse_options(words[at])
        at += 1
    if len(words) < at + 2:
        raise InputError(
            "expected a name, options, a key type and a key",
            hint='for instance: alice namespaces="plan-approval@harness" ssh-ed25519 AAAA...',
        )
    key = parse_key_text(words[at], words[at + 1])
    after = _parse_moment(options.get("valid-after"), "valid-after")
    before = _parse_moment(options.get("valid-before"), "valid-before")
    if after and before and before <= after:
        raise InputError("valid-before: expected a time after valid-after")
    return Reviewer(
        person=names[0],
        names=names,
        key=key,
        namespaces=_parse_namespaces(options.get("namespaces")),
        valid_after=after,
        valid_before=before,
        line=number,
    )


def _parse_names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    for item in names:
        if any(character in item for character in "*?!"):
            raise InputError(
                f"name {item!r:.80} is a pattern", hint="write each name out, one line per key"
            )
        if not _NAME.fullmatch(item):
            raise InputError(
                f"name {item!r:.80}: expected letters, digits and @._+=/:-",
                hint="names are separated by commas, without spaces or quotes",
            )
    if len({item.casefold() for item in names}) != len(names):
        raise InputError(f"names {text!r:.120} repeat one", hint="write each name once")
    return names


def _parse_options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None:
            raise InputError(
                f"options {text[at:]!r:.80} are malformed",
                hint='options are like namespaces="a,b" and are separated by commas, no spaces',
            )
        name, value = match[1], match[2]
        if name == "cert-authority":
            raise InputError(
                "cert-authority: certificates are not accepted",
                hint="list each person's own key",
            )
        if name not in ("namespaces", "valid-after", "valid-before") or value is None:
            raise InputError(
                f"option {name!r:.40}: expected namespaces, valid-after or valid-before and a "
                "quoted value"
            )
        if name in found:
            raise InputError(f"option {name}: is given twice", hint="give it once")
        found[name] = value
        at = match.end()
    return found


def _parse_namespaces(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(text.split(","))
    for item in names:
        if not _NAMESPACE.fullmatch(item):
            raise InputError(
                f"namespace {item!r:.80}: expected a literal name, no pattern",
                hint='namespaces="plan-approval@harness,diff-approval@harness"',
            )
    return names


def _parse_moment(text: str | None, option: str) -> datetime | None:
    if text is None:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        local = _LOCAL_TIME.fullmatch(text) is not None
        raise InputError(
            f"{option}: expected YYYYMMDDZ or YYYYMMDDHHMM[SS]Z, got {text!r:.40}",
            hint=f"write {text}Z: without Z it means another moment on every host" if local else "",
        )
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as error:
        raise InputError(f"{option}: {error}") from error


def _note_clashes(entries: Iterable[Reviewer], mistakes: Mistakes) -> None:
    """Note each line whose key or names contradict an earlier line."""
    lines_of_points: dict[bytes, int] = {}
    owners: dict[str, Reviewer] = {}
    for entry in entries:
        place = Place(entry.line, 1)
        first_line = lines_of_points.setdefault(entry.key.point, entry.line)
        if first_line != entry.line:
            mistakes.add(
                place,
                f"key is on line {first_line} already",
                "a key belongs to one person and stands on one line; remove one of the two",
            )
        for item in entry.names:
            owner = owners.setdefault(item.casefold(), entry)
            if owner.names != entry.names:
                mistakes.add(
                    place,
                    f"name {item!r:.80} is on line {owner.line} with other names or spelling",
                    "give each of a person's lines the same names in the same order",
                )
                break
