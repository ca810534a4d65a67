"""The pieces that output schemas are built of (JSON Schema, draft 2020-12).

Every member has a description. An object is closed: what it may hold is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_DIGEST = "^sha256:[0-9a-f]{64}$"
_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$"
_BASE64 = "^[A-Za-z0-9+/]*={0,2}$"


def text(about: str) -> Schema:
    """Return any text."""
    return {"description": about, "type": "string"}


def word(about: str, *values: str) -> Schema:
    """Return one of some words."""
    return {"description": about, "enum": list(values)}


def whole(about: str, *, least: int = 0) -> Schema:
    """Return a whole number, from 0 unless told otherwise."""
    return {"description": about, "type": "integer", "minimum": least}


def flag(about: str) -> Schema:
    """Return true or false."""
    return {"description": about, "type": "boolean"}


def digest(about: str) -> Schema:
    """Return a full digest."""
    return {"description": about, "type": "string", "pattern": _DIGEST}


def moment(about: str) -> Schema:
    """Return an RFC 3339 time in UTC."""
    return {"description": about, "type": "string", "pattern": _TIME}


def or_empty(schema: Schema) -> Schema:
    """Return the same, or an empty text where there is none."""
    about = schema["description"]
    rest = {name: value for name, value in schema.items() if name != "description"}
    return {"description": about, "anyOf": [rest, {"const": ""}]}


def or_null(schema: Schema) -> Schema:
    """Return the same, or null where there is none."""
    about = schema["description"]
    rest = {name: value for name, value in schema.items() if name != "description"}
    return {"description": about, "anyOf": [rest, {"type": "null"}]}


def amount(about: str) -> Schema:
    """Return a whole number, or the word `unavailable` where the host can't show it."""
    return {
        "description": about,
        "anyOf": [{"type": "integer", "minimum": 0}, {"const": "unavailable"}],
    }


def many(about: str, item: Schema) -> Schema:
    """Return a list."""
    return {"description": about, "type": "array", "items": item}


def by_name(about: str, value: Schema) -> Schema:
    """Return an object whose member names are somebody else's: variables, parameters."""
    return {"description": about, "type": "object", "additionalProperties": value}


def members(
    about: str, always: Mapping[str, Schema], sometimes: Mapping[str, Schema] | None = None
) -> Schema:
    """Return a closed object.

    Args:
        about: what it is.
        always: members that are always there.
        sometimes: members that may be missing.
    """
    return {
        "description": about,
        "type": "object",
        "properties": {**always, **(sometimes or {})},
        "required": list(always),
        "additionalProperties": False,
    }


def at_path(about: str, always: Mapping[str, Schema]) -> Schema:
    """Return a closed object about one path: `path`, or `path_b64` when it is not UTF-8."""
    path = {
        "path": text("The path, from the project's root."),
        "path_b64": {
            "description": "The path's bytes in base64, when they are not UTF-8.",
            "type": "string",
            "pattern": _BASE64,
        },
    }
    schema = members(about, always, path)
    return {**schema, "oneOf": [{"required": ["path"]}, {"required": ["path_b64"]}]}


def coded(about: str) -> Schema:
    """Return bytes in base64."""
    return {"description": about, "type": "string", "pattern": _BASE64}
