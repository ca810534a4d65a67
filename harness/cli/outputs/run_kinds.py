"""What `harness run` and `harness runs` print: runs, their operations and their records."""

from __future__ import annotations

from typing import get_args

from harness.cli.outputs.pieces import (
    Schema,
    amount,
    by_name,
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
from harness.model.outcome import OutcomeKind

_KINDS: tuple[str, ...] = get_args(OutcomeKind)

_OUTCOME = members(
    "How it ended.",
    {
        "kind": word("What happened.", *_KINDS),
        "step": or_null(whole("Index of the step it is about, from 0.")),
        "code": or_null(whole("Exit status, or the signal's number.")),
        "cause": text("A fixed text, where the kind does not say all."),
        "text": text("All of it in one line, for people."),
    },
)

_STREAM = members(
    "One output stream.",
    {
        "totalBytes": whole("Bytes written."),
        "digest": digest("Over all of them."),
        "kept": digest("Of the stored log; `harness ledger object` prints it."),
        "truncated": flag("The middle was not kept."),
        "headBytes": whole("Bytes kept of the beginning."),
        "tailBytes": whole("Bytes kept of the end; 0 when nothing was cut."),
    },
)

_STEP = members(
    "How one step ended: `exit` or `signal` is set, the other is null.",
    {
        "index": whole("Which step, from 0."),
        "exit": or_null(whole("Exit status.")),
        "signal": or_null(whole("Number of the signal that ended it.")),
        "execErrno": whole("errno when its program could not be started, else 0."),
        "durationMs": whole("How long it took, in milliseconds."),
        "timedOut": flag("It reached its own timeout and was told to end."),
    },
)

ARTIFACT_MEMBERS = {
    "name": text("What the recipe calls it."),
    "path": text("Where in the workspace it was."),
    "size": whole("Bytes."),
    "digest": digest("Of its bytes; `harness artifacts get` writes them."),
    "type": text("Media type that the recipe declares; empty without one."),
}

ARTIFACT = members(
    "One file that a run left on purpose.",
    {
        "run": text("Run id."),
        "operation": text("The operation that left it."),
        **ARTIFACT_MEMBERS,
    },
)

_CHECKS = members(
    "Counts of the test report; empty without one.",
    {},
    {
        "run": whole("Checks that ran."),
        "passed": whole("Checks that passed."),
        "failed": whole("Checks that failed."),
        "skipped": whole("Checks that were skipped."),
    },
)

_USAGE = members(
    "What it used.",
    {
        "wall_ms": whole("Time by the clock on the wall, in milliseconds."),
        "cpu_ms": amount("Processor time, in milliseconds."),
        "memory_peak_bytes": amount("Most memory at once, in bytes."),
        "pids_peak": amount("Most processes and threads at once."),
        "oom_kills": amount("Kills by the memory limit."),
    },
)

RECORD = members(
    "What happened in one operation, as its record says.",
    {
        "run": text("Run id."),
        "operation": text("The operation; empty in a record of the first version."),
        "plan": digest("Plan hash."),
        "seal": digest("What was executed."),
        "record": digest("Digest of this record."),
        "outcome": _OUTCOME,
        "started": moment("Before its container was made."),
        "finished": moment("After its container was gone."),
        "steps": many("How each step ended.", _STEP),
        "stdout": _STREAM,
        "stderr": _STREAM,
        "checks": _CHECKS,
        "artifacts": many(
            "Declared outputs that it left.", members("One artifact.", ARTIFACT_MEMBERS)
        ),
        "observed": by_name(
            "Limits and identity as read back from engine and cgroup; their names are the "
            "engine's, and what a host can't show is `unavailable`.",
            {},
        ),
        "usage": _USAGE,
        "workspace": word("The strategy used.", "overlay", "copy"),
        "workspaceReason": text("Why that one; empty in a record of the first version."),
        "hint": text("What may help a recipe that failed; often empty."),
        "engine": text("Version of the engine."),
    },
)

_LEFT = {
    "diff": or_empty(digest("Diff hash; empty when nothing was quarantined.")),
    "changes": whole("Changed paths in it."),
}

RUN_MEMBERS = {
    "run": text("Run id."),
    "plan": digest("Plan hash."),
    "started": moment("When its grant was spent."),
    "finished": or_empty(moment("When its last operation ended; empty while it goes on.")),
    "kind": word("How it ended: as the worst of its operations.", *_KINDS, "running"),
    "outcome": text("The same in a line, for people."),
    "wallMs": whole("How long its operations took together, in milliseconds; 0 when unknown."),
    "operations": many(
        "In the order of the plan.",
        members(
            "One operation.",
            {
                "name": text("As the plan says."),
                "kind": word("How it ended, or where it is.", *_KINDS, "running", "waiting"),
                "outcome": text("The same in a line, for people."),
                "finished": or_empty(moment("When it ended; empty while the run goes on.")),
                "record": or_empty(digest("Of its record; empty without one.")),
                "wallMs": whole("How long it took, in milliseconds; 0 when unknown."),
                **_LEFT,
            },
        ),
    ),
}

RUN: Schema = members("One run.", RUN_MEMBERS)

SHOWN_RUN: Schema = members(
    "One run with the records of the operations asked for.",
    {
        **RUN_MEMBERS,
        "records": many("Null for an operation that left none.", or_null(RECORD)),
    },
)

RAN: Schema = members(
    "A run that just ended.",
    {
        "run": text("Run id."),
        "plan": digest("Plan hash."),
        "kind": word("How it ended: as the worst of its operations.", *_KINDS),
        "exitCode": whole("The command's exit code."),
        "operations": many(
            "In the order of the plan.",
            members(
                "One operation.",
                {
                    "name": text("As the plan says."),
                    "outcome": _OUTCOME,
                    "record": or_null(RECORD),
                    **_LEFT,
                    "byProducts": whole("Changed paths that can't land."),
                    "missing": many("Declared outputs that it did not write.", text("A name.")),
                    "problems": many("What went wrong beside it.", text("A problem.")),
                },
            ),
        ),
        "problems": many("What went wrong beside the run; no verdict.", text("A problem.")),
    },
)
