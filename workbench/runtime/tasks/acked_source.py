"""A source task whose records are acknowledged: it replays what is not acknowledged in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.elements import CheckpointBarrier, EndOfStream, LatencyMarker, Records
from workbench.operators.acking.acker import SUBTASKS, UNTRACKED
from workbench.operators.contract.base import Snapshot
from workbench.operators.functions.dead_letters import TAG as DEAD_LETTERS
from workbench.runtime.acking.pending_roots import Chunk, PendingRoots, RootCounts
from workbench.runtime.acking.tracking import Anchors
from workbench.runtime.barriers.acking import Acking
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.barriers.policy import SourceBarriers
from workbench.runtime.barriers.snapshots import Arrival
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.runtime.messages.messages import Finished
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.acked_operator import send_acks
from workbench.runtime.tasks.read_size import ReadSize
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Outcome, Task


class _Letters(Records):
    """Dead letters of the source."""


class AckedSourceTask(SourceTask):
    """Gives each root an id, keeps its records until it is acknowledged, and replays it otherwise.

    Its periodic snapshots hold the position of the oldest root that is not acknowledged. See `SourceTask` for the other
    arguments.

    Args:
        anchors: where its outputs note the ids that they give.
        counts: of its roots, over all attempts.
        returns: the channels from the ackers.
    """

    def __init__(self, *, anchors: Anchors, counts: RootCounts, returns: Sequence[Channel], **rest: Any) -> None:
        acking = rest["settings"].policy.acking
        self.acking: Acking = acking
        self.roots = PendingRoots(counts, acking.message_timeout_us)
        self._anchors = anchors
        self._returns = list(returns)
        self._number = returns[0].flow.port * SUBTASKS + rest["subtask"]
        self._position: Snapshot = {}
        self._chunk: Chunk | None = None
        self._sent_first = 0
        self._ending = False
        self._saved: Snapshot | None = None
        super().__init__(**rest)
        self.policy = _OldestPositions(self)
        self._read = self._limit = _Limited()

    # roots -------------------------------------------------------------------------------------------------------

    def _send(self, records: Records) -> None:
        if self._chunk is None:
            self._chunk = self.roots.begin(self._position, self._sent_first)
        self._sent_first += len(records)
        first = self._reading.first
        parts = [records.slice(row, 1) for row in range(len(records))] if self.acking.single else [records]
        sent = []
        for at, part in enumerate(parts):
            self._reading.first = first + at
            root, value, left = self._emit_root(part)
            if left:
                self.roots.add(root, part, self._chunk, self._now_us())
                sent.append((root, value))
            else:
                self.roots.add_done()
        self._announce(sent)

    def _send_letters(self, letters: Records) -> None:
        """Send dead letters as a root: they are replayed as records are."""
        self.root.counters.numRecordsInErrors += len(letters)
        if self._chunk is None:
            self._chunk = self.roots.begin(self._position, self._sent_first)
        root, value, left = self._emit_root(kept := _Letters(letters.batch, letters.timestamps))
        if left:
            self.roots.add(root, kept, self._chunk, self._now_us())
            self._announce([(root, value)])
        else:
            self.roots.add_done()

    def _replay(self) -> None:
        """Send the records of failed roots again, as many as one read takes."""
        sent = []
        rows = self._read.at_most(self.settings.buffer_size, self.pool)
        while rows > 0 and self.roots.waiting and not self._full:
            records, chunk = self.roots.next_failed()
            rows -= len(records)
            root, value, left = self._emit_root(records)
            self.roots.add_again(root, records, chunk, self._now_us())
            if left:
                sent.append((root, value))
            else:
                self.roots.acknowledge([root])
        self._announce(sent)

    def _emit_root(self, records: Records) -> tuple[int, int, bool]:
        """Process records as a new root; returns its id, the XOR of the ids given, and whether any was given."""
        anchors = self._anchors
        anchors.begin(root := anchors.ids.one())
        if isinstance(records, _Letters):
            self.root.emit_side(DEAD_LETTERS, records)
        else:
            self.root.receive(records)
        value = anchors.value
        anchors.begin(UNTRACKED)
        return root, value, value != 0

    def _announce(self, sent: list[tuple[int, int]]) -> None:
        if sent:
            send_acks(self.root, [root for root, _ in sent], [value for _, value in sent], self._number)
        self.roots.note_ages()

    def _take_returns(self, now_us: int) -> bool:
        """Take what the ackers have sent, and let roots fail that are due; returns whether anything has changed."""
        changed = False
        for channel in self._returns:
            while (element := channel.poll()) is not None:
                if type(element) is Records:
                    self.roots.acknowledge(element.batch.column(0).to_pylist())
                    changed = True
                elif type(element) is EndOfStream:
                    self._returns = [other for other in self._returns if other is not channel]
                    changed = True
        failed = self.roots.counts.failed
        self.roots.expire(now_us)
        self.roots.note_ages()
        return changed or self.roots.counts.failed != failed

    @property
    def _full(self) -> bool:
        most = self.acking.max_pending
        return most is not None and len(self.roots) >= most

    @property
    def _may_replay(self) -> bool:
        kept = self.paused or self._held or self._not_before_us or self._ending or self._full
        return self.roots.waiting and not kept and self.pool.has_room and not (self._gates and not self._takes_input)

    # steps -------------------------------------------------------------------------------------------------------

    def _advance(self, now_us: int) -> Outcome:
        changed = self._take_returns(now_us)
        if self._ending:
            return self._end_with_acks(changed)
        if self._may_replay:
            self._kept = True
            self._replay()
            return Outcome.PROGRESSED
        if self._full and not self.drained:
            self._kept = True
            outcome = Outcome.WAITING
        else:
            if not self.drained:
                most = self.acking.max_pending
                self._limit.most = most - len(self.roots) if self.acking.single and most is not None else None
                self._position, self._chunk = super().source_state(), None
            outcome = super()._advance(now_us)
        return Outcome.PROGRESSED if changed else outcome

    def _finish(self) -> None:
        """End the outputs; the task itself ends with the ackers, which end with everything that was sent."""
        self._ending = True
        for output in self.outputs:
            output.emit_event(EndOfStream())

    def _end_with_acks(self, changed: bool) -> Outcome:
        if self._returns:
            return Outcome.PROGRESSED if changed else Outcome.WAITING
        self.finished = True
        self.ended_us = self._now_us()
        self.host.report(Finished(self.name))
        return Outcome.FINISHED

    def _use(self, settings: Settings) -> None:
        super()._use(settings)
        if settings.policy.acking is not None:
            self.acking = settings.policy.acking
            self.roots.retime(self.acking.message_timeout_us)

    def _has_more(self) -> bool:
        return super()._has_more() and not self._full

    @property
    def has_news(self) -> bool:
        if self.finished:
            return False
        return any(channel.elements for channel in self._returns) or self._may_replay or super().has_news

    @property
    def rests_until_us(self) -> int:
        return 0  # acknowledgements may come at any time

    def next_due_us(self) -> int | None:
        waits = self._ending or (self._full and not self.drained)
        due_us, fails_us = Task.next_due_us(self) if waits else super().next_due_us(), self.roots.due_us
        if self._ending or fails_us is None:
            return due_us
        return fails_us if due_us is None else min(due_us, fails_us)

    def _emit_marker(self, marker: LatencyMarker) -> None:
        self._marker_turn += 1
        for output in self.outputs[:-1]:
            output.emit_marker(marker, self._marker_turn)

    # positions ---------------------------------------------------------------------------------------------------

    def source_state(self) -> Snapshot:
        return super().source_state() if self._saved is None else self._saved

    @property
    def since_oldest(self) -> int:
        """Records that were read since the oldest pending root."""
        oldest = self.roots.oldest
        return 0 if oldest is None else self._sent_first - oldest.before

    def save_oldest(self) -> int:
        """Save the position of the oldest pending root from now on; returns how many records were read since it."""
        oldest = self.roots.oldest
        if oldest is not None:
            self._saved = oldest.position
        return self.since_oldest

    def save_present(self) -> None:
        """Save the present position again."""
        self._saved = None

    def close(self) -> None:
        self.roots.abandon()
        super().close()


class _OldestPositions(SourceBarriers):
    """The policy of an acknowledged source: periodic checkpoints hold the position of its oldest pending root."""

    __slots__ = ("_task",)

    def __init__(self, task: AckedSourceTask) -> None:
        super().__init__(task.snapshots, task._hold)
        self._task = task

    def on_trigger(self, barrier: CheckpointBarrier, now_us: int) -> None:
        if policy_of(barrier.mode).acking is None:  # a savepoint, which holds everything before its barriers
            super().on_trigger(barrier, now_us)
            return
        snapshots = self._task.snapshots
        if snapshots.wants(barrier.checkpoint_id):
            again = self._task.save_oldest()
            copied = snapshots.take(barrier)
            self._task.save_present()
            snapshots.report(copied, Arrival(now_us - barrier.triggered_us, early=again))


class _Limited(ReadSize):
    """Reads no more records than may become roots."""

    __slots__ = ("most",)

    def __init__(self) -> None:
        super().__init__()
        self.most: int | None = None

    def at_most(self, buffer_size: int, pool: OutputPool) -> int:
        records = super().at_most(buffer_size, pool)
        return records if self.most is None else max(1, min(records, self.most))
