"""A lesson as a lecture: every cell has a step; the content of steps, isolation from the notebook, and failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import workbench as wb
from workbench.dashboard.course.blackboard import Blackboard
from workbench.dashboard.course.steps import Step, steps_of
from workbench.dashboard.course.teaching import Teaching
from workbench.errors import SettingError
from workbench.lessons.building.source import cells_of
from workbench.lessons.course import COURSE, plan_of, source_of


def taught(number: str) -> Teaching:
    return Teaching(number, steps_of(cells_of(source_of(number))))


@pytest.mark.parametrize("number", COURSE)
def test_each_question_and_exercise_has_its_steps_and_all_programs_run_in_order(number: str) -> None:
    cells = cells_of(source_of(number))
    steps = steps_of(cells)
    plan = plan_of(number)
    assert {step.name for step in steps if step.kind == "asks"} == {each.name for each in plan.questions}
    assert [step.name for step in steps if step.kind == "solves"] == [each.name for each in plan.exercises]
    programs = [program for step in steps for program in step.programs]
    ran = [cell.solved for cell in cells if cell.kind == "code" and "lesson.predict(" not in cell.text]
    assert programs == [program for program in ran if "lesson.progress()" not in program]
    assert {step.section for step in steps} == set(range(max(cell.section for cell in cells) + 1))
    assert all(step.title for step in steps)
    assert [step for step in steps if step.kind != "tells" and re.search(r"^(\||1\. )", step.words, re.MULTILINE)] == []


@pytest.mark.slow
def test_a_lecture_on_snapshots_from_its_first_step_to_its_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    teaching = taught("07")
    asked = next(at for at, step in enumerate(teaching.steps) if step.name == "behind")
    assert teaching.show(asked).letters == "abc"
    assert "The audience says a." in teaching.answered(asked, "a").caption
    slides = [teaching.show(number) for number in range(len(teaching.steps))]
    assert [slide for slide in slides if "This step fails" in slide.board or not (slide.board or slide.view)] == []
    assert sum("<svg" in slide.board for slide in slides) >= 12
    assert "Your prediction was a." in slides[asked + 2].board
    assert "Passed." in slides[-2].board
    assert list(tmp_path.glob("course-progress.json")) == []


def test_a_step_that_runs_again_moves_the_next_record() -> None:
    teaching = taught("01")
    moves = next(at for at, step in enumerate(teaching.steps) if step.programs[-1:] == ("job.stepper.next_record()",))
    first = teaching.show(moves)
    assert teaching.show(moves) == first
    assert "Step 9" in first.board
    assert "Step 9" not in teaching.again(moves).board


def test_a_live_view_is_a_widget_and_a_failing_step_says_why() -> None:
    show = "import pyarrow as pa, workbench as wb\nstream = wb.Stream.from_table(pa.table({'n': [1]}))\n" \
        "job = stream.sink_to(wb.DiscardSink()).run('shown', replace=True)\njob.view('graph')"  # fmt: skip
    steps = [
        Step("shows", 1, "Live", programs=(show,)),
        Step("shows", 1, "Wrong", "*Look*", ("1 / 0",)),
        Step("shows", 1, "Text", programs=("print('<b>')",)),
        Step("shows", 1, "Value", programs=("1 + 1",)),
        Step("shows", 1, "Silence", "Nothing **is** shown.", ("job.cancel()",)),
    ]
    teaching = Teaching("01", steps)
    live, wrong, text, value, silence = (teaching.show(number) for number in range(5))
    assert (value.board, value.caption) == ("<pre>2</pre>", "<p><code>1 + 1</code></p>")
    assert text.caption == ""
    assert live.view
    assert not live.board
    assert "This step fails." in wrong.board
    assert "division by zero" in wrong.board
    assert wrong.caption == "<p><em>Look</em></p>"
    assert text.board == "<pre>&lt;b&gt;\n</pre>"
    assert silence.board == "<p>Nothing <strong>is</strong> shown.</p>"
    teaching.close()


def test_it_begins_with_a_section_that_there_is() -> None:
    lesson = wb.lesson("04", progress=False)
    assert isinstance(lesson.lecture(3), Blackboard)
    with pytest.raises(SettingError, match="there is no section 9: this lesson has 1 to 7"):
        lesson.lecture(9)


def test_the_end_of_a_job_is_no_step_of_its_own() -> None:
    cells = cells_of("# A lesson\n\n## 1. One\n\n```python\nlive.view()\n```\n\n```python\nlive.cancel()\n```\n\n"
                     "## 2. Two\n\n```python\n1 + 1\n```\n")  # fmt: skip
    shown = [step for step in steps_of(cells) if step.kind == "shows"]
    assert [step.programs for step in shown] == [("live.view()",), ("live.cancel()", "1 + 1")]
