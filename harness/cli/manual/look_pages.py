"""Pages of the commands that look at runs and at the ledger."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cli.manual.page import Page

_STATE = ("HARNESS_STATE",)
_KEPT = ("harness.yaml", "~/.local/state/sealed-harness/")
_LEDGER = ("~/.local/state/sealed-harness/",)
_RUN = "Run id, or 12 or more digits of its plan's hash"
_BROKEN = {3: "The ledger, its checkpoint or its key do not fit together."}

LOOK_PAGES: Mapping[str, Page] = {
    "runs": Page(
        environment=_STATE,
        files=_KEPT,
        examples=(("See how the last runs ended", "harness runs list"),),
        see=("runs list", "runs show", "runs logs", "runs cancel", "run"),
    ),
    "runs list": Page(
        exits=_BROKEN,
        environment=_STATE,
        files=_KEPT,
        examples=(("List runs with their diffs", "harness runs list"),),
        see=("runs show", "runs logs", "diff"),
    ),
    "runs show": Page(
        arguments={"RUN[/OPERATION]": f"{_RUN}; with a name, one of its operations."},
        exits={3: "Its record is not as it was stored."},
        environment=_STATE,
        files=_KEPT,
        examples=(("See outcome, usage and observed limits", "harness runs show RUN"),),
        see=("runs logs", "diff"),
    ),
    "runs logs": Page(
        arguments={"RUN[/OPERATION]": f"{_RUN}; with a name, one of its operations."},
        exits={3: "Its log is not as it was stored."},
        environment=_STATE,
        files=_KEPT,
        examples=(
            ("Read what it wrote", "harness runs logs RUN"),
            ("Read its standard error", "harness runs logs RUN --stderr"),
        ),
        see=("runs show",),
    ),
    "runs cancel": Page(
        arguments={"RUN": f"{_RUN}. It must go on."},
        exits={2: "It is over, or its controller died."},
        environment=_STATE,
        files=_KEPT,
        examples=(("End a run that goes on elsewhere", "harness runs cancel RUN"),),
        see=("runs logs", "runs show"),
    ),
    "artifacts": Page(
        environment=_STATE,
        files=_KEPT,
        examples=(("See what a run left", "harness artifacts list RUN"),),
        see=("artifacts list", "artifacts get", "runs show"),
    ),
    "artifacts list": Page(
        arguments={"RUN[/OPERATION]": f"{_RUN}; with a name, one of its operations."},
        exits={3: "A record is not as it was stored."},
        environment=_STATE,
        files=_KEPT,
        examples=(("List names, sizes and types", "harness artifacts list RUN"),),
        see=("artifacts get", "runs show"),
    ),
    "artifacts get": Page(
        arguments={
            "RUN[/OPERATION]": f"{_RUN}; with a name, one of its operations.",
            "NAME": "Name of an output in the recipe.",
        },
        exits={3: "Its bytes are not those that the record names; nothing was written."},
        environment=_STATE,
        files=_KEPT,
        examples=(
            ("Write a test report to a file", "harness artifacts get RUN results -o junit.xml"),
            ("Check it with stock tools", "harness artifacts get RUN results | sha256sum"),
        ),
        see=("artifacts list", "ledger object"),
    ),
    "ledger": Page(
        environment=_STATE,
        files=_LEDGER,
        examples=(("Check all that was recorded", "harness ledger verify"),),
        see=("ledger list", "ledger show", "ledger object", "ledger verify"),
    ),
    "ledger list": Page(
        exits=_BROKEN,
        environment=_STATE,
        files=_LEDGER,
        examples=(("See the last ten entries", "harness ledger list -n 10"),),
        see=("ledger show", "ledger verify"),
    ),
    "ledger show": Page(
        arguments={"SEQ": "Number of an entry, from 0; `harness ledger list` shows them."},
        exits=_BROKEN,
        environment=_STATE,
        files=_LEDGER,
        examples=(("See the first entry, byte for byte", "harness ledger show 0"),),
        see=("ledger list", "ledger object"),
    ),
    "ledger object": Page(
        arguments={"DIGEST": "All 64 digits of a stored object's digest."},
        exits={3: "The object is missing, or its bytes are not those of the digest."},
        environment=_STATE,
        files=_LEDGER,
        examples=(("Check a plan with stock tools", "harness ledger object PLAN | sha256sum"),),
        see=("ledger list",),
    ),
    "ledger verify": Page(
        exits={3: "Something does not fit; the first bad line is named."},
        environment=_STATE,
        files=_LEDGER,
        examples=(
            ("Check every line and the checkpoint", "harness ledger verify"),
            ("Hold it against a checkpoint kept", "harness ledger verify --checkpoint kept"),
        ),
        see=("ledger list",),
    ),
}
