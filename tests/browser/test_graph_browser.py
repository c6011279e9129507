"""A served dashboard in a real browser: a box of the graph is taken apart by a click on it, wherever it stands by then;
sliders have names; a long name hides nothing."""

from __future__ import annotations

from threading import Event

import pyarrow as pa
import pytest
from browsing import CHROMIUM, chromium, opened

import workbench as wb
from workbench.dashboard.views.graph_part import GraphPart

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

BOXES = """() => [...Bokeh.documents[0]._all_models.values()]
    .find(model => model.type === "ColumnDataSource" && model.columns().includes("bar_top")).get_column("name")"""
CENTRE = """name => {
    const figure = [...Bokeh.documents[0]._all_models.values()]
        .find(model => model.type === "Figure" && model.html_attributes["aria-label"]?.startsWith("Dataflow graph"))
    const boxes = figure.renderers.find(one => one.data_source?.columns().includes("bar_top")).data_source
    const place = boxes.get_column("name").indexOf(name)
    const of = column => boxes.get_column(column)[place]
    const view = Bokeh.index.find_one(figure), frame = view.canvas_view.el.getBoundingClientRect()
    const {x_scale, y_scale} = view.frame
    return [frame.x + x_scale.compute((of("left") + of("right")) / 2), frame.y + y_scale.compute(of("bar_top") + 8)]
}"""
"""Where the middle of a box is on the page."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


def test_of_two_clicks_at_once_each_takes_apart_the_box_that_it_was_on(browser, monkeypatch):
    both_clicked, tapped = Event(), GraphPart._tapped

    def slow(part, box):
        assert both_clicked.wait(60)
        tapped(part, box)

    monkeypatch.setattr(GraphPart, "_tapped", slow)
    keyed = wb.Stream.from_table(pa.table({"n": range(10_000)}), rate=10.0).with_parallelism(2).key_by("n")
    counts = keyed.aggregate(count=wb.count()).uid("counts")
    job = counts.rebalance().sink_to(wb.DiscardSink()).run("tapped", parallelism=2)
    pages = wb.serve(job)
    try:
        page = opened(browser, f"{pages.url}&view=graph")
        page.wait_for_function(f"({BOXES})().length === 3")
        whole = page.evaluate(BOXES)
        for name in whole[:2]:
            page.mouse.click(*page.evaluate(CENTRE, name))
            page.wait_for_timeout(500)  # two clicks are not to be a double click
        assert page.evaluate(BOXES) == whole, "the kernel answered too soon"
        both_clicked.set()
        apart = [f"{name}[{place}]" for name in whole[:2] for place in range(2)]
        page.wait_for_function(f"boxes => String(({BOXES})()) === boxes", arg=",".join([*apart, whole[2]]))
        assert page.problems == []
        page.close()
    finally:
        both_clicked.set()
        pages.stop()
        job.cancel()
        job.wait("120s")


STOPS = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    return within(document).filter(one => one.tabIndex === 0 && one.nodeName === "DIV")
        .map(one => [one.className.split(" ")[0], one.getAttribute("role"), one.getAttribute("aria-label")])
}"""
"""What is no control of HTML and stops the tab key all the same."""


def test_what_can_be_done_by_keys_has_a_name_and_a_long_name_of_a_job_does_not_hide_its_state(browser):
    numbers = wb.Stream.from_table(pa.table({"n": range(10_000)}), rate=10.0)
    job = numbers.sink_to(wb.DiscardSink()).run("n" * 80)
    pages = wb.serve(job)
    try:
        for view in ("", "&view=controls"):
            page = opened(browser, f"{pages.url}{view}", height=1000 if view else 3000)
            if not view:
                page.wait_for_function(f"() => ({STOPS})().some(([kind, role]) => kind === 'bk-OnOffButton' && role)")
                stops = page.evaluate(STOPS)
                assert {role for _, role, _ in stops} <= {"button", "slider", "group"}
                assert {"Pan", "Wheel Zoom", "Zoom In", "More tools"} <= {name for _, _, name in stops}
            for name in ("Buffer timeout", "Checkpoint mode", "Parallelism"):
                page.get_by_role("slider", name=name, exact=True).wait_for()
            page.locator('[role=slider][aria-valuetext="100ms"]').first.wait_for()  # not the number of its place
            page.set_viewport_size({"width": 240, "height": 1000})
            badge = page.locator(".badge:visible")
            badge.wait_for()
            inside = "badge => { const r = badge.getBoundingClientRect(); return 0 < r.left && r.right < innerWidth }"
            assert badge.evaluate(inside)
            name = page.locator(f"b[title={'n' * 80}]")
            assert name.evaluate("name => name.getBoundingClientRect().right < innerWidth")
            assert page.problems == []
            page.close()
    finally:
        pages.stop()
        job.cancel()
        job.wait("120s")


MOVING = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    return within(document).filter(one => one.closest(".wb-moves") && one.matches("g, path"))
        .map(one => one.getAttribute("class") ?? one.tagName)
}"""
BARRIERS = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    const moved = within(document).filter(one => one.closest(".wb-moves g.barrier")).map(one => one.tagName)
    const count = tag => moved.filter(one => one === tag).length
    return count("rect") > 2 && count("text") > 0 ? [count("rect"), count("text")] : null
}"""
"""How many barriers move while at least three do, two of them on steep edges, and how many of them are labelled."""


def test_records_and_barriers_move_along_the_edges_unless_motion_is_unwelcome(browser):
    left, right = (wb.Stream.from_table(pa.table({"n": range(600_000)}), rate=10.0) for _ in range(2))
    job = (
        left.union(right)
        .key_by("n")
        .aggregate(count=wb.count())
        .sink_to(wb.DiscardSink())
        .run("moves", checkpoint_interval="2s")
    )
    pages = wb.serve(job)
    try:
        page = opened(browser, f"{pages.url}&view=graph", reduced_motion="no-preference")
        for kind in ("record", "barrier"):
            page.wait_for_function(f"kind => ({MOVING})().includes(kind)", arg=kind)
        barriers, labels = page.wait_for_function(BARRIERS).json_value()
        assert labels < barriers, "labels of steep edges would stand on the numbers of the edges"
        page.get_by_text("One of 5 records is drawn").wait_for()
        job.tune(rate=6_000)
        page.wait_for_function(f"() => ({MOVING})().includes('path')")
        page.close()
        still = opened(browser, f"{pages.url}&view=graph", reduced_motion="reduce")
        still.wait_for_timeout(2_000)
        assert "record" not in still.evaluate(MOVING)
        assert [*page.problems, *still.problems] == []
        still.close()
    finally:
        pages.stop()
        job.cancel()
        job.wait("60s")
