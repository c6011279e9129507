"""Event time against processing time as a part of the dashboard, with lateness and disorder beside it."""

from __future__ import annotations

from workbench.dashboard.charts.html import column, none, row, scrolled, written
from workbench.dashboard.charts.wording import html_text
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.event_time import lateness
from workbench.dashboard.views.event_time.plane import KEY, Plane
from workbench.dashboard.views.event_time.seen import Seen, observed
from workbench.telemetry.frames import Frame

NO_EVENT_TIME = (
    "This job has no event time: name the event-time column at the source (event_time=...), or assign one with"
    " assign_timestamps, and the records, the watermark and the windows are drawn here."
)


class EventTimePart(Part):
    """Sentences, the plane of both times, and a histogram of disorder."""

    hint = "UTC; sampled records"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._words = easel.texts.piece("What event time does now", "holders")
        self._plane = Plane(easel.paint, 420 if easel.alone else 300)
        self._disorder = easel.texts.piece("How far out of order records arrived", "watermarks")
        self.seen = Seen()
        drawing = column([written(KEY, "table"), self._plane.figure])
        self.models = [self._words.div, row([drawing], "event_plane"), scrolled(self._disorder.div, 260)]

    def update(self, frame: Frame) -> None:
        self._follow(frame)
        if not observed(frame) and not self.seen.points:
            read = any(task.metrics.get("numRecordsIn") for task in frame.tasks)
            self._words.write(none(html_text(NO_EVENT_TIME if read else "No record has been read.")))
            return
        told = [*lateness.captions(frame, self.seen), f"{lateness.shares(frame, self.seen)}."]
        self._words.write("".join(f"<p>{sentence}</p>" for sentence in told))
        self._plane.show(self.seen, frame.time_us)
        self._plane.annotate(frame)
        self._disorder.write(lateness.html(frame))

    def _follow(self, frame: Frame) -> None:
        """Add the frames since the last one shown; a recording may go back."""
        if frame.sequence < self.seen.sequence:
            self.seen = Seen()
        for other in self.easel.job.recorder.frames(self.seen.sequence):
            if other.sequence < frame.sequence:
                self.seen.add(other)
        if frame.sequence > self.seen.sequence:
            self.seen.add(frame)
