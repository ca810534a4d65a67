"""The field `outputs` of a recipe: the files that are kept, and how large each may be."""

from __future__ import annotations

from harness.errors import InputError
from harness.model.files.fields import child, items, text
from harness.model.files.mistakes import Mistakes
from harness.model.files.recipe_rules import path_problem
from harness.model.files.strict_yaml import Node
from harness.model.recipe import Output
from harness.model.units import parse_size, spell_amount

_REPORT_TYPES = {"junit": "application/xml"}
"""The media type of a report that declares none."""


def read_outputs(node: Node | None, most: int, mistakes: Mistakes) -> tuple[Output, ...]:
    """Read the outputs.

    Args:
        node: the field; None when it is not there.
        most: the limit `artifact` of the recipe, in bytes.
        mistakes: takes what is wrong.
    """
    found: list[Output] = []
    for item in items(node):
        report = text(child(item, "report"))
        output = Output(
            name=text(child(item, "name")),
            path=text(child(item, "path")),
            report=report,
            type=text(child(item, "type"), _REPORT_TYPES.get(report, "")),
            max_bytes=_read_size(child(item, "max_size"), most, mistakes),
        )
        _check(item, output, found, mistakes)
        found.append(output)
    return tuple(found)


def _check(item: Node, output: Output, before: list[Output], mistakes: Mistakes) -> None:
    path_node = child(item, "path")
    problem = path_problem(output.path) if path_node else None
    if path_node and problem:
        mistakes.add(path_node.place, f"outputs: {problem.message}", problem.fix)
    for field, value in (("name", output.name), ("path", output.path)):
        node = child(item, field)
        if node and any(value == getattr(other, field) for other in before):
            mistakes.add(node.place, f"outputs: the {field} {value!r:.80} is here twice")


def _read_size(node: Node | None, most: int, mistakes: Mistakes) -> int:
    if node is None:
        return most
    try:
        size = parse_size(text(node))
    except InputError as error:
        mistakes.add(node.place, f"outputs: {error.message}", error.hint)
        return most
    if not 0 < size <= most:
        message = (
            f"outputs: max_size: expected 1B to {spell_amount('size', most)}, got {text(node)}"
        )
        mistakes.add(node.place, message, "the limit `artifact` of recipe and policy bounds it")
    return size
