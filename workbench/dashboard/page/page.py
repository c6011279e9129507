"""The script of a page that shows a view: it writes texts, follows the theme and answers the kernel's pulse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, CustomJS, Plot, Slider
from bokeh.settings import settings

from workbench.dashboard.charts.html import Texts
from workbench.dashboard.charts.static import called, script
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.page.pace import ANSWER_S

settings.simple_ids = False  # else two kernels, whose views are on one page of JupyterLab, number their models alike

SUPPLEMENT = "supplement"
"""The name of the root's tags that tell the page's script about cards that were filled later."""


class Pulse:
    """A sign of life from the kernel, and the page's answer to it.

    Attributes:
        source: columns ``beat`` (a counter) and ``live`` (1 while more is to come).
        echo: the page sets it to the beat whose frame it has painted (or only received, if it is hidden), with the
            average painting time in milliseconds since its last answer.
        seen: the page sets its column ``part`` to the names of the parts that are on the screen.
        count: the last beat.
    """

    def __init__(self) -> None:
        self.source = ColumnDataSource({"beat": [0], "live": [1]})
        self.echo = ColumnDataSource({"beat": [0], "painting_ms": [0]})
        self.seen = ColumnDataSource({"part": []})
        self.count = 0

    def beat(self, over: bool) -> None:
        """Tell the page that the kernel is alive, and whether more frames will follow."""
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
    """The script that runs when the document is ready. `root` must refer to it, for example by its tags.

    Args:
        cards: the model that holds each part, by the part's name.
        stage: the model that chooses between them; None: there is none.
        lecture: the data about lecture mode.
    """
    args = {
        "root": root, "pulse": pulse.source, "echo": pulse.echo, "seen": pulse.seen, "answer_ms": 1e3 * ANSWER_S,
        "stage": stage, **_handled(texts, paint.painted, cards), **lecture,
    }  # fmt: skip
    return CustomJS(args=args, code=f"{script('page')}\n{called('watchPage', args)}")


def page_supplement(
    texts: Texts,
    painted: Sequence[Any],
    cards: Mapping[str, Any],
    inputs: Iterable[Any],
    lecture: Mapping[str, Any],
) -> CustomJS:
    """Additional data for the page's script, once the tags of the root refer to it.

    Args:
        texts: with a source that the page does not have yet.
        painted: the models that the page does not colour yet.
        cards: the cards that were filled.
        inputs: the models in them that a user can change.
        lecture: what they add to lecture mode.
    """
    acted = [model.id for model in inputs]
    return CustomJS(name=SUPPLEMENT, args={**_handled(texts, painted, cards), "acted": acted, **lecture}, code="")


def _handled(texts: Texts, painted: Sequence[Any], cards: Mapping[str, Any]) -> dict[str, Any]:
    choices = {name: choice.source for name, choice in texts.choices.items()}
    within = {name: model.references() for name, model in cards.items()}  # walks all of its models
    return {
        "texts": texts.source,
        "pieces": [[name, texts.divs[name], choices.get(name)] for name in texts.source.data],
        "sliders": [one for models in within.values() for one in models if isinstance(one, Slider)],
        "painted": painted,
        "cards": [[name, cards[name], [one for one in held if isinstance(one, Plot)]] for name, held in within.items()],
    }
