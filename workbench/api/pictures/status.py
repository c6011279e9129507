"""The results of `Job.status()` and `Job.metrics()`: plain data with a readable form."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from workbench.durations import format_instant
from workbench.telemetry.diagnosis import told_of_connection, told_of_kept
from workbench.telemetry.frames import Frame, end_latency

SHORT = 40
_CELL = "padding:1px 12px 1px 0;text-align:left;vertical-align:top"


class Status(dict[str, Any]):
    """A dictionary with a readable form.

    Keys: job, state, paused; the present settings, by the names of ``wb.SETTINGS``, and restart (speed and rate are
    None if no source has one); slow_down and stall while they are in use; position and watermark (UTC text);
    records_in, records_out (received by the sinks); records_in_per_second, records_out_per_second;
    latency_p50_ms, latency_p95_ms, latency_p99_ms (from the sources to the slowest sink, None until measured);
    last_change (the last changed setting, and its measured effect); last_interruption (the last failure, rescaling or
    take-over, until the sources were where they had been); late_records; restarts; restart_due (UTC text,
    while a restart is pending); last_checkpoint (id), checkpoints (complete); committed_rows (by table); backpressure;
    failure; lost_connections (of sources, sinks and look-ups: the server, the error, the attempt that is due, and when
    the task fails); retained (what servers keep of their logs for the sources until a checkpoint confirms them, its
    state, and how much may be written before it is lost); stalled (the task in a call that has not returned for two
    seconds or more, since when and where, or the checkpoints' storage after ten seconds); lease (the owner of the
    checkpoint directory, since when).
    """

    def __repr__(self) -> str:
        width = max(len(name) for name in self)
        return "\n".join(f"{name:<{width}}  {_show(value)}" for name, value in self.items() if value not in (None, ""))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='{_CELL}'>{escape(name)}</th><td style='{_CELL}'>{escape(_show(value))}</td></tr>"
            for name, value in self.items()
            if value not in (None, "")
        )
        return f"<table>{rows}</table>"


def status_of(job: str, state: str, settings: Mapping[str, Any], paused: bool, frame: Frame | None) -> Status:
    """The status from the newest frame; settings are the present ones. Before the first frame there is no progress."""
    return Status(
        job=job, state=state, paused=paused, **settings, **(_no_progress() if frame is None else _progress(frame))
    )


def _progress(frame: Frame) -> dict[str, Any]:
    receivers, senders = {edge.target for edge in frame.edges}, {edge.source for edge in frame.edges}
    vertices = [v for v in frame.vertices if frame.acks is None or v.id != frame.acks.vertex]
    inputs = [v for v in vertices if v.id not in receivers]
    outputs = [v for v in vertices if v.id not in senders]
    watermarks = [v.metrics.get("currentInputWatermark") for v in outputs]
    known = [int(w) for w in watermarks if w is not None]
    return {
        "position": None if frame.replay is None else format_instant(frame.replay.position_us),
        "watermark": format_instant(min(known) if known else None),
        "records_in": sum(int(v.metrics.get("numRecordsIn") or 0) for v in inputs),
        "records_out": sum(int(v.metrics.get("numRecordsOut") or 0) for v in outputs),
        "records_in_per_second": round(float(frame.metrics["numRecordsInPerSecond"] or 0)),
        "records_out_per_second": round(float(frame.metrics["numRecordsOutPerSecond"] or 0)),
        **_latency(frame),
        "late_records": sum(int(t.metrics.get("numLateRecordsDropped") or 0) for t in frame.tasks),
        "restarts": frame.metrics["numRestarts"],
        "restart_due": None if (due := frame.metrics.get("restartDue")) is None else format_instant(int(due)),
        "last_checkpoint": frame.metrics["lastCompletedCheckpointId"],
        "checkpoints": frame.metrics["numberOfCompletedCheckpoints"],
        "committed_rows": dict(frame.tables),
        "backpressure": frame.backpressure,
        "failure": frame.failure,
        "lost_connections": " ".join(told_of_connection(task, outage) for task, outage in frame.lost.items()) or None,
        "retained": _retained(frame),
        **_roots(frame),
    }


def _retained(frame: Frame) -> str | None:
    """What servers keep of their logs for the sources."""
    splits = [(task.name, name, split) for task in frame.tasks for name, split in task.progress.items()]
    told = [f"{task}, {name}: {kept}" for task, name, split in splits if (kept := told_of_kept(split))]
    return "; ".join(told) or None


def _roots(frame: Frame) -> dict[str, Any]:
    """The counts of the roots, if records are acknowledged."""
    acks = frame.acks
    names = ("pending", "acked", "failed", "replayed")
    return {} if acks is None else {"roots": {name: acks.total(name) for name in names}}


def _latency(frame: Frame) -> dict[str, Any]:
    end = end_latency([vertex.id for vertex in frame.vertices], frame.edges, frame.latency)
    names = ("p50", "p95", "p99")
    found = {f"latency_{name}_ms": None if end is None else round(getattr(end, f"{name}_ms"), 2) for name in names}
    return {
        **found,
        "last_change": frame.changes[-1].sentence if frame.changes else None,
        "last_interruption": frame.interruptions[-1].sentence if frame.interruptions else None,
    }


def _no_progress() -> dict[str, Any]:
    return {
        "position": None,
        "watermark": format_instant(None),
        "records_in": 0,
        "records_out": 0,
        "records_in_per_second": 0,
        "records_out_per_second": 0,
        **dict.fromkeys(("latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "last_change", "last_interruption")),
        "late_records": 0,
        "restarts": 0,
        "restart_due": None,
        "last_checkpoint": None,
        "checkpoints": 0,
        "committed_rows": {},
        "backpressure": "",
        "failure": None,
        "lost_connections": None,
        "retained": None,
    }


class Table(list[dict[str, Any]]):
    """A list of rows that is displayed as a table."""

    def __repr__(self) -> str:
        return (
            "\n".join(", ".join(f"{name}={_show(value)}" for name, value in row.items()) for row in self) or "no rows"
        )

    def _repr_html_(self) -> str:
        if not self:
            return "<i>no rows</i>"
        columns = list(dict.fromkeys(name for row in self for name in row))  # not every row has all of them
        head = "".join(f"<th style='{_CELL}'>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(_cell(_show(row[name]) if name in row else "") for name in columns) + "</tr>"
            for row in self
        )
        return f"<div style='overflow-x:auto'><table><tr>{head}</tr>{body}</table></div>"


def _cell(text: str) -> str:
    """A cell; a short text, such as the name of a slot, is not wrapped, however many columns there are."""
    unbroken = ";white-space:nowrap" if len(text) <= SHORT else ""
    return f"<td style='{_CELL}{unbroken}'>{escape(text)}</td>"


def _show(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return "-" if value is None else "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else format_instant(value)
    if isinstance(value, float):
        return f"{value:,.2f}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_show(item)}" for key, item in value.items())
    return str(value)
