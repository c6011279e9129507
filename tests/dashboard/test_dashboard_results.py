"""The displayed results are those of the table, also when the job has ended, is paused, or changes its rows."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from test_dashboard_live import Comms, Page
from waiting import until

import workbench as wb
from workbench.dashboard.page import transport
from workbench.dashboard.shown.pump import Pump
from workbench.dashboard.shown.show import Dashboard


@pytest.fixture(autouse=True)
def _comms(monkeypatch):
    monkeypatch.setattr(transport, "Comms", Comms)


@pytest.fixture
def board(tmp_path):
    """Shows a view of a job; the page, the view and the pump that feeds it."""
    opened = []

    def show(job, part="sink"):
        pump = Pump(look_s=0.01)
        board = Dashboard(job, part, pump)
        board._repr_mimebundle_()
        (display,) = pump.displays
        page = Page(display)
        opened.append(board)
        return page, display.view, pump

    yield show
    for one in opened:
        one.close()


def text(page):
    with page.line.lock:
        page.receive()
        return page.texts()


def numbers(count, rate=None):
    return wb.Stream.from_table(pa.table({"n": list(range(count))}), rate=rate)


def test_the_last_rows_of_a_job_are_shown_when_it_has_ended(board):
    job = numbers(600, rate=400).sink_to(wb.TableSink("numbers")).run("ends", checkpoint_interval="50ms")
    page, _, pump = board(job)
    assert job.wait("60s") == "FINISHED"
    until(lambda: "<b>600</b> rows" in text(page))
    assert re.search(r"<tr><td[^>]*>599</td></tr><tr><td[^>]*>598</td></tr>", text(page))
    until(lambda: not pump.is_running)


def test_a_table_that_is_chosen_after_the_end_is_read(board):
    stream = numbers(20)
    both = stream.sink_to(wb.TableSink("all")) + stream.filter("n < 7").sink_to(wb.TableSink("few"))
    job = both.run("two-tables")
    assert job.wait("60s") == "FINISHED"
    page, view, pump = board(job)
    until(lambda: "<b>20</b> rows" in text(page))
    until(lambda: not pump.is_running)
    page.change(view.parts["sink"].table, "value", "few")
    until(lambda: "<b>7</b> rows" in text(page))
    until(lambda: not pump.is_running)


def test_a_table_without_rows_tells_what_they_wait_for(board):
    times = pa.array([at * 1_000_000 for at in range(5_000)], pa.timestamp("us"))
    clicks = wb.Stream.from_table(pa.table({"ts": times}), event_time="ts", rate=50)
    query = "SELECT COUNT(*) AS n FROM TUMBLE(clicks, ts, INTERVAL '30' DAY) GROUP BY window_start, window_end"
    job = wb.sql(query, clicks=clicks).run("waits", parallelism=1, checkpoint_interval="100ms")
    try:
        page, _, _ = board(job)
        told = r"committed\. The watermark is at 1970-01-01 00:\d\d:\d\d, held by split 0 of table"
        until(lambda: re.search(told, text(page)))
    finally:
        job.cancel()
        job.wait("60s")


def test_results_that_come_into_sight_after_the_end_are_read(board):
    job = numbers(20, rate=200).sink_to(wb.TableSink("numbers")).run("below-the-fold")
    page, view, pump = board(job, None)
    page.change(view.pulse.seen, "data", {"part": ["graph"]})
    assert job.wait("60s") == "FINISHED"
    until(lambda: not pump.is_running)
    page.change(view.pulse.seen, "data", {"part": ["graph", "sink"]})
    until(lambda: "<b>20</b> rows" in text(page))


@pytest.mark.slow
def test_rows_that_take_the_place_of_others_are_shown(board):
    pairs = wb.Stream.from_table(pa.table({"k": [n % 2 for n in range(60_000)], "n": range(60_000)}), rate=100)
    table = wb.TableSink("latest", upsert_key=["k"])
    job = pairs.partition_by("k").sink_to(table).run("upserts", checkpoint_interval="50ms", parallelism=1)
    try:
        page, _, _ = board(job)
        seen = set()

        def changes():
            found = re.search(r"<tr><td[^>]*>[01]</td><td[^>]*>(\d+)</td></tr>", text(page))
            seen.update(found.groups() if found else ())
            return len(seen) > 2

        until(changes)
    finally:
        job.cancel()
        job.wait("60s")


def test_a_job_that_stands_still_shows_the_rows_of_its_last_step(board):
    job = numbers(12).sink_to(wb.TableSink("numbers")).run(
        "stands", driver="stepping", buffer_size=1, checkpoint_interval=None
    )  # fmt: skip
    try:
        page, _, _ = board(job)
        for _ in range(2):
            job.checkpoint()
            assert job.stepper.until_checkpoint()
            job.stepper.step(3)
        rows = job.table("numbers").num_rows
        assert rows > 1
        until(lambda: f"<b>{rows}</b> rows" in text(page))
    finally:
        job.cancel()
        job.wait("60s")
