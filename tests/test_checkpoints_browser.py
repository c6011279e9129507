"""The tabs of the checkpoints in a real browser: they turn without a kernel, rows are chosen by mouse and by key."""

from __future__ import annotations

import pyarrow as pa
import pytest
from browsing import CHROMIUM, chromium

import workbench as wb

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

READY = "window.Bokeh?.documents[0]?._all_models.size > 0"
TABS = ("Overview", "History", "Summary", "Configuration")
SAYS = {
    "Overview": "Latest Completed Checkpoint",
    "History": "Trigger Time",
    "Summary": "99% percentile",
    "Configuration": "Maximum Concurrent Checkpoints",
}
EVIL = "<img src=x onerror=alert(1)>"


def numbers(count, name, **settings):
    table = pa.table({"k": [EVIL, "b"] * (count // 2), "n": range(count)})
    stream = wb.Stream.from_table(table, rate=settings.pop("rate", None)).key_by("k").aggregate(total=wb.sum("n"))
    return stream.sink_to(wb.TableSink("sums")).run(name, parallelism=2, **settings)


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


def opened(browser, url):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    page.set_default_timeout(60_000)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("dialog", lambda dialog: page.problems.append(f"a script ran: {dialog.message}"))
    page.goto(url)
    page.wait_for_function(READY)
    return page, page.locator(".wb-checkpoints")


def tab(card, name):
    return card.get_by_role("group", name="Tabs of the checkpoints").get_by_text(name, exact=True)


def test_in_a_report_the_tabs_turn_by_mouse_and_by_key_without_a_kernel(browser, tmp_path):
    job = numbers(40, "turned", driver="stepping", buffer_size=1)
    job.step(30)
    job.checkpoint()
    assert job.wait() == "FINISHED"
    page, card = opened(browser, job.report(tmp_path / "run.html").as_uri())
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


def test_a_row_is_chosen_by_mouse_and_by_key_and_keeps_the_focus_while_rows_come(browser):
    job = numbers(1_000, "choosing", rate=10.0, checkpoint_interval=None)
    pages = wb.serve(job)
    try:
        page, card = opened(browser, pages.url.replace("localhost", "127.0.0.1"))
        history = card.get_by_role("region", name="History of checkpoints")
        tab(card, "History").click()

        def more(upto):
            """Take checkpoints up to this one, so that rows move when the test says."""
            for number in range(job.status().get("last_checkpoint") or 0, upto):
                job.checkpoint()
                history.locator(f"tr[data-choose='{number + 1}']").get_by_text("Completed").wait_for()

        more(3)
        history.locator("tr[data-choose='2'] td").nth(1).click()
        history.locator("tr.chosen[data-choose='2']").wait_for()
        card.get_by_text("#2 by subtask").wait_for()
        history.locator("tr.inside").get_by_text("Start Delay").wait_for()
        button = history.locator("tr[data-choose='3']").get_by_role("button", name="3", exact=True)
        button.press("Enter")
        history.locator("tr.chosen[data-choose='3']").wait_for()
        assert button.get_attribute("aria-pressed") == "true"
        more(6)  # its row is three rows further down by now
        focused = button.evaluate("button => button.getRootNode().activeElement.closest('tr').dataset.choose")
        assert focused == "3"
        button.press("Enter")
        history.locator("tr.chosen").wait_for(state="detached")
        tab(card, "Overview").click()
        card.get_by_role("region", name="The latest checkpoints").get_by_role("button").first.click()
        tab(card, "History").click()
        history.locator("tr.chosen").wait_for()
        assert page.problems == []
        page.close()
    finally:
        pages.stop()
        job.cancel()
        job.wait("30s")


def test_a_docked_view_has_room_for_all_tabs(browser, tmp_path):
    job = numbers(40, "roomy", driver="stepping", buffer_size=1)
    job.step(30)
    job.checkpoint()
    job.wait()
    page, card = opened(browser, job.view("checkpoints").save(tmp_path / "view.html").as_uri())
    card.get_by_text(SAYS["Configuration"]).first.wait_for()
    assert all(card.get_by_text(text).first.is_visible() for text in SAYS.values())
    tab(card, "Summary").click()
    card.get_by_text(SAYS["Configuration"]).first.wait_for(state="hidden")
    assert card.get_by_text(SAYS["Summary"]).first.is_visible()
    tab(card, "All").click()
    card.get_by_text(SAYS["Configuration"]).first.wait_for()
    assert page.problems == []
    page.close()
