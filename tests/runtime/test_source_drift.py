"""Sources whose records meet stay together in event time, and do not wait for a source that waits itself."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job

SECOND = 1_000_000
BIDS = 3_200
STEP_US = 40_000  # so they take 128 s


def bids_and_auctions(**how: Any) -> tuple[wb.Stream, wb.Stream]:
    opened = [n * SECOND for n in range(BIDS * STEP_US // SECOND)]
    auctions = pa.table(
        {
            "id": list(range(len(opened))),
            "opened": pa.array(opened, pa.timestamp("us")),
            "expires": pa.array([at + (7 * n % 20) * SECOND for n, at in enumerate(opened)], pa.timestamp("us")),
        }
    )
    bids = pa.table(
        {
            "auction": [max(0, n * STEP_US // SECOND - n % 10) for n in range(BIDS)],
            "bid": pa.array([n * STEP_US for n in range(BIDS)], pa.timestamp("us")),
        }
    )
    return (
        wb.Stream.from_table(auctions, event_time="opened", **how),
        wb.Stream.from_table(bids, event_time="bid", **how),
    )


def closed(parallelism: int, **how: Any) -> Job:
    """The number of bids of each auction when it expires; one subtask of the bids gets no turn for a long time."""
    auctions, bids = bids_and_auctions(**how)
    pairs = auctions.join(bids, on={"id": "auction"}, between=("0s", "20s")).filter("bid <= expires")
    won = pairs.assign_timestamps("expires", out_of_orderness="25s").key_by("id").window(wb.tumbling("1us"))
    pipeline = won.aggregate(n=wb.count()).sink_to(wb.TableSink("won"))
    job = pipeline.run("closed", parallelism=parallelism, driver="stepping", buffer_timeout="0ms", buffer_size=1_000)
    names = [task.name for task in job.stepper.driver.execution.tasks]
    starved = next(name for name in names if name == "table-2[0]")
    driver = job.stepper.driver
    with driver.unwatched():  # frames take most of a step's time
        for _ in range(150 if parallelism > 1 else 0):
            driver.clock.advance_to(driver.clock.now_us() + 200_000)  # so that event time is told
            for name in names:
                if name != starved:
                    driver.step_task(name)
        assert job.wait() == "FINISHED"
    return job


def rows(job: Job) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in job.table().to_pylist())


def late(job: Job) -> int:
    return sum(int(row["numLateRecordsDropped"] or 0) for row in job.metrics())


@pytest.fixture(scope="module")
def expected() -> list[tuple[int, int]]:
    return rows(closed(1))


@pytest.mark.parametrize("parallelism", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_a_join_gives_the_same_rows_at_each_parallelism(parallelism: int, expected: list[tuple[int, int]]) -> None:
    job = closed(parallelism)
    assert late(job) == 0
    assert rows(job) == expected


@pytest.mark.parametrize("align", [None, pytest.param(False, marks=pytest.mark.slow)])
def test_somebody_may_say_that_sources_wait_for_nobody(align: object) -> None:
    assert late(closed(2, align=align)) > 200


def test_a_source_that_tells_no_event_time_or_waits_itself_holds_nobody_up() -> None:
    times = pa.array([n * SECOND for n in range(40)], pa.timestamp("us"))
    table = pa.table({"t": times, "k": [0] * 40})

    class Silent(wb.watermarks.WatermarkGenerator):
        """Says nothing before the end."""

    fast = wb.Stream.from_table(table, event_time="t")
    slow = wb.Stream.from_table(table, event_time="t", rate=40)
    silent = wb.Stream.from_table(table, event_time="t", watermarks=Silent)
    counted = fast.union(slow, silent).key_by("k").window(wb.tumbling("10s")).aggregate(n=wb.count())
    job = counted.sink_to(wb.TableSink("n")).run("held", driver="stepping", buffer_size=1)
    read = [task for task in job.stepper.driver.execution.tasks if task.name.startswith("table")]
    assert job.stepper.driver.run_until(lambda: read[0].drained)
    assert not read[1].drained
    assert job.wait() == "FINISHED"
    assert sum(row["n"] for row in job.table().to_pylist()) == 120


@pytest.mark.parametrize("time", ["event", "none"])
def test_only_sources_that_meet_before_an_operator_of_event_time_are_aligned(time: str) -> None:
    _, bids = bids_and_auctions()
    keyed = bids.key_by("auction")
    counted = (keyed.window(wb.tumbling("1s")) if time == "event" else keyed).aggregate(n=wb.count())
    job = counted.sink_to(wb.TableSink("n")).run("who", driver="stepping", parallelism=2)
    tasks = job.stepper.driver.execution.tasks
    found = [task.event_time.alignment is not None for task in tasks if task.name.startswith("table")]
    assert found == [time == "event"] * 2
    job.cancel()
