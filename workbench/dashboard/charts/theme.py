"""Colours in light and dark, and how the page follows JupyterLab's theme while it is open.

HTML reads CSS variables that are set on the root of a view. Canvas items (Bokeh models) have fixed colours, so every
coloured one is registered in a `Paint`, and a script on the page sets all of them when the theme changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bokeh.core.properties import value
from bokeh.models import Range1d
from bokeh.plotting import figure

COLOURS: dict[str, tuple[str, str]] = {
    "ink": ("#1f2328", "#e8eaed"),
    "muted": ("#57606a", "#a8b0ba"),
    "line": ("#d5dbe1", "#3a4149"),
    "grid": ("#e8ecf0", "#2b3138"),
    "card": ("#ffffff", "#1b1f24"),
    "box": ("#f6f8fa", "#242a31"),
    "track": ("#e4e8ec", "#333a42"),
    "accent": ("#0a66c2", "#6cb6ff"),
    "good": ("#1a7f37", "#56d071"),
    "warn": ("#8a5a00", "#e6b84f"),
    "bad": ("#c21f2a", "#ff8078"),
    "violet": ("#7a3fc2", "#c49bff"),
    "idle": ("#5db1ff", "#5db1ff"),
    "busy": ("#ee6464", "#ee6464"),
    "pressed": ("#888888", "#888888"),
    "hatch": ("#ffffff", "#ffffff"),
}
"""Name: (light, dark). Text has a contrast of at least 4.5 to card and box; idle, busy and pressed are Flink's."""

CONTRAST: dict[str, tuple[str, str]] = {
    "ink": ("#000000", "#ffffff"),
    "muted": ("#32383f", "#d8dee4"),
    "line": ("#8c959f", "#8b949e"),
    "card": ("#ffffff", "#000000"),
    "box": ("#f2f5f8", "#15191e"),
}
"""The colours that are stronger in lecture mode, because a projector reduces contrast; text has at least 10."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def _rule(selector: str, values: Mapping[str, str]) -> str:
    return f"{selector} {{ {''.join(f'--wb-{name}:{value};' for name, value in values.items())} }}\n"


VARIABLES = (
    _rule(":host", {"font": FONT, **{name: light for name, (light, _) in COLOURS.items()}})
    + _rule(":host(.wb-dark)", {name: dark for name, (_, dark) in COLOURS.items()})
    + _rule(":host([data-lecture])", {name: light for name, (light, _) in CONTRAST.items()})
    + _rule(":host(.wb-dark[data-lecture])", {name: dark for name, (_, dark) in CONTRAST.items()})
)
"""The style sheet of the root of a view, from which the other sheets take their colours and font."""


class Paint:
    """Gives models their colours by name and remembers them for the script that follows the theme."""

    def __init__(self) -> None:
        self._painted: list[list[Any]] = []

    def set(self, model: Any, **colours: str) -> Any:
        """Set properties of a Bokeh model to named colours; returns the model.

        Example:
            ``paint.set(label, text_color="ink")``
        """
        for attribute, name in colours.items():
            light, dark = COLOURS[name]
            setattr(model, attribute, light)
            self._painted.append([model, attribute, light, dark])
        return model

    def plain(self, plot: figure) -> None:
        """Leave out what Bokeh draws of selected, unselected and muted glyphs: nothing of the figure is chosen, and
        these are most of its models."""
        for renderer in plot.renderers:
            renderer.selection_glyph = renderer.nonselection_glyph = renderer.muted_glyph = None

    def plot(self, plot: figure) -> figure:
        """Colour a figure's axes, grid and background, and remove what a dashboard does not need."""
        plot.toolbar_location = None
        plot.toolbar.logo = None
        plot.outline_line_color = None
        plot.background_fill_alpha = 0
        plot.border_fill_alpha = 0
        plot.min_border = 4
        for axis in plot.axis:
            axis.axis_label_text_font = axis.major_label_text_font = FONT
            axis.major_label_text_font_size = axis.axis_label_text_font_size = "11px"
            axis.axis_label_text_font_style = "normal"
            axis.minor_tick_line_color = None
            axis.major_tick_in = 0
            axis.major_tick_out = 3
            self.set(axis, axis_line_color="line", major_tick_line_color="line")
            self.set(axis, major_label_text_color="muted", axis_label_text_color="muted")
        for grid in plot.grid:
            self.set(grid, grid_line_color="grid")
        for legend in plot.legend:
            legend.background_fill_alpha = legend.border_line_alpha = 0
            legend.label_text_font = FONT
            legend.label_text_font_size = "11px"
            self.set(legend, label_text_color="ink")
        return plot

    def hatch(self, glyph: Any, pattern: str = "right_diagonal_line", colour: str = "hatch", **more: float) -> None:
        """Hatch a glyph, so that it can be distinguished without colours."""
        glyph.update(hatch_pattern=pattern, hatch_scale=6, **more)
        self.set(glyph, hatch_color=colour)

    @property
    def painted(self) -> list[list[Any]]:
        """Every registered property: [model, attribute, light, dark]."""
        return self._painted

    def blank(self, label: str, height: int, **more: Any) -> figure:
        """An empty figure as wide as its place, named for assistive technology."""
        attributes = {"role": "img", "aria-label": label}
        return figure(height=height, sizing_mode="stretch_width", tools="", html_attributes=attributes, **more)

    def drawing(self, label: str, rows: Range1d, **more: Any) -> figure:
        """A figure without axes: x is a share of its width, y counts pixels from the bottom up to the end of `rows`."""
        bare = {"x_range": Range1d(0, 1), "y_range": rows, "x_axis_type": None, "y_axis_type": None}
        plot = self.plot(self.blank(label, rows.end, **bare, **more))
        plot.min_border = 0
        plot.grid.visible = False
        return plot

    def text(self, plot: figure, source: Any, x: Any, y: Any, text: Any, colour: str, size: int, **more: Any) -> Any:
        """Texts on a figure, `size` pixels high; returns their glyph."""
        more.setdefault("text_baseline", "middle")
        font = {"text_font": value(FONT), "text_font_size": f"{size}px"}
        return self.set(plot.text(x, y, text, source=source, **font, **more).glyph, text_color=colour)
