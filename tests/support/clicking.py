"""A mouse that does common tasks in JupyterLab, with the number of clicks that each of them takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab_front import Front
from playwright.sync_api import TimeoutError as PlaywrightTimeout

WAIT_MS = 120_000
"""After which the effect of a task does not come to the screen at all."""
DOCUMENTED = Path(__file__).parents[2] / "docs/dashboard.md"
COUNT = """() => {
    window.clicks = 0
    window.addEventListener("pointerdown", event => { window.clicks += event.isTrusted ? 1 : 0 }, true)
}"""
"""Counts how often a mouse is pressed; what a script presses does not count."""
TABLE = "[aria-label='Before and after each tuning']"
PLANE = "[aria-label^='Event time to the right, processing time upwards']"
LECTURE = ":popover-open[data-lecture] .title"


def claimed() -> dict[str, int]:
    """The tasks in the documentation, and how many clicks each takes."""
    _, _, rest = DOCUMENTED.read_text().partition("### Clicks for common tasks")
    section, _, _ = rest.partition("\n#")
    return {task: int(clicks) for task, clicks in re.findall(r"^\| (.+?) \| (\d+) \|", section, re.MULTILINE)}


class Clicking:
    """A person with a mouse, who begins each task with a docked dashboard that shows what matters now.

    Each task ends when its effect is on the screen.

    Args:
        front: a page whose notebook runs `job` and the job `stepped`, whose driver is the stepping one.
    """

    def __init__(self, front: Front, job: str, stepped: str) -> None:
        self.page, self.front, self.job, self.stepped = front.page, front, job, stepped
        self.dashboard = self.page.locator(f"{front.docked(job)}[aria-label^='The dashboard']")
        self.page.set_default_timeout(WAIT_MS)
        self.page.evaluate(COUNT)

    def count(self) -> dict[str, int]:
        """Do every task; how many clicks each of them took."""
        return {task: self._clicks_of(do) for task, do in self._tasks().items()}

    def _clicks_of(self, do: Callable[[], object]) -> int:
        if self.page.locator(LECTURE).count():
            self.page.keyboard.press("Escape")
        if self.dashboard.count():
            self._view("Now")
        before = int(self.page.evaluate("window.clicks"))
        do()
        return int(self.page.evaluate("window.clicks")) - before

    def _tasks(self) -> dict[str, Callable[[], object]]:
        """What is done for each task, in an order in which none spoils the next one."""
        return {
            "open the dashboard of a job": lambda: (self._side("Open the dashboard of"), self._sees(".wb-graph")),
            "change the buffer timeout and see its effect": lambda: (
                self._drag("Buffer timeout"), self._sees("p.news", "buffer_timeout 100ms", "latency p"),
            ),
            "compare before and after a change": lambda: self._sees(f"{TABLE} td", "→"),
            "change the checkpoint interval or mode": lambda: (
                self._view("Checkpoints"), self._slide("Checkpoint interval"),
                self._sees("p.news", "checkpoint_interval"),
            ),
            "change the parallelism": lambda: (self._slide("Parallelism"), self._sees("p.news", "parallelism")),
            "see event time against processing time": lambda: (self._view("Event time"), self._sees(PLANE)),
            "see the late records": lambda: (self._view("Watermarks"), self._sees(".wb-watermarks", "late records")),
            "take a savepoint": lambda: (
                self._view("Controls"), self._press("Savepoint"), self._sees(".wb-controls", "savepoint-1 is complete"),
            ),
            "fail a task": lambda: (
                self._view("Controls"), self._press("Fail task"), self._sees("p.news", "was failed on purpose"),
            ),
            "slow an operator down visibly": lambda: (
                self._view("Controls"), self._press("Slow down"), self._sees("p.pressure", "is the cause"),
            ),
            "dock another view below the dashboard": self._dock_another_view,
            "show a scene to a class": lambda: (self._press("Lecture L"), self.front.appears(LECTURE)),
            "take a checkpoint, or stop the job": lambda: (
                self._side("Stop"), self.front.appears(f".wb-Job[data-job={self.job}] .wb-Badge", "FINISHED"),
            ),
            "step a job with `driver=\"stepping\"`": self._step,
        }  # fmt: skip

    # what a person does ------------------------------------------------------------------------------------------

    def _side(self, action: str) -> None:
        self.page.get_by_role("button", name=f"{action} {self.job}", exact=True).click()

    def _press(self, name: str) -> None:
        self.dashboard.get_by_role("button", name=name, exact=True).click()

    def _view(self, title: str) -> None:
        self.dashboard.get_by_role("group", name="Views").get_by_text(title, exact=True).click()

    def _drag(self, setting: str) -> None:
        handle = self.dashboard.locator(f".noUi-handle[aria-label='{setting}']")
        handle.scroll_into_view_if_needed()
        x, y, width, height = (handle.bounding_box()[name] for name in ("x", "y", "width", "height"))
        self.page.mouse.move(x + width / 2, y + height / 2)
        self.page.mouse.down()
        self.page.mouse.move(x - 60, y + height / 2, steps=4)
        self.page.mouse.up()

    def _slide(self, setting: str) -> None:
        track = self.dashboard.locator(f".wb-slider[aria-label='{setting}'] .noUi-target")
        track.click(position={"x": track.bounding_box()["width"] / 3, "y": 4})

    def _dock_another_view(self) -> None:
        self._side("Open a view of")
        self.page.get_by_role("menuitem", name="Events", exact=True).click()
        self.front.appears(f"{self.front.docked(self.job)}[aria-label^='The view'] .wb-events")

    def _step(self) -> None:
        """In its dashboard, which is there already."""
        docked = self.front.docked(self.stepped)
        self.front.execute("workbench:open-dashboard", job=self.stepped)
        self.page.locator(docked).get_by_role("button", name="step ▶").click()
        self.front.appears(f"{docked} .wb-words", "Step 1")

    # what a person sees ------------------------------------------------------------------------------------------

    def _sees(self, selector: str, *texts: str) -> Any:
        found = self.dashboard.locator(selector)
        for text in texts:
            found = found.filter(has_text=text)
        try:
            found.filter(visible=True).first.wait_for()
        except PlaywrightTimeout as problem:
            shown = self.dashboard.locator(selector).all_text_contents()
            raise AssertionError(f"nothing like {texts} is seen at {selector}, but {shown}") from problem
