"""Several contents in one place; a row of buttons selects one. The page does this by itself, without a kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bokeh.models import RadioButtonGroup

from workbench.dashboard.charts.html import column, heading
from workbench.dashboard.charts.static import callback, sheet

ALL = "All"


def button_group(label: str, names: Sequence[str], active: int) -> RadioButtonGroup:
    """A row of buttons, one of them pressed; `label` is for assistive technology."""
    return RadioButtonGroup(
        labels=list(names), active=active, margin=0, stylesheets=[sheet("button_group")],
        html_attributes={"role": "group", "aria-label": label},
    )  # fmt: skip


class Tabs:
    """The buttons and the contents.

    Args:
        label: for assistive technology.
        contents: the models of every tab, by its name.
        least: minimum height of every content in pixels, so that the layout does not jump between them.
        together: add a first tab that shows all of them below each other, each with its name.

    Attributes:
        buttons: one for each tab.
        models: the buttons and the contents.
    """

    def __init__(
        self, label: str, contents: Mapping[str, Sequence[Any]], least: int = 0, *, together: bool = False
    ) -> None:
        names = [*contents, ALL] if together else list(contents)
        self.buttons = button_group(label, names, names.index(ALL) if together else 0)
        panes = [
            column(
                [*([heading(name)] if together else []), *models], "pane", styles={"--wb-least": f"{least}px"},
                visible=together or place == 0,
            )
            for place, (name, models) in enumerate(contents.items())
        ]  # fmt: skip
        self.buttons.js_on_change("active", callback("showPane", panes=panes))
        self.models = [self.buttons, *panes]
