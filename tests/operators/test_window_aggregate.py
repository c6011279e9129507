"""Tumbling windows with lateness: the operator compared with a dictionary of lists."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Records
from workbench.errors import PlanError, RecordError, SettingError
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.contract.base import OperatorContext
from workbench.operators.windows import tumbling as window_tumbling
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.state.key_groups import KeyPartitioner
from workbench.windows import tumbling
from workbench.windows.tumbling import Tumbling

SCHEMA = pa.schema({"k": pa.string(), "v": pa.int64()})
AGGREGATES = (
    ("rows", agg.count()),
    ("total", agg.sum("v")),
    ("least", agg.min("v")),
    ("most", agg.max("v")),
    ("mean", agg.mean("v")),
)


class Collected:
    """An output that keeps what is emitted."""

    def __init__(self) -> None:
        self.rows: list[tuple] = []
        self.late: list[tuple] = []
        self.times: list[int] = []

    def emit(self, records: Records) -> None:
        self.rows += rows_of(records.batch)
        self.times += records.timestamps.tolist()

    def emit_side(self, tag: str, records: Records) -> None:
        assert tag == "late"
        self.late += zip(*(c.to_pylist() for c in records.batch.columns), records.timestamps.tolist(), strict=True)


def rows_of(batch: pa.RecordBatch) -> list[tuple]:
    columns = [c.view(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in batch.columns]
    return list(zip(*(c.to_pylist() for c in columns), strict=True))


def records(rows: list[tuple]) -> Records:
    """Rows are (key, value, event time)."""
    keys, values, times = zip(*rows, strict=True) if rows else ([], [], [])
    batch = pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), pa.array(values, pa.int64())], schema=SCHEMA)
    return Records(batch, np.array(times, np.int64))


def opened(spec: WindowAggregate, subtask: int = 0, parallelism: int = 1):
    operator = spec.create([SCHEMA])
    operator.open(OperatorContext(subtask=subtask, parallelism=parallelism))
    return operator


class Model:
    """What the operator promises, one record at a time."""

    def __init__(self, spec: WindowAggregate) -> None:
        self.spec, self.size, self.offset = spec, spec.window.size_us, spec.window.offset_us
        self.windows: dict[tuple, list] = {}
        self.watermark = NO_TIME

    def process(self, rows: list[tuple]) -> tuple[list[tuple], list[tuple]]:
        late, updated = [], []
        for key, value, time in rows:
            if time == NO_TIME:
                continue
            start = (time - self.offset) // self.size * self.size + self.offset
            last = start + self.size - 1
            if last + self.spec.allowed_lateness_us <= self.watermark:
                late.append((key, value, time))
                continue
            group = (start, key if self.spec.keys else None)
            self.windows.setdefault(group, []).append(value)
            if last <= self.watermark and group not in updated:
                updated.append(group)
        return self.results(updated), late

    def advance(self, watermark: int) -> list[tuple]:
        before, self.watermark = self.watermark, max(self.watermark, watermark)
        due = [g for g in self.windows if before < g[0] + self.size - 1 <= self.watermark]
        fired = self.results(due)
        lateness = self.spec.allowed_lateness_us
        self.windows = {
            g: values for g, values in self.windows.items() if g[0] + self.size - 1 + lateness > self.watermark
        }
        return fired

    def results(self, groups: list[tuple]) -> list[tuple]:
        appearance = list(self.windows)
        rows = []
        for start, key in sorted(groups, key=lambda group: (group[0], appearance.index(group))):
            values = self.windows[start, key]
            some = [value for value in values if value is not None]
            folded = (sum(some), min(some), max(some), sum(some) / len(some)) if some else (None,) * 4
            rows.append((*([key] if self.spec.keys else []), start, start + self.size, len(values), *folded))
        return rows


@pytest.fixture(autouse=True, scope="module")
def _pack_early():
    """Let the operator pack its entries also when they are few."""
    few, window_tumbling._FEW_ENTRIES = window_tumbling._FEW_ENTRIES, 2
    yield
    window_tumbling._FEW_ENTRIES = few


TIMES = st.one_of(st.integers(-60, 60), st.integers(-20, 20), st.just(NO_TIME))
ROW = st.tuples(st.sampled_from(["a", "b", "c", "d", None]), st.one_of(st.none(), st.integers(-9, 9)), TIMES)
ACTION = st.one_of(
    st.tuples(st.just("batch"), st.lists(ROW, max_size=12)),
    st.tuples(st.just("watermark"), st.integers(-70, 70)),
    st.tuples(st.just("restore"), st.integers(1, 4)),
)
SPEC = st.builds(
    lambda keys, size, offset, lateness: WindowAggregate(
        keys, Tumbling(size, offset % size), AGGREGATES, lateness, "late"
    ),
    st.sampled_from([("k",), ()]),
    st.integers(1, 25),
    st.integers(0, 24),
    st.sampled_from([0, 0, 3, 30]),
)


@settings(max_examples=200)
@given(SPEC, st.lists(ACTION, max_size=12))
def test_any_run_gives_what_the_model_gives(spec, actions):
    model, operators, ordered = Model(spec), [opened(spec)], True
    for action, argument in [*actions, ("watermark", MAX_TIME)]:
        out = Collected()
        late: list[tuple] = []
        if action == "batch":
            wanted, late = model.process(argument)
            everything = records(argument)
            parts = [everything] + [None] * (len(operators) - 1)
            if spec.keys:
                parts = KeyPartitioner(["k"], SCHEMA, len(operators)).split(everything)
            for operator, part in zip(operators, parts, strict=True):
                if part is not None:
                    operator.process(part, 0, out)
        elif action == "watermark":
            wanted = model.advance(argument)
            for operator in operators:
                operator.on_watermark(argument, out)
        else:
            wanted = []
            ordered = ordered and argument == 1
            snapshots = [operator.snapshot(1) for operator in operators]
            for operator in operators:  # what a snapshot holds does not change with the live state
                operator.process(records([("a", 1, 10**6), ("e", 2, 10**6)]), 0, Collected())
                operator.on_watermark(10**6, Collected())
            operators = [opened(spec, subtask, argument) for subtask in range(argument)]
            for operator in operators:
                operator.restore(snapshots)
        assert out.rows == wanted if ordered else sorted(map(repr, out.rows)) == sorted(map(repr, wanted))
        assert sorted(map(repr, out.late)) == sorted(map(repr, late))
        assert out.times == [row[len(spec.keys) + 1] - 1 for row in out.rows]
    assert sum(operator.snapshot(2)["windows"].num_rows for operator in operators) == 0


def test_a_late_record_updates_a_fired_window_until_its_lateness_is_over():
    spec = WindowAggregate(("k",), Tumbling(10), AGGREGATES[:2], 5)
    operator, out = opened(spec), Collected()
    operator.process(records([("a", 1, 3), ("b", 2, 9), ("a", 5, 12)]), 0, out)
    operator.on_watermark(8, out)
    assert out.rows == []
    operator.on_watermark(9, out)
    assert out.rows == [("a", 0, 10, 1, 1), ("b", 0, 10, 1, 2)]
    operator.process(records([("a", 10, 0), ("a", 20, 1)]), 0, out)
    assert out.rows[2:] == [("a", 0, 10, 3, 31)]
    operator.on_watermark(13, out)
    operator.process(records([("b", 1, 4)]), 0, out)
    assert out.rows[3:] == [("b", 0, 10, 2, 3)]
    operator.on_watermark(14, out)
    operator.process(records([("b", 1, 4)]), 0, out)
    assert out.rows[4:] == []
    counters = operator._context.counters
    assert (counters.numLateRecordsDropped, counters.numFiredTimers) == (1, 4)


def test_late_records_that_someone_takes_are_not_counted_as_dropped():
    operator, out = opened(WindowAggregate(("k",), Tumbling(10), AGGREGATES, 0, "late")), Collected()
    operator.on_watermark(9, out)
    operator.process(records([("a", 1, 9), ("b", 2, 10), (None, None, -1)]), 0, out)
    assert out.late == [("a", 1, 9), (None, None, -1)]
    assert operator._context.counters.numLateRecordsDropped == 0


def test_records_without_time_are_counted_and_a_stream_without_times_is_refused():
    operator, out = opened(WindowAggregate((), Tumbling(10), AGGREGATES)), Collected()
    operator.process(records([("a", 1, NO_TIME), ("b", 2, 5), ("a", 1, NO_TIME)]), 0, out)
    operator.on_watermark(MAX_TIME, out)
    assert [row[2] for row in out.rows] == [1]
    assert operator._context.counters.numRecordsWithoutTimestamp == 2
    with pytest.raises(RecordError, match="records without event times reached a window: name the event-time column"):
        operator.process(Records(records([("a", 1, 1)]).batch), 0, out)


def test_the_state_does_not_grow_with_the_windows_and_keys_that_have_passed():
    operator, out = opened(WindowAggregate(("k",), Tumbling(10), AGGREGATES)), Collected()
    for window in range(300):
        operator.process(records([(f"{window}-{i}", i, 10 * window + i) for i in range(10)]), 0, out)
        operator.on_watermark(10 * window + 9, out)
    assert len(out.rows) == 3000
    assert len(operator._entries) <= 10
    assert len(operator._entries.index) <= 10


def test_many_keys_and_windows_agree_with_pandas():
    rng = np.random.default_rng(5)
    n = 50_000
    times = np.arange(n) * 20 + rng.integers(0, 2_000, n)
    data = pa.record_batch({"k": rng.integers(0, 700, n), "v": rng.normal(size=n)})
    spec = WindowAggregate(("k",), Tumbling(10_000), (("n", agg.count()), ("s", agg.sum("v")), ("x", agg.max("v"))))
    operator, out = spec.create([data.schema]), Collected()
    operator.open(OperatorContext())
    for at in range(0, n, 1_700):
        operator.process(Records(data, times).slice(at, min(1_700, n - at)), 0, out)
        operator.on_watermark(20 * at - 1, out)
    operator.on_watermark(MAX_TIME, out)
    frame = data.to_pandas().assign(w=times // 10_000 * 10_000)
    grouped = frame.groupby(["k", "w"])["v"].agg(["size", "sum", "max"]).reset_index()
    want = {(k, w): (size, total, most) for k, w, size, total, most in grouped.itertuples(index=False)}
    got = {(k, w): (size, total, most) for k, w, _, size, total, most in out.rows}
    assert len(out.rows) == len(want)
    assert got.keys() == want.keys()
    for group, (size, total, most) in want.items():
        assert got[group] == (size, pytest.approx(total, abs=1e-9), most)


def test_output_columns_and_their_names():
    spec = WindowAggregate(("k",), tumbling("1h"), AGGREGATES[:1], 5_000_000, "late")
    schema = spec.output_schema([SCHEMA])
    assert schema.names == ["k", "window_start", "window_end", "rows"]
    assert schema.field("window_end").type == pa.timestamp("us", "UTC")
    assert spec.side_schemas([SCHEMA]) == {"late": SCHEMA}
    assert spec.describe() == "tumbling 1h, lateness 5s: count()"
    with pytest.raises(PlanError, match="two output columns are named 'window_end'"):
        WindowAggregate((), tumbling("1h"), (("window_end", agg.count()),)).output_schema([SCHEMA])
    with pytest.raises(PlanError, match="two output columns are named 'window_start'"):
        WindowAggregate(("window_start",), tumbling("1h"), AGGREGATES).output_schema(
            [SCHEMA.append(pa.field("window_start", pa.int64()))]
        )


def test_windows_are_described_and_checked():
    assert tumbling("1h").describe() == "tumbling 1h"
    assert tumbling(timedelta(days=1), "6h").describe() == "tumbling 1d from 6h"
    assert [Tumbling(10, 3).window_start(t) for t in (-8, -7, 2, 3, 12, 13)] == [-17, -7, -7, 3, 3, 13]
    for size, offset, message in (
        ("0s", "0s", "the window size is 0ms: it must be longer than zero"),
        ("-1h", "0s", "window size is '-1h': a duration cannot be negative"),
        ("1h", "1h", "the window offset is 1h: it must be at least zero and shorter than the window size, 1h"),
    ):
        with pytest.raises(SettingError) as error:
            tumbling(size, offset)
        assert str(error.value) == message
    with pytest.raises(SettingError, match="allowed_lateness is -1us: a duration cannot be negative"):
        WindowAggregate((), tumbling("1h"), AGGREGATES, -1)
