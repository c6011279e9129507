"""A run's report: one HTML file that needs no network, with the views of the dashboard and a slider over moments of the
run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bokeh.document import Document
from panel.io.model import diff

from workbench.api.pictures.status import Table
from workbench.dashboard.charts.static import callback
from workbench.dashboard.shown.playback import PlaybackView
from workbench.dashboard.shown.saved_page import write_page
from workbench.durations import format_instant
from workbench.telemetry.frames import Frame
from workbench.telemetry.whole_file import replaced

MOMENTS = 40
"""The maximum number of moments in a report; a recording has all frames."""


class _Recorded:
    def __init__(self, name: str, frames: tuple[Frame, ...]) -> None:
        self.name, self.frames = name, frames


def write_report(path: Path, name: str, frames: Sequence[Frame]) -> Path:
    """Write the report; every name in it is escaped.

    Args:
        path: of the HTML file; an existing one is replaced.
        name: of the job.
        frames: of the run, at least one.

    Returns:
        The path.
    """
    with replaced(path) as draft:
        moments = chosen(frames)
        view = PlaybackView(_Recorded(name, tuple(frames)), moments, hears=False)
        view.show_moment(len(moments) - 1)
        back, forth = _patches(view, view.document())
        view.slider.js_on_change("value", callback("showMoment", root=view.root, back=back, forth=forth, state={}))
        write_page(draft, view, f"Job {name}", "report", job=name, tables=_tables(frames))
    return path


def chosen(frames: Sequence[Frame], most: int = MOMENTS) -> tuple[Frame, ...]:
    """A limited number of the frames, evenly spaced, including the first and the last."""
    if len(frames) <= most:
        return tuple(frames)
    return tuple(frames[place * (len(frames) - 1) // (most - 1)] for place in range(most))


def _patches(view: PlaybackView, document: Document) -> tuple[list[str], list[str]]:
    """The changes on the page from each moment to the previous one, and from the previous one to it.

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


def _taken(document: Document) -> str:
    """The collected changes, as a page reads them."""
    message = diff(document, binary=False)
    return "" if message is None else str(message.content_json)


def _tables(frames: Sequence[Frame]) -> dict[str, str]:
    """Settings, checkpoints, tasks and events as plain tables, for searches and screen readers."""
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
    return {title: Table(rows)._repr_html_() if rows else "<p>none</p>" for title, rows in parts.items()}
