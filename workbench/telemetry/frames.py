"""Immutable frames, sampled from a running job at most ten times a second.

All displays of a job (dashboard, magics, command line, reports, sidebar) read frames, never the runtime.
Metric names in ``metrics`` dictionaries are Apache Flink's; fields in snake_case are ours. Times named ``_us`` are
microseconds; event times count from 1970 in UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from workbench.durations import MAX_TIME
from workbench.telemetry.acking.roots import AcksFrame
from workbench.telemetry.architectures.changelog import ChangelogFrame
from workbench.telemetry.architectures.transactions import TransactionsFrame
from workbench.telemetry.batches.queue import BatchesFrame
from workbench.telemetry.checkpoint_frames import CheckpointFrame, CheckpointingFrame, RestoreFrame
from workbench.telemetry.effects.change_frames import ChangeFrame
from workbench.telemetry.effects.interruption_frames import InterruptionFrame
from workbench.telemetry.event_time.frames import EventTimesFrame

JobState = Literal[
    "CREATED",
    "INITIALIZING",
    "RUNNING",
    "FAILING",
    "RESTARTING",
    "CANCELLING",
    "CANCELED",
    "FINISHED",
    "FAILED",
    "SUSPENDED",
]
Exchange = Literal["forward", "hash", "rebalance", "local rebalance", "shuffle", "broadcast", "custom"]


@dataclass(frozen=True, slots=True)
class ChannelFrame:
    """One input channel of one task: the FIFO from one sending subtask to one receiving subtask.

    Attributes:
        edge: id of the edge it belongs to, ``"<vertex id>-><vertex id>"``.
        source, target: names of the sending and the receiving task.
        inputQueueLength: buffers on the receiver's side (granted by its credit).
        outputQueueLength: buffers still on the sender's side.
        capacity: buffers that the receiver grants this channel.
        queued_records: records in all of them.
        currentChannelWatermark: last watermark received, None before the first.
        idle: whether the minimum of the watermarks ignores it.
        blocked: whether barrier alignment holds it back.
        finished: whether the end of the stream has been received.
        barriers: ids of the checkpoint barriers that are queued on it now, the next one first.
        barrier_records, barrier_buffers: for each barrier, the records and the buffers in front of it.
        records_per_second: received by the target.
        blocked_us: the processing time at which it was blocked; None if it is not.
    """

    edge: str
    source: str
    target: str
    inputQueueLength: int
    outputQueueLength: int
    capacity: int
    queued_records: int
    currentChannelWatermark: int | None
    idle: bool = False
    blocked: bool = False
    finished: bool = False
    barriers: tuple[int, ...] = ()
    barrier_records: tuple[int, ...] = ()
    barrier_buffers: tuple[int, ...] = ()
    blocked_us: int | None = None
    records_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class LateFrame:
    """A record that arrived too late for all of its windows and was dropped.

    Attributes:
        operator: uid of the operator that dropped it.
        key: as text; empty if there is none.
        event_time_us: of the record.
        watermark_us: the operator's watermark at that time.
        source: the task that sent it, which identifies the channel; ``"a[0] or a[1]"`` if small buffers of both were
            processed together; None in a source's chain.
        record: as it reached the operator, as JSON of at most 300 characters.
    """

    operator: str
    key: str
    event_time_us: int
    watermark_us: int
    source: str | None
    record: str

    @property
    def behind_us(self) -> int | None:
        """How far it was behind the event time that the operator had reached, which is one microsecond after the
        watermark; None after the last watermark, which is the end of time."""
        return None if self.watermark_us == MAX_TIME else self.watermark_us + 1 - self.event_time_us


@dataclass(frozen=True, slots=True)
class SplitFrame:
    """How far a source has come in one of its splits.

    Attributes:
        position: of the last record, in the source's own terms: an offset, an ID.
        lag: records at the server that have not been read; None: not known.
        records: the number of records read in this attempt.
        lag_ms: the age of the server's answer from which `lag` is computed, or `kept_bytes`.
        kept_bytes: of its log that the server keeps for the source; None: see `SplitProgress`.
        kept_state: how the server calls their state.
        kept_safe: bytes that may be written before the server removes what the source needs; None: without limit.
    """

    position: str
    lag: int | None = None
    records: int = 0
    lag_ms: int = 0
    kept_bytes: int | None = None
    kept_state: str = ""
    kept_safe: int | None = None


@dataclass(frozen=True, slots=True)
class OutageFrame:
    """A connection of a source, a sink or a look-up that is broken.

    Attributes:
        error: of the last attempt.
        attempts, attempts_max: the attempts that have failed in a row, and the number after which the task fails; None:
            there is no limit.
        retry_ms: until the next attempt.
        lasts_ms: since the first failure.
        keeps: whether the server keeps new records meanwhile; otherwise they may be lost.
        server: its address; empty: `error` names it.
        ends_ms: until the task, which does nothing but wait, fails; None: it does not wait.
        operator: that has the connection, if it is not the first one of the task, from which the task has its name.
    """

    error: str
    attempts: int
    attempts_max: int | None
    retry_ms: int
    lasts_ms: int
    keeps: bool = True
    server: str = ""
    ends_ms: int | None = None
    operator: str = ""


@dataclass(frozen=True, slots=True)
class TaskFrame:
    """One subtask.

    Attributes:
        name: ``"aggregate[1]"``: the vertex's name and the subtask index.
        vertex: id of its vertex.
        subtask: index from 0.
        slot: ``"tm-0/slot-1"``.
        state: ``RUNNING``, ``FINISHED``, ``FAILED`` (its failure ended the attempt) or ``CANCELED`` (the attempt ended
            for another reason).
        metrics: by Flink's name: numRecordsIn, numRecordsOut, numRecordsInPerSecond, numRecordsOutPerSecond,
            numBytesIn, numBytesOut, numBuffersIn, numBuffersOut, each of these four also with PerSecond (data that
            passed through channels: Arrow bytes of the columns that are sent, without null bitmaps, plus 8 bytes for
            each event time; a source receives nothing from channels and a sink sends nothing), busyTimeMsPerSecond,
            idleTimeMsPerSecond, backPressuredTimeMsPerSecond (these three sum to 1000), isBackPressured, inPoolUsage,
            outPoolUsage (0 to 1), inputQueueLength, outputQueueLength, usedMemorySegments, totalMemorySegments
            (buffers of the output pool, used and allowed), currentInputWatermark, currentOutputWatermark (us or None),
            for operators with several inputs also currentInput1Watermark and so on, watermarkLag (us or None: behind
            the replay's position in history, behind the clock, or, if event time is more than 30 days from the clock,
            behind the most advanced watermark of a source), numLateRecordsDropped, numRecordsWithoutTimestamp (our
            name), numRecordsInErrors, numFiredTimers, and for sources pendingRecords, sourceIdleTime, and while their
            server is unreachable (our names) connectionAttempts, which counts failures in a row, and
            connectionRetryInMs, the time until the next attempt.
            In and out count rows that are sent: a row that aggregates several records counts once (late records count
            singly).
        watermarkHolder: the channel that holds the minimum: the name of its sending task, for a source's split
            ``"split 0"``, or None.
        splits: of a source: the watermark of each split, None if it is idle or has none yet.
        late: the last late records that it dropped, oldest first: at most 20 for each operator, up to a second old.
        attempt: how many attempts of the job came before the task's own.
        started_us, ended_us: when it was deployed, and when it ended; None before that.
        event_times: samples of the event times at its operators, for those that use event time.
        quiet_ms: of a source: how long each split has had nothing to read.
        progress: of a source that knows its place in each split: by split, at most 200.
        outage: of a task with a source, a sink or a look-up whose server is unreachable.
    """

    name: str
    vertex: str
    subtask: int
    slot: str
    state: str
    metrics: dict[str, float | int | bool | None]
    watermarkHolder: str | None = None
    splits: dict[str, int | None] = field(default_factory=dict)
    late: tuple[LateFrame, ...] = ()
    attempt: int = 0
    started_us: int | None = None
    ended_us: int | None = None
    event_times: tuple[EventTimesFrame, ...] = ()
    quiet_ms: dict[str, int] = field(default_factory=dict)
    progress: dict[str, SplitFrame] = field(default_factory=dict)
    outage: OutageFrame | None = None


@dataclass(frozen=True, slots=True)
class VertexFrame:
    """One vertex of the physical graph: a chain of operators that run as one task, `parallelism` times.

    Attributes:
        id: stable within a job, for example ``"v2"``.
        name: its head operator's uid, such as ``"aggregate"``; tasks are named ``"aggregate[0]"`` and so on.
        operators: (uid, kind, description) of every operator of the chain, in order.
        parallelism: number of subtasks.
        metrics: of all its subtasks: sums of counts and rates, means of the three time shares (per subtask, so they sum
            to 1000), maxima of pool usages, and the minimum of watermarks; in addition, maxBusyTimeMsPerSecond and
            maxBackPressuredTimeMsPerSecond of its subtasks, and dataSkew (percent, see `data_skew`).
        x, y: position in the drawing, 0 to 1; sources left, sinks right.
        chain: the names of what runs in it: the operators and, if large batches are aggregated before they are sent,
            ``"local aggregate"``.
    """

    id: str
    name: str
    operators: tuple[tuple[str, str, str], ...]
    parallelism: int
    metrics: dict[str, float | int | bool | None]
    x: float
    y: float
    chain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OperatorInput:
    """An input of an operator: the output of another one (or its side output, named by a tag), and the exchange."""

    uid: str
    exchange: Exchange
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorFrame:
    """One operator of the logical graph, whichever chain it runs in.

    Attributes:
        uid, kind, description: identify and describe it.
        vertex: id of the vertex that it runs in.
        inputs: the operators that it reads from.
        metrics: sums over its subtasks: numRecordsIn, numRecordsOut, numRecordsInPerSecond, numRecordsOutPerSecond,
            numLateRecordsDropped, numFiredTimers.
        x, y: position in the drawing of the logical graph, 0 to 1.
    """

    uid: str
    kind: str
    description: str
    vertex: str
    inputs: tuple[OperatorInput, ...]
    metrics: dict[str, float | int]
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class EdgeFrame:
    """One edge of the physical graph with its channels summed up.

    Attributes:
        id: ``"v1->v2"``, with a suffix for a side output.
        usage: buffers in use / buffers allowed on its channels, 0 to 1 (slightly more if a step overshoots).
        queued_buffers, capacity_buffers: the two numbers of `usage`.
        records_per_second: received by the target.
    """

    id: str
    source: str
    target: str
    exchange: Exchange
    queued_buffers: int
    capacity_buffers: int
    usage: float
    records_per_second: float


@dataclass(frozen=True, slots=True)
class LatencyFrame:
    """Latency from a source to one vertex, by markers that bypass operator logic (so window time is not in it).

    Attributes:
        vertex: id of the vertex.
        count: markers that have reached it in this attempt.
        p50_ms, p90_ms, p95_ms, p99_ms: percentiles over the recent markers: those of the last 2.5 seconds that were
            sent after the last change of a setting.
        recent: how many those are; one that stands for a rest of its source counts once for each 20 ms.
    """

    vertex: str
    count: int
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float
    recent: int = 0


def end_latency(
    vertices: Sequence[str], edges: Sequence[EdgeFrame], latency: Sequence[LatencyFrame]
) -> LatencyFrame | None:
    """The highest percentiles among the vertices that nothing follows; None before a marker has reached one.

    Args:
        vertices: ids.
        edges: between them.
        latency: of the vertices that markers have reached.
    """
    senders = {edge.source for edge in edges}
    ends = [each for each in latency if each.vertex not in senders and each.vertex in vertices and each.count]
    return max(ends, key=lambda each: each.p50_ms, default=None)


@dataclass(frozen=True, slots=True)
class ReplayFrame:
    """The replay of a history. `speed` is infinite for ``max``; times are arrival times, us."""

    speed: float
    position_us: int
    start_us: int
    end_us: int
    records_read: int
    records_total: int


@dataclass(frozen=True, slots=True)
class AuditFrame:
    """Records that reach one task twice, because the job was restored from a checkpoint of at-least-once mode."""

    time_us: int
    checkpoint: int
    task: str
    records: int


@dataclass(frozen=True, slots=True)
class EventFrame:
    """One line of the job's log: a state change, a failure, a recovery, a tuning."""

    time_us: int
    kind: Literal["state", "failure", "recovery", "tune", "checkpoint", "notice"]
    text: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A job at one moment.

    Attributes:
        sequence: from 0, grows by one with each frame of the job.
        time_us: processing time at which it was sampled.
        paused: the sources read nothing until the job is resumed.
        settings: current values, by name: ``buffer_timeout`` (``"50ms"``, ``"0ms"`` or ``"disabled"``),
            ``buffer_size`` (records), ``checkpoint_interval`` (``"5s"`` or ``"disabled"``), ``speed`` (``"600x"``,
            ``"max"``; None if nothing is replayed), ``rate`` (records per second of the sources that have one, or
            ``"max"``), ``parallelism``; ``slow_down`` and ``stall`` while an operator is slowed down or stalled.
        metrics: of the job: numRestarts, runningTime, restartingTime (ms), restartDue (processing time of the next
            attempt, during a restart delay; our name), lastCheckpointDuration (ms), lastCheckpointSize (bytes),
            lastCheckpointFullSize (bytes that a restore reads; more if it is incremental),
            lastCompletedCheckpointId, numberOfInProgressCheckpoints, numberOfCompletedCheckpoints,
            numberOfFailedCheckpoints, numberOfRestores (our name), numRecordsInPerSecond (read by the sources),
            numRecordsOutPerSecond (received by the sinks).
        backpressure: one sentence that names the cause of backpressure, or says that there is none.
        checkpoints: the most recent ones, oldest first, at most 50; those in progress at the end.
        earlier: the latest complete checkpoint, failed checkpoint and savepoint, if they are older than `checkpoints`.
        restore: the latest restore from a checkpoint; None if there was none.
        checkpointing: where checkpoints are stored, and how state is kept; None in recordings of versions without it.
        operators: the logical graph, inputs first.
        tables: number of committed rows of each TableSink.
        audit: records that were processed twice after failures, oldest first; empty unless checkpoints are taken in
            at-least-once mode.
        changes: the latest changes of settings with their measured effects, oldest first.
        interruptions: the latest failures, rescalings and take-overs with their phases, oldest first.
        effects: sentences on the current effects of settings, by name: a buffer timeout without effect, and the cost
            of checkpoints.
        findings: sentences on other things than backpressure that hold the job back: an idle split, skewed keys.
        failure: the message of the failure that ended or restarted the job, or None.
        awaited: the broken connection that a starting task waits for, by the task's name.
        acks: the roots that sources wait for; None where records are not acknowledged.
        batches: the queue of micro-batches; None where there are none.
        knobs: arguments of the architecture of fault tolerance that can be tuned, as users write them; None for a
            setting without effect under it.
        transactions: of the tasks; None where there are none.
        changelog: the log of state changes, and the source positions; None if there is none.
    """

    job: str
    state: JobState
    sequence: int
    time_us: int
    started_us: int
    settings: dict[str, str | int | None]
    metrics: dict[str, float | int | str | None]
    vertices: tuple[VertexFrame, ...] = ()
    edges: tuple[EdgeFrame, ...] = ()
    tasks: tuple[TaskFrame, ...] = ()
    channels: Sequence[ChannelFrame] = ()
    checkpoints: tuple[CheckpointFrame, ...] = ()
    latency: tuple[LatencyFrame, ...] = ()
    replay: ReplayFrame | None = None
    events: tuple[EventFrame, ...] = ()
    tables: dict[str, int] = field(default_factory=dict)
    paused: bool = False
    backpressure: str = ""
    failure: str | None = None
    operators: tuple[OperatorFrame, ...] = ()
    audit: tuple[AuditFrame, ...] = ()
    earlier: tuple[CheckpointFrame, ...] = ()
    restore: RestoreFrame | None = None
    checkpointing: CheckpointingFrame | None = None
    changes: tuple[ChangeFrame, ...] = ()
    interruptions: tuple[InterruptionFrame, ...] = ()
    effects: dict[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    acks: AcksFrame | None = None
    batches: BatchesFrame | None = None
    knobs: dict[str, str | None] = field(default_factory=dict)
    transactions: TransactionsFrame | None = None
    changelog: ChangelogFrame | None = None
    awaited: dict[str, OutageFrame] = field(default_factory=dict)

    @property
    def lost(self) -> dict[str, OutageFrame]:
        """The broken connections of all tasks, by the task's name."""
        return {**{task.name: task.outage for task in self.tasks if task.outage is not None}, **self.awaited}

    def to_plain(self) -> dict[str, Any]:
        """The frame as plain dictionaries, lists and tuples."""
        return asdict(replace(self, channels=tuple(self.channels)))
