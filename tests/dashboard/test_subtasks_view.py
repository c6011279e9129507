"""Vertices and subtasks as tables: every figure of Flink's job page, under its name."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pyarrow as pa
import pytest
from test_dashboard_live import Comms, Job, Page, display_of, later
from test_dashboard_picture import FRAME, HOUR, SIX

import workbench as wb
from workbench.dashboard.page import transport
from workbench.dashboard.views import graph
from workbench.dashboard.views.subtasks import EVERY, ORDERS, duration_us, status, subtasks_html, vertices_html
from workbench.errors import JobError
from workbench.telemetry.frames import TaskFrame

NOW = FRAME.time_us


def task(name, subtask, state="RUNNING", **more):
    metrics = {
        "numBytesIn": 1_500 * subtask, "numRecordsIn": 100, "numBytesOut": 7, "numRecordsOut": 50 - subtask,
        "backPressuredTimeMsPerSecond": 600.0 * subtask, "idleTimeMsPerSecond": 250.0, "busyTimeMsPerSecond": 150.0,
        "currentInputWatermark": SIX + subtask * HOUR,
    }  # fmt: skip
    return TaskFrame(f"{name}[{subtask}]", "v2", subtask, f"tm-0/slot-{subtask}", state, metrics, **more)


TASKS = (
    task("aggregate", 0, attempt=2, started_us=NOW - 65_000_000),
    task("aggregate", 1, "FINISHED", started_us=NOW - 60_000_000, ended_us=NOW - 30_000_000),
)
TOTALS = {
    **FRAME.vertices[1].metrics, "numBytesIn": 1_500, "numRecordsIn": 200, "numBytesOut": 14, "numRecordsOut": 99,
    "maxBackPressuredTimeMsPerSecond": 600.0, "maxBusyTimeMsPerSecond": 150.0, "dataSkew": 12.5,
    "currentInputWatermark": SIX,
}  # fmt: skip
SHOWN = replace(FRAME, vertices=(replace(FRAME.vertices[1], metrics=TOTALS),), tasks=TASKS)


def cells(html):
    """The table as a list of dictionaries, by the heads."""
    rows = [
        [unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr.*?</tr>", html)
    ]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def test_a_vertex_has_the_columns_of_flink():
    assert cells(vertices_html(SHOWN)) == [
        {
            "Name": "aggregate", "Status": "RUNNING", "Bytes Received": "1.5 kB", "Records Received": "200",
            "Bytes Sent": "14 B", "Records Sent": "99", "Parallelism": "2", "Start Time (UTC)": "11-14 22:12:15",
            "Duration": "1 min 5 s", "Tasks": "1 RUNNING, 1 FINISHED", "Backpressured (max)": "HIGH 60 %",
            "Busy (max)": "15 %", "Data Skew": "12 %", "Low Watermark (UTC)": "2013-07-01 06:00:00",
        }
    ]  # fmt: skip


def test_a_subtask_has_the_columns_of_flink():
    first, second = cells(subtasks_html(SHOWN))
    assert first == {
        "SubTask": "aggregate[0]", "Status": "RUNNING", "Bytes Received": "0 B", "Records Received": "100",
        "Bytes Sent": "7 B", "Records Sent": "50", "Attempt": "3", "Slot": "tm-0/slot-0",
        "Start Time (UTC)": "11-14 22:12:15", "Duration": "1 min 5 s",
        "Backpressured / Idle / Busy": "0 % / 25 % / 15 %", "Backpressure": "OK",
        "Low Watermark (UTC)": "2013-07-01 06:00:00",
    }  # fmt: skip
    assert (second["Status"], second["Duration"], second["Backpressure"]) == ("FINISHED", "30 s", "HIGH")
    assert second["Low Watermark (UTC)"] == "2013-07-01 07:00:00"


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([], "CREATED"),
        (["FINISHED", "FINISHED"], "FINISHED"),
        (["FINISHED", "RUNNING"], "RUNNING"),
        (["CANCELED", "FINISHED"], "CANCELED"),
        (["CANCELED", "FAILED", "RUNNING"], "FAILED"),
    ],
)
def test_the_worst_subtask_gives_a_vertex_its_status(states, expected):
    assert status(states) == expected


def test_a_vertex_lasts_from_its_first_start_to_its_last_end():
    over = [replace(one, ended_us=NOW - back) for one, back in zip(TASKS, (20_000_000, 40_000_000), strict=True)]
    assert duration_us(over, NOW) == 45_000_000
    assert duration_us(TASKS, NOW) == 65_000_000
    assert duration_us([], NOW) is None


def test_the_lists_narrow_and_order_the_subtasks(monkeypatch):
    monkeypatch.setattr(transport, "Comms", Comms)
    job = Job(SHOWN)
    display = display_of(job, SHOWN, part="subtasks")
    page, part = Page(display), display.view.parts["subtasks"]
    assert part.vertex.options == [EVERY, "aggregate"]
    assert names(part) == ["aggregate[0]", "aggregate[1]"]
    page.change(part.order, "value", "by Bytes Received")
    assert names(part) == ["aggregate[1]", "aggregate[0]"]
    page.change(part.order, "value", "by Records Sent")
    assert names(part) == ["aggregate[0]", "aggregate[1]"]
    more = replace(SHOWN, vertices=FRAME.vertices, tasks=(*FRAME.tasks[:2], *TASKS))
    job.ring.append(later(more))
    display.show(0.0)
    page.change(part.vertex, "value", "source")
    assert names(part) == ["source[0]", "source[1]"]
    assert set(ORDERS) < set(part.order.options)


def test_what_is_not_known_is_a_dash():
    old = cells(subtasks_html(FRAME))  # as of a recording that was made before there were these figures
    assert {row["Bytes Received"] for row in old} == {"–"}
    assert {row["Start Time (UTC)"] for row in old} == {"–"}
    none = replace(FRAME, tasks=())
    assert {row["Status"] for row in cells(vertices_html(none))} == {"CREATED"}
    assert "No tasks are running" in subtasks_html(none)


def test_the_hover_of_a_box_has_what_flink_writes_into_it():
    lines = graph.details(SHOWN.vertices[0]).splitlines()
    assert lines[1:5] == [
        "Backpressured (max): 60 %", "Busy (max): 15 %", "Data Skew: 12 %", "Low Watermark: 2013-07-01 06:00:00"
    ]  # fmt: skip
    assert "numBytesIn: 1,500" in lines


def test_a_task_that_failed_and_those_that_ended_with_it():
    numbers = wb.Stream.from_table(pa.table({"k": ["a", "b"] * 20}), rate=10.0).with_parallelism(1).key_by("k")
    pipeline = numbers.aggregate(n=wb.count()).sink_to(wb.DiscardSink())
    job = pipeline.run("ended", driver="stepping", parallelism=2, buffer_size=1, restart="none")
    job.stepper.step(20)
    running = job.recorder.latest()
    assert {one.state for one in running.tasks} == {"RUNNING"}
    assert {one.ended_us for one in running.tasks} == {None}
    job.fail("aggregate[1]")
    with pytest.raises(JobError, match="was failed on purpose"):
        job.wait()
    states = {one.name: one.state for one in job.recorder.latest().tasks}
    assert states.pop("aggregate[1]") == "FAILED"
    assert set(states.values()) == {"CANCELED"}
    assert all(one.ended_us >= one.started_us for one in job.recorder.latest().tasks)


def names(part):
    return [row["SubTask"] for row in cells(part._subtasks.html)]
