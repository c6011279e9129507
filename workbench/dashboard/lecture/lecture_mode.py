"""What a page is told about lecture mode: the scenes that it can show, and the caption of the one that it shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from bokeh.models import ColumnDataSource

from workbench.dashboard.charts.badges import BADGES
from workbench.dashboard.charts.theme import COLOURS, CONTRAST
from workbench.dashboard.contract.part import Part
from workbench.dashboard.lecture.scene_table import scenes_of
from workbench.telemetry.frames import Frame

REST_US = 700_000
"""The shortest time between two captions: nobody reads one that changes more often."""


def lecture_share(parts: Mapping[str, Part], acts: bool) -> dict[str, Any]:
    """What these parts give to the page's script: ``asides``, what lecture mode leaves out, and ``keys``, none where
    nobody acts on the page.
    """
    keys = [[key, model] for part in parts.values() for key, model in part.keys.items()]
    return {"asides": [model for part in parts.values() for model in part.asides], "keys": keys if acts else []}


class LectureMode:
    """Lecture mode of one view.

    Args:
        name: of the job.
        views: the names of those that the page has.
        start: the scene that is shown at once; empty: the page begins as a dashboard.

    Attributes:
        chosen: the page writes there which ``scene`` it shows, empty for none.
        said: the ``state`` of the job, and its ``news``, paragraphs about what has happened.
        captions: while a scene is shown, the ``caption`` of every ``scene``: the page needs that of the next one before
            the kernel, which may be busy, hears that it is shown.
    """

    def __init__(self, name: str, views: Collection[str], start: str = "") -> None:
        self._name = name
        self._scenes = {scene.name: scene for scene in scenes_of(views)}
        self.chosen = ColumnDataSource({"scene": [start if start in self._scenes else ""]})
        self.said = ColumnDataSource({"state": [""], "news": [""]})
        self.captions = ColumnDataSource({"scene": [], "caption": []})
        self._frame: Frame | None = None
        self._news = ""
        self._told: Frame | None = None
        self.chosen.on_change("data", lambda _attribute, _old, _new: self._tell())

    @property
    def needs(self) -> frozenset[str]:
        """The views that the scene shows, with those of its controls; none without a scene."""
        scene = self._scenes.get(str(self.chosen.data["scene"][0]))
        return frozenset() if scene is None else frozenset((*scene.views, *(("controls",) if scene.controls else ())))

    def update(self, frame: Frame, news: str = "") -> None:
        """Write the captions, if a scene is shown, and the news, which are HTML."""
        self._frame, self._news = frame, news
        self._tell()

    def arguments(self, acts: bool) -> dict[str, Any]:
        """For the page's script; where nobody acts on the page it has no lecture mode."""
        scenes = [[one.name, one.title, list(one.views), list(one.controls)] for one in self._scenes.values()]
        stronger = [list(pair) for name in CONTRAST for pair in zip(COLOURS[name], CONTRAST[name], strict=True)]
        return {
            "scenes": scenes if acts else [], "chosen": self.chosen, "said": self.said,
            "captions": self.captions, "job": self._name, "contrast": stronger,
        }  # fmt: skip

    def _tell(self) -> None:
        frame = self._frame
        if str(self.chosen.data["scene"][0]) not in self._scenes:
            self._told = None
            _write(self.captions, {"scene": [], "caption": []})
        elif frame is not None and not self._is_fresh(frame):
            self._told = frame
            _, sign = BADGES[frame.state]
            state = f"{sign} {'PAUSED' if frame.paused and frame.state == 'RUNNING' else frame.state}"
            told = [scene.load()(frame) for scene in self._scenes.values()]
            _write(self.captions, {"scene": list(self._scenes), "caption": told})
            _write(self.said, {"state": [state], "news": [self._news]})

    def _is_fresh(self, frame: Frame) -> bool:
        """Whether what is written was written a moment ago."""
        last = self._told
        if last is None:
            return False
        same = (last.state, last.paused, last.settings) == (frame.state, frame.paused, frame.settings)
        return same and 0 <= frame.time_us - last.time_us < REST_US and last.started_us == frame.started_us


def _write(source: ColumnDataSource, data: dict[str, list[str]]) -> None:
    if source.data != data:
        source.data = data
