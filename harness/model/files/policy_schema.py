"""The fields of a policy file and of the host's own policy, as JSON Schema."""

from __future__ import annotations

from typing import Any

from harness.model.files.schema_parts import (
    DIALECT,
    VERSION,
    WORKSPACE,
    Schema,
    limits_field,
    list_field,
    object_field,
    patterns_field,
    switch_field,
    text_field,
)
from harness.model.units import TIME_PATTERN


def _isolation(*, host: bool) -> dict[str, Any]:
    limits = "Upper bounds; what is below may tighten them."
    return object_field(
        "What any worker gets at most." if host else "What a worker gets; part of the seal.",
        {
            "limits": limits_field(limits, defaults=not host),
            "tmp_exec": switch_field("Programs in `/tmp` may be executed.", default=True),
            "allow_scripts": switch_field("A step may be a shell or inline source.", default=host),
            "admit_secrets": patterns_field(
                "Patterns of secret-looking files that may enter all the same; `*` is any. "
                + ("Without it any." if host else "Without it none."),
                ["tests/keys/*"],
            ),
            "workspace": WORKSPACE,
        },
    )


_COUNT = {"type": "integer", "minimum": 1, "maximum": 16}

_RULE = object_field(
    "A higher threshold for a part of the tree.",
    {
        "paths": {
            **patterns_field("gitignore patterns of the paths it is for.", ["src/auth/**"]),
            "minItems": 1,
        },
        "approvals": {"description": "Persons who must approve.", **_COUNT},
        "reviewers": list_field(
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
    "$schema": DIALECT,
    "$id": "urn:sealed-harness:schema:policy-v1",
    "title": "Policy",
    **object_field(
        "What a worker gets, and who must sign what.",
        {
            "version": VERSION,
            "isolation": _isolation(host=False),
            "approval": object_field(
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
                    "rules": list_field(
                        "Higher thresholds for diffs, by path.", _RULE, maxItems=64
                    ),
                    "exclude_requester": switch_field(
                        "The person who asked for the run does not count.", default=False
                    ),
                    "valid_for": text_field(
                        "How long a plan and an approval stay good, at most 30d.",
                        pattern=TIME_PATTERN,
                        default="24h",
                        examples=["24h"],
                    ),
                    "reviewers": text_field(
                        "Name of the reviewers file beside this one (OpenSSH allowed_signers).",
                        pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$",
                        examples=["reviewers"],
                    ),
                    "throwaway": switch_field(
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
    "$schema": DIALECT,
    "$id": "urn:sealed-harness:schema:host-v1",
    "title": "Host policy",
    **object_field(
        "What any worker on this host gets at most.",
        {"version": VERSION, "isolation": _isolation(host=True)},
        ("version", "isolation"),
    ),
}
