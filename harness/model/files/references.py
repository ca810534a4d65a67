"""References in a recipe's texts: `${param.NAME}` and `${matrix.KEY}`.

Rules:
    * A reference is replaced inside an argument, a variable's value, or the image's name. It never
      makes a new argument.
    * `$${param.` stands for the text `${param.`, and `$${matrix.` for `${matrix.`; every other `$`
      is left alone.
    * What is declared is used: a value that changes nothing only looks as if it did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.model.files.mistakes import Mistakes, Place

_REFERENCE = re.compile(r"\$\$\{(?:param|matrix)\.|\$\{(param|matrix)\.([^}\s]{0,64})(\}?)")
_WORDS = {"param": "parameter", "matrix": "matrix key"}


@dataclass(slots=True)
class Substitution:
    """Puts values in the place of references, and remembers which were used.

    Attributes:
        known: the names that the recipe declares, by `param` and `matrix`.
        values: the value of each name; a name without one keeps its reference.
        mistakes: takes references to names that are not declared.
        used: the names that were referred to.
    """

    known: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Mapping[str, str]]
    mistakes: Mistakes
    used: dict[str, set[str]] = field(default_factory=lambda: {word: set() for word in _WORDS})

    def fill(self, value: str, place: Place, label: str) -> str:
        """Return a text with its references replaced.

        Args:
            value: the text.
            place: where it stands.
            label: the name of its field.
        """

        def put(match: re.Match[str]) -> str:
            space, name, closed = match[1], match[2], match[3]
            if space is None:
                return match[0][1:]
            if not closed or name not in self.known[space]:
                known = ", ".join(self.known[space]) or "none"
                trouble = f"unknown {_WORDS[space]}" if closed else f"no '}}' after {_WORDS[space]}"
                self.mistakes.add(place, f"{label}: {trouble} {name!r}", f"declared: {known}")
            self.used[space].add(name)
            return self.values[space].get(name, match[0])

        return _REFERENCE.sub(put, value)


def refers(value: str) -> bool:
    """Tell whether a text holds a reference."""
    return any(match[1] is not None for match in _REFERENCE.finditer(value))
