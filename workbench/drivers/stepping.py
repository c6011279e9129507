"""The stepping driver: a person takes the steps, one at a time or until something happens.

Nothing runs by itself and the clock stands still between steps, so every queue, watermark and barrier can be looked at
for as long as one likes. The order is fixed: each task in the order of the graph, then the master, then the writer,
over and over; when none of them can do anything, the clock goes on to the next moment at which one can.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from workbench.clock import VirtualClock
from workbench.drivers.serial import CLOCK, MASTER, WRITER, SerialDriver
from workbench.errors import JobError, unknown
from workbench.runtime.channel import Channel
from workbench.runtime.master import Master
from workbench.runtime.task import Task

STEPS_MAX = 1_000_000
"""After so many steps without what was waited for, a verb gives up."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step that was taken.

    Attributes:
        actor: a task's name, ``"master"``, ``"writer"`` or ``"clock"``.
        outcome: how it ended.
        time_us: the job's time after it.
    """

    actor: str
    outcome: str
    time_us: int

    def __str__(self) -> str:
        return f"{self.actor}: {self.outcome}"


class SteppingDriver(SerialDriver):
    """Runs one job step by step.

    Args:
        clock: the job's.
        on_step: called after each step (telemetry samples here).

    Example::

        job = pipeline.run("lesson", driver="stepping", buffer_size=1)
        job.step(3)
        job.driver.next_watermark()
        job.status()
    """

    def __init__(self, clock: VirtualClock, on_step: Callable[[], None]) -> None:
        super().__init__(clock)
        self._on_step = on_step
        self._turn = 0

    def run(self, master: Master) -> None:
        """Take the job over and let its master deploy it, so that there is something to look at."""
        super().run(master)
        master.step()
        self._after()

    def watch(self, on_step: Callable[[], None]) -> None:
        """Have `on_step` called after each step from now on, instead of what was called before."""
        self._on_step = on_step

    # verbs -------------------------------------------------------------------------------------------------------

    def step(self) -> Step | None:
        """Take the next step that does something; None when nothing can happen: the job is over or paused."""
        if self.ended.is_set():
            return None
        step = self._round() or self._next_moment()
        if step is not None:
            self._after()
        return step

    def step_task(self, name: str) -> Step:
        """Step one task, whether or not it has something to do.

        Raises:
            JobError: no such task, or it has finished or failed.
        """
        tasks = {} if self.execution is None else {task.name: task for task in self.execution.tasks}
        if name not in tasks:
            raise JobError(unknown("task", name, tasks))
        if not self._alive(tasks[name]):
            raise JobError(f"the task {name!r} has ended and takes no more steps: step the others, or the master")
        step = self._task_step(tasks[name])
        self._after()
        return step

    def run_until(self, condition: Callable[[], bool], limit: int = STEPS_MAX) -> bool:
        """Take steps until `condition` holds, at most `limit`; whether it does."""
        for _ in range(limit):
            if condition():
                return True
            if self.step() is None:
                break
        return condition()

    def next_buffer(self) -> bool:
        """Go on until a task has taken a buffer of records from a channel; False when the job ended before."""
        return self._until_changed(lambda: [channel.buffers_received for channel in self._channels()])

    def next_barrier(self) -> bool:
        """Go on until a checkpoint barrier has moved: left a source, or been taken by a task."""
        return self._until_changed(lambda: [channel.barriers() for channel in self._channels()])

    def next_watermark(self) -> bool:
        """Go on until event time has advanced in some task."""
        return self._until_changed(lambda: [task.output_watermark_us for task in self._tasks()])

    def next_checkpoint(self) -> bool:
        """Go on until a checkpoint is complete."""
        return self._until_changed(lambda: self.master.coordinator.completed)

    def wait_for(self, event: threading.Event, seconds: float | None) -> bool:
        """Let the master have its turn, then go on until `event` is set, for so many seconds of the job's time."""
        end_us = None if seconds is None else self.clock.now_us() + int(seconds * 1e6)
        if self._master_ready():
            self.master.step()
            self._after()
        self.run_until(lambda: event.is_set() or (end_us is not None and self.clock.now_us() > end_us))
        return event.is_set()

    # inside ------------------------------------------------------------------------------------------------------

    def _tasks(self) -> tuple[Task, ...]:
        return () if self.execution is None else self.execution.tasks

    def _channels(self) -> tuple[Channel, ...]:
        return () if self.execution is None else self.execution.channels

    def _until_changed(self, look: Callable[[], object]) -> bool:
        before = look()
        return self.run_until(lambda: self.ended.is_set() or look() != before) and not self.ended.is_set()

    def _round(self) -> Step | None:
        """Give everybody a turn, from whose turn it is on, until one has done something."""
        names = [*(task.name for task in self._tasks()), MASTER, WRITER]
        for offset in range(len(names)):
            place = (self._turn + offset) % len(names)
            step = self._turn_of(place, names[place])
            if step is not None:
                self._turn = place + 1
                return step
        return None

    def _turn_of(self, place: int, name: str) -> Step | None:
        if name == MASTER:
            if not self._master_ready():
                return None
            self.master.step()
            return self._took(MASTER, self.master.state.lower())
        if name == WRITER:
            if not self._work:
                return None
            self._work.popleft()()
            return self._took(WRITER, "wrote")
        task = self._tasks()[place]
        if task.name in self._asleep or not self._alive(task):
            return None
        step = self._task_step(task)
        return None if task.name in self._asleep else step

    def _task_step(self, task: Task) -> Step:
        self._asleep.pop(task.name, None)
        outcome = self._step_task(task)
        return self._took(task.name, "failed" if outcome is None else outcome.value)

    def _next_moment(self) -> Step | None:
        due = self._next_due_us()
        if due is None:
            return None
        self._pass_time(due)
        return self._took(CLOCK, "passed")

    def _took(self, actor: str, outcome: str) -> Step:
        return Step(actor, outcome, self.clock.now_us())

    def _after(self) -> None:
        self._end_if_over()
        self._on_step()
