"""A worker's JUnit report: counted from its cases, hostile ones refused with a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.execution.quarantine import report
from harness.execution.quarantine.report import TestReport, read_report

PYTEST = b"""<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests"><testsuite name="pytest" errors="1" failures="1" skipped="1"
 tests="5" time="0.1" timestamp="2026-01-01T00:00:00" hostname="h">
<testcase classname="t" name="ok" time="0.0"/>
<testcase classname="t" name="bad" time="0.0"><failure message="m">text</failure></testcase>
<testcase classname="t" name="setup" time="0.0"><error message="m">text</error></testcase>
<testcase classname="t" name="skip" time="0.0"><skipped type="pytest.skip" message="m"/></testcase>
<testcase classname="t" name="out" time="0.0"><system-out>failure</system-out></testcase>
</testsuite></testsuites>"""


def suite(inside: str, attributes: str = "") -> bytes:
    return f"<testsuite {attributes}>{inside}</testsuite>".encode()


def test_pytests_own_report_is_counted() -> None:
    found = read_report(PYTEST)
    assert found == TestReport(passed=2, failed=2, skipped=1)
    assert found.counts() == {"run": 4, "passed": 2, "failed": 2, "skipped": 1}


@given(st.lists(st.sampled_from(["", "<failure/>", "<error/>", "<skipped/>"]), max_size=30))
def test_counts_are_those_of_the_cases(insides: list[str]) -> None:
    found = read_report(suite("".join(f"<testcase>{inside}</testcase>" for inside in insides)))
    assert found.problem == ""
    assert found.passed == insides.count("")
    assert found.skipped == insides.count("<skipped/>")
    assert found.run == len(insides) - insides.count("<skipped/>")


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<testcase><failure/><error/></testcase>", TestReport(failed=1)),
        ("<testcase><skipped/><failure/></testcase>", TestReport(failed=1)),
        ("<testcase><failure/><skipped/></testcase>", TestReport(failed=1)),
        ("<testcase status='notrun'/>", TestReport(skipped=1)),
        ("<testcase><rerunFailure/></testcase>", TestReport(passed=1)),
        ("<testcase><system-out><failure/></system-out></testcase>", TestReport(passed=1)),
        ("<testsuite><testcase/></testsuite><testcase/>", TestReport(passed=2)),
        ("<x:testcase xmlns:x='urn:x'/>", TestReport(passed=1)),
        ("", TestReport()),
    ],
)
def test_cases_are_judged_one_by_one(inside: str, expected: TestReport) -> None:
    assert read_report(suite(inside)) == expected


def test_a_report_without_cases_ran_nothing() -> None:
    assert read_report(b"<testsuites/>").run == 0


def test_a_suite_that_claims_more_failures_than_its_cases_show_is_a_problem() -> None:
    found = read_report(suite("<testcase/>", "errors='1' failures='0'"))
    assert "a suite says 1 failures and errors, its cases show 0" in found.problem
    assert found.counts() == {}


LAUGHS = (
    b'<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    b"<testsuite><testcase name='&b;'/></testsuite>"
)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (LAUGHS, "holds a DOCTYPE or an entity"),
        (b"<!DOCTYPE testsuite SYSTEM 'file:///etc/passwd'><testsuite/>", "holds a DOCTYPE"),
        (b"", "is not well-formed XML"),
        (b"<testsuite>", "is not well-formed XML at line 1"),
        (b"\x1b[31mnot xml", "is not well-formed XML"),
        (b"<testsuite><testcase name='\x00'/></testsuite>", "is not well-formed XML"),
        (b"<?xml version='1.0' encoding='no-such'?><testsuite/>", "is not well-formed XML"),
        (b"<html/>", "expected testsuites or testsuite as its root"),
        (suite("<testcase><testcase/></testcase>"), "no testcase inside a testcase"),
        (suite("<a>" * 100 + "</a>" * 100), "64 levels"),
    ],
)
def test_hostile_and_broken_reports_become_a_problem(data: bytes, problem: str) -> None:
    found = read_report(data)
    assert problem in found.problem
    assert found.counts() == {}


def test_a_report_that_is_too_large_or_has_too_many_elements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report, "MAX_ELEMENTS", 10)
    assert "at most 10 elements" in read_report(suite("<testcase/>" * 10)).problem
    monkeypatch.setattr(report, "MAX_REPORT_BYTES", 10)
    assert "at most 10 bytes" in read_report(suite("")).problem


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    assert read_report(data).problem


@given(st.text(max_size=80))
def test_no_text_inside_a_suite_raises(text: str) -> None:
    read_report(suite(text))
