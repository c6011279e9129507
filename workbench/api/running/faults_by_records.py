"""Faults that happen at a record and not at a time, so that they are the same in every run of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import pyarrow as pa

from workbench.api.job.registry import jobs
from workbench.arguments import as_given, whole_number
from workbench.durations import Duration, format_duration, parse_duration
from workbench.elements import Records
from workbench.errors import SettingError
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.snapshots.pieces import value_in
from workbench.plan.logical import Input, Node, with_nodes_between
from workbench.runtime.job.master import Master
from workbench.runtime.job.zombies import Woken, Zombie
from workbench.runtime.settings.called import called
from workbench.runtime.tasks.task import Task
from workbench.runtime.transactions.transactions import Transactions


class FailedOnPurposeError(Exception):
    """The failure of a task by ``task-dies`` or ``zombie``."""


@dataclass(frozen=True)
class RecordFault:
    """A fault at a record, made by `task_dies`, `zombie` or `slow_receiver`.

    Attributes:
        kind: its name.
        at: the number of records before it, of the first subtask of the first source.
        records: how many records it lasts; 0: it happens once.
        rest_us: for each thousand records while it lasts.
        wakes: after how many further records a replaced task wakes up; 0: it is dead.
    """

    kind: str
    at: int
    records: int = 0
    rest_us: int = 0
    wakes: int = 0

    def __str__(self) -> str:
        lasting = f",records={self.records},rest={format_duration(self.rest_us)}" if self.records else ""
        return f"{self.kind}:at={self.at}{lasting}{f',wakes={self.wakes}' if self.wakes else ''}"


def task_dies(at: int | str = 10_000) -> RecordFault:
    """The task that receives the records of the first source fails after `at` records, once."""
    return RecordFault("task-dies", _count(at, "at"))


def slow_receiver(at: int | str = 10_000, records: int | str = 10_000, rest: Duration = "500ms") -> RecordFault:
    """The first sink rests for `rest` for each thousand records, from record `at` on, for a number of records."""
    rest_us = parse_duration(rest, "rest")
    if rest_us == 0:
        raise SettingError("rest is 0: write a time such as '500ms'")
    return RecordFault("slow-receiver", _count(at, "at"), _count(records, "records"), rest_us)


def zombie(at: int | str = 10_000, wakes: int | str = 5_000) -> RecordFault:
    """The task that receives the records of the first source stands still after `at` records, and is replaced; it wakes
    up after `wakes` further ones, or at the end, and processes, sends and writes its unfinished work."""
    return RecordFault("zombie", _count(at, "at"), wakes=_count(wakes, "wakes"))


FAULTS: dict[str, Callable[..., RecordFault]] = {
    "task-dies": task_dies,
    "slow-receiver": slow_receiver,
    "zombie": zombie,
}
"""The makers of faults, by the names that users write."""


def parse_faults(given: object) -> tuple[RecordFault, ...]:
    """Faults, or their names with arguments: one, several, or None for none.

    Raises:
        SettingError: no such fault or argument, or an invalid value.

    Example:
        >>> [str(fault) for fault in parse_faults(["task-dies:at=500", "slow-receiver:at=700,records=100"])]
        ['task-dies:at=500', 'slow-receiver:at=700,records=100,rest=500ms']
    """
    if given is None:
        return ()
    several = given if isinstance(given, list | tuple) else [given]
    return tuple(
        one if isinstance(one, RecordFault) else called(one, FAULTS, "fault", "task-dies:at=20000") for one in several
    )


def with_faults(
    sinks: Sequence[Node], faults: Sequence[RecordFault], *, replays: bool, woken: list[Woken] | None = None
) -> tuple[Node, ...]:
    """The pipeline with these faults, which happen once for each call of this.

    Args:
        sinks: of the pipeline.
        faults: in any order.
        replays: False where sources continue after a failure with the next record.
        woken: receives what tasks did when they woke up.
    """
    woken = [] if woken is None else woken
    dying = [fault for fault in faults if not fault.records]
    slow = [fault for fault in faults if fault.records]
    sources: list[Node] = []
    probes: dict[Node, Node] = {}

    def between(node: Node, item: Input) -> Input:
        if not item.node.inputs and item.tag is None and (not sources or item.node in probes):
            sources.append(item.node)
            if item.node not in probes:
                probes[item.node] = _probe(
                    FaultProbe(tuple(dying), replays, woken), replace(item, exchange=None, keys=()), item.node
                )
            item = replace(item, node=probes[item.node])
        if slow and node is sinks[0]:
            item = Input(_probe(FaultProbe(tuple(slow), replays, woken), item, node))
        return item

    return with_nodes_between(sinks, between)


@dataclass(frozen=True)
class FaultProbe:
    """Passes records on, and does what its faults say.

    Attributes:
        faults: in any order.
        replays: False if a count continues after a failure, because the sources do.
        woken: what tasks did that stood still, when they woke up.
        passed: how many records have passed, by subtask; this and `happened` are shared by all attempts.
        happened: the faults that have.
        asleep: tasks that stand still, by the fault that has done this.
    """

    faults: tuple[RecordFault, ...]
    replays: bool = True
    woken: list[Woken] = field(default_factory=list, repr=False, compare=False, hash=False)
    passed: dict[int, int] = field(default_factory=dict, repr=False, compare=False, hash=False)
    happened: set[RecordFault] = field(default_factory=set, repr=False, compare=False, hash=False)
    asleep: dict[RecordFault, Zombie] = field(default_factory=dict, repr=False, compare=False, hash=False)
    kind: ClassVar[str] = "faults"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return inputs[0]

    def describe(self) -> str:
        return ", ".join(map(str, self.faults)) or "none"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _Probe(self)


class _Probe(Operator):
    """State: how many records have passed in the first subtask."""

    def __init__(self, spec: FaultProbe) -> None:
        self._spec = spec
        self._passed = 0
        self._rests_until_us = 0
        self._stands_still = False

    def open(self, context: OperatorContext) -> None:
        self._context = context
        if not self._spec.replays:
            self._passed = self._spec.passed.get(context.subtask, 0)
        self._first = context.subtask == 0
        self._once = sorted((fault for fault in self._spec.faults if self._first and not fault.records), key=_place)
        self._lasting = [fault for fault in self._spec.faults if fault.records]

    def process(self, records: Records, port: int, out: Output) -> None:
        begin = 0
        for fault in self._once:
            place = fault.at - self._passed
            if fault not in self._spec.happened and begin <= place < len(records):
                out.emit(records.slice(begin, place - begin))
                self._spec.happened.add(fault)
                if not fault.wakes:
                    raise FailedOnPurposeError(f"failed on purpose after record {fault.at:,}")
                self._stands_still = True
                self._spec.asleep[fault] = Zombie(self._task(), records.slice(place, len(records) - place), out)
                raise FailedOnPurposeError(f"stands still on purpose after record {fault.at:,}, and is replaced")
        out.emit(records)
        before = self._passed
        self._passed = self._spec.passed[self._context.subtask] = before + len(records)
        self._wake([fault for fault in self._spec.asleep if self._first and self._passed >= fault.at + fault.wakes])
        rest_us = 0
        for fault in self._lasting:
            slow = min(self._passed, fault.at + fault.records) - max(before, fault.at)
            rest_us = max(rest_us, fault.rest_us * slow // 1_000)
        if rest_us:
            self._rests_until_us = self._context.clock.now_us() + rest_us

    def close(self) -> None:
        if self._first and not self._stands_still:
            self._wake(list(self._spec.asleep))

    def _task(self) -> Task:
        """The task that this operator is in."""
        execution = jobs()[self._context.job]._run.master.execution
        assert execution is not None
        return next(task for task in execution.tasks if any(link.operator is self for link in task.links))

    def _wake(self, faults: Sequence[RecordFault]) -> None:
        for fault in faults:
            zombie = self._spec.asleep.pop(fault)
            self._spec.woken.append(woken := zombie.wake())
            master = jobs()[self._context.job]._run.master
            if isinstance(parts := master.services.parts, Transactions):
                parts.note_refused(woken.refused or 0)
            master.call(partial(_tell, master, zombie, woken))

    def ready(self) -> bool:
        return self.next_time_us() is None

    def next_time_us(self) -> int | None:
        if self._rests_until_us and self._context.clock.now_us() >= self._rests_until_us:
            self._rests_until_us = 0
        return self._rests_until_us or None

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        return {"passed": self._passed}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        saved = [value_in(snapshot, "passed", int) for snapshot in snapshots if "passed" in snapshot]
        if self._context.subtask < len(saved):
            self._passed = saved[self._context.subtask]


def _tell(master: Master, zombie: Zombie, woken: Woken) -> None:
    master.life.tell("notice", zombie.told(woken))


def _probe(spec: FaultProbe, item: Input, beside: Node) -> Node:
    """A node in the same subtasks as another one."""
    return Node(
        spec, (item,), item.schema, {}, parallelism=beside.parallelism, slot_sharing_group=beside.slot_sharing_group
    )


def _place(fault: RecordFault) -> int:
    return fault.at


def _count(value: int | str, name: str) -> int:
    if isinstance(value, str):
        try:
            value = int(value.replace("_", ""))
        except ValueError:
            raise SettingError(f"{name} is {as_given(value)}: write a number of records, such as 10000") from None
    return whole_number(value, name)
