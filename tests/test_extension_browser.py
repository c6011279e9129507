"""The JupyterLab front end in a real browser: JupyterLab, a kernel, real jobs, no network."""

import sysconfig
from pathlib import Path

import nbformat
import pytest
from browsing import CHROMIUM, chromium, jupyter
from lab_front import Front

pytest.importorskip("playwright.sync_api")
INSTALLED = Path(sysconfig.get_path("data")) / "share/jupyter/labextensions/workbench-jupyterlab/package.json"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
    pytest.mark.skipif(not INSTALLED.exists(), reason="the front end is not installed: pip install ./extension"),
]


START = """%load_ext workbench
import numpy as np, pyarrow as pa, workbench as wb
rows = 1_000_000
table = pa.table({{"t": pa.array(np.arange(rows) * 50_000, pa.timestamp("us")), "k": np.arange(rows) % 7}})
stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="10s", rate=2000)
counts = stream.key_by("k").window(wb.tumbling("1min")).aggregate(n=wb.count())
job = counts.sink_to(wb.TableSink("{name}")).run("{name}", parallelism=2, checkpoint_interval="500ms")
"""
BUSY = """import time
for _ in range(600):
    time.sleep(0.05)
    if job.status()["paused"]:
        break
print("seen", job.status()["paused"])
"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab of its own: (its URL, its root directory)."""
    home = tmp_path_factory.mktemp("jupyter")
    root = tmp_path_factory.mktemp("notebooks")
    with jupyter(home, root) as url:
        yield url, root


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def front(lab, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield Front(page, *lab)
    # Whatever a kernel leaves unanswered when it is shut down does not count. Nor does a subshell that JupyterLab asked
    # for when it made a comm: a restart cancels that request, and JupyterLab leaves the rejection unhandled.
    seen = [error for error in errors if "create_subshell_request" not in error]
    page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")
    page.close()
    assert seen == []


def test_the_sidebar_says_what_is_missing_and_then_shows_the_job_live(front):
    assert "Open a notebook" in front.text(".wb-Explanation")

    front.open("live.ipynb", START.format(name="live"), BUSY)
    assert front.appears(".wb-Explanation code").inner_text() == "%load_ext workbench"

    front.run_cell(0)
    front.appears(".wb-Job[data-job=live][data-state=RUNNING]")
    running = "() => document.querySelector('.wb-Job-facts div:nth-child(7) dd').textContent"
    before = front.page.evaluate(running)
    front.page.wait_for_function(f"before => ({running})() !== before", arg=before)

    # A cell occupies the main shell; the pause arrives on a subshell, and the cell itself sees it.
    front.run_cell(1, wait=False)
    front.appears(".jp-InputPrompt", "[*]")
    front.page.get_by_role("button", name="Pause live").click()
    front.appears(".wb-Badge", "PAUSED")
    front.appears(".jp-OutputArea-output", "seen True")

    front.execute("workbench:fail", job="live", task="no such task")
    assert front.appears(".wb-mod-refusal").inner_text().startswith("unknown task 'no such task'")
    front.page.get_by_role("button", name="Dismiss this message").click()

    front.page.get_by_role("button", name="Resume live").click()
    front.appears(".wb-Badge", "RUNNING")
    front.page.get_by_role("button", name="Stop live").click()
    front.appears(".wb-Badge", "CANCELED")
    assert front.page.get_by_role("button", name="Stop live").is_disabled()


def test_the_sidebar_follows_the_notebook_and_the_restart_of_its_kernel(front):
    front.open("one.ipynb", START.format(name="one"))
    front.run_cell(0)
    front.appears(".wb-Job[data-job=one]")

    front.open("two.ipynb", START.format(name="two"))
    front.appears(".wb-Explanation code", "%load_ext workbench")
    assert front.jobs() == []
    front.run_cell(0)
    front.appears(".wb-Job[data-job=two]")
    assert front.jobs() == ["two"]

    front.open("one.ipynb")
    front.appears(".wb-Job[data-job=one]")
    assert front.jobs() == ["one"]

    front.restart_kernel("one.ipynb")
    front.appears(".wb-Explanation code", "%load_ext workbench")
    front.run_cell(0)
    front.appears(".wb-Job[data-job=one]")


def test_a_docked_dashboard_survives_reload_and_restart(front):
    front.open("docked.ipynb", START.format(name="docked"))
    front.run_cell(0)
    front.page.get_by_role("button", name="Open the dashboard of docked").click()
    dashboard = ".wb-Dashboard .wb-Dashboard-content .bk-Column"
    front.appears(dashboard)
    notebook, docked = (front.page.locator(name).bounding_box() for name in (".jp-NotebookPanel", ".wb-Dashboard"))
    assert docked["x"] >= notebook["x"] + notebook["width"]

    first_view = front.page.locator(dashboard).first.element_handle()
    front.run_cell(0)  # refuses, since the job runs
    front.execute("workbench:stop", job="docked")
    front.appears(".wb-Badge", "CANCELED")
    assert first_view.is_visible()
    front.open("docked.ipynb")
    front.run_cell(0)
    front.appears(".wb-Badge", "RUNNING")
    first_view.wait_for_element_state("hidden")
    front.appears(dashboard)

    front.page.wait_for_timeout(1500)  # JupyterLab saves its layout a second after the last change
    front.page.reload()
    front.await_restored()
    front.appears(dashboard)
    front.appears(".wb-Job[data-job=docked]")

    front.restart_kernel("docked.ipynb")
    front.appears(".wb-Dashboard-notice", "The kernel was restarted")
    assert front.page.locator(dashboard).count() == 0
    front.open("docked.ipynb")
    front.run_cell(0)
    front.appears(dashboard)
    assert not front.page.locator(".wb-Dashboard-notice").is_visible()


def test_the_dashboard_of_a_job_that_is_not_there_is_a_sentence(front):
    front.open("gone.ipynb", "%load_ext workbench")
    front.run_cell(0)
    front.appears(".wb-Explanation", "No job in this kernel yet")
    front.execute("workbench:open-dashboard", job='o\'clock "x"')
    notice = front.appears(".wb-Dashboard-notice", "unknown job").inner_text()
    assert notice.startswith('There is no dashboard of o\'clock "x": unknown job')


def test_a_failure_is_announced_and_the_status_bar_tells_of_the_jobs(front):
    front.open("noticed.ipynb", START.format(name="noticed"))
    front.run_cell(0)
    status = front.appears(".wb-Status button", "1 job")
    assert status.get_attribute("aria-label").startswith("Streaming: 1 job · ")
    assert "noticed RUNNING" in status.get_attribute("aria-label")

    front.execute("workbench:fail", job="noticed", task="aggregate[1]")
    notice = front.appears(".jp-Notification-Toast-warning", "noticed started again from its latest checkpoint")
    assert "aggregate[1] was failed on purpose" in notice.inner_text()
    front.page.get_by_role("button", name="Open Dashboard").click()
    front.appears(".wb-Dashboard .wb-Dashboard-content .bk-Column")


def test_the_menu_has_every_view_and_a_savepoint_is_a_command(front):
    front.open("menu.ipynb", START.format(name="menu"))
    front.run_cell(0)
    front.appears(".wb-Job[data-job=menu]")
    front.page.get_by_role("menuitem", name="Streaming", exact=True).click()
    front.page.locator(".lm-Menu-itemLabel", has_text="Open View").hover()
    front.appears("#jp-mainmenu-workbench-views")
    views = front.page.locator("#jp-mainmenu-workbench-views .lm-Menu-itemLabel").all_inner_texts()
    assert ", ".join(views) == (
        "Graph, Buffers, Watermarks, Checkpoints, Latency and Throughput, State, Sink, Events, Controls, Stepper"
    )
    front.page.keyboard.press("Escape")
    front.page.keyboard.press("Escape")

    front.execute("workbench:savepoint", job="menu", name="no/slash")
    assert "savepoint 'no/slash' cannot be a file name" in front.appears(".wb-mod-refusal").inner_text()


def test_the_launcher_opens_the_tutorial_and_never_overwrites_it(front):
    front.execute("launcher:create", wait=False)
    front.page.locator(".jp-LauncherCard", has_text="Streaming Tutorial").first.click()
    front.page.wait_for_function("window.jupyterapp.shell.currentWidget?.context?.path === 'streaming-tutorial.ipynb'")
    written = front.root / "streaming-tutorial.ipynb"
    assert nbformat.read(written, 4).cells[0].source.startswith("# Streaming in five cells")

    written.write_text(written.read_text().replace("# Streaming in five cells", "# Mine"))
    front.execute("workbench:open-tutorial")
    assert "# Mine" in written.read_text()
