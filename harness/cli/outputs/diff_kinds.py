"""What `harness diff`, `approve`, `reject`, `apply` and `undo` print."""

from __future__ import annotations

from typing import get_args

from harness.cli.outputs.pieces import (
    Schema,
    at_path,
    coded,
    digest,
    many,
    members,
    moment,
    or_empty,
    or_null,
    text,
    whole,
    word,
)
from harness.governance.approvals import Presence
from harness.model.approval import Decision, Gate
from harness.model.outcome import OutcomeKind

_NODE = members(
    "What stands at a path.",
    {
        "type": word("What it is.", "file", "symlink", "folder"),
        "mode": word("Its mode as git writes it.", "100644", "100755", "120000", "040000"),
        "size": whole("Bytes of the content, or of the link's target."),
        "digest": digest("Of those bytes."),
    },
)

_REASON = {"reason": text("Why.")}

_CHANGE = at_path(
    "One changed path.",
    {
        "op": word("What changed.", "add", "modify", "delete", "mode", "symlink"),
        "before": or_null(_NODE),
        "after": or_null(_NODE),
    },
)

_BY_PRODUCT = at_path(
    "One change that never lands.",
    {
        "op": word("What happened.", "add", "modify", "delete"),
        "kind": text("file, symlink, folder, fifo, socket or a device."),
        "size": whole("Bytes; 0 where there are none."),
        **_REASON,
    },
)

DIFF: Schema = members(
    "One change in quarantine, or landed.",
    {
        "diff": digest("The diff hash: what a reviewer approves."),
        "run": text("The run that made it."),
        "plan": digest("That run's plan."),
        "outcome": word("How that run's operation ended.", *get_args(OutcomeKind)),
        "undoes": or_empty(digest("The diff that it takes back; empty for a run's own.")),
        "base": digest("The files before."),
        "result": digest("The files after."),
        "waitingSince": moment("When it was quarantined."),
        "landed": or_empty(moment("When it landed; empty while it waits.")),
        "obstacles": many("Paths that may not land.", at_path("One path.", _REASON)),
        "flags": many("Paths to look at closely.", at_path("One path.", _REASON)),
        "missing": many("Declared outputs that were not written.", text("A name.")),
        "changes": many("What would land.", _CHANGE),
        "byProducts": members(
            "What never lands.",
            {"digest": digest("Of the list."), "items": many("The list.", _BY_PRODUCT)},
        ),
    },
    {"patch_b64": coded("The patch for `git apply`; with --patch.")},
)

APPLIED: Schema = members(
    "A diff that landed.",
    {
        "diff": digest("Diff hash."),
        "changes": whole("Changed paths; 0 when nothing had to be written."),
        "result": digest("The files after."),
    },
)

DECISION: Schema = members(
    "A decision that was verified and recorded.",
    {
        "gate": word("What was decided on.", *get_args(Gate)),
        "decision": word("How.", *get_args(Decision)),
        "subject": digest("The plan hash or diff hash."),
        "reviewer": text("Who decided."),
        "presence": word("What is known of the key.", *get_args(Presence)),
        "statement": digest("Of the signed statement; `harness ledger object` prints it."),
        "notAfter": moment("Until when it counts."),
        "missing": text("What is still missing before it can go on; empty when nothing is."),
    },
)
