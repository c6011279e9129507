"""The dashboard in a real JupyterLab with a real job and no network: it updates, and its controls act on the job."""

from __future__ import annotations

import pytest
from browsing import CHROMIUM
from live_notebook import BEATS, COLLAPSED, POSITIONS, ROOTS, SHOW_AND_STAY_BUSY, START, live_notebook

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

PRINTS = """import time
for number in range(300):
    print(number)
    time.sleep(0.005)
print("the end", end="")"""
STATUS = """job = wb.job("delays")
said = {name: job.status().get(name) for name in ("buffer_size", "slow_down", "stall", "paused", "restarts")}
print(said, job.savepoints(), job.state)"""
CELLS = [START, "job.dashboard()", SHOW_AND_STAY_BUSY, PRINTS, STATUS, "%stream show delays graph"]
VIEWS = ("graph", "subtasks", "watermarks", "latency", "buffers", "checkpoints", "state", "sink", "events", "controls")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with live_notebook(tmp_path_factory, CELLS) as lab:
        yield lab


def test_two_displays_of_one_job_move_without_a_network_and_one_of_them_in_a_busy_cell(lab):
    lab.run(0)
    lab.run(1)
    lab.run(2, wait=False)
    lab.await_pictures(2)
    assert lab.is_busy(2), "the cell was not busy any more"


def test_a_slider_acts_while_a_cell_is_busy(lab):
    handle = lab.page.locator(".noUi-handle[aria-label='Buffer timeout']").first
    lab.slide_while_busy(handle)


def test_nothing_that_a_cell_prints_is_lost_while_pages_answer(lab):
    lab.run(3)
    expected = "".join(f"{number}\n" for number in range(300)) + "the end"
    lab.until(lambda: len(lab.printed(3)) >= len(expected), "all that was printed")
    assert lab.printed(3) == expected


def test_the_other_display_follows_what_the_first_one_set(lab):
    lab.until(lambda: lab.page.evaluate(POSITIONS) == [10, 10], "both sliders at 1s")


def test_what_the_kernel_moves_is_not_sent_back_to_it(lab):
    listen = """() => {
        window.sent = []
        for (const line of Bokeh.documents.flatMap(d => d.roots()).filter(r => r.client_comm_id !== undefined)) {
            const send = line.process_events.bind(line)
            line.process_events = () => { window.sent.push(...line._event_buffer.map(e => e.model?.type)); send() }
        }
    }"""
    lab.page.evaluate(listen)
    lab.rewrite(3, 'job.tune(buffer_timeout="20ms");')
    lab.run(3)
    lab.until(lambda: lab.page.evaluate(POSITIONS) == [5, 5], "both sliders at 20ms")
    before = len(lab.page.evaluate("() => window.sent"))
    lab.until(lambda: len(lab.page.evaluate("() => window.sent")) >= before + 10, "ten more answers to pictures")
    assert set(lab.page.evaluate("() => window.sent")) == {"ColumnDataSource"}


def test_it_follows_the_theme_while_it_is_open(lab):
    change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme}).then(() => null)"
    dark = f"() => ({ROOTS})().map(r => r.css_classes.includes('wb-dark'))"
    lab.until(lambda: lab.page.evaluate(dark) == [False, False], "light at first")
    lab.page.evaluate(change, "JupyterLab Dark")
    lab.until(lambda: lab.page.evaluate(dark) == [True, True], "dark")
    colours = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
        .filter(m => m.type === "DatetimeAxis").map(m => m.major_label_text_color)"""
    assert set(lab.page.evaluate(colours)) == {"#a8b0ba"}
    lab.page.evaluate(change, "JupyterLab Light")
    lab.until(lambda: lab.page.evaluate(dark) == [False, False], "light again")
    lab.until(lambda: not any(lab.page.evaluate(COLLAPSED)), "plots that know that they are on the page")


def test_cells_answer_under_two_displays(lab):
    for _ in range(3):
        assert "RUNNING" in lab.ask()


def test_a_checkpoint_is_chosen_by_its_row_and_by_key_while_others_come(lab):
    for cell in (1, 2):
        lab.clear(cell)
    lab.rewrite(5, "%stream show delays checkpoints")
    lab.run(5)
    history = lab.page.get_by_role("region", name="History of checkpoints")
    rows = history.locator("tr[data-choose]")
    rows.nth(3).wait_for()
    for place, choose in ((2, lambda row: row.locator("td").nth(1).click()), (1, lambda row: row.press("Enter"))):
        number = rows.nth(place).get_attribute("data-choose")
        row = history.locator(f"tr[data-choose='{number}']")
        choose(row if place == 2 else row.get_by_role("button"))
        history.locator(f"tr.chosen[data-choose='{number}']").wait_for()
        lab.page.get_by_text(f"#{number} by subtask").wait_for()


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_stands_alone_in_a_cell_and_moves(lab, view):
    for cell in (1, 2):
        lab.clear(cell)
    lab.rewrite(5, f"%stream show delays {view}")
    lab.run(5)
    classes = f"""() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
        .filter(m => (m.css_classes ?? []).includes("wb-{view}")).length"""
    lab.until(lambda: len(lab.heads()) == 1 and lab.page.evaluate(classes) == 1, f"the {view} view alone")
    lab.until(lambda: "RUNNING" in lab.heads()[0], "a running job")
    (before,) = lab.page.evaluate(BEATS)
    lab.until(lambda: lab.page.evaluate(BEATS)[0] >= before + 3, "three more pictures")
    assert lab.page.evaluate("() => document.querySelectorAll('.jp-OutputArea img[src=\"x\"]').length") == 0


def test_every_control_acts_and_says_so(lab):
    """In the controls' view, which the test before has left on the page."""
    page = lab.page
    page.get_by_label("Buffer size (records): any value").fill("1234")
    page.get_by_label("Buffer size (records): any value").press("Enter")
    lab.until(lambda: "in force: <b>1234</b>" in lab.texts(), "the buffer size in force")
    page.get_by_label("Buffer timeout: any value").fill("soon")
    page.get_by_label("Buffer timeout: any value").press("Enter")
    lab.until(lambda: "✗ buffer_timeout is &#x27;soon&#x27;" in lab.texts(), "a refusal in a sentence")
    page.get_by_label("Rest after each buffer").fill("3ms")
    page.get_by_label("Rest after each buffer").press("Tab")
    page.get_by_label("Operator to slow down or stall").select_option("aggregate")
    page.get_by_role("button", name="Slow down").click()
    lab.until(lambda: "slowed down: <b>aggregate:3ms</b>" in lab.texts(), "what is slowed down")
    page.get_by_label("Operator to slow down or stall").select_option("delays")
    page.get_by_role("button", name="Stall").click()
    lab.until(lambda: "stalled: <b>delays</b>" in lab.texts(), "what is stalled")
    assert "'buffer_size': 1234, 'slow_down': 'aggregate:3ms', 'stall': 'delays'" in lab.ask()
    page.get_by_role("button", name="Release").click()
    lab.until(lambda: "stalled" not in lab.texts().replace("slowed down or stalled", ""), "no stall")
    page.get_by_label("Name of the savepoint").fill("monday")
    page.get_by_label("Name of the savepoint").press("Tab")
    page.get_by_role("button", name="Savepoint").click()
    lab.until(lambda: "✓ savepoint monday is complete" in lab.texts(), "the savepoint")
    page.get_by_role("button", name="Fail coordinator").click()
    lab.until(lambda: "'restarts': 0" not in lab.ask(), "a restart")
    page.get_by_role("button", name="Pause").click()
    lab.until(lambda: "'paused': True" in lab.ask(), "a pause")
    page.get_by_role("button", name="Resume").click()
    lab.until(lambda: "'paused': False" in lab.ask(), "no pause")


def test_a_restored_job_goes_on_in_the_same_display(lab):
    page = lab.page
    saved = page.get_by_label("Savepoint to restore")
    saved.scroll_into_view_if_needed()  # what is not on the screen is not kept up to date
    lab.until(lambda: saved.input_value() == "monday", "the savepoint in the list")
    page.get_by_role("button", name="Restore").click()
    lab.until(lambda: "✓ restored from savepoint monday" in lab.texts(), "the answer")
    lab.until(lambda: "RUNNING" in lab.heads()[0], "the job that goes on")
    assert "['monday'] RUNNING" in lab.ask()


def test_the_stop_button_ends_the_job_and_the_last_frame_is_shown(lab):
    lab.page.get_by_role("button", name="Stop job").click()
    lab.await_end()
    assert lab.page.get_by_role("button", name="Stop job").is_disabled()
