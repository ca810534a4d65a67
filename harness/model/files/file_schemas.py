"""The fields of the files people write, as JSON Schema (draft 2020-12).

One description serves four readers: `harness.model.files.file_shape` checks files by it, editors
complete and check by its published form in `docs/schemas/`, the tables of the reference pages are
made from it, and tests compare it with an independent validator.

It says what can be said of one field alone. What concerns several (`writable` and `.git`, a limit
and the policy above it) is in the reader of each file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.model.files.policy_schema import HOST, POLICY
from harness.model.files.recipe_schema import RECIPE
from harness.model.files.schema_parts import DIALECT, VERSION, Schema, object_field, text_field

_FOLDER = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,9}$"

PROJECT: Schema = {
    "$schema": DIALECT,
    "$id": "urn:sealed-harness:schema:project-v1",
    "title": "Project",
    **object_field(
        "Marks a folder as a project.",
        {
            "version": VERSION,
            "name": text_field(
                "Name of the project, for people.",
                pattern="^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$",
                examples=["my-project"],
            ),
            "recipes": text_field(
                "Folder of the recipes, from here.",
                pattern=_FOLDER,
                default="recipes",
                examples=["recipes"],
            ),
            "policies": text_field(
                "Folder of the policies, from here.",
                pattern=_FOLDER,
                default="policies",
                examples=["policies"],
            ),
        },
        ("version", "name"),
    ),
}

SCHEMAS: Mapping[str, Schema] = {
    "recipe": RECIPE,
    "policy": POLICY,
    "host": HOST,
    "project": PROJECT,
}
"""By the kind of file."""


def schema_bytes(kind: str) -> bytes:
    """Return the published form of a schema: indented JSON with a newline at the end.

    Args:
        kind: a key of `SCHEMAS`.
    """
    return (json.dumps(SCHEMAS[kind], indent=2, ensure_ascii=False) + "\n").encode()
