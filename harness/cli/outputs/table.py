"""Which kind of output each command prints with `--json`; small, for every such command reads it.

A kind has a version. A member may be added within a version, and readers ignore what they do not
know; a member that goes, is renamed, or means something else makes a new version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.model.entry import ENTRY_KIND

ERROR = "error"


@dataclass(frozen=True, slots=True)
class Output:
    """What one command prints.

    Attributes:
        kind: name of the kind; `kinds.KINDS` has its schema.
        many: a list of them.
    """

    kind: str
    many: bool = False


OUTPUTS: Mapping[str, Output] = {
    "setup": Output("setup"),
    "init": Output("begun"),
    "recipe list": Output("checked-recipe", many=True),
    "recipe show": Output("recipe", many=True),
    "recipe check": Output("checked-recipe", many=True),
    "seal": Output("plan"),
    "plan list": Output("plan", many=True),
    "plan show": Output("plan"),
    "approve": Output("decision"),
    "reject": Output("decision"),
    "run": Output("ran"),
    "diff": Output("diff"),
    "apply": Output("applied"),
    "undo": Output("diff"),
    "runs list": Output("run", many=True),
    "runs show": Output("shown-run"),
    "runs cancel": Output("run"),
    "artifacts list": Output("artifact", many=True),
    "ledger list": Output("entry", many=True),
    "ledger show": Output("entry"),
    "ledger verify": Output("ledger-report"),
    "project list": Output("known-project", many=True),
    "project move": Output("moved-project"),
    "project add": Output("known-project"),
    "key show": Output("keys"),
    "key rotate": Output("key-change"),
    "key renew": Output("key-change"),
    "state backup": Output("backup"),
    "state restore": Output("restored"),
    "image build": Output("built-image"),
    "image add": Output("added-image"),
    "image list": Output("locked-image", many=True),
    "image verify": Output("verified-image"),
}
"""By the command's words."""

VERSIONS: Mapping[str, int] = {}
"""Kinds that are not at version 1."""


def type_of(kind: str) -> str:
    """Return what stands as `_type` in every output of a kind."""
    if kind == "entry":
        return ENTRY_KIND  # printed as it is stored
    return f"harness/output/{kind}/v{VERSIONS.get(kind, 1)}"


def named(command: str, value: Any) -> Any:
    """Return what a command prints, each of its objects with its `_type` first.

    Args:
        command: the command's words, as `runs list`.
        value: an object, or a list of them.

    Raises:
        RuntimeError: the command has no kind: a fault of ours.
    """
    output = OUTPUTS.get(command)
    if output is None:
        raise RuntimeError(f"{command}: has --json and no kind in harness.cli.outputs.table")
    kind = type_of(output.kind)
    if output.many:
        return [{"_type": kind, **item} for item in value]
    return {"_type": kind, **value}
