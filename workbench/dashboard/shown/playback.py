"""A recording with the views of a running job, and a slider over its time."""

from __future__ import annotations

from typing import Any, Protocol

from bokeh.models import Slider

from workbench.dashboard.charts.static import sheet, ticks
from workbench.dashboard.contract.view_table import recorded_views
from workbench.dashboard.page.transport import Line
from workbench.dashboard.shown.bundle import Shown
from workbench.dashboard.shown.view import View
from workbench.telemetry.frames import Frame


class Recorded(Protocol):
    """The part of a recording that is shown."""

    name: str
    frames: tuple[Frame, ...]


class PastJob:
    """Answers the views' queries of a job from a recording.

    Attributes:
        name: the job's.
        live: false; it does not advance by itself, and is not queried.
        recording: the source of the answers.
    """

    live = False

    def __init__(self, recording: Recorded) -> None:
        self.name = recording.name
        self.recorder = self
        self.recording = recording
        self._frames = recording.frames

    @property
    def state(self) -> str:
        """The state at the end of the recording."""
        return self._frames[-1].state

    def latest(self) -> Frame:
        """The last frame."""
        return self._frames[-1]

    def frames(self, after: int = -1) -> tuple[Frame, ...]:
        """All of them, or those with a higher sequence number."""
        return tuple(frame for frame in self._frames if frame.sequence > after)


def moment_slider(moments: tuple[Frame, ...], what: str) -> Slider:
    """A slider over these moments, at the last one; it tells how long the job had been running, as the header does."""
    since_us = [frame.time_us - frame.started_us for frame in moments]
    running_ms = [frame.metrics.get("runningTime") for frame in moments]
    seconds = [us / 1e6 if ms is None else float(ms) / 1e3 for us, ms in zip(since_us, running_ms, strict=True)]
    words = [f"{seconds[place]:,.1f} s, {frame.state.lower()}" for place, frame in enumerate(moments)]
    return Slider(
        start=0, end=max(1, len(moments) - 1), step=1, value=len(moments) - 1, title=what, margin=0,
        sizing_mode="stretch_width", disabled=len(moments) < 2, stylesheets=[sheet("slider", "moment_slider")],
        format=ticks("wordAt", words=words),
        html_attributes={"aria-label": what},
    )  # fmt: skip


class PlaybackView(View):
    """A view of a recording.

    Args:
        recording: what is shown.
        moments: those of its frames that the slider offers; None: all.
        hears, scene: as for `View`; the slider is left as it is.

    Attributes:
        slider: over the moments.
    """

    def __init__(
        self, recording: Recorded, moments: tuple[Frame, ...] | None = None, *, hears: bool = True, scene: str = ""
    ) -> None:
        past: Any = PastJob(recording)
        views = recorded_views(recording.frames[-1])
        super().__init__(past, recording.frames, views=views, hears=hears, scene=scene)
        self.moments = recording.frames if moments is None else moments
        self.slider = moment_slider(self.moments, "Moment of the run")
        grid = self.root.children[0]
        grid.children = [*grid.children[:2], self.slider, *grid.children[2:]]
        self.slider.css_classes = ["wb-card"]
        self.inputs.append(self.slider)
        self.slider.on_change("value", lambda attribute, old, new: self.show_moment(int(new)))
        self.pulse.beat(over=True)

    def show_moment(self, place: int) -> None:
        """Draw the moment of that number."""
        self._show(self.moments[place])


class Playback(Shown):
    """A recording as an object that a notebook shows.

    Args:
        recording: the recording to show.
        carrier: as for `Shown`.

    Example:
        ``wb.Recording.open("run.recording").dashboard()`` at the end of a cell.
    """

    without_widgets = "No widgets are shown here: recording.report('run.html') writes a page that needs none."

    def __init__(self, recording: Recorded, carrier: str | None = None) -> None:
        super().__init__(carrier)
        self._recording = recording

    def __repr__(self) -> str:
        return f"<Playback of job {self._recording.name!r}: {len(self._recording.frames)} frames>"

    def view(self) -> PlaybackView:
        """A fresh set of figures at the last moment."""
        return PlaybackView(self._recording)

    def _connect(self, comms: Any = None) -> Line:
        view = self.view()
        line = Line(view.document(), view.script, view.inputs, lambda: view.pulse.beat(over=True), comms)
        self._held.append(line)
        return line
