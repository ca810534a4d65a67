"""What a test report says of a run: the counts of all declared reports together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.execution.quarantine.report import MAX_REPORT_BYTES, TestReport, read_report
from harness.model.outcome import Facts
from harness.model.run_record import Artifact
from harness.store.blobs import BlobStore


def read_reports(
    outputs: Iterable[Mapping[str, Any]], artifacts: Sequence[Artifact], blobs: BlobStore
) -> TestReport | None:
    """Count the checks of all declared reports; None when the recipe declares none.

    Args:
        outputs: the recipe's outputs, as they are sealed.
        artifacts: those that exist.
        blobs: holds their bytes.
    """
    wanted = {output["name"] for output in outputs if output["report"]}
    if not wanted:
        return None
    total = TestReport()
    for artifact in artifacts:
        if artifact.name not in wanted:
            continue
        wanted.discard(artifact.name)
        if artifact.size > MAX_REPORT_BYTES:
            return TestReport(problem=f"test report: more than {MAX_REPORT_BYTES} bytes")
        report = read_report(blobs.get(artifact.digest))
        if report.problem:
            return report
        total = TestReport(
            passed=total.passed + report.passed,
            failed=total.failed + report.failed,
            skipped=total.skipped + report.skipped,
        )
    if wanted:
        return TestReport(problem=f"test report: {', '.join(sorted(wanted))} was not written")
    return total


def with_checks(facts: Facts, report: TestReport | None) -> Facts:
    """Return the facts of a run with the counts of its test report, if it has one."""
    if report is None:
        return facts
    return replace(
        facts,
        checks_run=None if report.problem else report.run,
        checks_failed=report.failed,
        report_problem=report.problem,
    )
