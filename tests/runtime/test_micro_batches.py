"""Micro-batches: the content of a batch, the order of commits, and pipelines that are refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unwatched import run_until, wait

import workbench as wb
from workbench.api.job.job import Job
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader
from workbench.elements import Records
from workbench.errors import PlanError, SettingError, SourceError, WorkbenchError
from workbench.operators.contract.base import OperatorContext
from workbench.operators.functions.dead_letters import as_records, of_bytes
from workbench.runtime.batches.offsets import LOG, OffsetLog, Offsets, Span
from workbench.runtime.storage.memory import MemoryStorage
from workbench.runtime.tasks.states import READ_AHEAD, States

ROWS = 48
KEYS = 3
RESTART = "fixed-delay:attempts=9,delay=1ms"


def counts(rows: int = ROWS) -> wb.types.Pipeline:
    table = pa.table({"n": list(range(rows)), "key": [n % KEYS for n in range(rows)]})
    counted = wb.Stream.from_table(table, rate=1_000).key_by("key").aggregate(n=wb.count())
    return counted.filter("n > 0").rebalance().sink_to(wb.TableSink("out"))


def stepped(pipeline: wb.types.Pipeline, name: str, policy: Any, **settings: Any) -> Job:
    settings = {"buffer_size": 4, "buffer_timeout": "0ms", "restart": RESTART, **settings}
    return pipeline.run(name, driver="stepping", fault_tolerance=policy, **settings)


def queue(job: Job) -> Any:
    return job.stepper.driver.master.services.parts


def sources(job: Job) -> list[Any]:
    return job.stepper.driver.execution.sources


def sent(job: Job) -> int:
    return sum(source.root.counters.numRecordsIn for source in sources(job))


def check(job: Job, rows: int = ROWS) -> None:
    """Every record is counted once: each key has each count from 1 on once."""
    assert wait(job) == "FINISHED"
    found = Counter((row["key"], row["n"]) for row in job.table().to_pylist())
    assert found == Counter((key, n) for key in range(KEYS) for n in range(1, rows // KEYS + 1))


def batches(job: Job) -> list[tuple[int, int, str, bool]]:
    return [(each.txid, each.records, each.state, each.replayed) for each in queue(job).ended]


# what a batch consists of ----------------------------------------------------------------------------------------


def test_a_batch_holds_what_its_interval_has_delivered() -> None:
    """A record each millisecond: ten in each batch of ten milliseconds."""
    job = stepped(counts(), "tens", wb.micro_batches("10ms"))
    check(job)
    assert [records for _, records, _, _ in batches(job)[:5]] == [10, 10, 10, 10, 8]
    assert [txid for txid, _, _, _ in batches(job)] == list(range(1, len(batches(job)) + 1))


def test_a_batch_is_no_larger_than_batch_size_for_each_subtask() -> None:
    job = stepped(counts(), "threes", wb.micro_batches("10ms", batch_size=3), parallelism=2)
    check(job)
    assert [records for _, records, _, _ in batches(job)[:8]] == [6] * 8


def test_nothing_is_visible_before_its_batch_and_then_all_of_it() -> None:
    job = stepped(counts(), "whole", wb.micro_batches("10ms"))
    for committed in range(1, 5):
        run_until(job, lambda: queue(job).committed == committed)  # noqa: B023
        job.stepper.driver.run_until(lambda: job.table().num_rows >= 10 * committed)  # noqa: B023
        assert job.table().num_rows == 10 * committed
    check(job)


def test_no_record_is_sent_before_the_offsets_of_its_batch_are_durable(tmp_path: Path) -> None:
    job = stepped(counts(), "logged", wb.micro_batches("10ms"), checkpoint_dir=tmp_path)
    run_until(job, lambda: sent(job) > 0)
    assert [(each.txid, each.records) for each in queue(job).open] == [(1, 10)]
    log = OffsetLog(queue(job)._storage)
    assert log.resume(0, ["table[0]"]) == [Offsets(1, 0, {"table[0]": Span(0, 10, {"0": 3, "1": 3, "2": 2, "3": 2})})]
    job.cancel()


# recovery --------------------------------------------------------------------------------------------------------


POLICIES: list[Any] = [("10ms",), ("5ms", 3, 3), ("10ms", 7, 2, "opaque")]
VICTIMS = ["table[0]", "aggregate[1]", "out[0]", "all"]


@pytest.mark.parametrize(
    ("policy", "victim"),
    [
        pytest.param(policy, victim, marks=[] if victim in (VICTIMS[at], "all") else pytest.mark.slow)
        for at, policy in enumerate(POLICIES)
        for victim in VICTIMS
    ],
    ids=str,
)
def test_any_task_may_fail_at_any_time(victim: str, policy: Any) -> None:
    job = stepped(counts(), "any", wb.micro_batches(*policy), parallelism=2)
    run_until(job, lambda: sent(job) >= 25)
    names = [task.name for task in job.stepper.driver.execution.tasks if victim in ("all", task.name)]
    job.stepper.driver.master.crash(*names)
    check(job)
    assert queue(job).failed >= 1


def spans_by_txid(job: Job) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for batch in queue(job).ended:
        found.setdefault(batch.txid, []).append(dict(batch.spans))
    return found


def test_a_transactional_batch_is_read_again_with_the_same_records() -> None:
    job = stepped(counts(), "same", wb.micro_batches("10ms"), parallelism=2)
    run_until(job, lambda: sent(job) >= 25)
    job.stepper.driver.master.crash("aggregate[0]")
    job.tune(batch_interval="3ms")  # the next batches are smaller, this one is not
    check(job)
    again = {txid: spans for txid, spans in spans_by_txid(job).items() if len(spans) > 1}
    assert again
    assert all(first == second for first, second in again.values())
    assert job.status()["micro-batches"]["replayed"] == len(again)


def test_an_opaque_batch_may_have_others() -> None:
    job = stepped(counts(), "others", wb.micro_batches("10ms", state="opaque"), parallelism=2)
    run_until(job, lambda: sent(job) >= 25)
    job.stepper.driver.master.crash("aggregate[0]")
    job.tune(batch_interval="3ms")
    check(job)
    (first, second), *_ = [spans for spans in spans_by_txid(job).values() if len(spans) > 1]
    assert first != second


@pytest.mark.parametrize("state", ["transactional", "opaque"])
def test_another_process_processes_the_batches_again_under_their_txids(tmp_path: Path, state: str) -> None:
    policy = wb.micro_batches("10ms", max_pending=2, state=state)
    job = stepped(counts(), "first", policy, checkpoint_dir=tmp_path)
    run_until(job, lambda: sent(job) >= 25)
    (batch,) = queue(job).open
    before = (batch.txid, dict(batch.spans))
    job.cancel()
    smaller = wb.micro_batches("5ms", max_pending=2, state=state)
    again = stepped(counts(), "first", smaller, checkpoint_dir=tmp_path, resume=True)
    run_until(again, lambda: len(queue(again).ended) > 0)
    first = queue(again).ended[0]
    assert first.txid == before[0]
    assert first.replayed
    assert (first.spans == before[1]) is (state == "transactional")
    check(again)


def test_a_batch_whose_offsets_cannot_be_written_is_processed_again() -> None:
    job = stepped(counts(), "full", wb.micro_batches("10ms"))
    run_until(job, lambda: queue(job).committed == 1)
    storage, failed = queue(job)._storage, []
    keep = storage.keep

    def full(name: str, content: bytes) -> None:
        if not failed:
            failed.append(name)
            raise OSError(28, "No space left on device")
        keep(name, content)

    storage.keep = full
    check(job)
    assert failed == [LOG]
    assert queue(job).failed == 1
    assert "its offsets could not be written" in str(job.stepper.driver.master.failure)


def test_a_savepoint_restores_into_another_architecture(tmp_path: Path) -> None:
    job = stepped(counts(), "saved", wb.micro_batches("10ms"), checkpoint_dir=tmp_path)
    run_until(job, lambda: sent(job) >= 25)
    job.savepoint("half")
    job.cancel()
    place = {"checkpoint_dir": tmp_path / "new", "restore": tmp_path / "savepoints/half"}
    check(stepped(counts(), "saved-again", "snapshots", **place))


def test_a_source_that_lost_records_is_told_from_one_that_has_not() -> None:
    job = stepped(counts(), "lost", wb.micro_batches("10ms"), restart="fixed-delay:attempts=1,delay=1ms")
    run_until(job, lambda: sent(job) >= 25)
    (batch,) = queue(job).open
    spans = {task: Span(span.start, span.end + 90, {"0": 90}) for task, span in batch.spans.items()}
    queue(job).log.add(Offsets(batch.txid, batch.checkpoint_id, spans))
    job.stepper.driver.master.crash("aggregate[0]")
    with pytest.raises(WorkbenchError, match="fewer records than when its batch was first read"):
        job.wait()
    assert isinstance(job.stepper.driver.master.failure, SourceError)


# splits ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoSplits(Source):
    """Thirty numbers in the split a and up to thirty in b, one for each poll; `first` is the split that is read first,
    by attempt."""

    first: list[str]
    rows_of_b: int = 30
    schema = pa.schema({"n": pa.int64(), "key": pa.int64()})

    def create(self) -> Any:
        return _TwoReader(self.first.pop(0) if self.first else "a", {"a": 30, "b": self.rows_of_b})


class _TwoReader(SourceReader):
    shares_event_time = False

    def __init__(self, first: str, rows: dict[str, int]) -> None:
        self.turn, self.rows, self.read = first, rows, {"a": 0, "b": 0}

    def open(self, context: Any) -> None: ...
    def close(self) -> None: ...

    def splits(self) -> tuple[str, ...]:
        return tuple(split for split, rows in self.rows.items() if self.read[split] < rows)

    def poll(self, max_records: int) -> Any:
        if not self.splits():
            return Exhausted()
        split = self.turn if self.turn in self.splits() else self.splits()[0]
        n = self.read[split] + (30 if split == "b" else 0)
        self.read[split] += 1
        return Fetched(Records(pa.record_batch({"n": [n], "key": [n % KEYS]}, self_schema)), split)

    def snapshot(self) -> Any:
        return {"read": dict(self.read)}

    def restore(self, snapshots: Any) -> None:
        (snapshot,) = snapshots
        self.read = dict(snapshot["read"])

    def parts(self, uid: str) -> Any:
        return {uid: self}


self_schema = TwoSplits.schema


def two_splits(first: list[str], rows_of_b: int = 30) -> wb.types.Pipeline:
    return wb.Stream.from_source(TwoSplits(first, rows_of_b)).filter("n >= 0").rebalance().sink_to(wb.TableSink("out"))


@pytest.mark.parametrize("rows_of_b", [30, 2])
def test_a_batch_is_the_same_if_splits_are_read_in_another_order(tmp_path: Path, rows_of_b: int) -> None:
    """The batch has four records of the split a. When it is read again, b comes first: its records wait for the
    batches behind, also if b has ended by then, and if these are cut while the job is restored once more."""
    policy = wb.micro_batches("1ms", batch_size=4)
    job = stepped(two_splits(["a", "b", "b"], rows_of_b), "turns", policy)
    run_until(job, lambda: sent(job) >= 10)
    job.stepper.driver.master.crash("out[0]")
    committed = queue(job).committed
    run_until(job, lambda: queue(job).replayed > 0 and queue(job).committed > committed)
    job.stepper.driver.master.crash("out[0]")
    assert wait(job) == "FINISHED"
    assert sorted(row["n"] for row in job.table().to_pylist()) == list(range(30 + rows_of_b))
    again = [spans for spans in spans_by_txid(job).values() if len(spans) > 1]
    assert again
    assert all(len({str(each) for each in spans}) == 1 for spans in again)
    assert next(iter(again[0][0].values())).counts == {"a": 4}


@dataclass(frozen=True)
class Halves(TwoSplits):
    """The same, in which odd numbers are no records."""

    on_error: Any = "dead_letter"

    def create(self) -> Any:
        return _HalfReader(self.first.pop(0) if self.first else "a", {"a": 30, "b": self.rows_of_b})


class _HalfReader(_TwoReader):
    def poll(self, max_records: int) -> Any:
        fetched = super().poll(max_records)
        if isinstance(fetched, Exhausted):
            return fetched
        self.read[fetched.split] += 1
        odd = b"%d" % (fetched.records.batch["n"][0].as_py() + 1)
        letter = as_records([of_bytes("odd", odd, "raw", None)], OperatorContext(), with_times=False)
        return Fetched(fetched.records, fetched.split, letter)


@pytest.mark.parametrize("again_while_ahead", [False, True])
def test_dead_letters_belong_to_their_batch(again_while_ahead: bool) -> None:
    """As records do: if a batch is read again, those that come too early wait for the batches behind."""
    halves = wb.Stream.from_source(Halves(["a", "b", "b"]))
    good = halves.filter("n >= 0").rebalance().sink_to(wb.TableSink("out"))
    pipeline = good + halves.dead_letters().rebalance().sink_to(wb.TableSink("bad"))
    job = stepped(pipeline, "halves", wb.micro_batches("1ms", batch_size=8))
    run_until(job, lambda: sent(job) >= 5)
    job.stepper.driver.master.crash("out[0]")
    committed = queue(job).committed
    run_until(job, lambda: queue(job).replayed > 0 and queue(job).committed > committed)
    if again_while_ahead:
        job.stepper.driver.master.crash("bad[0]")
    assert wait(job) == "FINISHED"
    assert sorted(row["n"] for row in job.table("out").to_pylist()) == list(range(0, 60, 2))
    assert sorted(int(row["raw"]) for row in job.table("bad").to_pylist()) == list(range(1, 60, 2))
    again = [spans for spans in spans_by_txid(job).values() if len(spans) > 1]
    assert again
    assert all(len({str(each) for each in spans}) == 1 for spans in again)


def test_splits_that_begin_and_end_within_a_batch_are_sent(tmp_path: Path) -> None:
    for number in range(6):
        rows = pa.table({"n": range(5 * number, 5 * number + 5)})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    files = wb.Stream.from_files(tmp_path / "*.parquet").sink_to(wb.TableSink("out"))
    job = stepped(files, "files", wb.micro_batches("1ms", batch_size=20), buffer_size=1_000)
    assert wait(job) == "FINISHED"
    assert sorted(job.table()["n"].to_pylist()) == list(range(30))


def test_only_micro_batches_resume_what_was_read_ahead() -> None:
    states = States("chk-1", {"two": [{READ_AHEAD: ["b"]}]})
    with pytest.raises(wb.errors.CheckpointError, match="the source 'two' had read records of later batches"):
        states.check_sent("two")
    states.check_sent("other")


# order -----------------------------------------------------------------------------------------------------------


def test_batches_are_committed_in_order_although_several_are_processed_at_a_time() -> None:
    job = stepped(counts(), "order", wb.micro_batches("5ms", max_pending=3), parallelism=2)
    check(job)
    txids = [txid for txid, _, state, _ in batches(job) if state == "committed"]
    assert txids == sorted(txids)


# queue -----------------------------------------------------------------------------------------------------------


def test_batches_wait_for_a_slow_operator_and_then_grow() -> None:
    job = stepped(counts(120), "slow", wb.micro_batches("5ms"), buffer_size=100)
    job.faults.slow_down("filter", "30ms")
    run_until(job, lambda: queue(job).counts(None)["waiting"] == 4)
    status = job.status()["micro-batches"]
    assert status["running"] == 1
    check(job, 120)
    assert max(records for _, records, _, _ in batches(job)) > 5


# what cannot be expressed ----------------------------------------------------------------------------------------


def events() -> wb.Stream:
    table = pa.table({"t": pa.array(range(5), pa.timestamp("us")), "key": [0] * 5})
    return wb.Stream.from_table(table, event_time="t")


class Ticks(wb.functions.ProcessFunction):
    """Registers a timer in a function of its own."""

    def process(self, record: Any, state: Any, ctx: Any) -> Any:
        self.again(ctx)

    def again(self, ctx: Any) -> None:
        ctx.register_processing_timer(ctx.processing_time + 5)

    def on_timer(self, time: int, state: Any, ctx: Any) -> Any: ...


KEYED = {"key": pa.int64()}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.window(wb.tumbling("5s")).aggregate(n=wb.count()), "tumbling 5s windows, which are no multiple"),
        (lambda s: s.window(wb.sliding("20s", "5s")).aggregate(n=wb.count()), "no multiple of the batch_interval, 10s"),
        (lambda s: s.window(wb.windows.count_tumbling(4)).aggregate(n=wb.count()), "which end with records"),
        (lambda s: s.window(wb.session("10s")).aggregate(n=wb.count()), "which end with records"),
        (
            lambda s: s.window(wb.tumbling("10s"), time="processing").aggregate(n=wb.count()),
            "windows of processing time",
        ),
        (
            lambda s: s.window(wb.tumbling("10s"), trigger=wb.triggers.on_count(3)).aggregate(n=wb.count()),
            "a trigger that can fire within a batch",
        ),
        (lambda s: s.process(Ticks(), schema=KEYED), "'process' has timers of processing time"),
    ],
)
def test_what_depends_on_the_batches_is_refused_before_anything_starts(make: Any, message: str) -> None:
    pipeline = make(events().key_by("key")).sink_to(wb.TableSink("out"))
    with pytest.raises(PlanError, match=message) as caught:
        stepped(pipeline, "refused-micro-batches", wb.micro_batches("10s"))
    assert "fault_tolerance='snapshots'" in str(caught.value)
    assert "refused-micro-batches" not in wb.jobs()


def test_stretched_windows_are_the_next_multiples() -> None:
    windowed = events().key_by("key").window(wb.sliding("12s", "6s", "5500ms")).aggregate(n=wb.count())
    job = stepped(windowed.sink_to(wb.TableSink("out")), "stretched", wb.micro_batches("5s", windows="stretch"))
    assert wait(job) == "FINISHED"
    spans = [(row["window_start"].timestamp(), row["window_end"].timestamp()) for row in job.table().to_pylist()]
    assert spans == [(-5, 10)]  # of 15 s, every 10 s, from 5 s


def test_windows_that_are_multiples_of_the_batch_are_accepted() -> None:
    windowed = events().key_by("key").window(wb.sliding("20s", "10s")).aggregate(n=wb.count())
    job = stepped(windowed.sink_to(wb.TableSink("out")), "fits", wb.micro_batches("5s"))
    with pytest.raises(PlanError, match="no multiple of the batch_interval, 3s"):
        job.tune(batch_interval="3s")
    job.tune(batch_interval="10s")
    assert wait(job) == "FINISHED"
    assert [row["n"] for row in job.table().to_pylist()] == [5, 5]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"batch_interval": "0s"}, "batch_interval is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"max_pending": "two"}, "max_pending is 'two': write a whole number, at least 1"),
        ({"state": "lost"}, "'lost'"),
        ({"windows": "shrink"}, "'shrink'"),
    ],
)
def test_arguments_are_checked(values: Any, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        wb.micro_batches(**values)


def test_tuning_names_the_architecture_that_has_a_knob() -> None:
    job = stepped(counts(), "other", "snapshots")
    with pytest.raises(SettingError, match="batch_interval is an argument of fault_tolerance 'micro-batches'"):
        job.tune(batch_interval="5s")
    job.cancel()
    job = stepped(counts(), "own", wb.micro_batches())
    with pytest.raises(SettingError, match="state of fault_tolerance 'micro-batches' applies to a whole run"):
        job.tune(state="opaque")
    job.cancel()


def test_the_text_form_names_all_arguments() -> None:
    text = "micro-batches:batch_interval=500ms,batch_size=9,max_pending=2,state=opaque"
    job = stepped(counts(), "text", text)
    assert job.status()["fault_tolerance"] == text
    job.cancel()


# the log of offsets ----------------------------------------------------------------------------------------------


def spans(end: int) -> dict[str, Span]:
    return {"table[0]": Span(end - 10, end, {"0": 10})}


def test_the_log_forgets_what_is_committed_and_keeps_the_rest() -> None:
    storage = MemoryStorage()
    log = OffsetLog(storage)
    for txid in (7, 8, 9):
        storage.keep(LOG, log.add(Offsets(txid, txid, spans(10 * txid))))
    log = OffsetLog(storage)
    assert [(each.txid, each.checkpoint_id) for each in log.resume(7, ["table[0]"])] == [(8, 0), (9, 0)]
    storage.keep(LOG, log.add(Offsets(8, 12, spans(80))))  # processed again, with another checkpoint
    log = OffsetLog(storage)
    assert [each.txid for each in log.resume(12, ["table[0]"])] == [9]
    assert log.committed_txid == 8


def test_the_log_is_of_one_history_and_one_plan() -> None:
    storage = MemoryStorage()
    storage.keep(LOG, OffsetLog(storage).add(Offsets(3, 3, spans(30))))
    assert OffsetLog(storage).resume(2, ["table[0]"]) == []  # the job went back to another checkpoint
    assert OffsetLog(storage).resume(0, ["table[0]", "table[1]"]) == []  # rescaled


def test_a_damaged_log_says_what_to_do() -> None:
    storage = MemoryStorage()
    storage.keep(LOG, b'{"base": "seven"}')
    with pytest.raises(wb.errors.CheckpointError, match="cut differently: delete the file to accept this"):
        OffsetLog(storage)


# the examples of Trident's documentation (docs/Trident-state.md of Storm) ------------------------------------------


def held(job: Job, key: str) -> int | None:
    """The sum of a key while batches are processed."""
    found = job.operator_state("aggregate").get(key)
    return None if found is None else found["n"]


def summed(rows: list[tuple[str, int]], name: str, policy: Any) -> Job:
    """Sums by key, a record each millisecond, one record in each buffer."""
    table = pa.table({"key": [key for key, _ in rows], "n": [n for _, n in rows]})
    sums = wb.Stream.from_table(table, rate=1_000).key_by("key").aggregate(n=wb.sum("n"))
    return stepped(sums.sink_to(wb.TableSink("out", upsert_key="key")), name, policy, buffer_size=1)


def sums(job: Job) -> dict[str, int]:
    return {row["key"]: row["n"] for row in job.table().to_pylist()}


def test_a_transactional_batch_that_was_half_applied_is_applied_once() -> None:
    """Batch 3 is man, man, dog, on man 3, dog 3 and apple 10; it fails when dog is 4 and man is still 3."""
    first, second = [("man", 3), ("dog", 1), ("dog", 2)], [("apple", 4), ("apple", 3), ("apple", 3)]
    third = [("dog", 1), ("man", 1), ("man", 1)]
    job = summed(first + second + third, "trident", wb.micro_batches("10ms", batch_size=3))
    run_until(job, lambda: held(job, "dog") == 4)
    assert (held(job, "man"), held(job, "apple")) == (3, 10)
    assert queue(job).committed_txid == 2
    job.stepper.driver.master.crash("aggregate[0]")
    run_until(job, lambda: queue(job).committed_txid == 3)
    run_until(job, lambda: len(sums(job)) == 3)
    assert wait(job) == "FINISHED"
    assert sums(job) == {"man": 5, "dog": 4, "apple": 10}
    ended = [(txid, state, replayed) for txid, _, state, replayed in batches(job) if txid == 3]
    assert ended == [(3, "failed", False), (3, "committed", True)]


@pytest.mark.parametrize(("fails", "expected"), [(False, {1: 1, 2: 4, 3: 6}), (True, {1: 1, 2: 3})])
def test_an_opaque_batch_that_comes_again_with_less_counts_from_the_value_before_it(
    fails: bool, expected: dict[int, int]
) -> None:
    """The value 4 of batch 2 was 1 before it. Two more are 6 in batch 3, but 3 if they are batch 2 once more."""
    job = summed([("k", 1)] * 12, "opaque", wb.micro_batches("1ms", state="opaque"))
    run_until(job, lambda: len(queue(job).open) == 1)
    job.tune(batch_interval="3ms")
    run_until(job, lambda: held(job, "k") == 4)
    assert queue(job).committed_txid == 1
    job.tune(batch_interval="2ms")
    if fails:
        job.stepper.driver.master.crash("aggregate[0]")
    found = {1: 1}
    while len(found) < len(expected):
        txid = len(found) + 1
        run_until(job, lambda: queue(job).committed_txid == txid)  # noqa: B023
        found[txid] = held(job, "k")
    assert found == expected
    job.cancel()
