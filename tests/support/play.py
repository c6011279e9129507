"""Plays lessons as a learner who follows the text: JupyterLab in a Chromium, from the blank notebook to the solved one.

``PYTHONPATH=tests/support python -m play 01 04 --pauses 20 --scheme dark --pictures build/played`` or ``make play``.
A cell with a gap is run as it is, then filled in and run again; before an exercise is solved, its hint is read in a new
cell. What a cell raises, prints to standard error or cuts off, what goes wrong on the page, and a lesson that does not
end with everything done are faults.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from browsing import chromium, jupyter
from lab_front import Front
from PIL import Image

from workbench.lessons.building.notebooks import notebook
from workbench.lessons.building.source import Cell, cells_of
from workbench.lessons.course import COURSE, numbered, source_of

SIZE = {"width": 1400, "height": 1000}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
CELL_S = 120.0
MOVES_S = 10.0
"""From its first cell, a lesson shows a picture of something that runs within this time, the learner's pauses aside; on
a machine with more work than processors, within as many times of it as there is work for each."""
SETTLED_MS = 400
NOT_OURS = ("reading 'schema'", "ResizeObserver loop", "favicon")
"""Parts of messages of JupyterLab and the browser: an extension is asked before its settings are there."""
SPLASH = re.compile(r"NotFoundError: [^\n]*'removeChild'[^\n]*\n +at \S+/static/lab/jlab_core\.\w+\.js\S*\s*")
"""JupyterLab's timer that takes its splash screen off the page, where nothing has called it: if the screen was shown
twice, the second timer finds it gone."""

SEEN = """index => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index]
    const outputs = cell.model.outputs.toJSON()
    const area = cell.node.querySelector(".jp-OutputArea")
    const all = area === null ? [] : within(area)
    const isLarge = one => one.getBoundingClientRect().width > 60
    const pictures = all.filter(one => ["svg", "CANVAS"].includes(one.nodeName) && isLarge(one))
    const right = area === null ? 0 : area.getBoundingClientRect().right
    const isNamed = one => {
        for (; one && one !== area; one = one.parentElement ?? one.getRootNode().host)
            if (one.getAttribute("aria-label") || one.getAttribute("aria-hidden") === "true"
                || one.nodeName === "BUTTON" || one.querySelector(":scope > title") !== null) return true
        return false
    }
    const unnamed = pictures.filter(one => one.nodeName === "svg" && !isNamed(one))
    return {
        errors: outputs.filter(one => one.output_type === "error").map(one => `${one.ename}: ${one.evalue}`),
        warnings: outputs.filter(one => one.name === "stderr").map(one => [one.text].flat().join("")),
        text: outputs.map(one => [one.text ?? one.data?.["text/plain"] ?? ""].flat().join("")).join("\\n"),
        pictures: pictures.length, unnamed: unnamed.length,
        cut: pictures.filter(one => one.getBoundingClientRect().right > right + 2).length,
        outputs: outputs.length,
    }
}"""
"""What a cell shows: errors, texts, and how many pictures, those without a name for a screen reader, those cut off."""


@dataclass
class Played:
    """A lesson that was played.

    Attributes:
        faults: what went wrong, each with the number of its cell.
        moved_s: from the start of the first cell to the first picture, without the learner's pauses.
        moved_cpu_s: the CPU time that the kernel has taken until then, its start included: on a loaded machine it tells
            more.
        ran_s: all cells together, without pauses.
        shots: pictures of the cells that show something.
        said: what the cells said, by their number, after the last run of each.
    """

    number: str
    faults: list[str] = field(default_factory=list)
    moved_s: float = float("inf")
    moved_cpu_s: float = float("inf")
    ran_s: float = 0.0
    shots: list[Image.Image] = field(default_factory=list)
    said: dict[int, str] = field(default_factory=dict)


class Player:
    """A learner before a page of JupyterLab.

    Args:
        pauses_s: the longest time for which the learner reads and thinks between two cells.
        shoots: whether pictures are taken.
        folder: of the notebooks, below the server's.
    """

    def __init__(self, front: Front, pauses_s: float = 0.0, shoots: bool = False, folder: str = "") -> None:
        self._front = front
        self._page = front.page
        self._pauses_s = pauses_s
        self._shoots = shoots
        self._folder = folder
        self._pauses = random.Random(7)
        self._problems: list[str] = []
        self._page.on("pageerror", lambda error: self._problems.append(error.stack or str(error)))
        self._page.on("console", lambda said: self._problems.append(said.text) if said.type == "error" else None)

    def play(self, number: str, source: str = "") -> Played:
        """Play a lesson from its first cell to its last.

        Args:
            number: of the lesson.
            source: its text; empty: that of the course.
        """
        played = Played(number)
        source = source or source_of(number)
        name = f"{self._folder}{number}_{COURSE[number]}.ipynb"
        (self._front.root / name).write_text(notebook(source, number, solved=False), encoding="utf-8")
        self._front.open(name)
        place = 0
        for cell in cells_of(source):
            if cell.kind == "code":
                place += self._cell(played, cell, place)
                self._pause()
            place += 1
        if re.match(r"(\d+) of \1 done", played.said[max(played.said)]) is None:
            played.faults.append(f"it ends with {played.said[max(played.said)]!r}")
        if played.moved_s > MOVES_S * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)):
            played.faults.append(f"nothing moves before {played.moved_s:.1f} s")
        played.faults += [
            f"the page: {problem}"
            for problem in self._problems
            if not (any(part in problem for part in NOT_OURS) or SPLASH.fullmatch(problem))
        ]
        self._problems.clear()
        return played

    def leave(self) -> None:
        """End all kernels."""
        self._page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll().then(() => null)")

    # inside ------------------------------------------------------------------------------------------------------

    def _cell(self, played: Played, cell: Cell, place: int) -> int:
        """Do what a cell asks for; how many cells were added before it."""
        added = 0
        if cell.blank != cell.solved:
            self._run(played, place)
            self._pause()
            for name in cell.checks:
                self._insert(place, f'lesson.hint("{name}")')
                self._run(played, place)
                self._pause()
                added += 1
            self._write(place + added, cell.solved)
        self._run(played, place + added)
        if "passed" not in played.said[place + added].lower() and cell.checks:
            played.faults.append(f"cell {place + added}: {played.said[place + added]!r}")
        return added

    def _run(self, played: Played, place: int) -> None:
        begin = time.monotonic()
        self._page.evaluate(
            """([index, limit]) => {
                const content = window.jupyterapp.shell.currentWidget.content
                content.activeCellIndex = index
                content.scrollToItem(index, "auto")
                const done = window.jupyterapp.commands.execute("notebook:run-cell").then(() => "done")
                return Promise.race([done, new Promise(resolve => setTimeout(() => resolve("late"), limit))])
            }""",
            [place, CELL_S * 1_000],
        )
        took = time.monotonic() - begin
        self._page.wait_for_timeout(SETTLED_MS)
        seen = self._page.evaluate(SEEN, place)
        played.ran_s += took
        played.said[place] = seen["text"]
        if seen["pictures"] and played.moved_s == float("inf"):
            played.moved_s, played.moved_cpu_s = played.ran_s, kernels_cpu_s()
        if took >= CELL_S:
            played.faults.append(f"cell {place} still runs after {CELL_S:.0f} s")
        played.faults += [f"cell {place}: {what}" for what in seen["errors"] + seen["warnings"]]
        for what, words in (("cut", "cut off at the right"), ("unnamed", "without a text for those who do not see it")):
            if seen[what]:
                played.faults.append(f"cell {place}: {seen[what]} pictures {words}")
        if self._shoots and seen["outputs"]:
            played.shots.append(self._shot(place))

    def _shot(self, place: int) -> Image.Image:
        self._page.wait_for_timeout(2 * SETTLED_MS)
        node = self._page.evaluate_handle(
            "index => window.jupyterapp.shell.currentWidget.content.widgets[index].node", place
        ).as_element()
        return Image.open(io.BytesIO(node.screenshot(timeout=60_000))).convert("RGB")

    def _write(self, place: int, text: str) -> None:
        self._page.evaluate(
            "([index, text]) => window.jupyterapp.shell.currentWidget.content.widgets[index]"
            ".model.sharedModel.setSource(text)",
            [place, text],
        )

    def _insert(self, place: int, text: str) -> None:
        """A new cell above a cell."""
        self._page.evaluate("index => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = index }", place)
        self._front.execute("notebook:insert-cell-above")
        self._write(place, text)

    def _pause(self) -> None:
        if self._pauses_s:
            self._page.wait_for_timeout(1_000 * self._pauses.uniform(0.25 * self._pauses_s, self._pauses_s))


def kernels_cpu_s() -> float:
    """The CPU time of the kernels that run below this process."""
    spent = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if "ipykernel_launcher" in process.cmdline():
                spent += sum(process.cpu_times()[:2])
    return spent


def dress(front: Front, scheme: str) -> None:
    """Choose the theme of JupyterLab, and close what takes room beside the notebook."""
    front.page.evaluate(
        "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme}).then(() => null)", THEMES[scheme]
    )
    front.page.wait_for_function(f"document.body.dataset.jpThemeLight === '{str(scheme == 'light').lower()}'")
    front.execute("application:toggle-left-area")


def play(numbers: list[str], scheme: str, pauses_s: float, shoots: bool) -> Iterator[Played]:
    """Play lessons one after the other, each with a kernel of its own, in one JupyterLab."""
    with TemporaryDirectory() as place, chromium(moving=True) as browser:
        home, root = Path(place, "home"), Path(place, "notebooks")
        home.mkdir()
        root.mkdir()
        with jupyter(home, root) as url:
            page = browser.new_page(viewport=SIZE)
            front = Front(page, url, root)
            dress(front, scheme)
            player = Player(front, pauses_s, shoots)
            for number in numbers:
                yield player.play(number)
                player.leave()


def sheet(shots: list[Image.Image], columns: int = 2) -> Image.Image:
    """Pictures in columns, each as high as it needs."""
    width = max(shot.width for shot in shots)
    piles: list[list[Image.Image]] = [[] for _ in range(columns)]
    height = sum(shot.height for shot in shots) / columns
    filled, pile = 0, 0
    for shot in shots:
        if filled > height * (pile + 1) and pile + 1 < columns:
            pile += 1
        piles[pile].append(shot)
        filled += shot.height
    whole = Image.new("RGB", (width * columns, max(sum(shot.height for shot in each) for each in piles)), "#888888")
    for column, each in enumerate(piles):
        top = 0
        for shot in each:
            whole.paste(shot, (column * width, top))
            top += shot.height
    return whole


def main(given: list[str]) -> int:
    """The command line; the number of lessons with faults."""
    parser = argparse.ArgumentParser(prog="play", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="numbers; none: all of them")
    parser.add_argument("--pauses", type=float, default=0.0, metavar="SECONDS", help="the longest pause between cells")
    parser.add_argument("--scheme", choices=sorted(THEMES), default="light")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="where pictures of the cells go")
    options = parser.parse_args(given)
    numbers = [numbered(each) for each in options.lessons] or list(COURSE)
    failed = 0
    for played in play(numbers, options.scheme, options.pauses, options.pictures is not None):
        failed += bool(played.faults)
        print(  # noqa: T201
            f"lesson {played.number}: moves after {played.moved_s:.1f} s ({played.moved_cpu_s:.1f} s of CPU time), "
            f"{played.ran_s:.0f} s of running, "
            f"{len(played.faults)} faults",
            *(f"  {fault}" for fault in played.faults),
            sep="\n",
            flush=True,
        )
        if played.shots:
            options.pictures.mkdir(parents=True, exist_ok=True)
            sheet(played.shots).save(options.pictures / f"{played.number}-{options.scheme}.png")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
