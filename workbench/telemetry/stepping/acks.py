"""Steps with record acknowledgements: which roots were sent, acknowledged, timed out or replayed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.drivers.contract.step import Step, told
from workbench.drivers.stepped.narrator import Lines, Narrator, Shown, at_offset, listed
from workbench.durations import format_duration
from workbench.elements import CheckpointBarrier, Element, Records
from workbench.operators.acking.acker import ACK_SCHEMA, DONE_SCHEMA
from workbench.plan.acking import IDS
from workbench.runtime.barriers.policies import policy_of
from workbench.runtime.job.master import Master
from workbench.runtime.tasks.acked_operator import AckerTask
from workbench.runtime.tasks.acked_source import AckedSourceTask
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.task import Task
from workbench.telemetry.stepping.words import SHOWN, are, few, plural

KNOWN = 100_000
"""The maximum number of roots whose numbers are kept: those that were sent last."""

_ROOT, _ID = (column.name for column in IDS)


def short(value: int) -> str:
    """The first four hexadecimal digits of a value of 64 bits.

    Example:
        >>> short(-1), short(0)
        ('ffff…', '0')
    """
    return f"{value % 2**64:016x}"[:4] + "…" if value else "0"


@dataclass(slots=True)
class _Source:
    """The roots of one source subtask.

    Attributes:
        task: the current attempt's task.
        waiting: the numbers of pending roots, by id.
        failed: the numbers of roots that have timed out and have not been replayed yet, the oldest first.
        sent: the number of roots so far.
        replaced: maps the number of a replayed root to the number of the root that it replaces.
    """

    task: AckedSourceTask
    waiting: dict[int, int] = field(default_factory=dict)
    failed: deque[int] = field(default_factory=deque)
    sent: int = 0
    replaced: dict[int, int] = field(default_factory=dict)


class AcksNarrator(Narrator):
    """Numbers the roots of each source in the order in which they are sent, and describes what happens to them."""

    def __init__(self) -> None:
        self._sources: dict[str, _Source] = {}
        self._names: dict[int, str] = {}
        self._before = (0, 0, 0, 0, 0)
        self._back: tuple[int, ...] = ()
        self._abandoned = self._forgotten = 0
        self._several = False
        self._since_oldest = 0

    # what happened -----------------------------------------------------------------------------------------------

    def look(self, master: Master, execution: Execution | None, task: Task | None) -> None:
        self._abandoned = sum(counts.abandoned for counts in master.services.roots.values())
        if isinstance(task, AckerTask):
            self._forgotten = task.acker.forgotten
        if isinstance(task, AckedSourceTask):
            self._several = execution is not None and len(execution.sources) > 1
            self._before = _counts(task)
            self._back = tuple(_returning(execution, task))
            self._since_oldest = task.since_oldest

    def tell(self, step: Step, master: Master, execution: Execution | None) -> tuple[str, ...]:
        task = None if execution is None else execution.task(step.actor)
        if isinstance(task, AckedSourceTask):
            return tuple(self._of_source(task, execution))
        if isinstance(task, AckerTask):
            return tuple(self._of_acker(task, step))
        abandoned = sum(counts.abandoned for counts in master.services.roots.values()) - self._abandoned
        if abandoned:
            return (
                f"{abandoned} pending {plural('root', abandoned)} ended with the attempt: the sources read again from "
                "the position of the oldest root that was pending at the last checkpoint.",
            )
        return ()

    def _of_source(self, task: AckedSourceTask, execution: Execution | None) -> Iterable[str]:
        source, of = self._source(task), self._of(task)
        emitted, acked, failed, replayed, late = (
            now - before for now, before in zip(_counts(task), self._before, strict=True)
        )
        heard = list(self._back[: len(self._back) - len(tuple(_returning(execution, task)))])
        done = [source.waiting.pop(root) for root in heard if root in source.waiting]
        if done:
            yield f"{_roots(done)}{of} {are(len(done))} acknowledged."
        if late:
            yield f"{late} {plural('root', late)}{of} {are(late)} acknowledged too late: the replay was needless."
        if failed:
            gone = [root for root in source.waiting if root not in task.roots]
            numbers = [source.waiting.pop(root) for root in gone]
            source.failed.extend(numbers)
            waited = format_duration(task.acking.message_timeout_us)
            yield f"{_roots(numbers)}{of} timed out after {waited} or more, and will be replayed."
        again = [source.failed.popleft() for _ in range(min(replayed, len(source.failed)))]
        fresh = self._number(source)
        if again:
            paired = len(again) == len(fresh)
            source.replaced.update(zip(fresh, again, strict=True) if paired else ())
            under = f" as {_roots(fresh).lower()}" if fresh else ", and no record of it left the task"
            yield f"{_roots(again)}{of} {are(len(again))} replayed{under}: its records are counted again."
        at_once = acked - len(done)
        if emitted and at_once > 0:
            yield f"{at_once} {plural('root', at_once)}{of} needed no acknowledgement: nothing was sent for it."

    def _of_acker(self, task: AckerTask, step: Step) -> Iterable[str]:
        forgotten = task.acker.forgotten - self._forgotten
        if forgotten:
            acking = task.settings.policy.acking
            waited = format_duration(0 if acking is None else acking.message_timeout_us)
            what = f"{forgotten} {plural('root', forgotten)}"
            yield f"{task.name} forgot {what} whose XOR did not become 0 within {waited}."
        element = None if step.took is None else step.took.element
        if not _has(element, ACK_SCHEMA):
            return
        assert isinstance(element, Records)
        for root in list(dict.fromkeys(element.batch.column(0).to_pylist()))[:SHOWN]:
            entry = task.acker.pending.get(root)
            if entry is None:
                yield f"The XOR of {self._name(root)} is 0: it and all records derived from it are processed."
            else:
                yield f"The XOR of {self._name(root)} is {short(entry.value)} now."

    def copied(self, task: Task, held: Lines, barrier: CheckpointBarrier | None) -> Lines:
        if not isinstance(task, AckedSourceTask) or (barrier is not None and policy_of(barrier.mode).acking is None):
            return held
        return at_offset(held, int(dict(held)["offset"]) - self._since_oldest if "offset" in dict(held) else None)

    # names -------------------------------------------------------------------------------------------------------

    def _source(self, task: AckedSourceTask) -> _Source:
        source = self._sources.get(task.name)
        if source is None:
            source = self._sources[task.name] = _Source(task)
        elif source.task is not task:  # the roots of its predecessor ended with that one
            source = self._sources[task.name] = _Source(task, sent=source.sent)
        return source

    def _number(self, source: _Source) -> list[int]:
        """Give numbers to the roots that were sent since the last call."""
        fresh = []
        for root in source.task.roots.newest():
            if root in source.waiting:
                break
            fresh.append(root)
        numbers = []
        for root in reversed(fresh):
            source.sent += 1
            source.waiting[root] = source.sent
            self._names[root] = f"root {source.sent}{self._of(source.task)}"
            numbers.append(source.sent)
        while len(self._names) > KNOWN:
            del self._names[next(iter(self._names))]
        return numbers

    def _of(self, task: AckedSourceTask) -> str:
        """The name of the roots' source, if there are several."""
        return f" of {task.name}" if self._several else ""

    def _name(self, root: int) -> str:
        return self._names.get(root, "a root")

    # what is shown -----------------------------------------------------------------------------------------------

    def element(self, element: Element) -> str:
        if not isinstance(element, Records):
            return told(element)
        batch = element.batch
        if _has(element, ACK_SCHEMA):
            roots, values = (column.to_pylist() for column in batch.columns[:2])
            if len(roots) == 1:
                return f"the ids of {self._name(roots[0])} (XOR {short(values[0])})"
            return f"the ids of {len(roots)} roots"
        if _has(element, DONE_SCHEMA):
            return f"the message that {' and '.join(map(self._name, batch.column(0).to_pylist()[:SHOWN]))} is complete"
        if batch.schema.names[-2:] != [_ROOT, _ID]:
            return told(element)
        words = told(Records(batch.select(batch.schema.names[:-2]), element.timestamps))
        roots = list(dict.fromkeys(batch.column(_ROOT).to_pylist()))
        return f"{words} ({self._name(roots[0])})" if len(roots) == 1 and roots[0] in self._names else words

    def record(self, row: dict[str, Any]) -> Shown:
        if tuple(row) == tuple(ACK_SCHEMA.names):
            name = self._name(row["root"])
            number = name.split()[1] if row["root"] in self._names else ""
            return Shown({"XOR of ids": short(row["value"]), "of": name}, number, f"⊕{short(row['value'])}")
        if _ROOT not in row:
            return Shown(row)
        values = {name: value for name, value in row.items() if name not in (_ROOT, _ID)}
        return Shown(values, None, self._name(row[_ROOT]))

    def beside(self, task: Task) -> Lines:
        if isinstance(task, AckerTask):
            table = {}
            for root in tuple(task.acker.pending.newest())[::-1]:
                entry = task.acker.pending.get(root)
                table[self._name(root)] = "" if entry is None else f"XOR {short(entry.value)}"
            return listed(table, SHOWN)
        source = self._sources.get(task.name)
        if source is None or source.task is not task:
            return ()
        pending, failed = tuple(source.waiting.values()), tuple(source.failed)
        lines = [("pending roots", few(pending))] if pending else []
        return (*lines, *([("to be replayed", few(failed))] if failed else []))


def _counts(task: AckedSourceTask) -> tuple[int, int, int, int, int]:
    counts = task.roots.counts
    return counts.emitted, counts.acked, counts.failed, counts.replayed, counts.late


def _returning(execution: Execution | None, task: Task) -> Iterable[int]:
    """The roots in the channels from the ackers to a source, in the order in which it receives them."""
    for channel in () if execution is None else execution.returns:
        if channel.target == task.name:
            for element in channel.elements:
                if isinstance(element, Records):
                    yield from element.batch.column(0).to_pylist()


def _has(element: Element | None, schema: Any) -> bool:
    return isinstance(element, Records) and bool(element.batch.schema.equals(schema))


def _roots(numbers: Sequence[int]) -> str:
    return f"{plural('Root', len(numbers))} {few(numbers)}"
