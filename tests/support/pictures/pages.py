"""Dashboards, single views, the stepper and a report, as pages of their own: what they show does not move any more."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any

import pyarrow as pa
from browsing import READY, chromium

import workbench as wb
from pictures.files import SCHEMES, shoot
from pictures.jobs import DELAYS, FLIGHTS
from workbench.dashboard.shown.show import Dashboard
from workbench.dashboard.shown.view import View

PATIENCE_S = 120
GROUND = {"light": "#ffffff", "dark": "#111111"}


def take() -> Iterator[Path]:
    """Take all of them."""
    before = Path.cwd()
    with TemporaryDirectory() as place, chromium(moving=True) as browser:
        os.chdir(place)
        try:
            yield from _live(browser)
            yield from _stepped(browser)
        finally:
            os.chdir(before)


def _live(browser: Any) -> Iterator[Path]:
    names: dict[str, Any] = {}
    exec(FLIGHTS + DELAYS, names)
    job = names["job"]
    _until(lambda: _completed(job) >= 4)
    job.tune(buffer_timeout="5ms")
    _until(lambda: [one.state for one in job.recorder.latest().changes] == ["holds"])
    job.faults.slow_down("aggregate", "60ms")
    _until(lambda: "aggregate is the cause" in job.status()["backpressure"])
    enough = _completed(job) + 6
    _until(lambda: _completed(job) >= enough)
    for scheme in SCHEMES:
        yield _picture(browser, job, None, f"dashboard-{scheme}", scheme, (1500, 990))
    yield _picture(browser, job, "checkpoints", "view-checkpoints", "light", (900, 1120), tab="History")
    yield _picture(browser, job, "subtasks", "view-subtasks", "light", (1250, 400))
    yield _picture(browser, job, "watermarks", "view-watermarks", "light", (900, 900))
    yield _picture(browser, job, "graph", "view-graph-dark", "dark", (900, 600), subtasks=True)
    report = job.report("run.html")
    yield _shot(browser, report, "report-dark", "dark", (1500, 1250))
    job.cancel()
    job.wait("60s")


def _stepped(browser: Any) -> Iterator[Path]:
    """A checkpoint in the middle of its alignment."""
    numbers = wb.Stream.from_table(pa.table({"n": list(range(1, 61))})).with_parallelism(2).uid("numbers")
    parity = numbers.with_columns(parity="CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END").with_parallelism(2)
    sums = parity.key_by("parity").aggregate(total=wb.sum("n")).uid("sum").sink_to(wb.TableSink("totals"))
    job = sums.run(
        "alignment", driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None
    )
    job.stepper.step(14)
    job.checkpoint()
    while not any(channel.blocked for channel in job.stepper.scene().scene.channels):
        job.stepper.step()
    for scheme in SCHEMES:
        yield _picture(browser, job, "stepper", f"stepper-{scheme}", scheme, (1200, 860))
    job.cancel()
    job.wait()


def _picture(
    browser: Any,
    job: Any,
    part: str | None,
    name: str,
    scheme: str,
    size: tuple[int, int],
    subtasks: bool = False,
    tab: str | None = None,
) -> Path:
    """A picture of what a dashboard shows once it has asked the job what it asks."""
    view = View(job, job.recorder.frames(), part)
    if subtasks:
        view.parts["graph"].modes.active = 2
    while any(view.easel.background.is_running(action) for action in ("state", "results", "savepoints")):
        sleep(0.05)
    view.update(job.recorder.latest())
    shown = Dashboard(job, part)
    shown.view = lambda hears=True: view  # type: ignore[method-assign]
    return _shot(browser, shown.save("page.html"), name, scheme, size, tab)


def _shot(browser: Any, page_file: Path, name: str, scheme: str, size: tuple[int, int], tab: str | None = None) -> Path:
    page = browser.new_page(viewport=dict(zip(("width", "height"), size, strict=True)), color_scheme=scheme)
    page.goto(page_file.absolute().as_uri())
    page.wait_for_function(READY)
    page.evaluate("colour => { document.body.style.background = colour }", GROUND[scheme])
    if tab is not None:
        page.get_by_text(tab, exact=True).first.click()
    page.wait_for_timeout(2000)  # the charts are painted one after the other
    path = shoot(page, name)
    page.close()
    return path


def _completed(job: Any) -> int:
    frame = job.recorder.latest()
    return 0 if frame is None else int(frame.metrics["numberOfCompletedCheckpoints"])


def _until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline, "the job did not come so far"
        sleep(0.1)
