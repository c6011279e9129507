"""The common part of drivers without threads: the caller takes every step, on a virtual clock.

There are four kinds of steps: a task's, the master's, one piece of background work, and the passing of time. A task
without work sleeps until its slot is woken (by the other end of a channel, or a command) or its due time comes, as
under
the live driver, but without periodic checks: a wake-up that the runtime misses becomes visible.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import TypeVar

from workbench.clock import VirtualClock
from workbench.errors import as_error
from workbench.raised import PASSING
from workbench.runtime.checkpoints.background import answered
from workbench.runtime.job.master import Master
from workbench.runtime.messages.messages import Failed, Query
from workbench.runtime.tasks.execution import Execution, Slot
from workbench.runtime.tasks.task import Outcome, Task

T = TypeVar("T")

MASTER = "master"
WRITER = "writer"
CLOCK = "clock"
"""Names of the actors that are not tasks."""


class SerialDriver:
    """Base of the stepping and the simulation driver; it is the master's stage and does its background work.

    Args:
        clock: the job's; only this driver advances it.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.ended = threading.Event()
        self.execution: Execution | None = None
        self._job: Master | None = None
        self._work: deque[Callable[[], None]] = deque()
        self._asleep: dict[str, int | None] = {}  # sleeping tasks, and when each is due
        self._dead: set[str] = set()  # tasks of this attempt that have failed

    @property
    def master(self) -> Master:
        """The job's master."""
        assert self._job is not None
        return self._job

    # for the master ----------------------------------------------------------------------------------------------

    def run(self, master: Master) -> None:
        """Take over the job; its first step will be the master's."""
        self._job = master
        master.call(master.start)

    def hand_over(self, master: Master) -> None:
        """Step this master from now on; called on the turn of its predecessor."""
        self._job = master
        master.call(master.start)

    def wake(self) -> None:
        """Does nothing: the master's inbox shows that it has work."""

    def start(self, execution: Execution) -> None:
        """Step the tasks of this attempt from now on."""
        self.execution = execution
        self._asleep.clear()
        self._dead.clear()
        for slot in execution.slots:
            slot.waker.parked = True
            slot.waker.wake = self._rouser(slot)

    def stop(self, execution: Execution) -> Collection[Task]:
        """Stop stepping them."""
        if self.execution is execution:
            self.execution = None
        return ()

    def leave_stalled_behind(self) -> None:
        """Does nothing: a caller would wait for a step, too."""

    def stalled(self) -> str:
        """Always empty: a caller would be waiting for the step."""
        return ""

    def inspect(self, task: Task, query: Query) -> None:
        """The task answers immediately, as no thread is in a step: observing a job does not advance it."""
        task.answer(query.question)

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Queue `work` for the writer; `done` is called with its result on the master's turn."""
        self._work.append(answered(work, done, self.master.call))

    # steps -------------------------------------------------------------------------------------------------------

    def _rouser(self, slot: Slot) -> Callable[[], None]:
        names = [task.name for task in slot.tasks]

        def rouse() -> None:
            for name in names:
                self._asleep.pop(name, None)

        return rouse

    def _awake(self) -> list[Task]:
        """The tasks that may have work."""
        if self.execution is None:
            return []
        asleep, dead = self._asleep, self._dead
        return [
            task
            for task in self.execution.tasks
            if task.name not in asleep and not task.finished and task.name not in dead
        ]

    def _alive(self, task: Task) -> bool:
        return not task.finished and task.name not in self._dead

    def _step_task(self, task: Task) -> Outcome | None:
        """Step a task, and let it sleep if it found no work; None: it failed."""
        try:
            outcome = task.step()
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001  whatever a task raises is its failure, and the job's to handle
            self._dead.add(task.name)
            task.host.report(Failed(task.name, as_error(error)))
            return None
        if outcome is not Outcome.PROGRESSED and not task.finished:
            due = task.next_due_us()
            # Work that is due and still not done waits for something other than time, such as room in the output.
            self._asleep[task.name] = due if due is not None and due > self.clock.now_us() else None
        return outcome

    def _master_ready(self) -> bool:
        master = self.master
        if master.has_news:
            return True
        due = master.next_due_us()
        return due is not None and due <= self.clock.now_us()

    def _next_due_us(self) -> int | None:
        """The next time at which a task or the master is due."""
        wanted = [time for name, time in self._asleep.items() if time is not None and name not in self._dead]
        due = self.master.next_due_us()
        if due is not None:
            wanted.append(due)
        return min(wanted) if wanted else None

    def _pass_time(self, until_us: int) -> None:
        self.clock.advance_to(until_us)
        asleep = self._asleep
        if asleep:
            now = self.clock.now_us()
            for name in [name for name, due in asleep.items() if due is not None and due <= now]:
                del asleep[name]

    def _end_if_over(self) -> None:
        """When the job is over, finish pending writes and notifications."""
        master = self.master
        while master.over and not self.ended.is_set():
            if self._work:
                self._work.popleft()()
            elif master.has_news:
                master.step()
            else:
                self.ended.set()
