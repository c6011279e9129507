"""One task's part of a checkpoint: it copies its state, forwards the barrier and hands the copy over to be written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """From a task: its state as of a barrier, not yet written.

    Attributes:
        task: its name.
        barrier: of the checkpoint.
        states: by operator uid.
        start_delay_us: from the trigger to the arrival of the first barrier.
        alignment_us: from the arrival of the first barrier to that of the last.
        sync_us: time spent copying the state.
        taken_us: processing time.
        unaligned: the barrier has overtaken records.
        processed_records, processed_bytes: input of the task during the alignment.
        in_flight: the part of the overtaken records that this task stores.
        early_records: records behind a barrier that are in the state already, and are sent again after a failure.
        records_in, late_records: records that the task had received, and dropped as late, since it was deployed.
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
    records_in: int = 0
    late_records: int = 0


@dataclass(frozen=True, slots=True)
class Copied:
    """A task's state as of a barrier.

    Attributes:
        barrier: as it arrived.
        states: by operator uid.
        overtook: the barrier was sent ahead of the in-flight records.
        held: what the outputs had not shipped, if the barrier has overtaken it.
        sync_us: time spent copying.
    """

    barrier: CheckpointBarrier
    states: dict[str, Snapshot]
    overtook: bool
    held: tuple[InFlight, ...]
    sync_us: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """How the barriers of one checkpoint arrived at a task.

    Attributes:
        start_delay_us: from the trigger to the first barrier.
        alignment_us: from the first barrier to the last.
        processed, processed_bytes: records that the task took in during the alignment, and the bytes of their buffers.
        early: how many of them are in the state but arrived behind a barrier.
        in_flight: the records that the barriers have overtaken.
    """

    start_delay_us: int
    alignment_us: int = 0
    processed: int = 0
    early: int = 0
    in_flight: tuple[InFlight, ...] = ()
    processed_bytes: int = 0


class Takes(Protocol):
    """What a fault-tolerance policy needs from its task."""

    saved_at: int | None

    @property
    def records_in(self) -> int:
        """Records that the task has received."""

    def wants(self, checkpoint_id: int) -> bool:
        """Whether the task still has to take its snapshot for a checkpoint."""

    def take(self, barrier: CheckpointBarrier) -> Copied:
        """Copy the state, and forward the barrier."""

    def report(self, copied: Copied, arrival: Arrival) -> None:
        """Hand the copy over to be written."""


def _unheard(taken: SnapshotTaken) -> None:
    """Discards the snapshot of a task that has ended."""


class Snapshots:
    """Takes the snapshots of one task.

    Args:
        task: its name.
        links: its operators, head first.
        outputs: all outputs of its chain.
        own_state: state of the task's head that does not belong to its operator.
        send: receives each snapshot that is to be written.
        now_us: reads the injected clock.

    Attributes:
        due_us: when the last barrier that was sent starts to overtake; MAX_TIME: never.
        saved_at: how many records a source had read at the position that it saves until its next one, if positions have
            a clock of their own; None before the first.
        in_flight: the records in the last snapshot that barriers had overtaken, until its checkpoint is over.
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
        self._saved: Snapshot = {}
        self.saved_at: int | None = None
        self.in_flight: tuple[InFlight, ...] = ()

    def close(self) -> None:
        """Release the task; no further snapshot is taken."""
        self._own_state = dict
        self.send = _unheard
        self.in_flight = ()

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
        """Whether the snapshot for this checkpoint is still to be taken and the checkpoint was not aborted."""
        return checkpoint_id > self._last_id and checkpoint_id not in self._given_up

    def take(self, barrier: CheckpointBarrier) -> Copied:
        """Copy the state of the chain, and forward the barrier, either behind everything sent before it or ahead of
        it."""
        begin = self._now_us()
        self._last_id = barrier.checkpoint_id
        self.in_flight = ()
        self._given_up = {given_up for given_up in self._given_up if given_up > self._last_id}
        links = [link for link in self._links if link.writes] if barrier.outputs_only else self._links
        states = {link.uid: link.operator.snapshot(barrier.checkpoint_id) for link in links}
        head = self._links[0].uid
        if own := self._position(barrier):
            states[head] = {**states.get(head, {}), **own}
        overtook = overtakes(barrier, begin)
        held = self._overtake(barrier) if overtook else self._send_behind(barrier)
        return Copied(barrier, states, overtook, held, self._now_us() - begin)

    def _position(self, barrier: CheckpointBarrier) -> Snapshot:
        """What the task's head adds to the state: the position of a source, which may be an older one."""
        if barrier.offsets is None:
            return self._own_state()
        if barrier.offsets:
            self._saved, self.saved_at = self._own_state(), self.records_in
        return self._saved

    def report(self, copied: Copied, arrival: Arrival) -> None:
        """Hand the copy over to be written, together with the in-flight records."""
        self.in_flight = pieces = (*arrival.in_flight, *copied.held)
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
                records_in=self.records_in,
                late_records=sum(link.counters.numLateRecordsDropped for link in self._links),
            )
        )

    def give_up(self, checkpoint_id: int) -> None:
        """A checkpoint was aborted."""
        if checkpoint_id > self._last_id:
            self._given_up.add(checkpoint_id)
        self.over(checkpoint_id)

    def over(self, checkpoint_id: int) -> None:
        """A checkpoint has completed or was aborted: its barrier need not overtake anything any more."""
        if self._last_id <= checkpoint_id:
            self.in_flight = ()
        if self._sent and self._sent[0][1].checkpoint_id <= checkpoint_id:
            self._sent = []
            self.due_us = MAX_TIME

    def overtake(self) -> None:
        """The last barrier has been in flight for too long: announce it ahead of the records before it."""
        for channel, barrier in self._sent:
            channel.overtake(barrier)
        self._sent = []
        self.due_us = MAX_TIME

    def _overtake(self, barrier: CheckpointBarrier) -> tuple[InFlight, ...]:
        self._sent, self.due_us = [], MAX_TIME
        return tuple(held for output in self._outputs for held in output.overtake(barrier))

    def _send_behind(self, barrier: CheckpointBarrier) -> tuple[InFlight, ...]:
        for output in self._outputs:
            output.emit_event(barrier)
        self._sent, self.due_us = [], MAX_TIME
        if barrier.overtakes_at_us is not None:
            self.due_us = barrier.overtakes_at_us
            self._sent = [(channel, channel.ahead(barrier)) for output in self._outputs for channel in output.channels]
        return ()


def overtakes(barrier: CheckpointBarrier, now_us: int) -> bool:
    """Whether a barrier is sent ahead of the in-flight records."""
    return barrier.behind is not None or (barrier.overtakes_at_us is not None and now_us >= barrier.overtakes_at_us)
