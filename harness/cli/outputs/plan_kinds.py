"""What `harness seal` and `harness plan` print: a plan, what it runs, and where its gate stands."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cli.outputs.pieces import (
    Schema,
    by_name,
    digest,
    flag,
    many,
    members,
    moment,
    text,
    whole,
    word,
)
from harness.model.limits import SPELLING
from harness.model.recipe import KINDS

_UNITS = {"bytes": "bytes", "ms": "milliseconds", "millis": "thousandths of a processor"}

_LATER = ("artifact_bytes",)
"""Limits that a seal of an earlier version does not hold."""

_LIMITS = {
    name: whole(f"The limit `{spelled}`, in {_UNITS.get(name.rpartition('_')[2], 'pieces')}.")
    for name, (spelled, _) in SPELLING.items()
}

LIMITS = members(
    "Upper bounds, in the units that their names end in; a count otherwise.",
    {name: schema for name, schema in _LIMITS.items() if name not in _LATER},
    {name: _LIMITS[name] for name in _LATER},
)

IMAGE = members(
    "The worker image.",
    {
        "name": text("What recipes call it."),
        "imageId": digest("The engine's content id; it decides what runs."),
        "platform": text("`linux/amd64`, say."),
        "definition": digest("What it was made from."),
    },
)

STEP = members(
    "One command.",
    {
        "name": text("Its name, for people."),
        "argv": many("Program and arguments.", text("One argument.")),
        "script": flag("It is a shell or inline source."),
    },
    {
        "timeoutMs": whole("Milliseconds it may take; 0 without a limit of its own."),
        "allowedExits": many("Exit codes that let the next step begin.", whole("An exit code.")),
    },
)

OUTPUT = members(
    "One declared artifact.",
    {
        "name": text("What people call it."),
        "path": text("Where in the workspace it is written."),
        "report": text("`junit` when it holds test results, else empty."),
    },
    {
        "type": text("Media type that the recipe declares; empty without one."),
        "maxBytes": whole("Bytes above which it is not kept and the run fails; 0 without a cap."),
    },
)

RECIPE_MEMBERS: Mapping[str, Schema] = {
    "name": text("The file's stem."),
    "kind": word("What it is for.", *KINDS),
    "description": text("Why it exists."),
    "image": text("Name of its image."),
    "steps": many("Its commands, in order.", STEP),
    "include": many("Patterns of the files that enter; empty means all.", text("A pattern.")),
    "exclude": many("Patterns of files that stay out.", text("A pattern.")),
    "writable": many("Patterns of the paths that may land.", text("A pattern.")),
    "outputs": many("Its artifacts.", OUTPUT),
    "env": by_name("Variables that it sets.", text("A value.")),
    "parameters": by_name("Values of its parameters.", text("A value.")),
    "workspace": word("The strategy it asks for.", "auto", "overlay", "copy"),
}

CELL: Mapping[str, Schema] = {
    "cell": by_name("Values of its matrix, by key; none without a matrix.", text("A value.")),
}
"""What a recipe sealed by an earlier version does not hold, as the second part of `STEP` too."""

ISOLATION = members(
    "What the worker gets.",
    {
        "limits": LIMITS,
        "tmpExec": flag("Programs in /tmp may be executed."),
        "allowScripts": flag("A shell or inline source may be run."),
        "admitSecrets": many("Secret-looking files that may enter.", text("A pattern.")),
        "workspace": word("The strategy allowed.", "auto", "overlay", "copy"),
        "network": word("Always none.", "none"),
        "seccomp": text("Name of the system call filter."),
    },
)

_DISCLOSURE = members(
    "What the approver is told beside the seal.",
    {
        "alternative": many("The steps as one would type them.", text("A command line.")),
        "expectedMs": whole("Median of its passed runs, in milliseconds; 0 without one."),
        "expectedFromRuns": whole("How many runs that is from."),
        "files": whole("Files that enter."),
        "bytes": whole("Their size, in bytes."),
        "leftOut": many(
            "What does not enter.",
            members("One path.", {"path": text("The path."), "reason": text("Why it stays out.")}),
        ),
    },
)

_SEAL = members(
    "What would be executed.",
    {
        "digest": digest("The seal."),
        "recipe": members("The recipe, parameters filled in.", RECIPE_MEMBERS, CELL),
        "snapshot": digest("The project's files that enter."),
        "image": IMAGE,
        "isolation": ISOLATION,
        "env": by_name("All variables of a step.", text("A value.")),
    },
)

PLAN: Schema = members(
    "One plan and where it stands.",
    {
        "plan": digest("The plan hash: what a reviewer approves."),
        "run": text("The run id it is for."),
        "project": members(
            "The project.", {"id": text("Its id on this host."), "name": text("Its name.")}
        ),
        "requester": text("Who asked."),
        "created": moment("When it was sealed."),
        "notAfter": moment("Until when it can be approved and run."),
        "policy": members(
            "Who must sign.",
            {
                "name": text("Name of the policy file."),
                "digest": digest("Digest of its approval part."),
                "reviewers": digest("Digest of the reviewers file."),
            },
        ),
        "why": text("Why it should run."),
        "operations": many(
            "What runs, in this order.",
            members(
                "One container.",
                {
                    "name": text("Its recipe; for a matrix cell `recipe:key=value`."),
                    "needs": many("Operations that must pass first.", text("A name.")),
                    "disclosure": _DISCLOSURE,
                    "seal": _SEAL,
                },
            ),
        ),
        "status": word(
            "Where its gate stands.",
            "waiting for approval",
            "approved",
            "used",
            "expired",
            "refused",
        ),
        "approvals": text("Who approved, what is missing, or why it is refused."),
    },
)
