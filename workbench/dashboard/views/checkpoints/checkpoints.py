"""Checkpoints in words: the one in progress and who is missing, and the history as a chart."""

from __future__ import annotations

from typing import Any

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import bar
from workbench.dashboard.charts.sources import by_column, number_of
from workbench.dashboard.contract.job_port import OVER
from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.frames import Frame

SHOWN = 24

CHART_NAMES = ("id", "done_ms", "failed_ms", "size", "state", "took", "bytes")


def missing(checkpoint: CheckpointFrame) -> tuple[str, ...]:
    """The tasks that have not acknowledged."""
    return tuple(task.task for task in checkpoint.subtasks if not task.acknowledged)


def chart_columns(frame: Frame) -> dict[str, list[Any]]:
    """One row per checkpoint that is over: its end-to-end duration, or how long it took to fail, and its size."""
    rows = []
    over = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state != "IN_PROGRESS"][-SHOWN:]
    for checkpoint in over:
        done = checkpoint.state == "COMPLETED"
        took_ms = (checkpoint.end_to_end_ms or 0.0) if done else checkpoint.duration_ms
        rows.append({
            "id": checkpoint.id, "done_ms": took_ms if done else 0.0, "failed_ms": 0.0 if done else took_ms,
            "size": checkpoint.size_bytes, "state": f"{checkpoint.kind}, {checkpoint.state.lower()}",
            "took": wording.milliseconds(took_ms), "bytes": wording.size(checkpoint.size_bytes),
        })  # fmt: skip
    return by_column(rows, CHART_NAMES)


def progress_html(frame: Frame) -> str:
    """The checkpoint in progress as a bar with the tasks still missing, or how the last one went."""
    running = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state == "IN_PROGRESS"]
    counted = [number_of(frame.metrics, f"numberOf{how}Checkpoints") or 0 for how in ("Completed", "Failed")]
    completed, failed = map(wording.count, counted)
    counts = f"<span class='muted'>{completed} completed · {failed} failed</span>"
    if running:
        newest = running[-1]
        share = newest.acknowledged / newest.total if newest.total else 0.0
        waiting = ", ".join(wording.html_text(task) for task in missing(newest)[:4])
        more = len(missing(newest)) - 4
        rest = f" and {more} more" if more > 0 else ""
        wait = f"waiting for {waiting}{rest}" if waiting else "writing its metadata"
        return (
            f"<p class='line'><b>#{newest.id}</b> {bar(share, 'good')} "
            f"{newest.acknowledged}/{newest.total} acknowledged {counts}</p><p class='wait'>{wait}</p>"
        )
    over = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state != "IN_PROGRESS"]
    if not over and frame.state in OVER:
        return "<p class='line'>No checkpoint was taken.</p><p class='wait'></p>"
    if not over:
        interval = str(frame.settings.get("checkpoint_interval") or "disabled")
        hint = "checkpoints are disabled" if interval == "disabled" else f"every {wording.html_text(interval)}"
        return f"<p class='line'>No checkpoint yet: {hint}.</p><p class='wait'></p>"
    last = over[-1]
    if last.state == "FAILED":
        reason = wording.html_text(last.reason or "no reason given")
        return f"<p class='line'><b class='bad'>✗ #{last.id} failed</b> {counts}</p><p class='wait bad'>{reason}</p>"
    age = wording.span(max(0, frame.time_us - last.triggered_us) // 1_000_000 * 1_000_000)
    when = f"at {wording.clock(last.triggered_us)}" if frame.state in OVER else f"{age} ago"
    return (
        f"<p class='line'><b>#{last.id}</b> {bar(1.0, 'good')} {last.acknowledged}/{last.total} acknowledged {counts}"
        f"</p><p class='wait'>{wording.milliseconds(last.end_to_end_ms)}, {wording.size(last.size_bytes)}, "
        f"triggered {when}</p>"
    )
