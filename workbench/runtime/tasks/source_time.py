"""Event time of what a source task reads: that of its splits, and the watermarks that it sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow as pa

from workbench.durations import LAST_WATERMARK, MAX_TIME, NO_TIME
from workbench.elements import Records
from workbench.operators.contract.base import Json
from workbench.operators.event_time.watermarks import WATERMARK_INTERVAL_US, Marks, WatermarkGenerator
from workbench.plan.watermark_strategy import WatermarkStrategy
from workbench.runtime.exchange.chain import Link
from workbench.runtime.tasks.source_drift import Alignment

_ENDED = ""
"""In a snapshot: the splits that have ended, together."""


class SplitTime:
    """Event time of one split, or of all splits that are parts of one sequence: its progress, and whether it is active.

    Attributes:
        generator: derives it from the records.
        watermark_us: the largest watermark so far; NO_TIME before the first.
        idle: the split does not hold the others back.
        active_us: time of its last activity, by the clock.
    """

    __slots__ = ("active_us", "generator", "idle", "watermark_us")

    def __init__(self, generator: WatermarkGenerator, now_us: int) -> None:
        self.generator = generator
        self.watermark_us = NO_TIME
        self.idle = False
        self.active_us = now_us

    def reach(self, watermark_us: int | None) -> None:
        """Advance event time, unless it was later already."""
        if watermark_us is not None and watermark_us > self.watermark_us:
            self.watermark_us = min(watermark_us, LAST_WATERMARK)


class SourceTime:
    """Event time of one source task.

    Args:
        strategy: how event time is derived from the records; None: not at all.
        schema: of the records.
        root: head of the task's chain, which receives the watermarks.
        now_us: processing time.
        interval_us: between two watermarks, microseconds.

    Attributes:
        splits: the event time of each split.
        idle: no split is active, and the chain knows it.
        told_us: the last watermark that was sent; NO_TIME before the first.
        told_at_us, due_us: when the task has last asked for a watermark to send, and when there may be another one.
        tells_last: the last watermark is sent before the end, because another input may be idle then.
        alignment: its place among sources that wait for each other; None: it waits for none.
    """

    __slots__ = (
        "_ended_us",
        "_interval_us",
        "_root",
        "_schema",
        "_times",
        "alignment",
        "due_us",
        "idle",
        "splits",
        "strategy",
        "tells_last",
        "told_at_us",
        "told_us",
    )

    def __init__(
        self,
        strategy: WatermarkStrategy | None,
        schema: pa.Schema,
        root: Link,
        now_us: int,
        interval_us: int = WATERMARK_INTERVAL_US,
    ) -> None:
        self.strategy = strategy
        self.alignment: Alignment | None = None
        self.splits: dict[str, SplitTime] = {}
        self.idle = False
        self.told_us = NO_TIME
        self.told_at_us = now_us - interval_us
        self.due_us = now_us
        self.tells_last = False
        self._ended_us = NO_TIME  # the furthest of the splits that have ended
        self._interval_us = interval_us
        self._root = root
        self._schema = schema
        self._times: tuple[SplitTime, ...] = ()

    # splits ------------------------------------------------------------------------------------------------------

    def begin(self, now_us: int) -> SplitTime:
        """The event time of a new split."""
        return SplitTime((self.strategy or WatermarkStrategy()).watermarks.create(self._schema), now_us)

    def follow(self, live: Sequence[str], now_us: int, *, shared: bool) -> None:
        """Forget splits that have ended, which hold nothing back any more; and start event time for new ones.

        Args:
            live: the names of the splits that the task reads now.
            now_us: processing time.
            shared: new splits are parts of one sequence, and have one event time.
        """
        if list(self.splits) != list(live):
            self._moved()
            self._end([time for split, time in self.splits.items() if split not in live])
            self.use(_followed(self.splits, live, lambda: self.begin(now_us), shared=shared))

    def use(self, splits: dict[str, SplitTime]) -> None:
        """Derive event time from these splits; several may share theirs."""
        self.splits = splits
        self._times = _distinct(splits)

    def stay_active(self, now_us: int) -> None:
        """Backpressure, a pause and alignment do not count as silence of the source: no split becomes idle because of
        them."""
        for time in self._times:
            time.active_us = now_us

    def snapshot(self, now_us: int) -> dict[str, Json]:
        """By split, the watermark and the generator's state."""
        for time in self._times:
            time.reach(time.generator.ask(now_us))
        states: dict[str, Json] = {}
        for split, time in self.splits.items():
            state = time.generator.snapshot()
            if time.watermark_us != NO_TIME or state is not None:
                states[split] = [time.watermark_us, state]
        if self.tells_last and self._ended_us != NO_TIME:
            states[_ENDED] = [self._ended_us, None]
        return states

    def restore(self, snapshots: Sequence[Mapping[str, tuple[int, Json]]]) -> None:
        """Continue from what a snapshot holds.

        Event time that several splits share continues from the one furthest behind, or from the start when one of them
        has not begun: no record that would have been on time becomes late.
        """
        saved: dict[str, tuple[int, Json]] = {}
        for snapshot in snapshots:
            saved.update(snapshot)
            self._ended_us = max(self._ended_us, snapshot.get(_ENDED, (NO_TIME, None))[0])
        for time in self._times:
            own = [saved.get(split) for split, other in self.splits.items() if other is time]
            begun = [item for item in own if item is not None]
            if begun and len(begun) == len(own):
                watermark_us, state = min(begun, key=lambda item: item[0])
                time.reach(watermark_us)
                if state is not None:
                    time.generator.go_on(state)

    # watermarks --------------------------------------------------------------------------------------------------

    def observe(self, records: Records, time: SplitTime, now_us: int) -> Marks:
        """A split has delivered records; returns the watermarks that they cause."""
        time.active_us = now_us
        time.idle = False
        self._moved()
        if self.idle:
            self._set_idle(False)
        return time.generator.observe(records)

    def tell(self, now_us: int, *, room: bool = True) -> bool:
        """Send the watermark if it has grown, and detect idle splits.

        Args:
            now_us: processing time.
            room: whether the task can send; otherwise no split becomes idle, and the change could not be sent either.

        Returns:
            Whether anything was sent.
        """
        strategy = self.strategy
        assert strategy is not None
        self.told_at_us, self.due_us = now_us, self._moves_us(now_us, strategy.idle_after_us)
        active = False
        idle_after_us = strategy.idle_after_us if room else None
        for time in self._times:
            time.reach(time.generator.ask(now_us))
            if idle_after_us is not None and now_us - time.active_us >= idle_after_us:
                time.idle = True
            active |= not time.idle
        sent = self.send()
        if not active and not self.idle and self._times and room:
            self._set_idle(True)
            sent = True
        return sent

    def send(self) -> bool:
        """Send the minimum over the active splits if it has grown; returns whether it has."""
        speaking = [time.watermark_us for time in self._times if not time.idle]
        if not speaking:
            return False
        watermark_us = min(speaking)
        if self.alignment is not None and self.alignment.asked_for:
            self.alignment.report(max(watermark_us, self.told_us))
        if watermark_us <= self.told_us:
            return False
        self.told_us = watermark_us
        self._root.on_watermark(watermark_us)
        return True

    def end(self) -> None:
        """Everything has been read."""
        if self.idle:
            self._set_idle(False)
        self._end(self._times)
        if self.tells_last and self._ended_us > self.told_us:
            self.told_us = self._ended_us
            self._root.on_watermark(self.told_us)
        if self.alignment is not None:
            self.alignment.leave()
        self._root.on_watermark(MAX_TIME)

    def _end(self, times: Iterable[SplitTime]) -> None:
        """These splits have no more records."""
        for time in times:
            if not time.generator.asks_clock:
                time.reach(time.generator.ask(0))
            self._ended_us = max(self._ended_us, time.watermark_us)

    def reached_us(self, now_us: int) -> int:
        """Event time reached, sent or not; a generator that reads the clock is not asked."""
        speaking = [time for time in self._times if not time.idle]
        for time in speaking:
            if not time.generator.asks_clock:
                time.reach(time.generator.ask(now_us))
        return max(min((time.watermark_us for time in speaking), default=NO_TIME), self.told_us)

    def _moved(self) -> None:
        """Records have come, or splits have ended: there may be a watermark to send."""
        self.due_us = min(self.due_us, self.told_at_us + self._interval_us)

    def _moves_us(self, now_us: int, idle_after_us: int | None) -> int:
        """When event time may move next although no record comes: with the clock, or as a split falls silent."""
        if any(time.generator.asks_clock for time in self._times):
            return now_us + self._interval_us
        if idle_after_us is None:
            return MAX_TIME
        silent_us = min((time.active_us for time in self._times if not time.idle), default=MAX_TIME) + idle_after_us
        return max(silent_us, now_us + self._interval_us)

    def _set_idle(self, idle: bool) -> None:
        self.idle = idle
        if idle and self.alignment is not None:
            self.alignment.leave()
        self._root.on_idle(idle)


def _followed(
    known: Mapping[str, SplitTime], live: Iterable[str], begin: Callable[[], SplitTime], *, shared: bool
) -> dict[str, SplitTime]:
    """The event times of the splits that a source reads now: those that are known, and new ones.

    Args:
        known: those of before; what is not read any more holds nothing back.
        live: the names of the splits.
        begin: makes that of a new split.
        shared: new splits are parts of one sequence, and have one event time.
    """
    one: SplitTime | None = None
    times: dict[str, SplitTime] = {}
    for split in live:
        time = known.get(split)
        if time is None:
            time = one or begin()
            if shared:
                one = time
        times[split] = time
    return times


def _distinct(times: Mapping[str, SplitTime]) -> tuple[SplitTime, ...]:
    """Each event time once, in the order of its first split."""
    return tuple({id(time): time for time in times.values()}.values())
