"""The fields of a recipe file, as JSON Schema."""

from __future__ import annotations

from harness.model.files.schema_parts import (
    CELL_VALUE_PATTERN,
    DIALECT,
    ENV_PATTERN,
    LINE_PATTERN,
    NAME_PATTERN,
    PARAMETER_PATTERN,
    VERSION,
    WORKSPACE,
    Schema,
    limits_field,
    list_field,
    object_field,
    patterns_field,
    text_field,
)
from harness.model.recipe import KINDS
from harness.model.units import SIZE_PATTERN, TIME_PATTERN

IMAGE_PATTERN = "^([a-z0-9._-]|[$][{]matrix[.][a-z][a-z0-9_]{0,62}[}])+$"
"""A name, or what becomes one when a cell's values are filled in."""

MEDIA_PATTERN = "^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$"
"""RFC 6838, section 4.2, in lower case and without parameters."""

_PARAMETER = object_field(
    "One value that a person may choose for a run.",
    {
        "description": text_field("What it is for.", pattern=LINE_PATTERN, maxLength=200),
        "default": text_field(
            "The value when none is given. Without it one must be.", maxLength=256
        ),
        "choices": list_field(
            "The only values allowed.",
            {"type": "string", "minLength": 1, "maxLength": 256},
            minItems=1,
            maxItems=64,
            uniqueItems=True,
            examples=[["fast", "full"]],
        ),
        "pattern": text_field(
            "What a value must match as a whole: a regular expression of characters, classes and "
            "counts, without groups and `|`.",
            minLength=1,
            maxLength=200,
            examples=["[a-z0-9_/.]+"],
        ),
    },
)

_MATRIX = {
    "description": "Values by key; the recipe runs once for every combination of them, at most 64 "
    "times. `${matrix.KEY}` stands for a value in steps, in env and in the image's name.",
    "type": "object",
    "propertyNames": {"pattern": PARAMETER_PATTERN},
    "properties": {
        "exclude": list_field(
            "Combinations to leave out: each entry those that have all its values.",
            {
                "description": "Values that a combination must have to be left out.",
                "type": "object",
                "propertyNames": {"pattern": PARAMETER_PATTERN},
                "additionalProperties": {
                    "type": "string",
                    "pattern": CELL_VALUE_PATTERN,
                    "examples": ["3.11"],
                },
                "minProperties": 1,
                "maxProperties": 8,
                "examples": [{"python": "3.11"}],
            },
            minItems=1,
            maxItems=64,
            examples=[[{"python": "3.11", "mode": "full"}]],
        ),
    },
    "additionalProperties": list_field(
        "The values of one key.",
        {"type": "string", "pattern": CELL_VALUE_PATTERN, "examples": ["3.11"]},
        minItems=1,
        maxItems=64,
        uniqueItems=True,
        examples=[["3.11", "3.12"]],
    ),
    "minProperties": 1,
    "maxProperties": 8,
    "examples": [{"python": ["3.11", "3.12"]}],
}

_STEP = object_field(
    "One command.",
    {
        "name": text_field("For people and reports.", pattern=LINE_PATTERN, maxLength=100),
        "run": list_field(
            "Program and arguments, each an item of its own. No shell reads them. `${param.NAME}` "
            "and `${matrix.KEY}` are replaced by values and never make a new item.",
            {"type": "string", "maxLength": 65_536, "examples": ["pytest"]},
            minItems=1,
            maxItems=1000,
            examples=[["python3", "-m", "pytest"]],
        ),
        "timeout": text_field(
            "How long it may take. Then its processes get SIGTERM and, 3 s later, SIGKILL, and "
            "the run ends with the outcome `timeout`. Without it only the limit `wall` counts.",
            pattern=TIME_PATTERN,
            examples=["5m"],
        ),
        "allowed_exit_codes": list_field(
            "Exit codes after which the next step starts and the run can pass. Without it 0. "
            "The end by a signal is never allowed.",
            {"type": "integer", "minimum": 0, "maximum": 255, "examples": [0]},
            minItems=1,
            maxItems=256,
            uniqueItems=True,
            examples=[[0, 5]],
        ),
    },
    ("run",),
)

_OUTPUT = object_field(
    "A file that the run leaves behind.",
    {
        "name": text_field(
            "What it is called in the record.", pattern=NAME_PATTERN, examples=["results"]
        ),
        "path": text_field("One path in the workspace.", minLength=1, maxLength=1024),
        "report": text_field(
            "`junit`: the file holds test results, and they are counted.", enum=["junit"]
        ),
        "type": text_field(
            "Its media type, for whoever opens it. Declared and recorded, never checked.",
            pattern=MEDIA_PATTERN,
            examples=["application/json"],
        ),
        "max_size": text_field(
            "Its largest size; a larger file is not kept and the run fails. Without it the limit "
            "`artifact`.",
            pattern=SIZE_PATTERN,
            examples=["1MiB"],
        ),
    },
    ("name", "path"),
)

RECIPE: Schema = {
    "$schema": DIALECT,
    "$id": "urn:sealed-harness:schema:recipe-v1",
    "title": "Recipe",
    **object_field(
        "What to run on a project, in a sealed, offline worker.",
        {
            "version": VERSION,
            "kind": text_field("What the run is for.", enum=list(KINDS)),
            "description": text_field(
                "Why it exists, in one line; an approver reads it.",
                pattern=LINE_PATTERN,
                maxLength=500,
            ),
            "image": text_field(
                "Name of a locked worker image. `${matrix.KEY}` is replaced.",
                pattern=IMAGE_PATTERN,
                maxLength=1024,
                examples=["python"],
            ),
            "policy": text_field(
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
            "matrix": _MATRIX,
            "needs": list_field(
                "Recipes that must pass before this one starts. They order a run; files go from "
                "one to the next only through an approved diff.",
                {"type": "string", "pattern": NAME_PATTERN, "examples": ["build"]},
                maxItems=32,
                uniqueItems=True,
                examples=[["build"]],
            ),
            "steps": list_field(
                "Commands, in order. The first that fails ends the run.",
                _STEP,
                minItems=1,
                maxItems=64,
                examples=[[{"run": ["pytest", "-q"]}]],
            ),
            "inputs": object_field(
                "Which of the project's files the worker may see.",
                {
                    "include": patterns_field(
                        "gitignore patterns of files that enter; without it all do.", ["src/**"]
                    ),
                    "exclude": patterns_field(
                        "gitignore patterns of files that stay out.", ["*.log"]
                    ),
                },
            ),
            "writable": patterns_field(
                "gitignore patterns of the paths whose changes may be imported. Without it none.",
                ["src/**"],
            ),
            "outputs": list_field("Files to keep as artifacts.", _OUTPUT, maxItems=64),
            "env": {
                "description": "Environment of every step, beside the fixed one.",
                "type": "object",
                "propertyNames": {"pattern": ENV_PATTERN},
                "additionalProperties": {"type": "string", "maxLength": 32_768, "examples": ["1"]},
                "maxProperties": 128,
                "examples": [{"CI": "true"}],
            },
            "limits": limits_field("Tighter limits than the policy's.", defaults=False),
            "workspace": WORKSPACE,
        },
        ("version", "kind", "description", "image", "steps"),
    ),
}
