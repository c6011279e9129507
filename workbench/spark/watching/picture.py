"""The picture of a watched query: HTML with inline drawings, without scripts; everything from outside is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from workbench.spark.watching.event_time import LEFT, event_time
from workbench.spark.watching.executors import ExecutorSeen, losses
from workbench.spark.watching.observation import PHASES, BatchSeen, SourceSeen, StateSeen

_COLOURS = dict(zip(PHASES, ("#7b61ff", "#b8b8c8", "#f2a33a", "#4f9d69", "#3f7fd6", "#d65f5f"), strict=True))
_SHOWN = 40
_BAR, _HEIGHT = 14, 110
_LETTERS = 26
_WIDE, _STEP = 196, 236
"""Of a box in the plan, in which 26 letters have room, and from one to the next."""
_STYLE = (
    "<style>.wbw{font:13px system-ui,sans-serif;max-width:900px;color:inherit}.wbw h4{margin:14px 0 4px}"
    ".wbw{margin-bottom:24px}.wbw table{border-collapse:collapse;font:inherit;margin:0;table-layout:auto}"
    ".wbw td,.wbw th{padding:2px 12px 2px 0;text-align:left;color:inherit;"
    "background:none}.wbw td:first-child,.wbw th:first-child{text-align:left!important}"
    ".wbw svg text{font:11px system-ui,sans-serif;fill:currentColor}"
    ".wbw .wide{overflow-x:auto}.wbw .error{border-left:4px solid #d65f5f;padding-left:8px}.wbw .note{opacity:.75}"
    "</style>"
)


def page(
    name: str,
    state: str,
    batches: Sequence[BatchSeen],
    sources: Sequence[SourceSeen],
    states: Sequence[StateSeen],
    sink: tuple[str, int],
    slow: str,
    error: str,
) -> str:
    """The whole picture.

    Args:
        name, state: of the query.
        batches: oldest first.
        sources, states: of the last batch.
        sink: its description, and the rows that it wrote in the last batch; -1: Spark does not count them.
        slow: the sentence on the slowest batch.
        error: why the query ended; empty: it did not fail.
    """
    parts = [_STYLE, f"<div class='wbw'><b>{escape(name)}</b>: {escape(state)}"]
    if error:
        parts.append(f"<p class='error'>{escape(error)}</p>")
    if not batches:
        return "".join([*parts, "<p class='note'>no batch has ended yet</p></div>"])
    parts += [
        "<h4>Plan</h4>",
        _graph(sources, states, sink),
        "<p class='note'>Spark counts rows at sources, state and sinks; it has no buffers and no load of subtasks."
        "</p><h4>Batches</h4>",
        _bars(batches),
        f"<p>{escape(slow)}</p>",
        "<h4>Sources</h4>",
        _table(
            ("source", "rows", "rows/s", "offset", "newest offset", "lag"),
            [
                (
                    _named(s.name),
                    f"{s.rows:,}",
                    _rate(s.per_second),
                    s.offset,
                    s.latest,
                    "" if s.lag is None else f"{s.lag:,}",
                )
                for s in sources
            ],
        ),
        "<h4>Event time</h4>",
        event_time(batches[-_SHOWN:]),
    ]
    if states:
        rows = [
            (
                s.name,
                f"{s.rows:,}",
                f"{s.updated:,}",
                f"{s.removed:,}",
                f"{s.dropped:,}",
                f"{s.memory_bytes / 1e6:,.1f} MB",
                f"{s.commit_ms:,} ms",
            )
            for s in states
        ]
        head = ("state", "rows", "updated", "removed", "dropped as late", "memory", "commit")
        parts += ["<h4>State stores</h4>", _table(head, rows)]
    return "".join([*parts, "</div>"])


def cluster(executors: Sequence[ExecutorSeen]) -> str:
    """The executors as a table, and the fate of lost ones; empty if there are none."""
    if not executors:
        return ""
    rows = [
        (each.number, each.host, str(each.cores), str(each.failed_tasks), "active" if each.active else "ended")
        for each in executors
    ]
    lost = "".join(f"<p class='error'>{escape(sentence)}</p>" for sentence in losses(executors))
    head = ("executor", "host", "cores", "failed tasks", "state")
    return f"{_STYLE}<div class='wbw'><h4>Executors</h4>{lost}{_table(head, rows)}</div>"


def _graph(sources: Sequence[SourceSeen], states: Sequence[StateSeen], sink: tuple[str, int]) -> str:
    """Sources, stateful operators in the order of the data, and the sink, from left to right."""
    left = [(_short(s.name), f"{s.rows:,} rows, {_rate(s.per_second)}/s") for s in sources]
    chain = [(_short(s.name), f"{s.rows:,} in state") for s in reversed(states)]
    written = "rows not counted" if sink[1] < 0 else f"{sink[1]:,} rows"
    chain.append((_short(sink[0]), written))
    rows = max(len(left), 1)
    height, width = rows * 58, _STEP * (1 + len(chain))
    middle = height / 2
    drawn = [f"<div class='wide'><svg width='{width}' height='{height}' role='img' aria-label='plan'>"]
    for at, (title, below) in enumerate(left):
        y = at * 58 + 29
        drawn.append(_box(2, y, title, below))
        drawn.append(f"<line x1='{_WIDE + 2}' y1='{y}' x2='{_STEP}' y2='{middle}' stroke='currentColor'/>")
    for at, (title, below) in enumerate(chain):
        x = _STEP * (at + 1)
        drawn.append(_box(x, middle, title, below))
        if at:
            drawn.append(f"<line x1='{x + _WIDE - _STEP}' y1='{middle}' x2='{x}' y2='{middle}' stroke='currentColor'/>")
    return "".join([*drawn, "</svg></div>"])


def _box(x: float, y: float, title: str, below: str) -> str:
    return (
        f"<rect x='{x}' y='{y - 22}' width='{_WIDE}' height='44' rx='5' fill='none' stroke='#5db1ff' stroke-width='2'/>"
        f"<text x='{x + 8}' y='{y - 4}' font-weight='bold'>{escape(title)}</text>"
        f"<text x='{x + 8}' y='{y + 12}'>{escape(below)}</text>"
    )


def _bars(batches: Sequence[BatchSeen]) -> str:
    shown = batches[-_SHOWN:]
    most = max(max((batch.duration_ms for batch in shown), default=1), 1)
    width = LEFT + 2 + len(shown) * _BAR
    drawn = [
        "<div class='wide'>",
        f"<svg width='{max(width, 240)}' height='{_HEIGHT + 18}' role='img' aria-label='batch durations'>",
    ]
    drawn.append(f"<text x='0' y='10'>{most:,} ms</text><text x='0' y='{_HEIGHT}'>0</text>")
    for at, batch in enumerate(shown):
        x, y = LEFT + at * _BAR, float(_HEIGHT)
        for phase, spent in batch.phases_ms.items():
            tall = spent / most * (_HEIGHT - 4)
            y -= tall
            drawn.append(
                f"<rect x='{x}' y='{y:.1f}' width='{_BAR - 3}' height='{tall:.1f}' fill='{_COLOURS[phase]}'>"
                f"<title>batch {batch.number}, {phase}: {spent} ms of {batch.duration_ms}; {batch.rows:,} rows</title>"
                "</rect>"
            )
    first, last = shown[0].number, shown[-1].number
    drawn.append(f"<text x='{LEFT}' y='{_HEIGHT + 14}'>batch {first} to {last}</text></svg></div><div>")
    drawn += [
        f"<span style='margin-right:12px'><b style='color:{colour}'>■</b> {phase}</span>"
        for phase, colour in _COLOURS.items()
    ]
    return "".join([*drawn, "</div>"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(_cell(text) for text in row) + "</tr>" for row in rows)
    return f"<div class='wide'><table><tr>{top}</tr>{body}</table></div>"


def _cell(text: str) -> str:
    """All of the text where a hand rests."""
    brief = _cut(text)
    return f"<td>{escape(brief)}</td>" if brief == text else f"<td title='{escape(text)}'>{escape(brief)}</td>"


def _rate(per_second: float | None) -> str:
    return "?" if per_second is None else f"{per_second:,.0f}"


def _short(text: str) -> str:
    """The name in a description such as ``TextSocketV2[host: localhost]``, as long as a box is wide."""
    name = _named(text).partition("[")[0] or "source"
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"


def _named(text: str) -> str:
    """A description without the package of its class, and without what every operator's class ends with."""
    name, bracket, rest = text.partition("[")
    name = name.partition("@")[0].rpartition(".")[2].removesuffix("Exec")
    return "Python source" if name.startswith("PythonMicroBatchStream") else name + bracket + rest


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
