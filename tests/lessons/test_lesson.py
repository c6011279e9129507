"""A lesson asks, gives hints, checks answers, and stores progress in a file."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answers_01 import RIGHT, WRONG

import workbench as wb
from workbench.cli import main
from workbench.errors import JobError, SettingError
from workbench.lessons.building.notebooks import build, notebook
from workbench.lessons.building.source import cells_of
from workbench.lessons.course import COURSE, SOURCES, questions_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_question_is_asked_and_settled_by_what_is_measured(here: Path) -> None:
    lesson = wb.lesson("01")
    assert "a: They are the same." in repr(lesson.predict("same"))
    assert repr(lesson.predict("same", "x")).startswith("'x' is not one of 'a', 'b', 'c'.")
    assert "You made no prediction" in repr(lesson.measured("same", True))
    assert repr(lesson.predict("same", "B")).startswith("You predict b.")
    settled = repr(lesson.measured("same", True))
    assert settled.startswith("Your prediction was b.\n  The run shows a: They are the same.")
    lesson.predict("same", "a")
    assert repr(lesson.measured("same", True)).startswith("Your prediction, a, was right.")
    assert repr(lesson.predict("channels", "four")).startswith("'four' is not a number of channels.")
    lesson.predict("channels", 5)
    assert repr(lesson.measured("channels", 4)).startswith("Your prediction was 5.")
    with pytest.raises(SettingError, match="unknown question 'sane': did you mean 'same'"):
        lesson.predict("sane", "a")


def test_numbers_of_any_kind_are_numbers() -> None:
    lesson = wb.lesson("01", progress=False)
    for answer in (4, 4.0, np.int64(4), np.float32(4), Fraction(8, 2)):
        assert repr(lesson.predict("channels", answer)).startswith("You predict 4.")
        assert repr(lesson.measured("channels", 4)).startswith("Your prediction, 4, was right.")
    assert repr(lesson.predict("channels", -0.0)).startswith("You predict 0.")
    for answer in (-1, 10**400, float("nan"), True, "4", None):
        assert " is not a number of channels." in repr(lesson.predict("channels", answer))


def test_a_measurement_of_a_changed_cell_gets_a_sentence() -> None:
    lesson = wb.lesson("03", progress=False)
    lesson.predict("sessions", "b")
    said = repr(lesson.measured("sessions", 4))
    assert said.startswith("Your prediction was b.\n  Measured: 4. No answer fits: have you changed a cell?")
    assert "The run shows something else." in repr(lesson.measured("median", "shrinks"))


def test_progress_is_in_a_file_and_comes_back(here: Path) -> None:
    lesson = wb.lesson(1)
    lesson.predict("same", "a")
    lesson.hint("hashtags")
    assert repr(lesson.hint("hashtags")).startswith("Hint 2 of 3")
    again = wb.lesson("1")
    assert "1 of 4 steps done" in repr(again)
    assert repr(again.hint("hashtags")).startswith("Hint 3 of 3")
    kept = json.loads((here / "course-progress.json").read_text())
    assert kept["lessons"]["01"]["predictions"] == {"same": {"answer": "a", "right": None}}
    assert 'download="course-progress.json"' in again.download()._repr_html_()
    again.lecturer.reset()
    assert "0 of 4 steps done" in repr(wb.lesson("01"))


@pytest.mark.parametrize("content", ["no JSON", '{"version": "1"}', '{"lessons": {"01": {"hints": {"a": "b"}}}}', "[]"])
def test_a_file_of_another_kind_is_refused_and_left_alone(here: Path, content: str) -> None:
    (here / "course-progress.json").write_text(content)
    with pytest.raises(SettingError, match=r"the progress in 'course-progress.json' cannot be read"):
        wb.lesson("01")
    assert (here / "course-progress.json").read_text() == content


def test_a_check_passes_fails_with_a_run_to_step_through_or_is_missing(here: Path) -> None:
    lesson = wb.lesson("01")
    assert repr(lesson.check("hashtags")).startswith("Not answered yet: there is no function yet.")
    assert repr(lesson.check("hashtags", lambda posts: ...)).startswith("Not answered yet: its function still returns")
    with pytest.raises(JobError, match="there is no counterexample"):
        lesson.counterexample  # noqa: B018
    answer, words = WRONG["hashtags"]["the first tag"]
    assert words in repr(lesson.check("hashtags", answer))
    assert lesson.counterexample.stepper.back(5).scene.tasks
    assert not lesson.complete
    assert repr(lesson.check("hashtags", RIGHT["hashtags"]["flat_map"])).startswith("Passed.")
    assert "done: exercise 'hashtags'" in repr(lesson.progress())


def test_what_is_shown_is_escaped() -> None:
    said = wb.lesson("01", progress=False).predict("same", "<script>")
    assert "<script>" not in said._repr_html_()
    assert "&lt;script&gt;" in said._repr_html_()


def test_a_lecturer_jumps_and_shows_solutions() -> None:
    lecturer = wb.lesson("01", progress=False).lecturer
    assert "2 What you wrote, and what runs" in repr(lecturer)
    assert "startswith" in repr(lecturer.solution("hashtags"))
    with pytest.raises(SettingError, match="no exercise 'x': this lesson has hashtags"):
        lecturer.solution("x")
    with pytest.raises(SettingError, match="there is no section 9"):
        lecturer.jump(9, {})


def test_a_lecturer_jumps_into_the_lesson(here: Path) -> None:
    names: dict[str, object] = {}
    told = repr(wb.lesson("01").lecturer.jump(2, names))
    assert "Continue with 2. What you wrote, and what runs." in told
    assert "counts" in names


def test_a_source_becomes_a_blank_and_a_solved_notebook() -> None:
    source = "# T\n\n```python D1\n# BEGIN SOLUTION\n# BLANK n = ...\nn = 1\n# END SOLUTION\n```\n## 1. One\ntext\n"
    assert [(cell.kind, cell.section, cell.tags) for cell in cells_of(source)] == [
        ("markdown", 0, ()), ("code", 0, ("D1",)), ("markdown", 1, ()),
    ]  # fmt: skip
    blank, solved = (json.loads(notebook(source, "01", solved=solved)) for solved in (False, True))
    assert [blank["cells"][1]["source"], solved["cells"][1]["source"]] == [["n = ..."], ["n = 1"]]
    for broken in ("```python\n1", "```python\n# BEGIN SOLUTION\n```"):
        with pytest.raises(ValueError, match="has no end"):
            cells_of(broken)


def test_the_notebooks_are_those_of_the_sources(tmp_path: Path) -> None:
    """``make lessons`` writes them."""
    made = build(SOURCES, tmp_path, questions_of)
    assert len(made) == 2 * len(COURSE)
    there = {path.relative_to(tmp_path): path.read_text() for path in made}
    kept = ROOT / "notebooks/course"
    assert {path.relative_to(kept): path.read_text() for path in kept.rglob("*.ipynb")} == there


@pytest.mark.parametrize("number", COURSE)
def test_each_question_stands_above_the_cell_that_asks_it(number: str) -> None:
    cells = json.loads((ROOT / f"notebooks/course/{number}_{COURSE[number]}.ipynb").read_text())["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    for question in questions_of(number):
        [at] = [index for index, text in enumerate(texts) if f'lesson.predict("{question.name}"' in text]
        assert cells[at - 1]["cell_type"] == "markdown"
        assert question.text in texts[at - 1]
        assert all(option.text in texts[at - 1] for option in getattr(question, "options", ()))


def test_the_command_copies_and_keeps_what_somebody_wrote(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["lessons", "--copy"]) == 0
    mine = here / "streaming-course/01_table_in_motion.ipynb"
    mine.write_text("mine")
    assert main(["lessons", "--copy"]) == 0
    assert mine.read_text() == "mine"
    assert main(["lessons", "--copy", "--replace"]) == 0
    assert mine.read_text() != "mine"
    assert main(["lessons", "--list"]) == 0
    assert "A table in motion" in capsys.readouterr().out
    opened = []
    monkeypatch.setattr("workbench.cli.lessons._open", lambda root, name, options: opened.append((root, name)))
    main(["lessons", "4", "--lecture"])
    assert opened == [(here / "streaming-course", "lectures/04_time.ipynb")]
    assert 'wb.lesson(\\"04\\", progress=False).lecture()' in (opened[0][0] / opened[0][1]).read_text()
    assert main(["lessons", "99"]) == 2
    assert "there is no lesson '99'" in capsys.readouterr().err


def test_the_calls_of_a_counterexample_can_be_run_again() -> None:
    class Till:
        """Counts every delivery."""

        def __init__(self) -> None:
            self.sums: dict[str, int] = {}

        def pay(self, payment: int, account: str, cents: int) -> None:
            self.sums[account] = self.sums.get(account, 0) + cents

        def balance(self, account: str) -> int:
            return self.sums.get(account, 0)

    said = wb.lesson("06", progress=False).check("ledger", Till)
    assert "To reproduce it, run these lines" in repr(said)
    *calls, last = said.code.splitlines()
    names: dict[str, Any] = {"Till": Till}
    exec("\n".join(calls), names)
    assert f"has {eval(last, names)} cents; correct is" in repr(said)
    assert len(calls) == 3, "the shortest: a payment that comes twice"
