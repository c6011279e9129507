"""One task's part of a checkpoint: its state is copied, the barrier sent on, and the copy reported to be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from workbench.durations import MAX_TIME
from workbench.elements import CheckpointBarrier
from workbench.operators.contract.base import Snapshot
from workbench.runtime.exchange.chain import Link
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.in_flight import TASK, InFlight, saved
from workbench.runtime.exchange.output import EdgeOutput


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """From a task: its state as of a barrier, still to be written.

    Attributes:
        task: its name.
        barrier: of the checkpoint.
        states: by operator uid.
        start_delay_us: from the trigger to the first barrier's arrival.
        alignment_us: from the first barrier to the last.
        sync_us: time that copying the state took.
        taken_us: processing time.
        unaligned: the barrier has overtaken records.
        processed_records, processed_bytes: that the task took in during the alignment.
        in_flight: what the barrier has overtaken, as far as this task keeps it.
        early_records: that are in the state although they came behind a barrier, and will come again after a failure.
    """

    task: str
    barrier: CheckpointBarrier
    states: dict[str, Snapshot]
    start_delay_us: int
    alignment_us: int
    sync_us: int
    taken_us: int
    unaligned: bool = False
    processed_records: int = 0
    in_flight: tuple[InFlight, ...] = ()
    early_records: int = 0
    processed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Copied:
    """A task's state as of a barrier.

    Attributes:
        barrier: as it came.
        states: by operator uid.
        overtook: the barrier was sent before what was in flight.
        held: what its outputs had not shipped, where it has.
        sync_us: how long copying took.
    """

    barrier: CheckpointBarrier
    states: dict[str, Snapshot]
    overtook: bool
    held: tuple[InFlight, ...]
    sync_us: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """How the barriers of one checkpoint came to a task.

    Attributes:
        start_delay_us: from the trigger to the first of them.
        alignment_us: from the first to the last.
        processed, processed_bytes: records that the task took in meanwhile, and the bytes of their buffers.
        early: of those, the ones that are in the state although they came behind a barrier.
        in_flight: what the barriers have overtaken.
    """

    start_delay_us: int
    alignment_us: int = 0
    processed: int = 0
    early: int = 0
    in_flight: tuple[InFlight, ...] = ()
    processed_bytes: int = 0


class Takes(Protocol):
    """What a fault-tolerance policy asks of its task."""

    @property
    def records_in(self) -> int:
        """Records that the task has received."""
        ...

    def wants(self, checkpoint_id: int) -> bool:
        """Whether the task still has to take its part of a checkpoint."""
        ...

    def take(self, barrier: CheckpointBarrier) -> Copied:
        """Copy the state, and send the barrier on."""
        ...

    def report(self, copied: Copied, arrival: Arrival) -> None:
        """Hand the copy over to be written."""
        ...


def _unheard(taken: SnapshotTaken) -> None:
    """What becomes of a snapshot whose task has ended."""


class Snapshots:
    """Takes the snapshots of one task.

    Args:
        task: its name.
        links: its operators, head first.
        outputs: all outputs of its chain.
        own_state: of the task's head that is not its operator's.
        send: takes what is to be written.
        now_us: reads the injected clock.

    Attributes:
        due_us: when the barrier that was sent last begins to overtake; MAX_TIME: never.
    """

    def __init__(
        self,
        task: str,
        links: Sequence[Link],
        outputs: Sequence[EdgeOutput],
        own_state: Callable[[], Snapshot],
        send: Callable[[SnapshotTaken], None],
        now_us: Callable[[], int],
    ) -> None:
        self._task = task
        self._links = links
        self._outputs = outputs
        self._own_state = own_state
        self.send = send
        self._now_us = now_us
        self._last_id = 0
        self._given_up: set[int] = set()
        self._sent: list[tuple[Channel, CheckpointBarrier]] = []
        self.due_us = MAX_TIME

    def close(self) -> None:
        """Let go of the task; no further snapshot is taken."""
        self._own_state = dict
        self.send = _unheard

    @property
    def records_in(self) -> int:
        """Records that the task has received, singly or aggregated by their sender."""
        counters = self._links[0].counters
        return counters.numRecordsIn + counters.numRecordsInFolded

    @property
    def last_id(self) -> int:
        """The checkpoint of the last snapshot; 0 before the first."""
        return self._last_id

    def wants(self, checkpoint_id: int) -> bool:
        """Whether the task still has to take its part: it has not yet, and nobody has given the checkpoint up."""
        return checkpoint_id > self._last_id and checkpoint_id not in self._given_up

    def take(self, barrier: CheckpointBarrier) -> Copied:
        """Copy the state of the chain, and send the barrier on: behind what was sent before it, or over it."""
        begin = self._now_us()
        self._last_id = barrier.checkpoint_id
        self._given_up = {given_up for given_up in self._given_up if given_up > self._last_id}
        states = {link.uid: link.operator.snapshot(barrier.checkpoint_id) for link in self._links}
        head = self._links[0].uid
        states[head] = {**states[head], **self._own_state()}
        overtook = overtakes(barrier, begin)
        held = self._overtake(barrier) if overtook else self._send_behind(barrier)
        return Copied(barrier, states, overtook, held, self._now_us() - begin)

    def report(self, copied: Copied, arrival: Arrival) -> None:
        """Hand the copy over to be written, together with what was in flight."""
        pieces = (*arrival.in_flight, *copied.held)
        states = copied.states
        if pieces or arrival.early:
            states = {**states, TASK: saved(self._task, pieces, arrival.early)}
        self.send(
            SnapshotTaken(
                task=self._task,
                barrier=copied.barrier,
                states=states,
                start_delay_us=arrival.start_delay_us,
                alignment_us=arrival.alignment_us,
                sync_us=copied.sync_us,
                taken_us=self._now_us(),
                unaligned=copied.overtook,
                processed_records=arrival.processed,
                in_flight=pieces,
                early_records=arrival.early,
                processed_bytes=arrival.processed_bytes,
            )
        )

    def give_up(self, checkpoint_id: int) -> None:
        """A checkpoint will not be completed."""
        if checkpoint_id > self._last_id:
            self._given_up.add(checkpoint_id)
        self.over(checkpoint_id)

    def over(self, checkpoint_id: int) -> None:
        """A checkpoint is complete or given up: its barrier need not overtake anything any more."""
        if self._sent and self._sent[0][1].checkpoint_id <= checkpoint_id:
            self._sent = []
            self.due_us = MAX_TIME

    def overtake(self) -> None:
        """The barrier that was sent last has been under way for too long: say so before what it stands behind."""
        for channel, barrier in self._sent:
            channel.overtake(barrier)
        self._sent = []
        self.due_us = MAX_TIME

    def _overtake(self, barrier: CheckpointBarrier) -> tuple[InFlight, ...]:
        self._sent, self.due_us = [], MAX_TIME
        return tuple(
            InFlight(channel.flow, buffers, held=True)
            for output in self._outputs
            for channel, buffers in output.overtake(barrier)
        )

    def _send_behind(self, barrier: CheckpointBarrier) -> tuple[InFlight, ...]:
        for output in self._outputs:
            output.emit_event(barrier)
        self._sent, self.due_us = [], MAX_TIME
        if barrier.overtakes_at_us is not None:
            self.due_us = barrier.overtakes_at_us
            self._sent = [
                (channel, replace(barrier, behind=channel.buffers_sent))
                for output in self._outputs
                for channel in output.channels
            ]
        return ()


def overtakes(barrier: CheckpointBarrier, now_us: int) -> bool:
    """Whether a barrier is sent before what is in flight."""
    return barrier.behind is not None or (barrier.overtakes_at_us is not None and now_us >= barrier.overtakes_at_us)
