"""A run record: what happened in one operation of a run, observed and never requested.

v2 added the operation, why its workspace strategy was chosen, the type of an artifact, and whether
a step reached its timeout. A record keeps the version it was written in, so that its digest never
changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest
from harness.model.outcome import Outcome, StepReport, parse_outcome

RUN_KIND = "harness/run-record/v2"
RUN_KIND_V1 = "harness/run-record/v1"

RENAME_HINT = (
    "if a step renames a folder of the project, that fails here with EXDEV; "
    "`workspace: copy` in the recipe allows it"
)
"""Nothing on this side can see whether that was it, so each failure on the overlay says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecord:
    """One output stream: how much there was, its hash, and how much of it was kept.

    Attributes:
        total_bytes: all bytes seen.
        digest: over all bytes seen.
        kept: digest of the stored log; the same as `digest` unless it was cut.
        truncated: the middle was not kept: the log holds head, a mark, and tail.
        head_bytes: bytes kept of the beginning.
        tail_bytes: bytes kept of the end; 0 when nothing was cut.
    """

    total_bytes: int
    digest: Digest
    kept: Digest
    truncated: bool
    head_bytes: int
    tail_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "totalBytes": self.total_bytes,
            "digest": self.digest,
            "kept": self.kept,
            "truncated": self.truncated,
            "headBytes": self.head_bytes,
            "tailBytes": self.tail_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One declared output that the run left behind.

    Attributes:
        name: what people call it.
        path: in the workspace.
        size: bytes.
        digest: of its bytes.
        type: media type that the recipe declares; empty without one.
    """

    name: str
    path: str
    size: int
    digest: Digest
    type: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {
            "name": self.name,
            "path": self.path,
            "size": self.size,
            "digest": self.digest,
            "type": self.type,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What happened in one operation; its digest is on the ledger.

    Attributes:
        run: run id.
        operation: name of the operation; empty in a record of v1, whose run had one.
        plan: plan hash.
        seal: seal digest.
        outcome: how it ended.
        started: RFC 3339 time before the container was created.
        finished: RFC 3339 time after it was removed.
        steps: init's reports.
        stdout: what the payload wrote to its standard output.
        stderr: what it wrote to its standard error.
        checks: counts of the test report: run, passed, failed, skipped; empty without one.
        artifacts: declared outputs that exist.
        observed: limits and identity as read back from the engine and the cgroup; a value that
            the host can't show is the text `unavailable`.
        usage: wall_ms, cpu_ms, memory_peak_bytes, pids_peak, oom_kills; or `unavailable`.
        workspace: strategy used: overlay or copy.
        workspace_reason: why that one; empty in a record of v1, which had only the overlay.
        engine: version of the engine.
        kind: the version it was written in.
    """

    run: str
    operation: str
    plan: Digest
    seal: Digest
    outcome: Outcome
    started: str
    finished: str
    steps: tuple[StepReport, ...]
    stdout: StreamRecord
    stderr: StreamRecord
    checks: Mapping[str, int]
    artifacts: tuple[Artifact, ...]
    observed: Mapping[str, Any]
    usage: Mapping[str, Any]
    workspace: str
    workspace_reason: str
    engine: str
    kind: str = RUN_KIND

    @property
    def hint(self) -> str:
        """Return what may help a recipe that failed; empty when there is nothing to say."""
        began = not any(step.exec_errno for step in self.steps)
        is_it = self.outcome.kind == "failed" and self.workspace == "overlay" and began
        return RENAME_HINT if is_it else ""

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        artifacts = [artifact.to_json() for artifact in self.artifacts]
        steps = [step.to_json() for step in self.steps]
        added = {"operation": self.operation, "workspaceReason": self.workspace_reason}
        if self.kind == RUN_KIND_V1:
            added = {}
            for artifact in artifacts:
                del artifact["type"]
            for step in steps:
                del step["timedOut"]
        return canonical_bytes(
            {
                "_type": self.kind,
                **added,
                "run": self.run,
                "plan": self.plan,
                "seal": self.seal,
                "outcome": self.outcome.to_json(),
                "started": self.started,
                "finished": self.finished,
                "steps": steps,
                "stdout": self.stdout.to_json(),
                "stderr": self.stderr.to_json(),
                "checks": dict(self.checks),
                "artifacts": artifacts,
                "observed": dict(self.observed),
                "usage": dict(self.usage),
                "workspace": self.workspace,
                "engine": self.engine,
            }
        )

    @property
    def digest(self) -> Digest:
        """Return the digest of the record."""
        return digest_of(self.to_bytes())


def parse_run_record(data: bytes) -> RunRecord:
    """Read a run record of any version.

    Raises:
        InputError: not canonical, malformed, or with unknown or missing members.
    """
    value = parse_canonical(data, RUN_KIND, RUN_KIND_V1)
    is_old = value["_type"] == RUN_KIND_V1
    try:
        record = RunRecord(
            run=value["run"],
            operation="" if is_old else value["operation"],
            plan=parse_digest(value["plan"]),
            seal=parse_digest(value["seal"]),
            outcome=parse_outcome(value["outcome"]),
            started=value["started"],
            finished=value["finished"],
            steps=tuple(
                StepReport(
                    index=step["index"],
                    exit=step["exit"],
                    signal=step["signal"],
                    exec_errno=step["execErrno"],
                    duration_ms=step["durationMs"],
                    timed_out=False if is_old else step["timedOut"],
                )
                for step in value["steps"]
            ),
            stdout=_parse_stream(value["stdout"]),
            stderr=_parse_stream(value["stderr"]),
            checks=value["checks"],
            artifacts=tuple(
                Artifact(
                    name=item["name"],
                    path=item["path"],
                    size=item["size"],
                    digest=parse_digest(item["digest"]),
                    type="" if is_old else item["type"],
                )
                for item in value["artifacts"]
            ),
            observed=value["observed"],
            usage=value["usage"],
            workspace=value["workspace"],
            workspace_reason="" if is_old else value["workspaceReason"],
            engine=value["engine"],
            kind=value["_type"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"run record: malformed: {error!r}"[:200]) from error
    if record.to_bytes() != data:
        raise InputError("run record: has unknown or missing members")
    return record


def _parse_stream(value: Mapping[str, Any]) -> StreamRecord:
    return StreamRecord(
        total_bytes=value["totalBytes"],
        digest=parse_digest(value["digest"]),
        kept=parse_digest(value["kept"]),
        truncated=value["truncated"],
        head_bytes=value["headBytes"],
        tail_bytes=value["tailBytes"],
    )
