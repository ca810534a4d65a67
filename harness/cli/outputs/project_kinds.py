"""What `harness init` and `harness recipe` print, and how every error reads."""

from __future__ import annotations

from harness.cli.outputs.pieces import Schema, flag, many, members, text, whole, word
from harness.cli.outputs.plan_kinds import CELL, LIMITS, RECIPE_MEMBERS
from harness.model.recipe import KINDS

_ISSUE = members(
    "One mistake.",
    {
        "where": text("`file:line:column`, an option, or a path; empty without a place."),
        "message": text("What is wrong."),
        "fix": text("What to write instead; empty when the message says it."),
    },
)

BEGUN: Schema = members(
    "What init did.",
    {
        "written": many("Files written.", text("A path from the project's root.")),
        "kept": many("Files that were there already.", text("A path from the project's root.")),
        "reviewer": text("Name and key of the reviewer enrolled; empty when nobody was."),
    },
)

_EXPLAINED = members(
    "What the recipe comes to; only with --explain.",
    {
        "values": many(
            "Every effective value.",
            members(
                "One value.",
                {
                    "field": text("Its name in a recipe or policy, as `limits.memory`."),
                    "value": text("As a file would have it."),
                    "source": word("Who says so.", "recipe", "policy", "host", "default"),
                    "where": text("`file:line:column` of it; empty for a default."),
                },
            ),
        ),
        "operations": many("One for each cell of its matrix.", text("Name of an operation.")),
        "order": many("Recipes of its plan, what is needed first.", text("Name of a recipe.")),
        "scripts": many(
            "Steps that are scripts.",
            members(
                "One step.",
                {
                    "step": whole("Its position, from 0."),
                    "name": text("Its name."),
                    "reason": text("What makes it a script."),
                },
            ),
        ),
        "files": whole("How many files would enter."),
        "bytes": whole("Their size, in bytes."),
        "leftOutCount": whole("How many paths would stay out."),
        "leftOut": many(
            "The first of them, by path.",
            members(
                "One path.",
                {
                    "path": text("From the project's root; a folder ends with a slash."),
                    "reason": text("Why it would stay out."),
                },
            ),
        ),
    },
)

CHECKED: Schema = members(
    "One recipe and whether it holds.",
    {
        "name": text("The file's stem."),
        "ok": flag("It has no mistake."),
        "kind": word("What it is for; empty when it has mistakes.", *KINDS, ""),
        "description": text("Why it exists; empty when it has mistakes."),
        "issues": many("Every mistake.", _ISSUE),
    },
    {"explained": _EXPLAINED},
)

RECIPE: Schema = members(
    "A recipe, or one cell of its matrix, as it would be sealed.",
    {
        "operation": text("Name of its operation."),
        **RECIPE_MEMBERS,
        **CELL,
        "needs": many("What must pass before it.", text("Name of a recipe.")),
        "limits": LIMITS,
        "policy": text("Name of its policy."),
    },
)

ERROR: Schema = members(
    "An error; it goes to stderr, and nothing to stdout.",
    {
        "error": members(
            "What is wrong.",
            {
                "code": text("A stable code; the reference of errors lists them."),
                "message": text("One line, for people."),
                "issues": many("Every mistake found, when there may be several.", _ISSUE),
                "hint": text("What to do next."),
            },
        )
    },
)
