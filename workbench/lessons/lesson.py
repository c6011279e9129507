"""A lesson in a notebook: predictions, hints, checks and progress."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from workbench.api.job.job import Job
from workbench.arguments import as_given
from workbench.errors import JobError, SettingError, unknown
from workbench.lessons.building.source import cells_of
from workbench.lessons.course import numbered, plan_of, source_of
from workbench.lessons.exercises.exercise import Exercise, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.memory import Memory
from workbench.lessons.exercises.question import Question
from workbench.lessons.exercises.said import Said, Verdict
from workbench.lessons.exercises.time_limit import TooLongError, time_limit
from workbench.lessons.lecturer import Lecturer
from workbench.lessons.pictures.curves import curves
from workbench.lessons.pictures.frame import Picture
from workbench.lessons.pictures.times import times
from workbench.lessons.progress import FILE, Checked, LessonProgress, Prediction, ProgressFile
from workbench.packages import needed

LIMIT_S = 30.0
"""A check takes a second or two; a program that is not done after this time has no end."""
TOO_LONG = (
    f"the program has not ended after {LIMIT_S:.0f} s, or has filled the memory: is there a loop without an end, a "
    "generator that always yields, or a `sleep`?"
)


class Lesson:
    """A lesson of the course; made by `lesson`.

    Source: it teaches D1 to D6; Gossip Glomers, whose checker names the property that a program violates.

    Example:
        >>> lesson = wb.lesson("01", progress=False)
        >>> lesson.predict("same", "z")
        'z' is not one of 'a', 'b', 'c'.
          ...
    """

    def __init__(self, number: str, progress: Path | None, taught: bool = False) -> None:
        self._plan = plan_of(number)
        self._taught = taught  # to an audience, which need not predict
        self._file = None if progress is None else ProgressFile(progress)
        self._done = LessonProgress() if self._file is None else self._file.of(number)
        self._violated: ViolatedError | None = None
        self._answer: object = ...  # that has violated it
        self._counterexample: Job | None = None  # once somebody looks at it
        self._memory = Memory()  # of the answer, before its counterexample was opened

    # what is asked -----------------------------------------------------------------------------------------------

    def predict(self, name: str, answer: object = ...) -> Said:
        """Answer a question before the run that settles it.

        Args:
            name: of the question.
            answer: a letter or a number; ``...`` shows the question again.

        Raises:
            SettingError: there is no such question.
        """
        question = self._question(name)
        if answer is ...:
            return Said(question.text, question.lines(), "asks")
        if (problem := question.problem(answer)) is not None:
            return Said(f"{problem}.", [question.text, *question.lines()], "bad")
        kept = question.told(answer)
        self._done.predictions[name] = Prediction(kept)
        self._save()
        return Said(f"You predict {kept}.", ["Now run the next cells to find out."], "asks")

    def measured(self, name: str, value: object) -> Said:
        """Compare a prediction with the measurement of a run.

        Args:
            name: of the question.
            value: the measured value.

        Raises:
            SettingError: there is no such question.
        """
        question = self._question(name)
        given = self._done.predictions.get(name)
        right, told = question.settle(None if given is None else given.answer, value)
        if given is None:
            asked = [] if self._taught else ["You made no prediction: next time, guess before you run the cells."]
            return Said(told, [*asked, question.because])
        given.right = right
        self._save()
        head = f"Your prediction, {given.answer}, was right." if right else f"Your prediction was {given.answer}."
        return Said(head, [told, question.because], "good" if right else "bad")

    # what is written ---------------------------------------------------------------------------------------------

    def check(self, name: str, answer: object = ...) -> Verdict:
        """Check your solution of an exercise: it runs on hidden inputs and under failures.

        The inputs that an exercise turns on (limits of windows, zeros, a failure at each step) are part of every
        attempt; others are drawn anew. The exercise counts as passed if the last attempt has passed.

        Args:
            name: of the exercise.
            answer: the function, class or value that the exercise asks for.

        Returns:
            What was found, for display; its attribute ``passed`` is True or False, for a script that grades.

        Raises:
            SettingError: there is no such exercise.

        Example:
            >>> wb.lesson("02", progress=False).check("settings", {"buffer_timeout": "1s"}).passed
            False
        """
        exercise = self._exercise(name)
        done = self._done.checks.setdefault(name, Checked())
        self._close_counterexample()
        self._violated, self._answer = None, answer
        try:
            with time_limit(LIMIT_S):
                words = exercise.judge(answer, zlib.crc32(f"{name} {done.attempts}".encode()))
        except MissingAnswerError as missing:
            lines = [exercise.task, f"`lesson.hint({name!r})` gives a hint."]
            return Verdict(False, f"Not answered yet: {missing}.", lines, tone="asks")
        except TooLongError:
            violated: ViolatedError | None = ViolatedError("an end", TOO_LONG)
        except ViolatedError as found:
            violated = found
        else:
            violated = None
        done.attempts += 1
        done.passed = violated is None
        self._save()
        return Verdict(True, "Passed.", [words]) if violated is None else self._violation(exercise, violated)

    def hint(self, name: str) -> Said:
        """The next hint of an exercise; the last one is nearly the solution.

        Args:
            name: of the exercise.

        Raises:
            SettingError: there is no such exercise.
        """
        hints = self._exercise(name).hints
        number = min(self._done.hints.get(name, 0) + 1, len(hints))
        self._done.hints[name] = number
        self._save()
        return Said(f"Hint {number} of {len(hints)}", [hints[number - 1]])

    @property
    def counterexample(self) -> Job:
        """The run in which the last check found a violation, as a job to step through.

        It stands just before the step in which the first wrong row is emitted, or in which the last record of a missing
        row leaves its source: ``lesson.counterexample.stepper.step()`` goes on, and ``back()`` goes back. If no such
        step is known, the run is at its end.

        Raises:
            JobError: no check has found a violation in a run.
        """
        if self._violated is None or self._violated.job is None:
            raise JobError("there is no counterexample: the last check found no violation in a run of a job")
        if self._counterexample is None:
            self._memory = Memory([self._answer])
            with time_limit(LIMIT_S):
                self._counterexample = self._violated.job if self._violated.opens is None else self._violated.opens()
        return self._counterexample

    # pictures ----------------------------------------------------------------------------------------------------

    def curves(self, places: Sequence[object], series: Mapping[str, Sequence[float]], x: str, y: str) -> Picture:
        """A picture of values that depend on a setting: one curve for each series.

        Args:
            places: the labels below the points, from left to right.
            series: the values at these points, by name.
            x, y: the names of the axes, with units.
        """
        return curves(places, series, x, y)

    def times(
        self,
        records: Sequence[tuple[float, float, str]],
        windows: Sequence[tuple[float, float]] = (),
        watermark: Sequence[tuple[float, float]] = (),
    ) -> Picture:
        """A picture of event time against processing time.

        Args:
            records: when each happened, when it was seen, both in seconds, and a short text.
            windows: of event time, from and to, in seconds.
            watermark: (processing time, event time) in seconds; each is valid from that processing time on.
        """
        return times(records, windows, watermark)

    # progress ----------------------------------------------------------------------------------------------------

    @property
    def complete(self) -> bool:
        """Whether all predictions are made and all checks have passed."""
        return all(done for _, done in self._steps())

    def progress(self) -> Said:
        """The finished and open parts of this lesson."""
        steps = self._steps()
        lines = [f"{'done' if done else 'open'}: {what}" for what, done in steps]
        count = sum(done for _, done in steps)
        return Said(
            f"{count} of {len(steps)} done in lesson {int(self._plan.number)}",
            lines,
            "good" if self.complete else "plain",
        )

    def download(self) -> Download:
        """A link that downloads the progress of all lessons; put the file next to the notebooks to continue elsewhere.

        Raises:
            JobError: this lesson keeps no progress.
        """
        if self._file is None:
            raise JobError("this lesson keeps no progress: open it without progress=False")
        self._file.save()
        return Download(self._file.path.name, self._file.text())

    @property
    def lecturer(self) -> Lecturer:
        """The lecturer's actions: reset the lesson, jump to a section, show a solution; see `Lecturer`."""
        return Lecturer(cells_of(source_of(self._plan.number)), self._reset)

    def lecture(self, section: int = 0) -> Any:
        """The lesson as a lecture, for display in a cell: one step at a time fills the window, in large type, with its
        live picture and a caption.

        The arrow keys move through the steps, digits jump to sections. The program of a step runs when you reach the
        step, in a separate namespace: you need not run or write a cell, and your progress does not change. On a
        question, the letter of an answer is the audience's prediction. R runs a step again, so that the next record
        moves; C shows its program; F fills the screen; Escape leaves the lecture, and L returns to it.

        Source: not in Flink; the slides of B, which were presented in this way.

        Args:
            section: the section to begin with; 0: the title.

        Raises:
            SettingError: there is no such section.

        Example:
            >>> wb.lesson("04", progress=False).lecture()
            A lecture on Lesson 4: Time: ...
        """
        sections = max(cell.section for cell in cells_of(source_of(self._plan.number)))
        if section not in range(sections + 1):
            raise SettingError(f"there is no section {as_given(section)}: this lesson has 1 to {sections}")
        return needed("workbench.dashboard.course.blackboard", "a lecture").Blackboard(self._plan.number, section)

    def __repr__(self) -> str:
        return repr(self._card())

    def _repr_html_(self) -> str:
        return self._card()._repr_html_()

    # inside ------------------------------------------------------------------------------------------------------

    def _card(self) -> Said:
        plan, steps = self._plan, self._steps()
        count = sum(done for _, done in steps)
        where = "Progress is not kept." if self._file is None else f"Progress is kept in {self._file.path.name}."
        return Said(
            f"Lesson {int(plan.number)}: {plan.title}",
            [
                plan.promise,
                f"{count} of {len(steps)} steps done. {where}",
            ],
        )

    def _steps(self) -> list[tuple[str, bool]]:
        plan, done = self._plan, self._done
        predicted = [(f"predict {each.name!r}", each.name in done.predictions) for each in plan.questions]
        checked = [
            (f"exercise {each.name!r}", each.name in done.checks and done.checks[each.name].passed)
            for each in plan.exercises
        ]
        return predicted + checked

    def _violation(self, exercise: Exercise, violated: ViolatedError) -> Verdict:
        self._violated = violated
        lines = [violated.words]
        if violated.opens is not None:
            lines.append(
                "You can inspect the run: `lesson.counterexample.stepper.scene()` shows it just before it goes wrong, "
                "and `lesson.counterexample.stepper.step()` goes on. After `lesson.counterexample.wait()`, "
                "`lesson.counterexample.table()` is its result."
            )
        elif violated.job is not None:
            lines.append(
                "You can inspect the run: `lesson.counterexample.table()` is its result, and "
                "`lesson.counterexample.stepper.back(20)` shows the moment 20 steps before its end."
            )
        lines.append(f"`lesson.hint({exercise.name!r})` gives a hint.")
        if violated.calls:
            lines.append("To reproduce it, run these lines in a new cell, one after the other:")
        return Verdict(False, f"Not yet. Violated: {violated.violated}.", lines, "\n".join(violated.calls))

    def _close_counterexample(self) -> None:
        """End the run that somebody looked at, and give the variables of its program their earlier values."""
        if self._counterexample is not None and not self._counterexample.over:
            self._counterexample.cancel()
        self._memory.reset()
        self._counterexample, self._memory = None, Memory()

    def _question(self, name: str) -> Question:
        named = {each.name: each for each in self._plan.questions}
        if name not in named:
            raise SettingError(unknown("question", name, named))
        return named[name]

    def _exercise(self, name: str) -> Exercise:
        named = {each.name: each for each in self._plan.exercises}
        if name not in named:
            raise SettingError(unknown("exercise", name, named))
        return named[name]

    def _reset(self) -> None:
        self._done.predictions.clear()
        self._done.hints.clear()
        self._done.checks.clear()
        self._save()

    def _save(self) -> None:
        if self._file is not None:
            self._file.save()


class Download:
    """A link in a cell that downloads a file; as text, its name."""

    def __init__(self, name: str, text: str) -> None:
        self._name = name
        self._text = text

    def __repr__(self) -> str:
        return f"The progress is in the file {self._name} beside this notebook."

    def _repr_html_(self) -> str:
        data = base64.b64encode(self._text.encode()).decode()
        name = escape(self._name, quote=True)
        return f'<a download="{name}" href="data:application/json;base64,{data}">Download {name}</a>'


def lesson(number: str | int, progress: str | Path | bool = True) -> Lesson:
    """Open a lesson of the course in its notebook.

    The lesson asks before it shows (`Lesson.predict`, `Lesson.measured`), gives hints (`Lesson.hint`) and judges what
    you write by properties such as no loss and no duplicate (`Lesson.check`). It works without a network, and as text
    where a front end shows no HTML.

    Source: the exercises of Gossip Glomers and of Apache Flink's training; B and C for what is taught.

    Args:
        number: of the lesson, ``"04"``.
        progress: the file in which progress is kept; True: ``course-progress.json`` in the current folder; False: none.

    Raises:
        SettingError: there is no such lesson, or the file cannot be read.

    Example:
        >>> lesson = wb.lesson("01", progress=False)
        >>> lesson
        Lesson 1: A table in motion
          ...
    """
    path = None if progress is False else Path(FILE if progress is True else progress)
    return Lesson(numbered(number), path)
