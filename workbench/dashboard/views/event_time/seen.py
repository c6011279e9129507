"""What the frames so far tell of event time: sampled records, the watermark, and windows from opening to firing."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from workbench.dashboard.charts.sources import whole_of
from workbench.durations import MAX_TIME, NO_TIME
from workbench.telemetry.event_time.frames import EventTimesFrame, FiredFrame, PointFrame
from workbench.telemetry.frames import Frame, TaskFrame

SHOWN_US = 120_000_000
"""Processing time that is remembered."""
POINTS_MOST, BOXES_MOST = 1_500, 40
_LIVE_WITHIN_US = 30 * 86_400_000_000


@dataclass(slots=True)
class Box:
    """A window of one operator, whichever subtasks and keys it has.

    Attributes:
        opened_us: processing time of the first frame that showed it.
        groups: keys that it has now, as the subtasks count them.
        fired: its firings.
    """

    operator: str
    start_us: int
    end_us: int
    opened_us: int
    groups: int = 0
    fired: list[FiredFrame] = field(default_factory=list)
    is_open: bool = True


@dataclass(slots=True)
class Seen:
    """Adds up frames.

    Attributes:
        sequence: of the last frame.
        points: sampled records, oldest first.
        watermark, ideal: (processing time, event time) of each frame, in microseconds.
        boxes: by operator, start and end.
    """

    sequence: int = -1
    points: deque[PointFrame] = field(default_factory=lambda: deque(maxlen=POINTS_MOST))
    watermark: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=1_300))
    ideal: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=1_300))
    newest_us: int | None = None
    boxes: dict[tuple[str, int, int], Box] = field(default_factory=dict)

    def add(self, frame: Frame) -> None:
        """Add the frame that follows."""
        self.sequence = frame.sequence
        mark = watermark(frame)
        if mark is not None and mark < MAX_TIME:
            self.watermark.append((frame.time_us, mark))
        open_now: dict[tuple[str, int, int], int] = {}
        for seen in observed(frame):
            self.points.extend(seen.points)
            for window in seen.open:
                place = (seen.operator, window.start_us, window.end_us)
                open_now[place] = open_now.get(place, 0) + window.groups
            for fired in seen.fired:
                box = self._box((seen.operator, fired.start_us, fired.end_us), fired.time_us)
                box.fired.append(fired)
        for place, groups in open_now.items():
            self._box(place, frame.time_us).groups = groups
        for place, box in self.boxes.items():
            box.is_open = place in open_now
        read = [point.event_time_us for seen in observed(frame) for point in seen.points if point.fate == "in time"]
        if read:
            self.newest_us = max(read) if self.newest_us is None else max(self.newest_us, *read)
        place_us = self._now_in_event_time(frame)
        if place_us is not None:
            self.ideal.append((frame.time_us, place_us))
        self._forget(frame.time_us - SHOWN_US)

    def _box(self, place: tuple[str, int, int], time_us: int) -> Box:
        box = self.boxes.get(place)
        if box is None:
            box = self.boxes[place] = Box(*place, opened_us=time_us)
        return box

    def _now_in_event_time(self, frame: Frame) -> int | None:
        """Where event time would be without any delay; None where nothing tells that."""
        if frame.replay is not None:
            return frame.replay.position_us
        if self.newest_us is not None and abs(frame.time_us - self.newest_us) < _LIVE_WITHIN_US:
            return frame.time_us
        return None

    def _forget(self, before_us: int) -> None:
        for line in (self.watermark, self.ideal):
            while line and line[0][0] < before_us:
                line.popleft()
        while self.points and self.points[0].time_us < before_us:
            self.points.popleft()
        over = [  # sessions that have become one have never fired
            place for place, box in self.boxes.items()
            if not box.is_open and (not box.fired or box.fired[-1].time_us < before_us)
        ]  # fmt: skip
        for place in over:
            del self.boxes[place]
        for place in list(self.boxes)[: max(0, len(self.boxes) - BOXES_MOST)]:
            del self.boxes[place]


def observed(frame: Frame) -> list[EventTimesFrame]:
    """What the operators of all tasks have seen."""
    return [seen for task in frame.tasks for seen in task.event_times]


def _marks(tasks: list[TaskFrame], name: str) -> list[int]:
    marks = [MAX_TIME if task.state == "FINISHED" else whole_of(task.metrics, name) for task in tasks]
    known = [mark for mark in marks if mark is not None and mark != NO_TIME]
    return known if len(known) == len(marks) else []


def windowed(frame: Frame) -> list[TaskFrame]:
    """The tasks with windows, as far as they have seen records."""
    return [task for task in frame.tasks if any(not seen.examined for seen in task.event_times)]


def watermark(frame: Frame) -> int | None:
    """The lowest watermark of the tasks with windows, without windows of those that tell event time; None before it."""
    tasks = windowed(frame)
    if tasks:
        return min(_marks(tasks, "currentInputWatermark"), default=None)
    telling = [task for task in frame.tasks if any(seen.examined for seen in task.event_times)]
    return min(_marks(telling, "currentOutputWatermark"), default=None)
