"""One moment of a stepping job with every single record: the elements in the channels and the state of the operators.

Where a frame has counts, a scene has the records themselves. It exists only for jobs that stand still between steps, so
that F2-5 to F2-15 can be drawn like the figures of a book.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any, Literal

from workbench.connectors.contract.base import table_of
from workbench.connectors.tables.tables import Tables
from workbench.drivers.stepped.narrator import PLAIN, Narrator, Shown
from workbench.durations import MAX_TIME, NO_TIME, format_instant
from workbench.elements import (
    CheckpointBarrier,
    Element,
    EndOfStream,
    LatencyMarker,
    Records,
    Watermark,
    WatermarkStatus,
)
from workbench.operators.contract.python_rows import python_rows
from workbench.plan.physical import PhysicalGraph, Vertex
from workbench.runtime.exchange.chain import Link
from workbench.runtime.exchange.channel import Channel
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.source_task import SourceTask
from workbench.runtime.tasks.task import Task

MARBLES = 24
"""The maximum number of elements that are shown for a channel: the next ones to be received."""
KEYS = 8
"""The maximum number of keys whose state is shown for an operator."""
WINDOWS = 4
"""The maximum number of windows that are shown for a key."""

Lines = tuple[tuple[str, str], ...]
"""The state of a task, as pairs of a name and a value."""


@dataclass(frozen=True, slots=True)
class Marble:
    """One element in a channel, drawn as a marble.

    Attributes:
        kind: a single record, or a control element.
        text: the label: a short value of a record, the checkpoint of a barrier, the time of a watermark.
        key: the record's key; None if no operator groups by one of its columns.
        time_us: event time; None if there is none.
        values: of a record, by column.
        number: of a record: how many records were sent on its channel before it; -1 for control elements.
        about: of a record: what the fault-tolerance architecture knows about it.
    """

    kind: Literal["record", "watermark", "barrier", "status", "end", "other"]
    text: str
    key: str | None = None
    time_us: int | None = None
    values: dict[str, Any] | None = None
    number: int = -1
    about: str = ""


@dataclass(frozen=True, slots=True)
class ChannelScene:
    """One channel.

    Attributes:
        source, target: names of the tasks.
        marbles: its elements, the next one to be received first; at most `MARBLES`.
        more: the number of further elements.
        blocked: whether it is held back because its barrier has arrived before those of other channels.
        watermark_us: the last watermark received; None before the first.
    """

    source: str
    target: str
    marbles: tuple[Marble, ...]
    more: int = 0
    blocked: bool = False
    watermark_us: int | None = None


@dataclass(frozen=True, slots=True)
class TaskScene:
    """One task.

    Attributes:
        name: ``"sum[0]"``.
        operators: uids of its chain.
        x, y: position in the drawing of the graph, 0 to 1; the subtasks of one vertex share it.
        subtask, parallelism: its index, and the number of subtasks.
        state: pairs of a name and a value, such as ``("even", "total=6")`` or ``("offset", "5")``.
        watermark_us: the watermark of its output; None before the first.
        snapshot: the checkpoint of its last snapshot, 0 before the first.
        copied: the content of that snapshot, as pairs like those of `state`; records that barriers had overtaken are
            listed behind it.
        status: ``CREATED``, ``RUNNING``, ``FINISHED`` or ``FAILED``.
        beside: what the fault-tolerance architecture keeps in it, as pairs like those of `state`: pending roots, for
            example.
    """

    name: str
    operators: tuple[str, ...]
    x: float
    y: float
    subtask: int
    parallelism: int
    state: Lines = ()
    watermark_us: int | None = None
    snapshot: int = 0
    copied: Lines = ()
    status: str = "RUNNING"
    beside: Lines = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """A job at one moment.

    Attributes:
        job: its name.
        state: Flink's job state.
        step: steps taken so far.
        words: the description of the last step.
        time_us: processing time.
        tasks, channels: in the order of the graph; none while the job restarts.
        in_progress: checkpoints under way, each with the tasks that have acknowledged it.
        completed: the latest complete checkpoint, 0 before the first.
        tables: committed rows of each TableSink.
        facts: what the fault-tolerance architecture keeps for the job, as pairs of a name and a value.
    """

    job: str
    state: str
    step: int
    words: str
    time_us: int
    tasks: tuple[TaskScene, ...] = ()
    channels: tuple[ChannelScene, ...] = ()
    in_progress: tuple[tuple[int, tuple[str, ...]], ...] = ()
    completed: int = 0
    tables: tuple[tuple[str, int], ...] = ()
    facts: Lines = ()

    def task(self, name: str) -> TaskScene:
        """The task of that name."""
        return next(task for task in self.tasks if task.name == name)

    def channel(self, source: str, target: str) -> ChannelScene:
        """The channel between two tasks."""
        return next(one for one in self.channels if (one.source, one.target) == (source, target))


def scene_of(
    master: Master,
    execution: Execution | None,
    step: int,
    words: str,
    dead: Collection[str] = (),
    copies: Mapping[str, tuple[int, Lines]] | None = None,
    narrator: Narrator = PLAIN,
) -> Scene:
    """The current scene of a job; no other thread may step the job meanwhile.

    Args:
        master: of the job.
        execution: the attempt that is being stepped; None between two attempts.
        step: the number of steps taken.
        words: the description of the last step.
        dead: tasks that have failed and have not been replaced yet.
        copies: for each task, the checkpoint of its last snapshot and the content of that snapshot.
        narrator: describes what the job's fault-tolerance architecture keeps.
    """
    graph, tables, coordinator = master.graph, master.services.tables, master.coordinator
    running = {} if execution is None else {task.name: task for task in execution.tasks}
    tasks = []
    for vertex in graph.vertices:
        for subtask, name in enumerate(vertex.tasks):
            empty = TaskScene(name, tuple(vertex.uids), vertex.x, vertex.y, subtask, vertex.parallelism)
            task = _task(empty, running.get(name), name in dead, _committed(vertex, subtask, tables), narrator)
            number, copied = (copies or {}).get(name, (0, ()))
            copied = (*copied, *narrator.overtaken(name, number))
            tasks.append(replace(task, copied=copied) if number == task.snapshot else task)
    done = [record.checkpoint_id for record in coordinator.history if record.state == "COMPLETED"]
    return Scene(
        job=master.services.job,
        state=master.state,
        step=step,
        words=words,
        time_us=master.services.clock.now_us(),
        tasks=tuple(tasks),
        channels=tuple(_channels(graph, running, narrator)),
        in_progress=tuple(
            (record.checkpoint_id, tuple(name for name, ack in record.acknowledgements.items() if ack.file is not None))
            for record in coordinator.in_progress.values()
        ),
        completed=max(done, default=0),
        tables=tuple((name, tables.rows(name)) for name in tables.names()),
        facts=narrator.facts(master, execution),
    )


def _committed(vertex: Vertex, subtask: int, tables: Tables) -> Lines:
    """The committed rows of a table, shown next to the first subtask of its sink."""
    names = [name for node in vertex.nodes if (name := table_of(node.spec)) and not subtask]
    return tuple(("committed", str(tables.rows(name))) for name in names if name in tables.names())


def _task(empty: TaskScene, task: Task | None, dead: bool, lines: Lines, narrator: Narrator) -> TaskScene:
    if task is None:
        return replace(empty, state=lines, status="CREATED")
    return replace(
        empty,
        state=(*held_by(task), *lines),
        watermark_us=task.output_watermark_us,
        snapshot=task.snapshots.last_id,
        status="FAILED" if dead else "FINISHED" if task.finished else "RUNNING",
        beside=narrator.beside(task),
    )


def held_by(task: Task) -> Lines:
    """The state of a task: the position of a source, and the state of its operators by key."""
    held = tuple(line for link in task.links for line in _held(link))
    if isinstance(task, SourceTask) and task.reader.rows_read is not None:
        return ("offset", str(task.reader.rows_read)), *held
    return held


def _held(link: Link) -> Iterator[tuple[str, str]]:
    """The state of an operator by key, in a few words."""
    try:
        known, keys = link.operator.query_keys(KEYS)
    except NotImplementedError:  # it has no keyed state
        return
    for key in sorted(keys, key=lambda key: [str(value) for value in key.values()]):
        yield " ".join(_short(value) for value in key.values()) or "all", _value(link.operator.query(key) or {})
    if known > len(keys):
        yield "…", f"{known - len(keys)} more keys"


def _value(held: Mapping[str, object]) -> str:
    partial = held.get("partial_matches")
    if isinstance(partial, list):
        waiting = held.get("waiting_rows")
        parts = [f"{waiting} rows wait"] if waiting else []
        parts += [_partial_match(one) for one in partial[:WINDOWS]]
        return "; ".join([*parts, *(["…"] if len(partial) > WINDOWS else [])]) or "nothing begun"
    windows = held.get("windows")
    if not isinstance(windows, list):
        return " ".join(f"{name}={_short(value)}" for name, value in held.items())
    parts = []
    for window in windows[:WINDOWS]:
        bounds = [_short(window[name]) for name in ("window_start", "window_end") if name in window]
        rest = " ".join(f"{name}={_short(value)}" for name, value in window.items() if not name.startswith("window_"))
        parts.append(f"[{'–'.join(bounds)}) {rest}" if bounds else rest)
    return "; ".join([*parts, *(["…"] if len(windows) > WINDOWS else [])])


def _partial_match(match: Mapping[str, Any]) -> str:
    """The bound rows of a partial match, and the variable that it waits for.

    Example:
        >>> _partial_match({"rows": {"low": [{"n": 4}], "up": [{"n": 6}, {"n": 7}]}, "waits_for": "down"})
        'low up×2 → down?'
    """
    bound = (f"{name}×{len(rows)}" if len(rows) > 1 else str(name) for name, rows in match["rows"].items())
    return f"{' '.join(bound)} → {match['waits_for']}?"


def _channels(graph: PhysicalGraph, running: Mapping[str, Task], narrator: Narrator) -> Iterator[ChannelScene]:
    grouped = frozenset(key for edge in graph.edges for key in edge.keys)
    ends = {
        (item.channel.edge, item.channel.source, item.channel.target): item
        for task in running.values()
        if isinstance(task, OperatorTask)
        for item in task.gate.channels
    }
    for edge in graph.edges:
        for sender, receiver in edge.pairs:
            source, target = edge.source.tasks[sender], edge.target.tasks[receiver]
            item = ends.get((edge.id, source, target))
            if item is None:
                yield ChannelScene(source, target, ())
                continue
            keys = edge.keys or tuple(name for name in edge.schema.names if name in grouped)
            marbles = _numbered(item.channel, keys, narrator)
            watermark_us = None if item.watermark_us == NO_TIME else item.watermark_us
            more = max(0, len(marbles) - MARBLES)
            yield ChannelScene(source, target, tuple(marbles[:MARBLES]), more, item.blocked, watermark_us)


def _numbered(channel: Channel, keys: Sequence[str], narrator: Narrator) -> list[Marble]:
    """The elements in a channel, their records numbered by the channel's count."""
    marbles = [marble for element in channel.elements for marble in marbles_of(element, keys, narrator)]
    number = channel.records_sent - sum(marble.kind == "record" for marble in marbles)
    about = iter(narrator.about(channel))
    for place, marble in enumerate(marbles):
        if marble.kind == "record":
            marbles[place] = replace(marble, number=number, about=next(about, marble.about))
            number += 1
    return marbles


def marbles_of(element: Element, keys: Sequence[str], narrator: Narrator = PLAIN) -> list[Marble]:
    """An element as it is drawn; each record of a buffer is a separate marble.

    Example:
        >>> marbles_of(CheckpointBarrier(3, 0), ())
        [Marble(kind='barrier', text='3', key=None, time_us=None, values=None, number=-1, about='')]
    """
    match element:
        case Records(batch, timestamps):
            times = [None] * batch.num_rows if timestamps is None else timestamps.tolist()
            rows = map(narrator.record, python_rows(batch))
            return [_record(row, keys, time_us) for row, time_us in zip(rows, times, strict=True)]
        case Watermark(timestamp_us):
            text = "∞" if timestamp_us == MAX_TIME else format_instant(timestamp_us).partition(" ")[2]
            return [Marble("watermark", text, time_us=timestamp_us)]
        case CheckpointBarrier(checkpoint_id):
            return [Marble("barrier", str(checkpoint_id))]
        case WatermarkStatus(idle):
            return [Marble("status", "idle" if idle else "active")]
        case EndOfStream():
            return [Marble("end", "end")]
    return [Marble("other", "latency marker" if isinstance(element, LatencyMarker) else "end of in-flight data")]


def _record(shown: Shown, keys: Sequence[str], time_us: int | None) -> Marble:
    row = shown.values
    key = " ".join(_short(row[name]) for name in keys if name in row) if keys else None
    free = [value for name, value in row.items() if name not in keys and not isinstance(value, date | datetime)]
    text = shown.text if shown.text is not None else _short(free[-1]) if free else key or ""
    return Marble("record", text, key, None if time_us == NO_TIME else time_us, row, about=shown.about)


def _short(value: object) -> str:
    """A value in a few characters."""
    if isinstance(value, datetime):
        return value.strftime("%H:%M:%S" if not value.microsecond else "%H:%M:%S.%f")
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 16 else text[:15] + "…"
