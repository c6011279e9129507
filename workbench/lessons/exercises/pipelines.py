"""Judges a learner's pipeline: on hidden inputs, on the stepping driver, with tasks that fail, against an oracle."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.job.job import Job
from workbench.api.job.registry import forget
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.rows import Row, difference, latest, no_column
from workbench.operators.process.process_function import ProcessFunction
from workbench.raised import described

JOB = "lesson-check"
RESULT = "answer"
LEFT = "left_us"
STEPS_MAX = 20_000
ROUNDS = ((6, 0), (30, 0), (30, 2), (40, 3))
"""For each run, the number of input rows and of task failures: the smallest run that goes wrong is shown."""

Tables = tuple[pa.Table, ...]
Oracle = Callable[..., list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an answer.

    Attributes:
        tables: its inputs.
        rows: its result, in the order in which it was committed.
        job: the stepping job, which has ended.
        failed: the tasks that failed, in order.
        left_us: for each row, the time after the start of the run at which the answer emitted it, in microseconds of
            the virtual clock; empty unless the check asks for it.
    """

    tables: Tables
    rows: list[Row]
    job: Job
    failed: tuple[str, ...]
    left_us: tuple[int, ...] = ()


Property = Callable[[Run], tuple[str, str] | None]
"""A further property: returns its name and a sentence if a run violates it."""


@dataclass(frozen=True)
class PipelineCheck:
    """The judge of a function from streams to a stream.

    Attributes:
        inputs: draws the inputs: (random numbers, rows) -> a table for each stream.
        streams: makes streams from the tables.
        oracle: computes the right rows for the tables, with code that shares nothing with the runtime.
        keys: columns that identify a row of the result.
        final: whether only the last row of each key counts, as in a rolling aggregate.
        lookalikes: typical mistakes: (oracle of the wrong result, sentence that explains the mistake).
        properties: further properties.
        settings: of the runs.
        faults: whether tasks fail.
        timed: whether a property needs the times at which rows were emitted.
    """

    inputs: Callable[[Random, int], Tables]
    streams: Callable[..., Sequence[Stream]]
    oracle: Oracle
    keys: tuple[str, ...]
    final: bool = False
    lookalikes: tuple[tuple[Oracle, str], ...] = ()
    properties: tuple[Property, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    faults: bool = True
    timed: bool = False

    def __call__(self, answer: object, seed: int) -> str:
        """Judge an answer; see `Judge`."""
        if answer is ... or answer is None:
            raise MissingAnswerError("there is no function yet")
        if not callable(answer):
            raise ViolatedError("a function", f"the answer is {type(answer).__name__}, not a function")
        rounds = ROUNDS if self.faults else ROUNDS[:2]
        for number, (rows, failures) in enumerate(rounds):
            self._judge(self._run(answer, seed, number, rows, failures), lambda: self._run(answer, seed, 1, 80, 0))
        failed = f", with task failures in {len(rounds) - 2} of them" if self.faults else ""
        return f"{len(rounds)} runs on hidden inputs{failed}: each result equals the oracle's."

    def _run(self, answer: Callable[..., Any], seed: int, number: int, rows: int, failures: int) -> Run:
        chance = Random(f"{seed} {number}")
        return run(self, answer, self.inputs(chance, rows), chance, failures)

    def _judge(self, run: Run, longer: Callable[[], Run]) -> None:
        rows = self._counted(run)
        expected = self.oracle(*run.tables)
        wrong = difference(expected, rows, self.keys)
        if wrong is not None:
            raise ViolatedError(wrong[0], self._explained(wrong[1], run, longer), run.job)
        for prop in self.properties:
            if (broken := prop(run)) is not None:
                raise ViolatedError(broken[0], broken[1], run.job)

    def _counted(self, run: Run) -> list[Row]:
        """The rows that count: all, or the last one of each key."""
        if not self.final:
            return run.rows
        if run.rows and (lacking := [key for key in self.keys if key not in run.rows[0]]):
            needed = list((self.oracle(*run.tables) or [{}])[0]) or self.keys
            raise ViolatedError("the result's columns", no_column(lacking[0], run.rows[0], needed), run.job)
        return latest(run.rows, self.keys)

    def _alike(self, run: Run, among: Sequence[tuple[Oracle, str]]) -> list[tuple[Oracle, str]]:
        """The sentences for the mistakes that would produce this result."""
        rows = self._counted(run)
        return [known for known in among if difference(known[0](*run.tables), rows, self.keys) is None]

    def _explained(self, words: str, run: Run, longer: Callable[[], Run]) -> str:
        told = f"{words}."
        alike = self._alike(run, self.lookalikes)
        if alike:  # on a short input, the match may be a coincidence
            alike = self._alike(longer(), alike)
        if alike:
            return f"{told} {alike[0][1]}"
        if run.failed:
            told += (
                f" This happened after {' and '.join(dict.fromkeys(run.failed))} failed; without a failure, the "
                "result was correct. Everything that must survive a failure has to be state in checkpoints."
            )
        return told


def pipeline(check: PipelineCheck) -> Judge:
    """The judge of a function from streams to a stream."""
    return check


def run(check: PipelineCheck, answer: Callable[..., Any], tables: Tables, chance: Random, failures: int) -> Run:
    """Run an answer on the stepping driver.

    Args:
        answer: of the learner.
        chance: decides which tasks fail, and when.
        failures: the number of failures.

    Raises:
        ViolatedError: it returns no stream, or its job fails by itself or does not end.
        MissingAnswerError: it returns ``...``.
    """
    result = _called(answer, tuple(check.streams(*tables)))
    if check.timed and check.keys[0] in result.columns:
        schema = result.schema.append(pa.field(LEFT, pa.int64()))
        result = result.key_by(check.keys[0]).process(_Stamp(), schema).uid("stamp")
    settings: dict[str, Any] = {
        "parallelism": 2,
        "buffer_size": 4,
        "buffer_timeout": "0ms",
        "checkpoint_interval": None,
        "restart": "fixed-delay:attempts=100,delay=0s",
        **check.settings,
    }
    try:
        job = result.sink_to(TableSink(RESULT)).run(JOB, driver="stepping", replace=True, **settings)
    except WorkbenchError as error:
        raise ViolatedError("a pipeline that runs", str(error)) from error
    driver = job.stepper.driver
    began_us = driver.clock.now_us()
    with driver.unwatched():
        failed = _disturbed(job, chance, failures)
        driver.run_until(lambda: job.over, STEPS_MAX)
    forget(job)  # lists of jobs should not show it
    if not job.over:
        raise ViolatedError("an end", f"the job has not ended after {driver.taken} steps", job)
    if job.state != "FINISHED":
        raise ViolatedError("a pipeline that runs", f"the job failed: {job.status()['failure']}", job)
    rows = job.table(RESULT).to_pylist()
    return Run(tables, rows, job, failed, tuple(row.pop(LEFT) - began_us for row in rows if LEFT in row))


class _Stamp(ProcessFunction):
    """Adds the time at which a row arrives."""

    def process(self, record: Any, state: Any, ctx: Any) -> Any:
        return {**record, LEFT: ctx.processing_time}


def _called(answer: Callable[..., Any], streams: tuple[Stream, ...]) -> Stream:
    try:
        result = answer(*streams)
    except Exception as error:
        line = traceback.extract_tb(error.__traceback__)[-1]
        where = "" if isinstance(error, WorkbenchError) else f", in line {line.lineno}: {line.line}"
        told = str(error) if isinstance(error, WorkbenchError) else described(error)
        raise ViolatedError("a function that works", f"it raises an error: {told}{where}") from error
    if result is ...:
        raise MissingAnswerError("its function still returns `...`")
    if result is None:
        raise ViolatedError("a stream as the result", "the function returns nothing: is a `return` missing?")
    if not isinstance(result, Stream):
        kind = type(result).__name__
        more = ": a window needs an aggregate" if kind == "WindowedStream" else ""
        more = ": what should happen for each key?" if kind == "KeyedStream" else more
        raise ViolatedError("a stream as the result", f"the function returns a {kind}{more}")
    return result


def _disturbed(job: Job, chance: Random, failures: int) -> tuple[str, ...]:
    """Take checkpoints and make tasks fail at random moments."""
    driver, failed = job.stepper.driver, []
    for _ in range(failures):
        driver.run_until(lambda: job.over, chance.randrange(8, 40))
        if job.over:
            break
        job.checkpoint()
        driver.run_until(lambda: job.over, chance.randrange(5, 40))
        scene = job.stepper.scene().scene
        running = [task.name for task in scene.tasks if task.status == "RUNNING"]
        if job.over or not running:
            break
        failed.append(chance.choice(running))
        job.fail(failed[-1])
    return tuple(failed)
