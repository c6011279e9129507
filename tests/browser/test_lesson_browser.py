"""A lesson is played in JupyterLab, from its blank notebook to the solved one; ``make play`` plays all."""

from __future__ import annotations

import pytest
from browsing import CHROMIUM, chromium, jupyter
from lab_front import Front
from play import Player, dress

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

BROKEN = """# A lesson that fails

```python
import sys

print("a warning", file=sys.stderr)
```

```python
1 / 0
```

```python
from IPython.display import HTML

HTML("<svg width='5000' height='90' style='max-width: none'><circle r='9'/></svg>")
```

```python
print("3 of 4 done")
```
"""


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    place = tmp_path_factory.mktemp("lessons")
    home, root = place / "home", place / "notebooks"
    home.mkdir()
    root.mkdir()
    with chromium() as browser, jupyter(home, root) as url:
        front = Front(browser.new_page(viewport={"width": 1400, "height": 1000}), url, root)
        dress(front, "dark")
        yield Player(front)
        front.page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll().then(() => null)")


def test_the_first_lesson_goes_from_blank_to_solved_without_a_fault(player):
    played = player.play("01")
    assert played.faults == []


def test_a_lesson_with_faults_is_told(player):
    faults = "\n".join(player.play("02", BROKEN).faults)
    for told in (
        "cell 1: a warning",
        "cell 2: ZeroDivisionError: division by zero",
        "cell 3: 1 pictures cut off at the right",
        "cell 3: 1 pictures without a text",
        "it ends with '3 of 4 done",
    ):
        assert told in faults


STAGE = """() => {
    const stage = document.querySelector("[data-lecture][popover]:popover-open")
    if (stage === null || stage.hasAttribute("aria-busy")) return null
    const shown = name => {
        const found = stage.shadowRoot.querySelector(name)
        return found.offsetHeight > 0 ? found.textContent : ""
    }
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    const isPainted = canvas => canvas.width > 0 && canvas.height > 0
        && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(value => value !== 0)
    const board = stage.shadowRoot.querySelector(".board")
    return {
        title: shown(".title"), place: shown(".place"), board: shown(".board"), caption: shown(".caption"),
        program: shown(".program"), isWhole: stage.getBoundingClientRect().width === innerWidth,
        isCut: board.scrollHeight > board.clientHeight + 1,
        isDark: getComputedStyle(stage).backgroundColor === "rgb(0, 0, 0)",
        letters: parseFloat(getComputedStyle(stage.shadowRoot.querySelector(".caption")).fontSize)
            / Math.min(innerHeight, (innerWidth * 9) / 16),
        live: within(stage).filter(one => one.nodeName === "CANVAS" && isPainted(one)).length,
    }
}"""
"""The step that fills the window, once the kernel has answered."""


def test_a_lecture_is_given_with_keys_alone(player):
    page, front = player._page, player._front

    def lectured(place, also="true"):
        page.wait_for_function(
            f"([place]) => {{ const at = ({STAGE})(); return at?.place === place && ({also}) }}", arg=[place]
        )
        return page.evaluate(STAGE)

    front.open("lecture.ipynb", 'import workbench as wb\nwb.lesson("01", progress=False).lecture()')
    front.run_cell(0)
    begun = lectured("1 / 29")
    assert begun["title"] == "A table in motion"
    assert begun["isWhole"]
    assert begun["isDark"]
    assert begun["letters"] >= 1 / 34
    page.keyboard.press("ArrowRight")
    lectured("2 / 29")
    page.keyboard.press("ArrowRight")
    assert "compare with the table's?" in lectured("3 / 29")["board"]
    page.keyboard.press("a")
    assert "The audience says a." in lectured("3 / 29", "at.caption.includes('audience')")["caption"]
    for place in range(4, 9):
        page.keyboard.press("PageDown")
        step = lectured(f"{place} / 29")
        assert not step["isCut"]
    assert "Your prediction, a, was right." in step["board"]
    for place in (7, 6):
        page.keyboard.press("ArrowLeft")
        lectured(f"{place} / 29")
    page.keyboard.press("r")
    assert "posts[0] sent record" not in lectured("6 / 29", "!at.board.includes('Step 9')")["board"]
    page.keyboard.press("c")
    assert "job.stepper.next_record()" in lectured("6 / 29", "at.program !== ''")["program"]
    page.keyboard.press("c")
    page.keyboard.press("4")
    assert "A slot is a place" in lectured("20 / 29", "at.live > 0")["caption"]
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelector('[data-lecture][popover]') === null")
    page.get_by_role("button", name="Begin the lecture").press("l")
    lectured("20 / 29")
    page.keyboard.press("5")
    assert "Write hashtags(posts)" in lectured("26 / 29")["board"]
    page.keyboard.press("ArrowRight")
    solved = lectured("27 / 29")
    assert "Passed." in solved["board"]
    assert "flat_map" in solved["program"]
    page.keyboard.press("l")
    page.wait_for_function("() => document.querySelector('[data-lecture][popover]') === null")
