"""The notebooks of the course run from top to bottom: solved, everything passes; blank, each gap is named."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Thread

import executed
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from workbench.lessons.building.source import cells_of
from workbench.lessons.course import COURSE, plan_of, source_of

ROOT = Path(__file__).parents[2]
COURSE_FOLDER = ROOT / "notebooks/course"
IDS = {
    *(f"D{n}" for n in range(1, 7)),
    *(f"E{n}" for n in range(1, 11)),
    *(f"F1-{n}" for n in range(1, 14)),
    *(f"F2-{n}" for n in range(1, 17)),
}


def results(path: Path, shell: InteractiveShell) -> list[str]:
    """What the cells show, as text, in a shell of this process; each result can also be shown as HTML."""
    shown = []
    for cell in executed.read(path).cells:
        if cell.cell_type == "code":
            with capture_output():
                done = shell.run_cell(cell.source)
            done.raise_error()
            html = getattr(done.result, "_repr_html_", None)
            assert html is None or html()
            shown.append(repr(done.result))
    return shown


def without_threads() -> set[str]:
    """The lessons of which the documentation says that they run where no thread can be started."""
    page = (ROOT / "docs/in-the-browser.md").read_text(encoding="utf-8")
    [numbers] = re.findall(r"lessons ([\d, and]+) run from the first\s+cell to the last", page)
    return {f"{int(number):02}" for number in re.findall(r"\d+", numbers)}


def refused(thread: Thread) -> None:
    raise RuntimeError(f"no thread can be started, and {thread.name} is one")


@pytest.mark.slow
@pytest.mark.parametrize("number", COURSE)
def test_solved_everything_passes(number: str, shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        if number in without_threads():
            patched.setattr(Thread, "start", refused)
        _passes(number, results(COURSE_FOLDER / "solved" / f"{number}_{COURSE[number]}.ipynb", shell))


@pytest.mark.slow
def test_solved_everything_passes_in_a_kernel_too(tmp_path: Path) -> None:
    notebook = executed.read(COURSE_FOLDER / "solved/07_snapshots.ipynb")
    executed.execute(notebook, tmp_path)
    shown = executed.data(notebook)
    _passes("07", [data["text/plain"] for data in shown])
    assert sum("image" in data.get("text/html", "") or "<svg" in str(data) for data in shown) > 5


def _passes(number: str, shown: list[str]) -> None:
    plan = plan_of(number)
    steps = len(plan.questions) + len(plan.exercises)
    assert [text for text in shown if text.startswith("Your prediction was")] == []
    assert sum(text.startswith("Your prediction, ") for text in shown) == len(plan.questions)
    assert sum(text.startswith("Passed.") for text in shown) == len(plan.exercises)
    assert shown[-1].startswith(f"{steps} of {steps} done in lesson {int(number)}")


@pytest.mark.slow
@pytest.mark.parametrize("number", COURSE)
def test_blank_says_everything_that_is_missing_and_raises_nothing(number: str, shell: InteractiveShell) -> None:
    shown = results(COURSE_FOLDER / f"{number}_{COURSE[number]}.ipynb", shell)
    plan = plan_of(number)
    for question in plan.questions:
        assert any(text.startswith(question.text) and "Replace the `...`" in text for text in shown)
    assert sum(text.startswith("Not answered yet") for text in shown) == len(plan.exercises)
    assert re.match(rf"0 of \d+ done in lesson {int(number)}\n", shown[-1])
    assert len(re.findall("open: ", shown[-1])) == len(plan.questions) + len(plan.exercises)


def shown_in_the_course() -> dict[str, set[tuple[int, int]]]:
    """The lessons and sections whose cells show an ID."""
    found: dict[str, set[tuple[int, int]]] = {}
    for number in COURSE:
        for cell in cells_of(source_of(number)):
            for tag in cell.tags:
                found.setdefault(tag, set()).add((int(number), cell.section))
    return found


def test_every_idea_is_shown_by_a_cell_that_the_concepts_name() -> None:
    """The cells run in the tests above."""
    page = (ROOT / "docs/concepts.md").read_text(encoding="utf-8").partition("## In the course")[2]
    named: dict[str, set[tuple[int, int]]] = {}
    for lesson, section, ids in re.findall(r"^- lesson (\d+), section (\d+): (.+)$", page, re.MULTILINE):
        for name in ids.split(", "):
            named.setdefault(name, set()).add((int(lesson), int(section)))
    assert named == shown_in_the_course()
    assert named.keys() == IDS
    solved = (COURSE_FOLDER / "solved" / f"{number}_{COURSE[number]}.ipynb" for number in COURSE)
    assert {
        tag for path in solved for cell in executed.read(path).cells for tag in cell.metadata.get("tags", ())
    } == IDS


def test_what_a_reader_watches_does_not_end_while_the_reader_pauses() -> None:
    """A live view shows a job whose source has no end; what ends is on the stepping driver, or waited for."""
    watched = []
    for number in COURSE:
        programs = [cell.solved for cell in cells_of(source_of(number)) if cell.kind == "code"]
        for program in programs:
            for name in re.findall(r"\b(\w+)\.view\(", program):
                [started] = [one for one in programs if re.search(rf"^ *{name} = [^#]+?\.run\(", one, re.MULTILINE)]
                assert "from_generator(" in started, f"lesson {number}: {name} ends"
                watched.append(number)
    assert watched == ["01", "05", "12"]
