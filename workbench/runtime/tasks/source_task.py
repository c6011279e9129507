"""A task that reads a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.connectors.live.hybrid_source import rated
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Records
from workbench.operators.contract.base import Snapshot
from workbench.operators.contract.positions import Reading
from workbench.operators.event_time.watermarks import IngestionGenerator, note_times
from workbench.operators.functions.dead_letters import TAG as DEAD_LETTERS
from workbench.operators.snapshots.pieces import value_in
from workbench.plan.watermark_strategy import WatermarkStrategy
from workbench.runtime.barriers.kept_positions import KeptPositions
from workbench.runtime.barriers.policy import SourceBarriers
from workbench.runtime.messages.messages import Abort, Apply, Command, Complete, Drained, Trigger, Wanted
from workbench.runtime.tasks.marker_schedule import SourceMarkers, Stretch
from workbench.runtime.tasks.read_size import ReadSize
from workbench.runtime.tasks.source_time import SourceTime
from workbench.runtime.tasks.task import Outcome, Task

WATERMARKS = "$watermarks"
"""Name of the watermark generators' state in a source's snapshot."""
LONGEST_REST_US = 50_000
"""A source whose records wait in buffers polls at least this often, unless its driver lets it rest longer."""
_QUICK_US = 200
"""Reading and processing for this long, plus a tenth of the time between two polls, delays no buffer noticeably."""


class SourceTask(Task):
    """Polls a reader when its output has room (see `Task` for the other arguments).

    A source that has read everything stays alive: it keeps sending barriers until the final checkpoint is complete, so
    that the tail of a bounded input is committed like everything before it.

    Args:
        reader: its share of the source.
        schema: of the records.
        watermarks: how it derives event time; None: not at all.
        reading: informs the operators of its chain of the position of the records that they process.
        tells_last: see `SourceTime`.

    Attributes:
        event_time: of what it reads.
    """

    takes_records = False
    _ships_first: ClassVar[bool] = False  # what became due while it rested is sent with the buffer that ends the rest

    def __init__(
        self,
        *,
        reader: SourceReader,
        schema: pa.Schema,
        watermarks: WatermarkStrategy | None,
        reading: Reading,
        tells_last: bool = False,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.policy = SourceBarriers(self.snapshots, self._hold)
        self._held = False
        self._kept = False  # from reading, since the last step or earlier
        self._released = False
        self.reader = reader
        self.paused = False
        self.drained = False
        self._read = ReadSize()
        self._reading = reading
        self.split_rows: dict[str, int] = {}
        self._live: tuple[str, ...] | None = None  # the reader's splits, if it reports changes of them
        now = self._now_us()
        self.event_time = SourceTime(watermarks, schema, self.root, now, self.settings.watermark_interval_us)
        self.event_time.tells_last = tells_last
        self._follow_splits(now)
        self._wait_until_us: int | None = now
        self._rest_max_us = 0  # until a driver changes it: where steps are watched, records move one by one
        self._rested_us, self._found, self._handled_us = now, 0, 0
        self._pace = 0, 0  # microseconds, and the records that came in them
        # Until when it rested at last, and from when on there may be records that were left for the end of the rest.
        self._rests_us, self._unread_us = NO_TIME, 0
        self._look_us, self._crowds = 0, False  # whether the first of them may have become due at any time before
        leaves = [link for link in self.links if not (link.edges or link.children or link.side_edges)]
        # Whether everything that it reads waits in buffers only.
        self._may_rest = not (leaves or self._timed or self._gates)
        self._markers = SourceMarkers(self.name, self.outputs, now, self.settings.latency_interval_us)
        self._kept_positions = KeptPositions(reader, self.root.uid) if KeptPositions.concern(reader) else None
        if self._kept_positions is not None:
            self.snapshots.send = self._kept_positions.noting(lambda taken: self.host.report(taken))
            self.reader.hold_back(self.settings.resumes_reading)

    def restore_watermarks(self, snapshots: Sequence[Snapshot]) -> None:
        """Restore the event times of all former subtasks' splits that this subtask has now."""
        self.event_time.restore([value_in(each, WATERMARKS, dict[str, tuple[int, Any]]) for each in snapshots])

    def source_state(self) -> Snapshot:
        return {**self.reader.snapshot(), WATERMARKS: self.event_time.snapshot(self._now_us())}

    def look_every(self, us: int, from_us: int = 0) -> None:
        """Poll for due records at this interval, counted from `from_us`, where the source keeps to a rate, and rest
        while records would only wait in buffers."""
        self._look_us, self._rest_max_us = us, max(2 * us, LONGEST_REST_US)
        for _, part in rated(self.vertex, self.reader):
            part.rate.look_us, part.rate.look_from_us = us, from_us

    def _rest_with_buffers(self, rows: int, now_us: int, timeout_us: int) -> None:
        """Poll again when the first buffer is due: until then further records would only wait in it.

        The first records after all buffers are empty may wait as long as if they had been read at once. The task polls
        earlier where a buffer may fill up before: between two polls at most half of the smallest buffer arrives, and
        among many jobs, where each poll counts, at most one. A chain that needs much time for its records starts with
        them immediately.

        Args:
            rows: records that this step has read.
            now_us: start of the step.
            timeout_us: how long a record waits for its buffer to fill.
        """
        self._found += rows
        self._handled_us += self._now_us() - now_us
        wait_us = self._wait_until_us
        if not self._may_rest or wait_us is None or wait_us <= now_us:  # there is more to read now
            if now_us - self._unread_us > 2 * self._rest_max_us:  # what became due during a rest has been read
                self._unread_us = 0
            return
        since_us, found, handled_us = now_us - self._rested_us, self._found, self._handled_us
        self._rested_us, self._found, self._handled_us = now_us, 0, 0
        self._unread_us = 0
        crowded = self._is_crowded
        if handled_us > _QUICK_US + since_us // 10 and not crowded:
            return
        # What is due by now is shipped at the end of this step.
        due_us = min((due for due in self._dues_us() if due > now_us), default=wait_us + timeout_us)
        due_us = min(due_us, now_us + self._rest_max_us)
        during_us, records = self._pace
        if found:
            during_us, records = during_us // 2, records // 2  # how it was long ago counts less and less
        self._pace = during_us, records = during_us + since_us, records + found
        if records:
            smallest = min(pending.size for output in self.outputs for pending in output.pending)
            due_us = min(due_us, now_us + during_us * smallest // (records if crowded else 2 * records))
        if due_us > wait_us:
            self._wait_until_us, self._unread_us, self._rests_us = due_us, wait_us, due_us
            self._crowds = wait_us < now_us + 2 * self._look_us
            for output in self.outputs:
                output.markers.begin_rest(self._marker_turn + 1)

    @property
    def _is_crowded(self) -> bool:
        """Whether the sources of many other jobs take the time."""
        return self._rest_max_us > LONGEST_REST_US

    def _mark(self, now_us: int, found: int, stretch: Stretch | None, *, reads_on: bool) -> bool:
        """Send latency markers if they are due; returns whether there was one.

        Args:
            now_us: start of the step.
            found: records that it has read.
            stretch: when they became due, if its reader knows.
            reads_on: there may be more to read now.
        """
        rested_us = now_us - (self._rested_us if self._crowds else self._unread_us) if self._unread_us else 0
        markers, records, rests = self._markers, self._found + found, now_us - self._rests_us <= 2 * self._rest_max_us
        if stretch is None and not markers.are_due(now_us, max(0, rested_us), found, records, reads_on=reads_on):
            return False
        records = found if stretch is not None else 0 if self._crowds else records
        # Among many jobs, markers cost more than the few records of each.
        interval_us = max(self.settings.latency_interval_us, self._look_us // 2)
        markers.schedule.space(self.root.counters.numRecordsIn, interval_us)
        for marker in markers.of(stretch or (now_us, max(0, rested_us)), records, self._marker_turn, now_us, rests):
            self._emit_marker(marker)
        return True

    def _ships_between(self, after_us: int, until_us: int) -> bool:
        """Whether a buffer, with which a watermark can be sent, is due then; the first bound is exclusive."""
        return any(after_us < due <= until_us for due in self._dues_us())

    def _dues_us(self) -> list[int]:
        return [due for output in self.outputs if (due := output.next_due_us()) is not None]

    def _tells_alone(self, first_us: int) -> bool:
        """Whether a watermark needs a step of its own before `first_us`, because it would not merely wait in a buffer
        that is due shortly after it."""
        due_us = self.event_time.due_us
        if self.event_time.strategy is None or due_us >= first_us:
            return False
        return not (
            self._ship_after_us and self._ships_between(due_us, due_us + self.settings.watermark_interval_us // 2)
        )

    @property
    def _waits_for_others(self) -> bool:
        """Whether it reads nothing for a reason other than that nothing is due."""
        if self.drained or self.paused or self._held or self._not_before_us or not self.pool.has_room:
            return True
        return bool(self._gates) and not self._takes_input

    @property
    def rests_until_us(self) -> int:
        """The processing time until which a step would do nothing, unless a command arrives; 0: not known."""
        return 0 if self._waits_for_others else self._next_read_us() or 0

    @property
    def knows_when(self) -> bool:
        """Whether nothing is to be read before a time that it knows, unless a command arrives."""
        return self.paused or self.drained or self.rests_until_us > 0

    def next_due_us(self) -> int | None:
        # A receiver that makes room wakes the slot.
        return super().next_due_us() if self._waits_for_others else self._next_read_us()

    def _next_read_us(self) -> int | None:
        """When a step is due if the task waits for nothing but a time."""
        first_us = super().next_due_us() or MAX_TIME  # no step for a latency marker alone: it goes with what flows
        if self._wait_until_us is not None and self._wait_until_us < first_us:
            first_us = self._wait_until_us
        if self._tells_alone(first_us):
            first_us = self.event_time.due_us
        return None if first_us == MAX_TIME else first_us

    def close(self) -> None:
        self.policy = SourceBarriers(self.snapshots, lambda held: None)  # replaces one that refers to this task
        self.reader.close()
        super().close()

    def _pause(self, paused: bool) -> None:
        self.paused = paused
        self._wait_until_us = self._markers.resumed_us = self._now_us()

    @property
    def held(self) -> bool:
        """Whether it reads nothing until a checkpoint is complete."""
        return self._held

    def _hold(self, held: bool) -> None:
        """Read nothing until a checkpoint is complete, or resume reading."""
        self._held = held
        self._released = not held
        self._wait_until_us = self._now_us()

    def _holds_back(self, command: Command, now_us: int) -> bool:
        # Between two checkpoints that stop it a source reads at least once; otherwise the job might make no progress.
        return (self._released and type(command) is Trigger) or super()._holds_back(command, now_us)

    def _advance(self, now_us: int) -> Outcome:
        self._released = False
        if self.drained:
            return Outcome.WAITING
        resting = self._held or now_us < self._not_before_us
        if self.paused or resting or not self.pool.has_room or (self._gates and not self._takes_input):
            self._kept = True
            return Outcome.WAITING if self.paused or resting else Outcome.NO_CREDIT
        if self._kept:  # until now: while nothing can be read there are few steps to measure the time in
            self._kept = False
            self.event_time.stay_active(now_us)
        worked = False
        read, large, sent_before, found = self._read, False, 0, 0
        stretch: Stretch | None = None
        markers, marks = self._markers, self._markers.schedule
        fetched: Fetched | WaitUntil | Exhausted
        event_time = self.event_time
        alignment = event_time.alignment
        if alignment is not None and alignment.ahead:
            event_time.stay_active(now_us)
            fetched = WaitUntil(now_us + alignment.look_again_us)
            alignment = None  # it waits for others, which may now wait for it
        else:
            if large := read.is_large:
                sent_before = self.rows_sent
            fetched = self.reader.poll(read.at_most(self.settings.buffer_size, self.pool))
        match fetched:
            case Fetched(records, split, dead_letters, next_us, where, due_us):
                worked, found = True, records.batch.num_rows
                self._wait_until_us = max(now_us, next_us)
                markers.scheduled = due_us is not None
                if found:
                    if due_us is not None and (due_us[1] >= marks.due_us or due_us[1] - due_us[0] >= marks.long_us):
                        stretch = markers.begin(due_us, found, self._marker_turn + 1)
                    self._reading.where = where
                    for output in self.outputs:
                        output.arrived_us = min(self._unread_us, now_us)
                    self._take(records, split, now_us)
                    self.split_rows[split] = self.split_rows.get(split, 0) + found
                    self._reading.where = None
                if dead_letters is not None:
                    self._send_letters(dead_letters)
                if self._rest_us:
                    self._rest()
                read.note(found, self._now_us() - now_us, self.rows_sent - sent_before if large else 0)
            case WaitUntil(time_us):
                self._wait_until_us = time_us
                if self._kept_positions is not None and self._kept_positions.asks:
                    self.host.report(Wanted(self.name))
            case Exhausted():
                self._drain()
                return Outcome.PROGRESSED
        if self.reader.splits() is not self._live:
            self._follow_splits(now_us)
        reads_on = type(fetched) is Fetched and fetched.next_us <= now_us
        if stretch is not None or now_us >= marks.due_us or (self._unread_us and not markers.scheduled):
            worked |= self._mark(now_us, found, stretch, reads_on=reads_on)
        for output in self.outputs:
            output.arrived_us = 0
        if alignment is not None and not alignment.asked_for:
            if type(fetched) is Fetched and fetched.next_us <= now_us:
                alignment.has_read(event_time.reached_us(now_us))
            else:
                alignment.leave()
        aligned = event_time.alignment is not None and event_time.alignment.asked_for
        rested = self._unread_us > 0
        along = (rested or self._is_crowded) and self._ships_between(0, now_us)  # not soon after the buffer, alone
        told_by_us = now_us if along else event_time.due_us
        if rested and self._wait_until_us is not None and self._wait_until_us <= now_us:  # more has become due by now
            told_by_us = event_time.told_at_us + 2 * self.settings.watermark_interval_us
        if event_time.strategy is not None and (now_us >= told_by_us or aligned):
            worked |= event_time.tell(now_us, room=self.pool.has_room)
        if self._ship_after_us:
            self._rest_with_buffers(found, now_us, self._ship_after_us)
        else:  # no record waits for a time
            self._rested_us, self._unread_us = now_us, 0
        self._kept = not self.pool.has_room  # it may take long until a step finds room
        return Outcome.PROGRESSED if worked else Outcome.WAITING

    def _send_restored(self) -> Outcome:
        self._kept = True
        return super()._send_restored()

    def _has_more(self) -> bool:
        if self.drained or self.paused or self._held or self._wait_until_us is None:
            return False
        return self._wait_until_us <= self.load.last_us

    def _apply(self, command: Command, now_us: int) -> None:
        super()._apply(command, now_us)
        if self._kept_positions is None:
            return
        if type(command) is Complete:
            self._kept_positions.completed(command.checkpoint_id, self.settings.retained_checkpoints)
        elif type(command) is Abort:
            self._kept_positions.aborted(command.checkpoint_id)
        elif type(command) is Apply:
            self.reader.hold_back(command.settings.resumes_reading)

    # records -----------------------------------------------------------------------------------------------------

    def _follow_splits(self, now_us: int) -> None:
        """Derive event time from the splits that there are now; one may end with its last record, or by a seek."""
        live = self._splits()
        if live is not self._live:
            self._live = live if isinstance(live, tuple) else None
            self.event_time.follow(live, now_us, shared=self.reader.shares_event_time)

    def _splits(self) -> Sequence[str]:
        """The splits that hold event time back."""
        return self.reader.splits()

    def _take(self, records: Records, split: str, now_us: int) -> None:
        """Send records, with the watermarks that they cause."""
        event_time = self.event_time
        if split not in event_time.splits:
            self._follow_splits(now_us)  # the reader started it in this poll
        time = event_time.splits[split]
        if isinstance(time.generator, IngestionGenerator):
            records = time.generator.stamp(records.batch, now_us)
        note_times(time.generator, records, self.root.counters.event_times, now_us)
        done = self._reading.first = 0
        for place, watermark_us in event_time.observe(records, time, now_us):
            self._send(records.slice(done, place - done))
            done = self._reading.first = place
            time.reach(watermark_us)
            event_time.send()
        if not done:
            self._send(records)
        elif done < len(records):
            self._send(records.slice(done, len(records) - done))

    def _send(self, records: Records) -> None:
        """Pass some of the records that were read to the chain."""
        self.root.receive(records)

    def _send_letters(self, letters: Records) -> None:
        """Send dead letters of the source."""
        self.root.counters.numRecordsInErrors += len(letters)
        self.root.emit_side(DEAD_LETTERS, letters)

    def _drain(self) -> None:
        self.drained = True
        self.event_time.end()
        for output in self.outputs:
            output.ship_all()
        self.host.report(Drained(self.name))
