"""The dashboard as a widget, in a page whose outputs reach the kernel by widgets alone: the nearest to VS Code.

It is a JupyterLab without the extensions of the workbench and of Panel and without subshells, and the Jupyter server
gives it no BokehJS.
"""

from __future__ import annotations

import pytest
from browsing import CHROMIUM, show_all
from live_notebook import BEATS, POSITIONS, ROOTS, SHOW_AND_STAY_BUSY, START, live_notebook

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

NOTE = "This dashboard is a widget: after a restart of the kernel, run its cell again."
OTHERS = {"workbench-jupyterlab": True, "@pyviz/jupyterlab_pyviz": True}
NO_SUBSHELLS = {"@jupyterlab/apputils-extension:kernels-settings": {"commsOverSubshells": "disabled"}}
"""VS Code knows of none: what its pages say reaches the kernel as a cell does."""
SETTINGS = {
    "labconfig/page_config.json": {"disabledExtensions": OTHERS},
    "labconfig/default_setting_overrides.json": NO_SUBSHELLS,
}

STATUS = """from workbench.dashboard.shown.show import PUMP
job = wb.job("delays")
listening = sum(display.line.is_open for display in PUMP.displays)
print(job.status()["buffer_timeout"], job.state, job.status()["buffer_size"], listening)"""
CELLS = [START, "%env WORKBENCH_CARRIER=widget\n%stream dashboard delays", SHOW_AND_STAY_BUSY, "", STATUS]
OUTPUTS = """() => window.jupyterapp.shell.currentWidget.content.widgets
    .flatMap(cell => cell.model.outputs?.toJSON() ?? []).flatMap(output => Object.keys(output.data ?? {}))"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with live_notebook(tmp_path_factory, CELLS, settings=SETTINGS) as lab:
        yield lab


def test_it_moves_without_a_comm_of_its_own_and_without_files_from_the_server(lab):
    lab.run(0)
    assert lab.page.evaluate("() => [typeof window.Bokeh, typeof window.PyViz]") == ["undefined", "undefined"]
    lab.run(1)
    lab.await_pictures(1)
    assert lab.page.get_by_text(NOTE).is_visible()
    assert "application/vnd.jupyter.widget-view+json" in lab.page.evaluate(OUTPUTS)
    assert "text/html" not in lab.page.evaluate(OUTPUTS)
    assert [url for url in lab.requests if "bokeh" in url or "panel-preview" in url] == []


def test_a_second_display_lives_beside_the_first_and_its_slider_acts_while_a_cell_is_busy(lab):
    lab.run(2, wait=False)
    lab.await_pictures(2)
    assert lab.is_busy(2), "the cell was not busy any more"
    handle = lab.page.locator(".jp-Cell:nth-child(3) .noUi-handle, [data-windowed-list-index='2'] .noUi-handle").first
    lab.slide_while_busy(handle)
    lab.until(lambda: lab.page.evaluate(POSITIONS) == [10, 10], "both sliders at 1s")


def test_what_somebody_does_on_one_display_is_seen_on_the_other_and_in_the_job(lab):
    lab.page.get_by_label("Buffer size (records): any value").first.fill("1234")
    lab.page.get_by_label("Buffer size (records): any value").first.press("Enter")
    lab.until(lambda: "in force: <b>1234</b>" in lab.texts(), "the size in force")
    assert "1s RUNNING 1234" in lab.ask()


def test_it_follows_the_theme_of_vs_code(lab):
    dark = f"() => ({ROOTS})().map(r => r.css_classes.includes('wb-dark'))"
    set_kind = "kind => { document.body.dataset.vscodeThemeKind = kind }"
    for kind, expected in (
        ("vscode-dark", True),
        ("vscode-high-contrast-light", False),
        ("vscode-high-contrast", True),
    ):
        lab.page.evaluate(set_kind, kind)
        lab.until(lambda expected=expected: set(lab.page.evaluate(dark)) == {expected}, kind)
    lab.page.evaluate("() => { delete document.body.dataset.vscodeThemeKind }")
    lab.until(lambda: set(lab.page.evaluate(dark)) == {False}, "JupyterLab's theme again")


def test_a_view_stands_alone_beside_the_dashboard(lab):
    lab.clear(2)
    lab.rewrite(3, 'wb.job("delays").view("graph")')
    lab.run(3)
    lab.await_pictures(2)


def test_an_output_that_was_taken_off_the_page_costs_nothing_and_lives_again_when_it_is_put_back(lab):
    """VS Code does both, and tells no widget of it."""
    place = lab.page.locator(".jp-OutputArea-output", has_text=NOTE).last
    handle = place.evaluate_handle("node => { window.home = node.parentNode; node.remove(); return node }")
    lab.until(lambda: len(lab.page.evaluate(BEATS)) == 1, "one display")
    lab.await_pictures(1)
    assert lab.ask() == "1s RUNNING 1234 1\n"
    handle.evaluate("node => window.home.append(node)")
    lab.await_pictures(2)
    assert lab.ask() == "1s RUNNING 1234 2\n"


def test_a_page_that_is_loaded_again_shows_it_as_it_is_by_then(lab):
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.save()")
    lab.page.reload()
    lab.await_notebook()
    lab.await_pictures(2)
    lab.until(lambda: "in force: <b>1234</b>" in lab.texts(), "the size in force, in a card that comes later")


def test_a_notebook_that_is_opened_again_shows_it_live(lab):
    lab.page.evaluate(
        """async () => {
            const notebook = window.jupyterapp.shell.currentWidget
            await notebook.context.save()
            notebook.close()
        }"""
    )
    lab.until(lambda: lab.page.evaluate(BEATS) == [], "a page without the notebook")
    lab.page.evaluate(
        """async () => {
            const notebook = await window.jupyterapp.commands.execute("docmanager:open", {path: "live.ipynb"})
            await notebook.context.ready
        }"""
    )
    lab.await_pictures(2)


def test_what_is_left_of_a_kernel_says_so_and_the_next_kernels_dashboard_lives(lab):
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    quiet = f"() => ({ROOTS})().map(r => r.css_classes.includes('wb-quiet'))"
    lab.until(lambda: lab.page.evaluate(quiet) == [True, True], "no news from the kernel in both")
    lab.clear(3)
    lab.rewrite(0, START.replace('"checkpoints"', '"afresh"').replace("flights.log", "afresh.log"))
    lab.run(0)
    lab.run(1)
    lab.await_pictures(1)


def test_the_stop_button_ends_the_job_and_all_displays_say_so(lab):
    show_all(lab.page)
    lab.page.locator("button:visible", has_text="Stop job").first.click()
    lab.await_end()
    assert lab.ask().split()[1] in ("FINISHED", "CANCELED")
    assert lab.problems == []
