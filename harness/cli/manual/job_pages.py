"""Pages of the main job, in its order."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cli.manual.page import Page

_STATE = ("HARNESS_STATE",)
_PROJECT = ("HARNESS_STATE", "XDG_CONFIG_HOME")
_READ = ("harness.yaml", "recipes/NAME.yaml", "policies/NAME.yaml")
_HOST = ("~/.config/sealed-harness/policy.yaml",)
_KEPT = ("harness.yaml", "~/.local/state/sealed-harness/")
_FULL_HASH = "All 64 digits, with or without `sha256:`."
_RECIPE = "Name of a recipe: its file's stem."

_DECISION = Page(
    arguments={"HASH": f"The plan hash or diff hash. {_FULL_HASH}"},
    exits={
        3: "What the hash stands for is not as it was stored.",
        4: "Not permitted: not a reviewer, expired, decided already, or nobody said yes.",
        5: "The diff holds paths that may not land.",
    },
    environment=("HARNESS_STATE", "SSH_AUTH_SOCK"),
    files=("policies/NAME.yaml", "~/.ssh/id_ed25519", "~/.local/state/sealed-harness/"),
    examples=(),
    see=(),
)

JOB_PAGES: Mapping[str, Page] = {
    "recipe": Page(
        environment=_PROJECT,
        files=_READ,
        examples=(("See what the project can run", "harness recipe list"),),
        see=("recipe check", "recipe list", "recipe show", "seal"),
    ),
    "recipe list": Page(
        environment=_PROJECT,
        files=_READ,
        examples=(("List recipes with what they are for", "harness recipe list"),),
        see=("recipe show", "recipe check"),
    ),
    "recipe show": Page(
        arguments={"NAME": _RECIPE},
        environment=_PROJECT,
        files=(*_READ, *_HOST),
        examples=(("See its steps and its limits", "harness recipe show format"),),
        see=("recipe check", "seal"),
    ),
    "recipe check": Page(
        arguments={"NAMES": f"{_RECIPE}  [default: all, and the policies]"},
        exits={2: "There are mistakes; each was named with its place."},
        environment=_PROJECT,
        files=(*_READ, *_HOST),
        examples=(
            ("Check everything, before a commit say", "harness recipe check"),
            ("Get the mistakes as JSON", "harness recipe check format --json"),
            (
                "See where each value comes from, and which files would enter",
                "harness recipe check test --explain",
            ),
        ),
        see=("schema", "recipe show"),
    ),
    "seal": Page(
        arguments={"RECIPE": _RECIPE},
        exits={2: "A recipe, a policy, a parameter or a file that would enter is refused."},
        environment=_PROJECT,
        files=(*_READ, ".gitignore", *_HOST, "~/.local/state/sealed-harness/images.lock"),
        examples=(
            ("Make a plan", "harness seal format"),
            (
                "Say why, and set a parameter",
                "harness seal test -p paths=tests --why 'before merge'",
            ),
        ),
        see=("plan show", "approve", "run"),
    ),
    "plan": Page(
        environment=_STATE,
        files=_KEPT,
        examples=(("See which plans wait", "harness plan list"),),
        see=("plan list", "plan show", "seal", "approve"),
    ),
    "plan list": Page(
        environment=_STATE,
        files=_KEPT,
        examples=(("List plans and where each stands", "harness plan list"),),
        see=("plan show",),
    ),
    "plan show": Page(
        arguments={"HASH": "Plan hash, 12 or more of its digits, or the plan's run id."},
        exits={3: "What it stands for is not as it was stored."},
        environment=_STATE,
        files=_KEPT,
        examples=(("Read what would run, before approving it", "harness plan show PLAN"),),
        see=("approve", "run"),
    ),
    "approve": Page(
        arguments=_DECISION.arguments,
        exits=_DECISION.exits,
        environment=_DECISION.environment,
        files=_DECISION.files,
        examples=(
            ("Sign with a key", "harness approve PLAN --key KEY"),
            (
                "Sign elsewhere: write what is to be signed",
                "harness approve PLAN --reviewer me --write-statement statement.json",
            ),
        ),
        see=("reject", "plan show", "diff", "run", "apply"),
    ),
    "reject": Page(
        arguments=_DECISION.arguments,
        exits=_DECISION.exits,
        environment=_DECISION.environment,
        files=_DECISION.files,
        examples=(
            ("Refuse a change, with a reason", "harness reject DIFF --key KEY --comment 'not now'"),
        ),
        see=("approve", "diff"),
    ),
    "run": Page(
        arguments={
            "HASH": f"A plan hash. {_FULL_HASH}",
            "RECIPE": f"{_RECIPE} On a terminal only: it is sealed, shown, and you are asked.",
        },
        exits={
            0: "It passed, also when a diff waits.",
            1: "It failed: an exit code, a signal, a timeout or a limit; or it was skipped.",
            3: "The sealed files or the image are not what was sealed.",
            4: "The plan is not approved, expired, or was used.",
            5: "What it left can't be read safely.",
            6: "The engine, an image or the state folder can't be used; no verdict on the recipe.",
            130: "Interrupted or cancelled; what it wrote is kept.",
        },
        environment=("DOCKER_HOST", *_PROJECT),
        files=(*_READ, "~/.local/state/sealed-harness/"),
        examples=(
            ("Run a plan that was approved", "harness run PLAN"),
            ("Approve it with a key, and run it", "harness run PLAN --key KEY"),
        ),
        see=("seal", "approve", "runs show", "diff"),
    ),
    "diff": Page(
        arguments={
            "RUN": "Run id, `RUN/OPERATION` when several changed something, or 12 or more digits "
            "of a diff hash.",
        },
        exits={3: "What was quarantined is not as it was stored."},
        environment=_STATE,
        files=_KEPT,
        examples=(
            ("Read a change", "harness diff RUN"),
            ("Try it with git, changing nothing", "harness diff RUN --patch | git apply --check"),
        ),
        see=("approve", "reject", "apply"),
    ),
    "apply": Page(
        arguments={"DIFFHASH": f"The diff hash. {_FULL_HASH}"},
        exits={
            3: "The project changed below it; nothing was written.",
            4: "The diff is not approved, or landed already; nothing was written.",
            5: "A path may not be written; nothing was written.",
            6: "The disk refused; everything was rolled back.",
        },
        environment=_STATE,
        files=_KEPT,
        examples=(("Land an approved change", "harness apply DIFF"),),
        see=("approve", "undo"),
    ),
    "undo": Page(
        arguments={"DIFFHASH": f"The hash of the diff that landed. {_FULL_HASH}"},
        environment=_STATE,
        files=_KEPT,
        examples=(("Prepare to take a change back", "harness undo DIFF"),),
        see=("approve", "apply"),
    ),
}
