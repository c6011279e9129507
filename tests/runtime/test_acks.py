"""Record acknowledgements: which records are replayed, when, and the effect on results."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unwatched import run_until, wait

import workbench as wb
from workbench.api.job.job import Job
from workbench.connectors.tables.table_source import TableSource
from workbench.elements import Records
from workbench.operators.acking.acker import FROM_OPERATOR, Acker
from workbench.operators.acking.rotating import RotatingBuckets
from workbench.operators.contract.base import OperatorContext
from workbench.runtime.acking.pending_roots import RootCounts
from workbench.runtime.tasks.acked_operator import AckerTask

ROWS = 60
KEYS = 3


def numbers(rate: int | None = 1_000) -> wb.Stream:
    table = pa.table({"n": list(range(ROWS)), "key": [n % KEYS for n in range(ROWS)]})
    return wb.Stream.from_table(table, rate=rate)


def counts() -> wb.types.Pipeline:
    return numbers().key_by("key").aggregate(n=wb.count()).sink_to(wb.TableSink("out", upsert_key="key"))


def rows() -> wb.types.Pipeline:
    """One exchange, and a table of all records."""
    return numbers().rebalance().filter("n >= 0").with_parallelism(1).sink_to(wb.TableSink("out"))


def stepped(pipeline: wb.types.Pipeline, name: str, **settings: Any) -> Job:
    settings = {"buffer_size": 4, "buffer_timeout": "0ms", "checkpoint_interval": "5ms", **settings}
    return pipeline.run(name, driver="stepping", **settings)


def run_until_read(job: Job, records: int) -> None:
    source = job.stepper.driver.execution.tasks[0]
    run_until(job, lambda: source.root.counters.numRecordsIn >= records)


def roots(job: Job) -> RootCounts:
    """The counts of the only source subtask."""
    (found,) = job._run.master.services.roots.values()
    return found


def ackers(job: Job) -> list[Acker]:
    execution = job.stepper.driver.execution
    return [task.acker for task in (execution.tasks if execution else ()) if isinstance(task, AckerTask)]


def total(job: Job) -> int:
    return sum(row["n"] for row in job.table().to_pylist())


# the acker -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_root_is_complete_exactly_when_its_tree_is_processed_in_any_order(seed: int) -> None:
    chance = Random(seed)
    acker = Acker()
    acker.open(OperatorContext())
    messages: list[tuple[int, int, int]] = []
    for root in range(1, 6):
        value, open_ids = 0, []
        for _ in range(chance.randint(1, 4)):
            open_ids.append(chance.getrandbits(62) + 1)
            value ^= open_ids[-1]
        messages.append((root, value, 0))
        while open_ids:
            mine = open_ids.pop(chance.randrange(len(open_ids)))
            children = [chance.getrandbits(62) + 1 for _ in range(chance.choice((0, 0, 1, 2)))]
            open_ids += children
            messages.append((root, mine ^ int(np.bitwise_xor.reduce([0, *children])), FROM_OPERATOR))
    chance.shuffle(messages)
    left = {root: sum(each[0] == root for each in messages) for root in range(1, 6)}
    while messages:
        some = [messages.pop() for _ in range(min(len(messages), chance.randint(1, 4)))]
        for root, _, _ in some:
            left[root] -= 1
        done = acker.fold(*(np.array(column, np.int64) for column in zip(*some, strict=True)))
        assert sorted(root for root, _ in done) == sorted({root for root, _, _ in some if not left[root]})
    assert (len(acker.pending), acker.completed) == (0, 5)


def test_entries_stay_for_one_to_one_and_a_half_time_outs() -> None:
    for put_us in range(0, 100, 7):
        buckets = RotatingBuckets[str](100)
        buckets.put(1, "first", 0)
        buckets.expelled(put_us)
        buckets.put(2, "later", put_us)
        assert 2 not in buckets.expelled(put_us + 99)
        buckets.expelled(put_us + 151)
        assert len(buckets) == 0


# results ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "granularity"),
    [
        (1, "batch"),
        (3, "record"),
        pytest.param(1, "record", marks=pytest.mark.slow),
        pytest.param(3, "batch", marks=pytest.mark.slow),
    ],
)
def test_every_root_of_every_kind_of_pipeline_is_acknowledged_once(granularity: str, number: int) -> None:
    """Fan-out, a filter that drops, a broadcast, a union, a join, windows, side outputs and several sinks."""
    timed = wb.Stream.from_table(
        pa.table({"t": pa.array(range(ROWS), pa.timestamp("us")), "key": [n % KEYS for n in range(ROWS)]}),
        event_time="t",
    )
    few = timed.filter("key = 1")
    copies = few.broadcast().map_batches(lambda batch: batch).with_parallelism(3)
    windows = timed.key_by("key").window(wb.tumbling("10us")).aggregate(n=wb.count())
    both = timed.union(few).key_by("key").aggregate(n=wb.count())
    pipeline = (
        copies.sink_to(wb.TableSink("copies"))
        + windows.sink_to(wb.TableSink("windows"))
        + both.sink_to(wb.TableSink("both", upsert_key="key"))
    )
    policy = wb.acks(number, granularity)  # type: ignore[arg-type]
    job = stepped(pipeline, f"all-{granularity}-{number}", fault_tolerance=policy, parallelism=2)
    tables = ackers(job)
    assert len(tables) == number
    assert wait(job) == "FINISHED"
    assert job.table("copies").num_rows == 3 * ROWS // KEYS
    assert sum(job.table("windows").column("n").to_pylist()) == ROWS
    assert sum(job.table("both").column("n").to_pylist()) == ROWS + ROWS // KEYS
    for found in job.stepper.driver.master.services.roots.values():
        assert found.emitted == found.acked > 0
        assert (found.failed, found.replayed, found.late, found.pending) == (0, 0, 0, 0)
    assert all(acker.completed > 0 for acker in tables)
    assert all(len(acker.pending) == 0 for acker in tables)


def test_the_roots_are_records_or_batches() -> None:
    """The source reads 16 blocks of 25 records."""
    table = pa.table({"n": list(range(400))})
    for granularity, emitted in (("record", 400), ("batch", 16)):
        stream = wb.Stream.from_source(TableSource(table, splits=1)).rebalance().filter("n >= 0")
        policy = f"acks:granularity={granularity}"
        job = stream.sink_to(wb.TableSink("out")).run(f"roots-{granularity}", buffer_size=40, fault_tolerance=policy)
        assert job.wait("60s") == "FINISHED"
        assert roots(job).emitted == emitted
        assert sorted(job.table().column("n").to_pylist()) == list(range(400))


def test_a_failure_goes_back_to_the_oldest_record_that_was_not_acknowledged() -> None:
    job = stepped(counts(), "failing", fault_tolerance=wb.acks())
    driver = job.stepper.driver
    job.faults.slow_down("aggregate", "2ms")  # records come every millisecond
    assert driver.run_until(lambda: driver.master.coordinator.completed >= 2)
    job.faults.slow_down("aggregate", "0ms")
    driver.master.crash("aggregate[0]")
    assert wait(job) == "FINISHED"
    twice = {each["task"]: each["records"] for each in job.audit()}
    assert twice["table[0]"] >= 2
    assert roots(job).abandoned >= 2
    assert total(job) == ROWS + twice["table[0]"]


def test_what_was_lost_on_its_way_is_replayed_after_the_time_out() -> None:
    """Nothing fails: one buffer vanishes from a channel, as a message of a network might."""
    lost_rows = {}
    for policy in ("snapshots", "acks:message_timeout=20ms"):
        job = stepped(rows(), "lossy", fault_tolerance=policy)
        driver = job.stepper.driver
        channel = driver.execution.channels[0]
        assert driver.run_until(lambda channel=channel: channel.queued_buffers > 0)
        lost = channel.poll()
        assert isinstance(lost, Records)
        assert wait(job) == "FINISHED"
        found = job.table().column("n").to_pylist()
        lost_rows[policy] = set(range(ROWS)) - set(found)
        if policy != "snapshots":
            assert (roots(job).failed, roots(job).replayed, roots(job).late) == (1, 1, 0)
            assert len(found) == ROWS
    assert [len(lost) for lost in lost_rows.values()] == [1, 0]


def test_dead_letters_of_a_source_are_replayed_as_its_records_are(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("".join(f"bad {n}\n" for n in range(ROWS)))
    stream = wb.Stream.from_files(tmp_path / "in.jsonl", {"n": pa.int64()}, rate=1_000, on_error="dead_letter")
    bad = stream.dead_letters().rebalance().filter("line >= 0").with_parallelism(1).sink_to(wb.TableSink("out"))
    job = stepped(bad, "lossy-letters", fault_tolerance="acks:message_timeout=20ms")
    driver = job.stepper.driver

    def lost() -> bool:
        return any(isinstance(channel.poll(), Records) for channel in driver.execution.channels[:1])

    assert driver.run_until(lost)
    assert wait(job) == "FINISHED"
    assert sorted(job.table().column("line").to_pylist()) == list(range(1, ROWS + 1))
    assert roots(job).replayed == 1


@pytest.mark.parametrize("granularity", ["record", "batch"])
def test_a_slow_receiver_is_taken_for_a_failure_and_results_are_too_high(granularity: str) -> None:
    """D6: backpressure looks like failure. Snapshots of the same pipeline just become slower."""
    job = stepped(rows(), "slow", fault_tolerance=f"acks:granularity={granularity},message_timeout=10ms")
    job.faults.slow_down("filter", "8ms")
    driver = job.stepper.driver
    assert driver.run_until(lambda: roots(job).replayed >= 5)
    job.faults.slow_down("filter", "0ms")
    job.tune(message_timeout="30s")
    assert wait(job) == "FINISHED"
    found = roots(job)
    passed = job.table().column("n").to_pylist()
    assert set(passed) == set(range(ROWS))
    assert len(passed) == ROWS + found.replayed_records  # all of them were needless: what they repeat was not lost
    assert job.status()["records_in"] == job.status()["records_out"] == ROWS + found.replayed_records
    assert job.status()["roots"] == {
        "pending": 0, "acked": found.acked, "failed": found.failed, "replayed": found.replayed
    }  # fmt: skip
    assert sum(row["records"] for row in job.audit() if row["checkpoint"] is None) == found.replayed_records
    calm = stepped(rows(), "slow-snapshots")
    calm.faults.slow_down("filter", "8ms")
    assert calm.wait() == "FINISHED"
    assert calm.table().num_rows == ROWS


@pytest.mark.parametrize("granularity", ["record", "batch"])
def test_no_more_roots_are_pending_than_allowed(granularity: str) -> None:
    policy = wb.acks(1, granularity, max_spout_pending=3)  # type: ignore[arg-type]
    job = stepped(rows(), "bounded", fault_tolerance=policy)
    job.faults.slow_down("filter", "5ms")
    driver = job.stepper.driver
    most = 0

    def look() -> bool:
        nonlocal most
        most = max(most, roots(job).pending)
        return driver.master.over

    assert driver.run_until(look)
    assert most == 3
    assert roots(job).emitted == ROWS


def test_without_ackers_nothing_is_replayed_and_records_are_lost() -> None:
    job = stepped(counts(), "unacked", fault_tolerance="acks:ackers=0")
    run_until_read(job, 40)
    job.stepper.driver.master.crash("aggregate[0]")
    assert wait(job) == "FINISHED"
    assert total(job) == ROWS - 40
    assert ackers(job) == []
    assert "roots" not in job.status()


def test_a_savepoint_is_exact_and_restores_into_snapshots(tmp_path: Path) -> None:
    job = stepped(counts(), "saved", fault_tolerance=wb.acks(), checkpoint_dir=tmp_path)
    run_until_read(job, 30)
    job.savepoint("half")
    job.cancel()
    again = stepped(counts(), "saved-again", checkpoint_dir=tmp_path, restore="half")
    assert again.wait() == "FINISHED"
    assert total(again) == ROWS


def test_rescaling_counts_nothing_twice() -> None:
    job = stepped(counts(), "rescaled", fault_tolerance=wb.acks(2))
    run_until_read(job, 20)
    job.rescale(2)
    assert len(ackers(job)) == 2
    assert wait(job) == "FINISHED"
    assert total(job) == ROWS


def test_ids_travel_beside_the_columns_and_count_as_bytes() -> None:
    sent = {}
    for policy in ("snapshots", "acks"):
        job = stepped(rows(), "weighed", fault_tolerance=policy)
        (channel,) = [each for each in job.stepper.driver.execution.channels if each.target == "filter[0]"]
        assert wait(job) == "FINISHED"
        sent[policy] = channel.bytes_sent
    assert sent["acks"] - sent["snapshots"] == ROWS * (8 + 8)


# choosing and tuning ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fault_tolerance": "acks:ackers=-1"}, "ackers is -1: it must be a whole number, at least 0"),
        ({"fault_tolerance": "acks:ackers=some"}, "ackers is 'some': write a whole number, at least 0"),
        ({"fault_tolerance": "acks:granularity=row"}, "unknown granularity 'row'"),
        ({"fault_tolerance": "acks:message_timeout=0s"}, "message_timeout is 0"),
        ({"fault_tolerance": "acks:max_spout_pending=0"}, "max_spout_pending is 0"),
        ({"fault_tolerance": "acks", "guarantee": "exactly-once"}, "fault_tolerance 'acks': choose"),
        ({"fault_tolerance": "acks:ackers=0", "guarantee": "at-least-once"}, "fault_tolerance 'acks': choose"),
        ({"fault_tolerance": "acks", "buffer_timeout": None}, "buffer_timeout is disabled, and acks replays"),
        ({"fault_tolerance": "acks:message_timeout=1s", "buffer_timeout": "2s"}, "buffer_timeout is 2s"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(wb.errors.SettingError, match=message):
        stepped(counts(), "refused-acks", **settings)
    assert "refused-acks" not in wb.jobs()


def test_a_source_that_cannot_go_back_is_refused_and_named() -> None:
    stream = wb.Stream.from_socket("localhost", 9)
    with pytest.raises(wb.errors.PlanError, match=r"source 'socket' cannot be read again .*acks:ackers=0"):
        stepped(stream.sink_to(wb.DiscardSink()), "refused-acks", fault_tolerance=wb.acks())
    assert "refused-acks" not in wb.jobs()


def test_two_knobs_can_be_tuned_and_the_others_say_whose_they_are() -> None:
    job = stepped(rows(), "tuned", fault_tolerance="acks:ackers=2")
    job.tune(message_timeout="5s", max_spout_pending=7)
    assert job.status()["fault_tolerance"] == "acks:ackers=2,message_timeout=5s,max_spout_pending=7"
    source = job.stepper.driver.execution.sources[0]
    run_until_read(job, 10)
    assert source.acking.max_pending == 7
    for name, value, message in (
        ("ackers", 3, "ackers of fault_tolerance 'acks' applies to a whole run"),
        (
            "offset_interval",
            "1s",
            "offset_interval is an argument of fault_tolerance 'changelog', and this job runs wi",
        ),
        ("message_timeout", "0s", "message_timeout is 0"),
    ):
        with pytest.raises(wb.errors.SettingError, match=message):
            job.tune(**{name: value})
    job.cancel()
    plain = stepped(rows(), "plain")
    with pytest.raises(wb.errors.SettingError, match="'acks', and this job runs with 'snapshots'"):
        plain.tune(**{"message_timeout": "5s"})
    plain.cancel()
