"""Poison records: each operator with a user's function, compared with plain loops over the records (I15)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings

import workbench as wb
from workbench.durations import NO_TIME
from workbench.elements import Records
from workbench.lab import simulate
from workbench.operators.aggregates.reduce import Reduce
from workbench.operators.contract.base import Operator, OperatorContext, Output
from workbench.operators.functions.called_function import CalledFunction
from workbench.operators.functions.dead_letters import SCHEMA, TAG, key_text
from workbench.operators.functions.record_loop import CHUNK
from workbench.operators.process.process import Process
from workbench.operators.stateless.filter_function import FilterFunction
from workbench.operators.stateless.map import FlatMap, Map
from workbench.operators.stateless.map_batches import MapBatches

INPUT = pa.schema([("k", pa.string()), ("v", pa.int64())])
RAISES, UNFIT, WRONG = -1, -2, -3
"""Values on which the functions raise, give what does not fit its column, and give another row than declared."""
POISON = (RAISES, UNFIT, WRONG)

Row = tuple[str, int]


class Collected(Output):
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.times: list[int] = []
        self.letters: list[dict[str, Any]] = []
        self.letter_times: list[int] = []

    def emit(self, records: Records) -> None:
        self.rows += records.batch.to_pylist()
        self.times += [] if records.timestamps is None else records.timestamps.tolist()

    def emit_side(self, tag: str, records: Records) -> None:
        assert tag == TAG
        assert records.batch.schema.equals(SCHEMA)
        self.letters += records.batch.to_pylist()
        self.letter_times += [] if records.timestamps is None else records.timestamps.tolist()


def run(spec: Any, rows: list[Row], cuts: list[int], *, timed: bool = True) -> tuple[Collected, OperatorContext]:
    """Records with the event times 0, 10, 20, ... in batches that end at `cuts`."""
    operator: Operator = spec.create([INPUT])
    context, out = OperatorContext(uid="the-uid", subtask=3), Collected()
    operator.open(context)
    borders = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for begin, end in pairwise(borders):
        part = rows[begin:end]
        batch = pa.record_batch([[key for key, _ in part], [value for _, value in part]], schema=INPUT)
        times = np.arange(begin, end) * 10 if timed else None
        operator.process(Records(batch, times), 0, out)
    operator.close()
    return out, context


def check(
    out: Collected, context: OperatorContext, rows: list[Row], expected: list[tuple[dict[str, Any], int]], keyed: bool
) -> None:
    assert list(zip(out.rows, out.times, strict=True)) == expected
    poison = [(key, value, 10 * at) for at, (key, value) in enumerate(rows) if value in POISON]
    letters = [(json.loads(letter["record"]), letter["event_time"]) for letter in out.letters]
    instants = [datetime.fromtimestamp(time / 1e6, UTC) for _, _, time in poison]
    assert letters == [({"k": k, "v": v}, at) for (k, v, _), at in zip(poison, instants, strict=True)]
    assert out.letter_times == [time for _, _, time in poison]
    assert {(letter["operator"], letter["subtask"]) for letter in out.letters} <= {("the-uid", 3)}
    assert [letter["key"] for letter in out.letters] == [key if keyed else None for key, _, _ in poison]
    assert context.counters.numRecordsInErrors == len(poison)


def fails(value: int) -> Any:
    """What a function does with a value: raise, or give something that does not fit an int64 column."""
    if value == RAISES:
        raise ValueError("a bad value")
    return "no number" if value == UNFIT else None if value != WRONG else ()


INPUTS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([*POISON, *range(20)])), max_size=40)
CUTS = st.lists(st.integers(0, 40), max_size=4)
fast = settings(max_examples=60)


def mapped(record: dict[str, Any]) -> Any:
    bad = fails(record["v"])
    return {"double": 2 * record["v"]} if bad is None else {"double": bad} if bad else {"triple": 3}


@fast
@given(INPUTS, CUTS)
def test_map(rows: list[Row], cuts: list[int]) -> None:
    out, context = run(Map(mapped, {"double": pa.int64()}, on_error="dead_letter"), rows, cuts)
    expected = [({"double": 2 * value}, 10 * at) for at, (_, value) in enumerate(rows) if value not in POISON]
    check(out, context, rows, expected, keyed=False)


@fast
@given(INPUTS, CUTS, st.booleans())
def test_flat_map(rows: list[Row], cuts: list[int], lazily: bool) -> None:
    def several(record: dict[str, Any]) -> Any:
        for n in range(record["v"] % 3):
            yield {"n": n}
        bad = fails(record["v"])  # behind the first rows, which must not stay
        if bad is not None:
            yield {"n": bad} if bad else {"m": 1}

    function = several if lazily else lambda record: list(several(record))
    out, context = run(FlatMap(function, {"n": pa.int64()}, on_error="dead_letter"), rows, cuts)
    good = [(value, 10 * at) for at, (_, value) in enumerate(rows) if value not in POISON]
    expected = [({"n": n}, time) for value, time in good for n in range(value % 3)]
    check(out, context, rows, expected, keyed=False)


@fast
@given(INPUTS, CUTS)
def test_process_goes_on_with_the_state_of_the_key(rows: list[Row], cuts: list[int]) -> None:
    def total(record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
        value = record["v"]
        bad = fails(value)
        state.total = (state.total or 0) + (0 if value in POISON else value)
        row = {"k": ctx.key, "total": state.total}
        if bad is not None:
            return [row, {**row, "total": bad}] if bad else [row, {}]
        return None if value % 3 == 0 else row if value % 3 == 1 else [row, row]

    spec = Process(
        ("k",), total, {"k": pa.string(), "total": pa.int64()}, {"total": pa.int64()}, on_error="dead_letter"
    )
    out, context = run(spec, rows, cuts)
    totals: dict[str, int] = {}
    expected = []
    for at, (key, value) in enumerate(rows):
        if value not in POISON:
            totals[key] = totals.get(key, 0) + value
            expected += [({"k": key, "total": totals[key]}, 10 * at)] * (value % 3)
    check(out, context, rows, expected, keyed=True)


@fast
@given(INPUTS, CUTS)
def test_reduce_holds_what_it_held(rows: list[Row], cuts: list[int]) -> None:
    def add(held: dict[str, Any], new: dict[str, Any]) -> Any:
        held["v"] += new["v"] if new["v"] >= 0 else 1000  # also what a failing call has changed is undone
        bad = fails(new["v"])
        return held if bad is None else {"k": held["k"], "v": bad} if bad else {"k": "?"}

    out, context = run(Reduce(("k",), add, on_error="dead_letter"), [("a", 5), ("b", 7), *rows], [*cuts, 2])
    held = {"a": 5, "b": 7}
    expected: list[tuple[dict[str, Any], int]] = [({"k": "a", "v": 5}, 0), ({"k": "b", "v": 7}, 10)]
    for at, (key, value) in enumerate(rows, 2):
        if value not in POISON:
            held[key] += value
            expected.append(({"k": key, "v": held[key]}, 10 * at))
    check(out, context, [("a", 5), ("b", 7), *rows], expected, keyed=True)


def of_columns(v: int) -> Any:
    bad = fails(v)
    return 2 * v if bad is None else bad


@fast
@given(INPUTS, CUTS)
def test_map_and_filter_of_columns(rows: list[Row], cuts: list[int]) -> None:
    spec = Map(of_columns, {"double": pa.int64()}, ("v",), ("k",), on_error="dead_letter")
    out, context = run(spec, rows, cuts)
    good = [(key, value, 10 * at) for at, (key, value) in enumerate(rows) if value not in POISON]
    check(out, context, rows, [({"k": key, "double": 2 * value}, time) for key, value, time in good], keyed=False)

    def odd(v: int) -> Any:
        bad = fails(v)
        return v % 2 == 1 if bad is None else bad

    out, context = run(FilterFunction(CalledFunction("filter", odd, ("v",), on_error="dead_letter")), rows, cuts)
    expected = [({"k": key, "v": value}, time) for key, value, time in good if value % 2 == 1]
    check(out, context, rows, expected, keyed=False)


def test_a_compiled_function() -> None:
    def inverse(v: int) -> float:
        if v == 0:
            raise ValueError("no inverse")
        return 60 // v

    spec = Map(inverse, {"w": pa.int64()}, ("v",), compiled=True, on_error="dead_letter")
    out, context = run(spec, [("a", v) for v in (1, 0, 2, 0, 0, 3)], [])
    assert [row["w"] for row in out.rows] == [60, 30, 20]
    assert [json.loads(letter["record"])["v"] for letter in out.letters] == [0, 0, 0]
    assert out.times == [0, 20, 50]
    assert context.counters.numRecordsInErrors == 3


@fast
@given(INPUTS, CUTS)
def test_map_batches_keeps_the_good_records_of_a_batch(rows: list[Row], cuts: list[int]) -> None:
    def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
        values = batch.column("v").to_pylist()
        if RAISES in values:
            raise ValueError("a bad value")
        if UNFIT in values:
            return pa.record_batch({"double": ["text"] * len(values)})
        if WRONG in values:
            return pa.record_batch({"double": pa.array([], pa.int64())})
        return pa.RecordBatch.from_arrays([pc.multiply(batch.column("v"), 2)], ["double"])

    out, context = run(MapBatches(doubled, {"double": pa.int64()}, on_error="dead_letter"), rows, cuts)
    expected = [({"double": 2 * value}, 10 * at) for at, (_, value) in enumerate(rows) if value not in POISON]
    check(out, context, rows, expected, keyed=False)


def test_chunks_of_a_large_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("a", RAISES if n % 1000 == 999 else n) for n in range(5000)]
    out, context = run(Map(mapped, {"double": pa.int64()}, on_error="dead_letter"), rows, [])
    assert CHUNK < 5000
    assert [row["double"] for row in out.rows] == [2 * n for n in range(5000) if n % 1000 != 999]
    assert out.letter_times == [9990, 19990, 29990, 39990, 49990]
    assert context.counters.numRecordsInErrors == 5


def test_without_event_times() -> None:
    out, _ = run(Map(mapped, {"double": pa.int64()}, on_error="dead_letter"), [("a", RAISES)], [], timed=False)
    assert (out.letter_times, out.letters[0]["event_time"]) == ([], None)


def test_what_a_dead_letter_says() -> None:
    out, _ = run(Map(mapped, {"double": pa.int64()}, on_error="dead_letter"), [("a", v) for v in POISON], [])
    assert [letter["error"] for letter in out.letters] == [
        "map function 'mapped' raised ValueError: a bad value on record {'k': 'a', 'v': -1}",
        "map function 'mapped' returned 'no number' for column 'double', which is declared as int64, "
        "on record {'k': 'a', 'v': -2}",
        "map function 'mapped' returned a dict that lacks double and has also triple, expected a dict with the columns "
        "double, on record {'k': 'a', 'v': -3}",
    ]


def test_keys_as_text() -> None:
    assert key_text("JFK") == "JFK"
    assert key_text(7) == "7"
    assert key_text(None) == "None"
    assert key_text(("JFK", 7)) == '["JFK", 7]'


# what is refused -----------------------------------------------------------------------------------------------------

STREAM = wb.Stream.from_table(pa.table({"k": ["a"], "v": [1]}))


@pytest.mark.parametrize(
    "build",
    [
        lambda: STREAM.map(mapped, {"double": pa.int64()}, on_error="ignore"),  # type: ignore[arg-type]
        lambda: STREAM.map(of_columns, {"double": pa.int64()}, columns="v", on_error="ignore"),  # type: ignore[arg-type]
        lambda: STREAM.filter(lambda v: v > 1, columns="v", on_error="ignore"),  # type: ignore[arg-type]
        lambda: STREAM.flat_map(lambda record: [], {"n": pa.int64()}, on_error="ignore"),  # type: ignore[arg-type]
        lambda: STREAM.map_batches(lambda batch: batch, on_error="ignore"),  # type: ignore[arg-type]
        lambda: STREAM.key_by("k").reduce(lambda a, b: a, on_error="ignore"),  # type: ignore[arg-type]
        lambda: STREAM.key_by("k").process(lambda r, s: None, {"n": pa.int64()}, on_error="ignore"),  # type: ignore[arg-type]
    ],
)
def test_policies_that_there_are_not(build: Callable[[], object]) -> None:
    with pytest.raises(wb.errors.PlanError, match="unknown on_error 'ignore': Valid: dead_letter, fail"):
        build()


def test_where_there_are_no_dead_letters() -> None:
    with pytest.raises(wb.errors.PlanError, match="give it on_error='dead_letter'"):
        STREAM.map(mapped, {"double": pa.int64()}).dead_letters()
    with pytest.raises(wb.errors.PlanError, match="no record fails an expression"):
        STREAM.filter("v > 1", on_error="dead_letter")
    with pytest.raises(wb.errors.PlanError, match="the side output 'dead_letters' is for dead letters"):
        STREAM.key_by("k").process(
            lambda r, s: None,
            {"n": pa.int64()},
            side_outputs={"dead_letters": {"n": pa.int64()}},
            on_error="dead_letter",
        )


# in jobs -------------------------------------------------------------------------------------------------------------


def test_they_are_counted_and_columns_that_nobody_reads_are_in_them() -> None:
    table = pa.table({"k": ["a", "b", "c"], "v": [1, RAISES, 2], "unread": [7, 8, 9]})
    good = (
        wb.Stream.from_table(table)
        .filter("k <> 'x'")
        .map(of_columns, {"w": pa.int64()}, columns="v", on_error="dead_letter")
    )
    pipeline = good.sink_to(wb.TableSink("good")) + good.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("counted-poison")
    assert job.wait("120s") == "FINISHED"
    assert job.table("good")["w"].to_pylist() == [2, 4]
    [letter] = job.table("bad").to_pylist()
    assert json.loads(letter["record"]) == {"k": "b", "v": -1, "unread": 8}
    assert (letter["operator"], letter["subtask"], letter["key"]) == ("map", 0, None)
    assert letter["position"] == "table, row 1"
    assert sum(int(str(row["numRecordsInErrors"])) for row in job.metrics()) == 1


def test_a_job_that_fails_names_the_task_the_key_and_the_record() -> None:
    def picky(record: dict[str, Any], state: wb.state.State) -> Any:
        return fails(record["v"])

    table = pa.table({"k": ["a", "b"], "v": [1, RAISES]})
    keyed = wb.Stream.from_table(table).key_by("k").process(picky, {"n": pa.int64()})
    job = keyed.sink_to(wb.TableSink("none")).run("picky", restart="none")
    with pytest.raises(wb.errors.JobError) as caught:
        job.wait("120s")
    assert str(caught.value).startswith(
        "the job 'picky' failed: process function 'test_a_job_that_fails_names_the_task_the_key_and_the_record.<locals>"
        ".picky' raised ValueError: a bad value for key 'b' on record {'k': 'b', 'v': -1} ("
    )
    assert caught.value.message.endswith("(process[0] failed)")
    assert caught.value.trace.endswith('raise ValueError("a bad value")')


def test_without_a_reader_they_are_counted_and_dropped() -> None:
    table = pa.table({"k": ["a", "b"], "v": [1, RAISES]})
    job = (
        wb.Stream.from_table(table)
        .map(mapped, {"double": pa.int64()}, on_error="dead_letter")
        .sink_to(wb.TableSink("good"))
        .run("dropped-poison")
    )
    assert job.wait("120s") == "FINISHED"
    assert job.table().to_pylist() == [{"double": 2}]
    assert sum(int(str(row["numRecordsInErrors"])) for row in job.metrics()) == 1


def test_times_of_records_without_one_are_null() -> None:
    operator = Map(mapped, {"double": pa.int64()}, on_error="dead_letter").create([INPUT])
    out = Collected()
    operator.open(OperatorContext())
    batch = pa.record_batch([["a", "a"], [RAISES, RAISES]], schema=INPUT)
    operator.process(Records(batch, np.array([NO_TIME, 5])), 0, out)
    assert [letter["event_time"] for letter in out.letters] == [None, datetime.fromtimestamp(5e-6, UTC)]
    assert out.letter_times == [NO_TIME, 5]


def test_under_failures_every_record_is_in_one_of_the_outputs() -> None:
    results = [simulate(seed, pipelines=["poisoned"]) for seed in range(40)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.restarts + result.processes - 1 for result in results) > 10


def test_dead_letters_go_to_any_sink(tmp_path: Path) -> None:
    table = pa.table({"k": ["a", "b"], "v": [RAISES, UNFIT]})
    stream = wb.Stream.from_table(table).map(mapped, {"double": pa.int64()}, on_error="dead_letter")
    sink = wb.SqlSink(f"sqlite:///{tmp_path}/letters.db", "letters")
    pipeline = stream.sink_to(wb.DiscardSink()) + stream.dead_letters().sink_to(sink)
    assert pipeline.run("letters").wait("120s") == "FINISHED"
    from databases import query

    assert query(sink.url, "SELECT record FROM letters ORDER BY 1") == [
        ('{"k": "a", "v": -1}',),
        ('{"k": "b", "v": -2}',),
    ]
