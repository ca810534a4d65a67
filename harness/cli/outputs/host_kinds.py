"""What `harness setup`, `harness image` and `harness ledger` print."""

from __future__ import annotations

from typing import get_args

from harness.cli.outputs.keep_kinds import ERAS
from harness.cli.outputs.pieces import (
    Schema,
    digest,
    flag,
    many,
    members,
    moment,
    or_empty,
    or_null,
    text,
    whole,
    word,
)
from harness.cli.outputs.plan_kinds import IMAGE
from harness.execution.image.origin import OriginKind
from harness.model.entry import PHASES, VERBS

_IMAGE = IMAGE["properties"]

_SOURCE = members(
    "Where an added image came from.",
    {
        "kind": word("Who had it.", *get_args(OriginKind)),
        "reference": text("Its name there, or the archive's file name."),
        "digest": digest("Of the manifest, of the archive, or the engine's id."),
        "content": digest("Of its config, before init was added."),
    },
)

_LOCKED = {
    **_IMAGE,
    "builtOn": moment("When it was locked."),
    "init": or_empty(digest("Of the init in it; empty where an older version locked it.")),
    "source": or_null(_SOURCE),
}

LOCKED_IMAGE: Schema = members(
    "One image that is locked on this host.",
    {
        **_LOCKED,
        "present": flag("The engine has it."),
        "size": whole("Bytes; 0 when the engine lost it."),
    },
)

_DIFFERENCE = members(
    "What differs from the image that had the name before.",
    {
        "packages": many(
            "Debian packages that are not the same.",
            members(
                "One package.",
                {
                    "name": text("Its name."),
                    "before": text("Version; empty when it was not there."),
                    "after": text("Version; empty when it is gone."),
                },
            ),
        ),
        "files": many("Files that no such package explains.", text("A path.")),
    },
)

BUILT_IMAGE: Schema = members(
    "An image that was just locked.", {**_LOCKED, "difference": or_null(_DIFFERENCE)}
)

ADDED_IMAGE: Schema = members("An image that was just locked.", _LOCKED)

VERIFIED_IMAGE: Schema = members(
    "An image whose every byte was hashed.",
    {**_LOCKED, "bytes": whole("Bytes hashed."), "ok": flag("Always true: else it is an error.")},
)

_BODY: Schema = {
    "description": "Members of the verb; the reference of formats lists them.",
    "type": "object",
}

ENTRY: Schema = members(
    "One line of the ledger, as it is stored.",
    {
        "seq": whole("Its position, from 0."),
        "time": moment("When it was appended."),
        "prev": digest("Leaf hash of the line before."),
        "verb": word("What was done.", *VERBS),
        "phase": word("Before the effect, or after it.", *PHASES),
        "project": text("Project id; empty for what belongs to the host."),
        "body": _BODY,
        "notes": {"description": "What the log itself noticed.", "type": "object"},
    },
)

LEDGER_REPORT: Schema = members(
    "A ledger that holds.",
    {
        "size": whole("Entries."),
        "root": digest("Root of the tree over them (RFC 6962)."),
        "time": or_empty(moment("Of the last entry; empty without one.")),
        "checkpoint": text("The signed checkpoint (C2SP); empty before the first entry."),
        "keys": ERAS,
        "warnings": many("What is odd, and no proof of anything.", text("A warning.")),
    },
)

_NOTES = many("What to know of the engine.", text("A note."))

SETUP: Schema = {
    "description": "What setup did or found; which members there are depends on the options.",
    "oneOf": [
        members(
            "Without --stop, --undo and --check.",
            {
                "notes": _NOTES,
                "engine": text("Address of the engine."),
                "steps": many("Steps taken.", text("A step.")),
            },
        ),
        members("With --check.", {"notes": _NOTES, "engine": text("Address of the engine.")}),
        members("With --stop.", {"stopped": flag("An engine of ours ran.")}),
        members("With --undo.", {"undone": many("What was taken back.", text("A step."))}),
    ],
}
