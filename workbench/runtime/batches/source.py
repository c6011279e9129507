"""A source task that collects batches: it reads ahead, and sends the records of a batch when the batch is released."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, WaitUntil
from workbench.elements import CheckpointBarrier, LatencyMarker, Records
from workbench.errors import SourceError
from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.pieces import table_in, value_in
from workbench.runtime.barriers.micro_batches import DEFAULT, Batched
from workbench.runtime.barriers.policy import SourceBarriers
from workbench.runtime.batches.offsets import Span
from workbench.runtime.exchange.in_flight import as_buffers, as_table
from workbench.runtime.messages.messages import Collected, Command, Trigger
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.source_task import WATERMARKS, SourceTask
from workbench.runtime.tasks.states import READ_AHEAD
from workbench.runtime.tasks.task import Outcome, Task

BATCHES = "$batches"
"""Name of the task and of the number of records that it had read, in a source's snapshot."""
_ENDED = f"{READ_AHEAD}-ended"
"""The splits that it had read to their end, of those that it had read ahead."""

_LETTERS = f"{READ_AHEAD}-letters"
"""The numbers of those pieces of what it had read ahead that are dead letters."""
LETTERS = " (dead letters)"
"""Follows the name of a split in the counts of a batch: they belong to the batch like its records."""

Item = Fetched | LatencyMarker | Exhausted


@dataclass(slots=True)
class Collection:
    """What a source has collected for one batch.

    Attributes:
        items: what was read, in order.
        counts: records, by split.
        ended: everything has been read.
        barrier: that ends the batch; None while it is collected.
        position: of the source behind the batch.
    """

    items: deque[Item] = field(default_factory=deque)
    counts: Counter[str] = field(default_factory=Counter)
    ended: bool = False
    barrier: CheckpointBarrier | None = None
    position: Snapshot = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Records in it."""
        return self.counts.total()

    @property
    def unsent(self) -> int:
        """Records of it that are not sent yet."""
        return sum(len(item.records) for item in self.items if isinstance(item, Fetched))


class BatchSourceTask(SourceTask):
    """Collects records until the coordinator ends the batch, and sends them when it releases the batch (see
    `SourceTask` for the other arguments).

    Between the two it reports how many records of each split the batch consists of, and the coordinator logs that. A
    batch that is processed again is collected until it consists of the same numbers. What a split delivers beyond them
    belongs to a later batch.

    Args:
        spans: the batches that are to be processed again with the same records, oldest first.
    """

    def __init__(self, *, spans: Sequence[Span], **rest: Any) -> None:
        self._nothing = pa.RecordBatch.from_pylist([], schema=rest["schema"])
        self._batched: Batched = rest["settings"].policy.batches or DEFAULT
        self._spans = deque(spans)
        self._triggers: deque[CheckpointBarrier] = deque()
        self._open = Collection()
        self._closed: deque[Collection] = deque()
        self._ahead: list[Fetched] = []  # read, but of a later batch
        self._released_to = 0
        self._total = 0
        self._exhausted = False
        self._position: Snapshot | None = None
        super().__init__(**rest)
        self.policy = _BatchBarriers(self)
        self._barriers = SourceBarriers(self.snapshots, self._hold)

    # batches -----------------------------------------------------------------------------------------------------

    @property
    def collections(self) -> tuple[Collection, ...]:
        """What is collected and not wholly sent, by batch, oldest first; the last one is still open."""
        return (*self._closed, self._open)

    def cut(self, barrier: CheckpointBarrier) -> None:
        """The coordinator ends a batch: the oldest that is not complete."""
        self._triggers.append(barrier)
        self._close_complete()

    def _close_complete(self) -> None:
        while self._triggers and (not self._spans or self._owes_nothing):
            self._close(self._triggers.popleft())

    def _close(self, barrier: CheckpointBarrier) -> None:
        batch, self._open = self._open, Collection()
        start, self._total = self._total, self._total + batch.records
        batch.barrier = barrier
        if self._spans:
            self._spans.popleft()
        self._take_ahead()
        batch.position = {**self.reader.snapshot(), BATCHES: [self.name, self._total], **self._unsent()}
        self._closed.append(batch)
        self.host.report(
            Collected(self.name, barrier.checkpoint_id, start, self._total, dict(batch.counts), batch.ended)
        )

    @property
    def _owes_nothing(self) -> bool:
        """Whether the batch that is collected again has all of its records."""
        span = self._spans[0]
        return self._open.records >= sum(span.counts.values()) and (self._open.ended or not span.ended)

    def _unsent(self) -> Snapshot:
        """What the reader has delivered for later batches, as pieces of the position behind the present one."""
        found: Snapshot = {}
        if ahead := [*self._ahead, *(item for item in self._open.items if type(item) is Fetched)]:
            found[READ_AHEAD] = [each.split for each in ahead]
            found[_ENDED] = sorted({each.split for each in ahead}.difference(self.reader.splits()))
            found[_LETTERS] = [n for n, each in enumerate(ahead) if each.dead_letters is not None]
            for n, each in enumerate(ahead):
                rows = each.records if each.dead_letters is None else each.dead_letters
                found[f"{READ_AHEAD}-{n}"] = as_table([rows])
        return found

    def _take_ahead(self) -> None:
        """Begin a batch with what was read too early."""
        ahead, self._ahead = self._ahead, []
        for fetched in ahead:
            self._take_in(fetched)

    def _take_in(self, fetched: Fetched) -> None:
        """Add what was read to the batch, as far as it belongs to it."""
        letters = fetched.dead_letters
        if len(fetched.records):
            self._take_part(replace(fetched, dead_letters=None), fetched.split, len(fetched.records))
        if letters is not None:
            nothing = replace(fetched, records=fetched.records.slice(0, 0))
            self._take_part(nothing, f"{fetched.split}{LETTERS}", len(letters))

    def _take_part(self, part: Fetched, name: str, rows: int) -> None:
        """Add the records or the dead letters of what was read, which have a name of their own in the counts."""
        if self._spans:
            mine = min(rows, self._spans[0].counts.get(name, 0) - self._open.counts[name])
            if mine < rows:
                self._ahead.append(_sliced(part, mine, rows - mine))
                if not mine:
                    return
                part, rows = _sliced(part, 0, mine), mine
        self._open.items.append(part)
        self._open.counts[name] += rows

    # reading -----------------------------------------------------------------------------------------------------

    @property
    def _room(self) -> int:
        """Records that may still be collected."""
        if self._spans:
            return sum(self._spans[0].counts.values()) - self._open.records
        return self._batched.size - self._open.records

    @property
    def _collects(self) -> bool:
        if self._exhausted:
            return False
        if self._spans:  # also while the source is paused: it had read these records before
            return not self._owes_nothing
        return not self.paused and self._room > 0

    def _collect(self, now_us: int) -> bool:
        """Read once; returns whether there was anything."""
        room = max(1, self._room)
        fetched = self.reader.poll(min(room, self._read.at_most(self.settings.buffer_size, self.pool)))
        until_us, rested_us = now_us, 0
        if isinstance(fetched, Fetched) and fetched.due_us is not None:
            until_us, rested_us = self._markers.stretch(fetched.due_us, len(fetched.records))
        schedule = self._markers.schedule
        if schedule.wants(until_us, rested_us):
            schedule.space(self.root.counters.numRecordsIn, self.settings.latency_interval_us)
            covers_us = schedule.cover(until_us, rested_us)
            self._open.items.append(LatencyMarker(until_us, self.name, rested_us, covers_us))
        match fetched:
            case Fetched():
                self._wait_until_us = max(now_us, fetched.next_us)
                self._take_in(fetched)
                self._close_complete()
                return True
            case WaitUntil(time_us):
                self._wait_until_us = time_us
                return False
        self._exhausted = self._open.ended = True
        self._open.items.append(fetched)
        if self._spans and not self._owes_nothing:
            raise SourceError(
                f"{self.name} has fewer records than when its batch was first read: {self._open.records} instead of "
                f"{sum(self._spans[0].counts.values())}; with fault_tolerance='micro-batches:state=opaque' a batch may "
                "have others when it is read again"
            )
        self._close_complete()
        return True

    # sending -----------------------------------------------------------------------------------------------------

    @property
    def _sends(self) -> bool:
        """Whether a batch that was released is not sent yet."""
        if not self._closed:
            return False
        barrier = self._closed[0].barrier
        return barrier is not None and barrier.checkpoint_id <= self._released_to

    def _release(self, checkpoint_id: int) -> None:
        self._released_to = checkpoint_id

    def _send_some(self, now_us: int) -> bool:
        """Send the next piece of the oldest batch, or its barrier; returns whether it was possible."""
        batch = self._closed[0]
        if batch.items:
            self._emit(batch.items[0], now_us)
            batch.items.popleft()  # not before: its split may have ended, and counts as live until then
            return True
        if self.pool.backlogged:
            return False
        if self.event_time.strategy is not None and not self.drained:
            self._follow_splits(now_us)
            self.event_time.tell(now_us, room=self.pool.has_room)
        assert batch.barrier is not None
        self._position = batch.position
        self._barriers.on_trigger(batch.barrier, now_us)
        self._closed.popleft()
        return True

    def _emit(self, item: Item, now_us: int) -> None:
        if isinstance(item, LatencyMarker):
            self._emit_marker(item)
        elif isinstance(item, Exhausted):
            self._follow_splits(now_us)
            self._drain()
        else:
            if len(item.records):
                self._reading.where = item.where
                self._take(item.records, item.split, now_us)
                self._reading.where = None
            if item.dead_letters is not None:
                self._send_letters(item.dead_letters)
            if self._rest_us:
                self._rest()
            self._read.note(len(item.records), self._now_us() - now_us, 0)

    # steps -------------------------------------------------------------------------------------------------------

    def _advance(self, now_us: int) -> Outcome:
        worked = False
        if self._closed or self._open.items:
            self.event_time.stay_active(now_us)  # a split whose records wait for their batch is not silent
        if self._collects and self._wait_until_us is not None and self._wait_until_us <= now_us:
            worked = self._collect(now_us)
        if not self._sends:
            return Outcome.PROGRESSED if worked else Outcome.WAITING
        if now_us < self._not_before_us or not self.pool.has_room or (self._gates and not self._takes_input):
            return Outcome.PROGRESSED if worked else Outcome.NO_CREDIT
        return Outcome.PROGRESSED if self._send_some(now_us) or worked else Outcome.NO_CREDIT

    def _holds_back(self, command: Command, now_us: int) -> bool:
        if type(command) is Trigger:  # it cuts what was collected; the barrier follows the records
            return self.restored is not None
        return super()._holds_back(command, now_us)

    def _has_more(self) -> bool:
        due = self._wait_until_us is not None and self._wait_until_us <= self.load.last_us
        return self._sends or (self._collects and due)

    def _use(self, settings: Settings) -> None:
        super()._use(settings)
        self._batched = settings.policy.batches or DEFAULT

    @property
    def rests_until_us(self) -> int:
        return 0  # a batch may be released at any time

    def next_due_us(self) -> int | None:
        due_us = Task.next_due_us(self)
        if not self._collects or self._wait_until_us is None:
            return due_us
        return self._wait_until_us if due_us is None else min(due_us, self._wait_until_us)

    def _splits(self) -> Sequence[str]:
        waiting = [item.split for batch in (*self._closed, self._open) for item in batch.items if type(item) is Fetched]
        waiting += [fetched.split for fetched in self._ahead]
        return tuple(dict.fromkeys([*self.reader.splits(), *waiting]))

    # positions ---------------------------------------------------------------------------------------------------

    def source_state(self) -> Snapshot:
        state = super().source_state()
        return state if self._position is None else {**self._position, WATERMARKS: state[WATERMARKS]}

    def restore_watermarks(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            self._restore_batches(snapshot)
        super().restore_watermarks(snapshots)
        self._take_ahead()

    def _restore_batches(self, snapshot: Snapshot) -> None:
        if BATCHES in snapshot:
            name, total = value_in(snapshot, BATCHES, tuple[str, int])
            self._total = total if name == self.name else self._total
        splits = value_in(snapshot, READ_AHEAD, tuple[str, ...]) if READ_AHEAD in snapshot else ()
        own = set(self.reader.splits())
        if self.subtask == 0 and splits:  # no subtask reads these any more
            own.update(value_in(snapshot, _ENDED, tuple[str, ...]))
        letters = value_in(snapshot, _LETTERS, tuple[int, ...]) if _LETTERS in snapshot else ()
        for number, split in enumerate(splits):
            if split in own:
                pieces = as_buffers(table_in(snapshot, f"{READ_AHEAD}-{number}"))
                self._ahead += [self._ahead_of(piece, split, number in letters) for piece in pieces]

    def _ahead_of(self, piece: Records, split: str, are_letters: bool) -> Fetched:
        if not are_letters:
            return Fetched(piece, split)
        times = None if piece.timestamps is None else piece.timestamps[:0]
        return Fetched(Records(self._nothing, times), split, piece)

    def close(self) -> None:
        self.policy = self._barriers = SourceBarriers(self.snapshots, lambda held: None)
        super().close()


class _BatchBarriers(SourceBarriers):
    """The policy of a source that collects batches: a barrier waits until the records of its batch are sent."""

    __slots__ = ("_task",)

    def __init__(self, task: BatchSourceTask) -> None:
        super().__init__(task.snapshots, task._hold)
        self._task = task

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        """End a batch."""
        self._task.cut(barrier)


def _sliced(fetched: Fetched, first: int, rows: int) -> Fetched:
    """Some of the records that were read, or of the dead letters."""
    where, letters = fetched.where, fetched.dead_letters
    if letters is not None:
        return replace(fetched, dead_letters=letters.slice(first, rows))
    return replace(
        fetched,
        records=fetched.records.slice(first, rows),
        where=where if where is None or not first else lambda row: where(first + row),
    )
