"""What a page runs once it shows a view: it writes texts, follows the theme and answers the kernel's pulse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS, Plot, Slider

from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.static import called, script
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.page.pace import ANSWER_S


class Pulse:
    """A sign of life from the kernel, and the page's answer to it.

    Attributes:
        source: columns ``beat`` (a counter) and ``live`` (1 while more is to come).
        echo: the page sets it to the beat whose frame it has painted (or, where it is hidden and paints nothing, seen),
            with the milliseconds that one took, on average since it told the kernel last.
        seen: the page sets its column ``part`` to the names of the parts that are on the screen.
        count: the last beat.
    """

    def __init__(self) -> None:
        self.source = ColumnDataSource({"beat": [0], "live": [1]})
        self.echo = ColumnDataSource({"beat": [0], "painting_ms": [0]})
        self.seen = ColumnDataSource({"part": []})
        self.count = 0

    def beat(self, over: bool) -> None:
        """Tell the page that the kernel is there, and whether more is to come."""
        self.count += 1
        self.source.data = {"beat": [self.count], "live": [0 if over else 1]}


def page_script(
    root: Any,
    pulse: Pulse,
    texts: Texts,
    paint: Paint,
    cards: Mapping[str, Any],
    stage: Sequence[Any] | None,
    lecture: Mapping[str, Any],
) -> CustomJS:
    """What runs when the document is ready. `root` must refer to it, for example by its tags.

    Args:
        cards: the model that holds each part, by the part's name.
        stage: what chooses between them; None: nothing.
        lecture: what the page is told about lecture mode.
    """
    choices = {name: choice.source for name, choice in texts.choices.items()}
    pieces = [[name, div, choices.get(name)] for name, div in texts.divs.items()]
    args = {
        "root": root, "pulse": pulse.source, "echo": pulse.echo, "texts": texts.source, "pieces": pieces,
        "sliders": list(root.select({"type": Slider})), "painted": paint.painted, "seen": pulse.seen,
        "answer_ms": 1e3 * ANSWER_S, "stage": stage,
        "cards": [[name, model, list(model.select({"type": Plot}))] for name, model in cards.items()],
        **lecture,
    }  # fmt: skip
    return CustomJS(args=args, code=f"{script('page')}\n{called('watchPage', args)}")
