"""The view of micro-batches: the queue, and the duration of each batch relative to the interval."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.api.job.job import Job
from workbench.dashboard.views.batches.batches_part import html, summary
from workbench.telemetry.frames import Frame

ROWS = 60


def started(policy: Any) -> Job:
    stream = wb.Stream.from_table(pa.table({"n": list(range(ROWS))}), rate=1_000).rebalance().filter("n >= 0")
    pipeline = stream.sink_to(wb.TableSink("out"))
    return pipeline.run("batches-view", driver="stepping", buffer_timeout="0ms", fault_tolerance=policy)


def latest(job: Job) -> Frame:
    frame = job.recorder.latest()
    assert frame is not None
    return frame


def rows(text: str) -> list[list[str]]:
    found = re.findall(r"<tr>(<td>.*?)</tr>", text)
    return [re.findall(r"<td>(.*?)</td>", row) for row in found]


def until(job: Job, condition: Any) -> None:
    assert job.stepper.driver.run_until(condition)


def test_it_shows_the_queue_behind_a_slow_operator() -> None:
    job = started(wb.micro_batches("5ms"))
    queue = job.stepper.driver.master.services.parts
    job.faults.slow_down("filter", "40ms")
    until(job, lambda: queue.counts(None)["waiting"] == 3)
    until(job, lambda: latest(job).batches is not None and len(latest(job).batches.open) == len(queue.open))
    batches = latest(job).batches
    assert batches is not None
    states = [batch.state for batch in queue.open]
    assert summary(batches).startswith(
        f"committed up to txid {queue.committed_txid}; {states.count('running')} running"
    )
    shown = rows(html(latest(job)))
    assert [int(row[0]) for row in shown[: len(states)]] == [batch.txid for batch in reversed(queue.open)]
    slow = next(row for row in shown if row[2] == "running")
    assert "bad" in slow[5]  # it takes longer than its interval
    assert "<b>the queue grows</b>: processing takes " in html(latest(job))
    job.cancel()


def test_it_shows_which_batch_has_failed_and_is_processed_again() -> None:
    job = started(wb.micro_batches("10ms"))
    queue = job.stepper.driver.master.services.parts
    until(job, lambda: queue.counts(None)["running"] == 1 and queue.committed == 1)
    job.stepper.driver.master.crash("filter[0]")
    assert job.wait() == "FINISHED"
    assert re.search(r"<p>processing takes \d+ % of the interval</p>", html(latest(job)))
    shown = rows(html(latest(job)))
    assert [row[2] for row in shown if row[0] == "2"] == ["committed, again", "failed"]
    assert len({row[1] for row in shown if row[0] == "2"}) == 2  # with another checkpoint
    assert {row[3] for row in shown if row[0] == "2"} == {"10"}
    assert f"committed up to txid {queue.committed_txid}; 0 running, 0 waiting; a batch every 10ms" in html(latest(job))


def test_a_job_without_batches_says_how_to_get_them() -> None:
    job = started("snapshots")
    assert "fault_tolerance=wb.micro_batches()" in html(latest(job))
    job.cancel()
