"""The dashboard in a real JupyterLab, with a real job and no network: it moves, and it moves the job."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import nbformat
import pytest

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH to show it in")]

PATIENCE_S = 90
CHROMIUM_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]  # fmt: skip

START = """import os, numpy as np, pyarrow as pa, workbench as wb
from workbench.connectors.replay_log import write_log
rows = 400_000
landed = pa.array(np.arange(rows) * 300_000_000, pa.timestamp("us", "UTC"))
airports = pa.array(["JFK", "LGA", "EWR", "<b>ATL</b>"]).take(pa.array(np.arange(rows) * 7919 % 4))
delays = np.random.default_rng(1).normal(12, 30, rows)
log = pa.table({"landed": landed, "airport": airports, "delay": delays})
history = wb.History.open(write_log(log, "flights.log", event_time="landed", arrival_time="landed", channels=2).path)
flights = wb.Stream.replay(history, speed="604800x", out_of_orderness="6h").filter("delay IS NOT NULL")
figures = (flights.key_by("airport").window(wb.tumbling("6h"))
    .aggregate(flights=wb.count(), mean_delay=wb.mean("delay")))
pipeline = figures.rebalance().sink_to(wb.TableSink("delays"))
job = pipeline.run("delays", parallelism=2, checkpoint_interval="500ms", checkpoint_dir="checkpoints")"""
SHOW_AND_STAY_BUSY = """display(job.dashboard())
import time
seen = "never seen"
for _ in range(3000):
    time.sleep(0.02)
    if job.status()["buffer_timeout"] == "1s":
        seen = "seen while the cell ran"
        break
print(seen)"""
PRINTS = """import time
for number in range(400):
    print(number)
    time.sleep(0.005)
print("the end")"""
CELLS = [START, "job.dashboard()", SHOW_AND_STAY_BUSY, "job = wb.job('delays'); print(job.status())", PRINTS]
VIEWS = ("graph", "watermarks", "latency", "buffers", "checkpoints", "state", "sink", "events", "controls")
CELLS += [f"%stream show delays {view}" for view in VIEWS]

HEADS = """() => (window.Bokeh?.documents ?? []).flatMap(document => [...document._all_models.values()]
    .filter(model => model.type === "ColumnDataSource" && model.columns().includes("piece 0"))
    .map(model => model.get_column("piece 0")[0]))"""
ROOTS = '() => Bokeh.documents.flatMap(d => d.roots()).filter(r => r.css_classes?.includes("wb-root"))'


class Lab:
    """A JupyterLab with one notebook open in a browser."""

    def __init__(self, page, url):
        self.page = page
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(f"{url}/lab/tree/live.ipynb?token=test&reset")
        page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady")
        page.wait_for_function(
            "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
        )

    def run(self, cell, wait=True):
        """Run a cell; the text of its outputs."""
        self.page.evaluate(
            """async ([cell, wait]) => {
                const app = window.jupyterapp
                app.shell.currentWidget.content.activeCellIndex = cell
                const done = app.commands.execute("notebook:run-cell")
                if (wait) await done
            }""",
            [cell, wait],
        )

    def printed(self, cell):
        outputs = "window.jupyterapp.shell.currentWidget.content.widgets[cell].model.outputs"
        return self.page.evaluate(
            f"cell => {outputs}.toJSON().filter(o => o.output_type === 'stream').map(o => o.text).join('')", cell
        )

    def is_busy(self, cell):
        """Whether the cell is running: it has no number yet."""
        widgets = "window.jupyterapp.shell.currentWidget.content.widgets"
        return self.page.evaluate(f"cell => {widgets}[cell].model.executionCount === null", cell)

    def heads(self):
        return self.page.evaluate(HEADS)

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, what
            self.page.wait_for_timeout(50)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    home, root = tmp_path_factory.mktemp("jupyter"), tmp_path_factory.mktemp("notebooks")
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS],
                                 metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}}),
        root / "live.ipynb",
    )  # fmt: skip
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    kinds = ("JUPYTER_CONFIG", "JUPYTERLAB_SETTINGS", "JUPYTERLAB_WORKSPACES", "JUPYTER_RUNTIME")
    places = {f"{kind}_DIR": str(home / kind.lower()) for kind in kinds}
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--IdentityProvider.token=test", "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=None",
        f"--ServerApp.root_dir={root}",
    ]  # fmt: skip
    environment = os.environ | places | {"IPYTHONDIR": str(home / "ipython")}
    with (home / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE_S
        while True:
            try:
                urllib.request.urlopen(f"{url}/api", timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline, (home / "log").read_text()
                time.sleep(0.1)
        with playwright.sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
            page = browser.new_page(viewport={"width": 1500, "height": 1000})
            yield Lab(page, url)
            browser.close()
    finally:
        server.terminate()
        server.wait(timeout=30)


def test_two_displays_of_one_job_move_without_a_network_and_one_of_them_in_a_busy_cell(lab):
    lab.run(0)
    lab.run(1)
    lab.run(2, wait=False)
    lab.until(lambda: len(lab.heads()) == 2, "two displays")
    lab.until(lambda: all("RUNNING" in head for head in lab.heads()), "a running job in both")
    seen = [set(), set()]

    def moving():
        for heads, head in zip(seen, lab.heads(), strict=True):
            heads.add(head)
        return all(len(heads) >= 5 for heads in seen)

    lab.until(moving, "five pictures in both")
    assert lab.is_busy(2), "the cell was not busy any more"


def test_a_slider_acts_while_a_cell_is_busy(lab):
    handle = lab.page.locator(".noUi-handle").first
    handle.focus()
    handle.press("End")
    handle.press("ArrowLeft")
    lab.until(lambda: not lab.is_busy(2), "the end of the cell")
    lab.run(3)
    lab.until(lambda: "seen" in lab.printed(3), "the answer of the next cell")
    assert lab.printed(3) == "seen while the cell ran\n"


def test_the_other_display_follows_what_the_first_one_set(lab):
    positions = """() => Bokeh.documents.flatMap(d => [...d._all_models.values()])
        .filter(m => m.type === "Slider" && m.title === "Buffer timeout").map(m => m.value)"""
    lab.until(lambda: lab.page.evaluate(positions) == [10, 10], "both sliders at 1s")


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


def test_cells_answer_under_two_displays(lab):
    for _ in range(3):
        lab.run(3)


def test_the_stop_button_ends_the_job_and_the_last_frame_is_shown(lab):
    lab.page.locator("button:has-text('Stop job')").first.click()
    over = ("FINISHED", "CANCELED")
    lab.until(lambda: all(any(state in head for state in over) for head in lab.heads()), "the end in both displays")
    assert lab.page.locator("button:has-text('Stop job')").first.is_disabled()
