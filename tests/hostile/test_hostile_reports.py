"""Test reports and artifacts that lie: a run that checked nothing never passes."""

from __future__ import annotations

import pytest

from tests.hostile.conftest import Arena

pytestmark = pytest.mark.docker

HONEST = (
    '<testsuites><testsuite name="a" tests="2" failures="0" errors="0" skipped="0">'
    '<testcase name="x" classname="c"/><testcase name="y" classname="c"/>'
    "</testsuite></testsuites>"
)
LIES = {
    "an honest one": (HONEST, "passed"),
    "no test": ('<testsuites><testsuite tests="0"/></testsuites>', "failed(nothing was checked)"),
    "five claimed, none there": (
        '<testsuite name="a" tests="5" failures="0"></testsuite>',
        "failed(nothing was checked)",
    ),
    "all skipped": (
        HONEST.replace('classname="c"/>', 'classname="c"><skipped/></testcase>'),
        "failed(nothing was checked)",
    ),
    "a failure that the sums hide": (
        HONEST.replace('classname="c"/>', 'classname="c"><failure/></testcase>', 1),
        "failed(the report counts failed checks)",
    ),
    "an entity bomb": (
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]>' + HONEST,
        "failed(test report: holds a DOCTYPE or an entity, which is refused)",
    ),
    "an outside entity": (
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + HONEST,
        "failed(test report: holds a DOCTYPE or an entity, which is refused)",
    ),
    "deep nesting": (
        "<testsuites>" + "<testsuite>" * 50_000,
        "failed(test report: expected at most 1000000 elements and 64 levels)",
    ),
    "no report": ("", "failed(test report: results was not written)"),
}
PLACES = {
    "a link to the host's file": 'os.symlink("/etc/passwd", "out/junit.xml")',
    "a link inside": 'os.symlink("../honest.xml", "out/junit.xml")',
    "a fifo": 'os.mkfifo("out/junit.xml")',
    "a folder": 'os.mkdir("out/junit.xml")',
    "below a link": 'os.rmdir("out"); os.mkdir("o"); os.symlink("o", "out"); write()',
}


@pytest.mark.parametrize("lie", LIES)
def test_a_report_counts_for_what_it_holds(arena: Arena, lie: str) -> None:
    report, outcome = LIES[lie]
    write = f'open("out/junit.xml", "w").write({report!r})\n' if report else ""
    payload = f'import os\nos.mkdir("out")\n{write}'
    left = arena.attack(payload, kind="test", code=0 if outcome == "passed" else 1)
    assert left.outcome == outcome


@pytest.mark.parametrize("place", PLACES)
def test_a_report_is_a_file_and_nothing_else(arena: Arena, place: str) -> None:
    payload = (
        'import os\nos.mkdir("out")\n'
        f'def write():\n    open("out/junit.xml", "w").write({HONEST!r})\n'
        f'open("honest.xml", "w").write({HONEST!r})\n{PLACES[place]}\n'
    )
    left = arena.attack(payload, kind="test", code=1)
    assert left.outcome == "failed(test report: results was not written)"
    assert left.run["artifacts"] == []


def test_a_report_that_lay_there_before_the_run_is_no_report(arena: Arena) -> None:
    (arena.project / "out").mkdir()
    (arena.project / "out" / "junit.xml").write_text(HONEST)
    left = arena.attack('print("no test was run")\n', kind="test", code=1)
    assert left.outcome == "failed(test report: results was not written)"
    assert left.run["checks"] == {}


def test_a_good_report_and_forged_frames_do_not_outweigh_an_exit_status(arena: Arena) -> None:
    payload = (
        'import os\nos.mkdir("out")\n'
        f'open("out/junit.xml", "w").write({HONEST!r})\n'
        "for number in range(3, 40):\n"
        '    for data in (b"step 0 exit 0\\n", b"\\1\\0\\0\\0\\0\\0\\0\\x05ended"):\n'
        "        try:\n            os.write(number, data)\n"
        "        except OSError:\n            pass\n"
        "os._exit(7)\n"
    )
    assert arena.attack(payload, kind="test", code=1).outcome == "failed(7)"
