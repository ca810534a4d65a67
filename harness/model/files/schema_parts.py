"""The parts that the schemas of people's files are made of (JSON Schema, draft 2020-12).

`harness.model.files.file_shape` reads the keywords that are used here, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from harness.model.limits import FLOOR, SPELLING, Limits, spell_limit
from harness.model.units import SIZE_PATTERN, TIME_PATTERN, Unit

Schema: TypeAlias = Mapping[str, Any]

NAME_PATTERN = "^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$"
PARAMETER_PATTERN = "^[a-z][a-z0-9_]{0,62}$"
CELL_VALUE_PATTERN = "^[A-Za-z0-9._-]{1,64}$"
ENV_PATTERN = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"
LINE_PATTERN = "^[^\\n\\t]+$"
WORKSPACES = ("auto", "overlay", "copy")
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_LIMIT_WORDS: Mapping[str, str] = {
    "cpu_millis": "Processors, at most three digits after the point.",
    "memory_bytes": "Memory. Swap is never added.",
    "pids": "Processes and threads together.",
    "open_files": "Open files of one process.",
    "file_bytes": "Size of any one file.",
    "tmp_bytes": "Size of `/tmp`, held in memory.",
    "shm_bytes": "Size of `/dev/shm`, held in memory.",
    "workspace_bytes": "What a run may add to the workspace; every new name counts 4 KiB at least.",
    "artifact_bytes": "Any one output that is kept; a larger one fails the run.",
    "output_bytes": "stdout and stderr together; reaching it ends the run.",
    "wall_ms": "The whole operation, by the clock on the wall.",
    "idle_ms": "The longest silence on both streams; without it silence is no matter.",
}


def amount_field(unit: Unit, least: int) -> dict[str, Any]:
    """Return an amount of a unit, `least` for a plain count."""
    if unit == "size":
        return {"type": "string", "pattern": SIZE_PATTERN, "examples": ["512MiB"]}
    if unit == "time":
        return {"type": "string", "pattern": TIME_PATTERN, "examples": ["10m"]}
    if unit == "cpus":
        return {"type": "number", "minimum": 0.01, "maximum": 256, "examples": [1.5]}
    return {"type": "integer", "minimum": least, "examples": [512]}


def limits_field(description: str, *, defaults: bool) -> dict[str, Any]:
    """Return the field `limits`; with `defaults` each shows what it is when nobody says."""
    base = Limits()
    properties: dict[str, Any] = {}
    for name, (word, unit) in SPELLING.items():
        field = {"description": _LIMIT_WORDS[name], **amount_field(unit, FLOOR[name])}
        value = getattr(base, name)
        if defaults and value:
            is_text = unit in ("size", "time")
            field["default"] = spell_limit(name, value) if is_text else value
        if defaults and unit == "cpus":
            field["default"] = value // 1000
        properties[word] = field
    return object_field(description, properties)


def object_field(
    description: str, properties: Mapping[str, Any], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a mapping of known fields, and of no others."""
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def text_field(description: str, **rules: Any) -> dict[str, Any]:
    """Return a text, with further keywords of JSON Schema."""
    return {"description": description, "type": "string", **rules}


def list_field(description: str, items: Mapping[str, Any], **rules: Any) -> dict[str, Any]:
    """Return a list of one kind of item, with further keywords of JSON Schema."""
    return {"description": description, "type": "array", "items": dict(items), **rules}


def patterns_field(description: str, example: list[str]) -> dict[str, Any]:
    """Return a list of gitignore patterns."""
    items = {"type": "string", "minLength": 1, "maxLength": 1024, "examples": [example[0]]}
    return list_field(description, items, maxItems=256, uniqueItems=True, examples=[example])


def switch_field(description: str, *, default: bool) -> dict[str, Any]:
    """Return a boolean with its default."""
    return {"description": description, "type": "boolean", "default": default}


VERSION = {"description": "Version of this format.", "type": "integer", "const": 1}
WORKSPACE = text_field(
    "How the project's files are presented: `overlay` (a layer over a read-only snapshot), `copy`, "
    "or `auto`: overlay where the host can.",
    enum=list(WORKSPACES),
    default="auto",
)
