"""Vertices and subtasks as a part of the dashboard: the table below Flink's job graph, and one taken apart."""

from __future__ import annotations

from bokeh.models import Column

from workbench.dashboard.charts.html import Piece, scrolled
from workbench.dashboard.contract.actions import choice, group, offer
from workbench.dashboard.contract.part import Easel, Part
from workbench.dashboard.views.subtasks import EVERY, IN_ORDER, ORDERS, subtasks_html, vertices_html
from workbench.telemetry.frames import Frame


class SubtasksPart(Part):
    """The table of vertices, then that of their subtasks, which can be narrowed to one vertex and ordered."""

    hint = "bytes count what passes through channels; chained operators exchange none"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._frame: Frame | None = None
        self._vertices = easel.texts.piece("Vertices of the job graph", "subtasks")
        self._subtasks = easel.texts.piece("Subtasks", "subtasks")
        self.vertex, self.order = choice("Subtasks of", 200), choice("Order of the subtasks", 180)
        offer(self.vertex, [EVERY])
        offer(self.order, [IN_ORDER, *ORDERS])
        for list_ in (self.vertex, self.order):
            list_.on_change("value", lambda _attribute, _old, _new: self._show())
        self.inputs = (self.vertex, self.order)
        self.models = [
            _wide(self._vertices, 300),
            group(*self.inputs),
            _wide(self._subtasks, 560 if easel.alone else 240),
        ]

    def update(self, frame: Frame) -> None:
        self._frame = frame
        offer(self.vertex, [EVERY, *(vertex.name for vertex in frame.vertices)])
        self._vertices.write(vertices_html(frame))
        self._show()

    def _show(self) -> None:
        if self._frame is not None:
            self._subtasks.write(subtasks_html(self._frame, self.vertex.value, self.order.value))


def _wide(piece: Piece, pixels: int) -> Column:
    """A table that scrolls in both directions, by the keyboard, too."""
    return scrolled(piece.div, pixels, "focus", "whole", html_attributes={"tabindex": "0"})
