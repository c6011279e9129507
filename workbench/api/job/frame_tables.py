"""Telemetry frames of a job as tables."""

from __future__ import annotations

from typing import Any

from workbench.api.pictures.status import Table
from workbench.durations import format_duration, format_instant
from workbench.errors import JobError, unknown
from workbench.telemetry.frames import Frame


def metric_rows(frame: Frame | None) -> Table:
    """One row per task, with Flink's metric names."""
    tasks = () if frame is None else frame.tasks
    reached = {} if frame is None else {each.vertex: each for each in frame.latency}

    def latency(vertex: str) -> dict[str, float]:
        found = reached.get(vertex)
        return {} if found is None else {f"latency_{p}_ms": getattr(found, f"{p}_ms") for p in ("p50", "p95", "p99")}

    return Table(
        [
            {"task": task.name, "slot": task.slot, "state": task.state, **task.metrics, **latency(task.vertex)}
            for task in tasks
        ]
    )


def late_rows(frame: Frame | None, operator: str | None) -> Table:
    """The last records that an operator, or any operator, has dropped as late; see `Job.late_records`.

    Raises:
        JobError: no such operator.
    """
    known = [] if frame is None else [item.uid for item in frame.operators]
    if operator is not None and operator not in known:
        raise JobError(unknown("operator", operator, known))
    tasks = () if frame is None else frame.tasks
    return Table(
        [
            {
                "operator": late.operator, "task": task.name, "key": late.key,
                "event_time": format_instant(late.event_time_us), "watermark": format_instant(late.watermark_us),
                "behind": None if late.behind_us is None else format_duration(late.behind_us),
                "source": late.source,
                "record": late.record,
            }
            for task in tasks
            for late in task.late
            if operator in (None, late.operator)
        ]
    )  # fmt: skip


def audit_rows(frame: Frame | None) -> Table:
    """What the job counted twice because of failures; see `Job.audit`."""
    found = () if frame is None else frame.audit
    rows: list[tuple[Any, ...]] = [(f.checkpoint, format_instant(f.time_us), f.task, f.records) for f in found]
    acks = None if frame is None else frame.acks
    rows += [(None, None, each.task, each.replayed_records) for each in (acks.sources if acks else ()) if each.replayed]
    return Table([dict(zip(("checkpoint", "restored", "task", "records"), row, strict=True)) for row in rows])
