"""A JUnit test report from a worker: counted, never believed.

Format: `testsuites`/`testsuite`/`testcase` with `failure`, `error` or `skipped` inside a case, as
pytest and the Jenkins xunit schema have it. Rules:
    * Counts come from the cases themselves; attributes of a suite are only compared with them.
    * A case that was skipped did not run. `run` is passed plus failed.
    * Any DOCTYPE or entity, and anything beyond the caps, is refused: the text of the problem
      comes back instead of counts, because a bad report is a fact about the run, not an error.
    * The file is parsed as a stream; no tree is built, and no text of the worker is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MAX_REPORT_BYTES = 64 << 20
MAX_ELEMENTS = 1_000_000
MAX_NESTING = 64

_ROOTS = ("testsuites", "testsuite")
_FAILURES = ("failure", "error")
_NOT_RUN = ("notrun", "disabled")  # GoogleTest's way to say that a case was not executed


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    """What a report says.

    Attributes:
        passed: cases that ran and passed.
        failed: cases with a failure or an error.
        skipped: cases that did not run.
        problem: why the report can't be used, one line; empty when it can.
    """

    __test__ = False  # not a test class, whatever pytest makes of its name

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    problem: str = ""

    @property
    def run(self) -> int:
        """Return the number of cases that ran."""
        return self.passed + self.failed

    def counts(self) -> Mapping[str, int]:
        """Return run, passed, failed and skipped as a run record has them; none on a problem."""
        if self.problem:
            return {}
        return {
            "run": self.run,
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped,
        }


def read_report(data: bytes) -> TestReport:
    """Count the cases of a JUnit report."""
    if len(data) > MAX_REPORT_BYTES:
        return TestReport(problem=f"test report: expected at most {MAX_REPORT_BYTES} bytes")
    # Only here: every run imports this module, and few recipes have a report.
    from xml.etree.ElementTree import ParseError  # noqa: PLC0415 - parsed by the next two

    from defusedxml import DefusedXmlException  # noqa: PLC0415
    from defusedxml.ElementTree import DefusedXMLParser  # noqa: PLC0415

    counter = _Counter()
    parser = DefusedXMLParser(target=counter, forbid_dtd=True)
    try:
        parser.feed(data)
        parser.close()
    except DefusedXmlException:
        return TestReport(problem="test report: holds a DOCTYPE or an entity, which is refused")
    except _RefusedError as error:
        return TestReport(problem=f"test report: {error}")
    except (ParseError, ValueError, LookupError) as error:
        place = getattr(error, "position", None)
        where = f" at line {place[0]}, column {place[1] + 1}" if place else ""
        return TestReport(problem=f"test report: is not well-formed XML{where}")
    if counter.declared > counter.failed:
        return TestReport(
            problem=f"test report: a suite says {counter.declared} failures and errors, "
            f"its cases show {counter.failed}"
        )
    return TestReport(passed=counter.passed, failed=counter.failed, skipped=counter.skipped)


class _RefusedError(Exception):
    """The report is well-formed but beyond what we accept."""


@dataclass(slots=True)
class _Counter:
    """The parser's target: sees elements begin and end.

    Attributes:
        declared: the most failures and errors any suite claims in its attributes.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    declared: int = 0
    _elements: int = 0
    _open: list[str] = field(default_factory=list)
    _verdict: str = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        self._elements += 1
        if self._elements > MAX_ELEMENTS or len(self._open) >= MAX_NESTING:
            raise _RefusedError(
                f"expected at most {MAX_ELEMENTS} elements and {MAX_NESTING} levels"
            )
        if not self._open and name not in _ROOTS:
            raise _RefusedError("expected testsuites or testsuite as its root")
        if name in _ROOTS:
            claimed = sum(_number(attributes.get(key, "")) for key in ("failures", "errors"))
            self.declared = max(self.declared, claimed)
        elif name == "testcase":
            if "testcase" in self._open:
                raise _RefusedError("expected no testcase inside a testcase")
            self._verdict = "skipped" if attributes.get("status") in _NOT_RUN else "passed"
        elif self._open[-1] == "testcase":
            if name in _FAILURES:
                self._verdict = "failed"
            elif name == "skipped" and self._verdict != "failed":
                self._verdict = "skipped"
        self._open.append(name)

    def end(self, _tag: str) -> None:
        if self._open.pop() != "testcase":
            return
        if self._verdict == "failed":
            self.failed += 1
        elif self._verdict == "skipped":
            self.skipped += 1
        else:
            self.passed += 1

    def close(self) -> None:
        """Return nothing: the counts are read from the fields."""


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0  # noqa: PLR2004 - digits enough for any suite
