"""Judges a learner's pipeline: on fixed and drawn inputs, on the stepping driver, with tasks that fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from workbench.lessons.exercises.building import Streams, try_out
from workbench.lessons.exercises.exercise import MissingAnswerError, ViolatedError
from workbench.lessons.exercises.memory import Memory
from workbench.lessons.exercises.moments import Oracle, first_wrong_step
from workbench.lessons.exercises.own_numbers import told
from workbench.lessons.exercises.rows import Row, difference, latest, no_column
from workbench.lessons.exercises.running import Answer, Run, Tables, Trouble

DRAWN = ((6, 0), (30, 0), (40, 3))
"""For each run on drawn inputs, the number of input rows and of task failures."""
FAILURES = 9
"""In each run on a fixed input."""

Property = Callable[[Run], tuple[str, str, int] | None]
"""A further property: returns its name, a sentence and the step if a run violates it."""


@dataclass(frozen=True)
class PipelineCheck:
    """The judge of a function from streams to a stream.

    Attributes:
        edges: the fixed inputs of every attempt: a table for each stream. Each runs undisturbed, and with failures.
        inputs: draws further inputs: (random numbers, rows) -> a table for each stream.
        streams: makes streams from the tables.
        oracle: computes the right rows for the tables, with code that shares nothing with the runtime.
        keys: columns that identify a row of the result.
        final: whether only the last row of each key counts, as in a rolling aggregate.
        lookalikes: typical mistakes: (oracle of the wrong result, sentence that explains the mistake).
        families: the same for mistakes with a duration: it is taken from the answer's operators, and replaces the
            ``{}`` of the sentence.
        properties: further properties.
        settings: of the runs.
        drawn: for each run on drawn inputs, the number of rows and of failures.
    """

    edges: tuple[Tables, ...]
    inputs: Callable[[Random, int], Tables]
    streams: Streams
    oracle: Oracle
    keys: tuple[str, ...]
    final: bool = False
    lookalikes: tuple[tuple[Oracle, str], ...] = ()
    families: tuple[tuple[Callable[[int], Oracle], str], ...] = ()
    properties: tuple[Property, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    drawn: tuple[tuple[int, int], ...] = DRAWN

    def __call__(self, answer: object, seed: int | None) -> str:
        """Judge an answer; see `Judge`."""
        if answer is ... or answer is None:
            raise MissingAnswerError("there is no function yet")
        if not callable(answer):
            raise ViolatedError("a function", f"the answer is {type(answer).__name__}, not a function")
        memory = Memory([answer])
        try:
            try_out(answer, self.streams, self.edges[0])
        finally:
            memory.reset()
        running = Answer(answer, self.streams, self.settings)
        longer = partial(self._drawn, running, seed, 1, 80, 0)
        for tables in self.edges:
            self._judge(running.run(tables), longer)
        for tables in self.edges:  # after the right results: what is wrong now is wrong because of a failure
            self._judge(running.run(tables, lambda: Trouble(FAILURES), buffer_size=1), longer)
        for number, (rows, failures) in enumerate(() if seed is None else self.drawn):
            self._judge(self._drawn(running, seed, number, rows, failures), longer)
        fixed = len(self.edges)
        return (
            f"{fixed} fixed inputs with what is special about this exercise, each also with task failures, and "
            f"{len(self.drawn)} drawn ones: each result equals the oracle's."
        )

    def _drawn(self, answer: Answer, seed: int | None, number: int, rows: int, failures: int) -> Run:
        def trouble() -> Trouble:
            return Trouble(failures, Random(f"{seed} {number} failures"))

        return answer.run(self.inputs(Random(f"{seed} {number}"), rows), trouble)

    def _judge(self, run: Run, longer: Callable[[], Run]) -> None:
        rows = self._counted(run)
        wrong = difference(self.oracle(*run.tables), rows, self.keys)
        if wrong is not None:
            step = first_wrong_step(run, self.oracle, self.keys, final=self.final)
            raise ViolatedError(wrong[0], self._explained(wrong[1], run, longer), run.job, opens=self._opens(run, step))
        for prop in self.properties:
            if (broken := prop(run)) is not None:
                raise ViolatedError(broken[0], broken[1], run.job, opens=self._opens(run, broken[2]))

    def _opens(self, run: Run, step: int | None) -> Any:
        return None if step is None else partial(run.again, step)

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
        if run.failed:
            return f"{words}. {_after_failures(run)}"
        own = [
            (family(number), sentence.format(told(number)))
            for family, sentence in self.families
            for number in run.durations
            if number
        ]
        alike = self._alike(run, [*own, *self.lookalikes])
        if alike:  # on a short input, the match may be a coincidence
            alike = self._alike(longer(), alike)
        return f"{words}. {alike[0][1]}" if alike else f"{words}."


def _after_failures(run: Run) -> str:
    said = f"This happened after {' and '.join(dict.fromkeys(run.failed))} failed; without a failure, the result was "
    said += "correct. Everything that must survive a failure has to be state in checkpoints."
    if run.remembered:
        one = len(run.remembered) == 1
        said += (
            f" Outside of state, your program changes {' and '.join(run.remembered)}: a process that dies takes "
            f"{'it' if one else 'them'} along, and a checkpoint does not contain {'it' if one else 'them'}."
        )
    return said
