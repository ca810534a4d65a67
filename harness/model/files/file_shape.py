"""The shape of a file: its nodes against the schema of its kind.

Rules: every mistake is noted with its place and what to write instead; an unknown field with the
known one it resembles. What is wrong is left out of the tree that is returned, so that a reader
can go on with what is right and note its own mistakes as well.

It reads the few keywords of JSON Schema that `harness.model.files.file_schemas` uses; a test
compares its verdicts with an independent validator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal

from harness.model.files.mistakes import START, Mistakes, Place
from harness.model.files.plain_scalar import Scalar
from harness.model.files.schema_parts import NAME_PATTERN, Schema
from harness.model.files.strict_yaml import Node
from harness.model.units import SIZE_PATTERN, suggest_size

_SHORT = 80
"""A longer text is not taken for an argv that lost its brackets."""

_TYPES: Mapping[str, str] = {
    "object": "fields",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}


def check_shape(node: Node, schema: Schema, mistakes: Mistakes, label: str = "") -> Node | None:
    """Check one node and all below it.

    Args:
        node: what the file has.
        schema: what it should have.
        mistakes: takes every mistake.
        label: the field's name, as `limits.memory`; empty for the whole file.

    Returns:
        The node without what is wrong (a wrong list item stays, marked broken); None when the node
        itself is wrong.
    """
    if node.broken:
        return None
    wanted = schema["type"]
    if wanted == "object" and isinstance(node.value, Mapping):
        return _check_fields(node, node.value, schema, mistakes, label)
    if wanted == "array" and isinstance(node.value, tuple):
        return _check_items(node, node.value, schema, mistakes, label)
    if isinstance(node.value, (Mapping, tuple)) or not _has_type(node.value, wanted):
        _note_type(node, schema, mistakes, label)
        return None
    problem = _scalar_problem(node.value, schema)
    if problem:
        mistakes.add(node.place, f"{label or 'file'}: {problem}", _fix(node.value, schema))
        return None
    return node


def _check_fields(
    node: Node, fields: Mapping[str, Node], schema: Schema, mistakes: Mistakes, label: str
) -> Node:
    known: Mapping[str, Schema] = schema.get("properties", {})
    other: Schema | bool = schema["additionalProperties"]
    good: dict[str, Node] = {}
    for name, child in fields.items():
        path = f"{label}.{name}" if label else name
        rule = known.get(name, other)
        if isinstance(rule, bool):
            _note_unknown(name, tuple(known), node.keys[name], mistakes, label)
            continue
        names: str = schema.get("propertyNames", {}).get("pattern", "")
        if not _matches(names, name):
            message = f"{label}: expected a name like {names[1:-1]}, got {name!r:.60}"
            mistakes.add(node.keys[name], message)
            continue
        checked = check_shape(child, rule, mistakes, path)
        if checked is not None:
            good[name] = checked
    for name in schema.get("required", ()):
        if name not in fields:
            _note_missing(name, known[name], node.place, mistakes, label)
    least, most = schema.get("minProperties", 0), schema.get("maxProperties", len(fields))
    if not least <= len(fields) <= most:
        bound = f"at least {least}" if len(fields) < least else f"at most {most}"
        mistakes.add(node.place, f"{label}: expected {bound} fields, got {len(fields)}")
    return Node(value=good, place=node.place, keys=node.keys)


def _check_items(
    node: Node, items: tuple[Node, ...], schema: Schema, mistakes: Mistakes, label: str
) -> Node:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(items))
    if not least <= len(items) <= most:
        bound = f"at least {least}" if len(items) < least else f"at most {most}"
        mistakes.add(node.place, f"{label}: expected {bound} items, got {len(items)}")
    good: list[Node] = []
    seen: set[object] = set()
    for number, item in enumerate(items[:most]):
        checked = check_shape(item, schema["items"], mistakes, f"{label}[{number}]")
        if checked and schema.get("uniqueItems"):
            if checked.value in seen:
                mistakes.add(item.place, f"{label}[{number}]: {checked.value!r:.60} is here twice")
            seen.add(checked.value)
        good.append(checked or Node(value=None, place=item.place, broken=True))
    return Node(value=tuple(good), place=node.place)


def _has_type(value: Scalar, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if isinstance(value, int):
        return wanted in ("integer", "number")
    if isinstance(value, Decimal):
        return wanted == "number"
    return isinstance(value, str) and wanted == "string"


def _matches(pattern: str, text: str) -> bool:
    # a schema's `^...$` means the whole text (ECMA-262); Python's `$` would let a newline follow
    return not pattern or re.fullmatch(pattern[1:-1], text) is not None


def _scalar_problem(value: Scalar, schema: Schema) -> str:
    """Return what is wrong with a scalar of the right type; empty when nothing is."""
    if "const" in schema and value != schema["const"]:
        return f"expected {schema['const']}, got {value!r:.40}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected {_one_of(schema['enum'])}, got {value!r:.60}"
    if isinstance(value, str):
        return _text_problem(value, schema)
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        least, most = schema.get("minimum", value), schema.get("maximum", value)
        if not Decimal(str(least)) <= value <= Decimal(str(most)):
            bound = f"at least {least}" if value < least else f"at most {most}"
            return f"expected {bound}, got {value}"
    return ""


def _text_problem(value: str, schema: Schema) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(value))
    if len(value) < least:
        return "expected text, got nothing"
    if len(value) > most:
        return f"expected at most {most} characters, got {len(value)}"
    if not _matches(schema.get("pattern", ""), value):
        examples = schema.get("examples")
        like = f"something like {examples[0]}" if examples else f"text like {schema['pattern']}"
        return f"expected {like}, got {value!r:.60}"
    return ""


def _fix(value: Scalar, schema: Schema) -> str:
    if schema.get("pattern") == SIZE_PATTERN and isinstance(value, str):
        return suggest_size(value)
    if "enum" in schema:
        return _nearest(str(value), tuple(schema["enum"]))
    return ""


def _note_type(node: Node, schema: Schema, mistakes: Mistakes, label: str) -> None:
    wanted = _TYPES[schema["type"]]
    fix = ""
    if schema["type"] == "string" and isinstance(node.value, (bool, int, Decimal)):
        text = str(node.value).lower() if isinstance(node.value, bool) else str(node.value)
        if _scalar_problem(text, schema):
            fix = f"write something like {schema['examples'][0]}" if "examples" in schema else ""
        else:
            fix = f'quote it: "{text}"'
    elif schema["type"] == "array" and isinstance(node.value, str) and "examples" in schema:
        fix = f"write a list: {json.dumps(_listed(node.value, schema))}"
    elif "examples" in schema:
        fix = f"write something like {json.dumps(schema['examples'][0])}"
    mistakes.add(node.place, f"{label or 'file'}: expected {wanted}, got {_describe(node)}", fix)


def _listed(text: str, schema: Schema) -> object:
    """Return a text as the list that was probably meant: an argv by its words, else one item."""
    if schema.get("items", {}).get("type") != "string" or len(text) > _SHORT:
        return schema["examples"][0]
    is_argv = not schema.get("uniqueItems")
    return text.split() if is_argv and text.split() else [text]


def _describe(node: Node) -> str:
    if node.value is None:
        return "nothing"
    if isinstance(node.value, Mapping):
        return "fields"
    if isinstance(node.value, tuple):
        return "a list"
    if isinstance(node.value, bool):
        return str(node.value).lower()
    if isinstance(node.value, str):
        return f"the text {node.value!r:.60}"
    return f"the number {node.value}"


def _note_unknown(
    name: str, known: tuple[str, ...], place: Place, mistakes: Mistakes, label: str
) -> None:
    where = f" in {label}" if label else ""
    fix = _nearest(name, known) or f"known here: {', '.join(known)}"
    mistakes.add(place, f"unknown field {name!r:.60}{where}", fix)


def _note_missing(name: str, rule: Schema, place: Place, mistakes: Mistakes, label: str) -> None:
    where = f" in {label}" if label else ""
    purpose = str(rule["description"]).partition(". ")[0].rstrip(".")
    mistakes.add(place, f"field {name!r} is missing{where}", f"add it: {purpose}")


def _nearest(name: str, known: tuple[str, ...]) -> str:
    import difflib  # noqa: PLC0415 - only for a mistyped name

    close = difflib.get_close_matches(name[:60].lower(), known, n=1)
    return f"did you mean {close[0]!r}?" if close else ""


def _one_of(values: list[str]) -> str:
    return f"one of {', '.join(values)}" if len(values) > 1 else str(values[0])


def check_name(name: str, mistakes: Mistakes) -> None:
    """Check the name that a recipe or policy has by its file.

    Args:
        name: the file's stem.
        mistakes: takes a stem that is no name.
    """
    if not _matches(NAME_PATTERN, name):
        message = "file name: expected lower-case letters, digits, '.', '_', '-', then .yaml"
        mistakes.add(START, f"{message}, got {name!r:.80}", "rename the file")
