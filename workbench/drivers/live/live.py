"""The live driver: a thread for every slot, one for the master and one for slow writes, on the machine's clock.

One thread steps the tasks of a slot, downstream tasks before upstream ones. A slot without work sleeps until the other
end of one of its channels, a command or a due time wakes it. None of these threads is the main thread, so an interrupt
in a cell never reaches them.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TypeVar

from workbench.clock import SystemClock
from workbench.drivers.contract.crowd import CROWD
from workbench.drivers.contract.leaving import end_with_process
from workbench.drivers.contract.stalls import told, told_of_writer
from workbench.drivers.contract.turns import TURNSTILE, Turnstile
from workbench.drivers.live.looking import Looking
from workbench.drivers.live.slot_threads import Crew, SlotThread
from workbench.drivers.live.ticks import Activity, Ticks
from workbench.errors import as_error
from workbench.runtime.checkpoints.background import answered
from workbench.runtime.job.master import Master
from workbench.runtime.messages.messages import Query
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task

T = TypeVar("T")

_TICK_US = 100_000
_LOOK_S = 0.1
"""Interval at which a caller that waits for an answer checks whether the job has ended."""
CANCELLATION_TIMEOUT_S = 10.0
"""How long a canceled job waits for its tasks to leave their steps, like Flink's task.cancellation.timeout; Flink then
ends the process, while here tasks that do not return are left behind."""
WRITERS = Turnstile(lanes=4, patience_s=0.2)
"""For all jobs: every file-system call releases the interpreter lock, and many at once keep passing it around."""
_REFRESHED_S = 0.1
"""How long a reader of telemetry waits at most for a sample that is taken for it."""
WRITER_TIMEOUT_S = 60.0
"""How long it waits for pending writes: storage may be slow, and its directory stays owned until they are done."""


class LiveDriver:
    """Runs one job on threads; it is the master's stage and does its background work.

    Args:
        name: of the job; its threads are named after it.
        clock: the machine's.
        on_tick: called on the master's thread between its steps, ten times a second or less often, see `Ticks`
            (telemetry samples here); returns whether its frames have been read since the last time.
        activity: what flows in the job and what else happens to it, as far as telemetry shows it; see `Ticks`.
    """

    def __init__(
        self,
        name: str,
        clock: SystemClock,
        on_tick: Callable[[], bool],
        activity: Callable[[], Activity] = lambda: (object(), None, None),
    ) -> None:
        self._name = name
        self._clock = clock
        self._on_tick = on_tick
        self._activity = activity
        self._ticks = Ticks(_TICK_US, clock.now_us())
        self._news = threading.Event()
        self._sampled = threading.Event()
        self._looks = threading.Lock()
        self._looked_us = 0
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._halt = threading.Event()
        self._threads: list[threading.Thread] = []
        self._master: Master | None = None
        self._unseen = False
        self._looking = Looking(clock.now_us)
        self._crew: Crew | None = None
        self._begun = threading.Event()
        self._leaves = False
        self._gives_up_us: int | None = None
        self._left: set[Task] = set()
        self._writing_since_us: int | None = None
        self._office: tuple[threading.Thread, ...] = ()
        self.ended = threading.Event()

    # life cycle --------------------------------------------------------------------------------------------------

    def run(self, master: Master) -> None:
        """Start the job's threads; returns when the first attempt runs, or could not be started."""
        self._master = master
        master.call(master.start)
        targets = {"writer": self._write, "master": self._run_master}
        self._office = tuple(
            threading.Thread(target=target, name=f"{self._name} {role}", daemon=True)
            for role, target in targets.items()
        )
        try:
            for thread in self._office:
                thread.start()
        except RuntimeError:  # the system cannot create a thread
            self._work.put(None)  # ends the one that has started
            raise
        end_with_process(self)
        self._begun.wait()

    @property
    def master(self) -> Master:
        """The job's master; a different one after a failover."""
        assert self._master is not None
        return self._master

    def hand_over(self, master: Master) -> None:
        """Step this master from now on; called on the turn of its predecessor."""
        self._master = master
        master.call(master.start)

    def wake(self) -> None:
        """Wake the master: it has something to do."""
        self._news.set()

    def refresh(self) -> bool:
        """Someone reads telemetry: after a time in which no one did, take a sample for it. Returns whether the master's
        thread takes none, because an operator that starts may wait for a server; then this one does."""
        if self._master is None or self._master.over or self.ended.is_set() or self.within():
            return False
        if self._master.services.opening.is_open:
            self._look_at_opening(self._master)
            return True
        self._sampled.clear()
        if self._ticks.wanted(self._clock.now_us()):
            self._news.set()
            self._sampled.wait(_REFRESHED_S)
        return False

    def _look_at_opening(self, master: Master) -> None:
        """Sample on a reader's thread, at most as often as usual. A sample fails if the master continues meanwhile."""
        with self._looks:
            now_us = self._clock.now_us()
            waits = master.services.opening.awaited() is not None
            if waits and not self._unseen and now_us >= self._looked_us + _REFRESHED_S * 1e6:
                self._looked_us = now_us
                with suppress(Exception):
                    self._on_tick()

    def start(self, execution: Execution) -> None:
        """Start one thread for each slot that has tasks."""
        self._halt = threading.Event()
        if self._leaves or self._left:
            self._halt.set()
        crew = self._crew = Crew(TURNSTILE, self._looking, self._clock.now_us, self._halt)
        slots = [slot for slot in execution.slots if slot.tasks]
        crew.threads = tuple(SlotThread(slot, crew) for slot in slots)
        CROWD.join(self, len(slots))
        self._threads = [
            threading.Thread(target=own.run, name=f"{self._name} {slot.name} #{execution.number}", daemon=True)
            for slot, own in zip(slots, crew.threads, strict=True)
        ]
        try:
            for thread in self._threads:
                thread.start()
        finally:
            crew.complete.set()

    def stop(self, execution: Execution) -> Collection[Task]:
        """End the slots' threads and wait until each has left its step; returns the tasks of threads that a canceled
        job has waited for in vain."""
        self._halt.set()
        for slot in execution.slots:
            slot.waker.wake()
        for thread in self._threads:
            while thread.is_alive() and not self._gives_up():
                thread.join(_LOOK_S)
        if self._crew is not None:
            for own, thread in zip(self._crew.threads, self._threads, strict=True):
                if thread.is_alive():
                    self._left.update(own.leave_behind(thread))
            self._crew.disband()
            self._crew = None
        self._threads = []
        CROWD.leave(self)
        return self._left

    def leave_stalled_behind(self) -> None:
        """The job is canceled: after `CANCELLATION_TIMEOUT_S`, stop waiting for steps that do not end."""
        if self._gives_up_us is None:
            self._gives_up_us = self._clock.now_us() + int(CANCELLATION_TIMEOUT_S * 1e6)

    def _gives_up(self) -> bool:
        return self._gives_up_us is not None and self._clock.now_us() >= self._gives_up_us

    def stalled(self) -> str:
        """The task in a step that does not end, since when and where; empty: none."""
        crew = self._crew
        tasks = () if crew is None else [task for thread in crew.threads for task in thread.tasks]
        now_us = self._clock.now_us()
        return told(tasks, now_us) or told_of_writer(self._office[0] if self._office else None, self._since(), now_us)

    def _since(self) -> int | None:
        return None if self.ended.is_set() else self._writing_since_us

    def _leaves_writer(self) -> bool:
        """Whether everything except the writer of a canceled job has ended, and the writer is not waited for any
        longer."""
        waited_us = None if self._gives_up_us is None else self._clock.now_us() - self._gives_up_us
        patience_us = int((WRITER_TIMEOUT_S - CANCELLATION_TIMEOUT_S) * 1e6)
        return waited_us is not None and waited_us >= patience_us and not self._office[1].is_alive()

    def leave(self) -> list[threading.Thread]:
        """The process ends: tell all threads to end."""
        self._leaves = True
        self._news.set()
        slots = [*self._threads]
        self._halt.set()
        if self._crew is not None:
            for thread in self._crew.threads:
                thread.bell.ring()
        return [*self._office, *slots]

    def inspect(self, task: Task, query: Query) -> None:
        """The task answers in its next step."""
        task.post(query)

    def submit(self, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
        """Run `work` on the writer's thread, `done` on the master's."""
        self._work.put(answered(work, done, self.master.call))

    def within(self) -> bool:
        """Whether this is one of the job's threads: a slot's, the master's or the writer's."""
        return threading.current_thread() in (*self._threads, *self._office)

    def wait_for(self, event: threading.Event, seconds: float | None) -> bool:
        """Wait until another of the job's threads sets `event`, at most `seconds`; returns whether it is set.

        When the job has ended no thread is left to set it: a command to a master at its end may not be processed.
        """
        until_us = None if seconds is None else self._clock.now_us() + int(seconds * 1e6)
        while not self.ended.is_set():
            left_s = _LOOK_S if until_us is None else (until_us - self._clock.now_us()) / 1e6
            if left_s <= 0 or event.wait(min(left_s, _LOOK_S)):
                break
            if self._leaves_writer():
                self.ended.set()  # the directory stays owned until the writer returns
        return event.is_set()

    # threads -----------------------------------------------------------------------------------------------------

    def _run_master(self) -> None:
        ticks = self._ticks
        while not self._leaves:
            self._news.clear()
            stepped = self.master
            # A caller that starts a job waits for its first step, which does not queue behind slots of other jobs.
            turn = TURNSTILE.enter() if CROWD.jobs > 1 and self._begun.is_set() else None
            try:
                stepped.step()
            except BaseException as error:  # noqa: BLE001  otherwise it would be lost
                stepped.abandon(as_error(error))
            master = self.master  # it may have been replaced
            self._begun.set()
            now = self._clock.now_us()
            if master.over or now >= ticks.due_us:
                if master.over or ticks.sees_news(now, self._activity()):
                    begun_ns = time.thread_time_ns()
                    read = self._tick(master)
                    ticks.looked(now, (time.thread_time_ns() - begun_ns) // 1_000, read=read)
                self._sampled.set()
            if turn is not None:
                turn.release()
            if master.over and not master.has_news:
                break
            due = master.next_due_us()
            wait_us = (ticks.due_us if due is None else min(due, ticks.due_us)) - self._clock.now_us()
            waits = wait_us > 0 and not master.has_news and not self._leaves
            if waits and self._news.wait(wait_us / 1e6):
                ticks.stirred()
        ticks.end()
        self.master.forget()
        self._work.put(None)

    def _tick(self, master: Master) -> bool:
        """Let telemetry sample; if that fails, the job continues without it and its log says so once."""
        if self._unseen:
            return False
        try:
            with self._looks:
                return self._on_tick()
        except Exception as error:  # noqa: BLE001  what looks at a job must not end it
            self._unseen = True
            master.life.mishap("telemetry stopped", error)
            return False

    def _write(self) -> None:
        while (job := self._work.get()) is not None:
            self._writing_since_us = self._clock.now_us()
            lane = WRITERS.enter()
            job()
            if lane is not None:
                lane.release()
            self._writing_since_us = None
        self.ended.set()  # last of all: from now on nothing of this job touches its files
