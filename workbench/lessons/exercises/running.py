"""Runs a learner's pipeline on the stepping driver, lets tasks fail, and notes what each step emits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.api.job.job import Job
from workbench.api.job.registry import forget
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.drivers.stepped.stepping import ReachedError
from workbench.elements import Records
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.building import Streams, built
from workbench.lessons.exercises.exercise import ViolatedError
from workbench.lessons.exercises.memory import Memory
from workbench.lessons.exercises.own_numbers import durations_of
from workbench.lessons.exercises.rows import Row
from workbench.operators.changelogs.net_rows import NetRows
from workbench.operators.changelogs.row_kinds import is_changelog

JOB = "lesson-check"
RESULT = "answer"
STEPS_MAX = 20_000

Tables = tuple[pa.Table, ...]


@dataclass(frozen=True, slots=True)
class Trouble:
    """When tasks fail.

    Attributes:
        failures: their number.
        chance: decides when and which; None: at short intervals, each task in turn.
    """

    failures: int = 0
    chance: Random | None = None

    def gaps(self, number: int) -> tuple[int, int]:
        """The steps before the checkpoint of a failure, and those from there to the failure."""
        if self.chance is None:
            return _GAPS[number % len(_GAPS)]
        return self.chance.randrange(8, 40), self.chance.randrange(5, 40)

    def victim(self, number: int, running: Sequence[str]) -> str:
        """The task that fails."""
        return running[number % len(running)] if self.chance is None else self.chance.choice(running)


_GAPS = ((9, 13), (5, 8), (3, 14), (7, 21), (4, 10), (6, 17), (2, 12))
"""A checkpoint needs a few steps to be complete: some failures come before, and some after."""


class Emitted(NamedTuple):
    """A batch that an operator has emitted.

    Attributes:
        uid: of the operator.
        step: the steps that had been taken before.
        time_us: of the virtual clock, after the start of the run.
        batch: its rows.
    """

    uid: str
    step: int
    time_us: int
    batch: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an answer.

    Attributes:
        tables: its inputs.
        rows: its result, in the order in which it was committed; of a changelog, the rows that remain.
        job: the stepping job, which has ended.
        failed: the tasks that failed, in order.
        emitted: what its last operator and its sources emitted, in order.
        end: the uid of its last operator.
        remembered: what the answer changed outside of state, in words.
        durations: those in the answer's operators, in microseconds.
        again: runs the same again, up to a number of steps.
    """

    tables: Tables
    rows: list[Row]
    job: Job
    failed: tuple[str, ...]
    emitted: tuple[Emitted, ...]
    end: str
    remembered: tuple[str, ...]
    durations: tuple[int, ...]
    again: Callable[[int], Job]

    @property
    def results(self) -> list[Emitted]:
        """What the answer itself emitted."""
        return [each for each in self.emitted if each.uid == self.end]


class Answer:
    """A learner's function, which runs as often as a check likes, each time as in a new process.

    Args:
        function: from streams to a stream.
        streams: makes its arguments.
        settings: of its runs.
    """

    def __init__(self, function: Callable[..., Any], streams: Streams, settings: Mapping[str, Any]) -> None:
        self._function = function
        self._streams = streams
        self._settings: dict[str, Any] = {
            "parallelism": 2,
            "buffer_size": 4,
            "buffer_timeout": "0ms",
            "checkpoint_interval": None,
            "restart": "fixed-delay:attempts=100,delay=0s",
            **settings,
        }

    def run(self, tables: Tables, trouble: Callable[[], Trouble] = Trouble, **settings: Any) -> Run:
        """Run it to its end.

        Args:
            tables: the inputs.
            trouble: made anew for each repetition.
            settings: of this run.

        Raises:
            ViolatedError: it returns no stream, or its job fails by itself or does not end.
            MissingAnswerError: it returns ``...``.
        """
        trial = _Trial(self, tables, trouble(), settings)
        try:
            return trial.finished(lambda steps: _Trial(self, tables, trouble(), settings).until(steps))
        finally:
            trial.memory.reset()

    def start(self, tables: Tables, memory: Memory, settings: Mapping[str, Any]) -> tuple[Stream, Job]:
        """Build the pipeline, and start its job; nothing has moved yet."""
        memory.add([self._function])
        memory.reset()
        result = built(self._function, self._streams(*tables))
        if result._end.tag is not None:  # a side output: an operator behind it can be listened to
            result = result.select(*result.columns)
        pipeline = result.sink_to(TableSink(RESULT))
        memory.add(node.spec for node in pipeline.logical_graph().nodes)
        try:
            job = pipeline.run(JOB, driver="stepping", replace=True, **{**self._settings, **settings})
        except WorkbenchError as error:
            raise ViolatedError("a pipeline that runs", str(error)) from error
        forget(job)  # lists of jobs should not show it, and one that never ends should be in nobody's way
        return result, job


class _Trial:
    """One run, and what is noted about it."""

    def __init__(self, answer: Answer, tables: Tables, trouble: Trouble, settings: Mapping[str, Any]) -> None:
        self._tables = tables
        self._trouble = trouble
        self.memory = Memory()
        self._result, self._job = answer.start(tables, self.memory, settings)
        self._driver = self._job.stepper.driver
        self._began_us = self._driver.clock.now_us()
        self._emitted: list[Emitted] = []
        self._remembered: dict[str, None] = {}
        self._failed: list[str] = []

    def finished(self, again: Callable[[int], Job]) -> Run:
        """Run it to its end."""
        graph = self._result.sink_to(TableSink(RESULT)).logical_graph()
        end = graph.uids[self._result._end.node]
        uids = {end, *(uid for node, uid in graph.uids.items() if node.role == "source")}
        job = self._job
        with self._driver.listening(uids, self._note):
            self._go()
        self._note_memory()
        if not job.over:
            raise ViolatedError("an end", f"the job has not ended after {self._driver.taken} steps", job)
        if job.state != "FINISHED":
            raise ViolatedError("a pipeline that runs", f"the job failed: {job.status()['failure']}", job)
        return Run(
            self._tables, _remaining(job.table(RESULT)), job, tuple(self._failed), tuple(self._emitted), end,
            tuple(self._remembered), durations_of(graph), again,
        )  # fmt: skip

    def until(self, steps: int) -> Job:
        """Run it up to a step, with the same failures."""
        self._driver.stop_at = steps
        with suppress(ReachedError):
            self._go()
        self._driver.stop_at = None
        return self._job

    def _go(self) -> None:
        with self._driver.unwatched():
            self._disturb()
            self._driver.run_until(lambda: self._job.over, STEPS_MAX)

    def _disturb(self) -> None:
        """Take checkpoints, and let tasks fail with all that is in the memory of their process."""
        job, driver = self._job, self._driver
        for number in range(self._trouble.failures):
            before, after = self._trouble.gaps(number)
            driver.run_until(lambda: job.over, before)
            if job.over:
                break
            job.checkpoint()
            driver.run_until(lambda: job.over, after)
            running = [task.name for task in job.stepper.scene().scene.tasks if task.status == "RUNNING"]
            if job.over or not running:
                break
            self._failed.append(self._trouble.victim(number, running))
            job.fail(self._failed[-1])
            self._note_memory()
            self.memory.reset()

    def _note(self, uid: str, records: Records) -> None:
        driver = self._driver
        self._emitted.append(Emitted(uid, driver.taken, driver.clock.now_us() - self._began_us, records.batch))

    def _note_memory(self) -> None:
        self._remembered.update(dict.fromkeys(self.memory.changed()))


def _remaining(table: pa.Table) -> list[Row]:
    if not is_changelog(table.schema):
        rows: list[Row] = table.to_pylist()
        return rows
    net = NetRows(table.schema)
    for batch in table.to_batches():
        net.add(batch)
    remaining: list[Row] = net.table().to_pylist()
    return remaining
