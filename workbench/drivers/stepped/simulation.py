"""The simulation driver: a seeded random choice determines every step, so that one number reproduces a whole run.

Each choice is one of: step a task, the master or the writer, or advance the clock. The weight of every actor is drawn
anew for each attempt, so that in some runs a task starves, in others the writer or the master does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from random import Random
from typing import Literal

from workbench.clock import VirtualClock
from workbench.drivers.contract.probes import Probe, Probes, attach, attach_coordinator, detach
from workbench.drivers.contract.serial import CLOCK, MASTER, WRITER
from workbench.drivers.contract.step import Step
from workbench.drivers.faults.acknowledgements import Acknowledgements, Post
from workbench.drivers.faults.faults import FaultInjector
from workbench.drivers.stepped.stepping import SteppingDriver
from workbench.durations import MAX_TIME
from workbench.elements import (
    CheckpointBarrier,
    Element,
    EndOfInFlight,
    EndOfStream,
    LatencyMarker,
    Records,
    Watermark,
    WatermarkStatus,
)
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.job.master import Master
from workbench.runtime.job.succession import fail_over
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Outcome, Task

_WILLINGNESS = (0.03, 0.3, 1.0, 1.0, 1.0)
_TIME_PASSES = (0.0, 0.02, 0.2)
_STEP_US = (0, 0, 20, 40)
FAIR_AFTER = 10_000
"""The number of steps of a run that may be unfair, to find safety violations. After that all actors take turns, and the
job must end: a task with one turn in thirty may be slower than its barriers arrive, so that no job would end."""
_STALL_US_MAX = 20_000
"""While a step is possible, the clock jumps no further than this: a machine may be busy for this long."""


_LETTERS: dict[type[Element], str] = {
    Watermark: "w",
    WatermarkStatus: "idle",
    CheckpointBarrier: "b",
    LatencyMarker: "l",
    EndOfInFlight: "f",
    EndOfStream: "end",
}


class _Elements(Probe):
    """Records the elements that move in a step."""

    def __init__(self) -> None:
        self.moved: list[str] = []

    def sent(self, channel: Channel, element: Element) -> None:
        self.moved.append("+" + _short(element))

    def received(self, channel: Channel, element: Element) -> None:
        self.moved.append("-" + _short(element))


def _short(element: Element) -> str:
    return f"r{element.batch.num_rows}" if type(element) is Records else _LETTERS[type(element)]


class SimulationDriver(SteppingDriver):
    """Runs one job in an order that `chance` selects; a stepping driver, so that a user can continue by hand anywhere.

    Args:
        chance: the only source of randomness.
        clock: the job's.
        faults: the injected faults.
        probe: observes the run.
        trace: receives one line per step: actor, outcome, time and the elements that moved (+ sent, - received, r3:
            three records).

    Attributes:
        actor: the actor of the last step.
        skipped_us: how far faults have advanced the clock.
        probe: all probes of the run, for parts that the driver does not probe itself (storage, tables).
    """

    def __init__(
        self, chance: Random, clock: VirtualClock, faults: FaultInjector, probe: Probe, trace: list[str]
    ) -> None:
        super().__init__(clock, lambda: None)
        self._chance = chance
        self._faults = faults
        self._elements = _Elements()
        self._acknowledgements = Acknowledgements(faults)
        self.probe = Probes(self._elements, probe, faults)
        self._fair = False
        self._willing: dict[str, float] = {}
        self._time_passes = chance.choice(_TIME_PASSES)
        self._step_us = chance.choice(_STEP_US)
        self._trace = trace
        self.actor = ""
        self.skipped_us = 0
        faults.crash = self._crash
        faults.fail = self._fail
        faults.pass_time = self._skip

    def run(self, master: Master) -> None:
        """Take over the job and let its master deploy it."""
        attach_coordinator(master.coordinator, self.probe)
        super().run(master)

    def hand_over(self, master: Master) -> None:
        """Step this master from now on."""
        attach_coordinator(master.coordinator, self.probe)
        super().hand_over(master)

    def start(self, execution: Execution) -> None:
        """Probe the attempt, and draw the weight of each actor."""
        super().start(execution)
        attach(execution, self.probe)
        for task in execution.tasks:
            if not isinstance(task.host, Post):  # of a region that keeps running
                task.host = Post(self._acknowledgements, task.host, task.name)
        self._draw([task.name for task in execution.tasks])

    def stop(self, execution: Execution) -> Collection[Task]:
        """Stop stepping them."""
        left = super().stop(execution)
        detach(execution)
        return left

    def step(self, until_us: int = MAX_TIME) -> Step | None:
        """Take one step; None if nothing can happen: the job is over, paused or stuck, or `until_us` is reached.

        Raises:
            Killed: a fault ended the process.
        """
        outcome = None if self.ended.is_set() or self.clock.now_us() > until_us else self.advance()
        return None if outcome is None else self._took(self.actor, outcome)

    def advance(self) -> str | None:
        """Take one step of a job that is not over, and return only its outcome: a search takes millions of them.

        Raises:
            Killed: a fault ended the process.
        """
        if len(self._trace) >= FAIR_AFTER:
            self.be_fair()
        self._faults.at("step", "")
        self._acknowledgements.step()
        moved = self._elements.moved
        moved.clear()
        self.actor, outcome = self._choose_and_step()
        if not self.actor:
            return None
        now_us = self.clock.now_us()
        self._trace.append(f"{self.actor} {outcome} {now_us} {''.join(moved)}")
        if self._step_us:
            self._pass_time(now_us + self._step_us)
        if self.actor == MASTER:  # a job ends only on the master's turn
            self._after()
        else:
            self._on_step()
        return outcome

    def _choose_and_step(self) -> tuple[str, str]:
        tasks = self._awake()
        willing = self._willing
        shares = [willing.get(task.name, 1.0) for task in tasks]
        ready = self._master_ready()
        if ready:
            shares.append(willing.get(MASTER, 1.0))
        if self._work:
            shares.append(willing.get(WRITER, 1.0))
        if not shares and self._acknowledgements.deliver_all():
            return MASTER, "mail"
        if not shares or (self._time_passes and self._chance.random() < self._time_passes):
            due = self._next_due_us()
            if due is None and not shares:
                return "", ""
            if due is not None and (not shares or due - self.clock.now_us() <= _STALL_US_MAX):
                self._pass_time(due)
                return CLOCK, "passed"
        place = self._pick(shares)
        if place < len(tasks):
            task = tasks[place]
            outcome = self._step_task(task)
            return task.name, "failed" if outcome is None else outcome._value_
        if ready and place == len(tasks):
            self.master.step()
            return MASTER, self.master.state
        self._work.popleft()()
        return WRITER, "wrote"

    def _step_task(self, task: Task) -> Outcome | None:
        """Step a task; a task without news then sleeps immediately, as under a slot's thread, so that no separate step
        is needed to find out that it has no work."""
        self._faults.in_task = True
        try:
            outcome = super()._step_task(task)
        finally:
            self._faults.in_task = False
        if outcome is Outcome.PROGRESSED and not task.finished and not task.has_news:
            due = task.next_due_us()
            if due is None or due > self.clock.now_us():
                self._asleep[task.name] = due
        return outcome

    def _pick(self, shares: list[float]) -> int:
        """The index of the actor whose turn it is, drawn in proportion to the weights."""
        if len(shares) == 1:
            return 0
        left = self._chance.random() * sum(shares)
        for place, share in enumerate(shares):
            left -= share
            if left < 0:
                return place
        return len(shares) - 1

    def be_fair(self) -> None:
        """From now on no actor starves, and time passes only while there is nothing to do: now the job must end."""
        self._fair = True
        self._time_passes = 0.0
        self._willing.clear()

    def _draw(self, tasks: list[str]) -> None:
        if self._fair:
            return
        self._willing = {actor: self._chance.choice(_WILLINGNESS) for actor in (MASTER, WRITER, *tasks)}

    def _crash(self, task: int | str) -> None:
        if self.execution is not None:
            tasks = self.execution.tasks
            self.master.crash(task if isinstance(task, str) else tasks[task % len(tasks)].name)

    def _fail(self, kind: Literal["machine", "coordinator"], task: int) -> None:
        master = self.master
        if kind == "coordinator":
            master.call(lambda: fail_over(master, self, self.hand_over))
        elif self.execution is not None:
            tasks = self.execution.tasks
            machine = tasks[task % len(tasks)].slot.partition("/")[0]
            lost = [task.name for task in tasks if task.slot.partition("/")[0] == machine]
            master.call(lambda: master.lose(machine, lost))

    def _skip(self, us: int) -> None:
        self.skipped_us += us
        self._pass_time(self.clock.now_us() + us)


def trace_hash(trace: Sequence[str]) -> str:
    """SHA-256 of a trace: equal for equal seeds, in any process."""
    return hashlib.sha256("\n".join(trace).encode()).hexdigest()
