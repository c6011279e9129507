"""The cost of watching a job: the wide job at full speed in a kernel, without a page, with one, without."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from workbench.cli.checks.machine import find_browser
from workbench.errors import SettingError, unknown
from workbench.lab.bench.looking.chromium import Chromium
from workbench.lab.bench.looking.lab_place import LabPlace, LabViews
from workbench.lab.bench.looking.looked import Looked, Phase, compare
from workbench.lab.bench.looking.notebook_kernel import Cells
from workbench.lab.bench.looking.served_place import ServedPlace
from workbench.lab.bench.looking.watching import call

SECONDS = 8.0
"""The duration of each of the three measurements."""
WARM_UP_S = 5.0
SETTLING_S = 2.5
"""The pause after the dashboard was opened and its cards have come, or after it was closed."""
CELL_EVERY_S = 0.2
OPENING_PATIENCE_S = 60.0
TUNINGS = ("0ms", "50ms", "10ms", "100ms")
TUNING_PATIENCE_S = 5.0


class Place(AbstractContextManager["Place"], Protocol):
    """A place where a dashboard is shown."""

    @property
    def kernel(self) -> Cells:
        """The kernel of the job, which has a `ShownJob` under the name ``shown``."""

    @property
    def screen(self) -> tuple[int, int]:
        """Size of the page in pixels."""

    @property
    def views(self) -> int:
        """How many views are fed separately, once the dashboard is open."""

    def open(self) -> Chromium:
        """Open the dashboard; returns the browser that shows it."""

    def close(self) -> None:
        """Close it again."""

    def cell_seconds(self) -> float:
        """The duration of a cell ``1+1`` there."""


PLACES: dict[str, Callable[[str], Place]] = {
    "served": ServedPlace,
    "jupyterlab": LabPlace,
    "jupyterlab-views": LabViews,
}
"""By the name of the page; each takes the path of a Chromium."""


def look(
    page: str = "served", seconds: float = SECONDS, on_phase: Callable[[str], None] = lambda phase: None
) -> Looked:
    """Measure once.

    Args:
        page: one of `PLACES`: the dashboard on its own page, or docked beside a notebook in JupyterLab, or its ten
            views there, each in a panel.
        seconds: the duration of each of the three measurements.
        on_phase: receives the name of the next phase.

    Raises:
        SettingError: no such page, or there is no Chromium, or (in JupyterLab) no front end.
    """
    if page not in PLACES:
        raise SettingError(unknown("page", page, PLACES))
    program = find_browser()
    if program is None:
        raise SettingError("there is no Chromium to open the page in: install it, or name it in WORKBENCH_CHROMIUM")
    on_phase("a kernel starts the job")
    with PLACES[page](program) as place:
        time.sleep(WARM_UP_S)
        on_phase("without the dashboard")
        before = _measure(place, seconds)
        on_phase("the dashboard is opened")
        browser = place.open()
        _await_frames(browser, place.views)
        _await_cards(browser)
        time.sleep(SETTLING_S)
        on_phase("with the dashboard")
        browser_s, begun = browser.cpu_seconds(), browser.ask(call("counted"))
        seen = _measure(place, seconds)
        ended, browser_s = browser.ask(call("counted")), browser.cpu_seconds() - browser_s
        on_phase("the slider is moved")
        tuned = [_tune(place.kernel, browser, value) for value in TUNINGS]
        place.close()
        time.sleep(SETTLING_S)
        on_phase("without the dashboard again")
        after = _measure(place, seconds)
        on_phase("the job ends")
        checked = bool(place.kernel.ask("shown.end()"))
    return compare(
        before=before,
        seen=seen,
        after=after,
        page=page,
        screen=place.screen,
        painted=[frames - begun["painted"][view] for view, frames in ended["painted"].items()],
        received=ended["bytes"] - begun["bytes"],
        browser_s=browser_s,
        tuned=tuned,
        checked=checked,
    )


def _measure(place: Place, seconds: float) -> Phase:
    """Measure for `seconds`, with a cell five times a second: a notebook is used while the job runs."""
    cells: list[float] = []
    begin = place.kernel.ask("shown.reading()")
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        took = place.cell_seconds()
        cells.append(took * 1e3)
        time.sleep(max(0.0, CELL_EVERY_S - took))
    end = place.kernel.ask("shown.reading()")
    took, events, cpu_s, feed_s = (now - then for now, then in zip(end, begin, strict=True))
    return Phase(took, int(events), cpu_s, feed_s, tuple(cells))


def _await_frames(browser: Chromium, views: int) -> None:
    """Wait until each view shows frames."""
    until = time.perf_counter() + OPENING_PATIENCE_S
    while (showing := browser.ask(call("watchViews"))) < views:
        if time.perf_counter() > until:
            raise SettingError(
                f"{showing} of {views} views show frames after {OPENING_PATIENCE_S:g} s: is the machine very busy?"
            )
        time.sleep(0.2)


def _await_cards(browser: Chromium) -> None:
    """Wait until all cards have come: on a busy machine the last ones do long after the first frame, and each of them
    costs as much as many frames."""
    until = time.perf_counter() + OPENING_PATIENCE_S
    while browser.ask(call("coming")) and time.perf_counter() < until:
        time.sleep(0.2)


def _tune(kernel: Cells, browser: Chromium, value: str) -> tuple[float, float]:
    """Milliseconds from moving the slider until the setting takes effect, and until the page shows it."""
    begin_ms, shown_ms = browser.ask(call("tune", value, TUNING_PATIENCE_S * 1e3))
    told: list[int] = kernel.ask("shown.tunings()")
    force_ms = min((at / 1e3 - begin_ms for at in told if at / 1e3 >= begin_ms - 2), default=TUNING_PATIENCE_S * 1e3)
    return force_ms, shown_ms if shown_ms >= 0 else TUNING_PATIENCE_S * 1e3
