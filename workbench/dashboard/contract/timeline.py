"""The history of a replay as a timeline on which a user can jump to another time."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any

from bokeh.models import Slider

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import column
from workbench.dashboard.charts.static import sheet, ticks
from workbench.dashboard.contract.actions import Answer
from workbench.dashboard.contract.released import follow
from workbench.dashboard.contract.steps import PATIENCE_S
from workbench.telemetry.frames import ReplayFrame


class Timeline:
    """A slider over the arrival times of the history that follows the replay; when it is released, the job seeks.

    Args:
        seek: called with the time as text; True if the job accepted it.
        answer: the place of the job's answer.
    """

    def __init__(self, seek: Callable[[str], bool], answer: Answer) -> None:
        self._seek = seek
        self.answer = answer
        self._held_at = 0.0
        self._following = False
        self._place: float = 0
        self.slider = Slider(
            start=0, end=1, step=1, value=0, title="History: seek", sizing_mode="stretch_width", margin=0,
            format=ticks("instant"), stylesheets=[sheet("slider")],
            html_attributes={"role": "group", "aria-label": "Place in the history"},
        )  # fmt: skip
        self.slider.on_change("value", self._touched)
        self.slider.on_change("value_throttled", self._let_go)
        self.model: Any = column([self.slider, answer.div], visible=False)

    def update(self, replay: ReplayFrame | None, over: bool) -> None:
        """Show the position of the replay."""
        self.answer.update()
        if self.model.visible != (replay is not None):
            self.model.visible = replay is not None
        if replay is None:
            return
        self.slider.disabled = over
        start, end = replay.start_us // 1_000_000, max(replay.start_us // 1_000_000 + 1, replay.end_us // 1_000_000)
        if (self.slider.start, self.slider.end) != (start, end):
            self.slider.update(start=start, end=end)
        untold = self.slider.value != self._place  # a user has moved it, and the callback has not run yet
        if not untold and monotonic() - self._held_at > PATIENCE_S:
            self._following = True
            try:
                self._place = max(start, min(end, replay.position_us // 1_000_000))
                follow(self.slider, self._place)
            finally:
                self._following = False

    def _touched(self, _attribute: str, _old: object, new: float) -> None:
        self._place = new
        if not self._following:
            self._held_at = monotonic()

    def _let_go(self, _attribute: str, _old: object, new: float) -> None:
        if self._following:
            return
        self._held_at = monotonic()
        if not self._seek(wording.instant(int(new) * 1_000_000).replace(" ", "T")):
            self._held_at = 0.0
