"""A scene as a picture: tasks as boxes with their state, channels with every record on them as a marble (F2-9 to
F2-15)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
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
SPACING = 48
"""The distance of marbles: the width of what stands below one."""
LETTER = 5.0
"""The width of a letter below a marble."""
RADIUS = 12
CIRCLED = 3
"""A record with more letters than these is as wide as they need, up to `WIDEST`."""
WIDEST = 6
WIDE_LETTER = 6.2
"""The width of a letter in such a record."""
BETWEEN = 22
KNEE = 40
"""The width of the way down of a channel that passes other columns."""
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
.wb-scene .inside.wide{{font-size:10px}}
.wb-scene .held-text{{fill:{WARN};font-weight:650;font-size:10px}}
.wb-scene .barrier{{fill:{BAD}}} .wb-scene .mark{{stroke:{GOOD};stroke-width:2.5;stroke-dasharray:4 2}}
.wb-scene .copy rect{{fill:var(--wb-card,var(--jp-layout-color0,#fff));stroke:{GOOD};stroke-dasharray:4 3}}
.wb-scene .copy.open rect{{stroke:{WARN}}} .wb-scene .copy:hover rect,.wb-scene .copy:focus rect{{stroke-width:3;
stroke-dasharray:none}} .wb-scene .copy:focus{{outline:none}}
.wb-scene .halo{{paint-order:stroke;stroke:var(--wb-card,var(--jp-layout-color0,#fff));stroke-width:3px}}
"""


@dataclass(frozen=True, slots=True)
class _Box:
    task: TaskScene
    x: float
    y: float
    height: float
    place: int


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
        f"width='{width:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' style='--natural:{width:.0f}px'>"
        f"<style>{_STYLE}</style>"
    ]
    lines = list(_lines(scene, boxes))
    for channel, ends in lines:
        parts.append(_pipe(channel, ends))
    parts += _marbles(lines)
    for box in boxes.values():
        parts += _box(box, scene)
    return "".join([*parts, "</svg>"])


# places ----------------------------------------------------------------------------------------------------------


def _places(scene: Scene) -> dict[str, _Box]:
    """Columns from left to right, each with its tasks from top to bottom, all columns centred.

    What receives from a column that is not next to its own, such as an acker, stands below all others, so that these
    channels do not lead through boxes.
    """
    ins: dict[str, int] = {}
    outs: dict[str, int] = {}
    for channel in scene.channels:
        ins[channel.target] = ins.get(channel.target, 0) + 1
        outs[channel.source] = outs.get(channel.source, 0) + 1
    heights = {
        task.name: max(
            26 + LINE * (len(task.state) + len(task.beside) + 1 + (len(task.operators) > 1)) + _copy_height(task),
            PORT * ins.get(task.name, 0),
            PORT * outs.get(task.name, 0),
        )
        for task in scene.tasks
    }
    ordered = sorted(scene.tasks, key=lambda task: (task.x, task.y))  # stable: subtasks keep their order
    columns = [list(column) for _, column in groupby(ordered, key=lambda task: task.x)]
    places = {task.name: place for place, column in enumerate(columns) for task in column}
    below = {
        channel.target
        for channel in scene.channels
        if places[channel.target] - places[channel.source] > 1 and channel.target not in outs
    }
    beside = [[task for task in column if task.name not in below] for column in columns]
    tallest = max(_total(column, heights) for column in beside)
    boxes = {}
    for place, column in enumerate(columns):
        x = MARGIN + place * (BOX_WIDTH + GAP)
        y = MARGIN + (tallest - _total(beside[place], heights)) / 2
        y_below = MARGIN + tallest + BETWEEN
        for task in column:
            if task.name in below:
                boxes[task.name] = _Box(task, x, y_below, heights[task.name], place)
                y_below += heights[task.name] + BETWEEN
            else:
                boxes[task.name] = _Box(task, x, y, heights[task.name], place)
                y += heights[task.name] + BETWEEN
    return boxes


def _total(column: list[TaskScene], heights: dict[str, int]) -> float:
    return sum(heights[task.name] for task in column) + BETWEEN * max(0, len(column) - 1)


@dataclass(frozen=True, slots=True)
class _Ends:
    """A channel's line, from the sender to the receiver, and the knee before it if it passes other columns."""

    x1: float
    y1: float
    x2: float
    y2: float
    knee: tuple[float, float] | None = None

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
        into = sorted(coming[channel.target], key=lambda one: (_passed(one, boxes), boxes[one.source].y))
        y1 = source.y + source.height * (out.index(channel) + 0.5) / len(out)
        y2 = target.y + target.height * (into.index(channel) + 0.5) / len(into)
        x1 = source.x + BOX_WIDTH
        if _passed(channel, boxes) and target.y > source.y + source.height:
            yield channel, _Ends(x1 + KNEE, y2, target.x, y2, (x1, y1))
        else:
            yield channel, _Ends(x1, y1, target.x, y2)


def _passed(channel: ChannelScene, boxes: dict[str, _Box]) -> int:
    """How many columns a channel passes between its tasks."""
    return boxes[channel.target].place - boxes[channel.source].place - 1


# drawing ---------------------------------------------------------------------------------------------------------


def _pipe(channel: ChannelScene, ends: _Ends) -> str:
    held = " held" if channel.blocked else ""
    tip = f"{channel.source} to {channel.target}" + (", held back by alignment" if channel.blocked else "")
    parts = [
        f"<line class='pipe{held}' x1='{ends.x1:.0f}' y1='{ends.y1:.0f}' x2='{ends.x2:.0f}' y2='{ends.y2:.0f}'>"
        f"<title>{escape(tip)}</title></line>"
    ]
    if ends.knee is not None:
        x, y = ends.knee
        parts.append(f"<line class='pipe{held}' x1='{x:.0f}' y1='{y:.0f}' x2='{ends.x1:.0f}' y2='{ends.y1:.0f}'/>")
    if channel.blocked:
        x, y = ends.x2 - 4, ends.y2 - 5
        parts.append(f"<text class='held-text halo' text-anchor='end' x='{x:.0f}' y='{y:.0f}'>‖ held back</text>")
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class _Area:
    """Where something is written or drawn."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Area) -> bool:
        """Whether they overlap."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)


def _areas(marble: Marble, x: float, y: float) -> list[_Area]:
    """Where a marble is, and what stands above or below it."""
    if marble.kind == "record":
        lines = _under(marble)
        half, below = _half(marble), max([0.0, *(len(line) * LETTER / 2 for line in lines)])
        return [
            _Area(x - half, y - RADIUS, x + half, y + RADIUS),
            _Area(x - below, y + RADIUS, x + below, y + RADIUS + 2 + 9 * len(lines)),
        ]
    above = len(_watermark(marble)) * LETTER / 2 if marble.kind == "watermark" else 19.0
    return [_Area(x - 16, y - 16, x + 16, y + 16), _Area(x - above, y - 29, x + above, y - 16)]


def _half(marble: Marble) -> float:
    """Half the width of a record: that of a circle, unless its text needs more."""
    letters = min(len(marble.text), WIDEST)
    return float(RADIUS) if letters <= CIRCLED else (letters * WIDE_LETTER + 8) / 2


def _watermark(marble: Marble) -> str:
    return f"W {_brief(marble.time_us)}"


def _marbles(lines: Sequence[tuple[ChannelScene, _Ends]]) -> Iterator[str]:
    """The marbles from the receivers backwards; those that find no space, or would cover another, are counted."""
    waiting = {}
    for channel, ends in lines:
        first = SPACING * (2.6 if channel.blocked else 0.7)
        room = max(1, int((ends.length - first - 16) // SPACING) + 1)
        fits = len(channel.marbles) + channel.more <= room
        waiting[id(channel)] = (first, list(channel.marbles if fits else channel.marbles[: room - 1]))
    taken: list[_Area] = []
    shown = {id(channel): 0 for channel, _ in lines}
    for place in range(max((len(channel.marbles) for channel, _ in lines), default=0)):
        for channel, ends in lines:
            first, marbles = waiting[id(channel)]
            if place != shown[id(channel)] or place >= len(marbles):
                continue
            x, y = ends.before_end(first + place * SPACING)
            areas = _areas(marbles[place], x, y)
            if place and any(area.meets(other) for area in areas for other in taken):
                continue
            taken += areas
            shown[id(channel)] += 1
            yield _marble(marbles[place], x, y, ends, channel)
    for channel, ends in lines:
        first, _ = waiting[id(channel)]
        drawn = shown[id(channel)]
        rest = len(channel.marbles) + channel.more - drawn
        if rest:
            x, y = ends.before_end(min(first + drawn * SPACING, ends.length - 10) - 8)
            yield f"<text class='name halo' text-anchor='middle' x='{x:.0f}' y='{y + 4:.0f}'>+{rest}</text>"


def _glides(marble: Marble, x: float, y: float, ends: _Ends, channel: ChannelScene) -> str:
    """Where a marble is, and what the page needs to let it glide there: who it is, and where its channel begins and
    ends."""
    who = f"{marble.kind} {marble.number if marble.kind == 'record' else marble.text}"
    name = escape(f"{channel.source} {channel.target} {who}", quote=True)
    way = f"{ends.x1:.0f} {ends.y1:.0f} {ends.x2:.0f} {ends.y2:.0f}"
    return f"transform='translate({x:.1f} {y:.1f})' data-glides='{name}' data-way='{way}'"


def _marble(marble: Marble, x: float, y: float, ends: _Ends, channel: ChannelScene) -> str:
    place, angle = _glides(marble, x, y, ends, channel), ends.angle
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
            f"<text class='under halo' text-anchor='middle' y='-18'>{_watermark(marble)}</text></g>"
        )
    if marble.kind == "other":
        return f"<circle {place} r='3' fill='currentColor' opacity='.5'><title>{text}</title></circle>"
    return (
        f"<g {place}><rect class='box' x='-15' y='-9' width='30' height='18' rx='3'/>"
        f"<text class='under' text-anchor='middle' y='3'>{text}</text></g>"
    )


def _record(marble: Marble, place: str) -> str:
    values = "; ".join(f"{name}: {value}" for name, value in (marble.values or {}).items())
    about = [
        values[:400],
        *filter(None, [marble.about]),
        *([f"event time {format_instant(marble.time_us)}"] if marble.time_us is not None else []),
    ]
    half = _half(marble)
    shape = f"<circle r='{RADIUS}'" if half == RADIUS else (
        f"<rect x='{-half:.1f}' y='{-RADIUS}' width='{2 * half:.1f}' height='{2 * RADIUS}' rx='{RADIUS}'"
    )  # fmt: skip
    fill = colour_of(marble.key) if marble.key is not None else "#57606a"
    lines = [
        f"<text class='under halo' text-anchor='middle' y='{RADIUS + 9 + 9 * line}'>{escape(words)}</text>"
        for line, words in enumerate(_under(marble))
    ]
    return (
        f"<g {place}><title>{escape(' · '.join(about))}</title>{shape} fill='{fill}'/>"
        f"<text class='inside{'' if half == RADIUS else ' wide'}' text-anchor='middle' y='4'>"
        f"{escape(_cut(marble.text, WIDEST))}</text>{''.join(lines)}</g>"
    )


def _under(marble: Marble) -> list[str]:
    """What stands below a record: its key, its root or id, and its event time, as far as there is space."""
    key = [_cut(marble.key, 9)] if marble.key and marble.key != marble.text else []
    key += [_cut(marble.about, 9)] if marble.about else []
    return key + ([_brief(marble.time_us)] if marble.time_us is not None else [])


def _brief(us: int | None) -> str:
    """The time of day; with parts of a second in the place of the hours."""
    text = _clock(us)
    return text if len(text) <= 9 else f"{text[3:8]}.{text[9:12]}" if text[8:9] == "." else _cut(text, 9)


def _box(box: _Box, scene: Scene) -> Iterator[str]:
    task, x = box.task, box.x
    kind = {"FAILED": " failed", "RUNNING": ""}.get(task.status, " away")
    yield (
        f"<rect class='box{kind}' x='{x:.0f}' y='{box.y:.0f}' width='{BOX_WIDTH}' height='{box.height:.0f}' rx='6'>"
        f"<title>{escape(task.name)}: {task.status.lower()}</title></rect>"
    )
    y = box.y + 17
    status = "" if task.status == "RUNNING" else task.status.lower()
    name = escape(_cut(task.name, 16 if status else 25))
    yield f"<text class='name' x='{x + 9:.0f}' y='{y:.0f}'>{name}<title>{escape(task.name)}</title></text>"
    if status:
        yield f"<text class='soft' text-anchor='end' x='{x + BOX_WIDTH - 8:.0f}' y='{y:.0f}'>{status}</text>"
    lines: list[tuple[str, str | None]] = []
    if len(task.operators) > 1:
        lines.append((" → ".join(task.operators), None))
    lines += [(f"{what}: {value}", what) for what, value in task.state]
    lines += [(f"{what}{': ' if value else ''}{value}", None) for what, value in task.beside]
    if task.watermark_us is not None:
        lines.append((f"event time {_clock(task.watermark_us)}", None))
    keyed = {marble.key for channel in scene.channels for marble in channel.marbles}
    for text, key in lines:
        y += LINE
        left = x + 9
        if key is not None and (key in keyed or key not in ("offset", "committed")):
            yield f"<circle cx='{left + 4:.0f}' cy='{y - 4:.0f}' r='4' fill='{colour_of(key)}'/>"
            left += 12
        shown = escape(_cut(text, 25))
        yield f"<text x='{left:.0f}' y='{y:.0f}'>{shown}<title>{escape(text[:400])}</title></text>"
    yield from _copy(task, scene, x, y + 10)


def _copy_height(task: TaskScene) -> int:
    return 12 + LINE * (1 + len(task.copied)) if task.snapshot else 0


def _copy(task: TaskScene, scene: Scene, x: float, top: float) -> Iterator[str]:
    """The task's last snapshot, with what it contains: the state as it was at the barrier, whatever came since."""
    if not task.snapshot:
        return
    acknowledged = any(number == task.snapshot and task.name in names for number, names in scene.in_progress)
    is_kept = acknowledged or task.snapshot <= scene.completed
    said = ", ".join(f"{what}: {value}" for what, value in task.copied) or "no state"
    about = f"snapshot {task.snapshot} of {task.name} contains {said}" + ("" if is_kept else "; not yet acknowledged")
    left, height = x + 6, _copy_height(task) - 6
    yield (
        f"<g class='copy{'' if is_kept else ' open'}' tabindex='0' role='img' aria-label='{escape(about, quote=True)}'>"
        f"<title>{escape(about)}</title>"
        f"<rect x='{left:.0f}' y='{top:.0f}' width='{BOX_WIDTH - 12}' height='{height:.0f}' rx='4'/>"
    )
    lines = [f"snapshot {task.snapshot}{' ✓' if is_kept else ''}", *(f"{what}: {value}" for what, value in task.copied)]
    for place, line in enumerate(lines):
        style = "name" if not place else "soft"
        y = top + 13 + LINE * place
        yield f"<text class='{style}' x='{left + 8:.0f}' y='{y:.0f}'>{escape(_cut(line, 25))}</text>"
    yield "</g>"


def _clock(us: int | None) -> str:
    """The time of day, to the millisecond."""
    text = format_instant(us)
    return "∞" if text == "end" else text if len(text) < 12 else text[11:23]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
