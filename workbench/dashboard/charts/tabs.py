"""Several contents in one place, of which a row of buttons shows one: the page does it alone, without a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import Column, CustomJS, InlineStyleSheet, RadioButtonGroup

from workbench.dashboard.charts.html import heading
from workbench.dashboard.charts.theme import GROUP_CSS

ALL = "All"


class Tabs:
    """The buttons and the contents.

    Args:
        label: for assistive technology.
        contents: the models of every tab, by its name.
        least: height in pixels that every content takes, so that nothing jumps from one to the next.
        together: there is room: a further tab shows all of them below each other, each with its name, and comes first.

    Attributes:
        buttons: one for each tab.
        models: the buttons and the contents.
    """

    def __init__(
        self, label: str, contents: Mapping[str, Sequence[Any]], least: int = 0, *, together: bool = False
    ) -> None:
        names = [*contents, ALL] if together else list(contents)
        self.buttons = RadioButtonGroup(
            labels=names, active=names.index(ALL) if together else 0, margin=0, height=24,
            stylesheets=[InlineStyleSheet(css=GROUP_CSS)], html_attributes={"role": "group", "aria-label": label},
        )  # fmt: skip
        css = f":host {{ min-height: {least}px; }}"
        panes = [
            Column(
                children=[*([heading(name)] if together else []), *models], sizing_mode="stretch_width", margin=0,
                visible=together or place == 0, stylesheets=[InlineStyleSheet(css=css)],
            )
            for place, (name, models) in enumerate(contents.items())
        ]  # fmt: skip
        self.buttons.js_on_change("active", CustomJS(args={"panes": panes}, code=_SHOW))
        self.models = [self.buttons, *panes]


_SHOW = """
panes.forEach((pane, place) => {
  const visible = cb_obj.active === place || cb_obj.active === panes.length
  pane.setv({visible}, {sync: false})
})
"""
