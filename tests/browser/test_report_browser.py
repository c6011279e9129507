"""A report in a real browser, without a kernel or a network: its slider moves through the run in both directions."""

from __future__ import annotations

import pyarrow as pa
import pytest
from browsing import CHROMIUM, chromium, opened

import workbench as wb
from workbench.dashboard.shown.report import chosen

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

MOVE = """place => {
    const models = [...Bokeh.documents[0]._all_models.values()]
    models.find(model => model.type === "Slider" && model.title === "Moment of the run").value = place
}"""
SHOWS = """state =>
    [...Bokeh.documents[0]._all_models.values()]
        .filter(model => model.type === "ColumnDataSource" && model.columns().includes("piece 0"))
        .some(model => model.get_column("piece 0")[0].includes(`${state}</span>`))"""


def test_the_slider_of_a_report_goes_both_ways(tmp_path):
    table = pa.table({"k": ["a", "b"] * 20, "n": range(40)})
    sums = wb.Stream.from_table(table, rate=20.0).with_parallelism(1).key_by("k").aggregate(total=wb.sum("n"))
    job = sums.sink_to(wb.TableSink("sums")).run("paged", driver="stepping", parallelism=2, buffer_size=1)
    job.stepper.step(60)
    job.fail("aggregate[0]")
    assert job.wait() == "FINISHED"
    moments = chosen(job.recorder.frames())
    with chromium() as browser:
        page = opened(browser, job.report(tmp_path / "run.html").as_uri())
        page.wait_for_function(SHOWS, arg="FINISHED")
        for place in (2, len(moments) - 1, 5):
            page.evaluate(MOVE, place)
            page.wait_for_function(SHOWS, arg=moments[place].state)
        assert page.problems == []
