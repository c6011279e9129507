"""What the drivers without threads share: every step is taken by the caller, on a virtual clock.

There are four kinds of steps: a task's, the master's, one piece of background work, and the passing of time. A task
that found nothing to do sleeps until its slot is woken (by the other end of a channel, or a command) or its due time
comes, as under the live driver, only that nothing looks around in between: a wake-up that the runtime forgets shows.
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
from workbench.runtime.tasks.deployment import Execution, Slot
from workbench.runtime.tasks.task import Outcome, Task

T = TypeVar("T")

MASTER = "master"
WRITER = "writer"
CLOCK = "clock"
"""Names of the actors that are not tasks."""


class SerialDriver:
    """Base of the stepping and the simulation driver; it is the master's stage and does its background work.

    Args:
        clock: the job's; this driver alone moves it.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.ended = threading.Event()
        self.execution: Execution | None = None
        self._job: Master | None = None
        self._work: deque[Callable[[], None]] = deque()
        self._asleep: dict[str, int | None] = {}  # sleeping tasks, and when each is due
        self._dead: set[str] = set()  # tasks of this attempt that failed

    @property
    def master(self) -> Master:
        """The job's master."""
        assert self._job is not None
        return self._job

    # what the master asks for ------------------------------------------------------------------------------------

    def run(self, master: Master) -> None:
        """Take the job over; its first step will be the master's."""
        self._job = master
        master.call(master.start)

    def hand_over(self, master: Master) -> None:
        """Step this master from now on; called on the turn of the one that it succeeds."""
        self._job = master
        master.call(master.start)

    def wake(self) -> None:
        """The master has something to do: its inbox says so."""

    def start(self, execution: Execution) -> None:
        """Step the tasks of this attempt from now on."""
        self.execution = execution
        self._asleep.clear()
        self._dead.clear()
        for slot in execution.slots:
            slot.waker.parked = True
            slot.waker.wake = self._rouser(slot)

    def stop(self, execution: Execution) -> Collection[Task]:
        """Step them no longer."""
        if self.execution is execution:
            self.execution = None
        return ()

    def leave_stalled_behind(self) -> None:
        """Whoever could say so waits for a step, too."""

    def stalled(self) -> str:
        """None is: somebody would be waiting for its step."""
        return ""

    def inspect(self, task: Task, query: Query) -> None:
        """The task answers at once, as nobody is in a step now: looking at a job does not move it."""
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
        """The tasks that may have something to do."""
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
        """Step a task, and put it to sleep when it found nothing to do; None: it failed."""
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
            # What is due already and still not done waits for something else than time, such as room in the output.
            self._asleep[task.name] = due if due is not None and due > self.clock.now_us() else None
        return outcome

    def _master_ready(self) -> bool:
        master = self.master
        if master.has_news:
            return True
        due = master.next_due_us()
        return due is not None and due <= self.clock.now_us()

    def _next_due_us(self) -> int | None:
        """The next moment at which somebody wants to be stepped."""
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
        """When the job is over, do what is left to be written and told, and be done."""
        master = self.master
        while master.over and not self.ended.is_set():
            if self._work:
                self._work.popleft()()
            elif master.has_news:
                master.step()
            else:
                self.ended.set()
