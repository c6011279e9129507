"""The stepper's pictures as a browser draws them: at no step is one label over another one, or cut by a task's box."""

from __future__ import annotations

import pyarrow as pa
import pytest
from browsing import CHROMIUM, chromium, opened
from waiting import until

import workbench as wb

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

MEETING = """pictures => pictures.flatMap((picture, step) => {
    const place = document.querySelector("#place")
    place.innerHTML = picture
    const svg = place.firstElementChild
    svg.style.maxWidth = "none"
    const area = (one, above = 0, below = 0) => {
        const { left, right, top, bottom } = one.getBoundingClientRect()
        return { left, right, top: top + above, bottom: bottom - below }
    }
    const every = selector => [...svg.querySelectorAll(selector)]
    const marble = one => one.closest("[data-glides]")
    const words = every("text").map(one => [one.firstChild.textContent, marble(one), area(one, 2, 3)])
    const shapes = every("[data-glides] > circle, [data-glides] > rect")
        .map(one => [marble(one).dataset.glides, marble(one), area(one)])
    const boxes = every("rect.box").filter(one => marble(one) === null).map(one => ["a box", one, area(one)])
    const isIn = (one, box) => one.left >= box.left && one.right <= box.right
        && one.top >= box.top && one.bottom <= box.bottom
    const isOver = ([text, own, one], [other, its, another]) => {
        const [across, down] = [["left", "right"], ["top", "bottom"]]
            .map(([begin, end]) => Math.min(one[end], another[end]) - Math.max(one[begin], another[begin]))
        return Math.min(across, down) > 1.5 && (own === null || own !== its)
            && !(other === "a box" && own === null && isIn(one, another))
    }
    const pairs = (ones, others) => ones.flatMap((one, place) => (ones === others ? others.slice(place + 1) : others)
        .filter(other => isOver(one, other)).map(other => `step ${step}: ${one[0]} over ${other[0]}`))
    return [...pairs(words, words), ...pairs(words, shapes), ...pairs(shapes, shapes), ...pairs(words, boxes),
        ...pairs(shapes, boxes)]
})"""
"""What meets on each of the pictures: a line of text has some empty pixels above and below its letters."""


def aligned() -> wb.types.Job:
    """Two sources of numbers and two sums: channels that cross, barriers, a channel that is held."""
    numbers = wb.Stream.from_table(pa.table({"n": [n for n in range(1, 21) for _ in range(2)]})).with_parallelism(2)
    parity = numbers.with_columns(parity="CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END").with_parallelism(2)
    sums = parity.key_by("parity").aggregate(total=wb.sum("n")).uid("sum").sink_to(wb.TableSink("totals"))
    return sums.run(
        "aligned", driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval="20ms"
    )


def timed() -> wb.types.Job:
    """Three columns of tasks with event time: two lines below each record, and watermarks above the lines."""
    rows = {"who": ["alice", "bob", "christina", "dan"] * 8, "at": [n * 7_300_000 for n in range(32)]}
    taps = wb.Stream.from_table(pa.table(rows), event_time="at", rate=100).with_parallelism(2)
    counts = taps.key_by("who").window(wb.tumbling("1min")).aggregate(taps=wb.count())
    return counts.rebalance().sink_to(wb.TableSink("counts")).run(
        "timed", driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval="50ms"
    )  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    page.set_content("<body style='margin: 0'><div id='place'></div>")
    return page


@pytest.mark.parametrize("run", [aligned, timed])
def test_nothing_is_written_over_anything_else_at_any_step(page, run):
    job = run()
    pictures = [job.stepper.scene().svg]
    while job.stepper.step():
        pictures.append(job.stepper.scene().svg)
    assert len(pictures) > 100
    assert page.evaluate(MEETING, pictures) == []


def test_the_slider_goes_to_a_step_from_wherever_the_job_is(browser):
    job = aligned()
    job.stepper.step(10_000)
    last = job.stepper.scene().scene.step
    pages = wb.serve(job)
    page = opened(browser, pages.url, every=False)
    handle = page.get_by_role("group", name="Steps taken").get_by_role("slider")
    handle.focus()
    for key, step in (("Home", 0), ("ArrowRight", 1), ("End", last), ("Home", 0)):
        page.keyboard.press(key)
        until(lambda step=step: job.stepper.scene().scene.step == step)
    job.stepper.step(3)
    until(lambda: float(handle.get_attribute("aria-valuenow")) > 0)
    page.keyboard.press("Home")
    until(lambda: job.stepper.scene().scene.step == 0)
    pages.stop()
    job.cancel()
    page.close()
