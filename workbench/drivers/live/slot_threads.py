"""The threads of one attempt's slots, and how they help each other while there is little to do.

Each slot has a thread that steps its tasks, downstream before upstream, and sleeps when none has work. Waking another
thread takes longer than processing a few records, and two running threads keep passing the interpreter lock around. So
while wakings are short, one thread does all the work: when it pushes to a sleeping slot, it steps that slot's tasks
itself instead of waking its thread, and it watches the others' due times as well. One thread at a time steps a slot,
and holds the slot's lock. As soon as a waking becomes long there is work to share, and every thread steps its own slot.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from workbench.drivers.contract.crowd import CROWD
from workbench.drivers.contract.interrupting import interrupt
from workbench.drivers.contract.stalls import LeftBehind
from workbench.drivers.contract.turns import Turn, Turnstile
from workbench.drivers.live.looking import Looking
from workbench.drivers.live.precise_timers import wake_precisely
from workbench.durations import MAX_TIME
from workbench.errors import as_error
from workbench.runtime.messages.messages import Failed
from workbench.runtime.tasks.execution import Slot
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Outcome, Task

_LONGEST_WAIT = 16
"""The maximum number of rounds of a slot's operators before its sources get their turn."""
_LATE_US = 5_000
"""A slot that another thread watches wakes up by itself when that is late by this time."""
_LONGEST_SLEEP_US = 500_000
"""How often a sleeping slot asks a source that does not know when it has more; less often if many slots sleep
(`Crowd`)."""
_SURE_SLEEP_US = 5_000_000
"""How often a sleeping slot checks for work in any case: every push and every command rings its bell."""


class Bell:
    """Wakes one sleeping thread; a bare lock, because an Event costs more than a small step does."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        """End the present wait, or the next one; callable from any thread."""
        with suppress(RuntimeError):  # it is ringing already
            self._lock.release()

    def hush(self) -> None:
        """Clear a pending ring."""
        self._lock.acquire(blocking=False)

    def wait(self, seconds: float) -> bool:
        """Sleep until it rings, at most `seconds`; returns whether it rang."""
        return self._lock.acquire(timeout=seconds)


class Crew:
    """The shared state of one attempt's threads.

    Args:
        turnstile: for their turns, shared by all jobs.
        looking: chooses how often sources poll for records.
        now_us: reads the clock.
        halt: set when all have to end.

    Attributes:
        threads: of all slots that have tasks.
        complete: set when all of them have been started. Until then none steps: each start waits for the interpreter
            lock, for longer the more threads are already running.
        helpers: the threads that are awake and have had little to do so far, by their identity.
        watch: the thread that sleeps until anything is due, for all of them.
    """

    __slots__ = ("complete", "halt", "helpers", "looking", "now_us", "threads", "turnstile", "watch")

    def __init__(
        self, turnstile: Turnstile, looking: Looking, now_us: Callable[[], int], halt: threading.Event
    ) -> None:
        self.turnstile = turnstile
        self.looking = looking
        self.now_us = now_us
        self.halt = halt
        self.threads: tuple[SlotThread, ...] = ()
        self.complete = threading.Event()
        self.helpers: set[int] = set()
        self.watch: SlotThread | None = None

    def disband(self) -> None:
        """All threads have ended: break reference cycles, so that the tasks and their state are released
        immediately."""
        for thread in self.threads:
            thread.leave()
        self.threads = ()
        self.watch = None

    def first_due_us(self) -> int:
        """The earliest due time of all sleeping slots that can be helped; MAX_TIME: none."""
        dues = [due for thread in self.threads if thread.can_be_helped and (due := thread.due_us) is not None]
        return min(dues, default=MAX_TIME)


class SlotThread:
    """Steps the tasks of one slot, and sometimes those of another.

    Args:
        slot: its own.
        crew: the state shared with the others.

    Attributes:
        stepping: held by the thread that steps this slot's tasks.
        bell: wakes its own thread.
        brief: its last work took little time.
        napping: it sleeps.
        due_us: while it sleeps: when one of its tasks is due; None: when something arrives.
        roused: while it sleeps: something has arrived from a thread that will process it.
        wakes_us: while it sleeps: the end of its sleep.
    """

    def __init__(self, slot: Slot, crew: Crew) -> None:
        self._slot = slot
        self._crew = crew
        self._operators = [task for task in reversed(slot.tasks) if isinstance(task, OperatorTask)]
        self._sources = [task for task in slot.tasks if isinstance(task, SourceTask)]
        self._resting_us = [0] * len(self._sources)  # until when each source has no work; 0: not known
        self.stepping = threading.Lock()
        self.bell = Bell()
        self._turn = Turn(crew.turnstile, crew.now_us)
        self.brief = False
        self._helping = False  # whether this thread is helping now
        self._kept_waiting = 0
        self._spent_ns = 0
        self.napping = False
        self.due_us: int | None = None
        self.roused = False
        self.wakes_us = 0
        for task in self._operators:
            task.gathers = True
        for source in self._sources:
            source.look_every(crew.looking.interval_us, crew.looking.from_us)
        slot.waker.wake = self.wake
        self._last_words = threading.Lock()
        self._over = False
        self._left: tuple[Task, ...] = ()

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of its slot."""
        return tuple(self._slot.tasks)

    def leave_behind(self, thread: threading.Thread) -> tuple[Task, ...]:
        """Stop waiting for `thread`, which runs this slot; returns its tasks, which the thread closes itself when it
        ends. It does no further work: what it was told to commit, the next run commits."""
        with self._last_words:
            if self._over or thread.ident is None:
                return ()
            self._left = self.tasks
            for task in self._left:
                task.mailbox.clear()
            interrupt(thread.ident, LeftBehind)
            return self._left

    def leave(self) -> None:
        """The thread has ended; a late ring wakes no other."""
        self._slot.waker.wake = self.bell.ring

    @property
    def can_be_helped(self) -> bool:
        """Whether it sleeps, and its last work took little time."""
        return self.napping and self.brief

    def wake(self) -> None:
        """Something has arrived for this sleeping slot; called by the thread that delivered it."""
        if self.brief and threading.get_ident() in self._crew.helpers:
            self.roused = True
        else:
            self.bell.ring()

    def run(self) -> None:
        """The main loop of the thread."""
        for part in (self._live, self._say_over, self._say_over):  # an interrupt may come late, but only once
            try:  # noqa: SIM105  one that comes while suppress() itself ends would be let through
                part()
            except LeftBehind:
                pass
        for task in self._left:
            with suppress(Exception):  # no one is left to report it to
                task.close()

    def _say_over(self) -> None:
        """From now on it is too late to leave this thread behind."""
        with self._last_words:
            self._over = True

    def _live(self) -> None:
        wake_precisely()
        crew, turn = self._crew, self._turn
        crew.complete.wait()
        self._begin()
        while not crew.halt.is_set():
            turn.go_on()
            if self._helping and not turn.short:
                self._let_others_go()
            if self._step() or (turn.short and self.help()):
                if CROWD.jobs > 1 and turn.stays_awake():
                    self._choose_look(turn.lasted_us)
                continue
            self._rest()
        self._end()

    def _begin(self) -> None:
        """Be awake: no other thread steps this slot now."""
        self._turn.begin()
        self.stepping.acquire()
        self._slot.waker.parked = False
        if self._turn.short:
            self._helping = True
            self._crew.helpers.add(threading.get_ident())

    def _end(self) -> None:
        if self._helping:
            self._help_no_more()
        self.stepping.release()
        self._turn.end()

    def _rest(self) -> None:
        """Sleep until there is work, here or in the slots that this thread watches."""
        crew, tasks = self._crew, self._slot.tasks
        # Mark this slot as sleeping, then check once more: from now on, every push rings the bell.
        self.bell.hush()
        self.roused = False
        self._slot.waker.parked = True
        for task in tasks:
            if task.has_news:
                self._slot.waker.parked = False
                return
        self._look_out()
        self._end()
        self.brief = self._turn.short
        self.napping = True
        self._choose_look(self._turn.lasted_us)
        rung = False
        now_us = crew.now_us()
        sure = all(source.knows_when for source in self._sources)
        look_around_us = now_us + (_SURE_SLEEP_US if sure else int(_LONGEST_SLEEP_US * CROWD.patience))
        while not rung and not crew.halt.is_set():
            self.wakes_us = until_us = min(look_around_us, self._due_us())
            if until_us <= now_us:
                break
            rung = self.bell.wait((until_us - now_us) / 1e6)
            now_us = crew.now_us()
        self.napping = False
        self._begin()
        if rung:
            self._ask_again()
        elif self._helping:
            self._look_together()

    def _due_us(self) -> int:
        """When this thread has to wake up by itself."""
        crew, due_us = self._crew, self.due_us
        own_us = MAX_TIME if due_us is None else due_us
        if not self.brief:
            return own_us
        watch = crew.watch
        if watch is None or not watch.napping or own_us < watch.wakes_us:
            crew.watch = watch = self
        return crew.first_due_us() if watch is self else own_us + _LATE_US

    def _look_out(self) -> None:
        dues = [due for task in self._operators if (due := task.next_due_us()) is not None]
        for source, resting_us in zip(self._sources, self._resting_us, strict=True):
            due = resting_us or source.next_due_us()
            if due is not None:
                dues.append(due)
        self.due_us = min(dues, default=None)

    def _ask_again(self) -> None:
        """Something may have changed for the sources."""
        self._resting_us = [0] * len(self._sources)

    def _choose_look(self, busy_us: int) -> None:
        """Adjust how often sources poll; this slot was busy for `busy_us`."""
        looking, ship_after_us = self._crew.looking, self._slot.tasks[0].settings.ship_after_us
        before_us = looking.interval_us
        spent_ns, self._spent_ns = self._spent_ns, time.thread_time_ns()
        if looking.rested(busy_us, ship_after_us, (self._spent_ns - spent_ns) // 1_000) != before_us:
            for thread in self._crew.threads:
                for source in thread._sources:
                    source.look_every(looking.interval_us, looking.from_us)

    # work ----------------------------------------------------------------------------------------------------------

    def _step(self) -> bool:
        """Step each operator, or else each source, once; returns whether anything progressed.

        Records are processed before more are read: so queues stay short, and their content is still in the processor's
        cache. Nevertheless sources get their turn regularly.
        """
        if self._step_all(self._operators) and self._kept_waiting < _LONGEST_WAIT:
            self._kept_waiting += 1
            return True
        self._kept_waiting = 0
        return self._step_sources()

    def _step_all(self, tasks: Sequence[Task]) -> bool:
        progressed = False
        for task in tasks:
            if task.is_quiet:
                continue
            outcome = self._outcome(task)
            if outcome is None:
                return False
            progressed |= outcome is Outcome.PROGRESSED
        return progressed

    def _step_sources(self) -> bool:
        progressed = False
        now_us = self._crew.now_us()
        wakes_us = now_us + _SURE_SLEEP_US
        for at, source in enumerate(self._sources):
            if now_us < self._resting_us[at] and not source.mailbox:
                continue
            outcome = self._outcome(source)
            if outcome is None:
                return False
            progressed |= outcome is Outcome.PROGRESSED
            resting_us = 0 if outcome is Outcome.NO_CREDIT else source.rests_until_us
            self._resting_us[at] = min(resting_us, wakes_us)
        return progressed

    def _outcome(self, task: Task) -> Outcome | None:
        try:
            return task.step()
        except BaseException as error:  # noqa: BLE001  whatever a task raises is its failure, and the job's to handle
            task.host.report(Failed(task.name, as_error(error)))
            self._crew.halt.wait()  # until the master has decided how to continue
            return None

    # help ----------------------------------------------------------------------------------------------------------

    def help(self) -> bool:
        """Step the tasks of sleeping slots that have work; returns whether there was one."""
        helped = False
        now_us = self._crew.now_us()
        for other in self._crew.threads:
            if other is not self and (other.roused or other._is_due(now_us)):
                helped |= other._be_helped(self._turn)
        return helped

    def _is_due(self, now_us: int) -> bool:
        """Whether it sleeps, can be helped, and one of its tasks is due."""
        due_us = self.due_us
        return due_us is not None and due_us <= now_us and self.napping and self.brief

    def _look_together(self) -> None:
        """Let all due sources poll before anything is processed: receivers then take all of it in one step."""
        self._step_sources()
        now_us = self._crew.now_us()
        for other in self._crew.threads:
            if other is not self and other._is_due(now_us) and other.stepping.acquire(blocking=False):
                try:
                    other._step_sources()
                finally:
                    other.stepping.release()

    def _be_helped(self, turn: Turn) -> bool:
        """Step this slot on behalf of another thread; returns whether anything progressed."""
        self.roused = False
        if not self.stepping.acquire(blocking=False):
            self.bell.ring()  # the thread that steps it may have checked already
            return False
        progressed = False
        try:
            while not self._crew.halt.is_set() and self._step():
                progressed = True
                if turn.go_on():
                    self.brief = False
                    self.bell.ring()  # its own thread continues
                    break
            self._look_out()
        finally:
            self.stepping.release()
        return progressed

    def _let_others_go(self) -> None:
        """There is much to do: let threads that wait for this thread's help continue without it."""
        crew = self._crew
        if crew.watch is self:
            crew.watch = None
        self._help_no_more()
        for other in crew.threads:
            if other is not self and other.napping and other.due_us is not None:
                other.bell.ring()

    def _help_no_more(self) -> None:
        self._helping = False
        self._crew.helpers.discard(threading.get_ident())
        for other in self._crew.threads:
            if other.roused and other is not self:
                other.bell.ring()
