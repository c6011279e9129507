"""Colours in light and dark, and how the page follows JupyterLab's theme while it is open.

HTML reads CSS variables that are set on the root of a view. Canvas items (Bokeh models) have fixed colours, so every
coloured one is registered in a `Paint`, and a script on the page sets all of them when the theme changes.
"""

from __future__ import annotations

from typing import Any

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

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def _variables(index: int) -> str:
    return "".join(f"--wb-{name}:{pair[index]};" for name, pair in COLOURS.items())


ROOT_CSS = f"""
:host {{ {_variables(0)} container-type: inline-size; font-family: {FONT}; font-size: 13px; color: var(--wb-ink); }}
:host(.wb-dark) {{ {_variables(1)} }}
:host(.wb-quiet) {{ --wb-silence: block; }}
"""

PAGE_STYLE = """<style>
:root { color-scheme: light dark; }
body { background: #f6f8fa; color: #1f2328; }
@media (prefers-color-scheme: dark) { body { background: #14171b; color: #e8eaed; } }
</style>"""
"""Of a page that is ours alone: what is around the cards follows the browser's theme, as they do."""

PAGE_TEMPLATE = f"{{% block preamble %}}{PAGE_STYLE}{{% endblock %}}"
"""For Bokeh's page of a document."""

ON_WHITE = "{% block preamble %}<style>body { background: #fff; }</style>{% endblock %}"
"""For Bokeh's page of figures in their light colours: without a ground it would show that of a dark notebook."""

GROUP_CSS = """
.bk-btn-group { margin: 0; }
.bk-btn { font-size: 11px; padding: 0 10px; height: 24px; line-height: 22px; color: var(--wb-ink) !important;
  background: var(--wb-box) !important; border: 1px solid var(--wb-line) !important; box-shadow: none !important; }
.bk-btn.bk-active { border-color: var(--wb-accent) !important; color: var(--wb-accent) !important; font-weight: 650; }
.bk-btn:focus-visible { outline: 3px solid var(--wb-accent); outline-offset: 1px; }
"""
"""Of a row of buttons of which one is chosen."""


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

    def plot(self, plot: figure) -> figure:
        """Colour a figure's axes, grid and background, and take away what a dashboard does not need."""
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

    @property
    def painted(self) -> list[list[Any]]:
        """Every registered property: [model, attribute, light, dark]."""
        return self._painted
