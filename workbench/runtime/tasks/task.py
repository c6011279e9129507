"""A task: one subtask of one vertex, as a passive state machine.

A driver calls ``step()``. A step applies the commands that were posted, takes at most one input element or one chunk
from a source, never waits, and returns how it ended. All counters of a task are plain integers that only the task
writes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import ClassVar, Protocol

from workbench.clock import Clock
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import EndOfStream, LatencyMarker
from workbench.errors import JobError
from workbench.operators.contract.base import Operator, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.runtime.barriers.policy import TaskPolicy
from workbench.runtime.barriers.snapshots import Snapshots, overtakes
from workbench.runtime.exchange.chain import Link
from workbench.runtime.exchange.channel import Waker
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.messages.messages import (
    Abort,
    Answered,
    Apply,
    Command,
    Complete,
    Crash,
    Finish,
    Finished,
    Pause,
    Query,
    Release,
    Report,
    Trigger,
)
from workbench.runtime.messages.queries import Question
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.kept_markers import KeptMarkers
from workbench.runtime.tasks.load import Load
from workbench.runtime.tasks.restored import Restored


class Outcome(Enum):
    """How a step ended."""

    PROGRESSED = "progressed"
    NO_INPUT = "no input"
    NO_CREDIT = "no credit"
    WAITING = "waiting for a time"
    FINISHED = "finished"


class TaskHost(Protocol):
    """Receives the reports of tasks."""

    @property
    def dropped(self) -> int:
        """How many reports came from tasks that no longer ran."""

    def report(self, report: Report) -> None:
        """Receive a report; called from the task's thread, returns at once."""


class Task:
    """The common part of source tasks and operator tasks: mailbox, chain, outputs, snapshots and counters.

    Args:
        name: ``"aggregate[1]"``.
        vertex: id of its vertex.
        subtask: index from 0.
        slot: name of its slot.
        root: head of the chain, connected.
        outputs: all outputs of the chain.
        settings: in force at the start.
        clock: processing time.
        host: receives its reports.
        waker: of the slot that steps it.
        attempt: of the job, from 0; tasks that continue while others restart keep theirs.

    Attributes:
        started_us, ended_us: when it was deployed, and when it finished or was ended; None before.
        failed: its failure ended its attempt.
        restored: in-flight records of the checkpoint that this attempt resumes from, until they have been sent again.
    """

    takes_records = True
    """Whether it has inputs."""
    _ships_first: ClassVar[bool] = True
    """Whether buffers that are due are shipped before the next input is processed, which may take long."""

    def __init__(
        self,
        *,
        name: str,
        vertex: str,
        subtask: int,
        slot: str,
        root: Link,
        outputs: Sequence[EdgeOutput],
        settings: Settings,
        clock: Clock,
        host: TaskHost,
        waker: Waker,
        attempt: int = 0,
    ) -> None:
        self.name = name
        self.vertex = vertex
        self.subtask = subtask
        self.slot = slot
        self.root = root
        self.links = tuple(root.walk())
        self.outputs = tuple(outputs)
        self.pool = OutputPool(self.outputs, settings.floating_buffers)
        self.settings = settings
        self.host = host
        self.waker = waker
        self.finished = False
        self.mailbox: deque[Command] = deque()
        self.markers = KeptMarkers()
        self._now_us: Callable[[], int] = clock.now_us
        self.attempt = attempt
        self.started_us = clock.now_us()
        self.ended_us: int | None = None
        self.failed = False
        self.load = Load(self.started_us)
        self._timed = [link for link in self.links if type(link.operator).next_time_us is not Operator.next_time_us]
        self._gates = [link.operator for link in self.links if type(link.operator).ready is not Operator.ready]
        self._marker_turn = 0
        self._rest_us = 0
        self._not_before_us = 0
        self._use(settings)
        self.restored: Restored | None = None
        self.snapshots = Snapshots(
            name, self.links, self.outputs, self.source_state, lambda taken: self.host.report(taken), clock.now_us
        )
        self.policy: TaskPolicy

    @property
    def rows_sent(self) -> int:
        """Rows that its operators have sent to other tasks."""
        return sum(link.rows_sent for link in self.links if link.edges)

    def post(self, command: Command) -> None:
        """Post a command; it is applied at the start of the next step. Callable from any thread."""
        self.mailbox.append(command)
        if self.waker.parked:
            self.waker.wake()

    @property
    def outage(self) -> Outage | None:
        """The first broken connection of its operators, for which it waits. Callable from any thread."""
        return next((lost for link in self.links if (lost := link.operator.outage) is not None), None)

    def hurry(self) -> None:
        """Its job is being stopped: it waits for servers only for a short time. Callable from any thread."""
        for link in self.links:
            link.operator.hurry()

    def give_up(self) -> None:
        """Its attempt ends: it waits for servers no longer. Callable from any thread."""
        for link in self.links:
            link.operator.give_up()

    def step(self) -> Outcome:
        """Do one piece of work; an exception means that the task has failed."""
        now = self._now_us()
        if self.finished:
            return Outcome.FINISHED
        self.load.begin(now)
        worked = False
        for output in self.outputs:
            if 1 in output.marks:
                worked |= output.drain()
        while self.mailbox:
            if self._holds_back(self.mailbox[0], now):
                break
            self._apply(self.mailbox.popleft(), now)
            worked = True
            if self.finished:
                return Outcome.FINISHED
        if self._ships_first and self.outputs:
            worked |= self._ship_due(now)
        if self.snapshots.due_us <= now:
            self.snapshots.overtake()
            worked = True
        if self.restored is not None and not self.restored.sent:
            outcome = self._send_restored()
        else:
            if now >= self._not_before_us:
                self._not_before_us = 0
                if self._timed:
                    worked |= self._call_timed(now)
            outcome = self._advance(now)
        if not self._ships_first:
            worked |= self._ship_due(now)
        if worked and outcome is not Outcome.FINISHED:
            outcome = Outcome.PROGRESSED
        progressed = outcome is Outcome.PROGRESSED
        held_back = outcome is Outcome.NO_CREDIT or (progressed and bool(self.outputs) and self._has_more())
        self.load.end(self._now_us(), worked=progressed, held_back=held_back)
        self.load.resting = bool(self._not_before_us) and (self._not_before_us != MAX_TIME or self._has_more())
        return outcome

    def _ship_due(self, now_us: int) -> bool:
        """Ship the buffers whose timeout has passed; returns whether there was one."""
        shipped = False
        for output in self.outputs:
            if 1 in output.marks:
                shipped |= output.ship_due(now_us)
        return shipped

    def _call_timed(self, now_us: int) -> bool:
        """Call the operators whose timers are due; returns whether there was one."""
        called = False
        for link in self._timed:
            due = link.operator.next_time_us()
            if due is not None and due <= now_us and self.pool.has_room:
                link.operator.on_time(now_us, link)
                called = True
        return called

    def _holds_back(self, command: Command, now_us: int) -> bool:
        """Whether a command must wait: a barrier follows what this task has already produced or accepted, unless it may
        overtake that, and the end follows what has no room yet."""
        if type(command) is Finish:
            return self.pool.backlogged
        if type(command) is not Trigger:
            return False
        if self.restored is not None:
            return True
        return not overtakes(command.barrier, now_us) and (self.pool.backlogged or not self._takes_input)

    def _send_restored(self) -> Outcome:
        """Resend some of the in-flight records of the checkpoint that this attempt resumes from."""
        restored = self.restored
        assert restored is not None
        if not self.pool.has_room:
            return Outcome.NO_CREDIT
        restored.send_next(self.outputs)
        if restored.over:
            self.restored = None
        return Outcome.PROGRESSED

    @property
    def has_news(self) -> bool:
        """Whether a step would do something although nothing is due; called before its slot sleeps."""
        if self.finished:
            return False
        if self.mailbox and not self._holds_back(self.mailbox[0], self._now_us()):
            return True
        if self.pool.waits_for_room:
            return self.pool.has_free
        if self.restored is not None and not self.restored.sent:
            return self.pool.has_room
        if self._not_before_us and self._now_us() < self._not_before_us:
            return False
        return self.pool.has_room and self._takes_input and self._has_more()

    @property
    def is_quiet(self) -> bool:
        """Whether a step would certainly do nothing, whatever the time is; asked often, so it is quick."""
        return False

    def next_due_us(self) -> int | None:
        """The processing time at which a step is due even if nothing has arrived; None: none."""
        due: int | None = None if self.snapshots.due_us == MAX_TIME else self.snapshots.due_us
        if self.mailbox and type(trigger := self.mailbox[0]) is Trigger and self.restored is None:  # it is held back
            due = _earlier(due, trigger.barrier.overtakes_at_us)
        for output in self.outputs:
            if 1 in output.marks:
                due = _earlier(due, output.next_due_us())
        if self._not_before_us:
            return due if self._not_before_us == MAX_TIME else _earlier(due, self._not_before_us)
        if self._timed and self.pool.has_room:  # otherwise a receiver that makes room wakes the slot
            for link in self._timed:
                due = _earlier(due, link.operator.next_time_us())
        return due

    @property
    def _takes_input(self) -> bool:
        """Whether every operator of the chain accepts more."""
        return not self._gates or all(gate.ready() for gate in self._gates)

    @property
    def output_watermark_us(self) -> int | None:
        """The watermark behind the chain's last operator; None before the first."""
        watermark_us = self.links[-1].watermark_us
        return None if watermark_us == NO_TIME else watermark_us

    def close(self) -> None:
        """Release the operators' resources, and break reference cycles.

        Otherwise the state and buffers of a failed attempt would take memory until the garbage collector runs, which
        may be
        many failures later: it counts objects, and these are few and large.
        """
        if self.ended_us is None:
            self.ended_us = self._now_us()
        self.snapshots.close()
        self.pool.close()
        for output in self.outputs:
            output.close()
        for link in self.links:
            link.operator.close()

    # for subclasses ----------------------------------------------------------------------------------------------

    def _advance(self, now_us: int) -> Outcome:
        raise NotImplementedError  # abstract

    def _has_more(self) -> bool:
        """Whether there is input to take now."""
        raise NotImplementedError  # abstract

    def _pause(self, paused: bool) -> None:
        raise JobError(f"{self.name} cannot be paused: only sources can")

    def _release(self, checkpoint_id: int) -> None:
        raise JobError(f"{self.name} collects no batches: only sources do")

    def source_state(self) -> Snapshot:
        return {}

    # commands ----------------------------------------------------------------------------------------------------

    def _apply(self, command: Command, now_us: int) -> None:
        match command:
            case Trigger(barrier):
                self.policy.on_trigger(barrier, now_us)
            case Complete(checkpoint_id):
                self.snapshots.over(checkpoint_id)
                self.policy.on_complete(checkpoint_id)
                for link in self.links:
                    link.operator.notify_complete(checkpoint_id)
            case Abort(checkpoint_id):
                self.snapshots.give_up(checkpoint_id)
                self.policy.on_abort(checkpoint_id)
            case Apply(settings):
                self.settings = settings
                self._use(settings)
                for output in self.outputs:
                    output.buffer_size = settings.buffer_size
                    output.ship_after_us = settings.ship_after_us
            case Pause(paused):
                self._pause(paused)
            case Finish():
                self._finish()
            case Query(question):
                self.answer(question)
            case Release(checkpoint_id):
                self._release(checkpoint_id)
            case Crash():
                raise JobError(f"{self.name} was failed on purpose")

    def _use(self, settings: Settings) -> None:
        """Slow the task down as set; a rest in progress ends when that is no longer set."""
        self._ship_after_us = settings.ship_after_us
        self._rest_us = settings.rest_us(link.uid for link in self.links)
        self._not_before_us = MAX_TIME if self._rest_us == MAX_TIME else 0

    def _rest(self) -> None:
        """The task is slowed down and has processed a buffer: pause for the configured time."""
        self._not_before_us = min(self._now_us() + self._rest_us, MAX_TIME)

    def answer(self, question: Question) -> None:
        """Report the content of an operator's state."""
        operator = next(link.operator for link in self.links if link.uid == question.uid)
        key = question.key_values
        found: object
        try:
            if key is not None:
                found = operator.query(key)
            else:
                count, keys = operator.query_keys(question.limit)
                found = count, [(each, operator.query(each)) for each in keys] if question.with_values else keys
        except Exception as error:  # noqa: BLE001  a question must not fail the task
            found = error
        self.host.report(Answered(self.name, question, found))

    # control elements --------------------------------------------------------------------------------------------

    def _emit_marker(self, marker: LatencyMarker) -> None:
        self._marker_turn += 1
        for output in self.outputs:
            output.emit_marker(marker, self._marker_turn)

    def _finish(self) -> None:
        self.finished = True
        self.ended_us = self._now_us()
        for output in self.outputs:
            output.emit_event(EndOfStream())
        self.host.report(Finished(self.name))


def _earlier(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else min(a, b)
