"""What holds a job back, in words.

The cause of backpressure is the first task that is busy but not back-pressured after those that are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from workbench.durations import MAX_TIME, format_instant
from workbench.runtime.checkpoints.checkpoint_record import CheckpointRecord
from workbench.telemetry.frames import EdgeFrame, Frame, OutageFrame, SplitFrame, TaskFrame, VertexFrame

NONE = "No backpressure."
HIGH = 0.5
LOW = 0.1
BUSY = 0.5
"""A task that is busy for a smaller share of its time does not keep others waiting for long."""
NAMED = 3
"""The number of waiting vertices that are named if there are several more; the graph shows all."""

QUIET_MS, READ_MS = 2_000, 1_000
"""A split has stopped if it has had no records for this long, while another one has been read."""
UNEVEN = 1.5
"""A subtask that receives this many times its share is reported."""
LEAST_PER_SECOND = 10
"""Records per second: with fewer, the shares mean nothing."""
KEPT_FRESH_MS = 10_000
"""What a server keeps was measured long ago, if it was before this time."""
_NO_OUTAGES: Mapping[str, OutageFrame] = MappingProxyType({})


def level(back_pressured_ms_per_second: float) -> str:
    """Flink's levels: OK up to 10 % of the time, LOW up to 50 %, HIGH above."""
    share = back_pressured_ms_per_second / 1_000
    return "OK" if share <= LOW else "LOW" if share <= HIGH else "HIGH"


def explain(vertices: Sequence[VertexFrame], edges: Sequence[EdgeFrame]) -> str:
    """One sentence for each cause of backpressure and the tasks that wait for it, or a sentence that there is none.

    Args:
        vertices: in topological order.
        edges: between them.
    """
    pressed = {v.id for v in vertices if level(_share(v, "backPressuredTimeMsPerSecond")) != "OK"}
    if not pressed:
        return NONE
    causes: dict[str, set[str]] = {}
    for vertex in reversed(vertices):
        if vertex.id in pressed:
            followers = [v for v in vertices if any(e.source == vertex.id and e.target == v.id for e in edges)]
            held = [causes[v.id] for v in followers if v.id in pressed]
            busiest = max(followers, key=_busiest, default=vertex)
            causes[vertex.id] = set().union(*held) if held else {busiest.id}
    named = set().union(*causes.values())
    return " ".join(
        _sentence(cause, [v.name for v in vertices if cause.id in causes.get(v.id, ())], cause.id in pressed)
        for cause in vertices
        if cause.id in named
    )


def told(state: str, restart_us: int | None = None) -> str:
    """A sentence about a job that is not running, shown instead of the backpressure; `restart_us`: its next attempt.

    Example:
        >>> told("FAILED"), told("RESTARTING", 1_372_658_400_000_000)
        ('The job has failed.', 'The job is restarting: its next attempt begins at 06:00:00 UTC.')
    """
    clock = format_instant(restart_us).partition(" ")[2][:8]
    begins = f": its next attempt begins at {clock} UTC" if clock else ""
    return f"The job {'has' if state == 'FAILED' else 'is'} {state.lower()}{begins}."


def held(backpressure: str) -> str:
    """The sentence on what holds back the sources; empty if nothing does."""
    return "" if backpressure == NONE else backpressure.rstrip(".")


def _sentence(cause: VertexFrame, waiting: Sequence[str], pressed: bool) -> str:
    names = list(waiting) if len(waiting) <= NAMED + 1 else [*waiting[:NAMED], f"{len(waiting) - NAMED} others"]
    told = f"{', '.join(names)} {'is' if len(waiting) == 1 else 'are'} back-pressured"
    if pressed:
        return f"{told}."
    if _busiest(cause) < 1_000 * BUSY:
        return f"{told}; {cause.name}, which receives the records, is only {_busiest(cause) / 10:.0f} % busy."
    return f"{cause.name} is the cause ({_told_busy(cause)}): {told}, waiting for it."


def _told_busy(vertex: VertexFrame) -> str:
    """How busy it is, as its box in the graph says it; of one that is not, that a subtask of it is."""
    mean = _share(vertex, "busyTimeMsPerSecond")
    if mean >= 1_000 * BUSY:
        return f"{mean / 10:.0f} % busy"
    return f"one subtask is {_busiest(vertex) / 10:.0f} % busy"


def _busiest(vertex: VertexFrame) -> float:
    """Milliseconds per second of its busiest subtask, which keeps senders waiting even if the others are idle."""
    return max(_share(vertex, "maxBusyTimeMsPerSecond"), _share(vertex, "busyTimeMsPerSecond"))


def _share(vertex: VertexFrame, name: str) -> float:
    value = vertex.metrics.get(name)
    return float(value) if value is not None else 0.0


def idle_split(tasks: Sequence[TaskFrame]) -> str:
    """A sentence if a split holds back the watermark because it has nothing to read, while others do; else empty.

    Args:
        tasks: of the job.
    """
    quiet = [ms for task in tasks for ms in task.quiet_ms.values()]
    marks = [mark for task in tasks for mark in task.splits.values() if mark is not None]
    if not marks or min(quiet) > READ_MS:
        return ""
    for task in tasks if min(marks) < max(marks) else ():
        held = [split for split, mark in task.splits.items() if mark == min(marks)]
        idle_ms = min((task.quiet_ms.get(split, 0) for split in held), default=0)
        if idle_ms >= QUIET_MS and task.state == "RUNNING":
            is_one = len(held) == 1
            names = f"split {held[0]} of {task.name} has" if is_one else f"splits {', '.join(held)} of {task.name} have"
            return (
                f"The watermark does not advance because {names} been idle for {idle_ms / 1_000:.0f} s; with "
                f"idle_after, the others would go on without {'it' if is_one else 'them'}."
            )
    return ""


def cut_off(tasks: Sequence[TaskFrame], awaited: Mapping[str, OutageFrame] = _NO_OUTAGES) -> str:
    """A sentence if tasks have had no connection to their servers for a while; else empty.

    Args:
        tasks: of the job.
        awaited: as in `Frame`.
    """
    lost = [*((task.name, task.outage) for task in tasks if task.outage is not None), *awaited.items()]
    if not lost:
        return ""
    name, outage = max(lost, key=lambda each: each[1].lasts_ms)
    if outage.lasts_ms < QUIET_MS:
        return ""
    more = len(lost) - 1
    who = f"{name} has" if not more else f"{name} and {more} other task{'s' if more > 1 else ''} have"
    to = f" to {outage.server}" if outage.server and not more else ""
    return (
        f"{who} had no connection{to} for {outage.lasts_ms / 1_000:.0f} s ({outage.error.rstrip('.')}); the view "
        "sources shows when the next attempt is due."
    )


def told_of_connection(task: str, outage: OutageFrame) -> str:
    """What a broken connection means: the server, the error, the next attempt and the end, and records meanwhile.

    Args:
        task: its name.
        outage: of the task.
    """
    to = f" to {outage.server}" if outage.server else ""
    who = f"{outage.operator} in {task}" if outage.operator else task
    due = f"in {_span(outage.retry_ms)}" if outage.retry_ms else "now"
    if outage.ends_ms is not None:
        end = f"; after {_span(outage.ends_ms)} the task fails, and the job restarts or ends."
        meanwhile = "Meanwhile it takes no records, and the tasks before it wait."
    else:
        most = outage.attempts_max
        end = "." if most is None else f" of {most + 1}; after the last the task fails, and the job restarts or ends."
        kept = "What comes meanwhile waits at the server, and is read from the position on."
        meanwhile = kept if outage.keeps else "What comes meanwhile is lost, unless the server sends it again."
    return (
        f"{who} has had no connection{to} for {_span(outage.lasts_ms)}: {outage.error.rstrip('.')}. It tries again "
        f"{due}, attempt {outage.attempts + 1}{end} {meanwhile}"
    )


def told_of_kept(split: SplitFrame) -> str:
    """How much of its log a server keeps for a source, and whether it may remove it; empty: unknown, or all of it.

    Example:
        >>> told_of_kept(SplitFrame("0/1A", kept_bytes=33_554_432, kept_state="extended", kept_safe=5_000_000))
        '33.6 MB (extended, lost after 5.0 MB more)'
    """
    if split.kept_bytes is None:
        return ""
    words = [split.kept_state] if split.kept_state else []
    if split.kept_safe is not None and split.kept_state != "lost":
        words.append(f"lost after {max(split.kept_safe, 0) / 1e6:,.1f} MB more")
    if split.lag_ms >= KEPT_FRESH_MS:
        words.append(f"{_span(split.lag_ms)} ago")
    return f"{split.kept_bytes / 1e6:,.1f} MB" + (f" ({', '.join(words)})" if words else "")


def _span(ms: int) -> str:
    if ms < 1_000:
        return f"{ms} ms"
    minutes, seconds = divmod(round(ms / 1_000), 60)
    return f"{minutes} min {seconds} s" if minutes else f"{ms / 1_000:.1f} s"


def unsaved(failures: int, failed: CheckpointRecord | None, done: CheckpointRecord | None, now_us: int) -> str:
    """Says that the last checkpoints have failed, why, and how far a failure would take the job back; else empty.

    Args:
        failures: so many have failed since the last complete one, by a fault of their own.
        failed, done: the last one that has failed, and the last complete one.
        now_us: processing time.

    Example:
        >>> done = CheckpointRecord(7, "periodic", 4_000_000, ())
        >>> failed = CheckpointRecord(9, "periodic", 8_000_000, (), reason="timed out")
        >>> print(unsaved(2, failed, done, 16_000_000).replace(". ", ".\\n"))
        2 checkpoints in a row failed, the last one: timed out.
        A failure now takes the job back to checkpoint 7, 12 s ago.
    """
    if not failures or failed is None:
        return ""
    many = f"{failures} checkpoints in a row failed, the last one" if failures > 1 else "The last checkpoint failed"
    told = f"{many}: {failed.reason}".rstrip(".")
    if done is None:
        return f"{told}. A failure now takes the job back to its beginning."
    age_s = (now_us - done.triggered_us) / 1e6
    return f"{told}. A failure now takes the job back to checkpoint {done.checkpoint_id}, {age_s:.0f} s ago."


def held_by(frame: Frame) -> tuple[str, ...]:
    """The last task (one without receivers) that is furthest behind in event time, then what holds back each, up to a
    source's split.

    Empty before the first watermark, and once event time has reached its end.
    """
    tasks = {task.name: task for task in frame.tasks}
    senders = {channel.source for channel in frame.channels}
    last = [task for task in frame.tasks if task.name not in senders and task.state != "FINISHED"]
    known = [(mark, task.name) for task in last if (mark := task.metrics.get("currentInputWatermark")) is not None]
    if not known or min(known)[0] == MAX_TIME:
        return ()
    names = [min(known)[1]]
    while names[-1] in tasks:
        holder = tasks[names[-1]].watermarkHolder
        if holder is None or holder in names:
            break
        names.append(holder)
    return tuple(names)


def waiting(frame: Frame) -> str:
    """What the rows that are not in the result yet wait for, in one line: event time, and what holds it back."""
    names = held_by(frame)
    if not names:
        return "Rows are committed with a checkpoint."
    tasks = {task.name: task for task in frame.tasks}
    mark = int(tasks[names[0]].metrics["currentInputWatermark"] or 0)
    holder = f"{names[-1]} of {names[-2]}" if names[-1] not in tasks and len(names) > 1 else names[-1]
    return f"The watermark is at {format_instant(mark - mark % 1_000_000)}, held by {holder}."


@dataclass(frozen=True, slots=True)
class Uneven:
    """A subtask that receives far more than its share, because of its keys.

    Attributes:
        task: its name.
        vertex: the name of its vertex.
        rate, total: records per second that it and its whole vertex receive.
    """

    task: str
    vertex: str
    rate: float
    total: float


def uneven(vertices: Sequence[VertexFrame], edges: Sequence[EdgeFrame], tasks: Sequence[TaskFrame]) -> list[Uneven]:
    """The busiest subtask of each vertex in which one receives far more than its share.

    Args:
        vertices, edges: of the graph.
        tasks: of the job.
    """
    found = []
    for vertex in vertices:
        if not any(edge.target == vertex.id and edge.exchange == "hash" for edge in edges):
            continue
        own = [task for task in tasks if task.vertex == vertex.id]
        if any(task.state != "RUNNING" for task in own):  # the share that an ended subtask leaves to others is no skew
            continue
        rates = {task.name: float(task.metrics.get("numRecordsInPerSecond") or 0) for task in own}
        most, total = max(rates, key=lambda name: rates[name], default=""), sum(rates.values())
        if len(rates) > 1 and total >= LEAST_PER_SECOND and rates[most] * len(rates) >= UNEVEN * total:
            found.append(Uneven(most, vertex.name, rates[most], total))
    return found


def skewed(found: Uneven, hot: str = "") -> str:
    """A sentence that says how uneven the load is, and which key causes it, if a single key does.

    Args:
        found: the subtask.
        hot: the key that causes it, such as ``"97 % of them have origin = ATL"``; empty where none does.

    Example:
        >>> print(skewed(Uneven("sum[1]", "sum", 94, 100), "97 % of them have origin = ATL"))
        sum[1] receives 94 % of the records of sum, 94 of 100 a second: 97 % of them have origin = ATL.
    """
    told = (
        f"{found.task} receives {100 * found.rate / found.total:.0f} % of the records of {found.vertex}, "
        f"{found.rate:,.0f} of {found.total:,.0f} a second"
    )
    return f"{told}: {hot}." if hot else f"{told}, because their keys are assigned to it."
