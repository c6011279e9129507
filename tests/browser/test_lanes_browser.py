"""Live jobs side by side on a served page: common axes, separate controls, and a sentence that says which is better."""

from __future__ import annotations

import re

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

PLACES = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    const all = within(document).filter(one => one.getClientRects().length > 0)
    const of = (name, found) => found.map((one, at) => [`${name} ${at}`, one.getBoundingClientRect().toJSON()])
    const sliders = all.filter(one => one.classList.contains("wb-knob"))
    const charts = all.filter(one => one.matches(".bk-Figure"))
    const pieces = ["verdict", "figures", "happened"].map(name => [name, all.filter(one => one.matches(`.${name}`))])
    const isCut = one => one.scrollWidth > one.clientWidth + 1
    const cut = pieces.flatMap(([name, found]) => found.filter(isCut).map(() => name))
    const words = pieces.flatMap(([name, found]) => of(name, found))
    const placed = [...of("slider", sliders), ...of("chart", charts), ...words]
    const meet = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1
        && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1
    const over = placed.flatMap(([name, one], at) => placed.slice(at + 1)
        .filter(([, other]) => meet(one, other)).map(([other]) => `${name} over ${other}`))
    const outside = placed.filter(([, one]) => one.left < 0 || one.right > innerWidth).map(([name]) => name)
    const tops = placed.map(([name, one]) => [name, one.top - words[0][1].top])
    return { cut, over, outside, counts: [charts.length, sliders.length], tops }
}"""
"""What of the comparison is cut, covers something else or stands outside the window; how many charts and sliders there
are, and how far below the sentence everything stands."""

IN_SIGHT = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    const all = within(document).filter(one => one.getClientRects().length > 0)
    const caption = all.find(one => one.matches(".caption")).getBoundingClientRect()
    const placed = all.filter(one => one.matches(".verdict, .wb-knob, .bk-Figure"))
    return placed.every(one => one.getBoundingClientRect().bottom <= caption.top + 1)
}"""
"""Whether a lecture shows the sentence, its charts and its sliders without scrolling."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def both():
    numbers = wb.Stream.from_table(pa.table({"n": range(600_000)}), rate=500.0).key_by("n").aggregate(count=wb.count())
    both = wb.compare(numbers.sink_to(wb.DiscardSink()), a={"buffer_timeout": "100ms"}, b={"buffer_timeout": "0ms"})
    yield both
    both.cancel()


@pytest.fixture
def page(browser, both):
    pages = wb.serve()
    page = opened(browser, f"{pages.url}&compare=compared-a,compared-b")
    yield page
    assert page.problems == []
    page.close()
    pages.stop()


def written(ms):
    return f"{ms:.1f} ms" if ms < 9.95 else f"{ms:,.0f} ms"


def test_a_sentence_says_which_setting_is_better_with_the_figures_of_the_jobs(page, both):
    told = page.locator(".verdict")
    told.get_by_text("Lowest latency: compared-b (buffer_timeout 0ms)").wait_for()

    def agree():
        text = told.inner_text()
        shown = re.findall(r"compared-(\w) \(buffer_timeout \w+\) has p50 ([\d.,]+ ms)", text)
        return dict(shown) == {lane: written(both[lane].status()["latency_p50_ms"]) for lane in both}

    until(agree)
    until(lambda: re.search(r"The price of compared-b, compared with compared-a: [\d.]+x buffers", told.inner_text()))
    both["b"].pause()
    told.get_by_text("No comparison now: compared-b is paused.").wait_for()


def test_each_lane_is_tuned_alone_and_tells_what_happened_in_it_where_nothing_moves(page, both):
    page.locator(".verdict").get_by_text("Lowest latency").wait_for()
    sliders = page.get_by_role("slider", name="Buffer timeout", exact=True)
    sliders.nth(1).wait_for()
    assert sliders.count() == 2
    before = page.evaluate(PLACES)["tops"]
    sliders.nth(1).focus()
    sliders.nth(1).press("End")
    happened = page.locator(".happened")
    happened.nth(1).get_by_text("buffer_timeout 0ms → disabled: latency p50").wait_for()
    assert both["a"].status()["buffer_timeout"] == "100ms"
    assert "buffer_timeout" not in happened.nth(0).inner_text()
    both["a"].fail("aggregate[0]")
    happened.nth(0).get_by_text("aggregate[0] was failed on purpose").wait_for()
    assert "failed" not in happened.nth(1).inner_text()
    assert page.evaluate(PLACES)["tops"] == before


def test_nothing_is_cut_or_covered_in_windows_of_any_size_nor_in_a_lecture(page):
    page.locator(".verdict").get_by_text("Lowest latency").wait_for()
    for width in (700, 1024, 1440, 1920):
        page.set_viewport_size({"width": width, "height": 1000})
        page.wait_for_function(f"() => (({PLACES})().outside).length === 0")
        seen = page.evaluate(PLACES)
        assert (seen["cut"], seen["over"], seen["counts"][0]) == ([], [], 4), width
    page.keyboard.press("l")
    for size in ({"width": 1280, "height": 720}, {"width": 1920, "height": 1080}):
        page.set_viewport_size(size)
        page.wait_for_function(IN_SIGHT)
        assert page.evaluate(PLACES)["counts"] == [2, 2], "latency and what it costs, and the setting that differs"
