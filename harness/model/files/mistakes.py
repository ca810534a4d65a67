"""Every mistake found in one file, with its place; raised once, at the end.

Rules: a reader goes on after a mistake as far as it can make sense of the rest, so that an author
sees all of them. They are reported in the order of the file, the first hundred of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from harness.errors import InputError, Issue
from harness.model.relpath import show

MAX_ISSUES = 100


class Place(NamedTuple):
    """Where something starts in a file: line and column, both from 1, in characters."""

    line: int
    column: int


START = Place(1, 1)


@dataclass(slots=True)
class Mistakes:
    """The mistakes of one file so far.

    Attributes:
        file: the file's name, for messages.
        found: place and issue of each.
    """

    file: str
    found: list[tuple[Place, Issue]] = field(default_factory=list)

    def add(self, place: Place, message: str, fix: str = "") -> None:
        """Note one mistake."""
        self.found.append((place, Issue(message=message, where=self.where(place), fix=fix)))

    def add_all(self, error: InputError, places: Mapping[str, Place]) -> None:
        """Note every issue of another check.

        Args:
            error: what that check raised.
            places: where each `Issue.where` of it lies in this file; START when it does not.
        """
        for issue in error.issues:
            self.found.append((places.get(issue.where, START), issue))

    def where(self, place: Place) -> str:
        """Return `file:line:column`, control characters of the file's name escaped."""
        name = show(self.file.encode("utf-8", "surrogateescape"))
        return f"{name}:{place.line}:{place.column}"

    def stop(self, summary: str) -> NoReturn:
        """Raise all mistakes found.

        Args:
            summary: what is wrong as a whole, lower case.

        Raises:
            InputError: always, with the issues in the order of the file.
        """
        ordered = [issue for _, issue in sorted(self.found, key=lambda item: item[0])]
        unique = tuple(dict.fromkeys(ordered))
        count = len(unique)
        tally = "1 mistake" if count == 1 else f"{count} mistakes"
        if count > MAX_ISSUES:
            tally += f", the first {MAX_ISSUES} shown"
        raise InputError(f"{summary}: {tally}", issues=unique[:MAX_ISSUES])

    def stop_if_any(self, summary: str) -> None:
        """Raise all mistakes found, if there are any.

        Raises:
            InputError: there are.
        """
        if self.found:
            self.stop(summary)
