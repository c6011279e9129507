"""The dashboard in the cells of a real Notebook 7, with a real job and no network."""

from __future__ import annotations

import pytest
from browsing import CHROMIUM, show_all
from live_notebook import COLLAPSED, POSITIONS, START, Lab, live_notebook

pytest.importorskip("playwright.sync_api")
pytest.importorskip("notebook")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

LATE_MS = 4_000
"""Longer than Panel waits for a kernel."""

STATUS = 'print(job.status()["buffer_timeout"], job.state)'
CELLS = [START, "job.dashboard()", "", "", STATUS]
EXPOSED = {"jupyter_notebook_config.json": {"JupyterNotebookApp": {"expose_app_in_browser": True}}}
NOT_OURS = "reading 'schema'"
"""JupyterLab's menu of the right mouse button hears now and then of an extension before its settings are there."""

PAINTED = """() => [...document.querySelectorAll(".jp-OutputArea-output")].map(output => {
    const plots = element => [...element.querySelectorAll("*")]
        .flatMap(one => one.shadowRoot ? [...one.shadowRoot.querySelectorAll("canvas"), ...plots(one.shadowRoot)] : [])
    const isPainted = canvas => canvas.width > 0 && canvas.height > 0
        && canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some(value => value !== 0)
    return plots(output).filter(isPainted).length
})"""
"""Of each output, how many plots have something drawn on them."""


class Notebook(Lab):
    """A Notebook 7 in a browser, which has JupyterLab's commands, and its own page for each notebook."""

    address = "notebooks/live.ipynb"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    with live_notebook(tmp_path_factory, CELLS, Notebook, EXPOSED, width=1300) as notebook:
        yield notebook


def test_the_dashboard_of_a_running_job_is_painted_and_moves(notebook):
    notebook.run(0)
    notebook.run(1)
    notebook.await_pictures(1)
    notebook.until(lambda: not any(notebook.page.evaluate(COLLAPSED)), "plots that know that they are on the page")
    notebook.until(lambda: max(notebook.page.evaluate(PAINTED)) >= 3, "plots with something on them")


def test_the_slider_tunes_the_job(notebook):
    assert notebook.ask() == "100ms RUNNING\n"
    handle = notebook.page.locator(".noUi-handle[aria-label='Buffer timeout']").first
    handle.focus()
    handle.press("End")
    handle.press("ArrowLeft")
    notebook.until(lambda: "in force: <b>1s</b>" in notebook.texts(), "the timeout in force")
    assert notebook.ask() == "1s RUNNING\n"


def test_a_view_stands_alone_beside_the_dashboard(notebook):
    notebook.rewrite(2, 'job.view("graph")')
    notebook.run(2)
    notebook.await_pictures(2)


def test_a_page_that_is_loaded_again_shows_the_job_as_it_is_by_then(notebook):
    """The server is slow to name the notebook's kernel: the page shows the outputs before it can talk to one."""
    page = notebook.page
    page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")

    def late(route):
        page.wait_for_timeout(LATE_MS)
        route.continue_()

    page.route("**/api/sessions?*", late)
    page.reload()
    notebook.await_notebook()
    notebook.await_pictures(2)
    page.unroute("**/api/sessions?*", late)
    assert "in force: <b>1s</b>" in notebook.texts()
    assert set(page.evaluate(POSITIONS)) == {10}


def test_the_menu_of_the_workbench_is_there(notebook):
    notebook.page.locator(".lm-MenuBar-item", has_text="Streaming").click()
    items = notebook.page.locator(".lm-Menu-itemLabel").all_inner_texts()
    assert {"Show Streaming Jobs", "Open the Dashboard of a Job…", "Open the Streaming Tutorial"} <= set(items)
    notebook.page.keyboard.press("Escape")


def test_the_stop_button_ends_the_job_and_both_displays_say_so(notebook):
    show_all(notebook.page)
    notebook.page.locator("button:visible", has_text="Stop job").first.click()
    notebook.await_end()
    assert notebook.ask().split()[1] in ("FINISHED", "CANCELED")
    assert [problem for problem in notebook.problems if NOT_OURS not in problem] == []
