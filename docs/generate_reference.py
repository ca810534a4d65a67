"""Writes what the documentation takes from the code: schemas and field tables.

Run `make reference` after a change of `harness/model/files/file_schemas.py`; a test fails until it
was done. Tables stand between `<!-- fields: KIND PATH -->` and `<!-- end -->`.
"""  # noqa: INP001 - a script beside the pages it writes, not a package

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.model.files.file_schemas import SCHEMAS, schema_bytes

DOCS = Path(__file__).resolve().parent
PAGES = ("reference/recipe.md", "reference/policy.md")

_BLOCK = re.compile(r"(<!-- fields: (\w+) (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_TYPES = {"object": "fields", "array": "list", "string": "text", "integer": "whole number"}


def render_page(text: str) -> str:
    """Return a page with its tables as the schemas have them now."""
    return _BLOCK.sub(lambda match: match[1] + _table(match[2], match[3]) + match[4], text)


def render_all() -> Iterator[tuple[Path, bytes]]:
    """Yield every generated file with the bytes it should have."""
    for kind in SCHEMAS:
        yield DOCS / "schemas" / f"{kind}-v1.json", schema_bytes(kind)
    for page in PAGES:
        path = DOCS / page
        yield path, render_page(path.read_text()).encode()


def _table(kind: str, path: str) -> str:
    schema: Mapping[str, Any] = SCHEMAS[kind]
    for name in () if path == "." else path.split("."):
        schema = schema["properties"][name]
        schema = schema["items"] if schema["type"] == "array" else schema
        other = schema.get("additionalProperties")
        schema = other if isinstance(other, Mapping) and "properties" in other else schema
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema["properties"].items():
        needed = "**required**" if name in schema["required"] else ""
        default = f"`{_show(field['default'])}`" if "default" in field else needed
        rows.append(f"| `{name}` | {_type(field)} | {default} | {field['description']} |")
    return "\n".join(rows) + "\n"


def _show(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _type(field: Mapping[str, Any]) -> str:
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    kind = _TYPES.get(field["type"], str(field["type"]))
    example = f" as `{_show(field['examples'][0])}`" if "examples" in field else ""
    return kind + example


if __name__ == "__main__":
    for target, content in render_all():
        target.write_bytes(content)
