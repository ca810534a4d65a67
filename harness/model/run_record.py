"""A run record: what happened in one run, and what was observed, never what was requested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import InputError
from harness.model.canonical import canonical_bytes, parse_canonical
from harness.model.digest import Digest, digest_of, parse_digest
from harness.model.outcome import Outcome, StepReport, parse_outcome

RUN_KIND = "harness/run-record/v1"


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
    """One declared output that the run left behind."""

    name: str
    path: str
    size: int
    digest: Digest

    def to_json(self) -> dict[str, Any]:
        """Return the JSON members."""
        return {"name": self.name, "path": self.path, "size": self.size, "digest": self.digest}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What happened in one run; its digest is on the ledger.

    Attributes:
        run: run id.
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
        workspace: strategy used.
        engine: version of the engine.
    """

    run: str
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
    engine: str

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        return canonical_bytes(
            {
                "_type": RUN_KIND,
                "run": self.run,
                "plan": self.plan,
                "seal": self.seal,
                "outcome": self.outcome.to_json(),
                "started": self.started,
                "finished": self.finished,
                "steps": [step.to_json() for step in self.steps],
                "stdout": self.stdout.to_json(),
                "stderr": self.stderr.to_json(),
                "checks": dict(self.checks),
                "artifacts": [artifact.to_json() for artifact in self.artifacts],
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
    """Read a run record.

    Raises:
        InputError: not canonical or malformed.
    """
    value = parse_canonical(data, RUN_KIND)
    try:
        return RunRecord(
            run=value["run"],
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
                )
                for item in value["artifacts"]
            ),
            observed=value["observed"],
            usage=value["usage"],
            workspace=value["workspace"],
            engine=value["engine"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"run record: malformed: {error!r}"[:200]) from error


def _parse_stream(value: Mapping[str, Any]) -> StreamRecord:
    return StreamRecord(
        total_bytes=value["totalBytes"],
        digest=parse_digest(value["digest"]),
        kept=parse_digest(value["kept"]),
        truncated=value["truncated"],
        head_bytes=value["headBytes"],
        tail_bytes=value["tailBytes"],
    )
