"""One moment of a stepping job with every single record: what lies on the channels, and what the operators hold.

Frames count; a scene names. It is made only for jobs that stand still between steps, so that F2-5 to F2-15 can be drawn
as they are in a book.
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
"""Elements of one channel that are shown, those that come first."""
KEYS = 8
"""Keys of one operator whose state is shown."""
WINDOWS = 4
"""Windows of one key that are shown."""

Lines = tuple[tuple[str, str], ...]
"""What a task holds: (what, value) pairs."""


@dataclass(frozen=True, slots=True)
class Marble:
    """One thing on a channel.

    Attributes:
        kind: a single record, or a control element.
        text: what is written on it: of a record a short value, of a barrier its checkpoint, of a watermark its time.
        key: the record's key, None where no operator groups by one of its columns.
        time_us: event time, None where there is none.
        values: of a record, by column.
        number: of a record: how many were sent on its channel before it; -1 for what is no record.
        about: of a record: what the architecture of fault tolerance knows of it.
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
        marbles: what lies on it, the next one to be received first; at most `MARBLES`.
        more: how many further elements there are.
        blocked: held back, because its barrier has come and others' have not.
        watermark_us: the last that was received, None before the first.
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
        x, y: place in the drawing of the graph, 0 to 1; subtasks of one vertex have the same.
        subtask, parallelism: which of how many.
        state: what it holds: (what, value) pairs, such as ``("even", "total=6")`` or ``("offset", "5")``.
        watermark_us: as far as event time is behind it, None before the first.
        snapshot: the checkpoint of its last snapshot, 0 before the first.
        copied: what that snapshot contains: (what, value) pairs as in `state`.
        status: ``CREATED``, ``RUNNING``, ``FINISHED`` or ``FAILED``.
        beside: what the architecture of fault tolerance keeps in it: (what, value) pairs, such as pending roots.
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
        words: what the last one did.
        time_us: processing time.
        tasks, channels: in the order of the graph; none while the job restarts.
        in_progress: checkpoints under way, each with the tasks that have acknowledged it.
        completed: the latest complete checkpoint, 0 before the first.
        tables: committed rows of each TableSink.
        facts: what the architecture of fault tolerance keeps for the job: (what, value) pairs.
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
    """What there is to see now; nobody may be stepping the job meanwhile.

    Args:
        master: of the job.
        execution: the attempt that is being stepped, None between two attempts.
        step: how many have been taken.
        words: what the last one did.
        dead: tasks that have failed and are not yet replaced.
        copies: of each task the checkpoint of its last snapshot, and what that contains.
        narrator: tells what the job's architecture of fault tolerance keeps.
    """
    graph, tables, coordinator = master.graph, master.services.tables, master.coordinator
    running = {} if execution is None else {task.name: task for task in execution.tasks}
    tasks = []
    for vertex in graph.vertices:
        for subtask, name in enumerate(vertex.tasks):
            empty = TaskScene(name, tuple(vertex.uids), vertex.x, vertex.y, subtask, vertex.parallelism)
            task = _task(empty, running.get(name), name in dead, _committed(vertex, subtask, tables), narrator)
            number, copied = (copies or {}).get(name, (0, ()))
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
    """What a table has committed stands beside the first subtask of its sink."""
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
    """What a task holds: how far a source has read, and the state of its operators by key."""
    held = tuple(line for link in task.links for line in _held(link))
    if isinstance(task, SourceTask) and task.reader.rows_read is not None:
        return ("offset", str(task.reader.rows_read)), *held
    return held


def _held(link: Link) -> Iterator[tuple[str, str]]:
    """What an operator holds by key, in a few words."""
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
    """What has been bound, and what is waited for.

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
    """What lies on a channel, its records numbered by what the channel has counted."""
    marbles = [marble for element in channel.elements for marble in marbles_of(element, keys, narrator)]
    number = channel.records_sent - sum(marble.kind == "record" for marble in marbles)
    about = iter(narrator.about(channel))
    for place, marble in enumerate(marbles):
        if marble.kind == "record":
            marbles[place] = replace(marble, number=number, about=next(about, marble.about))
            number += 1
    return marbles


def marbles_of(element: Element, keys: Sequence[str], narrator: Narrator = PLAIN) -> list[Marble]:
    """An element as it is drawn; each record of a buffer is a marble of its own.

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
    """A value in a few letters."""
    if isinstance(value, datetime):
        return value.strftime("%H:%M:%S" if not value.microsecond else "%H:%M:%S.%f")
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 16 else text[:15] + "…"
