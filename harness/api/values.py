"""What the API returns: plain values, made from those of the flows.

Paths are text as the file system API of Python has it: `os.fsencode` gives the bytes. Hashes are
`sha256:` and 64 digits, times RFC 3339 text in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A sealed plan: what a reviewer approves, and what `Project.run` runs once.

    Attributes:
        hash: the plan hash.
        run: id of the run that it is for.
        operations: names of what it runs, in order.
        status: waiting for approval, approved, used, expired or refused.
        detail: who approved, what is missing, or why it is refused.
        not_after: until when it can be approved and run.
    """

    hash: str
    run: str
    operations: tuple[str, ...]
    status: str
    detail: str
    not_after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A signed decision that was verified and recorded.

    Attributes:
        subject: the plan hash or the diff hash.
        gate: which of the two.
        decision: what was decided.
        reviewer: who decided.
        missing: what is still missing before it can go on; empty when nothing is.
    """

    subject: str
    gate: Literal["plan", "diff"]
    decision: Literal["approve", "reject"]
    reviewer: str
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of a run.

    Attributes:
        name: its recipe; for a cell of a matrix `recipe:key=value`.
        kind: how it ended: `passed`, `failed`, `timeout` and so on; or `running`, `waiting`.
        outcome: the same with its detail, as `failed(3)`.
        diff: hash of what it changed and could land; empty when that is nothing.
        checks: counts of its test report: run, passed, failed, skipped; empty without one.
        artifacts: digest of each declared output that it left, by name.
        stdout: digest of its stored output; empty when it left no record.
        stderr: digest of its stored standard error; empty when it left no record.
    """

    name: str
    kind: str
    outcome: str
    diff: str = ""
    checks: Mapping[str, int] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    stdout: str = ""
    stderr: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a plan.

    Attributes:
        id: run id.
        plan: plan hash.
        kind: how it ended, as the worst of its operations; `running` while it goes on.
        operations: in the order of the plan.
    """

    id: str
    plan: str
    kind: str
    operations: tuple[Operation, ...]

    @property
    def passed(self) -> bool:
        """Tell whether all of it passed."""
        return self.kind == "passed"

    @property
    def diffs(self) -> tuple[str, ...]:
        """Return the hashes of what it changed and could land, each once."""
        return tuple(dict.fromkeys(item.diff for item in self.operations if item.diff))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed path of a diff.

    Attributes:
        path: from the project's root.
        op: add, modify, delete, mode or symlink.
        mode: afterwards, as git writes it; empty for a path that goes.
        digest: of the content afterwards; empty for a path that goes.
    """

    path: str
    op: str
    mode: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """A change in quarantine, or one that landed.

    Attributes:
        hash: the diff hash.
        run: the run that made it.
        changes: what lands, sorted by path.
        obstacles: paths that may not land, each with the reason; then none of it can.
        flags: paths to look at closely, each with the reason.
        patch: the change as a patch for `git apply`.
        landed: when it landed; empty while it waits.
    """

    hash: str
    run: str
    changes: tuple[Change, ...]
    obstacles: Mapping[str, str]
    flags: Mapping[str, str]
    patch: bytes
    landed: str
