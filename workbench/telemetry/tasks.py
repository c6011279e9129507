"""The metrics of each task, under Flink's names."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from workbench.durations import MAX_TIME, NO_TIME
from workbench.operators.contract.outage import Outage
from workbench.plan.physical import PhysicalGraph
from workbench.runtime.exchange.input_gate import InputChannel
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task
from workbench.telemetry.event_time.sampling import event_times_of
from workbench.telemetry.frames import OutageFrame, SplitFrame, TaskFrame
from workbench.telemetry.late import LateSampler

HORIZON_US = 1_000_000
_LIVE_WITHIN_US = 30 * 86_400_000_000
"""Rates cover the last second: long enough to be smooth, short enough to show the effect of a changed setting."""

Metrics = dict[str, float | int | bool | None]


IO = (
    "numRecordsIn", "numRecordsOut", "numBytesIn", "numBytesOut", "numBuffersIn", "numBuffersOut"
)  # fmt: skip
"""The counts of input and output, which are also reported per second."""


Deployed = tuple[str, int]
"""A task's name and the attempt in which it was deployed: while both stay the same, its counts continue."""


def deployed(task: Task) -> Deployed:
    """Identifies one deployment of a task."""
    return task.name, task.attempt


@dataclass(frozen=True, slots=True)
class _Counts:
    time_us: int
    io: tuple[int, ...]
    """The counts of a task; `io` has one count for each name in `IO`."""
    busy_us: int
    idle_us: int
    backpressured_us: int


class TaskSampler:
    """Computes rates from counts; keeps a second of samples for each running task.

    A redeployed task counts from zero, while the tasks of other regions continue counting.
    """

    def __init__(self) -> None:
        self._past: dict[Deployed, deque[_Counts]] = {}
        self._rates: dict[str, tuple[float, float]] = {}
        self._pending: dict[str, int] = {}
        self._late = LateSampler()
        self._front_us: int | None = None
        self._by_clock = False

    def sample(self, execution: Execution, now_us: int, late: Mapping[str, int]) -> tuple[TaskFrame, ...]:
        """A frame for each task, in the order of the graph; `late`: records that it dropped in all its attempts."""
        self._past = {key: self._past.get(key, deque()) for key in map(deployed, execution.tasks)}
        self._rates.clear()
        self._late.begin(execution.number)
        reference = self._reference(execution, now_us)
        return tuple(self._task(task, now_us, reference, late.get(task.name, 0)) for task in execution.tasks)

    def job_rates(self, graph: PhysicalGraph) -> dict[str, float]:
        """Records per second that the sources read and that the sinks received."""
        sources = {vertex.name for vertex in graph.vertices if vertex.is_source}
        sinks = {vertex.name for vertex in graph.vertices if any(node.role == "sink" for node in vertex.nodes)}
        rates = {"numRecordsInPerSecond": 0.0, "numRecordsOutPerSecond": 0.0}
        for name, (rate_in, rate_out) in self._rates.items():
            vertex = name[: name.rindex("[")]
            if vertex in sources:
                rates["numRecordsInPerSecond"] += rate_in
            if vertex in sinks:
                rates["numRecordsOutPerSecond"] += rate_out
        return rates

    def pending(self, execution: Execution | None, uid: str, before: int) -> int:
        """Records that the readers of a source have not read yet; during a restart, when there are no readers, the last
        known number; `before` the first reader has started."""
        tasks = () if execution is None else execution.sources
        left = [_pending(task) or 0 for task in tasks if task.root.uid == uid]
        if left:
            self._pending[uid] = sum(left)
        return self._pending.get(uid, before)

    def _task(self, task: Task, now_us: int, reference_us: int, late_records: int) -> TaskFrame:
        counts = _counts(task, now_us)
        past = self._past[deployed(task)]
        if not runs(task):
            past.clear()
        while len(past) > 1 and now_us - past[0].time_us > HORIZON_US:
            past.popleft()
        first = past[0] if past else None
        past.append(counts)
        metrics: Metrics = {
            **dict(zip(IO, counts.io, strict=True)),
            **self._rates_of(task.name, first, counts),
            "isBackPressured": task.load.held_back and not (task.load.stepping or task.load.resting),
            "outPoolUsage": min(1.0, task.pool.used / task.pool.total) if task.pool.total else 0.0,
            "outputQueueLength": task.pool.used,
            "usedMemorySegments": min(task.pool.used, task.pool.total),
            "totalMemorySegments": task.pool.total,
            "numLateRecordsDropped": late_records,
            "numRecordsInErrors": sum(link.counters.numRecordsInErrors for link in task.links),
            "numFiredTimers": sum(link.counters.numFiredTimers for link in task.links),
            "numRecordsWithoutTimestamp": sum(link.counters.numRecordsWithoutTimestamp for link in task.links),
            "currentOutputWatermark": task.output_watermark_us,
        }
        holder: str | None = None
        splits: dict[str, int | None] = {}
        quiet: dict[str, int] = {}
        progress: dict[str, SplitFrame] = {}
        watermark = task.output_watermark_us
        if isinstance(task, OperatorTask):
            channels = [item.channel for item in task.gate.channels]
            received = sum(min(channel.queued_buffers, channel.credit) for channel in channels)
            metrics["inputQueueLength"] = received
            metrics["inPoolUsage"] = received / sum(channel.credit for channel in channels)
            metrics.update(_watermarks_of_inputs(task.gate.channels))
            watermark = _time(task.valve.output_us)
            holder = None if task.valve.holder is None else task.valve.holder.channel.source
        elif isinstance(task, SourceTask):
            metrics["pendingRecords"] = _pending(task)
            progress = _progress_of(task, now_us)
            times = task.event_time.splits.copy()
            for split, time in times.items():
                splits[split] = None if time.idle else _time(time.watermark_us)
            told = [(value, split) for split, value in splits.items() if value is not None]
            holder = f"split {min(told)[1]}" if told else None
            # A split may become active after `now_us` was read.
            quiet = {split: max(now_us - time.active_us, 0) // 1_000 for split, time in times.items()}
            metrics["sourceIdleTime"] = min(quiet.values(), default=0)
        if (outage := _outage_of(task, now_us)) is not None:
            metrics["connectionAttempts"] = outage.attempts
            metrics["connectionRetryInMs"] = outage.retry_ms
        metrics["currentInputWatermark"] = watermark
        metrics["watermarkLag"] = self._lag_us(watermark, reference_us)
        late = self._late.sample(task, now_us)
        return TaskFrame(
            task.name, task.vertex, task.subtask, task.slot, _state(task), metrics, holder, splits, late, task.attempt,
            task.started_us, task.ended_us, event_times_of(task), quiet,
            progress, outage,
        )  # fmt: skip

    def _lag_us(self, watermark: int | None, reference_us: int) -> int | None:
        """The lag behind the reference; None if that is the clock and the events were recorded long ago."""
        if watermark is None or watermark == MAX_TIME:
            return None
        lag_us = reference_us - watermark
        return None if self._by_clock and abs(lag_us) > _LIVE_WITHIN_US else lag_us

    def _reference(self, execution: Execution, now_us: int) -> int:
        """The time with which watermarks are compared: the replay's position in history; without a replay, the clock,
        or the most advanced watermark of a source if event time is far from the clock (old recordings)."""
        readers = (task.reader for task in execution.sources)
        places: list[int] = [place for reader in readers if (place := getattr(reader, "position_us", None)) is not None]
        self._by_clock = False
        if places:
            return max(places)
        told = (task.output_watermark_us for task in execution.sources)
        self._front_us = max((us for us in told if us not in (None, MAX_TIME)), default=self._front_us)
        if self._front_us is None or abs(now_us - self._front_us) <= _LIVE_WITHIN_US:
            self._by_clock = True
            return now_us
        return self._front_us

    def _rates_of(self, name: str, first: _Counts | None, now: _Counts) -> Metrics:
        shares = (0.0, 1_000.0, 0.0)
        rates = [0.0] * len(IO)
        if first is not None and now.time_us > first.time_us:
            seconds = (now.time_us - first.time_us) / 1e6
            rates = [(after - before) / seconds for before, after in zip(first.io, now.io, strict=True)]
            # A step counts as busy until it ends; if it then turns out to have waited, the busy time becomes less.
            spent = (
                max(now.busy_us - first.busy_us, 0),
                max(now.idle_us - first.idle_us, 0),
                max(now.backpressured_us - first.backpressured_us, 0),
            )
            if sum(spent) > 0:
                busy, idle, pressed = (1_000 * part / sum(spent) for part in spent)
                shares = (busy, idle, pressed)
        self._rates[name] = (rates[0], rates[1])
        return {
            **{f"{metric}PerSecond": rate for metric, rate in zip(IO, rates, strict=True)},
            "busyTimeMsPerSecond": shares[0],
            "idleTimeMsPerSecond": shares[1],
            "backPressuredTimeMsPerSecond": shares[2],
        }


def runs(task: Task) -> bool:
    """Whether it is running: a task that has ended has no rates, though its last second has samples."""
    return _state(task) == "RUNNING"


def _counts(task: Task, now_us: int) -> _Counts:
    records_out = task.rows_sent
    # A link without outputs is a sink: the records that it received count as sent.
    records_out += sum(
        link.counters.numRecordsIn for link in task.links if not (link.edges or link.children or link.side_edges)
    )
    inputs = [item.channel for item in task.gate.channels] if isinstance(task, OperatorTask) else []
    outputs = [channel for output in task.outputs for channel in output.channels]
    load = task.load
    since_us = 0 if task.finished else max(now_us - load.last_us, 0)
    busy = load.stepping or load.resting
    pressed = load.held_back and not busy
    return _Counts(
        now_us,
        (
            task.root.counters.numRecordsIn,
            records_out,
            sum(channel.bytes_received for channel in inputs),
            sum(channel.bytes_sent for channel in outputs),
            sum(channel.buffers_received for channel in inputs),
            sum(channel.buffers_sent for channel in outputs),
        ),
        load.busy_us + (since_us if busy else 0),
        load.idle_us + (0 if busy or pressed else since_us),
        load.backpressured_us + (since_us if pressed else 0),
    )


def _watermarks_of_inputs(channels: Sequence[InputChannel]) -> Metrics:
    """The watermark of each input of an operator with several, counted from 1: the minimum over its channels."""
    inputs: dict[int, list[InputChannel]] = {}
    for channel in channels:
        inputs.setdefault(channel.port, []).append(channel)
    if len(inputs) < 2:
        return {}
    return {f"currentInput{port + 1}Watermark": _watermark_of(own) for port, own in sorted(inputs.items())}


def _watermark_of(channels: Sequence[InputChannel]) -> int | None:
    """The minimum over the channels that are neither idle nor finished; if there are none, the maximum over all."""
    speaking = [channel.watermark_us for channel in channels if not (channel.idle or channel.finished)]
    return _time(min(speaking) if speaking else max(channel.watermark_us for channel in channels))


def _state(task: Task) -> str:
    if task.finished:
        return "FINISHED"
    if task.ended_us is None:
        return "RUNNING"
    return "FAILED" if task.failed else "CANCELED"


_SPLITS_MAX = 200
"""The maximum number of splits whose progress is reported: nobody reads a longer table."""


def _progress_of(task: SourceTask, now_us: int) -> dict[str, SplitFrame]:
    rows = task.split_rows
    found = {}
    for split, each in islice(task.reader.progress().items(), _SPLITS_MAX):
        lag_ms = 0 if each.told_us is None else max(now_us - each.told_us, 0) // 1_000
        found[split] = SplitFrame(
            each.position, each.lag, rows.get(split, 0), lag_ms, each.kept_bytes, each.kept_state, each.kept_safe
        )
    return found


def _outage_of(task: Task, now_us: int) -> OutageFrame | None:
    """The first broken connection in the chain of a task that has not ended."""
    if task.ended_us is not None:
        return None
    own = task.reader.outage if isinstance(task, SourceTask) else None
    found = ((link.uid, lost) for link in task.links if (lost := link.operator.outage) is not None)
    uid, outage = ("", own) if own is not None else next(found, ("", None))
    return None if outage is None else outage_frame(outage, now_us, "" if uid == task.root.uid else uid)


def outage_frame(outage: Outage, now_us: int, operator: str = "") -> OutageFrame:
    """What frames tell of a broken connection.

    Args:
        outage: the connection.
        now_us: processing time.
        operator: as in `OutageFrame`.
    """
    due_ms, lasts_ms = (max(us, 0) // 1_000 for us in (outage.retry_us - now_us, now_us - outage.since_us))
    ends_ms = None if outage.ends_us is None else max(outage.ends_us - now_us, 0) // 1_000
    return OutageFrame(
        outage.error,
        outage.attempts,
        outage.attempts_max,
        due_ms,
        lasts_ms,
        outage.keeps,
        outage.server,
        ends_ms,
        operator,
    )


def _pending(task: SourceTask) -> int | None:
    pending: Callable[[], int | None] | None = getattr(task.reader, "pending_records", None)
    if pending is not None and (count := pending()) is not None:
        return count
    lags = [split.lag for split in task.reader.progress().values() if split.lag is not None]
    return sum(lags) if lags else None


def _time(us: int) -> int | None:
    return None if us == NO_TIME else us
