"""The steps that turn a tree into another, in the one order that works. Pure.

    1. `take`: what goes or gives way to another type is moved into the stage, deepest first.
    2. `make`: new folders, those above first.
    3. `put`: new files and links where nothing stands (any more).
       `swap`: new content over old, in one rename, so that nobody ever sees neither.

A change of a path is one step, or `take` and then one of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.model.changeset import Change, Changeset

Act = Literal["take", "make", "put", "swap"]


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        act: what is done.
        number: index of the change in the changeset; names the step's files in the stage.
        change: the change it belongs to.
    """

    act: Act
    number: int
    change: Change

    @property
    def old(self) -> bytes:
        """Return the name in the stage of what stood at the path."""
        return b"old-%d" % self.number

    @property
    def new(self) -> bytes:
        """Return the name in the stage of what is to stand at the path."""
        return b"new-%d" % self.number


def plan_steps(changeset: Changeset) -> tuple[Step, ...]:
    """Return the steps of a changeset, in order."""
    numbered = list(enumerate(changeset.changes))
    takes = [Step("take", n, c) for n, c in reversed(numbered) if gives_way(c)]
    makes = [Step("make", n, c) for n, c in numbered if c.after and c.after.type == "folder"]
    rest = [
        Step("put" if c.before is None or gives_way(c) else "swap", n, c)
        for n, c in numbered
        if c.after and c.after.type != "folder"
    ]
    return (*takes, *makes, *rest)


def gives_way(change: Change) -> bool:
    """Tell whether what stands there must go before anything else can stand there."""
    if change.before is None:
        return False
    return change.after is None or "folder" in (change.before.type, change.after.type)
