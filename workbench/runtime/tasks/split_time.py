"""Event time of what a source reads, split by split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from workbench.durations import LAST_WATERMARK, NO_TIME
from workbench.operators.contract.base import Json
from workbench.operators.event_time.watermarks import WatermarkGenerator


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


def followed(
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


def distinct(times: Mapping[str, SplitTime]) -> tuple[SplitTime, ...]:
    """Each event time once, in the order of its first split."""
    return tuple({id(time): time for time in times.values()}.values())


def saved_times(times: Mapping[str, SplitTime]) -> dict[str, Json]:
    """What a snapshot holds of them: by split, the watermark and the generator's state."""
    states: dict[str, Json] = {}
    for split, time in times.items():
        state = time.generator.snapshot()
        if time.watermark_us != NO_TIME or state is not None:
            states[split] = [time.watermark_us, state]
    return states


def restore_times(times: Mapping[str, SplitTime], saved: Mapping[str, tuple[int, Json]]) -> None:
    """Continue from what a snapshot holds.

    Event time that several splits share continues from the one furthest behind, or from the start when one of them has
    not begun: no record that would have been on time becomes late.
    """
    for time in distinct(times):
        own = [saved.get(split) for split, other in times.items() if other is time]
        begun = [item for item in own if item is not None]
        if begun and len(begun) == len(own):
            watermark_us, state = min(begun, key=lambda item: item[0])
            time.reach(watermark_us)
            if state is not None:
                time.generator.go_on(state)
