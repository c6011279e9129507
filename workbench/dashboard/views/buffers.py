"""Buffers: how full the pools of every task are, and every channel on both of its sides (F2-3, F2-4)."""

from __future__ import annotations

from typing import Any

from bokeh.core.properties import value
from bokeh.models import ColumnDataSource, Range1d
from bokeh.plotting import figure

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import KEY_BUFFERS, bar, scrolled
from workbench.dashboard.charts.sources import refresh
from workbench.dashboard.charts.theme import FONT, Paint
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.diagnosis import level
from workbench.telemetry.frames import ChannelFrame, Frame, TaskFrame

ROW = 17
MANY = 40
FULLEST = 6

_SENDER_LEFT, _SENDER_RIGHT, _RECEIVER_LEFT, _RECEIVER_RIGHT = 0.22, 0.39, 0.4, 0.63
"""Of the width, which may be no more than 300 pixels: subtasks have their place before the bars, and a note behind."""

_NAMES = (
    "y", "label", "bold", "note", "send_left", "send_right", "receive_right", "granted_right", "held_right", "top",
    "bottom",
)  # fmt: skip


def rows(frame: Frame) -> list[dict[str, Any]]:
    """A heading per edge with its totals, then its channels; of a wide edge in a wide job only the fullest.

    Each row has ``label`` (of a channel the two subtasks), ``heading`` (bool), ``note``, ``sent`` and ``received``
    (buffers on the two sides), ``capacity`` (buffers granted) and ``held`` (aligning: the barrier holds the channel
    back).
    """
    names = {vertex.id: vertex.name for vertex in frame.vertices}
    listed: list[dict[str, Any]] = []
    for edge in frame.edges:
        channels = [channel for channel in frame.channels if channel.edge == edge.id]
        listed.append(
            {
                "label": f"{names.get(edge.source, edge.source)} → {names.get(edge.target, edge.target)}",
                "heading": True,
                "note": f"{edge.queued_buffers}/{edge.capacity_buffers} · {wording.percent(edge.usage)}",
                "sent": 0,
                "received": 0,
                "capacity": 0,
                "held": False,
            }
        )
        shown = channels
        if len(frame.channels) > MANY and len(channels) > FULLEST:
            shown = sorted(channels, key=lambda c: -(c.inputQueueLength + c.outputQueueLength))[:FULLEST]
        listed.extend(_channel_row(channel) for channel in shown)
        if len(shown) < len(channels):
            text = f"and {len(channels) - len(shown)} emptier channels"
            blank = {"sent": 0, "received": 0, "capacity": 0, "held": False}
            listed.append({"label": text, "heading": False, "note": "", **blank})
    return listed


def _channel_row(channel: ChannelFrame) -> dict[str, Any]:
    words = [f"{channel.outputQueueLength} + {channel.inputQueueLength}/{channel.capacity}"]
    if channel.blocked:
        words.append("aligning")
    elif channel.finished:
        words = ["finished"]  # nothing is queued on it any more
    elif channel.idle:
        words.append("idle")
    else:
        words.append(f"{wording.short(channel.queued_records)} rec")
    ends = _subtask(channel.source), _subtask(channel.target)
    return {
        "label": wording.fit(" → ".join(ends), 220, 11), "heading": False, "note": " · ".join(words),
        "sent": channel.outputQueueLength, "received": channel.inputQueueLength, "capacity": channel.capacity,
        "held": channel.blocked,
    }  # fmt: skip


def _subtask(task: str) -> str:
    """Of a task's name what is not in the heading of its edge: ``"[1]"`` of ``"source[1]"``."""
    return task[max(0, task.rfind("[")) :]


def columns(frame: Frame) -> dict[str, list[Any]]:
    """The rows as places in the drawing: x as a share of the width, y in pixels from the bottom."""
    listed = rows(frame)
    widest = max((row["capacity"] for row in listed), default=0) or 1
    made: dict[str, list[Any]] = {name: [] for name in _NAMES}
    for index, row in enumerate(listed):
        y = (len(listed) - index - 0.5) * ROW
        receiver = (_RECEIVER_RIGHT - _RECEIVER_LEFT) / widest
        sender = (_SENDER_RIGHT - _SENDER_LEFT) / widest
        received = _RECEIVER_LEFT + receiver * min(row["received"], widest)
        place = {
            "y": y, "label": "" if row["heading"] else row["label"],
            "bold": wording.fit(row["label"], 220, 11) if row["heading"] else "", "note": row["note"],
            "send_left": _SENDER_RIGHT - sender * min(row["sent"], widest), "send_right": _SENDER_RIGHT,
            "receive_right": received, "granted_right": _RECEIVER_LEFT + receiver * row["capacity"],
            "held_right": received if row["held"] else _RECEIVER_LEFT, "top": y + 5, "bottom": y - 5,
        }  # fmt: skip
        for name in _NAMES:
            made[name].append(place[name])
    return made


def pools_html(frame: Frame) -> str:
    """A row per task: usage of its input and output pools and how much of its time it is back-pressured."""
    if not frame.tasks:
        return "<p class='none'>No task runs.</p>"
    lines = []
    for task in frame.tasks:
        name = wording.html_text(task.name)
        pressed = float(task.metrics.get("backPressuredTimeMsPerSecond") or 0)
        word = level(pressed)
        colour = {"OK": "good", "LOW": "warn", "HIGH": "bad"}[word]
        lines.append(
            f"<tr><th title='{name}'>{name}</th><td>{_pool(task, 'inPoolUsage', 'accent')}</td>"
            f"<td>{_output(task)}</td>"
            f"<td class='{colour}'>{word} {pressed / 10:.0f} %</td></tr>"
        )
    head = "<tr class='head'><th>task</th><th>inPoolUsage</th><th>outPoolUsage</th><th>back-pressured</th></tr>"
    return f"<table>{head}{''.join(lines)}</table>"


def _output(task: TaskFrame) -> str:
    if not task.metrics.get("totalMemorySegments"):
        return f"<span class='muted'>{wording.NOTHING}</span>"  # nothing follows it
    used, total = _whole(task, "usedMemorySegments"), _whole(task, "totalMemorySegments")
    return f"{_pool(task, 'outPoolUsage', 'pressed')} <span class='muted'>{used}/{total}</span>"


def _pool(task: TaskFrame, metric: str, colour: str) -> str:
    usage = task.metrics.get(metric)
    if usage is None:
        return f"<span class='muted'>{wording.NOTHING}</span>"
    return f"{bar(float(usage), colour)} {wording.percent(float(usage))}"


def _whole(task: TaskFrame, metric: str) -> str:
    number = task.metrics.get(metric)
    return wording.count(None if number is None else float(number))


class BuffersPart(Part):
    """Pools as a table, then a row of bars per channel: what waits at the sender grows to the left, what the receiver
    holds to the right."""

    title = "Buffers"
    hint = KEY_BUFFERS

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._pools = easel.texts.piece("Buffer pools of every task", css=_CSS)
        self._source = ColumnDataSource({name: [] for name in _NAMES})
        self._rows = Range1d(0, 4 * ROW)
        self.figure = figure(
            height=4 * ROW, sizing_mode="stretch_width", x_range=Range1d(0, 1), y_range=self._rows, tools="",
            x_axis_type=None, y_axis_type=None,
            html_attributes={"role": "img", "aria-label": "Buffers queued on every channel"},
        )  # fmt: skip
        easel.paint.plot(self.figure)
        self.figure.min_border = 0
        self.figure.grid.visible = False
        self._draw(easel.paint)
        rooms = (320, 420) if easel.alone else (112, 150)
        self.models = [scrolled(self._pools.div, rooms[0]), scrolled(self.figure, rooms[1])]

    def update(self, frame: Frame) -> None:
        self._pools.write(pools_html(frame))
        made = columns(frame)
        pixels = max(4, len(made["y"])) * ROW
        if self.figure.height != pixels:
            self.figure.height = self._rows.end = pixels
        refresh(self._source, made)

    def _draw(self, paint: Paint) -> None:
        plot, source = self.figure, self._source
        granted = plot.quad(_RECEIVER_LEFT, "granted_right", "top", "bottom", source=source)
        paint.set(granted.glyph, fill_color="track", line_color="line")
        sent = plot.quad("send_left", "send_right", "top", "bottom", source=source, line_color=None)
        paint.set(sent.glyph, fill_color="pressed", hatch_color="hatch")
        received = plot.quad(_RECEIVER_LEFT, "receive_right", "top", "bottom", source=source, line_color=None)
        paint.set(received.glyph, fill_color="accent")
        held = plot.quad(_RECEIVER_LEFT, "held_right", "top", "bottom", source=source, line_color=None)
        paint.set(held.glyph, fill_color="warn", hatch_color="hatch")
        for hatched in (sent, held):
            hatched.glyph.hatch_pattern = "right_diagonal_line"
            hatched.glyph.hatch_scale = 6
        for x, text, colour, style, align in (
            (0.0, "bold", "ink", "bold", "left"),
            (0.0, "label", "muted", "normal", "left"),
            (1.0, "note", "muted", "normal", "right"),
        ):
            glyph = plot.text(
                x, "y", text, source=source, text_font=value(FONT), text_font_size="11px", text_font_style=style,
                text_align=align, text_baseline="middle",
            ).glyph  # fmt: skip
            paint.set(glyph, text_color=colour)


_CSS = """
table { font-size: 11.5px; margin-bottom: 4px; } .bar { width: 30px; } th, td { padding-right: 4px; }
th { max-width: 130px; overflow: hidden; text-overflow: ellipsis; }
"""
