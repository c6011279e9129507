"""The dataflow graph as a part of the dashboard: three looks, taking vertices apart by a click, zoom and pan."""

from __future__ import annotations

from bokeh.models import (
    ColumnDataSource,
    HoverTool,
    PanTool,
    Range1d,
    ResetTool,
    TapTool,
    WheelZoomTool,
    ZoomInTool,
    ZoomOutTool,
)
from bokeh.transform import transform

from workbench.dashboard.charts.html import KEY_IDLE_BUSY, Choice, row, scrolled
from workbench.dashboard.charts.sources import refresh
from workbench.dashboard.charts.static import callback, rewritten, sheet, whole_callback
from workbench.dashboard.charts.tabs import button_group
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.graph import (
    BOX_NAMES,
    EDGE_NAMES,
    LETTER,
    LOWEST,
    WIDTHS,
    box_columns,
    details,
    edge_columns,
    height,
    least_width,
    width,
)
from workbench.dashboard.views.graph_acks import ACK_NAMES, ack_columns
from workbench.dashboard.views.graph_modes import MODES, look
from workbench.dashboard.views.graph_moves import MOVES_NAMES, moves_columns, moves_html
from workbench.telemetry.frames import Frame

LEAST = "--wb-least"
"""The CSS variable with the least width of the drawing."""
LETTERS = {"title": 7.6, "first": 6.05, "second": 6.05, "rates": 6.6, "shares": 4.8}
"""Pixels of a letter of each text of a box that may be too long for it."""


class GraphPart(Part):
    """The drawing of the graph; it scrolls where there is no room, and texts of the hover are renewed once a second."""

    hint = KEY_IDLE_BUSY
    rest_us = 0

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        paint = easel.paint
        self._frame: Frame | None = None
        self._expanded: set[str] = set()
        self._boxes = ColumnDataSource({**{name: [] for name in BOX_NAMES}, "details": []})
        self._edges = ColumnDataSource({name: [] for name in EDGE_NAMES})
        self._acks = ColumnDataSource({name: [] for name in ACK_NAMES})
        self._details_us = 0
        self._moves = ColumnDataSource({name: [] for name in MOVES_NAMES})
        self._rows = Range1d(0, LOWEST)
        self.modes = button_group("Level of detail of the graph", MODES, MODES.index("Physical"))
        self.modes.on_change("active", lambda _attribute, _old, _new: self._draw())
        self._tap = Choice(self._tapped)
        self.figure = paint.drawing(
            "Dataflow graph: operators, rates, load and buffers", self._rows, min_width=WIDTHS[0],
            stylesheets=[sheet("graph_moves")],
        )  # fmt: skip
        move = whole_callback("moves", "moveRecords", figure=self.figure, edges=self._edges, moves=self._moves)
        self.figure.tags = [self._moves]  # what nothing refers to does not reach the page
        for change in ("data", "patching"):
            self._moves.js_on_change(change, move)
        again = whole_callback("fits", "fitAgain", sources=[self._boxes, self._edges])
        self.figure.js_on_change("inner_width", again)
        self._told = easel.texts.piece("What moves along the edges", "graph_told", role="note")
        self._add_tools()
        self._draw_acks(paint)
        self._draw_edges(paint)
        self._draw_boxes(paint)
        paint.plain(self.figure)  # a click selects a box for a moment; nothing is to fade meanwhile
        hint = easel.texts.piece("How to read the graph", "graph_hint", role="note")
        taps = "click a box to show its subtasks" if easel.hears else ""
        hint.write(f"{taps}<span>{'; ' * bool(taps)}drag to pan, Ctrl + wheel to zoom</span>")
        bar = row([self.modes, hint.div], "graph_bar")
        drawing = scrolled(self.figure, 640 if easel.alone else 480, "whole", "graph_drawing")
        self.models = [bar, drawing, self._told.div]
        self.inputs = (self.modes, self._tap.source)
        self.asides = [hint.div]

    def update(self, frame: Frame) -> None:
        self._frame = frame
        self._draw()

    def _draw(self) -> None:
        if self._frame is None:
            return
        frame = look(self._frame, MODES[self.modes.active], self._expanded)
        boxes = box_columns(frame)
        stale = not 0 <= frame.time_us - self._details_us < 1_000_000
        if stale or list(self._boxes.data["name"]) != boxes["name"]:
            boxes["details"] = [details(vertex) for vertex in frame.vertices]
            self._details_us = frame.time_us
        else:
            boxes["details"] = self._boxes.data["details"]
        pixels = height(frame)
        if self.figure.height != pixels:
            self.figure.height = self._rows.end = pixels
        if self.figure.min_width != width(frame):
            self.figure.min_width = width(frame)  # in lecture mode; else the style says it
        least = f"{least_width(frame)}px"
        if self.figure.styles.get(LEAST) != least:
            self.figure.styles = {LEAST: least}
        refresh(self._boxes, boxes)
        refresh(self._edges, edge_columns(frame))
        refresh(self._acks, ack_columns(frame))
        self._told.write(moves_html(self._frame))
        refresh(self._moves, moves_columns(self._frame, frame))

    def _tapped(self, box: str) -> None:
        """A click on a box takes it apart into its subtasks; a click on one of these puts them together again."""
        if self._frame is None or MODES[self.modes.active] != "Physical":
            return
        self._expanded ^= {next((task.vertex for task in self._frame.tasks if task.name == box), box)}
        self._draw()

    def _add_tools(self) -> None:
        pan, wheel = PanTool(), WheelZoomTool(modifiers={"ctrl": True})
        tap = TapTool(visible=False, callback=callback("chooseBox", boxes=self._boxes, choice=self._tap.source))
        self.figure.add_tools(pan, wheel, ZoomInTool(), ZoomOutTool(), ResetTool(), tap)
        self.figure.toolbar.active_drag = pan
        self.figure.toolbar.active_scroll = wheel
        self.figure.toolbar.active_tap = tap
        self.figure.toolbar_location = "right"

    def _draw_edges(self, paint: Paint) -> None:
        plot, edges = self.figure, self._edges
        curve = plot.bezier("x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1", source=edges, line_width="width")
        paint.set(curve.glyph, line_color="muted")
        head = plot.scatter("head_x", "head_y", source=edges, marker="triangle", size=10, angle=-1.5708)
        paint.set(head.glyph, fill_color="muted", line_color="muted")
        track = plot.quad("gauge_left", "gauge_right", "gauge_top", "gauge_bottom", source=edges)
        paint.set(track.glyph, fill_color="track", line_color="line")
        fill = plot.quad("gauge_left", "gauge_fill", "gauge_top", "gauge_bottom", source=edges, line_color=None)
        paint.set(fill.glyph, fill_color="accent")
        for text, y, size, colour, style in (
            ("exchange", "exchange_y", 11, "muted", "italic"),
            ("rate", "rate_y", 11, "ink", "bold"),
            ("buffers", "buffers_y", 10, "muted", "normal"),
        ):
            written = paint.text(
                plot, edges, "middle", y, text, colour, size, text_font_style=style, text_align="center",
                background_fill_alpha=0.8,
            )  # fmt: skip
            paint.set(written, background_fill_color="card")
            if text == "exchange":
                fit = rewritten("fits", "fitEdges", figure=plot, edges=edges, letter=LETTER)
                written.text = transform(text, fit)
        tips = [("edge", "@name"), ("exchange", "@tip"), ("buffers", "@usage")]
        plot.add_tools(HoverTool(renderers=[track, head], tooltips=tips, visible=False))

    def _draw_acks(self, paint: Paint) -> None:
        curve = self.figure.bezier(
            "x0", "y0", "x1", "y1", "cx0", "cy0", "cx1", "cy1", source=self._acks, line_dash="dotted"
        )
        paint.set(curve.glyph, line_color="violet")

    def _draw_boxes(self, paint: Paint) -> None:
        plot, boxes = self.figure, self._boxes
        box = plot.quad("left", "right", "top", "bottom", source=boxes, border_radius=6, line_width=1)
        paint.set(box.glyph, fill_color="box", line_color="line")
        for right, colour in (("down_right", "bad"), ("again_right", "warn")):  # as `Bands` draws it on charts
            struck = plot.quad("left", right, "top", "bottom", source=boxes, line_color=None, fill_alpha=0.25)
            paint.set(struck.glyph, fill_color=colour)
            if colour == "bad":
                paint.hatch(struck.glyph, colour="card")
        parts = (("idle", "idle_0", "idle_1"), ("busy", "idle_1", "busy_1"), ("pressed", "busy_1", "pressed_1"))
        for name, start, end in parts:
            part = plot.quad(start, end, "bar_top", "bar_bottom", source=boxes, line_color=None)
            paint.set(part.glyph, fill_color=name)
            if name == "pressed":
                paint.hatch(part.glyph, hatch_weight=1.5)
        for text, x, y, size, colour, style, align in (
            ("title", "text_x", "title_y", 13, "ink", "bold", "left"),
            ("parallelism", "right_x", "title_y", 13, "muted", "bold", "right"),
            ("first", "text_x", "first_y", 11, "muted", "normal", "left"),
            ("second", "text_x", "second_y", 11, "muted", "normal", "left"),
            ("rates", "text_x", "rates_y", 13, "ink", "normal", "left"),
            ("shares", "text_x", "shares_y", 10, "muted", "normal", "left"),
        ):
            written = paint.text(plot, boxes, x, y, text, colour, size, text_font_style=style, text_align=align)
            if text in LETTERS:
                fit = rewritten("fits", "fitBoxes", figure=plot, boxes=boxes, name=text, letter=LETTERS[text])
                written.text = transform(text, fit)
        tip = (
            "<div style='font-weight:600'>@name @parallelism</div>"
            "<div style='white-space:pre;font-size:11px;line-height:1.3'>@details</div>"
        )
        plot.add_tools(HoverTool(renderers=[box], tooltips=tip, visible=False))
