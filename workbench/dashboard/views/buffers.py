"""Buffers: how full the pools of every task are, and every channel on both of its sides."""

from __future__ import annotations

from typing import Any

from bokeh.models import ColumnDataSource, Range1d

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import KEY_BUFFERS, bar, none, scrolled, table
from workbench.dashboard.charts.sources import by_column, number_of, refresh
from workbench.dashboard.charts.theme import Paint
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.diagnosis import level
from workbench.telemetry.frames import ChannelFrame, Frame, TaskFrame

ROW = 17
MANY = 40
FULLEST = 6

_SENDER, _RECEIVER = (0.22, 0.39), (0.4, 0.63)
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
    blank = {"heading": False, "note": "", "sent": 0, "received": 0, "capacity": 0, "held": False}
    for edge in frame.edges:
        channels = [channel for channel in frame.channels if channel.edge == edge.id]
        label = f"{names.get(edge.source, edge.source)} → {names.get(edge.target, edge.target)}"
        note = f"{edge.queued_buffers}/{edge.capacity_buffers} · {wording.percent(min(1.0, edge.usage))}"
        listed.append({**blank, "label": label, "heading": True, "note": note})
        shown = channels
        if len(frame.channels) > MANY and len(channels) > FULLEST:
            shown = sorted(channels, key=lambda c: -(c.inputQueueLength + c.outputQueueLength))[:FULLEST]
        listed.extend(_channel_row(channel) for channel in shown)
        if len(shown) < len(channels):
            listed.append({**blank, "label": f"and {len(channels) - len(shown)} emptier channels"})
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
    receiver, sender = ((right - left) / widest for left, right in (_RECEIVER, _SENDER))
    places = []
    for index, row in enumerate(listed):
        y = (len(listed) - index - 0.5) * ROW
        received = _RECEIVER[0] + receiver * min(row["received"], widest)
        places.append({
            "y": y, "label": "" if row["heading"] else row["label"],
            "bold": wording.fit(row["label"], 220, 11) if row["heading"] else "", "note": row["note"],
            "send_left": _SENDER[1] - sender * min(row["sent"], widest), "send_right": _SENDER[1],
            "receive_right": received, "granted_right": _RECEIVER[0] + receiver * row["capacity"],
            "held_right": received if row["held"] else _RECEIVER[0], "top": y + 5, "bottom": y - 5,
        })  # fmt: skip
    return by_column(places, _NAMES)


def pools_html(frame: Frame) -> str:
    """A row per task: usage of its input and output pools and how much of its time it is back-pressured."""
    if not frame.tasks:
        return none("No tasks are running.")
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
    return table(("task", "inPoolUsage", "outPoolUsage", "back-pressured"), lines)


def _output(task: TaskFrame) -> str:
    if not task.metrics.get("totalMemorySegments"):
        return _NOTHING  # nothing follows it
    names = ("usedMemorySegments", "totalMemorySegments", "outputQueueLength")
    used, total, queued = (number_of(task.metrics, name) or 0 for name in names)
    waits = queued - total
    more = f" and {wording.count(waits)} waiting" if waits > 0 else ""
    pool = _pool(task, "outPoolUsage", "pressed")
    return f"{pool} <span class='muted'>{wording.count(used)}/{wording.count(total)}{more}</span>"


_NOTHING = f"<span class='muted'>{wording.NOTHING}</span>"


def _pool(task: TaskFrame, metric: str, colour: str) -> str:
    usage = number_of(task.metrics, metric)
    return _NOTHING if usage is None else f"{bar(usage, colour)} {wording.percent(usage)}"


class BuffersPart(Part):
    """Pools as a table, then a row of bars per channel: what waits at the sender grows to the left, what the receiver
    holds to the right."""

    hint = KEY_BUFFERS

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._pools = easel.texts.piece("Buffer pools of every task", "buffers")
        self._source = ColumnDataSource({name: [] for name in _NAMES})
        self._rows = Range1d(0, 4 * ROW)
        self.figure = easel.paint.drawing("Buffers queued on every channel", self._rows)
        self._draw(easel.paint)
        rooms = (320, 420) if easel.alone else (112, 150)
        self.models = [scrolled(self._pools.div, rooms[0]), scrolled(self.figure, rooms[1])]
        self.asides = self.models[1:]

    def update(self, frame: Frame) -> None:
        self._pools.write(pools_html(frame))
        made = columns(frame)
        pixels = max(4, len(made["y"])) * ROW
        if self.figure.height != pixels:
            self.figure.height = self._rows.end = pixels
        refresh(self._source, made)

    def _draw(self, paint: Paint) -> None:
        plot, source = self.figure, self._source
        granted = plot.quad(_RECEIVER[0], "granted_right", "top", "bottom", source=source)
        paint.set(granted.glyph, fill_color="track", line_color="line")
        sent = plot.quad("send_left", "send_right", "top", "bottom", source=source, line_color=None)
        paint.set(sent.glyph, fill_color="pressed")
        received = plot.quad(_RECEIVER[0], "receive_right", "top", "bottom", source=source, line_color=None)
        paint.set(received.glyph, fill_color="accent")
        held = plot.quad(_RECEIVER[0], "held_right", "top", "bottom", source=source, line_color=None)
        paint.set(held.glyph, fill_color="warn")
        for hatched in (sent, held):
            paint.hatch(hatched.glyph)
        for x, text, colour, style, align in (
            (0.0, "bold", "ink", "bold", "left"),
            (0.0, "label", "muted", "normal", "left"),
            (1.0, "note", "muted", "normal", "right"),
        ):
            paint.text(plot, source, x, "y", text, colour, 11, text_font_style=style, text_align=align)
