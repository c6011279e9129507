"""The part of the dashboard below the graph: a row of buttons, and the views that the pressed one shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource

from workbench.dashboard.charts.html import column
from workbench.dashboard.charts.sources import refresh, whole_of
from workbench.dashboard.charts.tabs import ALL, button_group
from workbench.dashboard.contract.view_table import VIEWS, ViewSpec
from workbench.durations import MAX_TIME, NO_TIME
from workbench.telemetry.frames import Frame

NOW = "Now"
CALM = ("CREATED", "INITIALIZING", "RUNNING", "FINISHED", "CANCELED")
"""States in which nothing has gone wrong."""


def matters(frame: Frame | None, names: Sequence[str]) -> list[str]:
    """The views, out of `names`, that matter now: latency, event time or else the architecture or the buffers, and what
    comes out, or once something has failed the events.

    They change with a failure only, so that the page stays as it is while somebody looks at it.
    """
    failed = frame is not None and (frame.state not in CALM or bool(frame.metrics.get("numRestarts")))
    has_rows = frame is None or bool(frame.tables)
    third = "events" if failed else "sink" if has_rows and "sink" in names else "buffers"
    own = next((name for name in names if VIEWS[name].architecture), "buffers")
    second = own if frame is not None and _is_without_event_time(frame) else "watermarks"
    return [name for name in names if name in ("latency", second, third)]


def _is_without_event_time(frame: Frame) -> bool:
    """Whether it reads records, of which none has an event time."""
    reads = any(task.metrics.get("numRecordsIn") for task in frame.tasks)
    marks = {whole_of(task.metrics, "currentOutputWatermark") for task in frame.tasks}
    return reads and not marks - {None, NO_TIME, MAX_TIME} and not any(task.event_times for task in frame.tasks)


class Stage:
    """The buttons and the cards: those that matter now, one of them, or all.

    The page does it alone, without a kernel, and remembers by the job's name what was chosen.

    Args:
        job: its name.
        views: those on the stage.
        cards: the model of each, by name.

    Attributes:
        models: the buttons and the cards.
        names: of the views on the stage.
        script: what the page's script needs to show them.
    """

    def __init__(self, job: str, views: Sequence[ViewSpec], cards: Mapping[str, Any]) -> None:
        self.names = [view.name for view in views]
        self._now = ColumnDataSource({"name": matters(None, self.names)})
        self.buttons = button_group("Views", [NOW, *(view.short or view.title for view in views), ALL], 0)
        self.buttons.name = "views"
        place = column([cards[name] for name in self.names], "stage", css_classes=["wb-stage", "wb-now"])
        self._cards = cards
        self.models = [self.buttons, place]
        self.script = [self.buttons, place, self._now, self.names, job]
        self._show()

    def update(self, frame: Frame) -> None:
        """Follow what matters now."""
        if refresh(self._now, {"name": matters(frame, self.names)}):
            self._show()

    def _show(self) -> None:
        """What a page shows before its script runs."""
        for name in self.names:
            self._cards[name].visible = name in self._now.data["name"]
