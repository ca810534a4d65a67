"""The conversation with init, from its first word until it holds.

Enforces on the host: wall clock, idle clock, output limit, disk limit, requests to stop. What
takes too much is killed at once; what takes too long is asked first (SIGTERM, a grace, SIGKILL).
The timeout of a step is init's to enforce; here it is only guarded, with room for init's own work.
Refuses: to judge. It gathers facts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from harness.errors import EngineUnreachableError, InputError
from harness.execution.engine.port import Connection, Pause
from harness.execution.worker.live import LiveView
from harness.execution.worker.operation import Operation, StopRequest
from harness.execution.worker.output import OutputCapture
from harness.execution.worker.protocol import GO, KILL, TERM, Frame, FrameReader, parse_step_report
from harness.execution.worker.watch import DiskWatch
from harness.model.outcome import StepReport

READY_SECONDS = 30.0
"""From the container's start until init's first word."""

TICK_SECONDS = 0.1
"""How often the clocks are looked at while a worker is silent."""

REPORT_SECONDS = 15.0
"""After the grace: how long init may take to kill, drain and report."""

STEP_SECONDS = 5.0
"""Beyond a step's timeout and the grace: when the host no longer waits for init to end it."""

_WORDS_KEPT = 300


class Session:
    """One run's conversation; the attributes are what was learned.

    Args:
        connection: attached before the container was started.
        operation: its limits are enforced.
        captures: where stdout and stderr are kept.
        live: who looks on.
        disk: the watch over the upper layer.
        stop: requests to end.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        connection: Connection,
        operation: Operation,
        *,
        captures: tuple[OutputCapture, OutputCapture],
        live: LiveView,
        disk: DiskWatch,
        stop: StopRequest,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._limits = operation.limits
        self._planned = operation.steps
        self._grace = operation.grace_ms / 1000
        self._stdout, self._stderr = captures
        self._live, self._disk, self._stop, self._clock = live, disk, stop, clock
        self._frames = FrameReader()
        self._ready = False
        self._started = self._last_output = self._give_up = 0.0
        self._step_until = math.inf
        self._is_overdue = False
        self.steps: list[StepReport] = []
        self.finished = False
        self.outer_deadline = False
        self.stop_reason = ""
        self.infra = ""
        self.words = ""
        self.wall_ms = 0

    def run(self) -> None:
        """Wait for init, let the payload go, and gather facts until init holds or is lost.

        Raises:
            StateError: the output can't be stored.
        """
        try:
            self._await_ready()
            if self._ready:
                self._connection.send(GO)
                self._started = self._last_output = self._clock()
                self._follow()
                self.wall_ms = round((self._clock() - self._started) * 1000)
                if self._is_too_loud() and not self.stop_reason:
                    self.stop_reason = "output"
        except EngineUnreachableError:
            self.infra = self.infra or "connection to the engine was lost"
        except InputError:
            self.infra = "init spoke out of turn"

    def _await_ready(self) -> None:
        until = self._clock() + READY_SECONDS
        while self._take(TICK_SECONDS) and not self._ready:
            if self._clock() >= until:
                self.infra = "init did not get ready"
                return

    def _follow(self) -> None:
        while self._take(TICK_SECONDS):
            now = self._clock()
            if not self._give_up:
                self._enforce(now)
            elif now >= self._give_up:
                self.infra = self.infra or "init did not report in time"
                return

    def _enforce(self, now: float) -> None:
        """End the payload when a limit is passed; only the first reason counts."""
        limits = self._limits
        if self._is_too_loud():
            self._end_payload("output", KILL, now)
        elif self._disk.excess == "disk":
            self._end_payload("disk", KILL, now)
        elif self._disk.excess == "floor":
            self.infra = "free disk space fell below the floor"
            self._end_payload("", KILL, now)
        elif self._stop.reason:
            self._end_payload(self._stop.reason, TERM, now)
        elif now - self._started >= limits.wall_ms / 1000:
            self._end_payload("wall", TERM, now)
        elif now >= self._step_until:
            self._is_overdue = True
            self._end_payload("", KILL, now)
        elif limits.idle_ms and now - self._last_output >= limits.idle_ms / 1000:
            self._end_payload("idle", TERM, now)

    def _is_too_loud(self) -> bool:
        return self._stdout.total + self._stderr.total > self._limits.output_bytes

    def _end_payload(self, reason: str, line: bytes, now: float) -> None:
        self.stop_reason = reason
        self._give_up = now + self._grace + REPORT_SECONDS
        self._connection.send(line)

    def _take(self, seconds: float) -> bool:
        """Take what comes within so long; tell whether more can come."""
        received = self._connection.receive(seconds)
        if isinstance(received, Pause):
            return received is Pause.SILENCE
        if received.stream == "stderr":
            # Only init itself holds this descriptor: its own complaint, never the payload's.
            self.words = (self.words + received.data.decode("ascii", "replace"))[:_WORDS_KEPT]
        else:
            for frame in self._frames.feed(received.data):
                self._obey(frame)
        return not self.finished

    def _obey(self, frame: Frame) -> None:
        match frame.type:
            case "R":
                self._ready = True
            case "O":
                self._keep("stdout", self._stdout, frame.data)
            case "E":
                self._keep("stderr", self._stderr, frame.data)
            case "X":
                self._end_step(parse_step_report(frame.data))
            case "T":
                self.outer_deadline = True
            case "F":
                self.finished = True
            case "S":
                self._begin_step()

    def _begin_step(self) -> None:
        self._last_output = self._clock()
        number = len(self.steps)
        timeout_ms = self._planned[number].timeout_ms if number < len(self._planned) else 0
        if timeout_ms:
            wait = timeout_ms / 1000 + self._grace + STEP_SECONDS
            self._step_until = self._last_output + wait

    def _end_step(self, report: StepReport) -> None:
        self._step_until = math.inf
        self.steps.append(replace(report, timed_out=True) if self._is_overdue else report)

    def _keep(self, name: Literal["stdout", "stderr"], capture: OutputCapture, data: bytes) -> None:
        capture.write(data)
        self._live.offer(name, data)
        self._last_output = self._clock()
