"""One thread in the kernel that carries the newest frame of every shown job to each of its open displays."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from threading import Event, Lock, Thread
from time import monotonic, perf_counter

from workbench.dashboard.job_port import OVER, Watched
from workbench.dashboard.transport import Line
from workbench.dashboard.view import View
from workbench.telemetry.frames import Frame

INTERVAL_S = 0.15
BUSY_SHARE = 0.1
"""The pump waits so long between frames that drawing takes at most this share of the time."""

SHARE_OF_PAGE = 0.65
"""A page that is slow to paint gets its next frame so late that painting takes at most this share of its time."""

TRIP_S = 0.06
"""What an answer takes on its way, for which the page is not to blame: Panel gathers a page's changes for 50 ms."""

PATIENCE_S = 1.0
"""An answer is not waited for longer: it may be stuck behind a busy cell."""

SILENT_S = 20.0
"""A page that has not answered for so long gets a frame only every `SLOW_S`: it may be gone."""

SLOW_S = 5.0
LOST_S = 600.0
"""A page that has not answered for so long is forgotten."""

_log = logging.getLogger(__name__)


class Display:
    """One display of a job's dashboard: its view, its line to the page, and when the page was last heard of."""

    def __init__(self, job: Watched, view: View) -> None:
        self.job, self.view = job, view
        self.line = Line(view.document(), view.script, view.inputs)
        self.is_done = False
        self._heard_at = self._shown_at = monotonic()
        self._answered_beat = self._sequence = -1
        self._painting_s = 0.0
        view.pulse.echo.on_change("data", self._answered)

    def is_lost(self, now: float) -> bool:
        """Whether the page has been silent for too long."""
        return now - self._heard_at > LOST_S

    def is_due(self, now: float) -> bool:
        """Whether the page can take a frame: it is open and has painted the last one, or was left alone long enough."""
        if not self.line.is_open:
            return False
        if now - self._heard_at > SILENT_S:
            pause = SLOW_S
        elif self._answered_beat < self.view.pulse.count:
            pause = PATIENCE_S
        else:
            pause = min(PATIENCE_S, self._painting_s / SHARE_OF_PAGE)
        return now - self._shown_at >= pause

    def show(self, now: float) -> None:
        """Send the newest frame, unless it was sent before, and the sign of life."""
        frame = self.job.recorder.latest()
        self.is_done = frame is not None and frame.state in OVER
        self._shown_at = now
        self.line.push(lambda: self._change(frame))

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
        self.view.pulse.beat(over=self.is_done)

    def _answered(self, _attribute: str, _old: object, new: Mapping[str, Sequence[int]]) -> None:
        self._heard_at = monotonic()
        self._answered_beat = new["beat"][0]
        if self._answered_beat == self.view.pulse.count:
            self._painting_s = max(0.0, self._heard_at - self._shown_at - TRIP_S)


class Pump:
    """Feeds displays for as long as there are any; one whose job is over is let go once it shows the last frame.

    Args:
        interval_s: shortest time between two frames.
    """

    def __init__(self, interval_s: float = INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._displays: list[Display] = []
        self._lock = Lock()
        self._thread: Thread | None = None
        self._wake = Event()

    @property
    def displays(self) -> tuple[Display, ...]:
        """The displays that are fed."""
        with self._lock:
            return tuple(self._displays)

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        with self._lock:
            return self._thread is not None

    def add(self, display: Display) -> None:
        """Feed a display from now on."""
        with self._lock:
            if display not in self._displays:
                self._displays.append(display)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="dashboard pump", daemon=True)
                self._thread.start()

    def remove(self, display: Display) -> None:
        """Feed a display no longer; without any left the thread ends."""
        with self._lock:
            if display in self._displays:
                self._displays.remove(display)
        self._wake.set()

    def _run(self) -> None:
        while self._has_work():
            began = perf_counter()
            self._round(monotonic())
            took = perf_counter() - began
            self._wake.wait(max(self._interval_s - took, took / BUSY_SHARE - took, 0.01))
            self._wake.clear()

    def _has_work(self) -> bool:
        """Whether to go on; where not, the thread is given up under the same lock, so no display is left unfed."""
        with self._lock:
            if not self._displays:
                self._thread = None
            return self._thread is not None

    def _round(self, now: float) -> None:
        for display in self.displays:
            if display.is_lost(now):
                self._drop(display)
            elif display.is_due(now):
                self._feed(display, now)

    def _feed(self, display: Display, now: float) -> None:
        """A display that breaks must stop neither the others nor the job: it is dropped, and the log says why."""
        try:
            display.show(now)
        except Exception:  # noqa: BLE001 - whatever broke, the pump goes on
            _log.exception("a display of the dashboard of %s failed and is closed", display.job.name)
            self._drop(display)
        else:
            if not display.view.easel.errands.is_running("restore") and display.is_done:
                self.remove(display)

    def _drop(self, display: Display) -> None:
        self.remove(display)
        display.line.close()
