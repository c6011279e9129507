"""The metrics of each task in `Job.metrics`, and how such tables are displayed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html import unescape

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.pictures.status import Table
from workbench.jupyter.told import told_head

SECOND = 1_000_000


def cells(html: str) -> list[list[str]]:
    """The rows of an HTML table, the heading first."""
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [[unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def timed(step_s: int, rate: float = 1.0) -> wb.Stream:
    """A record a second of the clock, each so many seconds of event time after the one before."""
    rows = pa.table({"k": ["a"] * 5, "t": [i * step_s * SECOND for i in range(5)]})
    return wb.Stream.from_table(rows, event_time="t", rate=rate)


@pytest.fixture
def joined() -> Iterator[wb.types.Job]:
    """Two sources that are differently far in event time, and the join in which they meet."""
    pipeline = timed(10).join(timed(1), on="k", window=wb.tumbling("1h")).uid("join").sink_to(wb.DiscardSink())
    job = pipeline.run("inputs", driver="stepping", buffer_timeout="0ms", checkpoint_interval=None)
    yield job
    job.cancel()


def test_every_value_stands_under_its_name() -> None:
    table = Table([{"task": "a[0]", "read": 1, "sent": 2}, {"task": "b[0]", "queue": 3, "sent": 4}])
    assert cells(table._repr_html_()) == [
        ["task", "read", "sent", "queue"],
        ["a[0]", "1", "2", ""],
        ["b[0]", "", "4", "3"],
    ]


def test_the_tasks_of_a_job_stand_under_the_names_of_their_metrics(joined: wb.types.Job) -> None:
    joined.stepper.step(50)
    told = joined.metrics()
    head, *rows = cells(told._repr_html_())
    column = head.index("inPoolUsage")
    assert [row[0] for row in rows if row[column]] == [row["task"] for row in told if "inPoolUsage" in row]
    assert len({len(row) for row in (head, *rows)}) == 1


def test_a_table_without_rows_says_so(joined: wb.types.Job) -> None:
    for nothing in (joined.audit(), joined.late_records()):
        assert repr(nothing) == "no rows"
        assert nothing._repr_html_() == "<i>no rows</i>"


def test_each_input_tells_its_event_time(joined: wb.types.Job) -> None:
    def told(name: str) -> int | None:
        return next((row.get(name) for row in joined.metrics() if row["task"] == "join[0]"), None)

    def inputs() -> tuple[int | None, int | None]:
        return told("currentInput1Watermark"), told("currentInput2Watermark")

    assert joined.stepper.driver.run_until(lambda: inputs() == (20 * SECOND - 1, 2 * SECOND - 1))
    assert told("currentInputWatermark") == 2 * SECOND - 1


def test_one_input_is_told_once(joined: wb.types.Job) -> None:
    joined.stepper.step(50)
    assert [row["task"] for row in joined.metrics() if "currentInput1Watermark" in row] == ["join[0]"]


@pytest.mark.parametrize("years", [13, 0])
def test_the_lag_of_recorded_times_is_none_behind_the_clock(years: int) -> None:
    """Ten seconds of event time a second, an hour out of order."""
    pipeline = None
    for number, begin in enumerate((0, 600)):  # the second source is ten minutes ahead
        first_us = time.time_ns() // 1_000 - years * 366 * 86_400 * SECOND + begin * SECOND
        rows = pa.table({"t": [first_us + i * 10 * SECOND for i in range(9)]})
        stream = wb.Stream.from_table(rows, event_time="t", out_of_orderness="1h", rate=1).uid(f"s{number}")
        sunk = stream.rebalance().sink_to(wb.TableSink(f"n{number}"))
        pipeline = sunk if pipeline is None else pipeline + sunk
    assert pipeline is not None
    job = pipeline.run("recorded", driver="stepping", buffer_timeout="0ms", checkpoint_interval=None)
    with pytest.raises(wb.errors.JobError, match="still RUNNING"):
        job.wait("5s")
    lags = {row["task"]: row["watermarkLag"] for row in job.metrics()}
    told = {name: lag // SECOND for name, lag in lags.items() if isinstance(lag, int)}
    assert (told_head(job).lag_us or 0) // SECOND == 600  # whatever the clock says
    if years:  # behind the furthest source
        assert set(told.values()) == {0, 600}
    else:  # behind the clock, which began with the first record
        assert all(2_900 <= lag <= 3_700 for lag in told.values())
    job.cancel()
