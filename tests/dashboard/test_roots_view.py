"""The view of pending roots: the roots that sources wait for, and the tables of the ackers, by age."""

from __future__ import annotations

import re

import pyarrow as pa

import workbench as wb
from workbench.api.job.job import Job
from workbench.dashboard.views.graph_acks import ack_columns
from workbench.dashboard.views.roots import html
from workbench.telemetry.frames import Frame

ROWS = 40


def started(policy: str) -> Job:
    stream = wb.Stream.from_table(pa.table({"n": list(range(ROWS))}), rate=1_000).rebalance().filter("n >= 0")
    pipeline = stream.sink_to(wb.TableSink("out"))
    return pipeline.run("roots-view", driver="stepping", buffer_size=4, buffer_timeout="0ms", fault_tolerance=policy)


def latest(job: Job) -> Frame:
    frame = job.recorder.latest()
    assert frame is not None
    return frame


def cells(text: str, task: str) -> list[int]:
    """The figures in a task's row."""
    (row,) = re.findall(rf"<tr><td>{re.escape(task)}</td>(.*?)</tr>", text)
    return [int(re.sub(r"<.*>|,", "", cell)) for cell in re.findall(r"<td>(.*?)</td>", row)]


def test_it_shows_how_old_pending_roots_are_and_which_were_replayed() -> None:
    job = started("acks:message_timeout=10ms")
    job.faults.slow_down("filter", "8ms")
    driver = job.stepper.driver
    (counts,) = driver.master.services.roots.values()
    assert driver.run_until(lambda: counts.replayed > 2 and len(driver.execution.sources[0].roots) > 2)
    frame = latest(job)
    assert frame.acks is not None
    (source,) = frame.acks.sources
    youngest, middle, oldest, pending, acked, failed, replayed, late = cells(html(frame), "table[0]")
    assert youngest + middle + oldest == pending == source.pending > 0
    assert (acked, failed, replayed, late) == (source.acked, source.failed, source.replayed, source.late)
    assert failed >= replayed > 0
    known = cells(html(frame), "acker[0]")
    assert sum(known[:3]) == known[3] == sum(frame.acks.ackers[0].ages)
    assert known[4:] == [frame.acks.ackers[0].completed, frame.acks.ackers[0].forgotten]
    job.cancel()


def test_a_job_without_acknowledgements_says_how_to_get_them() -> None:
    job = started("snapshots")
    assert ack_columns(latest(job))["name"] == []
    assert "fault_tolerance=wb.acks()" in html(latest(job))
    job.cancel()


def test_the_acker_is_a_vertex_whose_edges_are_apart_from_those_of_records() -> None:
    job = started("acks")
    frame = latest(job)
    assert [vertex.name for vertex in frame.vertices] == ["table", "filter", "acker"]
    assert [(edge.source, edge.target) for edge in frame.edges] == [("v0", "v1")]
    assert frame.acks is not None
    assert frame.acks.vertex == "v2"
    assert sorted(ack_columns(frame)["name"]) == [
        "acker → table: complete roots", "filter → acker: acks", "table → acker: acks"
    ]  # fmt: skip
    job.cancel()
    assert job.status()["records_out"] == 0
