"""One display of a job's dashboard: its view, its connection to the page, and the rate of its frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from time import monotonic
from typing import Any, Protocol

from workbench.api.job.endings import mark_told
from workbench.dashboard.contract.job_port import OVER, Watched
from workbench.dashboard.page.pace import Pace
from workbench.dashboard.shown.view import View
from workbench.telemetry.frames import Frame

REST_S = 1.5
"""A page that has been open for this long gets the cards that it does not show yet, one at a time."""
BETWEEN_S = 0.3
"""The time between two of them, in which the page shows frames."""


class FrameLine(Protocol):
    """The connection to one page.

    Attributes:
        lock: held while the view's models are read or changed.
        is_open: whether the page listens.
    """

    @property
    def lock(self) -> AbstractContextManager[Any]: ...

    @property
    def is_open(self) -> bool: ...

    def push(self, change: Callable[[], None]) -> int:
        """Apply a change to the models and send all changes as one message; returns the number of bytes."""

    def close(self) -> None:
        """Drop the connection to the page."""


class Display:
    """A view that is kept up to date on one page.

    Args:
        job: that is shown.
        view: its models.
        line: to the page.
    """

    def __init__(self, job: Watched, view: View, line: FrameLine) -> None:
        self.job, self.view, self.line = job, view, line
        self.is_done = self.is_closed = False
        self.pace = Pace(monotonic())
        self._fill_at: float | None = None
        self._sequence = -1
        view.pulse.echo.on_change("data", self._answered)

    def is_due(self, now: float) -> bool:
        """Whether the page can take a frame."""
        return self.line.is_open and self.pace.is_due(now)

    @property
    def is_finished(self) -> bool:
        """Whether the display is final: the last frame of the job is shown, no request is pending, and no other job
        replaces it. A job that is stepped can go back from its end.
        """
        easel = self.view.easel
        return self.is_done and easel.runs_live() and not self.view.missing and easel.background.are_settled

    def show(self, now: float) -> None:
        """Send the newest frame, unless it has already been sent, and a heartbeat."""
        frame = self.job.recorder.latest()
        self.is_done = frame is not None and frame.state in OVER
        self.pace.sent(self.view.pulse.count + 1, now)
        self.line.push(lambda: self._change(frame))
        if frame is not None and frame.state == "FAILED":
            mark_told(self.job)

    def fill(self, now: float) -> None:
        """Make cards that are missing and send them: at once those that the page shows; the others one by one when it
        has had time to show these, so that nobody who chooses one later has to wait for it.
        """
        view = self.view
        if not self.line.is_open or not view.missing:
            return
        if self._fill_at is None:
            self._fill_at = now + REST_S
        with self.line.lock:
            names = view.wanted or (view.missing[:1] if now >= self._fill_at else [])
        if names:
            self.line.push(lambda: view.make(names))
            self._fill_at = max(self._fill_at, now + BETWEEN_S)

    def close(self) -> None:
        """Drop the connection to the page, which keeps what it shows; nothing feeds it again."""
        self.is_closed = True
        self.line.close()

    def turn_to(self, job: Watched) -> None:
        """Show another job from now on."""
        with self.line.lock:
            self.job = self.view.easel.job = job
            self._sequence = -1
            self.is_done = False

    def _change(self, frame: Frame | None) -> None:
        if frame is not None and frame.sequence != self._sequence:
            self.view.update(frame)
            self._sequence = frame.sequence
        else:
            self.view.easel.background.settle()
        self.view.pulse.beat(over=self.is_done)

    def _answered(self, _attribute: str, _old: object, new: Mapping[str, Sequence[float]]) -> None:
        self.pace.answered(int(new["beat"][0]), monotonic(), new["painting_ms"][0] / 1e3)
