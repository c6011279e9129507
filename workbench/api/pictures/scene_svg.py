"""A scene as a picture: tasks as boxes with their state, channels with every record on them as a marble (F2-9 to
F2-15)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from itertools import groupby
from textwrap import wrap

from workbench.api.pictures.marbles import HELD, TYPE, Ends, brief, colour_of, cut, marbles_svg
from workbench.telemetry.scene import ChannelScene, Scene, TaskScene

BOX_WIDTH = 190
LETTERS = 20
"""What a line of a box holds."""
LINES = 4
"""What a longer text is broken into at most: the end of the others is in their title."""
GAP, NARROW_GAP = 320, 196
"""Between two columns; the narrow one where there are more, so that three of them are at most as wide as a projector's
picture of 1024 pixels, and their letters are not made smaller."""
LINE = 18
PORT = 58
"""Space for one channel at the side of a box."""
BETWEEN = 22
KNEE = 40
"""The width of the way down of a channel that passes other columns."""
MARGIN = 12
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"

INK = "var(--wb-ink,var(--jp-ui-font-color1,#1f2328))"
WARN = "var(--wb-warn,var(--jp-warn-color1,#8a5a00))"
BAD = "var(--wb-bad,var(--jp-error-color1,#c21f2a))"
GOOD = "var(--wb-good,var(--jp-success-color1,#1a7f37))"
_STYLE = f"""
.wb-scene{{max-width:100%;height:auto;font-family:{FONT};color:{INK}}}
.wb-scene text{{fill:currentColor;font-size:{TYPE}px}}
.wb-scene .name{{font-weight:650}} .wb-scene .soft{{opacity:.75}}
.wb-scene .box{{fill:var(--wb-box,var(--jp-layout-color2,#f6f8fa));stroke:currentColor;stroke-opacity:.55}}
.wb-scene .of{{stroke:currentColor;stroke-opacity:.6}}
.wb-scene .box.away{{stroke-dasharray:5 4;fill:none}} .wb-scene .box.failed{{stroke:{BAD};stroke-width:2.5}}
.wb-scene .pipe{{stroke:currentColor;stroke-opacity:.28;stroke-width:2}}
.wb-scene .pipe.held{{stroke:{WARN};stroke-opacity:1;stroke-dasharray:6 4}}
.wb-scene .inside{{fill:#fff;font-weight:650}} .wb-scene .held-text{{fill:{WARN};font-weight:650}}
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


def scene_svg(scene: Scene) -> str:
    """The picture as text; all text from data or users is escaped."""
    boxes = _places(scene)
    width = max(box.x for box in boxes.values()) + BOX_WIDTH + MARGIN
    height = max(box.y + box.height for box in boxes.values()) + MARGIN
    label = escape(f"step {scene.step} of {scene.job}: {scene.words}", quote=True)
    parts = [
        f"<svg class='wb-scene' role='img' aria-label='{label}' xmlns='http://www.w3.org/2000/svg' "
        f"width='{width:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' "
        f"style='--natural:{width:.0f}px;--high:{height:.0f}px'>"
        f"<style>{_STYLE}</style>"
    ]
    lines = list(_lines(scene, boxes))
    for channel, ends in lines:
        parts.append(_pipe(channel, ends))
    parts += marbles_svg(lines)
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
            30 + LINE * sum(len(lines) for lines, *_ in _held(task)) + _copy_height(task),
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
    gap = GAP if len(columns) < 3 else NARROW_GAP
    tallest = max(_total(column, heights) for column in beside)
    boxes = {}
    for place, column in enumerate(columns):
        x = MARGIN + place * (BOX_WIDTH + gap)
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


def _lines(scene: Scene, boxes: dict[str, _Box]) -> Iterator[tuple[ChannelScene, Ends]]:
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
            yield channel, Ends(x1 + KNEE, y2, target.x, y2, (x1, y1))
        else:
            yield channel, Ends(x1, y1, target.x, y2)


def _passed(channel: ChannelScene, boxes: dict[str, _Box]) -> int:
    """How many columns a channel passes between its tasks."""
    return boxes[channel.target].place - boxes[channel.source].place - 1


# drawing ---------------------------------------------------------------------------------------------------------


def _pipe(channel: ChannelScene, ends: Ends) -> str:
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
        parts.append(f"<text class='held-text halo' text-anchor='end' x='{x:.0f}' y='{y:.0f}'>{HELD}</text>")
    return "".join(parts)


def _box(box: _Box, scene: Scene) -> Iterator[str]:
    task, x = box.task, box.x
    kind = {"FAILED": " failed", "RUNNING": ""}.get(task.status, " away")
    yield (
        f"<rect class='box{kind}' x='{x:.0f}' y='{box.y:.0f}' width='{BOX_WIDTH}' height='{box.height:.0f}' rx='6'>"
        f"<title>{escape(task.name)}: {task.status.lower()}</title></rect>"
    )
    y = box.y + 20
    status = "" if task.status == "RUNNING" else task.status.lower()
    name = escape(cut(task.name, LETTERS - 9 if status else LETTERS))
    yield f"<text class='name' x='{x + 9:.0f}' y='{y:.0f}'>{name}<title>{escape(task.name)}</title></text>"
    if status:
        yield f"<text class='soft' text-anchor='end' x='{x + BOX_WIDTH - 8:.0f}' y='{y:.0f}'>{status}</text>"
    keyed = {marble.key for channel in scene.channels for marble in channel.marbles}
    for lines, text, key in _held(task):
        left = x + 9
        if key is not None and (key in keyed or key not in ("offset", "committed")):
            yield f"<circle class='of' cx='{left + 5:.0f}' cy='{y + LINE - 5:.0f}' r='5' fill='{colour_of(key)}'/>"
            left += 14
        for line in lines:
            y += LINE
            yield f"<text x='{left:.0f}' y='{y:.0f}'>{escape(line)}<title>{escape(text[:400])}</title></text>"
    yield from _copy(task, scene, x, y + 10)


def _held(task: TaskScene) -> list[tuple[list[str], str, str | None]]:
    """What a task consists of and holds: the lines, the whole text, and the key whose colour it has."""
    texts: list[tuple[str, str | None]] = []
    if len(task.operators) > 1:
        texts.append((" → ".join(task.operators), None))
    texts += [(f"{what}: {value}", what) for what, value in task.state]
    texts += [(f"{what}{': ' if value else ''}{value}", None) for what, value in task.beside]
    if task.watermark_us is not None:
        texts.append((f"event time {brief(task.watermark_us)}", None))
    return [(wrap(text, LETTERS, max_lines=LINES, placeholder="…"), text, key) for text, key in texts]


def _copy_height(task: TaskScene) -> int:
    return 16 + LINE * (1 + len(task.copied)) if task.snapshot else 0


def _copy(task: TaskScene, scene: Scene, x: float, top: float) -> Iterator[str]:
    """The task's last snapshot and its content: the state at the barrier, without later records."""
    if not task.snapshot:
        return
    acknowledged = any(number == task.snapshot and task.name in names for number, names in scene.in_progress)
    is_kept = acknowledged or task.snapshot <= scene.completed
    said = ", ".join(f"{what}: {value}" for what, value in task.copied) or "no state"
    about = f"snapshot {task.snapshot} of {task.name} contains {said}" + ("" if is_kept else "; not yet acknowledged")
    left, height = x + 6, _copy_height(task) - 10
    yield (
        f"<g class='copy{'' if is_kept else ' open'}' tabindex='0' role='img' aria-label='{escape(about, quote=True)}'>"
        f"<title>{escape(about)}</title>"
        f"<rect x='{left:.0f}' y='{top:.0f}' width='{BOX_WIDTH - 12}' height='{height:.0f}' rx='4'/>"
    )
    lines = [f"snapshot {task.snapshot}{' ✓' if is_kept else ''}", *(f"{what}: {value}" for what, value in task.copied)]
    for place, line in enumerate(lines):
        style = "name" if not place else "soft"
        y = top + 15 + LINE * place
        yield f"<text class='{style}' x='{left + 8:.0f}' y='{y:.0f}'>{escape(cut(line, LETTERS - 1))}</text>"
    yield "</g>"
