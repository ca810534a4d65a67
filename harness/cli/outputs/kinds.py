"""The schema of every kind of output, and of every command's."""

from __future__ import annotations

import json
from collections.abc import Mapping

from harness.cli.outputs import (
    diff_kinds,
    host_kinds,
    keep_kinds,
    plan_kinds,
    project_kinds,
    run_kinds,
)
from harness.cli.outputs.pieces import Schema
from harness.cli.outputs.table import ERROR, OUTPUTS, type_of

_DIALECT = "https://json-schema.org/draft/2020-12/schema"

KINDS: Mapping[str, Schema] = {
    "setup": host_kinds.SETUP,
    "begun": project_kinds.BEGUN,
    "checked-recipe": project_kinds.CHECKED,
    "recipe": project_kinds.RECIPE,
    "plan": plan_kinds.PLAN,
    "decision": diff_kinds.DECISION,
    "ran": run_kinds.RAN,
    "run": run_kinds.RUN,
    "shown-run": run_kinds.SHOWN_RUN,
    "artifact": run_kinds.ARTIFACT,
    "diff": diff_kinds.DIFF,
    "applied": diff_kinds.APPLIED,
    "entry": host_kinds.ENTRY,
    "ledger-report": host_kinds.LEDGER_REPORT,
    "known-project": keep_kinds.KNOWN_PROJECT,
    "moved-project": keep_kinds.MOVED_PROJECT,
    "keys": keep_kinds.KEYS,
    "key-change": keep_kinds.KEY_CHANGE,
    "backup": keep_kinds.BACKUP,
    "restored": keep_kinds.RESTORED,
    "built-image": host_kinds.BUILT_IMAGE,
    "added-image": host_kinds.ADDED_IMAGE,
    "locked-image": host_kinds.LOCKED_IMAGE,
    "verified-image": host_kinds.VERIFIED_IMAGE,
    ERROR: project_kinds.ERROR,
}


def schema_of_kind(kind: str) -> Schema:
    """Return the schema of a kind, its `_type` included."""
    schema = KINDS[kind]
    if "oneOf" in schema and "properties" not in schema:
        return {**schema, "oneOf": [_with_type(kind, form) for form in schema["oneOf"]]}
    return _with_type(kind, schema)


def _with_type(kind: str, schema: Schema) -> Schema:
    member = {"description": "What this is, with its version.", "const": type_of(kind)}
    return {
        **schema,
        "properties": {"_type": member, **schema["properties"]},
        "required": ["_type", *schema["required"]],
    }


def schema_of_command(command: str) -> Schema:
    """Return the schema of what a command prints with `--json`.

    Args:
        command: the command's words, as `runs list`; or `error`, for what any prints on stderr.
    """
    output = OUTPUTS.get(command)
    kind = output.kind if output else ERROR
    schema = schema_of_kind(kind)
    head = {"$schema": _DIALECT, "title": f"harness {command}" if output else "an error"}
    if output and output.many:
        return {**head, "type": "array", "items": schema}
    return {**head, **schema}


def schema_bytes(command: str) -> bytes:
    """Return the published file of a command's schema."""
    return json.dumps(schema_of_command(command), indent=2, ensure_ascii=False).encode() + b"\n"
