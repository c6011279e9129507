"""Whoever is the cause of backpressure is named, with those that wait for it and nobody else."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest

import workbench as wb
from workbench.telemetry.checkpoint_frames import CheckpointFrame, SubtaskCheckpointFrame
from workbench.telemetry.diagnosis import explain, idle_split, level, skewed, uneven
from workbench.telemetry.frames import EdgeFrame, Frame, TaskFrame, VertexFrame
from workbench.telemetry.sampler import measured


def vertex(name: str, busy: int, pressed: int) -> VertexFrame:
    """One that is busy and back-pressured for these shares of its time, in percent."""
    metrics: dict[str, float | int | bool | None] = {
        "busyTimeMsPerSecond": 10 * busy,
        "backPressuredTimeMsPerSecond": 10 * pressed,
    }
    return VertexFrame(name, name, (), 1, metrics, 0.0, 0.0)


def edges(*pairs: str) -> list[EdgeFrame]:
    """From ``"a-b"`` an edge from a to b."""
    ends = [pair.split("-") for pair in pairs]
    return [EdgeFrame(f"{a}->{b}", a, b, "hash", 0, 1, 0.0, 0.0) for a, b in ends]


def test_the_first_busy_one_behind_those_that_are_held_back() -> None:
    chain = [vertex("read", 5, 95), vertex("map", 20, 80), vertex("sum", 97, 3), vertex("write", 10, 0)]
    assert explain(chain, edges("read-map", "map-sum", "sum-write")) == (
        "sum is the cause (97 % busy): read, map are back-pressured, waiting for it."
    )


def test_none() -> None:
    assert explain([vertex("read", 90, 10), vertex("sum", 99, 0)], edges("read-sum")) == "No backpressure."


def test_of_two_pipelines_each_has_its_own_cause() -> None:
    islands = [vertex("a", 1, 99), vertex("b", 2, 60), vertex("slow", 100, 0), vertex("slower", 90, 0)]
    assert explain(islands, edges("a-slow", "b-slower")) == (
        "slow is the cause (100 % busy): a is back-pressured, waiting for it. "
        "slower is the cause (90 % busy): b is back-pressured, waiting for it."
    )


def test_whoever_is_not_held_back_by_the_cause_is_not_blamed_on_it() -> None:
    two_ways = [vertex("read", 1, 99), vertex("left", 3, 90), vertex("right", 30, 0), vertex("join", 95, 0)]
    assert explain(two_ways, edges("read-left", "read-right", "left-join", "right-join")) == (
        "join is the cause (95 % busy): read, left are back-pressured, waiting for it."
    )


def test_the_busiest_of_several_that_could_be() -> None:
    fork = [vertex("read", 1, 99), vertex("quick", 10, 0), vertex("slow", 80, 0)]
    assert explain(fork, edges("read-quick", "read-slow")).startswith("slow is the cause (80 % busy): read is")


def test_an_idle_follower_is_not_named_as_the_cause() -> None:
    chain = [vertex("read", 5, 20), vertex("aggregate", 9, 0)]
    told = explain(chain, edges("read-aggregate"))
    assert told == "read is back-pressured; aggregate, which receives the records, is only 9 % busy."


def test_one_busy_subtask_among_idle_ones_is_the_cause() -> None:
    skewed = vertex("aggregate", 30, 0)
    skewed.metrics["maxBusyTimeMsPerSecond"] = 990
    assert explain([vertex("read", 5, 90), skewed], edges("read-aggregate")).startswith(
        "aggregate is the cause (one subtask is 99 % busy): read is"
    )


def test_the_share_that_is_told_is_that_of_the_box_in_the_graph() -> None:
    sums = vertex("sum", 83, 0)
    sums.metrics["maxBusyTimeMsPerSecond"] = 1_000
    assert explain([vertex("read", 5, 90), sums], edges("read-sum")).startswith("sum is the cause (83 % busy): read")
    told = measured(None, {"numRecordsInPerSecond": 0.0}, [vertex("read", 90, 0), sums], [], None)
    assert (told.busiest, told.busy) == ("sum", 0.83)


@pytest.mark.parametrize(
    ("mode", "waited_ms", "barrier_gap_ms"),
    [("exactly-once", 30, 500), ("at-least-once", 0, 500), ("unaligned", 0, None)],
)
def test_a_mode_is_measured_by_the_checkpoints_since_it_was_chosen(
    mode: str, waited_ms: float, barrier_gap_ms: float | None
) -> None:
    """By all of them, as one alone may have been lucky, and none that began before."""

    def checkpoint(at_ms: int, took_ms: float, waited_ms: float) -> CheckpointFrame:
        part = SubtaskCheckpointFrame("sum[0]", True, alignment_ms=waited_ms)
        return CheckpointFrame(
            at_ms, "COMPLETED", "periodic", 1_000 * at_ms, 1, 1, took_ms, 0, mode=mode, subtasks=(part,)
        )

    taken = [checkpoint(*each) for each in ((500, 2_000, 90), (1_000, 40, 30), (1_500, 50, 20), (2_000, 9, 40))]
    told = measured(None, {"numRecordsInPerSecond": 0.0}, [], taken, None, 900_000)
    assert (told.checkpoint_ms, told.alignment_ms) == (40, waited_ms)
    assert (told.checkpoint_gap_ms, told.barrier_gap_ms) == (500, barrier_gap_ms)


def test_one_that_leads_nowhere() -> None:
    assert explain([vertex("read", 0, 20)], []) == "read is back-pressured."


@pytest.mark.parametrize(("share", "word"), [(0, "OK"), (100, "OK"), (101, "LOW"), (500, "LOW"), (501, "HIGH")])
def test_flinks_levels(share: float, word: str) -> None:
    assert level(share) == word


def source(name: str, splits: dict[str, int | None], quiet_ms: dict[str, int]) -> TaskFrame:
    return TaskFrame(name, "read", 0, "tm-0/slot-0", "RUNNING", {}, splits=splits, quiet_ms=quiet_ms)


def test_an_idle_split_is_named_as_the_cause_of_a_waiting_watermark() -> None:
    tasks = [source("read[0]", {"0": 90}, {"0": 20}), source("read[1]", {"1": 10}, {"1": 8_200})]
    assert idle_split(tasks) == (
        "The watermark does not advance because split 1 of read[1] has been idle for 8 s; with idle_after, the others "
        "would go on without it."
    )


@pytest.mark.parametrize(
    ("marks", "quiet_ms"),
    [
        ((90, 10), (20, 900)),  # it reads
        ((10, 90), (20, 8_200)),  # another one holds the watermark
        ((90, None), (20, 8_200)),  # it is marked idle
        ((90, 10), (7_000, 8_200)),  # nobody has anything to read
    ],
)
def test_otherwise_no_split_is_to_blame(marks: tuple[int, int | None], quiet_ms: tuple[int, int]) -> None:
    names = ("0", "1")
    assert (
        idle_split([source("read[0]", dict(zip(names, marks, strict=True)), dict(zip(names, quiet_ms, strict=True)))])
        == ""
    )


def summing(*rates: float) -> list[TaskFrame]:
    return [
        TaskFrame(f"sum[{place}]", "sum", place, "tm-0/slot-0", "RUNNING", {"numRecordsInPerSecond": rate})
        for place, rate in enumerate(rates)
    ]


def test_a_subtask_that_gets_most_of_the_records_is_named_with_its_share() -> None:
    chain = [vertex("read", 5, 0), vertex("sum", 50, 0)]
    [found] = uneven(chain, edges("read-sum"), summing(1_020, 4_980))
    told = "sum[1] receives 83 % of the records of sum, 4,980 of 6,000 a second"
    assert skewed(found) == f"{told}, because their keys are assigned to it."
    assert skewed(found, "97 % of them have origin = ATL") == f"{told}: 97 % of them have origin = ATL."
    assert uneven(chain, edges("read-sum"), summing(2_600, 3_400)) == []
    assert uneven(chain, edges("read-sum"), summing(6_000)) == []
    assert uneven(chain, edges("read-sum"), summing(0, 4)) == []
    ended = [replace(task, state=state) for task, state in zip(summing(0, 4_980), ("FINISHED", "RUNNING"), strict=True)]
    assert uneven(chain, edges("read-sum"), ended) == []
    forward = [EdgeFrame("read->sum", "read", "sum", "rebalance", 0, 1, 0.0, 0.0)]
    assert uneven(chain, forward, summing(1_020, 4_980)) == []


def test_checkpoints_that_fail_are_told_with_how_far_a_failure_would_go_back() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(1_000)}), rate=100).uid("read").rebalance()
    sums = numbers.map_batches(lambda batch: batch, {"n": pa.int64()}).uid("sum")
    settings = {"driver": "stepping", "checkpoint_interval": "1s", "checkpoint_timeout": "1s"}
    job = sums.sink_to(wb.DiscardSink()).run("failing", **settings)  # type: ignore[arg-type]
    driver = job.stepper.driver

    def told() -> str:
        frame = job.recorder.latest()
        return "" if frame is None else " ".join(frame.findings)

    assert driver.run_until(lambda: job.status()["checkpoints"] == 2)
    assert told() == ""
    job.faults.stall("sum")
    assert driver.run_until(lambda: told().startswith("The last checkpoint failed: timed out. A failure now takes the"))
    assert driver.run_until(lambda: told().startswith("3 checkpoints in a row failed, the last one: timed out. "))
    assert re.search(r"A failure now takes the job back to checkpoint 2, [4-7] s ago\.", told())
    job.faults.stall("sum", stalled=False)
    assert driver.run_until(lambda: told() == "")
    job.cancel()


@pytest.mark.parametrize("idle_after", [None, "1s"])
def test_a_job_whose_source_has_nothing_to_read_says_so_unless_it_is_marked_idle(idle_after: str | None) -> None:
    table = pa.table({"t": [second * 1_000_000 for second in range(1_000)]})
    busy = wb.Stream.from_table(table, event_time="t", rate=50).uid("busy")
    quiet = wb.Stream.from_table(table.slice(0, 3), event_time="t", rate=0.1, idle_after=idle_after).uid("quiet")
    job = busy.union(quiet).sink_to(wb.TableSink("out")).run("idle", driver="stepping")

    def frame() -> Frame:
        found = job.recorder.latest()
        assert found is not None
        return found

    assert job.stepper.driver.run_until(lambda: frame().time_us - frame().started_us > 5_000_000 or frame().findings)
    told = " ".join(frame().findings)
    assert ("of quiet[0] have been idle for 2 s; with idle_after," in told) is (idle_after is None)
    job.cancel()
