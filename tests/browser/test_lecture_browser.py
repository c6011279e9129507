"""Lecture mode in a real browser: keys move through the scenes, nothing is cut off, and leaving it restores the
dashboard."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from browsing import CHROMIUM, chromium, jupyter, opened
from lab_front import Front
from waiting import until

import workbench as wb

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

PROJECTORS = {"width": 1280, "height": 720}, {"width": 1920, "height": 1080}
SIZES = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    return within(document).filter(one => one.nodeName === "CANVAS" && one.offsetParent !== null)
        .map(one => [one.getBoundingClientRect().width, one.getBoundingClientRect().height].map(Math.round))
        .filter(([width]) => width > 0)
}"""
"""Of the plots that are seen."""

STAGE = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    const root = within(document).find(one => one.hasAttribute("data-lecture") && one.hasAttribute("popover"))
    if (root === undefined) return null
    let top = document.elementFromPoint(innerWidth / 2, innerHeight - 30)
    for (let one; (one = top?.shadowRoot?.elementFromPoint(innerWidth / 2, innerHeight - 30)) && one !== top;) top = one
    const rect = root.getBoundingClientRect()
    const caption = root.shadowRoot.querySelector(".caption")
    const cards = within(root.shadowRoot).filter(one => one.classList.contains("wb-card") && one.offsetHeight > 0)
    return {
        scene: root.shadowRoot.querySelector(".title").textContent, caption: caption.textContent,
        news: root.shadowRoot.querySelector(".happens").textContent,
        isWhole: rect.width === innerWidth && rect.height === innerHeight,
        isOnTop: top?.closest('.caption') === caption,
        letters: parseFloat(getComputedStyle(caption).fontSize) / innerHeight,
        cards: cards.map(one => [...one.classList].find(name => /^wb-(?!card)/.test(name))),
        overlap: Math.max(...cards.map(one => one.getBoundingClientRect().bottom))
            - caption.getBoundingClientRect().top,
    }
}"""

UNUSED = {"dataflow": 200, "state": 250}
"""Pixels between the card and the caption: the graph has one row of boxes, the table a row for each of seven keys."""
CUT = """() => {
    const within = root => [...root.querySelectorAll("*")].flatMap(one =>
        [one, ...(one.shadowRoot === null ? [] : within(one.shadowRoot))])
    return within(document).filter(one => one.checkVisibility() && one.matches(".wb-card td, .wb-card th, td, th"))
        .filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)
}"""
"""Cells of tables of which a part is missing."""

LEFT_AT_ONCE = """async () => {
    const frame = () => new Promise(requestAnimationFrame)
    const press = key => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))
    press("l")
    for (let frames = 0; frames < 2; frames++) await frame()
    press("Escape")
    for (let frames = 0; frames < 3; frames++) await frame()
}"""
"""Opens the lecture and leaves it in the frame in which its plots get their height."""


PRESSED = """key => {
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }))
    return (STAGE)()
}"""
"""The stage in the moment in which a key is pressed, before the kernel can have answered."""


def lectured(page, scene, last=""):
    """The stage, once it shows the scene with its caption, which is not that of the last one."""
    shows = (
        f"([scene, last]) => {{ const stage = ({STAGE})();"
        " return stage?.scene === scene && stage.caption && stage.caption !== last }"
    )
    page.wait_for_function(shows, arg=[scene, last])
    return page.evaluate(STAGE)


def settled(page):
    """The sizes of the plots once they have been the same for half a second."""
    last, unchanged = None, 0
    for _ in range(100):
        sizes = page.evaluate(SIZES)
        unchanged = unchanged + 1 if sizes == last else 0
        if sizes and unchanged == 5:
            return sizes
        last = sizes
        page.wait_for_timeout(100)
    raise AssertionError(f"the plots still change: {last}")


def check_that_it_fits(page):
    """The scene that is on the page, in windows of each size."""
    for size in PROJECTORS[::-1]:
        page.set_viewport_size(size)
        settled(page)
        stage = page.evaluate(STAGE)
        assert stage["isWhole"]
        assert stage["isOnTop"]
        assert stage["letters"] >= 1 / 34, "a letter of the caption is a thirtieth of the picture's height"


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def served():
    clicks = pa.table({"user": [f"u{n % 7}" for n in range(40_000)], "t": range(0, 40_000_000_000, 1_000_000)})
    stream = wb.Stream.from_table(clicks, event_time="t", rate=50.0).key_by("user").window(wb.tumbling("10s"))
    job = stream.aggregate(n=wb.count()).sink_to(wb.TableSink("counts")).run("taught", parallelism=2)
    job.checkpoint()
    # From the first checkpoint on, the chart of its subtasks has one row for each of them.
    until(lambda: any(one.state == "COMPLETED" for one in job.checkpoints()))
    pages = wb.serve(job)
    yield pages
    pages.stop()
    job.cancel()


def test_keys_go_through_the_scenes_which_fit_and_can_be_read_from_the_last_row(browser, served):
    page = opened(browser, served.url, every=False)
    page.set_viewport_size(PROJECTORS[0])
    page.locator(".badge:visible").wait_for()
    before = settled(page)
    page.keyboard.press("l")
    seen = [lectured(page, "Dataflow")]
    check_that_it_fits(page)
    for title in ("Buffer timeout and latency", "Event time", "Backpressure", "Checkpoints", "Failure and recovery"):
        page.keyboard.press("ArrowRight")
        seen.append(lectured(page, title, seen[-1]["caption"]))
        check_that_it_fits(page)
    assert [stage["cards"] for stage in seen] == [
        ["wb-graph"], ["wb-latency"], ["wb-event_time"], ["wb-graph", "wb-buffers", "wb-controls"],
        ["wb-checkpoints", "wb-controls"], ["wb-graph", "wb-controls", "wb-events"],
    ]  # fmt: skip
    page.keyboard.press("2")
    lectured(page, "Buffer timeout and latency")
    for size in PROJECTORS[::-1]:
        page.set_viewport_size(size)
        page.wait_for_function(f"() => ({STAGE})().overlap <= 0")
    page.keyboard.press("End")
    assert lectured(page, "Results")["cards"] == ["wb-sink"]
    page.keyboard.press("ArrowRight")
    assert lectured(page, "Results")
    page.keyboard.press("Escape")
    page.wait_for_function(f"() => ({STAGE})() === null")
    assert settled(page) == before
    page.evaluate(LEFT_AT_ONCE)
    assert page.evaluate(STAGE) is None
    assert page.problems == []
    page.close()


def test_a_caption_changes_with_the_title_of_its_scene_and_not_when_the_kernel_answers(browser, served):
    page = opened(browser, served.url, every=False)
    page.locator(".badge:visible").wait_for()
    pressed = PRESSED.replace("STAGE", STAGE)
    assert page.evaluate(pressed, "l")["caption"] == "", "the kernel has not written any yet"
    lectured(page, "Dataflow")
    expected = (
        ("ArrowRight", "Buffer timeout and latency", "buffer timeout"),
        ("ArrowRight", "Event time", "Event time has reached"),
        ("4", "Backpressure", "buffers between tasks"),
        ("5", "Checkpoints", "One follows every|Checkpoint \\d+ is in progress"),
        ("ArrowRight", "Failure and recovery", "No task has failed"),
        ("1", "Dataflow", "The sources read"),
    )
    for key, title, words in expected:
        stage = page.evaluate(pressed, key)
        assert stage["scene"] == title
        assert re.search(words, stage["caption"])
    assert page.problems == []
    page.close()


@pytest.mark.parametrize(("scene", "title"), [("dataflow", "Dataflow"), ("state", "State")])
def test_a_scene_uses_the_height_of_an_old_projector(browser, served, scene, title):
    page = opened(browser, f"{served.url}&lecture={scene}", every=False)
    page.set_viewport_size({"width": 1024, "height": 768})
    lectured(page, title)
    page.wait_for_function(f"() => ({STAGE})().overlap <= 0 && ({STAGE})().overlap > -{UNUSED[scene]}")
    assert page.evaluate(CUT) == []
    page.close()


def test_controls_of_a_scene_act_and_arrow_keys_on_a_slider_move_the_slider(browser, served):
    page = opened(browser, f"{served.url}&lecture=latency", every=False)
    lectured(page, "Buffer timeout and latency")
    assert page.get_by_role("slider").filter(visible=True).count() == 1
    handle = page.get_by_role("slider", name="Buffer timeout", exact=True)
    handle.focus()
    handle.press("Home")
    page.wait_for_function(f"() => ({STAGE})().caption.includes('sent immediately')")
    page.wait_for_function(f"() => /buffer_timeout 100ms → 0ms: latency p50/.test(({STAGE})().news)")
    handle.press("ArrowRight")
    page.wait_for_function(f"() => ({STAGE})().caption.includes('waits at most')")
    assert lectured(page, "Buffer timeout and latency")
    page.mouse.click(5, 5)  # away from the slider
    page.keyboard.press("6")
    lectured(page, "Failure and recovery")
    labels = page.get_by_role("button").filter(visible=True).all_inner_texts()
    assert {"Fail task", "Fail TaskManager", "Fail coordinator"} <= set(labels)
    assert "Savepoint" not in labels
    page.get_by_role("button", name="Fail task", exact=True).click()
    page.wait_for_function(f"() => /After 1 failure/.test(({STAGE})().caption)")
    page.wait_for_function(f"() => /was failed on purpose.*records read again/.test(({STAGE})().news)")
    assert page.get_by_role("button", name="Fail task", exact=True).filter(visible=True).count() == 1
    assert page.problems == []
    page.close()


def test_the_stepper_shows_all_of_a_moment_on_the_screen_and_in_a_lecture(browser):
    numbers = (
        wb.Stream.from_table(pa.table({"n": range(40)})).with_parallelism(2).key_by("n").aggregate(count=wb.count())
    )
    job = numbers.sink_to(wb.DiscardSink()).run("stepped", driver="stepping", parallelism=2, buffer_size=1)
    job.stepper.step(14)
    pages = wb.serve(job)
    page = opened(browser, pages.url, every=False)
    page.set_viewport_size({"width": 1440, "height": 900})
    moment = page.locator(".wb-scene").first
    moment.wait_for()
    natural = moment.evaluate("one => one.viewBox.baseVal.height")
    assert moment.bounding_box()["height"] <= max(natural, 900 - 430) + 1
    page.keyboard.press("l")
    lectured(page, "Step by step")
    for size in PROJECTORS:
        page.set_viewport_size(size)
        page.wait_for_function(f"() => ({STAGE})().overlap <= 0")
    pages.stop()
    job.cancel()
    assert page.problems == []
    page.close()


def test_a_page_of_a_job_that_is_over_begins_with_the_scene_too(browser, served):
    wb.job("taught").cancel()
    wb.job("taught").wait("60s")
    page = opened(browser, f"{served.url}&lecture=latency", every=False)
    lectured(page, "Buffer timeout and latency")
    page.close()


SCROLLED = "() => document.querySelector('.jp-Notebook .jp-WindowedPanel-outer').scrollTop"
FOCUSED = """() => {
    const { role, ariaLabel } = document.activeElement
    const ring = getComputedStyle(document.activeElement).outlineStyle
    return `${role} ${ariaLabel} ${ring}`
}"""


def test_a_click_anywhere_in_a_cells_dashboard_gives_it_the_keys(browser, tmp_path):
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir()
    root.mkdir()
    start = (
        "import pyarrow as pa, workbench as wb\n"
        'job = wb.Stream.from_table(pa.table({"n": range(100_000)}), rate=50.0).sink_to(wb.DiscardSink()).run("keys")\n'
        "job.dashboard()"
    )
    with jupyter(home, root) as url:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        front = Front(page, url, root)
        front.open("keys.ipynb", start, "job.cancel()")
        front.run_cell(0)
        page.get_by_role("button", name="Lecture L").first.wait_for()
        leaf = "() => window.jupyterapp.shell.currentWidget.content.node.focus()"
        for place, inside in ((".wb-header", (300, 60)), (".wb-graph", (200, 8)), (".bk-Figure", (200, 60))):
            page.evaluate(leaf)
            front.appears(f".jp-OutputArea {place}").scroll_into_view_if_needed()
            scrolled = page.evaluate(SCROLLED)
            page.locator(f".jp-OutputArea {place}").first.click(position=dict(zip("xy", inside, strict=True)))
            assert page.evaluate(FOCUSED) == "group Dashboard of keys none", place
            assert page.evaluate(SCROLLED) == scrolled, place
            page.keyboard.press("l")
            lectured(page, "Dataflow")
            page.keyboard.press("ArrowRight")
            lectured(page, "Buffer timeout and latency")
            page.keyboard.press("Escape")
            page.wait_for_function(f"() => ({STAGE})() === null")
        page.evaluate("() => window.jupyterapp.shell.currentWidget.content.activeCell.node.focus()")
        for _ in range(9):
            page.keyboard.press("Tab")
            if page.evaluate(FOCUSED) == "group Dashboard of keys solid":
                break
        else:
            raise AssertionError(f"the tab key does not reach it: {page.evaluate(FOCUSED)}")
        front.run_cell(1)
        page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")
        page.close()


def test_in_jupyterlab_it_is_above_everything_and_keys_do_not_reach_the_notebook(browser, tmp_path):
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir()
    root.mkdir()
    start = (
        "import pyarrow as pa, workbench as wb\n"
        "%load_ext workbench\n"
        'numbers = wb.Stream.from_table(pa.table({"n": range(100_000)}), rate=50.0)\n'
        'job = numbers.key_by("n").aggregate(count=wb.count()).sink_to(wb.TableSink("counts")).run("taught")'
    )
    with jupyter(home, root) as url:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        front = Front(page, url, root)
        front.open("lecture.ipynb", start, "%stream lecture taught latency", "job.cancel()")
        front.run_cell(0)
        front.run_cell(1)
        stage = lectured(page, "Buffer timeout and latency")
        assert stage["isWhole"]
        assert stage["isOnTop"]
        cells = "() => window.jupyterapp.shell.currentWidget.content.widgets.length"
        count = page.evaluate(cells)
        for key in ("d", "d", "a", "x", "ArrowRight"):
            page.keyboard.press(key)
        lectured(page, "Event time")
        assert page.evaluate(cells) == count
        page.keyboard.press("l")
        page.wait_for_function(f"() => ({STAGE})() === null")
        page.get_by_role("button", name="Lecture L").first.click()
        lectured(page, "Dataflow")
        page.keyboard.press("Escape")
        page.wait_for_function(f"() => ({STAGE})() === null")
        front.run_cell(2)
        page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")
        page.close()
