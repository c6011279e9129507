"""A scene as a picture: tasks as boxes with their state, channels with every record on them as a marble (F2-9 to
F2-15)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from math import atan2, degrees, hypot

from workbench.durations import format_instant
from workbench.telemetry.scene import ChannelScene, Marble, Scene, TaskScene

BOX_WIDTH = 186
GAP = 320
LINE = 15
PORT = 54
"""Space for one channel at the side of a box."""
SPACING = 42
"""The width of marbles: that of the time of day below one."""
RADIUS = 12
BETWEEN = 22
MARGIN = 12
KEY_COLOURS = ("#1a7f37", "#00706c", "#0a66c2", "#7a3fc2", "#b0174f", "#a34e00", "#6b5700", "#4f5b66")
"""All dark enough for white letters on them, in both themes."""
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"

INK = "var(--wb-ink,var(--jp-ui-font-color1,#1f2328))"
WARN = "var(--wb-warn,var(--jp-warn-color1,#8a5a00))"
BAD = "var(--wb-bad,var(--jp-error-color1,#c21f2a))"
GOOD = "var(--wb-good,var(--jp-success-color1,#1a7f37))"
_STYLE = f"""
.wb-scene{{max-width:100%;height:auto;font-family:{FONT};color:{INK}}}
.wb-scene text{{fill:currentColor;font-size:11px}}
.wb-scene .name{{font-size:12px;font-weight:650}} .wb-scene .soft{{opacity:.75}}
.wb-scene .box{{fill:var(--wb-box,var(--jp-layout-color2,#f6f8fa));stroke:currentColor;stroke-opacity:.55}}
.wb-scene .box.away{{stroke-dasharray:5 4;fill:none}} .wb-scene .box.failed{{stroke:{BAD};stroke-width:2.5}}
.wb-scene .pipe{{stroke:currentColor;stroke-opacity:.28;stroke-width:2}}
.wb-scene .pipe.held{{stroke:{WARN};stroke-opacity:1;stroke-dasharray:6 4}}
.wb-scene .inside{{fill:#fff;font-weight:650}} .wb-scene .under{{font-size:9px}}
.wb-scene .held-text{{fill:{WARN};font-weight:650;font-size:10px}}
.wb-scene .barrier{{fill:{BAD}}} .wb-scene .mark{{stroke:{GOOD};stroke-width:2.5;stroke-dasharray:4 2}}
.wb-scene .halo{{paint-order:stroke;stroke:var(--wb-card,var(--jp-layout-color0,#fff));stroke-width:3px}}
"""


@dataclass(frozen=True, slots=True)
class _Box:
    task: TaskScene
    x: float
    y: float
    height: float


def colour_of(key: str) -> str:
    """The colour of a key, the same in every picture.

    Example:
        >>> colour_of("even") == colour_of("even")
        True
    """
    return KEY_COLOURS[zlib.crc32(key.encode()) % len(KEY_COLOURS)]


def scene_svg(scene: Scene) -> str:
    """The picture as text; all text from data or users is escaped."""
    boxes = _places(scene)
    width = max(box.x for box in boxes.values()) + BOX_WIDTH + MARGIN
    height = max(box.y + box.height for box in boxes.values()) + MARGIN
    label = escape(f"step {scene.step} of {scene.job}: {scene.words}", quote=True)
    parts = [
        f"<svg class='wb-scene' role='img' aria-label='{label}' xmlns='http://www.w3.org/2000/svg' "
        f"width='{width:.0f}' viewBox='0 0 {width:.0f} {height:.0f}'><style>{_STYLE}</style>"
    ]
    lines = list(_lines(scene, boxes))
    for channel, ends in lines:
        parts.append(_pipe(channel, ends))
    for channel, ends in lines:
        parts += _marbles(channel, ends)
    for box in boxes.values():
        parts += _box(box, scene)
    return "".join([*parts, "</svg>"])


# places ----------------------------------------------------------------------------------------------------------


def _places(scene: Scene) -> dict[str, _Box]:
    """Columns from left to right, each with its tasks from top to bottom, all columns centred."""
    ins: dict[str, int] = {}
    outs: dict[str, int] = {}
    for channel in scene.channels:
        ins[channel.target] = ins.get(channel.target, 0) + 1
        outs[channel.source] = outs.get(channel.source, 0) + 1
    heights = {
        task.name: max(
            26 + LINE * (len(task.state) + 1 + (len(task.operators) > 1)),
            PORT * ins.get(task.name, 0),
            PORT * outs.get(task.name, 0),
        )
        for task in scene.tasks
    }
    ordered = sorted(scene.tasks, key=lambda task: (task.x, task.y))  # stable: subtasks keep their order
    columns = [list(column) for _, column in groupby(ordered, key=lambda task: task.x)]
    tallest = max(_total(column, heights) for column in columns)
    boxes = {}
    for place, column in enumerate(columns):
        y = MARGIN + (tallest - _total(column, heights)) / 2
        for task in column:
            boxes[task.name] = _Box(task, MARGIN + place * (BOX_WIDTH + GAP), y, heights[task.name])
            y += heights[task.name] + BETWEEN
    return boxes


def _total(column: list[TaskScene], heights: dict[str, int]) -> float:
    return sum(heights[task.name] for task in column) + BETWEEN * (len(column) - 1)


@dataclass(frozen=True, slots=True)
class _Ends:
    """A channel's line, from the sender to the receiver."""

    x1: float
    y1: float
    x2: float
    y2: float

    @property
    def length(self) -> float:
        return hypot(self.x2 - self.x1, self.y2 - self.y1)

    @property
    def angle(self) -> float:
        return degrees(atan2(self.y2 - self.y1, self.x2 - self.x1))

    def before_end(self, distance: float) -> tuple[float, float]:
        """A point at this distance from the receiver."""
        share = 1 - distance / self.length
        return self.x1 + share * (self.x2 - self.x1), self.y1 + share * (self.y2 - self.y1)


def _lines(scene: Scene, boxes: dict[str, _Box]) -> Iterator[tuple[ChannelScene, _Ends]]:
    """Each channel has its own port on both boxes, so that lines do not meet where their marbles are."""
    leaving: dict[str, list[ChannelScene]] = {}
    coming: dict[str, list[ChannelScene]] = {}
    for channel in scene.channels:
        leaving.setdefault(channel.source, []).append(channel)
        coming.setdefault(channel.target, []).append(channel)
    for channel in scene.channels:
        source, target = boxes[channel.source], boxes[channel.target]
        out = sorted(leaving[channel.source], key=lambda one: boxes[one.target].y)
        into = sorted(coming[channel.target], key=lambda one: boxes[one.source].y)
        y1 = source.y + source.height * (out.index(channel) + 0.5) / len(out)
        y2 = target.y + target.height * (into.index(channel) + 0.5) / len(into)
        yield channel, _Ends(source.x + BOX_WIDTH, y1, target.x, y2)


# drawing ---------------------------------------------------------------------------------------------------------


def _pipe(channel: ChannelScene, ends: _Ends) -> str:
    held = " held" if channel.blocked else ""
    tip = f"{channel.source} to {channel.target}" + (", held back by alignment" if channel.blocked else "")
    parts = [
        f"<line class='pipe{held}' x1='{ends.x1:.0f}' y1='{ends.y1:.0f}' x2='{ends.x2:.0f}' y2='{ends.y2:.0f}'>"
        f"<title>{escape(tip)}</title></line>"
    ]
    if channel.blocked:
        x, y = ends.x2 - 4, ends.y2 - 5
        parts.append(f"<text class='held-text halo' text-anchor='end' x='{x:.0f}' y='{y:.0f}'>‖ held back</text>")
    return "".join(parts)


def _marbles(channel: ChannelScene, ends: _Ends) -> Iterator[str]:
    """The marbles from the receiver backwards; those that find no space are counted."""
    first = SPACING * (2.6 if channel.blocked else 0.7)
    room = max(1, int((ends.length - first - 16) // SPACING) + 1)
    shown = channel.marbles if len(channel.marbles) + channel.more <= room else channel.marbles[: room - 1]
    for place, marble in enumerate(shown):
        x, y = ends.before_end(first + place * SPACING)
        yield _marble(marble, x, y, ends.angle)
    rest = len(channel.marbles) + channel.more - len(shown)
    if rest:
        x, y = ends.before_end(first + len(shown) * SPACING)
        yield f"<text class='name halo' text-anchor='middle' x='{x:.0f}' y='{y + 4:.0f}'>+{rest}</text>"


def _marble(marble: Marble, x: float, y: float, angle: float) -> str:
    place = f"transform='translate({x:.1f} {y:.1f})'"
    text = escape(marble.text)
    if marble.kind == "record":
        return _record(marble, place)
    if marble.kind == "barrier":
        return (
            f"<g {place}><title>checkpoint barrier {text}</title>"
            f"<rect class='barrier' x='-3.5' y='-15' width='7' height='30' rx='2' transform='rotate({angle:.1f})'/>"
            f"<text class='name halo' text-anchor='middle' y='-18'>▲{text}</text></g>"
        )
    if marble.kind == "watermark":
        return (
            f"<g {place}><title>watermark {escape(format_instant(marble.time_us))}</title>"
            f"<line class='mark' y1='-14' y2='14' transform='rotate({angle:.1f})'/>"
            f"<text class='under halo' text-anchor='middle' y='24'>W {text}</text></g>"
        )
    if marble.kind == "other":
        return f"<circle {place} r='3' fill='currentColor' opacity='.5'><title>{text}</title></circle>"
    return (
        f"<g {place}><rect class='box' x='-15' y='-9' width='30' height='18' rx='3'/>"
        f"<text class='under' text-anchor='middle' y='3'>{text}</text></g>"
    )


def _record(marble: Marble, place: str) -> str:
    values = "; ".join(f"{name}: {value}" for name, value in (marble.values or {}).items())
    about = [values[:400], *([f"event time {format_instant(marble.time_us)}"] if marble.time_us is not None else [])]
    text = marble.text if len(marble.text) <= 4 else marble.text[:3] + "…"
    under = [
        *([marble.key[:9]] if marble.key and marble.key != marble.text else []),
        *([_clock(marble.time_us)] if marble.time_us is not None else []),
    ]
    fill = colour_of(marble.key) if marble.key is not None else "#57606a"
    lines = [
        f"<text class='under halo' text-anchor='middle' y='{RADIUS + 9 + 9 * line}'>{escape(words)}</text>"
        for line, words in enumerate(under)
    ]
    return (
        f"<g {place}><title>{escape(' · '.join(about))}</title><circle r='{RADIUS}' fill='{fill}'/>"
        f"<text class='inside' text-anchor='middle' y='4'>{escape(text)}</text>{''.join(lines)}</g>"
    )


def _box(box: _Box, scene: Scene) -> Iterator[str]:
    task, x = box.task, box.x
    kind = {"FAILED": " failed", "RUNNING": ""}.get(task.status, " away")
    yield (
        f"<rect class='box{kind}' x='{x:.0f}' y='{box.y:.0f}' width='{BOX_WIDTH}' height='{box.height:.0f}' rx='6'>"
        f"<title>{escape(task.name)}: {task.status.lower()}</title></rect>"
    )
    y = box.y + 17
    yield f"<text class='name' x='{x + 9:.0f}' y='{y:.0f}'>{escape(_cut(task.name, 20))}</text>"
    badge = _badge(task, scene)
    if badge:
        yield f"<text class='soft' text-anchor='end' x='{x + BOX_WIDTH - 8:.0f}' y='{y:.0f}'>{badge}</text>"
    lines: list[tuple[str, str | None]] = []
    if len(task.operators) > 1:
        lines.append((" → ".join(task.operators), None))
    lines += [(f"{what}: {value}", what) for what, value in task.state]
    if task.watermark_us is not None:
        lines.append((f"event time {_clock(task.watermark_us)}", None))
    keyed = {marble.key for channel in scene.channels for marble in channel.marbles}
    for text, key in lines:
        y += LINE
        left = x + 9
        if key is not None and (key in keyed or key not in ("offset", "committed")):
            yield f"<circle cx='{left + 4:.0f}' cy='{y - 4:.0f}' r='4' fill='{colour_of(key)}'/>"
            left += 12
        shown = escape(_cut(text, 27))
        yield f"<text x='{left:.0f}' y='{y:.0f}'>{shown}<title>{escape(text[:400])}</title></text>"


def _badge(task: TaskScene, scene: Scene) -> str:
    if task.status != "RUNNING":
        return task.status.lower()
    if not task.snapshot:
        return ""
    acknowledged = any(number == task.snapshot and task.name in names for number, names in scene.in_progress)
    return f"snapshot {task.snapshot}{' ✓' if acknowledged or task.snapshot <= scene.completed else ''}"


def _clock(us: int | None) -> str:
    text = format_instant(us)
    return "∞" if text == "end" else text if len(text) < 12 else text[11:]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
