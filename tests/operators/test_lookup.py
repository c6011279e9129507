"""Asynchronous lookups: order, watermarks, concurrency, time-outs, backpressure, snapshots and errors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.clock import VirtualClock
from workbench.drivers.contract.executor import ThreadedExecutor
from workbench.durations import MAX_TIME
from workbench.elements import Records
from workbench.errors import CheckpointError, PlanError, RecordError, SettingError
from workbench.operators.contract.base import OperatorContext
from workbench.operators.contract.executor import Given, Inline
from workbench.operators.joins.async_lookup import AsyncLookup

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int64()})
ADDED = {"w": pa.string()}


class Collected:
    """An output that keeps rows (with their times) and watermarks in the order in which they come."""

    def __init__(self) -> None:
        self.came: list[Any] = []

    def emit(self, records: Records) -> None:
        records.batch.validate(full=True)
        times = [None] * len(records) if records.timestamps is None else records.timestamps.tolist()
        self.came += zip(*(column.to_pylist() for column in records.batch.columns), times, strict=True)

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)

    def emit_watermark(self, watermark_us: int) -> None:
        self.came.append(watermark_us)

    def emit_idle(self, idle: bool) -> None:
        self.came.append("idle" if idle else "active")

    def take(self) -> list[Any]:
        came, self.came = self.came, []
        return came


class Later:
    """An executor whose calls are answered when the test says so."""

    def __init__(self) -> None:
        self.calls: list[PendingCall] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> PendingCall:
        self.calls.append(PendingCall(function, arguments))
        return self.calls[-1]

    @property
    def open(self) -> list[PendingCall]:
        return [call for call in self.calls if call.answer is None]

    def asked(self) -> list[Any]:
        return [call.arguments[0] for call in self.open]

    def answer(self, *keys: str) -> None:
        for call in self.open:
            if call.arguments[0] in keys:
                call.finish()


class PendingCall:
    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function, self.arguments, self.answer = function, arguments, None

    def finish(self) -> None:
        self.answer = Inline().submit(self.function, *self.arguments)

    def done(self) -> bool:
        return self.answer is not None

    def result(self) -> Any:
        return self.answer.result()


def known(k: str) -> dict[str, str] | None:
    return None if k == "x" else {"w": k.upper()}


def records(keys: str, first: int = 0) -> Records:
    """A record for each letter, numbered from `first`, with its number as its event time; ``-`` is a null key."""
    numbers = range(first, first + len(keys))
    batch = pa.record_batch([[None if k == "-" else k for k in keys], list(numbers)], schema=SCHEMA)
    return Records(batch, np.array(numbers, np.int64))


def opened(
    executor: Any = None, clock: VirtualClock | None = None, subtask: int = 0, parallelism: int = 1, **spec: Any
):
    operator = AsyncLookup(spec.pop("function", known), ("k",), ADDED, **spec).create([SCHEMA])
    operator.open(
        OperatorContext(
            uid="lookup", executor=executor, clock=clock or VirtualClock(), subtask=subtask, parallelism=parallelism
        )
    )
    return operator


def look(operator: Any, out: Collected) -> list[Any]:
    operator.on_time(operator._context.clock.now_us(), out)
    return out.take()


def test_answers_that_are_there_at_once_come_out_at_once():
    operator, out = opened(), Collected()
    operator.process(records("ax-a"), 0, out)
    assert out.take() == [("a", 0, "A", 0), ("x", 1, None, 1), (None, 2, None, 2), ("a", 3, "A", 3)]
    operator.on_watermark(3, out)
    assert out.take() == [3]
    assert operator.next_time_us() is None
    dropping = opened(drop_unknown=True)
    dropping.process(records("ax-a"), 0, out)
    assert out.take() == [("a", 0, "A", 0), ("a", 3, "A", 3)]


def test_cached_answers_hold_for_their_time_and_no_longer(monkeypatch):
    asked: list[str] = []

    def known_once(k: str) -> dict[str, str] | None:
        asked.append(k)
        return known(k)

    clock, out = VirtualClock(1_000), Collected()
    operator = opened(function=known_once, cache_us=100, clock=clock)
    operator.process(records("ax-"), 0, out)
    clock.advance_to(1_099)
    operator.process(records("bxa", 3), 0, out)
    assert out.take()[3:] == [("b", 3, "B", 3), ("x", 4, None, 4), ("a", 5, "A", 5)]
    assert asked == ["a", "x", "b"]
    clock.advance_to(1_100)
    operator.process(records("ab", 6), 0, out)
    assert asked == ["a", "x", "b", "a"]
    assert out.take() == [("a", 6, "A", 6), ("b", 7, "B", 7)]
    monkeypatch.setattr("workbench.operators.joins.async_lookup._CACHED_KEYS_MAX", 2)
    operator.process(records("cd", 8), 0, out)
    operator.process(records("dcb", 10), 0, out)
    assert asked == ["a", "x", "b", "a", "c", "d", "b"]  # the oldest answers make room
    assert out.take()[-1] == ("b", 12, "B", 12)


def test_cached_answers_wait_for_the_order_of_the_records():
    later, out = Later(), Collected()
    operator = opened(later, cache_us=100)
    operator.process(records("a"), 0, out)
    later.answer("a")
    assert look(operator, out) == [("a", 0, "A", 0)]
    operator.process(records("ba", 1), 0, out)
    assert later.asked() == ["b"]
    assert out.take() == []
    later.answer("b")
    assert look(operator, out) == [("b", 1, "B", 1), ("a", 2, "A", 2)]


def test_ordered_answers_wait_for_those_before_them():
    later, out = Later(), Collected()
    operator = opened(later)
    operator.process(records("abab"), 0, out)
    operator.process(records("c", 4), 0, out)
    operator.on_watermark(2, out)
    assert later.asked() == ["a", "b", "c"]  # one call for each distinct key of a batch
    later.answer("b", "c")
    assert look(operator, out) == []
    later.answer("a")
    assert look(operator, out) == [
        ("a", 0, "A", 0),
        ("b", 1, "B", 1),
        ("a", 2, "A", 2),
        ("b", 3, "B", 3),
        ("c", 4, "C", 4),
        2,
    ]


def test_a_prefix_of_a_batch_need_not_wait_for_the_rest():
    later, out = Later(), Collected()
    operator = opened(later)
    operator.process(records("aba"), 0, out)
    later.answer("a")
    assert look(operator, out) == [("a", 0, "A", 0)]
    later.answer("b")
    assert look(operator, out) == [("b", 1, "B", 1), ("a", 2, "A", 2)]


def test_unordered_answers_come_as_they_are_but_not_across_a_watermark():
    later, out = Later(), Collected()
    operator = opened(later, ordered=False)
    operator.process(records("ab"), 0, out)
    operator.process(records("c", 2), 0, out)
    operator.on_watermark(1, out)
    operator.process(records("d", 3), 0, out)
    operator.on_watermark(2, out)
    operator.on_watermark(3, out)
    later.answer("b", "c", "d")
    assert look(operator, out) == [("b", 1, "B", 1), ("c", 2, "C", 2)]
    later.answer("a")
    assert look(operator, out) == [("a", 0, "A", 0), 1, ("d", 3, "D", 3), 3]


def test_no_more_calls_than_allowed_are_under_way_and_a_full_operator_takes_nothing():
    later, out = Later(), Collected()
    operator = opened(later, concurrency=2)
    assert operator.ready()
    operator.process(records("a"), 0, out)
    assert operator.ready()
    operator.process(records("bcd", 1), 0, out)
    assert later.asked() == ["a", "b"]
    assert not operator.ready()
    later.answer("b")
    assert look(operator, out) == []
    assert later.asked() == ["a", "c"]
    later.answer("a", "c")
    assert [row[1] for row in look(operator, out)] == [0, 1, 2]
    assert later.asked() == ["d"]
    assert operator.ready()


def test_answers_that_wait_for_an_earlier_one_fill_the_operator_too():
    later, out = Later(), Collected()
    operator = opened(later, concurrency=3)
    operator.process(records("a"), 0, out)
    batches = 1
    while operator.ready():
        operator.process(records("b", batches), 0, out)
        later.answer("b")
        look(operator, out)
        batches += 1
    assert batches == 6
    later.answer("a")
    assert len(look(operator, out)) == 6


def test_at_the_end_of_the_input_nothing_passes_by_what_is_still_out():
    later, out = Later(), Collected()
    operator = opened(later)
    operator.process(records("a"), 0, out)
    operator.on_watermark(MAX_TIME, out)
    assert not operator.ready()  # so the last barrier, behind this watermark, has to wait
    later.answer("a")
    assert look(operator, out) == [("a", 0, "A", 0), MAX_TIME]
    assert operator.ready()


def test_silence_is_told_when_nothing_is_out_any_more():
    later, out = Later(), Collected()
    operator = opened(later)
    operator.process(records("a"), 0, out)
    operator.on_idle(True, out)
    assert out.take() == []
    later.answer("a")
    assert look(operator, out) == [("a", 0, "A", 0), "idle"]
    operator.on_idle(False, out)
    assert out.take() == ["active"]


def test_it_looks_less_often_the_longer_answers_take():
    clock, later, out = VirtualClock(1_000), Later(), Collected()
    operator = opened(later, clock)
    assert operator.next_time_us() is None
    operator.process(records("ab"), 0, out)
    for now, pause in ((1_000, 100), (9_000, 1_000), (1_001_000, 5_000)):
        clock.advance_to(now)
        assert look(operator, out) == []
        assert operator.next_time_us() == now + pause


def test_an_answer_that_takes_too_long_is_an_error():
    clock, later, out = VirtualClock(1_000), Later(), Collected()
    operator = opened(later, clock, timeout_us=5_000)
    operator.process(records("ab"), 0, out)
    clock.advance_to(6_000)
    assert look(operator, out) == []
    later.answer("a")
    clock.advance_to(6_001)
    with pytest.raises(RecordError) as caught:
        look(operator, out)
    assert str(caught.value) == (
        "lookup_async function 'known' has not answered within 5ms for k = 'b': raise the timeout, or find out why it "
        "is slow"
    )


def fails(k: str) -> Any:
    raise OSError("gone")


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (fails, "lookup_async function 'fails' raised OSError: gone when called with the key k = 'a'"),
        (lambda k: {"w": 5}, "returned 5 for column 'w', which is declared as string, for k = 'a'"),
        (lambda k: {"v": 5}, "returned {'v': 5} (dict), expected a dict with the columns w or None, for k = 'a'"),
        (lambda k: "A", "returned 'A' (str), expected a dict with the columns w or None, for k = 'a'"),
    ],
)
def test_an_error_names_the_key(function: Callable[[str], Any], said: str):
    with pytest.raises(RecordError) as caught:
        opened(function=function).process(records("a"), 0, Collected())
    assert str(caught.value).endswith(said)


def test_records_without_event_times_and_empty_batches_pass():
    operator, out = opened(), Collected()
    operator.process(Records(records("a").batch), 0, out)
    operator.process(records(""), 0, out)
    assert out.take() == [("a", 0, "A", None)]


@settings(max_examples=100)
@given(st.data(), st.booleans(), st.integers(1, 4))
def test_every_record_comes_out_once_whatever_happens_on_the_way(data, ordered, concurrency):
    """Random answers, watermarks, and restores at another parallelism; the promises about order and time are kept."""
    later, out = Later(), Collected()
    operators = [opened(later, ordered=ordered, concurrency=concurrency)]
    sent = 0
    expected: Counter[Any] = Counter()
    got: list[Any] = []
    told = -1
    restored = False
    for _ in range(data.draw(st.integers(1, 15))):
        action = data.draw(st.sampled_from(["batch", "batch", "answer", "watermark", "restore"]))
        if action == "batch" and operators[0].ready():
            keys = data.draw(st.text("abx-", max_size=6))
            operators[0].process(records(keys, sent), 0, out)
            expected.update((None if k == "-" else k, sent + i) for i, k in enumerate(keys))
            sent += len(keys)
        elif action == "answer" and later.open:
            data.draw(st.sampled_from(later.open)).finish()
        elif action == "watermark" and operators[0].ready() and sent - 1 > told:
            told = sent - 1
            operators[0].on_watermark(told, out)
        elif action == "restore":
            restored = True
            snapshots = [operator.snapshot(1) for operator in operators]
            later.calls.clear()
            parallelism = data.draw(st.integers(1, 3))
            operators = [
                opened(later, None, subtask, parallelism, ordered=ordered, concurrency=concurrency)
                for subtask in range(parallelism)
            ]
            for operator in operators:
                operator.restore(snapshots)
        for operator in operators:
            got += look(operator, out)
    while later.open:
        later.open[-1].finish()
        for operator in operators:
            got += look(operator, out)
    rows = [item for item in got if isinstance(item, tuple)]
    assert Counter(row[:2] for row in rows) == expected
    assert all(w == (None if k in ("x", None) else k.upper()) for k, _, w, _ in rows)
    assert all(operator.snapshot(2)["waiting"].num_rows == 0 for operator in operators)
    if not restored:
        seen: list[int] = []
        for item in got:
            if isinstance(item, int):
                assert set(range(item + 1)) <= set(seen)
            else:
                seen.append(item[1])
        if ordered:
            assert seen == sorted(seen)


def test_a_checkpoint_of_other_columns_is_refused():
    later = Later()
    operator = opened(later)
    operator.process(records("a"), 0, Collected())
    snapshot = operator.snapshot(1)
    other = AsyncLookup(known, ("k",), ADDED).create([SCHEMA.append(pa.field("new", pa.int64()))])
    other.open(OperatorContext(uid="lookup"))
    with pytest.raises(CheckpointError, match="""the state of operator 'lookup' has no "new" in its waiting rows"""):
        other.restore([snapshot])


# whole jobs ----------------------------------------------------------------------------------------------------------


def stream(n: int = 60) -> wb.Stream:
    table = pa.table(
        {"k": ["abc"[i % 3] for i in range(n)], "n": range(n), "t": pa.array(range(n)).cast(pa.timestamp("us"))}
    )
    return wb.Stream.from_table(table, event_time="t")


async def slow_upper(k: str, n: int) -> dict[str, str]:
    await asyncio.sleep(0.001)
    return {"w": f"{k}{n}"}


def plain_upper(k: str, n: int) -> dict[str, str]:
    time.sleep(0.0005)
    return {"w": f"{k}{n}"}


@pytest.mark.parametrize("driver", ["live", "stepping"])
@pytest.mark.parametrize("function", [slow_upper, plain_upper])
@pytest.mark.parametrize("behind_an_exchange", [False, True])
def test_a_job_asks_and_loses_nothing_at_its_end(driver, function, behind_an_exchange):
    source = stream().rebalance() if behind_an_exchange else stream()
    found = source.lookup_async(function, key=["k", "n"], schema=ADDED, concurrency=4, ordered=False)
    job = found.sink_to(wb.TableSink("out")).run("lookup", buffer_size=7, driver=driver, parallelism=2)
    if driver == "stepping":
        while not job.over:
            job.stepper.step()
    else:
        job.wait("120s")
    rows = job.table("out").to_pylist()
    assert sorted(row["n"] for row in rows) == list(range(60))
    assert all(row["w"] == f"{row['k']}{row['n']}" for row in rows)
    for thread in threading.enumerate():
        if "lookup/calls" in thread.name:
            thread.join(5)
            assert not thread.is_alive()


def test_after_a_failure_what_was_out_is_asked_again():
    calls: Counter[str] = Counter()

    def unreliable(k: str, n: int) -> dict[str, str]:
        calls[f"{k}{n}"] += 1
        if n == 30 and calls["a30"] == 1:
            raise ConnectionError("lost")
        return {"w": f"{k}{n}"}

    found = stream().lookup_async(unreliable, key=["k", "n"], schema=ADDED)
    job = found.sink_to(wb.TableSink("out")).run(
        "lookup", buffer_size=5, restart=wb.restart.fixed_delay(1, "100ms"), checkpoint_interval="10ms"
    )
    job.wait("120s")
    rows = job.table("out").to_pylist()
    assert [row["n"] for row in rows] == list(range(60))
    assert calls["a30"] == 2


def test_the_executor_runs_calls_side_by_side_and_its_threads_end():
    executor = ThreadedExecutor("test")
    barrier = threading.Barrier(3)
    answers = [executor.submit(barrier.wait, 60) for _ in range(3)]  # passes only when all three run at once
    assert sorted(answer.result(timeout=60) for answer in answers) == [0, 1, 2]
    failing = executor.submit(fails, "k")
    with pytest.raises(OSError, match="gone"):
        failing.result(timeout=60)
    executor.close()
    for thread in threading.enumerate():
        if thread.name.startswith("test/calls"):
            thread.join(5)
            assert not thread.is_alive()


def test_without_an_executor_a_coroutine_function_is_refused():
    answer = Inline().submit(slow_upper, "a", 1)
    assert answer.done()
    with pytest.raises(RecordError, match="a coroutine function needs a driver with an event loop: run the job live"):
        answer.result()
    assert Given(5).result() == 5


@pytest.mark.parametrize(
    ("arguments", "kind", "said"),
    [
        ({"key": "z"}, PlanError, "unknown key column 'z': Valid: k, n, t"),
        ({"key": []}, PlanError, "lookup_async needs at least one key column: write for example key='origin'"),
        (
            {"schema": {"n": pa.int64()}},
            PlanError,
            "lookup_async adds a column 'n', which the stream already has: give it another name",
        ),
        (
            {"how": "outer"},
            SettingError,
            "how is 'outer': a lookup can be 'left' (nulls where nothing is known) or 'inner'",
        ),
        ({"concurrency": 0}, SettingError, "concurrency is 0: at least one call must be allowed at a time"),
        (
            {"cache": "soon"},
            SettingError,
            "cache is 'soon': write a number with a unit (us, ms, s, min, h, d), for example '50ms'",
        ),
        ({"timeout": "0s"}, SettingError, "timeout is 0: a call needs some time, for example '5s'"),
    ],
)
def test_what_is_refused_is_said_with_the_users_line(arguments, kind, said):
    with pytest.raises(kind) as caught:
        stream().lookup_async(known, **{"key": "k", "schema": ADDED, **arguments})
    assert caught.value.message == said
    assert "test_lookup.py" in str(caught.value)


def test_how_it_is_shown():
    assert AsyncLookup(known, ("k",), ADDED, 8).describe() == "known(k), 8 at a time"
