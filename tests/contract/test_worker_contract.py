"""Running one operation: the same ends on the fake and on a real engine."""

from __future__ import annotations

import dataclasses
import hashlib
import threading
import time
from typing import Literal

import pytest

from harness.execution.worker.operation import StopRequest
from harness.model.limits import MIB
from tests.fakes.bench import SMALL, Bench, Scenario
from tests.fakes.engine import Die, Err, Exit, Out, Program, Sleep, Write

HELLO = Scenario(code="print('hello')", events=[Out(b"hello\n")])
FOREVER = Scenario(code="import time; time.sleep(60)", events=[Sleep(60)])
STUBBORN = Scenario(
    code="import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(25)",
    events=[Sleep(25, ignores_term=True)],
)


def test_a_payload_that_exits_0_passes(bench: Bench) -> None:
    ran = bench.run(HELLO)
    assert str(ran.outcome) == "passed"
    assert ran.out == b"hello\n"
    assert ran.err == b""
    assert ran.result.stdout.record.total_bytes == 6
    assert ran.result.problems == ()
    assert ran.result.workspace == "overlay"


def test_steps_run_in_order_and_the_first_that_fails_ends_the_run(bench: Bench) -> None:
    ran = bench.run(
        HELLO,
        Scenario(code="import sys; sys.exit(3)", events=[Exit(3)]),
        Scenario(code="print('never')", events=[Out(b"never\n")]),
    )
    assert str(ran.outcome) == "failed(3)"
    assert [step.index for step in ran.result.facts.steps] == [0, 1]
    assert ran.out == b"hello\n"


def test_a_signal_is_told_from_an_exit_status(bench: Bench) -> None:
    code = "import os,signal; os.kill(os.getpid(), signal.SIGSEGV)"
    assert str(bench.run(Scenario(code=code, events=[Die(11)])).outcome) == "signalled(11)"


def test_a_missing_program_is_named_as_such(bench: Bench) -> None:
    ran = bench.run_operation(bench.operation(("no-such-program",)))
    assert str(ran.outcome) == "failed(127): could not be executed"
    assert ran.result.facts.steps[0].exec_errno == 2


def test_a_step_with_an_allowed_exit_code_is_done_and_the_record_keeps_the_code(
    bench: Bench,
) -> None:
    five = Scenario(code="import sys; sys.exit(5)", events=[Exit(5)], allowed_exits=(0, 5))
    ran = bench.run(five, HELLO, five)
    assert str(ran.outcome) == "passed"
    assert [step.exit for step in ran.result.facts.steps] == [5, 0, 5]
    assert ran.out == b"hello\n"


def test_an_exit_code_that_is_not_in_the_list_fails_0_too(bench: Bench) -> None:
    ran = bench.run(dataclasses.replace(HELLO, allowed_exits=(5,)), HELLO)
    assert str(ran.outcome) == "failed(0)"
    assert [step.index for step in ran.result.facts.steps] == [0]


def test_a_step_beyond_its_timeout_ends_and_nothing_comes_after_it(bench: Bench) -> None:
    ran = bench.run(HELLO, dataclasses.replace(FOREVER, timeout_ms=400), HELLO)
    assert str(ran.outcome) == "timeout(step 2: scenario 2)"
    assert ran.outcome.step == 1
    assert [(step.exit, step.timed_out) for step in ran.result.facts.steps] == [
        (0, False),
        (None, True),
    ]
    assert ran.result.facts.steps[1].signal == 15
    assert ran.out == b"hello\n"


def test_a_step_that_ignores_term_ends_a_grace_after_its_timeout(bench: Bench) -> None:
    started = time.monotonic()
    ran = bench.run(dataclasses.replace(STUBBORN, timeout_ms=600))
    assert str(ran.outcome) == "timeout(step 1: scenario 1)"
    assert ran.result.facts.steps[0].signal == 9
    assert time.monotonic() - started < 8


def test_a_timeout_is_each_step_s_own(bench: Bench) -> None:
    short = Scenario(code="import time; time.sleep(0.5)", events=[Sleep(0.5)], timeout_ms=2000)
    assert str(bench.run(short, short).outcome) == "passed"


@pytest.mark.fault("L003")
def test_a_payload_that_ignores_term_ends_within_its_grace(bench: Bench) -> None:
    started = time.monotonic()
    ran = bench.run(STUBBORN, limits=dataclasses.replace(SMALL, wall_ms=500))
    assert str(ran.outcome) == "timeout(wall)"
    assert ran.result.facts.steps[0].signal == 9
    assert time.monotonic() - started < 8


@pytest.mark.fault("L008")
def test_a_run_after_a_timeout_is_not_touched_by_it(bench: Bench) -> None:
    ran = bench.run(FOREVER, HELLO, limits=dataclasses.replace(SMALL, wall_ms=400))
    assert str(ran.outcome) == "timeout(wall)"
    assert ran.outcome.step == 0
    assert [step.index for step in ran.result.facts.steps] == [0]
    assert str(bench.run(HELLO).outcome) == "passed"


def test_silence_beyond_the_idle_limit_ends_the_run(bench: Bench) -> None:
    ran = bench.run(FOREVER, limits=dataclasses.replace(SMALL, idle_ms=400))
    assert str(ran.outcome) == "timeout(idle)"


@pytest.mark.alone
def test_output_keeps_the_idle_clock_from_running_out(bench: Bench) -> None:
    code = "import time\nfor _ in range(4):\n    print('.', flush=True); time.sleep(0.4)"
    events: Program = [Out(b".\n"), Sleep(0.4)] * 4
    limits = dataclasses.replace(SMALL, idle_ms=1200)
    assert str(bench.run(Scenario(code=code, events=events), limits=limits).outcome) == "passed"


@pytest.mark.fault("L019")
@pytest.mark.parametrize(("more", "outcome"), [(-1, "passed"), (0, "passed"), (1, "output-limit")])
def test_the_output_limit_is_exact(bench: Bench, more: int, outcome: str) -> None:
    limit = 100_000
    data = b"x" * (limit + more - 10)
    code = (
        f"import sys; sys.stderr.write('e' * 10); sys.stderr.flush();"
        f" sys.stdout.write('x' * {len(data)})"
    )
    ran = bench.run(
        Scenario(code=code, events=[Err(b"e" * 10), Out(data)]),
        limits=dataclasses.replace(SMALL, output_bytes=limit),
        keep_bytes=1000,
    )
    record = ran.result.stdout.record
    assert str(ran.outcome) == outcome
    assert record.total_bytes == len(data)
    assert record.digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert record.truncated
    assert (record.head_bytes, record.tail_bytes) == (1000, 1000)
    assert b"[... %d bytes not kept ...]" % (len(data) - 2000) in ran.out
    assert ran.err == b"e" * 10


@pytest.mark.fault("L023")
def test_both_streams_are_drained_at_once(bench: Bench) -> None:
    code = "import sys; sys.stderr.write('e' * (1 << 20)); sys.stdout.write('o' * (1 << 20))"
    events: Program = [Err(b"e" * MIB), Out(b"o" * MIB)]
    ran = bench.run(Scenario(code=code, events=events), keep_bytes=2 * MIB)
    assert str(ran.outcome) == "passed"
    assert (ran.err, ran.out) == (b"e" * MIB, b"o" * MIB)


def test_a_write_over_the_workspace_limit_ends_the_run(bench: Bench) -> None:
    code = "open('big', 'wb').write(b'x' * (6 << 20))"
    ran = bench.run(
        Scenario(code=code, events=[Write("big", b"x" * (6 * MIB))]),
        limits=dataclasses.replace(SMALL, workspace_bytes=4 * MIB),
    )
    assert str(ran.outcome) == "disk-limit"


@pytest.mark.parametrize(
    ("reason", "outcome"), [("interrupt", "interrupted"), ("cancel", "cancelled")]
)
def test_a_stop_request_ends_the_run(
    bench: Bench, reason: Literal["interrupt", "cancel"], outcome: str
) -> None:
    stop = StopRequest()
    timer = threading.Timer(0.6, stop.ask, [reason])
    timer.start()
    ran = bench.run(FOREVER, stop=stop)
    timer.join()
    assert str(ran.outcome) == outcome
    assert ran.result.facts.finished


def test_a_failing_onlooker_loses_nothing_stored(bench: Bench) -> None:
    def broken(stream: str, data: bytes) -> None:
        raise OSError(f"{stream} {len(data)}")

    assert bench.run(HELLO, sink=broken).out == b"hello\n"


def test_an_onlooker_sees_the_output_in_its_order(bench: Bench) -> None:
    seen: list[tuple[str, bytes]] = []
    ran = bench.run(HELLO, sink=lambda stream, data: seen.append((stream, data)))
    assert str(ran.outcome) == "passed"
    assert b"".join(data for _, data in seen) == b"hello\n"
    assert ran.result.live_missed == 0


def test_the_upper_layer_holds_what_was_written(bench: Bench) -> None:
    code = "import os; os.mkdir('new'); open('new/file', 'w').write('x')"
    ran = bench.run(Scenario(code=code, events=[Write("new/file", b"x")]))
    assert (ran.result.upper / "new" / "file").read_bytes() == b"x"
    assert ran.result.workspace_folder.stat().st_mode & 0o777 == 0o700
    bench.remove(ran)
    assert not ran.result.workspace_folder.exists()


def test_the_limits_are_read_back(bench: Bench) -> None:
    observed = bench.run(HELLO).result.observed
    assert observed["memory"] == observed["memorySwap"] == SMALL.memory_bytes
    assert observed["pidsLimit"] == SMALL.pids
    assert observed["networkMode"] == "none"
    assert observed["readonlyRootfs"] is True
    assert observed["capDrop"] == ["ALL"]
    assert observed["imageId"] == bench.image
