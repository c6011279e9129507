"""Reads a running job's counts into frames.

Tasks own plain integers and never publish anything; the sampler reads them from its own thread. Two values of a frame
may differ slightly in age, but each is a value that the task really had. Rates are differences between two samples,
divided by the time between them.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

from workbench.connectors.live.hybrid_source import replayed
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.job.master import Master
from workbench.runtime.job.observer import JobObserver
from workbench.runtime.settings.architecture_knobs import knobs_in_force
from workbench.runtime.tasks.source_task import SourceTask
from workbench.telemetry.acking.roots import acks_frame
from workbench.telemetry.architectures.changelog import changelog_frame
from workbench.telemetry.architectures.transactions import transactions_frame
from workbench.telemetry.batches.queue import batches_frame
from workbench.telemetry.channels import NO_CHANNELS, ChannelSampler
from workbench.telemetry.checkpoint_frames import CheckpointFrame
from workbench.telemetry.checkpoints import CheckpointingSampler, CheckpointSampler, restore_frame
from workbench.telemetry.diagnosis import cut_off, explain, held, idle_split, skewed, told, uneven, unsaved
from workbench.telemetry.effects.acting import Acting
from workbench.telemetry.effects.change_frames import Measured
from workbench.telemetry.effects.change_log import ChangeLog
from workbench.telemetry.effects.filling import Filling
from workbench.telemetry.effects.in_force import InForce
from workbench.telemetry.effects.interruptions import Interruptions
from workbench.telemetry.frames import (
    AuditFrame,
    EdgeFrame,
    EventFrame,
    Frame,
    LatencyFrame,
    ReplayFrame,
    TaskFrame,
    VertexFrame,
    end_latency,
)
from workbench.telemetry.graph import edge_frames, vertex_frames
from workbench.telemetry.keys.hot_keys import HotKeys
from workbench.telemetry.latency import RECENT_US, latency_frames
from workbench.telemetry.operators import OperatorSampler
from workbench.telemetry.recorder import Recorder
from workbench.telemetry.tasks import TaskSampler, outage_frame

T = TypeVar("T")
EVENTS = 100


def measured(
    end: LatencyFrame | None,
    metrics: Mapping[str, object],
    vertices: Sequence[VertexFrame],
    checkpoints: Sequence[CheckpointFrame],
    fill_ms: float | None,
    since_us: int = 0,
) -> Measured:
    """The figures by which a change is judged: latency, records read and buffers sent.

    Args:
        end: latency of the slowest sink, if any is known.
        metrics: of the job.
        vertices: of the graph.
        checkpoints: oldest first.
        fill_ms: see `Measured`.
        since_us: when a setting was last changed: earlier checkpoints do not show its effect.
    """
    since = [one for one in checkpoints if one.state == "COMPLETED" and one.triggered_us >= since_us]
    gap_ms = (since[-1].triggered_us - since[0].triggered_us) / 1_000 / (len(since) - 1) if len(since) > 1 else None
    buffers = sum(float(vertex.metrics.get("numBuffersOutPerSecond") or 0) for vertex in vertices)
    rate = metrics["numRecordsInPerSecond"]
    return Measured(
        None if end is None else end.p50_ms,
        None if end is None else end.p95_ms,
        None if end is None else end.p99_ms,
        rate if isinstance(rate, float) else 0.0,
        buffers,
        fill_ms,
        0 if end is None else end.recent,
        *_busiest(vertices),
        median(map(_alignment_ms, since)) if since else None,
        median(one.duration_ms for one in since) if since else None,
        gap_ms,
        None if not since or policy_of(since[-1].mode).overtakes else gap_ms,
    )


def _busiest(vertices: Sequence[VertexFrame]) -> tuple[str, float]:
    """The vertex with the busiest subtask, and how busy all of its subtasks are, as its box in the graph says it."""
    if not vertices:
        return "", 0.0
    most = max(vertices, key=lambda vertex: float(vertex.metrics.get("maxBusyTimeMsPerSecond") or 0))
    return most.name, float(most.metrics.get("busyTimeMsPerSecond") or 0) / 1_000


def _alignment_ms(checkpoint: CheckpointFrame) -> float:
    """How long a task waited; where barriers do not hold it up, it goes on while it awaits them."""
    if not policy_of(checkpoint.mode).aligned:
        return 0.0
    return max((task.alignment_ms or 0.0 for task in checkpoint.subtasks), default=0.0)


class Sampler(JobObserver):
    """Samples one job into a recorder, and keeps the job's log.

    Args:
        recorder: referenced weakly. The runtime of an ended job has reference cycles, so it stays until the garbage
            collector runs; its frames, which are most of its memory, are released earlier.

    Attributes:
        master: of the job.
        first: the sequence number of the first frame to create; earlier frames are counted and skipped.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = weakref.ref(recorder)
        self._events: deque[EventFrame] = deque(maxlen=EVENTS)
        self._tasks = TaskSampler()
        self._channels = ChannelSampler()
        self._operators = OperatorSampler()
        self._checkpoints = CheckpointSampler()
        self._checkpointing = CheckpointingSampler()
        self._sequence = 0
        self._told = 0
        self._restarting_us = 0
        self._tuned = InForce()
        self._changes = ChangeLog()
        self._interruptions = Interruptions()
        self._acting = Acting(RECENT_US)
        self._filling = Filling()
        self._hot_keys = HotKeys()
        self._in_force: dict[str, object] = {}
        self._failing_since_us: int | None = None
        self._parts: dict[str, Any] = {}
        self.master: Master | None = None
        self.first = 0

    def watch(self, master: Master) -> None:
        """Sample this master from now on."""
        if self.master is not None:
            self._interruptions.leave(self.master)
        self.master = master

    def on_event(self, time_us: int, kind: str, text: str) -> None:
        """Add a line to the log, and count the time spent restarting."""
        self._told += 1
        self._events.append(EventFrame(time_us, kind, text))  # type: ignore[arg-type]
        if self.master is not None:
            self._interruptions.event(self.master, time_us, kind, text)
        if kind == "tune":
            self._tuned.changed(time_us)
            if self.master is not None:
                settings: dict[str, object] = dict(self.master.shown())
                self._changes.change(time_us, self._in_force, settings, text)
                self._in_force = settings
        if kind == "state":
            self._channels.release()
        if kind == "failure":
            self._changes.failed()
        if kind == "state" and text == "FAILING":
            if self._failing_since_us is None:  # otherwise a restart has failed, and the job is still restarting
                self._failing_since_us = time_us
        elif kind == "state" and text in ("RUNNING", "FAILED") and self._failing_since_us is not None:
            self._restarting_us += time_us - self._failing_since_us
            self._failing_since_us = None

    def on_deployed(self, time_us: int) -> None:
        """Note the positions from which the sources continue."""
        self._changes.deployed(time_us)
        if self.master is not None:
            self._interruptions.deployed(self.master, time_us)

    def activity(self) -> tuple[object, object, object]:
        """The state of the data flow, of the job, and of its checkpoints and steps: as long as it stays equal, a new
        frame would show only that time has passed."""
        master = self.master
        assert master is not None
        coordinator, execution = master.coordinator, master.execution
        tasks = () if execution is None else execution.tasks
        flows = [
            (task.root.counters.numRecordsIn, task.rows_sent, task.links[-1].watermark_us, task.load.held_back,
             task.finished, task.settings, isinstance(task, SourceTask) and task.event_time.idle)
            for task in tasks
        ]  # fmt: skip
        written = sum(len(record.acknowledgements) for record in coordinator.in_progress.values())
        told = self._told, master.state, master.paused, master.settings, id(execution)
        checkpoints = coordinator.completed, coordinator.failed, tuple(coordinator.in_progress), written
        return flows, told, (checkpoints, [task.load.stepping for task in tasks])

    def sample(self) -> bool:
        """Read everything into one frame, on the master's turn, or while that waits for a server; returns whether
        frames have been read since the last one."""
        if self._sequence < self.first:
            self._sequence += 1
            return False
        master = self.master
        assert master is not None
        now = master.services.clock.now_us()
        execution = master.execution
        channels = self._channels.sample(execution, now) if execution is not None else NO_CHANNELS
        tasks = self._tasks.sample(execution, now, self._interruptions.late()) if execution is not None else ()
        vertices = vertex_frames(master.graph, tasks)
        edges = edge_frames(master.graph, execution, channels)
        running = master.state == "RUNNING"
        if execution is not None:
            self._tuned.look(execution.tasks, master.settings, now)
        tuned_us = self._tuned.since_us
        latency = latency_frames(execution, now, tuned_us) if execution is not None else ()
        backpressure = explain(vertices, edges) if running else told(master.state, master.restart_due_us)
        metrics = self._job_metrics(master, now)
        settings = master.shown()
        self._in_force = dict(settings)
        checkpoints = self._checkpoints.sample(master.coordinator, now)
        awaited = master.services.opening.awaited()
        waits = {} if awaited is None else {awaited[0]: outage_frame(awaited[1], now)}
        effects: dict[str, str] = {}
        recorder = self._recorder()
        findings = tuple(filter(None, [cut_off((), waits)]))
        if running:
            end = end_latency([vertex.id for vertex in vertices], edges, latency)
            fill_ms = self._filling.sample(execution, now, tuned_us)
            state = measured(end, metrics, vertices, checkpoints, fill_ms, tuned_us)
            effects = self._acting.sample(master, now, fill_ms, tuned_us)
            price, openings = effects.get("checkpoint_interval", ""), 0 if recorder is None else recorder.openings
            how = {"paused": master.paused, "recovers": self._interruptions.lasts}
            self._changes.sample(now, state, held(backpressure), price, openings, **how)
            findings = (*findings, *self._findings(master, vertices, edges, tasks))
        elif master.over:
            self._changes.end()
        frame = Frame(
            job=master.services.job,
            state=master.state,  # type: ignore[arg-type]
            sequence=self._sequence,
            time_us=now,
            started_us=master.life.started_us,
            settings=self._shared("settings", settings),
            metrics=metrics,
            vertices=vertices,
            edges=self._shared("edges", edges),
            tasks=tasks,
            channels=channels,
            checkpoints=checkpoints,
            latency=latency,
            replay=self._replay(master, now),
            events=tuple(self._events),
            tables={name: master.services.tables.rows(name) for name in master.services.tables.names()},
            paused=master.paused,
            backpressure=backpressure,
            failure=None if master.failure is None else master.life.told,
            operators=self._shared("operators", self._operators.sample(master.graph, execution, now)),
            earlier=self._checkpoints.earlier(master.coordinator, now),
            restore=restore_frame(master),
            checkpointing=self._checkpointing.of(master),
            changes=self._changes.changes,
            interruptions=self._interruptions.sample(now),
            effects=effects,
            findings=findings,
            audit=tuple(AuditFrame(f.time_us, f.checkpoint_id, f.task, f.records) for f in master.life.audit.found),
            acks=acks_frame(master),
            batches=batches_frame(master, now),
            knobs=self._shared("knobs", knobs_in_force(master.settings)),
            transactions=transactions_frame(master),
            changelog=changelog_frame(master),
            awaited=waits,
        )
        self._sequence += 1
        if execution is None or master.over:
            self._channels.forget()  # hold no reference to an attempt that has ended
        if recorder is None:
            return False
        recorder.append(frame)
        read, recorder.read = recorder.read, False
        return read

    def _shared(self, part: str, value: T) -> T:
        """A part of a frame, or the equal part of the previous frame: then both frames share its memory."""
        before: T = self._parts.get(part, value)
        self._parts[part] = before if before == value else value
        return self._parts[part]  # type: ignore[no-any-return]

    def _findings(
        self,
        master: Master,
        vertices: Sequence[VertexFrame],
        edges: Sequence[EdgeFrame],
        tasks: Sequence[TaskFrame],
    ) -> tuple[str, ...]:
        found, execution = uneven(vertices, edges, tasks), master.execution
        hot = {} if execution is None else self._hot_keys.sample(master.graph, execution, [one.task for one in found])
        coordinator, now_us = master.coordinator, master.services.clock.now_us()
        latest = coordinator.latest_records
        failing = unsaved(coordinator.failures, latest.get("FAILED"), latest.get("COMPLETED"), now_us)
        return tuple(
            filter(
                None,
                (failing, cut_off(tasks), idle_split(tasks), *(skewed(one, hot.get(one.task, "")) for one in found)),
            )
        )

    def _job_metrics(self, master: Master, now: int) -> dict[str, float | int | str | None]:
        coordinator = master.coordinator
        done = [record for record in coordinator.history if record.state == "COMPLETED"]
        last = done[-1] if done else None
        restarting_us = self._restarting_us
        if self._failing_since_us is not None:
            restarting_us += now - self._failing_since_us
        end = master.life.ended_us or now
        return {
            "numRestarts": master.restarts,
            "runningTime": (end - master.life.started_us - restarting_us) // 1_000,
            "restartingTime": restarting_us // 1_000,
            "restartDue": master.restart_due_us,
            "lastCheckpointDuration": None
            if last is None or last.ended_us is None
            else (last.ended_us - last.triggered_us) / 1_000,
            "lastCheckpointSize": None if last is None else last.size_bytes,
            "lastCheckpointFullSize": None if last is None else last.full_size_bytes,
            "lastCompletedCheckpointId": None if last is None else last.checkpoint_id,
            "lastCheckpointExternalPath": None if last is None else master.storage.path_of(last.place),
            "lastCheckpointRestoreTimestamp": None
            if master.last_restore is None
            else master.last_restore.time_us // 1_000,
            "numberOfInProgressCheckpoints": len(coordinator.in_progress),
            "numberOfCompletedCheckpoints": coordinator.completed,
            "numberOfFailedCheckpoints": coordinator.failed,
            "numberOfRestores": master.restores,
            **self._tasks.job_rates(master.graph),
        }

    def _replay(self, master: Master, now: int) -> ReplayFrame | None:
        paces = master.services.paces
        if not paces:
            return None
        uid, pace = next(iter(paces.items()))
        source = replayed(next(node for node, own in master.logical.uids.items() if own == uid).spec)
        assert source is not None  # it has a pace
        log = source.log
        return ReplayFrame(
            speed=pace.speed,
            position_us=pace.position_us(master.life.ended_us or now),
            start_us=log.start_us,
            end_us=log.end_us,
            records_read=log.rows - self._tasks.pending(master.execution, uid, before=log.rows),
            records_total=log.rows,
        )
