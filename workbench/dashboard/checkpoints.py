"""Checkpoints in words: the one in progress and who is missing, and the history as rows of a chart and of a table."""

from __future__ import annotations

from typing import Any

from workbench.dashboard import wording
from workbench.dashboard.html import bar
from workbench.telemetry.frames import CheckpointFrame, Frame

SHOWN = 24
LISTED = 5

SIGNS = {"COMPLETED": ("good", "✓ done"), "FAILED": ("bad", "✗ failed"), "IN_PROGRESS": ("warn", "… running")}

CHART_NAMES = ("id", "done_ms", "failed_ms", "size", "state", "took", "bytes")


def missing(checkpoint: CheckpointFrame) -> tuple[str, ...]:
    """The tasks that have not acknowledged."""
    return tuple(task.task for task in checkpoint.subtasks if not task.acknowledged)


def longest_alignment_ms(checkpoint: CheckpointFrame) -> float | None:
    """The longest alignment of any subtask, or None before the first is known."""
    return max((task.alignment_ms for task in checkpoint.subtasks if task.alignment_ms is not None), default=None)


def chart_columns(frame: Frame) -> dict[str, list[Any]]:
    """One row per checkpoint that is over: its duration as done or failed, and its size."""
    columns: dict[str, list[Any]] = {name: [] for name in CHART_NAMES}
    over = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state != "IN_PROGRESS"][-SHOWN:]
    for checkpoint in over:
        done = checkpoint.state == "COMPLETED"
        row = {
            "id": checkpoint.id, "done_ms": checkpoint.duration_ms if done else 0.0,
            "failed_ms": 0.0 if done else checkpoint.duration_ms, "size": checkpoint.size_bytes,
            "state": f"{checkpoint.kind}, {checkpoint.state.lower()}",
            "took": wording.milliseconds(checkpoint.duration_ms), "bytes": wording.size(checkpoint.size_bytes),
        }  # fmt: skip
        for name in CHART_NAMES:
            columns[name].append(row[name])
    return columns


def progress_html(frame: Frame) -> str:
    """The checkpoint in progress as a bar with the tasks still missing, or how the last one went."""
    running = [checkpoint for checkpoint in frame.checkpoints if checkpoint.state == "IN_PROGRESS"]
    counts = (
        f"<span class='muted'>{wording.count(_number(frame, 'numberOfCompletedCheckpoints'))} completed · "
        f"{wording.count(_number(frame, 'numberOfFailedCheckpoints'))} failed</span>"
    )
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
    if not over:
        interval = str(frame.settings.get("checkpoint_interval") or "disabled")
        hint = "checkpoints are disabled" if interval == "disabled" else f"every {wording.html_text(interval)}"
        return f"<p class='line'>None yet: {hint}.</p><p class='wait'></p>"
    last = over[-1]
    if last.state == "FAILED":
        reason = wording.html_text(last.reason or "no reason given")
        return f"<p class='line'><b class='bad'>✗ #{last.id} failed</b> {counts}</p><p class='wait bad'>{reason}</p>"
    age = wording.span(max(0, frame.time_us - last.triggered_us) // 1_000_000 * 1_000_000)
    return (
        f"<p class='line'><b>#{last.id}</b> {bar(1.0, 'good')} {last.acknowledged}/{last.total} acknowledged {counts}"
        f"</p><p class='wait'>{wording.milliseconds(last.duration_ms)}, {wording.size(last.size_bytes)}, "
        f"triggered {age} ago</p>"
    )


def table_html(frame: Frame, most: int = LISTED) -> str:
    """The newest checkpoints, newest first."""
    if not frame.checkpoints:
        return ""
    lines = []
    for checkpoint in reversed(frame.checkpoints[-most:]):
        colour, sign = SIGNS[checkpoint.state]
        why = f" title='{wording.html_text(checkpoint.reason)}'" if checkpoint.reason else ""
        lines.append(
            f"<tr><td>{checkpoint.id}</td><td>{_kind(checkpoint)}</td><td class='{colour}'{why}>{sign}</td>"
            f"<td class='n'>{wording.milliseconds(checkpoint.duration_ms)}</td>"
            f"<td class='n'>{wording.size(checkpoint.size_bytes)}</td>"
            f"<td class='n'>{wording.milliseconds(longest_alignment_ms(checkpoint))}</td></tr>"
        )
    head = (
        "<tr class='head'><th>id</th><th>kind</th><th>state</th><th class='n'>duration</th><th class='n'>size</th>"
        "<th class='n'>max alignment</th></tr>"
    )
    return f"<table>{head}{''.join(lines)}</table>"


def _kind(checkpoint: CheckpointFrame) -> str:
    """What for, and in which mode where that is not the default."""
    mode = "" if checkpoint.mode == "exactly-once" else f", {wording.html_text(checkpoint.mode)}"
    return f"{checkpoint.kind}{mode}"


def _number(frame: Frame, name: str) -> float:
    value = frame.metrics.get(name)
    return 0.0 if value is None else float(value)
