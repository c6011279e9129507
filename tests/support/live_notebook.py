"""A notebook with a running job in a browser: what its pages show, and a hand that runs its cells."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import nbformat
from browsing import PATIENCE_MS, TOKEN, chromium, jupyter

PATIENCE_S = PATIENCE_MS / 1_000

START = """%load_ext workbench
import os, numpy as np, pyarrow as pa, workbench as wb
from workbench.connectors.replay.log import write_log
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
"""The first cell: a job that runs for as long as a test may take."""
SHOW_AND_STAY_BUSY = """display(job.view("controls"))
import time
seen = "never seen"
for _ in range(15_000):
    time.sleep(0.02)
    if job.status()["buffer_timeout"] == "1s":
        seen = "seen while the cell ran"
        break
print(seen)"""
"""The third cell, where one is to be busy until somebody has moved the slider of the buffer timeout."""
ASKS = 4
"""The place of the cell that prints a line of what the job says of itself."""

MODELS = "(window.Bokeh?.documents ?? []).flatMap(document => [...document._all_models.values()])"
SOURCES = f'{MODELS}.filter(model => model.type === "ColumnDataSource")'
HEADS = f"""() => {SOURCES}
    .filter(source => source.columns().includes("piece 0")).map(source => source.get_column("piece 0")[0])"""
BEATS = f"""() => {SOURCES}
    .filter(source => source.columns().join() === "beat,live").map(source => source.get_column("beat")[0])"""
TEXTS = f"""() => {SOURCES}
    .filter(source => source.columns().some(name => name.startsWith("piece ")))
    .map(source => source.columns().map(name => source.get_column(name)[0]).join(" "))"""
POSITIONS = f'() => {MODELS}.filter(model => model.name === "buffer_timeout").map(model => model.value)'
COLLAPSED = """() => {
    const plots = view => view?.model?.type === "Figure" ? [view] : (view?.children_views?.() ?? []).flatMap(plots)
    return [...Bokeh.index].flatMap(plots).filter(plot => plot.el.offsetParent !== null).map(plot => !plot.is_displayed)
}"""
"""Of each plot that the page lays out, whether BokehJS takes it for hidden, so that it has no size and stays empty."""
ROOTS = '() => Bokeh.documents.flatMap(d => d.roots()).filter(r => r.css_classes?.includes("wb-root"))'


class Lab:
    """A JupyterLab with one notebook open in a browser.

    Attributes:
        requests: the addresses that its page has asked for.
        problems: the errors of its page.
    """

    address = "lab/tree/live.ipynb"

    def __init__(self, page, url):
        self.page, self.requests, self.problems = page, [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(error.stack or str(error)))
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{url}/{self.address}?token={TOKEN}&reset")
        self.await_notebook()
        page.wait_for_function(
            "window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
        )

    def await_notebook(self):
        self.page.wait_for_function("window.jupyterapp?.shell.currentWidget?.context?.isReady")

    def run(self, cell, wait=True):
        """Run a cell, to its end unless nobody is to wait for that."""
        self.page.evaluate(
            """async ([cell, wait]) => {
                const app = window.jupyterapp
                app.shell.currentWidget.content.activeCellIndex = cell
                const done = app.commands.execute("notebook:run-cell")
                if (wait) await done
            }""",
            [cell, wait],
        )

    def rewrite(self, cell, source):
        self.page.evaluate(
            "([cell, source]) => window.jupyterapp.shell.currentWidget.content.widgets[cell].model.sharedModel"
            ".setSource(source)",
            [cell, source],
        )

    def clear(self, cell):
        """Take a cell's output away, and the displays in it."""
        self.page.evaluate(
            "cell => window.jupyterapp.shell.currentWidget.content.widgets[cell].model.outputs.clear()", cell
        )

    def ask(self):
        """What the job says of itself: a line, by the cell that does nothing else."""
        self.run(ASKS)
        self.until(lambda: self.printed(ASKS).endswith("\n"), "a line")
        return self.printed(ASKS)

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

    def texts(self):
        return "\n".join(self.page.evaluate(TEXTS))

    def await_pictures(self, displays):
        """See that there are so many displays, that each shows a running job, and that each gets further pictures."""
        self.until(lambda: len(self.heads()) == displays, f"{displays} displays")
        self.until(lambda: all("RUNNING" in head for head in self.heads()), "a running job in each")
        before = self.page.evaluate(BEATS)
        self.until(
            lambda: all(now >= then + 5 for now, then in zip(self.page.evaluate(BEATS), before, strict=True)),
            "five more pictures in each",
        )

    def await_end(self):
        """See that every display shows that the job is over."""
        over = ("FINISHED", "CANCELED")
        self.until(lambda: all(any(state in head for state in over) for head in self.heads()), "the end")

    def slide_while_busy(self, handle):
        """Move a slider to its last value but one; the cell that waits for it sees that and ends."""
        handle.focus()
        handle.press("End")
        handle.press("ArrowLeft")
        self.until(lambda: not self.is_busy(2), "the end of the cell")
        self.until(lambda: self.printed(2), "what it printed last")
        assert self.printed(2) == "seen while the cell ran\n"

    def until(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, what
            self.page.wait_for_timeout(50)


@contextmanager
def live_notebook(
    folders,
    cells: Sequence[str],
    kind: type[Lab] = Lab,
    settings: Mapping[str, object] | None = None,
    width: int = 1500,
) -> Iterator[Lab]:
    """A notebook of these cells, open in a browser.

    Args:
        folders: pytest's factory of temporary ones.
        kind: the application that shows it.
        settings: of the server, by the path of their file among its configuration.
        width: of the page, in pixels.
    """
    home, root = folders.mktemp("jupyter"), folders.mktemp("notebooks")
    for path, values in (settings or {}).items():
        file = home / "jupyter_config" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, root / "live.ipynb")
    with jupyter(home, root) as url, chromium() as browser:
        yield kind(browser.new_page(viewport={"width": width, "height": 1000}), url)
