"""The section ``head`` of a frame: a job at a glance, as lists of jobs, the status bar and `Job.status` show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from workbench.telemetry.diagnosis import told_of_connection, told_of_kept
from workbench.telemetry.frames import Frame, end_latency
from workbench.telemetry.reached import event_time_lag
from workbench.wire.sentences import Sentence, quoted, runs
from workbench.wire.values import Instant, instant, readable, whole

Setting = str | int | float | None


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles from the sources to the slowest sink, in milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Head:
    """A job at a glance; what is not known is None. Instants count from 1970 in UTC.

    Attributes:
        state: Flink's job state, or ``"UNKNOWN"``: the job cannot be read, and `failure` says why.
        paused: its sources read nothing until it is resumed.
        stepped: it advances only when a user steps it.
        started_us: when the run started, which distinguishes two runs of one name.
        running_ms: for how long it has run.
        read, received: records that the sources have read, and the sinks have received.
        read_per_s, received_per_s: the same in a second.
        late: records that were dropped because they came too late.
        restarts: their number.
        restart_due_us: the instant of the next attempt, during a restart delay.
        checkpoint: the latest complete one.
        checkpoints: the number of complete ones.
        watermark_us: of the sink that is furthest behind.
        lag_us: how far that sink is behind the furthest watermark of the job.
        position_us: in the history that is replayed.
        latency: None until it is measured.
        settings: the present values, by name.
        tables: the committed rows of each table.
        backpressure: a sentence; empty: not known.
        failure: what ended the job, keeps it down, or stopped it for a moment just now; without marks.
        change: the last change of a setting, and its measured effect.
        interruption: the last failure, rescaling or take-over.
        connections: what is broken between the job and servers.
        kept: what servers keep of their logs for the sources.
        roots: if records are acknowledged: the counts of their roots.
        tasks: the names by which tasks can be failed.
    """

    state: str
    paused: bool = False
    stepped: bool = False
    started_us: Instant = None
    running_ms: float | None = None
    read: int = 0
    received: int = 0
    read_per_s: float | None = None
    received_per_s: float | None = None
    late: int | None = None
    restarts: int | None = None
    restart_due_us: Instant = None
    checkpoint: int | None = None
    checkpoints: int = 0
    watermark_us: Instant = None
    lag_us: float | None = None
    position_us: Instant = None
    latency: Latency | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    tables: Mapping[str, int] = field(default_factory=dict)
    backpressure: Sentence = ()
    failure: Sentence | None = None
    change: Sentence | None = None
    interruption: Sentence | None = None
    connections: Sentence | None = None
    kept: Sentence | None = None
    roots: Mapping[str, int] | None = None
    tasks: tuple[str, ...] = ()


def head_of(frame: Frame | None, state: str, *, paused: bool, stepped: bool = False) -> Head:
    """The head of a job.

    Args:
        frame: its newest one; None: there is none yet.
        state: the present one, which may be newer.
        paused: whether it is paused.
        stepped: whether a user steps it.
    """
    if frame is None:
        return Head(state, paused, stepped)
    receivers, senders = {edge.target for edge in frame.edges}, {edge.source for edge in frame.edges}
    vertices = [each for each in frame.vertices if frame.acks is None or each.id != frame.acks.vertex]
    inputs = [each.metrics for each in vertices if each.id not in receivers]
    outputs = [each.metrics for each in vertices if each.id not in senders]
    marks = [mark for each in outputs if (mark := each.get("currentInputWatermark")) is not None]
    metrics = frame.metrics
    return Head(
        state=state,
        paused=paused,
        stepped=stepped,
        started_us=instant(frame.started_us),
        running_ms=readable(metrics.get("runningTime")),
        read=_sum(inputs, "numRecordsIn"),
        received=_sum(outputs, "numRecordsOut"),
        read_per_s=readable(metrics.get("numRecordsInPerSecond")),
        received_per_s=readable(metrics.get("numRecordsOutPerSecond")),
        late=_sum([each.metrics for each in frame.vertices], "numLateRecordsDropped"),
        restarts=whole(metrics.get("numRestarts")),
        restart_due_us=instant(metrics.get("restartDue")),
        checkpoint=whole(metrics.get("lastCompletedCheckpointId")),
        checkpoints=whole(metrics.get("numberOfCompletedCheckpoints")) or 0,
        watermark_us=instant(min(marks, default=None)),
        lag_us=readable(event_time_lag(frame)),
        position_us=None if frame.replay is None else instant(frame.replay.position_us),
        latency=_latency(frame),
        settings={**frame.settings, **frame.knobs},
        tables=dict(frame.tables),
        backpressure=runs(frame.backpressure),
        failure=quoted(frame.failure),
        change=_sentence(frame.changes[-1].sentence if frame.changes else None),
        interruption=_sentence(frame.interruptions[-1].sentence if frame.interruptions else None),
        connections=_sentence(" ".join(told_of_connection(task, outage) for task, outage in frame.lost.items())),
        kept=_sentence(_kept(frame)),
        roots=_roots(frame),
        tasks=tuple(task.name for task in frame.tasks),
    )


def _sum(metrics: list[dict[str, Any]], name: str) -> int:
    return sum(int(each.get(name) or 0) for each in metrics)


def _sentence(text: str | None) -> Sentence | None:
    return runs(text) if text else None


def _latency(frame: Frame) -> Latency | None:
    end = end_latency([vertex.id for vertex in frame.vertices], frame.edges, frame.latency)
    return None if end is None else Latency(end.p50_ms, end.p95_ms, end.p99_ms)


def _kept(frame: Frame) -> str:
    """What servers keep of their logs for the sources."""
    splits = [(task.name, name, split) for task in frame.tasks for name, split in task.progress.items()]
    return "; ".join(f"{task}, {name}: {kept}" for task, name, split in splits if (kept := told_of_kept(split)))


def _roots(frame: Frame) -> dict[str, int] | None:
    acks = frame.acks
    return None if acks is None else {name: acks.total(name) for name in ("pending", "acked", "failed", "replayed")}
