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
from typing import Any, TypeAlias

from harness.model.limits import FLOOR, SPELLING, Limits, spell_limit
from harness.model.recipe import KINDS
from harness.model.units import SIZE_PATTERN, TIME_PATTERN, Unit

Schema: TypeAlias = Mapping[str, Any]

NAME_PATTERN = "^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$"
PARAMETER_PATTERN = "^[a-z][a-z0-9_]{0,62}$"
ENV_PATTERN = "^[A-Za-z_][A-Za-z0-9_]{0,127}$"
_LINE = "^[^\\n\\t]+$"
_WORKSPACES = ("auto", "overlay", "copy")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"

_LIMIT_WORDS: Mapping[str, str] = {
    "cpu_millis": "Processors, at most three digits after the point.",
    "memory_bytes": "Memory. Swap is never added.",
    "pids": "Processes and threads together.",
    "open_files": "Open files of one process.",
    "file_bytes": "Size of any one file.",
    "tmp_bytes": "Size of `/tmp`, held in memory.",
    "shm_bytes": "Size of `/dev/shm`, held in memory.",
    "workspace_bytes": "What a run may add to the workspace; every new name counts 4 KiB at least.",
    "output_bytes": "stdout and stderr together; reaching it ends the run.",
    "wall_ms": "The whole operation, by the clock on the wall.",
    "idle_ms": "The longest silence on both streams; without it silence is no matter.",
}


def _amount(unit: Unit, least: int) -> dict[str, Any]:
    if unit == "size":
        return {"type": "string", "pattern": SIZE_PATTERN, "examples": ["512MiB"]}
    if unit == "time":
        return {"type": "string", "pattern": TIME_PATTERN, "examples": ["10m"]}
    if unit == "cpus":
        return {"type": "number", "minimum": 0.01, "maximum": 256, "examples": [1.5]}
    return {"type": "integer", "minimum": least, "examples": [512]}


def _limits(description: str, *, defaults: bool) -> dict[str, Any]:
    base = Limits()
    properties: dict[str, Any] = {}
    for name, (word, unit) in SPELLING.items():
        field = {"description": _LIMIT_WORDS[name], **_amount(unit, FLOOR[name])}
        value = getattr(base, name)
        if defaults and value:
            is_text = unit in ("size", "time")
            field["default"] = spell_limit(name, value) if is_text else value
        if defaults and unit == "cpus":
            field["default"] = value // 1000
        properties[word] = field
    return _object(description, properties)


def _object(
    description: str, properties: Mapping[str, Any], required: tuple[str, ...] = ()
) -> dict[str, Any]:
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _text(description: str, **rules: Any) -> dict[str, Any]:
    return {"description": description, "type": "string", **rules}


def _list(description: str, items: Mapping[str, Any], **rules: Any) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": dict(items), **rules}


def _patterns(description: str, example: list[str]) -> dict[str, Any]:
    items = {"type": "string", "minLength": 1, "maxLength": 1024, "examples": [example[0]]}
    return _list(description, items, maxItems=256, uniqueItems=True, examples=[example])


def _switch(description: str, *, default: bool) -> dict[str, Any]:
    return {"description": description, "type": "boolean", "default": default}


_VERSION = {"description": "Version of this format.", "type": "integer", "const": 1}
_WORKSPACE = _text(
    "How the project's files are presented: `overlay` (a layer over a read-only snapshot), `copy`, "
    "or `auto`: overlay where the host can.",
    enum=list(_WORKSPACES),
    default="auto",
)

_PARAMETER = _object(
    "One value that a person may choose for a run.",
    {
        "description": _text("What it is for.", pattern=_LINE, maxLength=200),
        "default": _text("The value when none is given. Without it one must be.", maxLength=256),
        "choices": _list(
            "The only values allowed.",
            {"type": "string", "minLength": 1, "maxLength": 256},
            minItems=1,
            maxItems=64,
            uniqueItems=True,
            examples=[["fast", "full"]],
        ),
        "pattern": _text(
            "What a value must match as a whole: a regular expression of characters, classes and "
            "counts, without groups and `|`.",
            minLength=1,
            maxLength=200,
            examples=["[a-z0-9_/.]+"],
        ),
    },
)

_STEP = _object(
    "One command.",
    {
        "name": _text("For people and reports.", pattern=_LINE, maxLength=100),
        "run": _list(
            "Program and arguments, each an item of its own. No shell reads them. `${param.NAME}` "
            "is replaced by a parameter's value and never makes a new item.",
            {"type": "string", "maxLength": 65_536, "examples": ["pytest"]},
            minItems=1,
            maxItems=1000,
            examples=[["python3", "-m", "pytest"]],
        ),
    },
    ("run",),
)

_OUTPUT = _object(
    "A file that the run leaves behind.",
    {
        "name": _text(
            "What it is called in the record.", pattern=NAME_PATTERN, examples=["results"]
        ),
        "path": _text("One path in the workspace.", minLength=1, maxLength=1024),
        "report": _text(
            "`junit`: the file holds test results, and they are counted.", enum=["junit"]
        ),
    },
    ("name", "path"),
)

RECIPE: Schema = {
    "$schema": _DIALECT,
    "$id": "urn:sealed-harness:schema:recipe-v1",
    "title": "Recipe",
    **_object(
        "What to run on a project, in a sealed, offline worker.",
        {
            "version": _VERSION,
            "kind": _text("What the run is for.", enum=list(KINDS)),
            "description": _text(
                "Why it exists, in one line; an approver reads it.", pattern=_LINE, maxLength=500
            ),
            "image": _text(
                "Name of a locked worker image.", pattern=NAME_PATTERN, examples=["python"]
            ),
            "policy": _text(
                "The policy that governs it: the name of a file in the policies folder.",
                pattern=NAME_PATTERN,
                default="default",
                examples=["default"],
            ),
            "parameters": {
                "description": "Values that a person may choose for a run, by name.",
                "type": "object",
                "propertyNames": {"pattern": PARAMETER_PATTERN},
                "additionalProperties": _PARAMETER,
                "maxProperties": 32,
            },
            "steps": _list(
                "Commands, in order. The first that fails ends the run.",
                _STEP,
                minItems=1,
                maxItems=64,
                examples=[[{"run": ["pytest", "-q"]}]],
            ),
            "inputs": _object(
                "Which of the project's files the worker may see.",
                {
                    "include": _patterns(
                        "gitignore patterns of files that enter; without it all do.", ["src/**"]
                    ),
                    "exclude": _patterns("gitignore patterns of files that stay out.", ["*.log"]),
                },
            ),
            "writable": _patterns(
                "gitignore patterns of the paths whose changes may be imported. Without it none.",
                ["src/**"],
            ),
            "outputs": _list("Files to keep as artifacts.", _OUTPUT, maxItems=64),
            "env": {
                "description": "Environment of every step, beside the fixed one.",
                "type": "object",
                "propertyNames": {"pattern": ENV_PATTERN},
                "additionalProperties": {"type": "string", "maxLength": 32_768, "examples": ["1"]},
                "maxProperties": 128,
                "examples": [{"CI": "true"}],
            },
            "limits": _limits("Tighter limits than the policy's.", defaults=False),
            "workspace": _WORKSPACE,
        },
        ("version", "kind", "description", "image", "steps"),
    ),
}


def _isolation(*, host: bool) -> dict[str, Any]:
    limits = "Upper bounds; what is below may tighten them."
    return _object(
        "What any worker gets at most." if host else "What a worker gets; part of the seal.",
        {
            "limits": _limits(limits, defaults=not host),
            "tmp_exec": _switch("Programs in `/tmp` may be executed.", default=True),
            "allow_scripts": _switch("A step may be a shell or inline source.", default=host),
            "admit_secrets": _patterns(
                "Patterns of secret-looking files that may enter all the same; `*` is any. "
                + ("Without it any." if host else "Without it none."),
                ["tests/keys/*"],
            ),
            "workspace": _WORKSPACE,
        },
    )


_COUNT = {"type": "integer", "minimum": 1, "maximum": 16}

_RULE = _object(
    "A higher threshold for a part of the tree.",
    {
        "paths": {
            **_patterns("gitignore patterns of the paths it is for.", ["src/auth/**"]),
            "minItems": 1,
        },
        "approvals": {"description": "Persons who must approve.", **_COUNT},
        "reviewers": _list(
            "The persons who count; without it all in the reviewers file.",
            {"type": "string", "minLength": 1, "maxLength": 255},
            minItems=1,
            maxItems=64,
            uniqueItems=True,
            examples=[["ada@example.org"]],
        ),
    },
    ("paths", "approvals"),
)

POLICY: Schema = {
    "$schema": _DIALECT,
    "$id": "urn:sealed-harness:schema:policy-v1",
    "title": "Policy",
    **_object(
        "What a worker gets, and who must sign what.",
        {
            "version": _VERSION,
            "isolation": _isolation(host=False),
            "approval": _object(
                "Who must sign what; part of the plan.",
                {
                    "plan": {
                        "description": "Persons who must approve a plan before it runs.",
                        **_COUNT,
                        "default": 1,
                    },
                    "diff": {
                        "description": "Persons who must approve a diff before it lands.",
                        **_COUNT,
                        "default": 1,
                    },
                    "rules": _list("Higher thresholds for diffs, by path.", _RULE, maxItems=64),
                    "exclude_requester": _switch(
                        "The person who asked for the run does not count.", default=False
                    ),
                    "valid_for": _text(
                        "How long a plan and an approval stay good, at most 30d.",
                        pattern=TIME_PATTERN,
                        default="24h",
                        examples=["24h"],
                    ),
                    "reviewers": _text(
                        "Name of the reviewers file beside this one (OpenSSH allowed_signers).",
                        pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
                        examples=["reviewers"],
                    ),
                    "throwaway": _switch(
                        "For a demonstration key; refused outside the demo project.", default=False
                    ),
                },
                ("reviewers",),
            ),
        },
        ("version", "approval"),
    ),
}

HOST: Schema = {
    "$schema": _DIALECT,
    "$id": "urn:sealed-harness:schema:host-v1",
    "title": "Host policy",
    **_object(
        "What any worker on this host gets at most.",
        {"version": _VERSION, "isolation": _isolation(host=True)},
        ("version", "isolation"),
    ),
}

_FOLDER = "^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,99}){0,9}$"

PROJECT: Schema = {
    "$schema": _DIALECT,
    "$id": "urn:sealed-harness:schema:project-v1",
    "title": "Project",
    **_object(
        "Marks a folder as a project.",
        {
            "version": _VERSION,
            "name": _text(
                "Name of the project, for people.",
                pattern="^[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$",
                examples=["my-project"],
            ),
            "recipes": _text(
                "Folder of the recipes, from here.",
                pattern=_FOLDER,
                default="recipes",
                examples=["recipes"],
            ),
            "policies": _text(
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
