"""A run's report: one self-contained HTML file, readable offline."""

from __future__ import annotations

from html import escape
from pathlib import Path

from workbench.api.picture import graph_svg
from workbench.api.status import Status, Table
from workbench.durations import format_instant
from workbench.plan.physical import PhysicalGraph
from workbench.telemetry.frames import Frame

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:14px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}}
body{{color:#222;background:#fff}}
@media (prefers-color-scheme:dark){{body{{color:#ddd;background:#181818}}}}
table{{border-collapse:collapse;font-size:13px}}</style>
<h1>{title}</h1>{body}</html>
"""


def write_report(path: Path, graph: PhysicalGraph, status: Status, frame: Frame | None) -> Path:
    """Write the report; every name in it is escaped. Returns its path."""
    parts = ["<h2>Status</h2>", status._repr_html_(), "<h2>Dataflow graph</h2>", graph_svg(graph, status["job"], frame)]
    if frame is not None:
        tasks = Table([{"task": task.name, "slot": task.slot, **task.metrics} for task in frame.tasks])
        checkpoints = Table(
            [
                {
                    "id": c.id,
                    "kind": c.kind,
                    "state": c.state,
                    "duration (ms)": c.duration_ms,
                    "size (bytes)": c.size_bytes,
                    "acknowledged": f"{c.acknowledged}/{c.total}",
                    "reason": c.reason,
                }
                for c in frame.checkpoints
            ]
        )
        events = Table([{"time": format_instant(e.time_us), "kind": e.kind, "what": e.text} for e in frame.events])
        for title, table in (("Tasks", tasks), ("Checkpoints", checkpoints), ("Events", events)):
            parts += [f"<h2>{title}</h2>", table._repr_html_() if table else "<p>none</p>"]
    title = escape(f"Job {status['job']}")
    path.write_text(_PAGE.format(title=title, body="".join(parts)), encoding="utf-8")
    return path
