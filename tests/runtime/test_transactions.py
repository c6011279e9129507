"""Transactions: each record, or a few, is one atomic write, and only the failed task restarts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unwatched import run_until, wait

import workbench as wb
from workbench.api.job.job import Job
from workbench.elements import Records
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.transactions.bloom import BloomFilter
from workbench.runtime.transactions.delivery import Delivery
from workbench.runtime.transactions.memory_store import MemoryStore
from workbench.runtime.transactions.record_ids import RecordIds
from workbench.runtime.transactions.store import FencedWriteError, Origin, Production, Write, ends
from workbench.runtime.transactions.transaction import Phase

ROWS = 24
KEYS = 3
RESTART = "fixed-delay:attempts=9,delay=1ms"


def counts() -> wb.types.Pipeline:
    table = pa.table({"n": list(range(ROWS)), "key": [n % KEYS for n in range(ROWS)]})
    stream = wb.Stream.from_table(table, rate=1_000)
    counted = stream.key_by("key").aggregate(n=wb.count())
    return counted.filter("n > 0").rebalance().sink_to(wb.TableSink("out"))


def stepped(pipeline: wb.types.Pipeline, name: str, policy: Any = None, **settings: Any) -> Job:
    settings = {
        "buffer_size": 4,
        "buffer_timeout": "0ms",
        "checkpoint_interval": "10ms",
        "restart": RESTART,
        **settings,
    }
    return pipeline.run(name, driver="stepping", fault_tolerance=policy or wb.transactions(), **settings)


def execution(job: Job) -> Any:
    return job.stepper.driver.execution


def run_until_read(job: Job, records: int) -> None:
    sources = execution(job).sources
    read = lambda: sum(source.root.counters.numRecordsIn for source in sources)  # noqa: E731
    run_until(job, lambda: read() >= records)


def check(job: Job) -> None:
    """Every record is counted once: each key has each count from 1 on once."""
    assert wait(job) == "FINISHED"
    rows = Counter((row["key"], row["n"]) for row in job.table().to_pylist())
    assert rows == Counter((key, n) for key in range(KEYS) for n in range(1, ROWS // KEYS + 1))


# recovery --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("coalesce", [1, 7])
def test_only_the_failed_task_restarts(parallelism: int, coalesce: int) -> None:
    job = stepped(counts(), "alone", wb.transactions(coalesce=coalesce), parallelism=parallelism)
    run_until_read(job, 8)
    before = {task.name: task for task in execution(job).tasks}
    job.stepper.driver.master.crash("aggregate[0]")
    run_until(job, lambda: job.stepper.driver.master.restarts == 1)
    run_until(job, lambda: execution(job) is not None and len(execution(job).tasks) == len(before))
    replaced = [task.name for task in execution(job).tasks if before[task.name] is not task]
    assert replaced == ["aggregate[0]"]
    assert job.stepper.driver.master.restores == 0  # no checkpoint is read
    check(job)


@pytest.mark.parametrize(
    "victim",
    [
        *("out[0]", "table", "all"),
        *(pytest.param(victim, marks=pytest.mark.slow) for victim in ("table[0]", "aggregate[1]")),
    ],
)
def test_any_task_may_fail_at_any_time(victim: str) -> None:
    for records in (3, 14):
        job = stepped(counts(), "any", wb.transactions(coalesce=5), parallelism=2)
        run_until_read(job, records)
        names = [task.name for task in execution(job).tasks if victim == "all" or task.name.startswith(victim)]
        assert names
        job.stepper.driver.master.crash(*names)
        check(job)


def test_a_sender_that_restarts_sends_again_and_the_receiver_drops_what_it_knows() -> None:
    job = stepped(counts(), "again", parallelism=1)
    run_until_read(job, 14)
    (delivery,) = next(each for each in execution(job).tasks if each.name == "table[0]").transaction.outbound
    run_until(job, lambda: len(delivery.unacked) > 0 and delivery.queued_unacked == 0)
    job.stepper.driver.master.crash("table[0]")
    check(job)
    found = job.status()["transactions"]
    assert found["resent"] > 0
    assert 0 < found["duplicates"] <= found["resent"]
    assert found["fenced"] == 0


def test_threads_keep_it_exact() -> None:
    table = pa.table({"n": list(range(3_000)), "key": [n % KEYS for n in range(3_000)]})
    failed: list[int] = []

    def once(batch: pa.RecordBatch) -> pa.RecordBatch:
        if len(failed) < 3 and batch.column("n")[0].as_py() >= 700 * (len(failed) + 1):
            failed.append(1)
            raise RuntimeError("on purpose")
        return batch

    stream = wb.Stream.from_table(table).rebalance().map_batches(once).key_by("key").aggregate(n=wb.count())
    job = stream.sink_to(wb.TableSink("out")).run(
        "threads",
        parallelism=2,
        fault_tolerance="transactions:coalesce=50",
        checkpoint_interval="20ms",
        restart="fixed-delay:attempts=10,delay=0ms",
    )
    assert job.wait("60s") == "FINISHED"
    assert len(failed) == 3
    rows = Counter((row["key"], row["n"]) for row in job.table().to_pylist())
    assert rows == Counter((key, n) for key in range(KEYS) for n in range(1, 1_001))


def test_a_source_that_restarts_alone_takes_its_place_among_those_that_wait_for_each_other() -> None:
    table = pa.table({"t": [1_000 * n for n in range(400)], "key": [n % KEYS for n in range(400)]})
    stream = wb.Stream.from_table(table, event_time="t").key_by("key").window(wb.tumbling("400ms"))
    pipeline = stream.aggregate(n=wb.count()).sink_to(wb.TableSink("out"))
    job = stepped(pipeline, "aligned", wb.transactions(coalesce=2), parallelism=2)
    run_until_read(job, 20)
    master = job.stepper.driver.master
    master.crash("table[0]")
    run_until(job, lambda: master.state == "FINISHED", 20_000)
    assert sum(job.table()["n"].to_pylist()) == 400


def test_a_checkpoint_takes_no_row_that_the_store_does_not_hold() -> None:
    table = pa.table({"n": list(range(60))})
    pipeline = wb.Stream.from_table(table).sink_to(wb.TableSink("out"))
    for steps in range(60):
        job = stepped(pipeline, "chained", wb.transactions(coalesce=10), checkpoint_interval="disabled")
        driver, master = job.stepper.driver, job.stepper.driver.master
        with driver.unwatched():
            for _ in range(steps):
                driver.step()
        if master.state == "RUNNING":
            job.checkpoint()
            job.stepper.until_checkpoint()
            master.crash("table[0]")
        assert wait(job) == "FINISHED"
        assert sorted(job.table()["n"].to_pylist()) == list(range(60)), f"after {steps} steps"


def test_windows_fire_once_when_their_task_fails_between_watermarks() -> None:
    table = pa.table({"t": [1_000 * n for n in range(ROWS)], "key": [n % KEYS for n in range(ROWS)]})
    stream = wb.Stream.from_table(table, event_time="t", rate=1_000).key_by("key").window(wb.tumbling("10ms"))
    pipeline = stream.aggregate(n=wb.count()).sink_to(wb.TableSink("out"))
    for records in (7, 15):
        job = stepped(pipeline, "windowed", wb.transactions(coalesce=4), parallelism=2)
        run_until_read(job, records)
        job.stepper.driver.master.crash(*[t.name for t in execution(job).tasks if not t.name.startswith("table")][:1])
        assert wait(job) == "FINISHED"
        found = Counter((row["key"], row["n"]) for row in job.table().to_pylist())
        windows = Counter((n % KEYS, n // 10) for n in range(ROWS))
        assert found == Counter((key, count) for (key, _), count in windows.items())


# the order of one transaction ------------------------------------------------------------------------------------


def test_a_step_stops_between_durable_and_sent() -> None:
    job = stepped(counts(), "phases")
    seen: list[Phase] = []

    def watch() -> bool:
        task = next(each for each in execution(job).tasks if each.name == "aggregate[0]")
        transaction = task.transaction
        seen.append(transaction.phase)
        if transaction.phase is Phase.SEND:
            row = transaction.store.row("aggregate[0]")
            staged = [element for out in transaction.outbound for _, element in out.staged]
            assert [each.element for each in row.productions][-len(staged) :] == staged
            return True
        return False

    run_until(job, watch)
    assert seen[-2:] == [Phase.ACKNOWLEDGE, Phase.SEND]
    job.stepper.driver.master.crash("aggregate[0]")  # durable, and not sent
    check(job)


def test_the_write_of_a_zombie_fails() -> None:
    job = stepped(counts(), "zombie")
    run_until_read(job, 8)
    zombie = next(each for each in execution(job).tasks if each.name == "aggregate[0]").transaction
    job.stepper.driver.master.crash("aggregate[0]")
    run_until(job, lambda: job.stepper.driver.master.restarts == 1)
    run_until_read(job, 14)
    held = zombie.store.row("aggregate[0]")
    with pytest.raises(FencedWriteError, match="the task was replaced"):
        zombie._send_to_store(Write(zombie.range, zombie.token, states={"aggregate": b"stale"}))
    assert zombie.fenced == 1
    assert zombie.store.row("aggregate[0]") == held
    check(job)


@pytest.mark.parametrize(("coalesce", "writes"), [(1, 24), (10, 3)])
def test_coalesced_records_share_a_write(coalesce: int, writes: int) -> None:
    table = pa.table({"n": list(range(ROWS))})
    pipeline = wb.Stream.from_table(table).sink_to(wb.DiscardSink())
    job = stepped(pipeline, "shared", wb.transactions(coalesce=coalesce), checkpoint_interval="disabled")
    assert wait(job) == "FINISHED"
    found = job.status()["transactions"]
    assert found["records"] == ROWS
    assert writes <= found["writes"] <= writes + 2  # the end has a write of its own
    assert found["round_trips"] >= found["writes"]


# weak productions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["table[0]", "aggregate[0]", "out[0]"])
def test_weak_productions_are_sent_before_they_are_durable_and_counted_once(victim: str) -> None:
    for records in (3, 14):
        job = stepped(counts(), "weak", wb.transactions(strong=False))
        run_until_read(job, records)
        job.stepper.driver.master.crash(victim)
        check(job)
    row = job._run.master.services.parts.store.row("aggregate[0]")  # type: ignore[union-attr, attr-defined]
    assert row.productions == []


# choosing and tuning ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("transactions:coalesce=0", "coalesce is '0': write a number of records from 1"),
        ("transactions:coalesce=many", "coalesce is 'many'"),
        ("transactions:strong=perhaps", "strong is 'perhaps': write true or false"),
        (
            "transactions:store=postgres",
            "store is 'postgres': write 'memory', 'sqlite:///transactions.db' or 'postgresql://host/database'",
        ),
        ("transactions:interval=5s", "unknown argument of transactions 'interval'"),
    ],
)
def test_wrong_arguments_are_refused(text: str, message: str) -> None:
    with pytest.raises(wb.errors.SettingError, match=message):
        stepped(counts(), "refused-transactions", text)


def test_what_cannot_take_part_is_refused_before_anything_starts() -> None:
    stream = wb.Stream.from_table(pa.table({"n": [1]}))
    with pytest.raises(wb.errors.PlanError, match="the sink 'print' cannot take part in transactions"):
        stepped(stream.sink_to(wb.PrintSink()), "refused-transactions")
    socket = wb.Stream.from_socket("localhost", 9)
    with pytest.raises(wb.errors.PlanError, match="cannot take part in transactions, because it cannot be read again"):
        stepped(socket.sink_to(wb.TableSink("out")), "refused-transactions")
    with pytest.raises(wb.errors.PlanError, match="has 2 senders in each subtask, and with strong=false"):
        stepped(counts(), "refused-transactions", wb.transactions(strong=False), parallelism=2)
    assert "refused-transactions" not in wb.jobs()


def test_coalesce_can_be_tuned_and_other_knobs_say_whose_they_are() -> None:
    job = stepped(counts(), "tuned")
    run_until_read(job, 5)
    job.tune(coalesce=20)
    assert job.status()["fault_tolerance"] == "transactions:coalesce=20,strong=true,store=memory"
    with pytest.raises(wb.errors.SettingError, match="offset_interval is an argument of fault_tolerance 'changelog'"):
        job.tune(offset_interval="1s")
    with pytest.raises(wb.errors.SettingError, match="strong of fault_tolerance 'transactions' applies to a whole run"):
        job.tune(strong=False)
    with pytest.raises(wb.errors.SettingError, match="coalesce is 0"):
        job.tune(coalesce=0)
    check(job)
    plain = counts().run("plain", driver="stepping")
    with pytest.raises(wb.errors.SettingError, match="coalesce is an argument of fault_tolerance 'transactions'"):
        plain.tune(coalesce=5)
    plain.cancel()


def test_a_savepoint_restores_into_snapshots(tmp_path: Path) -> None:
    job = stepped(counts(), "saved", checkpoint_dir=tmp_path, parallelism=2)
    run_until_read(job, 14)
    job.savepoint("half")
    job.cancel()
    again = counts().run("again", driver="stepping", checkpoint_dir=tmp_path, restore="half")
    check(again)


def test_it_can_be_rescaled(tmp_path: Path) -> None:
    job = stepped(counts(), "rescaled", checkpoint_dir=tmp_path, parallelism=1)
    run_until_read(job, 8)
    job.rescale(2)
    run_until_read(job, 5)
    job.stepper.driver.master.crash("aggregate[1]")
    check(job)


def test_the_status_shows_what_can_be_written() -> None:
    job = stepped(counts(), "shown", "transactions:coalesce=7")
    shown = job.status()["fault_tolerance"]
    assert shown == "transactions:coalesce=7,strong=true,store=memory"
    settings = job.stepper.driver.master.settings
    assert settings.with_value("fault_tolerance", shown) == settings
    assert settings.with_value("guarantee", "exactly-once").policy is settings.policy
    job.cancel()


# parts -----------------------------------------------------------------------------------------------------------


def test_the_filter_knows_what_it_holds_and_is_seldom_wrong() -> None:
    known = BloomFilter(2_000)
    ids = np.arange(4_000, dtype=np.uint64) * np.uint64(7_919)
    known.add(ids[:2_000])
    assert known.may_hold(ids[:2_000]).all()
    assert 0 < known.may_hold(ids[2_000:]).sum() < 60
    assert not known.full
    known.add(ids[2_000:2_001])
    assert known.full


def test_ids_are_looked_up_only_if_the_filter_may_hold_them() -> None:
    store = MemoryStore()
    store.begin([Write("a[0]", 0, taken=[("x", 0, 10)])], Origin("plan"))
    ids = RecordIds("a[0]", store, {"x": [(0, 10)]})
    assert (ids.fresh("x", 10, 5), ids.lookups) == ([(10, 5)], 0)
    assert ids.fresh("x", 8, 9) == [(15, 2)]  # 8 and 9 are durable, 10 to 14 are at hand
    assert (ids.duplicates, ids.false_positives, ids.lookups) == (7, 0, 1)


def test_a_full_filter_is_built_anew_from_what_the_store_still_holds() -> None:
    store = MemoryStore()
    store.begin([Write("a[0]", 0)], Origin("plan"))
    ids = RecordIds("a[0]", store, {})
    for first in range(0, 50_000, 10_000):
        assert ids.fresh("x", first, 10_000) == [(first, 10_000)]
        store.write(Write("a[0]", 0, taken=[("x", first, 10_000)], past={"x": first}))
        ids.durable([])
    assert ids._filter.count <= 30_000
    assert ids.fresh("x", 40_000, 10_000) == []


def test_ids_below_the_past_are_forgotten() -> None:
    store = MemoryStore()
    store.begin([Write("a[0]", 0, taken=[("x", 0, 4), ("x", 4, 4), ("x", 20, 2)])], Origin("plan"))
    assert store.taken("a[0]", "x") == [(0, 8), (20, 2)]
    store.write(Write("a[0]", 0, past={"x": 6}))
    assert store.taken("a[0]", "x") == [(6, 2), (20, 2)]


def test_an_element_acknowledged_in_part_is_not_settled() -> None:
    """It is sent again as a whole, so the receiver must still know the ids of its first part."""
    delivery = Delivery(Channel("e", "a[0]", "b[0]", 2, Waker(), Waker()))
    for first in (0, 4):
        delivery.push(Records(pa.record_batch({"n": list(range(first, first + 4))})))
    delivery.send()
    delivery.acknowledge(6)
    delivery.forget(6)
    assert [each.first for each in delivery.unacked] == [4]
    assert delivery.settled == 4
    delivery.acknowledge(8)
    delivery.forget(8)
    assert (len(delivery.unacked), delivery.settled) == (0, 8)


def test_records_of_a_production_count_one_id_each() -> None:
    rows = Records(pa.record_batch({"n": [1, 2, 3]}))
    assert ends(Production("x", 10, rows)) == 13
