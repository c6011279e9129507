"""A run's report: one HTML file that needs no network, with the views of the dashboard and a slider over moments of the
run."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from bokeh.embed import file_html
from bokeh.models import CustomJS
from bokeh.resources import INLINE
from panel.io.model import diff

from workbench.api.pictures.status import Table
from workbench.dashboard.charts.theme import PAGE_STYLE
from workbench.dashboard.shown.playback import PlaybackView
from workbench.dashboard.shown.show import PANELS_SCRIPT
from workbench.durations import format_instant
from workbench.telemetry.frames import Frame
from workbench.telemetry.whole_file import replaced

MOMENTS = 40
"""So many moments can be looked at in a report; a recording has all frames."""

_STYLE = """<style>
body{font:14px/1.5 system-ui,sans-serif;max-width:1500px;margin:0 auto;padding:0 12px}
section{overflow-x:auto} section table{border-collapse:collapse;font-size:13px}
section td,section th{text-align:left;padding:2px 14px 2px 0;border-bottom:1px solid #8884}
</style>"""

_TEMPLATE = """
{% block preamble %}{{ ground | safe }}{% endblock %}
{% block contents %}{{ about | safe }}{{ super() }}{{ tables | safe }}{% endblock %}
"""

_SCRUB = """
if (state.at === undefined) state.at = forth.length - 1
const apply = (patch) => { if (patch) root.document.apply_json_patch(JSON.parse(patch)) }
while (state.at > cb_obj.value) { apply(back[state.at]); state.at -= 1 }
while (state.at < cb_obj.value) { state.at += 1; apply(forth[state.at]) }
"""


class _Recorded:
    def __init__(self, name: str, frames: tuple[Frame, ...]) -> None:
        self.name, self.frames = name, frames


def write_report(path: Path, name: str, frames: Sequence[Frame]) -> Path:
    """Write the report; every name in it is escaped.

    Args:
        path: of the HTML file; one that exists is replaced.
        name: of the job.
        frames: of the run, at least one.

    Returns:
        The path.
    """
    moments = chosen(frames)
    view = PlaybackView(_Recorded(name, tuple(frames)), moments, hears=False)
    view.show_moment(len(moments) - 1)
    document = view.document()
    back, forth = _patches(view, document)
    view.slider.js_on_change(
        "value", CustomJS(args={"root": view.root, "back": back, "forth": forth, "state": {}}, code=_SCRUB)
    )
    document.js_on_event("document_ready", view.script)
    html = file_html(
        document,
        INLINE,
        title=f"Job {name}",
        template=_TEMPLATE,
        template_variables={
            "ground": PAGE_STYLE,
            "about": f"{_STYLE}<h1>Job {escape(name)}</h1>",
            "tables": _tables(frames),
        },
        suppress_callback_warning=True,
    )
    with replaced(path) as draft:
        draft.write_text(PANELS_SCRIPT.sub("", html), encoding="utf-8")
    return path


def chosen(frames: Sequence[Frame], most: int = MOMENTS) -> tuple[Frame, ...]:
    """At most so many of the frames, evenly spaced, the first and the last among them."""
    if len(frames) <= most:
        return tuple(frames)
    return tuple(frames[place * (len(frames) - 1) // (most - 1)] for place in range(most))


def _patches(view: PlaybackView, document: Any) -> tuple[list[str], list[str]]:
    """What changes on the page from each moment to the one before it, and to each from the one before it.

    The view is drawn backwards and forwards once, so that the page can go both ways without a kernel.
    """
    count = len(view.moments)
    back, forth = [""] * count, [""] * count
    document.hold("collect")
    for place in range(count - 1, 0, -1):
        view.show_moment(place - 1)
        back[place] = _taken(document)
    for place in range(1, count):
        view.show_moment(place)
        forth[place] = _taken(document)
    document.unhold()
    return back, forth


def _taken(document: Any) -> str:
    """The changes that have gathered, as a page reads them."""
    message = diff(document, binary=False)
    return "" if message is None else str(message.content_json)


def _tables(frames: Sequence[Frame]) -> str:
    """Settings, checkpoints, tasks and events as plain tables: what a search finds and a screen reader reads."""
    last = frames[-1]
    events = {event: None for frame in frames for event in frame.events}
    checkpoints = {one.id: one for frame in frames for one in frame.checkpoints}
    parts: dict[str, list[dict[str, Any]]] = {
        "Settings": [{"setting": key, "value": value} for key, value in last.settings.items()],
        "Job": [{"metric": key, "value": value} for key, value in last.metrics.items()],
        "Tasks": [{"task": task.name, "slot": task.slot, "state": task.state, **task.metrics} for task in last.tasks],
        "Checkpoints": [
            {
                "id": one.id,
                "kind": one.kind,
                "state": one.state,
                "triggered": format_instant(one.triggered_us),
                "acknowledged": f"{one.acknowledged}/{one.total}",
                "latest acknowledgement": format_instant(one.latest_acknowledgement_us),
                "end to end duration (ms)": one.end_to_end_ms,
                "checkpointed data size (bytes)": one.size_bytes,
                "full checkpoint data size (bytes)": one.full_size_bytes,
                "processed in-flight data (bytes)": one.processed_bytes,
                "persisted in-flight data (bytes)": one.persisted_bytes,
                "path": one.path,
                "reason": one.reason,
            }
            for one in checkpoints.values()
        ],
        "Subtasks of checkpoints": [
            {
                "checkpoint": one.id,
                "subtask": task.task,
                "acknowledged": task.acknowledged,
                "end to end duration (ms)": task.end_to_end_ms,
                "checkpointed data size (bytes)": task.size_bytes,
                "full checkpoint data size (bytes)": task.full_size_bytes,
                "sync duration (ms)": task.sync_ms,
                "async duration (ms)": task.async_ms,
                "processed data (bytes)": task.processed_bytes,
                "persisted data (bytes)": task.persisted_bytes,
                "alignment duration (ms)": task.alignment_ms,
                "start delay (ms)": task.start_delay_ms,
                "unaligned": task.unaligned,
            }
            for one in last.checkpoints
            for task in one.subtasks
        ],
        "Events": [{"time": format_instant(one.time_us), "kind": one.kind, "what": one.text} for one in events],
    }
    return "".join(
        f"<section><h2>{title}</h2>{Table(rows)._repr_html_() if rows else '<p>none</p>'}</section>"
        for title, rows in parts.items()
    )
