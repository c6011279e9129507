"""The pace of a replay: the map between processing time and the arrival times of the history."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from workbench.durations import MAX_TIME

_FAR_US = 2**62


@dataclass(frozen=True, slots=True)
class _Line:
    """From processing time `now_us` and position `history_us` on, the replay advances with `speed`, or is paused."""

    speed: float
    history_us: int
    now_us: int
    paused: bool
    generation: int
    sought_us: int


class Pace:
    """The pace of one replay, shared by all its readers; any thread may call it.

    Everything that a command changes is one immutable value that is replaced at once, so readers never see half a
    change and need no lock. Commands themselves come from one thread at a time.

    Args:
        speed: seconds of history per second; ``math.inf`` for no pacing (everything is due, and the position is that of
            the last record read).
        start_us: arrival time at which the replay begins, us.
        now_us: processing time at which it begins, us.
        end_us: arrival time of the last record; the position stops there.
        channels: number of channels whose readers report their progress.

    Example:
        >>> pace = Pace(600.0, start_us=0, now_us=1_000_000)
        >>> pace.position_us(2_000_000)
        600000000
        >>> pace.due_at(1_200_000_000)
        3000000
    """

    __slots__ = ("_end_us", "_line", "_reached_us")

    def __init__(
        self, speed: float, start_us: int, *, now_us: int = 0, end_us: int = MAX_TIME, channels: int = 1
    ) -> None:
        self._line = _Line(speed, start_us, now_us, paused=False, generation=0, sought_us=start_us)
        self._end_us = end_us
        # One slot for each channel, written only by its reader.
        self._reached_us = [start_us] * channels

    @property
    def speed(self) -> float:
        """Seconds of history per second, kept while paused."""
        return self._line.speed

    @property
    def paused(self) -> bool:
        """Whether the replay is paused: nothing is due."""
        return self._line.paused

    @property
    def generation(self) -> int:
        """Grows with every seek."""
        return self._line.generation

    def sought(self) -> tuple[int, int]:
        """The generation, and the arrival time of its seek; a reader that sees a new generation moves there."""
        line = self._line
        return line.generation, line.sought_us

    def position_us(self, now_us: int) -> int:
        """The position at `now_us`, as an arrival time; records up to it are due unless paused."""
        return self._position(self._line, now_us)

    def limit_us(self, now_us: int) -> int | None:
        """The latest arrival that is due at `now_us`; None when paused."""
        line = self._line
        if line.paused:
            return None
        return MAX_TIME if math.isinf(line.speed) else self._position(line, now_us)

    def due_at(self, arrival_us: int) -> int | None:
        """The processing time at which a record that arrived at `arrival_us` is due; None when paused."""
        line = self._line
        if line.paused:
            return None
        gap = arrival_us - line.history_us
        if math.isinf(line.speed) or gap <= 0:
            return line.now_us
        wait = gap / line.speed
        return line.now_us + (math.ceil(wait) if wait < _FAR_US else _FAR_US)

    def due_between(self, first_us: int, last_us: int) -> tuple[int, int] | None:
        """The processing times at which records with these arrival times were due; None where nothing is paced."""
        line = self._line
        if line.paused or math.isinf(line.speed):
            return None
        gaps = (max(0, arrival_us - line.history_us) for arrival_us in (first_us, last_us))
        first, last = (line.now_us + int(gap / line.speed) for gap in gaps)
        return first, last

    def set_speed(self, speed: float, now_us: int) -> None:
        """Continue from the present position with another speed; a paused replay stays paused."""
        line = self._line
        self._line = replace(line, speed=speed, history_us=self._position(line, now_us), now_us=now_us)

    def pause(self, now_us: int) -> None:
        """Pause: nothing is due until ``resume``."""
        line = self._line
        self._line = replace(line, paused=True, history_us=self._position(line, now_us), now_us=now_us)

    def resume(self, now_us: int) -> None:
        """Continue from the position of the pause."""
        line = self._line
        if line.paused:
            self._line = replace(line, paused=False, history_us=self._position(line, now_us), now_us=now_us)

    def seek(self, arrival_us: int, now_us: int) -> None:
        """Jump to the first records that arrived at or after `arrival_us`, forwards or backwards."""
        line = self._line
        self._reached_us = [arrival_us] * len(self._reached_us)
        self._line = replace(
            line, history_us=arrival_us, now_us=now_us, generation=line.generation + 1, sought_us=arrival_us
        )

    def restart(self, position_us: int, now_us: int) -> None:
        """Continue from `position_us` after a recovery; speed and pause do not change."""
        self._reached_us = [position_us] * len(self._reached_us)
        self._line = replace(self._line, history_us=position_us, now_us=now_us)

    def reached(self, channel: int, arrival_us: int) -> None:
        """The reader of `channel` has read up to `arrival_us`."""
        self._reached_us[channel] = arrival_us

    def _position(self, line: _Line, now_us: int) -> int:
        if math.isinf(line.speed):
            return max(self._reached_us)
        if line.paused:
            return line.history_us
        passed = (now_us - line.now_us) * line.speed
        return min(line.history_us + (int(passed) if passed < _FAR_US else _FAR_US), self._end_us)
