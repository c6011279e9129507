"""The stepping driver: a user takes the steps, one at a time or until something happens.

Nothing runs by itself and the clock stands still between steps, so every queue, watermark and barrier can be inspected.
The order is fixed: each task in the order of the graph, then the master, then the writer, in turn; when none of them
can do anything, the clock advances to the next due time.

So the same commands at the same steps yield the same run, and any past step can be reached again by running the job
again: the driver only has to record the steps that were taken out of turn (`choices`).
"""

from __future__ import annotations

import threading
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workbench.clock import VirtualClock
from workbench.drivers.contract.serial import CLOCK, MASTER, WRITER, SerialDriver
from workbench.drivers.contract.step import FAILED, Move, Step
from workbench.drivers.stepped.narrator import PLAIN, Narrator
from workbench.durations import MAX_TIME
from workbench.elements import CheckpointBarrier, Element, Records
from workbench.errors import JobError, unknown
from workbench.expressions import Expression, compile_expression
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task

STEPS_MAX = 1_000_000
"""After this many steps without the awaited event, a verb gives up."""
TOLD = 200
"""The number of recent steps that are kept for description."""


Held = tuple[tuple[str, str], ...]


class ReachedError(Exception):
    """The step at which the driver should stop has been taken."""


class _Seen(NamedTuple):
    """One channel before a step: its first element, and the number of elements."""

    head: Element | None
    length: int


class SteppingDriver(SerialDriver):
    """Runs one job step by step.

    Args:
        clock: the job's.
        on_step: called after each step (telemetry samples here).
        held_by: tells what a task holds, as (what, value) pairs.
        narrator: says what each step meant to the job's architecture of fault tolerance.

    Attributes:
        lock: held during a step, because a cell and a button may both request one.
        steps: the most recent ones, the newest last.
        choices: the actors that were stepped out of turn, or until when time passed for a waiting caller, by the number
            of steps before.
        digests: a checksum of the run after each step, by which two runs are compared.
        copies: of each task the checkpoint of its last snapshot, and what it held as it was copied.
        stop_at: after this many steps it raises `ReachedError` instead of taking another one; None: never.

    Example::

        job = pipeline.run("lesson", driver="stepping", buffer_size=1)
        job.stepper.step(3)
        job.stepper.driver.next_watermark()
        job.status()
    """

    def __init__(
        self,
        clock: VirtualClock,
        on_step: Callable[[], object],
        held_by: Callable[[Task], Held] = lambda task: (),
        narrator: Narrator = PLAIN,
    ) -> None:
        super().__init__(clock)
        self._on_step = on_step
        self._held_by = held_by
        self.copies: dict[str, tuple[int, Held]] = {}
        self.narrator = narrator
        self._turn = 0
        self.lock = threading.RLock()
        self.steps: deque[Step] = deque(maxlen=TOLD)
        self.choices: dict[int, str | int] = {}
        self.digests = array("L")
        self.stop_at: int | None = None
        self._stepping: int | None = None  # the thread that is in a task's step
        self._listen: Callable[[Execution], None] | None = None
        self._deaf: list[Callable[[], None]] = []  # functions that end the listening

    def run(self, master: Master) -> None:
        """Take over the job and let its master deploy it, so that it can be inspected."""
        super().run(master)
        master.step()
        self._after()

    def watch(self, on_step: Callable[[], object]) -> None:
        """Call `on_step` after each step from now on, instead of the previous function."""
        self._on_step = on_step

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Take steps without telemetry, for runs that nobody looks at before their end: most of a step's time."""
        watching, self._on_step = self._on_step, _nothing
        try:
            yield
        finally:
            self._on_step = watching
            watching()

    @contextmanager
    def listening(self, uids: Collection[str], hear: Callable[[str, Records], None]) -> Iterator[None]:
        """Call `hear` with the uid of an operator and each batch that it emits, in this attempt and in later ones."""

        def listen(execution: Execution) -> None:
            links = (link for task in execution.tasks for link in task.links if link.uid in uids)
            self._deaf += [link.tap(partial(hear, link.uid)) for link in links]

        self._listen = listen
        if self.execution is not None:
            listen(self.execution)
        try:
            yield
        finally:
            self._listen = None
            while self._deaf:
                self._deaf.pop()()

    def start(self, execution: Execution) -> None:
        """Step the tasks of this attempt from now on, and move listeners to them."""
        super().start(execution)
        if self._listen is not None:
            self._listen(execution)

    @property
    def dead(self) -> frozenset[str]:
        """Tasks that have failed and were not replaced yet."""
        return frozenset(self._dead)

    @property
    def taken(self) -> int:
        """The number of steps taken."""
        return len(self.digests)

    # verbs -------------------------------------------------------------------------------------------------------

    def step(self, until_us: int = MAX_TIME) -> Step | None:
        """Take the next step that does something; None if nothing can happen: the job is over or paused, or time would
        pass beyond `until_us`."""
        with self.lock:
            self._check_outside()
            if self.ended.is_set():
                return None
            self._check_stop()
            return self._note(self._round() or self._next_moment(until_us))

    def step_task(self, name: str) -> Step:
        """Step one task, whether or not it has something to do.

        Raises:
            JobError: no such task, or it has finished or failed.
        """
        with self.lock:
            self._check_outside()
            tasks = {task.name: task for task in self._tasks()}
            if name not in tasks:
                raise JobError(unknown("task", name, tasks))
            if not self._alive(tasks[name]):
                raise JobError(f"the task {name!r} has ended and takes no more steps: step the others, or the master")
            self._check_stop()
            self.choices[self.taken] = name
            step = self._note(self._task_step(tasks[name]))
            assert step is not None
            return step

    def step_master(self) -> None:
        """Give the master a turn early, for a command that must take effect immediately."""
        with self.lock:
            self._check_stop()
            self.choices[self.taken] = MASTER
            self._look()
            self.master.step()
            self._note(self._took(MASTER, self.master.state.lower()))

    def retrace(self, choices: dict[int, str | int], until: int) -> None:
        """Repeat another run, given its `choices`, up to a number of steps.

        Raises:
            JobError: this run cannot be repeated so far.
        """
        while self.taken < until:
            choice = choices.get(self.taken)
            if choice == MASTER:
                self.step_master()
            elif isinstance(choice, str):
                self.step_task(choice)
            elif self.step(MAX_TIME if choice is None else choice) is None:
                raise JobError(f"the job ended after {self.taken} steps, before step {until}, which it once reached")

    def run_until(self, condition: Callable[[], bool], limit: int = STEPS_MAX) -> bool:
        """Take steps until `condition` holds, at most `limit`; returns whether it does."""
        for _ in range(limit):
            if condition():
                return True
            if self.step() is None:
                break
        return condition()

    def next_record(self) -> bool:
        """Continue until a task has taken a record, from its source or from a channel."""
        return self.until_changed(lambda: [task.root.counters.numRecordsIn for task in self._tasks()])

    def next_buffer(self) -> bool:
        """Continue until a task has taken a buffer of records from a channel; False if the job ended before."""
        return self.until_changed(lambda: [channel.buffers_received for channel in self._channels()])

    def next_barrier(self) -> bool:
        """Continue until a checkpoint barrier has moved: left a source, or been taken by a task."""
        return self.until_changed(lambda: [channel.barriers() for channel in self._channels()])

    def next_watermark(self) -> bool:
        """Continue until event time has advanced in a task."""
        return self.until_changed(lambda: [task.output_watermark_us for task in self._tasks()])

    def next_checkpoint(self) -> bool:
        """Continue until a checkpoint is complete."""
        return self.until_changed(lambda: self.master.coordinator.completed)

    def until_aligned(self) -> bool:
        """Continue until the barriers of all inputs of a task have arrived, so that it takes its snapshot."""
        operators = [task for task in self._tasks() if isinstance(task, OperatorTask)]
        return self.until_changed(lambda: [task.snapshots.last_id for task in operators])

    def until_window_fires(self, operator: str | None = None) -> bool:
        """Continue until a window has fired, of the named operator or of any.

        Raises:
            JobError: there is no such operator with windows.
        """
        nodes = self.master.logical.uids.items()
        known = [uid for node, uid in nodes if hasattr(getattr(node.spec, "settings", node.spec), "window")]
        if operator not in (None, *known):
            raise JobError(unknown("operator with windows", operator, known))
        if not known:
            raise JobError("the pipeline has no windows: key_by(...).window(...) makes them")
        wanted = known if operator is None else [operator]
        return self._until_heard(wanted, lambda records: True)

    def until(self, condition: Expression | str, operator: str) -> bool:
        """Continue until the operator has emitted a record for which the condition is true; also for sources.

        Raises:
            JobError: no such operator, or a sink, which emits nothing.
            ExpressionError: the condition does not fit its records.
        """
        nodes = {uid: node for node, uid in self.master.logical.uids.items() if node.role != "sink"}
        if operator not in nodes:
            raise JobError(unknown("source or operator", operator, nodes))
        asked = compile_expression(condition, nodes[operator].schema)
        return self._until_heard([operator], lambda records: _any(asked, records))

    def until_told(self, text: str) -> bool:
        """Continue until a step says this in its words, in capitals or not; False if the job ended before."""
        before, wanted = self.taken, text.lower()
        return self.run_until(lambda: self.taken > before and wanted in self.steps[-1].words.lower())

    def until_changed(self, look: Callable[[], object]) -> bool:
        """Continue until `look` returns a different value; False if the job ended before."""
        before = look()
        return self.run_until(lambda: self.ended.is_set() or look() != before) and not self.ended.is_set()

    def wait_for(self, event: threading.Event, seconds: float | None) -> bool:
        """Let the master have its turn, then continue until `event` is set, for at most `seconds` of the job's time."""
        end_us = MAX_TIME if seconds is None else self.clock.now_us() + int(seconds * 1e6)
        with self.lock:
            if self._master_ready() and not self.ended.is_set():
                self.step_master()
        for _ in range(STEPS_MAX):
            if event.is_set() or self.step(end_us) is None:
                break
        return event.is_set()

    # internals ---------------------------------------------------------------------------------------------------

    def _tasks(self) -> tuple[Task, ...]:
        return () if self.execution is None else self.execution.tasks

    def _channels(self) -> tuple[Channel, ...]:
        return () if self.execution is None else self.execution.channels

    def _until_heard(self, uids: list[str], wanted: Callable[[Records], bool]) -> bool:
        heard: list[str] = []

        def hear(uid: str, records: Records) -> None:
            if wanted(records):
                heard.append(uid)

        with self.listening(uids, hear):
            return self.run_until(lambda: bool(heard) or self.ended.is_set()) and bool(heard)

    def within(self) -> bool:
        """Whether this thread is in a task's step."""
        return self._stepping == threading.get_ident()

    def _check_outside(self) -> None:
        if self.within():
            raise JobError(
                "a function, source or sink of the job requested a step of the job during a step, which would lose "
                "records: request steps in the code that runs the job"
            )

    def _check_stop(self) -> None:
        if self.stop_at is not None and self.taken >= self.stop_at:
            raise ReachedError

    def _round(self) -> Step | None:
        """Give every actor a turn, starting with the present one, until one has done something."""
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
            self._look()
            self.master.step()
            return self._took(MASTER, self.master.state.lower())
        if name == WRITER:
            if not self._work:
                return None
            self._look()
            self._work.popleft()()
            return self._took(WRITER, "wrote")
        task = self._tasks()[place]
        if task.name in self._asleep or not self._alive(task):
            return None
        step = self._task_step(task)
        return None if task.name in self._asleep and step.took is None else step

    def _task_step(self, task: Task) -> Step:
        self._asleep.pop(task.name, None)
        ins = [item.channel for item in task.gate.channels] if isinstance(task, OperatorTask) else []
        outs = [channel for output in task.outputs for channel in output.channels]
        before, behind = ([_seen(channel) for channel in channels] for channels in (ins, outs))
        copied, held = task.snapshots.last_id, self._held_by(task) if isinstance(task, SourceTask) else ()
        self._look(task)
        self._stepping = threading.get_ident()
        try:
            outcome = self._step_task(task)
        finally:
            self._stepping = None
        took = [
            Move(channel.source, seen.head)
            for channel, seen in zip(ins, before, strict=True)
            if seen.head is not None and len(channel.elements) < seen.length
        ]
        sent = [
            Move(channel.target, element)
            for channel, seen in zip(outs, behind, strict=True)
            for element in _added(channel, seen)
        ]
        if task.snapshots.last_id != copied:  # a source copies its state first in a step, and then reads on
            moved = [move.element for move in (*took[:1], *sent)]
            barrier = next((each for each in moved if isinstance(each, CheckpointBarrier)), None)
            held = self.narrator.copied(task, held or self._held_by(task), barrier)
            self.copies[task.name] = task.snapshots.last_id, held
        step = self._took(task.name, FAILED if outcome is None else outcome.value)
        return replace(step, took=took[0] if took else None, sent=tuple(sent))

    def _next_moment(self, until_us: int) -> Step | None:
        due = self._next_due_us()
        if due is None or (due > until_us and self.clock.now_us() >= until_us):
            return None
        if due > until_us:
            self.choices[self.taken] = due = until_us
        self._look()
        self._pass_time(due)
        return self._took(CLOCK, "passed")

    def _look(self, task: Task | None = None) -> None:
        self.narrator.look(self.master, self.execution, task)

    def _took(self, actor: str, outcome: str) -> Step:
        return Step(actor, outcome, self.clock.now_us(), self.taken + 1)

    def _note(self, step: Step | None) -> Step | None:
        """Record a step, and notify the observer."""
        if step is not None:
            notes = self.narrator.tell(step, self.master, self.execution)
            step = replace(step, notes=notes, names=self.narrator.element)
            self.steps.append(step)
            before = self.digests[-1] if self.digests else 0
            self.digests.append(zlib.crc32(f"{step.actor} {step.outcome} {step.time_us}".encode(), before))
            self._after()
        return step

    def _after(self) -> None:
        if self.master.over:
            self._end_if_over()
        self._on_step()


def _seen(channel: Channel) -> _Seen:
    """What a channel holds before a turn."""
    return _Seen(channel.elements[0] if channel.elements else None, len(channel.elements))


def _added(channel: Channel, seen: _Seen) -> list[Element]:
    """The elements that a turn has put on a channel: barriers that overtake come in front of what was seen there."""
    elements = list(channel.elements)
    ahead = next((place for place, element in enumerate(elements) if element is seen.head), 0)
    return elements[:ahead] + elements[seen.length + ahead :]


def _any(asked: Callable[[pa.RecordBatch], pa.Array], records: Records) -> bool:
    """Whether a condition is true for one of the records."""
    return bool(pc.any(asked(records.batch)).as_py())


def _nothing() -> None:
    """Called after a step without telemetry."""
