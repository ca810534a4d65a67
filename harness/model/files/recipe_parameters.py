"""Parameters of a recipe: what may be chosen for a run, and where a value goes.

Rules:
    * A value is one line. With `choices` it is one of them; with `pattern` it matches as a whole;
      with neither it can't start with `-`, so that it can't become an option.
    * Every value, defaults too, passes the same checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import InputError, Issue
from harness.model.files.fields import child, children, text, texts
from harness.model.files.flat_pattern import FlatPattern, parse_pattern
from harness.model.files.mistakes import START, Mistakes
from harness.model.files.strict_yaml import Node

MAX_VALUE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter.

    Attributes:
        name: its name.
        description: what it is for.
        default: the value when none is chosen; None: one must be.
        choices: the only values; empty: any.
        pattern: what a value must match; None: anything.
    """

    name: str
    description: str
    default: str | None
    choices: tuple[str, ...]
    pattern: FlatPattern | None

    def problem(self, value: str) -> str:
        """Return what is wrong with a value; empty when nothing is."""
        if len(value) > MAX_VALUE or not value.isprintable():
            return f"expected one line of at most {MAX_VALUE} characters"
        if self.choices and value not in self.choices:
            return f"expected one of {', '.join(self.choices)}, got {value!r:.80}"
        if self.pattern and not self.pattern.matches(value):
            return f"expected a match of {self.pattern.text}, got {value!r:.80}"
        if value.startswith("-") and not self.choices and not self.pattern:
            return f"{value!r:.80} could become an option; only choices or a pattern may allow it"
        return ""


def read_parameters(node: Node | None, mistakes: Mistakes) -> dict[str, Parameter]:
    """Read the field `parameters`; a parameter with mistakes is read as far as it goes."""
    found: dict[str, Parameter] = {}
    for name, item in children(node).items():
        pattern_node = child(item, "pattern")
        pattern = None
        if pattern_node is not None:
            try:
                pattern = parse_pattern(text(pattern_node))
            except InputError as error:
                label = f"parameters.{name}.{error.message}"
                mistakes.add(pattern_node.place, label, "characters, classes and counts only")
        default = child(item, "default")
        parameter = Parameter(
            name=name,
            description=text(child(item, "description")),
            default=None if default is None else text(default),
            choices=tuple(value for value, _ in texts(child(item, "choices"))),
            pattern=pattern,
        )
        found[name] = parameter
        given = [] if default is None else [(text(default), default.place)]
        for value, place in (*given, *texts(child(item, "choices"))):
            problem = parameter.problem(value)
            if problem:
                mistakes.add(place, f"parameters.{name}: {problem}")
    return found


def default_values(parameters: Mapping[str, Parameter]) -> dict[str, str]:
    """Return the value of every parameter that has one by default."""
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if parameter.default is not None
    }


def choose_values(
    parameters: Mapping[str, Parameter], chosen: Mapping[str, str], mistakes: Mistakes
) -> dict[str, str]:
    """Return the value of every parameter that has a good one.

    Args:
        parameters: what the recipe declares.
        chosen: what a person gave, by name.
        mistakes: takes what is wrong, at `--param NAME`.
    """
    for name in chosen:
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            _note(mistakes, name, "this recipe has no such parameter", f"it has: {known}")
    values: dict[str, str] = {}
    for name, parameter in parameters.items():
        value = chosen.get(name, parameter.default)
        if value is None:
            _note(mistakes, name, "a value is needed", f"--param {name}=VALUE")
            continue
        problem = parameter.problem(value) if name in chosen else ""
        if problem:
            _note(mistakes, name, problem, "")
        else:
            values[name] = value
    return values


def _note(mistakes: Mistakes, name: str, message: str, fix: str) -> None:
    mistakes.found.append((START, Issue(message=message, where=f"--param {name:.64}", fix=fix)))
