"""The tabs of the checkpoints view in a real browser: they switch without a kernel, rows are chosen by mouse and
keyboard."""

from __future__ import annotations

import pyarrow as pa
import pytest
from browsing import CHROMIUM, chromium, opened

import workbench as wb

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

TABS = ("Overview", "History", "Summary", "Configuration")
SAYS = {
    "Overview": "Latest Completed Checkpoint",
    "History": "Trigger Time",
    "Summary": "99% percentile",
    "Configuration": "Maximum Concurrent Checkpoints",
}
HEARD = """row => [...Bokeh.documents[0]._all_models.values()]
    .filter(model => model.type === "ColumnDataSource" && model.columns().includes("piece 0"))
    .some(model => model.columns().some(name => model.get_column(name)[0].includes(row)))"""
"""Whether the page has been told of a row."""
FRAMES = """() => new Promise(done => {
    let left = 3
    const next = () => left-- > 0 ? requestAnimationFrame(next) : done()
    next()
})"""
"""Three pictures of the page later."""
TREMBLE = """([x, y]) => {
    const hand = () => {
        let under = document.elementFromPoint(x, y)
        while (under.shadowRoot?.elementFromPoint(x, y)) under = under.shadowRoot.elementFromPoint(x, y)
        under.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, composed: true}))
    }
    window.hand = setInterval(hand, 20)
}"""
"""A pointer that goes on moving where it is, as one in a hand does."""
EVIL = "<img src=x onerror=alert(1)>"


def numbers(count, name, **settings):
    table = pa.table({"k": [EVIL, "b"] * (count // 2), "n": range(count)})
    stream = wb.Stream.from_table(table, rate=settings.pop("rate", None)).key_by("k").aggregate(total=wb.sum("n"))
    return stream.sink_to(wb.TableSink("sums")).run(name, parallelism=2, **settings)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


def shown(browser, url):
    page = opened(browser, url)
    return page, page.locator(".wb-checkpoints")


def tab(card, name):
    return card.get_by_role("group", name="Tabs of the checkpoints").get_by_text(name, exact=True)


def test_in_a_report_the_tabs_turn_by_mouse_and_by_key_without_a_kernel(browser, tmp_path):
    job = numbers(40, "turned", driver="stepping", buffer_size=1)
    job.stepper.step(30)
    job.checkpoint()
    assert job.wait() == "FINISHED"
    page, card = shown(browser, job.report(tmp_path / "run.html").as_uri())
    for name in (*TABS, "Overview"):
        tab(card, name).click()
        card.get_by_text(SAYS[name]).first.wait_for()
        assert [other for other in TABS if card.get_by_text(SAYS[other]).first.is_visible()] == [name]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    card.get_by_text(SAYS["History"]).first.wait_for()
    assert card.locator("[data-choose]").count() == 0, "nobody would hear of it"
    tab(card, "Summary").click()
    canvas = card.get_by_role("img", name="Duration and size of the latest checkpoints").locator("canvas").first
    canvas.wait_for()
    assert canvas.bounding_box()["height"] > 50
    assert page.problems == []
    page.close()


class History:
    """The history of the checkpoints of a job on a page; there are more of them when a test says so.

    Attributes:
        newest: the number of the newest one, when a test begins.
    """

    def __init__(self, job, page, card):
        self.job, self.page, self.card = job, page, card
        self.newest = 0
        self.table = card.get_by_role("region", name="History of checkpoints")
        self.chosen = self.table.locator("tr.chosen")

    def row(self, number):
        return self.table.locator(f"tr[data-choose='{number}']")

    def aim(self, number):
        """Put the pointer on a row; where it is."""
        cell = self.row(number).locator("td").nth(1)
        cell.scroll_into_view_if_needed()
        box = cell.bounding_box()
        place = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        self.page.mouse.move(*place)
        return place

    def hear_of(self, number):
        """Take this checkpoint; the page is told of it and has its chance to write that."""
        self.job.checkpoint()
        self.page.wait_for_function(HEARD, arg=f"<tr data-choose='{number}'")
        self.page.evaluate(FRAMES)


@pytest.fixture(scope="module")
def _no_job_outlives_its_test():
    """The one of the history does; the others of this file end by themselves."""


@pytest.fixture(scope="module")
def shared(browser, _no_job_outlives_its_test):
    """Of a job with three savepoints, and a checkpoint when a test asks for one."""
    job = numbers(10_000, "choosing", rate=10.0, checkpoint_interval=None)
    for name in ("first", "second", "third"):
        job.savepoint(name)
    pages = wb.serve(job)
    page = opened(browser, pages.url, every=False)
    page.get_by_role("group", name="Views").get_by_text("Checkpoints", exact=True).click()
    card = page.locator(".wb-checkpoints")
    tab(card, "History").click()
    yield History(job, page, card)
    page.close()
    pages.stop()
    job.cancel()
    job.wait("60s")
    assert page.problems == []


@pytest.fixture
def history(shared):
    """With no row chosen, and the pointer elsewhere."""
    shared.page.mouse.move(0, 0)
    if shared.chosen.count():
        shared.chosen.get_by_role("button").press("Enter")
        shared.chosen.wait_for(state="detached")
    shared.newest = len(shared.job.checkpoints())
    shared.row(shared.newest).wait_for()
    return shared


def test_a_row_is_chosen_by_mouse_and_by_key_and_keeps_the_focus_while_rows_come(history):
    newest = history.newest
    history.row(newest - 1).locator("td").nth(1).click()
    history.row(newest - 1).and_(history.chosen).wait_for()
    history.card.get_by_text(f"#{newest - 1} by subtask").wait_for()
    history.table.locator("tr.inside").get_by_text("Start Delay").wait_for()
    button = history.row(newest).get_by_role("button", name=str(newest), exact=True)
    button.press("Enter")
    history.row(newest).and_(history.chosen).wait_for()
    assert button.get_attribute("aria-pressed") == "true"
    for number in (newest + 1, newest + 2):  # its row goes further down
        history.job.checkpoint()
        history.row(number).wait_for()
    focused = button.evaluate("button => button.getRootNode().activeElement.closest('tr').dataset.choose")
    assert focused == str(newest)
    button.press("Enter")
    history.chosen.wait_for(state="detached")
    tab(history.card, "Overview").click()
    history.card.get_by_role("region", name="The latest checkpoints").get_by_role("button").first.click()
    tab(history.card, "History").click()
    history.chosen.wait_for()


def test_a_row_that_is_pressed_is_chosen_though_another_one_comes_above_it_meanwhile(history):
    history.aim(history.newest - 1)
    history.page.mouse.down()
    history.hear_of(history.newest + 1)
    history.page.mouse.up()
    history.chosen.wait_for()
    assert history.chosen.get_attribute("data-choose") == str(history.newest - 1)
    history.row(history.newest + 1).wait_for()


def test_a_row_stays_under_the_pointer_that_is_about_to_press_it(history):
    place = history.aim(history.newest - 1)
    history.page.evaluate(TREMBLE, place)
    history.hear_of(history.newest + 1)
    history.page.mouse.click(*place)
    history.page.evaluate("() => clearInterval(window.hand)")
    history.chosen.wait_for()
    assert history.chosen.get_attribute("data-choose") == str(history.newest - 1)
    history.row(history.newest + 1).wait_for()


def test_a_pointer_that_rests_keeps_nothing_waiting_and_rows_stay_what_they_are_when_they_move(history):
    history.aim(history.newest - 1)
    row = history.row(history.newest - 1).element_handle()
    history.job.checkpoint()
    history.row(history.newest + 1).wait_for()
    assert row.get_attribute("data-choose") == str(history.newest - 1)


def test_a_docked_view_has_room_for_all_tabs(browser, tmp_path):
    job = numbers(40, "roomy", driver="stepping", buffer_size=1)
    job.stepper.step(30)
    job.checkpoint()
    job.wait()
    page, card = shown(browser, job.view("checkpoints").save(tmp_path / "view.html").as_uri())
    card.get_by_text(SAYS["Configuration"]).first.wait_for()
    assert all(card.get_by_text(text).first.is_visible() for text in SAYS.values())
    tab(card, "Summary").click()
    card.get_by_text(SAYS["Configuration"]).first.wait_for(state="hidden")
    assert card.get_by_text(SAYS["Summary"]).first.is_visible()
    tab(card, "All").click()
    card.get_by_text(SAYS["Configuration"]).first.wait_for()
    assert page.problems == []
    page.close()
