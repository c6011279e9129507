"""Joins of two streams and with a table: compared with nested loops, with DuckDB, and worked out by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Records
from workbench.errors import CheckpointError, ExpressionError, PlanError, RecordError, SettingError
from workbench.operators.changelogs.temporal_join import TemporalJoin
from workbench.operators.contract.base import Operator, OperatorContext
from workbench.operators.joins import groups as join_groups
from workbench.operators.joins import interval as join_interval
from workbench.operators.joins import rows as join_rows
from workbench.operators.joins.columns import How, JoinColumns, parse_on
from workbench.operators.joins.interval import IntervalJoin
from workbench.operators.joins.lookup import LookupJoin
from workbench.operators.joins.window import WindowJoin
from workbench.state.key_groups import KeyPartitioner
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

LEFT = pa.schema({"k": pa.string(), "n": pa.int32(), "l": pa.int64()})
RIGHT = pa.schema({"m": pa.int64(), "k": pa.dictionary(pa.int32(), pa.string()), "r": pa.int64()})
KEYS = (("k", "n"), ("k", "m"))
SCHEMAS = (LEFT, RIGHT)

Row = tuple[Any, ...]
"""(k, n, value, time)."""


class Collected:
    """An output that keeps rows, each with its event time at the end."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def emit(self, records: Records) -> None:
        records.batch.validate(full=True)
        times = [None] * len(records) if records.timestamps is None else records.timestamps.tolist()
        columns = [column.to_pylist() for column in records.batch.columns]
        self.rows += zip(*columns, times, strict=True)

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)


def records(port: int, rows: list[Row]) -> Records:
    keys, numbers, values, times = zip(*rows, strict=True) if rows else ((),) * 4
    by_name = {"k": keys, "n": numbers, "m": numbers, "l": values, "r": values}
    arrays = [pa.array(by_name[f.name], f.type) for f in SCHEMAS[port]]
    return Records(pa.RecordBatch.from_arrays(arrays, schema=SCHEMAS[port]), np.array(times, np.int64))


def opened(spec: Any, subtask: int = 0, parallelism: int = 1) -> Operator:
    operator: Operator = spec.create(SCHEMAS)
    operator.open(OperatorContext(subtask=subtask, parallelism=parallelism))
    return operator


def written(snapshot: dict[str, Any]) -> dict[str, Any]:
    """As the background writer stores it."""
    return {name: value() if callable(value) else value for name, value in snapshot.items()}


class Model:
    """A join, one record at a time, by loops over all records of the other side."""

    def __init__(self, spec: WindowJoin | IntervalJoin | TemporalJoin) -> None:
        self.spec = spec
        self.watermark = NO_TIME
        self.rows: tuple[list[Row], list[Row]] = ([], [])
        self.partnered: tuple[list[bool], list[bool]] = ([], [])
        self.dropped = 0
        self.timeless = 0

    def process(self, port: int, rows: list[Row]) -> list[Row]:
        came = []
        for row in rows:
            if row[3] == NO_TIME:
                self.timeless += 1
            elif self.late(row[3]):
                self.dropped += 1
            else:
                came += self.add(port, row)
        return came

    def late(self, time: int) -> bool:
        if not isinstance(self.spec, WindowJoin):
            return time <= self.watermark
        windows = self.windows(time)
        return bool(windows) and all(end - 1 <= self.watermark for _, end in windows)

    def windows(self, time: int) -> list[tuple[int, int]]:
        """By trial of every start: the windows that a time belongs to."""
        window = self.spec.window
        slide = window.slide_us if isinstance(window, Sliding) else window.size_us
        tried = range(time - window.size_us + 1, time + 1)
        return [(start, start + window.size_us) for start in tried if (start - window.offset_us) % slide == 0]

    def fit(self, left: Row, right: Row) -> bool:
        if None in left[:2] or left[:2] != right[:2]:
            return False
        if not isinstance(self.spec, IntervalJoin):
            return True
        if self.spec.until is not None and (left[2] is None or right[3] > left[2]):
            return False
        return self.spec.before_us <= right[3] - left[3] <= self.spec.after_us

    def add(self, port: int, row: Row) -> list[Row]:
        came = []
        self.rows[port].append(row)
        self.partnered[port].append(False)
        for at, other in enumerate(self.rows[1 - port]):
            left, right = (row, other) if port == 0 else (other, row)
            if self.fit(left, right):
                self.partnered[port][-1] = True
                self.partnered[1 - port][at] = True
                came.append((*left[:3], right[2], max(left[3], right[3])))
        return came if isinstance(self.spec, IntervalJoin) else []

    def advance(self, watermark: int) -> list[Row]:
        before, self.watermark = self.watermark, max(self.watermark, watermark)
        if isinstance(self.spec, TemporalJoin):
            return [
                (*row[:3], version and version[2], row[3])
                for row in self.rows[0]
                if before < row[3] <= self.watermark and ((version := self.latest(row)) or self.spec.columns.keeps_left)
            ]
        if isinstance(self.spec, WindowJoin):
            over = {w for side in self.rows for row in side for w in self.windows(row[3]) if w[1] - 1 <= watermark}
            return [row for window in over if window[1] - 1 > before for row in self.joined(window)]
        wait = max(self.spec.after_us, 0)
        return [
            (*row[:3], None, row[3] + wait)
            for row, partnered in zip(self.rows[0], self.partnered[0], strict=True)
            if self.spec.columns.keeps_left and not partnered and before < row[3] + wait <= self.watermark
        ]

    def latest(self, left: Row) -> Row | None:
        """The version of a left record; of equal times the last to arrive."""
        versions = [row for row in self.rows[1] if self.fit(left, row) and row[3] <= left[3]]
        return max(reversed(versions), key=lambda row: row[3]) if versions else None

    def joined(self, window: tuple[int, int]) -> list[Row]:
        """What comes out of one window; only records that came before it was over belong to it."""
        columns, last = self.spec.columns, window[1] - 1
        lefts, rights = ([row for row in side if window in self.windows(row[3])] for side in self.rows)
        came = [(*left[:3], right[2], last) for left in lefts for right in rights if self.fit(left, right)]
        if columns.keeps_left:
            came += [(*row[:3], None, last) for row in lefts if not any(self.fit(row, other) for other in rights)]
        if columns.keeps_right:
            alone = [row for row in rights if not any(self.fit(other, row) for other in lefts)]
            came += [(*row[:2], None, row[2], last) for row in alone]
        return came


@pytest.fixture(autouse=True, scope="module")
def _small_limits():
    """Reach what is done for many rows with few."""
    limits = ((join_interval, "_FEW_KEYS", 1), (join_interval, "_PAIRS_AT_ONCE", 3), (join_groups, "ROWS_AT_ONCE", 3))
    saved = [(module, name, getattr(module, name)) for module, name, _ in limits]
    for module, name, value in limits:
        setattr(module, name, value)
    yield
    for module, name, value in saved:
        setattr(module, name, value)


TIMES = st.one_of(st.integers(-20, 20), st.integers(-60, 60), st.just(NO_TIME))
ROW = st.tuples(
    st.sampled_from(["a", "b", "é", None]),
    st.sampled_from([1, 2, None]),
    st.one_of(st.none(), st.integers(0, 9)),
    TIMES,
)
ACTION = st.one_of(
    st.tuples(st.just("left"), st.lists(ROW, max_size=9)),
    st.tuples(st.just("right"), st.lists(ROW, max_size=9)),
    st.tuples(st.just("watermark"), st.integers(-70, 70)),
    st.tuples(st.just("restore"), st.integers(1, 3)),
)
HOW = st.sampled_from(["inner", "left", "outer"])
WINDOWED = st.builds(
    lambda how, size, slide, offset: WindowJoin(
        JoinColumns(*KEYS, how),
        Tumbling(size, offset % size) if slide is None else Sliding(size, slide, offset % slide),
    ),
    HOW,
    st.integers(1, 30),
    st.one_of(st.none(), st.integers(5, 40)),
    st.integers(0, 29),
)
INTERVAL = st.builds(
    lambda how, bounds: IntervalJoin(JoinColumns(*KEYS, how), min(bounds), max(bounds)),
    st.sampled_from(["inner", "left"]),
    st.tuples(st.integers(-25, 25), st.integers(-25, 25)),
)
UNTIL = st.builds(lambda before: IntervalJoin(JoinColumns(*KEYS), before, until="l"), st.integers(-25, 25))
TEMPORAL = st.builds(lambda how: TemporalJoin(JoinColumns(*KEYS, how)), st.sampled_from(["inner", "left"]))


@settings(max_examples=130)
@given(st.one_of(WINDOWED, INTERVAL, UNTIL, TEMPORAL), st.lists(ACTION, max_size=14))
def test_any_run_gives_what_nested_loops_give(spec, actions):
    model, operators, counters = Model(spec), [opened(spec)], [0, 0]
    for action, argument in [*actions, ("watermark", MAX_TIME)]:
        out = Collected()
        if action == "restore":
            wanted = []
            taken = [operator.snapshot(1) for operator in operators]
            for operator in operators:  # what a snapshot holds does not change with the live state
                for port in (0, 1):
                    operator.process(records(port, [("a", 1, 1, 100), ("z", 7, 1, 100)]), port, Collected())
                operator.on_watermark(10**6, Collected())
            snapshots = [written(snapshot) for snapshot in taken]
            operators = [opened(spec, subtask, argument) for subtask in range(argument)]
            for operator in operators:
                operator.restore(snapshots)
        elif action == "watermark":
            wanted = model.advance(argument)
            for operator in operators:
                operator.on_watermark(argument, out)
        else:
            port = ("left", "right").index(action)
            wanted = model.process(port, argument)
            parts = KeyPartitioner(KEYS[port], SCHEMAS[port], len(operators)).split(records(port, argument))
            for operator, part in zip(operators, parts, strict=True):
                if part is not None:
                    count = operator._context.counters
                    before = count.numLateRecordsDropped, count.numRecordsWithoutTimestamp
                    operator.process(part, port, out)
                    counters[0] += count.numLateRecordsDropped - before[0]
                    counters[1] += count.numRecordsWithoutTimestamp - before[1]
        assert Counter(out.rows) == Counter(wanted)
    assert counters == [model.dropped, model.timeless]
    for operator in operators:
        snapshot = written(operator.snapshot(2))
        assert snapshot["left"].num_rows == 0
        rights = snapshot["right"].select(["column:k", "column:m"]).to_pylist()
        assert len({tuple(row.values()) for row in rights}) == len(rights)  # one version of each key, no other rows
        assert isinstance(spec, TemporalJoin) or not rights


def test_a_join_until_a_time_of_the_record_keeps_it_no_longer():
    operator, out = opened(IntervalJoin(JoinColumns(*KEYS), 0, until="l")), Collected()
    operator.process(records(0, [("a", 1, 9, 2), ("a", 1, 5, 2), ("a", 1, None, 2)]), 0, out)
    operator.process(records(1, [("a", 1, 20, 5), ("a", 1, 21, 7), ("a", 1, 22, 1)]), 1, out)
    assert sorted(out.rows) == [("a", 1, 5, 20, 5), ("a", 1, 9, 20, 5), ("a", 1, 9, 21, 7)]
    operator.on_watermark(5, out)
    operator.process(records(1, [("a", 1, 23, 9)]), 1, out)
    assert out.rows[3:] == [("a", 1, 9, 23, 9)]
    assert written(operator.snapshot(1))["left"].num_rows == 1
    operator.on_watermark(9, out)
    assert [len(side) for side in operator._sides] == [0, 0]


def test_a_join_until_a_column_is_inner_and_the_column_holds_times():
    with pytest.raises(SettingError, match="a join until l is 'inner'"):
        IntervalJoin(JoinColumns(*KEYS, "left"), 0, until="l")
    with pytest.raises(PlanError, match="needs a timestamp there, not string"):
        IntervalJoin(JoinColumns(*KEYS), 0, until="k").output_schema(SCHEMAS)
    with pytest.raises(PlanError, match="unknown column 'expires'"):
        IntervalJoin(JoinColumns(*KEYS), 0, until="expires").output_schema(SCHEMAS)


# by hand --------------------------------------------------------------------------------------------------------


def test_a_window_joins_when_it_ends_and_what_comes_out_has_the_time_of_its_end():
    operator = opened(WindowJoin(JoinColumns(*KEYS, "outer"), Tumbling(10)))
    out = Collected()
    operator.process(records(0, [("a", 1, 10, 3), ("a", 1, 11, 12), ("b", 1, 12, 4), (None, 1, 13, 5)]), 0, out)
    operator.process(records(1, [("a", 1, 20, 9), ("a", 1, 21, 0), ("c", 1, 22, 1), (None, 1, 23, 5)]), 1, out)
    operator.on_watermark(8, out)
    assert out.rows == []
    operator.on_watermark(9, out)
    assert sorted(out.rows, key=repr) == sorted(
        [
            ("a", 1, 10, 20, 9),
            ("a", 1, 10, 21, 9),
            ("b", 1, 12, None, 9),
            (None, 1, 13, None, 9),  # a null key equals nothing, not even a null key
            ("c", 1, None, 22, 9),
            (None, 1, None, 23, 9),
        ],
        key=repr,
    )
    out.rows.clear()
    operator.process(records(1, [("a", 1, 24, 9), ("a", 1, 25, 19)]), 1, out)
    operator.on_watermark(19, out)
    assert out.rows == [("a", 1, 11, 25, 19)]
    assert operator._context.counters.numLateRecordsDropped == 1


def test_an_interval_joins_at_once_and_tells_who_stayed_alone_when_that_is_certain():
    operator = opened(IntervalJoin(JoinColumns(*KEYS, "left"), -5, 10))
    out = Collected()
    operator.process(records(0, [("a", 1, 1, 100), ("b", 1, 2, 100)]), 0, out)
    operator.process(records(1, [("a", 1, 7, 95), ("a", 1, 8, 110), ("a", 1, 9, 94), ("a", 1, 6, 111)]), 1, out)
    operator.process(records(1, [("a", 1, 5, 106)]), 1, out)
    assert sorted(out.rows) == [
        ("a", 1, 1, 5, 106),
        ("a", 1, 1, 7, 100),
        ("a", 1, 1, 8, 110),
    ]  # both bounds belong to the interval
    out.rows.clear()
    operator.on_watermark(109, out)
    assert out.rows == []
    operator.on_watermark(110, out)
    assert out.rows == [("b", 1, 2, None, 110)]
    operator.process(records(0, [("a", 1, 3, 110), ("a", 1, 4, 111)]), 0, out)  # the first is late
    assert sorted(out.rows[1:]) == [("a", 1, 4, 5, 111), ("a", 1, 4, 6, 111), ("a", 1, 4, 8, 111)]
    assert operator._context.counters.numLateRecordsDropped == 1


def test_an_interval_join_keeps_only_what_may_still_find_a_partner():
    operator = opened(IntervalJoin(JoinColumns(*KEYS), -10, 10))
    out = Collected()
    for step in range(200):
        time = 10 * step
        operator.process(records(0, [(f"k{step}", i, i, time + i) for i in range(10)]), 0, out)
        operator.process(records(1, [(f"k{step}", i, i, time + i) for i in range(10)]), 1, out)
        operator.on_watermark(time + 9, out)
    assert len(out.rows) == 2000
    assert all(len(side) <= 30 for side in operator._sides)
    assert len(operator._index) <= 130
    assert all(len(side._runs) <= 6 for side in operator._sides)


@pytest.mark.parametrize("keys", [1, 400, 20_000])
def test_rows_are_found_in_whatever_order_they_were_added(keys):
    rng = np.random.default_rng(7)
    schema = pa.schema({"v": pa.int64()})
    kept = join_rows.TimedRows(schema)
    codes, times = rng.integers(0, keys, 20_000), rng.integers(0, 5_000, 20_000)
    at = 0
    for size in rng.integers(1, 900, 60):
        part = slice(at, at + int(size))
        batch = pa.record_batch([pa.array(np.arange(20_000)[part])], schema=schema)
        kept.add(batch, codes[part], times[part], np.zeros(len(batch), np.bool_))
        at = min(at + int(size), 20_000)
    kept.forget(999)
    wanted = np.concatenate([rng.integers(0, keys, 100), codes[:100]])
    when = np.concatenate([rng.integers(0, 5_000, 100), times[:100]])
    found = {
        (int(i), found.run.take(np.array([j])).column(0)[0].as_py())
        for found in kept.find(wanted, when, -100, 50)
        for i, j in zip(found.wanted, found.partners, strict=True)
    }
    near = [
        (i, j)
        for i in range(200)
        for j in np.flatnonzero(
            (codes[:at] == wanted[i]) & (when[i] - 100 <= times[:at]) & (times[:at] <= when[i] + 50)
        )
    ]
    assert {pair for pair in found if times[pair[1]] > 999} == {(i, int(j)) for i, j in near if times[j] > 999}
    assert len(near) > 100


# with a table -----------------------------------------------------------------------------------------------------


def test_a_table_gives_its_rows_in_order_and_nulls_where_it_has_none():
    table = pa.table({"code": pa.array([1, 2, None, 1], pa.int64()), "city": ["one", "two", "none", "uno"]})
    batch = pa.record_batch({"k": pa.array([2, 1, None, 9], pa.int32()), "city": ["a", "b", "c", "d"]})
    times = np.array([5, 6, 7, 8])
    for how, wanted in (
        ("inner", [(2, "a", "two", 5), (1, "b", "one", 6), (1, "b", "uno", 6)]),
        (
            "left",
            [(2, "a", "two", 5), (1, "b", "one", 6), (1, "b", "uno", 6), (None, "c", None, 7), (9, "d", None, 8)],
        ),
    ):
        spec = LookupJoin(JoinColumns(("k",), ("code",), how), table)
        out = Collected()
        operator = spec.create([batch.schema])
        operator.process(Records(batch, times), 0, out)
        assert out.rows == wanted
        assert spec.output_schema([batch.schema]).names == ["k", "city", "city_right"]
        assert spec.describe() == f"{how} join on k = code, table of 4 rows"
        out = Collected()
        operator.process(Records(batch.slice(0, 1)), 0, out)
        operator.process(Records(batch.slice(0, 0)), 0, out)
        assert out.rows == [(2, "a", "two", None)]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["x", "y", "z", None]), st.one_of(st.none(), st.integers(0, 2)))),
    st.lists(st.tuples(st.sampled_from(["x", "y", "w", None]), st.one_of(st.none(), st.integers(0, 2)))),
    st.sampled_from(["inner", "left"]),
)
def test_a_table_joins_as_in_duckdb(left, right, how):
    stream = pa.table(
        {"a": pa.array([a for a, _ in left], pa.string()), "b": pa.array([b for _, b in left], pa.int64())}
    ).append_column("i", pa.array(range(len(left)), pa.int64()))
    rows = pa.table(
        {"a": pa.array([a for a, _ in right], pa.string()), "b": pa.array([b for _, b in right], pa.int64())}
    ).append_column("j", pa.array(range(len(right)), pa.int64()))
    out = Collected()
    operator = LookupJoin(JoinColumns(("a", "b"), ("a", "b"), how), rows).create([stream.schema])
    for batch in stream.to_batches(max_chunksize=2):
        operator.process(Records(batch), 0, out)
    wanted = duckdb.sql(f"SELECT s.*, t.j FROM stream s {how} JOIN rows t ON s.a = t.a AND s.b = t.b").fetchall()
    assert Counter(row[:-1] for row in out.rows) == Counter(wanted)


# whole jobs -------------------------------------------------------------------------------------------------------


def random_stream(seed: int, value: str) -> pa.Table:
    rng = np.random.default_rng(seed)
    n = 3_000
    return pa.table(
        {
            "k": pa.array(rng.integers(0, 40, n)),
            value: pa.array(np.arange(n)),
            "t": pa.array(np.arange(n) * 1_000 + rng.integers(0, 50_000, n)).cast(pa.timestamp("us")),
        }
    )


JOBS: dict[str, tuple[dict[str, Any], str]] = {
    "window": (
        {"window": wb.tumbling("100ms"), "how": "outer"},
        "FULL JOIN r ON l.k = r.k AND epoch_us(l.t) // 100000 = epoch_us(r.t) // 100000",
    ),
    "interval": (
        {"between": ("-20ms", "5ms"), "how": "left"},
        "LEFT JOIN r ON l.k = r.k AND r.t BETWEEN l.t - INTERVAL 20 MILLISECOND AND l.t + INTERVAL 5 MILLISECOND",
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_a_job_joins_as_duckdb_does(name):
    arguments, condition = JOBS[name]
    left, right = random_stream(1, "l"), random_stream(2, "r").rename_columns(["key", "r", "t"])

    def stream(table: pa.Table) -> wb.Stream:
        return wb.Stream.from_table(table, event_time="t", out_of_orderness="60ms")

    joined = stream(left).join(stream(right), on={"k": "key"}, **arguments)
    assert joined.columns == ["k", "l", "t", "r", "t_right"]
    job = joined.sink_to(wb.TableSink("out")).run("join", parallelism=2, buffer_size=500)
    job.wait("120s")
    connection = duckdb.connect()
    connection.register("l", left)
    connection.register("r", right.rename_columns(["k", "r", "t"]))
    wanted = connection.sql(f"SELECT coalesce(l.k, r.k), l.l, r.r FROM l {condition}").fetchall()
    got = job.table("out").select(["k", "l", "r"]).to_pylist()
    assert Counter(tuple(row.values()) for row in got) == Counter(wanted)
    assert len(wanted) > 3_000


# what is refused --------------------------------------------------------------------------------------------------


def table_stream(**columns: pa.Array) -> wb.Stream:
    return wb.Stream.from_table(pa.table(columns))


def test_what_on_may_be():
    assert parse_on("a") == (("a",), ("a",))
    assert parse_on(["a", "b"]) == (("a", "b"), ("a", "b"))
    assert parse_on({"a": "x", "b": "y"}) == (("a", "b"), ("x", "y"))


@pytest.mark.parametrize(
    ("join", "kind", "said"),
    [
        (
            lambda a, b: a.join(b, on="k", window=wb.tumbling("1s"), between=("0s", "1s")),
            PlanError,
            "a join has either window= or between=: leave one out",
        ),
        (
            lambda a, b: a.join(b, on="x", window=wb.tumbling("1s")),
            PlanError,
            "on the left side: unknown key column 'x': Valid: k, v",
        ),
        (
            lambda a, b: a.join(b, on={"k": "w"}, window=wb.tumbling("1s")),
            PlanError,
            "'k' (int64) on the left side cannot equal 'w' (string) on the right: cast one of them with with_columns",
        ),
        (
            lambda a, b: a.join(b, on="k", window=wb.tumbling("1s"), suffix=""),
            PlanError,
            "both sides of the join have a column 'v', and 'v' is taken as well: choose another suffix, or rename a "
            "column with select",
        ),
        (
            lambda a, b: a.join(b, on="k", window=wb.tumbling("1s"), how="right"),
            SettingError,
            "unknown how 'right': Valid: inner, left, outer",
        ),
        (
            lambda a, b: a.join(b, on="k", window=wb.windows.count_tumbling(4)),
            PlanError,
            "a join cannot use count 4 windows: which records of two streams have the same number depends on how they "
            "arrive; use time windows, or between=",
        ),
        (
            lambda a, b: a.join(b, on="k", window=wb.windows.global_window()),
            PlanError,
            "a join cannot use global windows, which would keep all records until the input ends: use time windows, "
            "or between=",
        ),
        (
            lambda a, b: a.join(b, on="k", window=wb.session(column="gap")),
            ExpressionError,
            "session by gap: unknown column 'gap': Valid: k, v",
        ),
        (
            lambda a, b: a.join(b, on="k", between=("0s", "1s"), how="outer"),
            SettingError,
            "an interval join can be 'inner' or 'left', not 'outer': swap the sides, or use window=",
        ),
        (
            lambda a, b: a.join(b, on="k", between=("5s", "-5s")),
            SettingError,
            "between goes from 5s to -5s, so no time lies between: write the smaller bound first",
        ),
        (
            lambda a, b: a.join(b, on="k", between=("soon", "1s")),
            SettingError,
            "between is 'soon': write a number with a unit (us, ms, s, min, h, d), for example '50ms'",
        ),
        (
            lambda a, b: a.join(pa.table({"k": [1]}), on="k", how="outer"),
            SettingError,
            "a join with a table can be 'inner' or 'left', not 'outer': a stream has no end to wait for",
        ),
        (
            lambda a, b: a.join(pa.table({"k": [1]}), on="k", window=wb.tumbling("1s")),
            PlanError,
            "a join with a table does not use time: leave out window= and between=",
        ),
        (
            lambda a, b: a.join([1], on="k"),
            PlanError,
            "join got [1]: pass a stream, or a pyarrow.Table: pyarrow.Table.from_pylist(rows) converts a list of dicts",
        ),
        (lambda a, b: a.join(b, on=[]), PlanError, "join needs at least one key column: write for example on='origin'"),
    ],
)
def test_what_cannot_be_joined_is_said_with_the_users_line(
    join: Callable[[wb.Stream, wb.Stream], wb.Stream], kind: type[wb.errors.WorkbenchError], said: str
):
    a = table_stream(k=pa.array([1]), v=pa.array([2]))
    b = table_stream(k=pa.array([1]), v=pa.array([2]), w=pa.array(["x"]))
    with pytest.raises(kind) as caught:
        join(a, b)
    assert caught.value.message == said
    assert "test_joins.py" in str(caught.value)


def test_streams_without_event_times_cannot_be_joined():
    for spec in (WindowJoin(JoinColumns(*KEYS), Tumbling(10)), IntervalJoin(JoinColumns(*KEYS), 0, 1)):
        batch = records(0, [("a", 1, 1, 1)]).batch
        with pytest.raises(RecordError, match=r"without event times reached .* join: name the event-time column"):
            opened(spec).process(Records(batch), 0, Collected())


def test_the_keys_of_an_outer_join_take_the_wider_type():
    for how, kind in (("inner", pa.int32()), ("left", pa.int32()), ("outer", pa.int64())):
        columns: JoinColumns = JoinColumns(("n",), ("m",), how)
        schema = columns.output_schema(LEFT, RIGHT)
        assert schema.field("n").type == kind
        assert schema.names == ["k", "n", "l", "k_right", "r"]


def test_a_checkpoint_of_other_columns_is_refused():
    how: How = "inner"
    spec = WindowJoin(JoinColumns(("k",), ("k",), how), Tumbling(10))
    snapshot = written(opened(spec).snapshot(1))
    wider = spec.create([LEFT.append(pa.field("new", pa.int64())), RIGHT])
    wider.open(OperatorContext(uid="join"))
    with pytest.raises(CheckpointError, match="""the state of operator 'join' has no "new" in its left rows"""):
        wider.restore([snapshot])
