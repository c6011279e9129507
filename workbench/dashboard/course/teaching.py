"""The state of a lecture: the programs of its steps run in a separate namespace, and their output is kept."""

from __future__ import annotations

import ast
import io
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from markdown_it import MarkdownIt

from workbench.dashboard.course.steps import Step
from workbench.dashboard.shown.bundle import Shown
from workbench.lessons.course import plan_of
from workbench.lessons.exercises.said import Said
from workbench.lessons.lesson import Lesson
from workbench.raised import described

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True, slots=True)
class Slide:
    """The content of a step.

    Attributes:
        board: HTML: the text or the output.
        caption: HTML: the explanation below it.
        program: the text of the program that shows it.
        view: the id of the widget of a live view; empty: there is none.
        letters: of the answers to a question, which the audience may give.
    """

    board: str
    caption: str = ""
    program: str = ""
    view: str = ""
    letters: str = ""


class Teaching:
    """The state of a lecture.

    Args:
        number: of the lesson, with two digits; nothing is written to the learner's progress.
        steps: of the lesson.
    """

    def __init__(self, number: str, steps: list[Step]) -> None:
        self.steps = steps
        plan = plan_of(number)
        self._questions = {each.name: each for each in plan.questions}
        self._exercises = {each.name: each for each in plan.exercises}
        self._lesson = lesson = Lesson(number, None, taught=True)
        self._names: dict[str, Any] = {"__name__": "lecture", "lesson": lesson}
        self._slides: dict[int, Slide] = {}
        self._views: list[Shown] = []

    def show(self, number: int) -> Slide:
        """The slide of a step; the programs of the steps before it run first, each once."""
        for at in range(number + 1):
            if at not in self._slides:
                self._slides[at] = self._taught(at)
        return self._slides[number]

    def again(self, number: int) -> Slide:
        """The slide of a step whose last program has run once more: the next record moves."""
        step = self.steps[number]
        if step.kind == "shows":
            self.show(number)
            self._slides[number] = self._shown(step, step.programs[-1:])
        return self.show(number)

    def answered(self, number: int, letter: str) -> Slide:
        """The slide of a question that the audience has answered."""
        self._slides[number] = self._asked(self.steps[number], letter)
        return self._slides[number]

    def close(self) -> None:
        """End the live views."""
        for view in self._views:
            view.close()  # type: ignore[attr-defined]

    def _taught(self, number: int) -> Slide:
        step = self.steps[number]
        if step.kind == "tells":
            return Slide(_html(step.words) or f"<p>{escape(step.title)}</p>")
        if step.kind in ("asks", "sets"):
            for program in step.programs:
                self._ran(program)
            return self._asked(step) if step.kind == "asks" else self._set(step)
        slide = self._shown(step, step.programs)
        before = self.steps[number - 1]
        if not step.words and "lesson.measured(" in step.programs[-1] and before.kind == "shows":
            return replace(slide, board=self._slides[number - 1].board + slide.board)  # what the answer is read from
        return slide

    def _set(self, step: Step) -> Slide:
        return Slide(Said("Your turn.", [self._exercises[step.name].task], "asks")._repr_html_(), _html(step.words))

    def _asked(self, step: Step, letter: str = "") -> Slide:
        question = self._questions[step.name]
        lines = question.lines()[:-1]
        answer = f" The audience says {letter}." if letter else ""
        if letter:
            self._lesson.predict(step.name, letter)
        board = Said(question.text, lines, "asks")._repr_html_()
        hint = f"Press the letter of an answer.{answer}" if lines else "What do you think?"
        return Slide(board, _html(step.words) or f"<p>{escape(hint)}</p>", letters=getattr(question, "letters", ""))

    def _shown(self, step: Step, programs: tuple[str, ...]) -> Slide:
        board, view = "", ""
        for program in programs:
            board, view = self._ran(program)
        words = _html(step.words)
        if not board and not view:
            return Slide(words, program=programs[-1])
        return Slide(board, words or _asked_for(programs[-1], board), programs[-1], view)

    def _ran(self, program: str) -> tuple[str, str]:
        """What a program shows, as HTML, and the widget of its live view."""
        tree = ast.parse(program)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed = io.StringIO()
        value = None
        try:
            with redirect_stdout(printed):
                exec(compile(tree, "<lecture>", "exec"), self._names)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), "<lecture>", "eval"), self._names)
        except Exception as error:  # noqa: BLE001 - the lecture goes on, and the room sees why
            return Said("This step fails.", [described(error)], "bad")._repr_html_(), ""
        finally:
            self._names["lesson"] = self._lesson
        text = f"<pre>{escape(printed.getvalue())}</pre>" if printed.getvalue() else ""
        if isinstance(value, Shown):
            self._views.append(value)
            return text, value.widget()
        return text + _displayed(value), ""


def _asked_for(program: str, board: str) -> str:
    """The expression whose value a board shows; empty where the board explains itself, or the expression is long."""
    last = ast.parse(program).body[-1]
    text = ast.unparse(last) if isinstance(last, ast.Expr) else ""
    explained = not board or "<svg" in board or "role='status'" in board or text.startswith("print(")
    return "" if explained or not 0 < len(text) <= 100 else f"<p><code>{escape(text)}</code></p>"


def _displayed(value: object) -> str:
    if value is None:
        return ""
    html = getattr(value, "_repr_html_", None)
    return str(html()) if html is not None else f"<pre>{escape(repr(value))}</pre>"


def _html(words: str) -> str:
    return str(_MARKDOWN.render(words)).strip()
