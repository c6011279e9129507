"""`col` is accepted wherever a column name is; aggregates take expressions; streams can be inspected while they are
written."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import workbench as wb
from workbench import col

ROWS = pa.table({"k": ["a", "b", "a"], "n": [1, 2, 3], "t": [0, 1_000_000, 2_000_000]})


def numbers() -> wb.Stream:
    return wb.Stream.from_table(ROWS, event_time="t")


def test_a_key_may_be_written_with_col() -> None:
    sums = numbers().key_by(col("k")).aggregate(total=wb.sum(col("n")))
    assert sums.collect().to_pylist() == [{"k": "a", "total": 1}, {"k": "b", "total": 2}, {"k": "a", "total": 4}]


def test_select_takes_columns_and_expressions_with_and_without_a_name() -> None:
    chosen = numbers().select("k", col("n"), (col("n") * 2).alias("twice"), col("n") + 1, half="n / 2")
    assert chosen.columns == ["k", "n", "twice", "n + 1", "half"]
    assert chosen.collect(1).to_pylist() == [{"k": "a", "n": 1, "twice": 2, "n + 1": 2, "half": 0.5}]


def test_joins_and_look_ups_take_columns() -> None:
    cities = pa.table({"id": ["a"], "city": ["Oslo"]})
    assert numbers().join(cities, on={"k": col("id")}).collect().column("city").to_pylist() == ["Oslo", "Oslo"]
    found = numbers().lookup_async(lambda k: {"up": k.upper()}, key=col("k"), schema={"up": pa.string()})
    assert sorted(found.collect().column("up").to_pylist()) == ["A", "A", "B"]
    assert numbers().join(numbers(), on=col("k"), window=wb.tumbling("1h")).columns[0] == "k"


def test_the_columns_that_map_keeps_may_be_written_with_col() -> None:
    mapped = numbers().map(lambda n: n + 1, {"m": pa.int64()}, columns=[col("n")], keep=[col("k")])
    assert mapped.collect(1).to_pylist() == [{"k": "a", "m": 2}]


@pytest.mark.parametrize(
    ("write", "what"),
    [
        (lambda stream: stream.key_by(col("n") + 1), "key_by"),
        (lambda stream: stream.join(stream, on=col("n") + 1, window=wb.tumbling("1h")), "on"),
        (lambda stream: stream.drop(col("n") + 1), "drop"),
    ],
)
def test_an_expression_where_only_a_column_will_do_is_refused(write: Callable[[wb.Stream], object], what: str) -> None:
    with pytest.raises(wb.errors.ExpressionError, match=rf"^{what} takes columns, and 'n \+ 1' computes one: .*"):
        write(numbers())


# Expressions in aggregates -------------------------------------------------------------------------------------------


def test_rolling_aggregates_take_expressions() -> None:
    sums = numbers().key_by("k").aggregate(twice=wb.sum(col("n") * 2), most=wb.max("n"))
    assert sums.collect().column("twice").to_pylist() == [2, 4, 8]
    assert sums.columns == ["k", "twice", "most"]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_window_aggregates_take_expressions(parallelism: int) -> None:
    windows = numbers().key_by("k").window(wb.tumbling("1h"))
    counted = windows.aggregate(
        twice=wb.sum(col("n") * 2),
        large=wb.count(wb.expr("CASE WHEN n > 1 THEN 1 END")),
        middle=wb.median(-col("n")),
        same=wb.sum((col("n") * 2).alias("n")),
    )
    job = counted.run("expressions", parallelism=parallelism)
    assert job.wait("60s") == "FINISHED"
    rows = job.table().drop_columns(["window_start", "window_end"]).sort_by("k").to_pylist()
    assert rows == [
        {"k": "a", "twice": 8, "large": 1, "middle": -2.0, "same": 8},
        {"k": "b", "twice": 4, "large": 1, "middle": -2.0, "same": 4},
    ]


def test_late_records_have_no_column_that_was_computed_for_an_aggregate() -> None:
    counted = numbers().key_by("k").window(wb.tumbling("1s")).aggregate(twice=wb.sum(col("n") * 2))
    assert counted.uid("sums").side_output("late").columns == ["k", "n", "t"]


def test_a_column_that_is_called_like_an_expression_stays_what_it_is() -> None:
    table = pa.table({"k": ["a"], "n": [1], "n * 2": [100]})
    sums = wb.Stream.from_table(table).key_by("k").aggregate(own=wb.sum(col("n") * 2), other=wb.sum("n * 2"))
    assert sums.collect().to_pylist() == [{"k": "a", "own": 2, "other": 100}]


def test_an_expression_in_an_aggregate_that_does_not_fit_is_refused_with_the_users_line() -> None:
    with pytest.raises(wb.errors.ExpressionError, match=r"unknown column 'm'.*test_column_names.py, line \d+"):
        numbers().key_by("k").aggregate(wrong=wb.sum(col("m") * 2))


# Columns and conditions ----------------------------------------------------------------------------------------------


def test_columns_are_dropped_and_renamed() -> None:
    assert numbers().drop("t", col("k")).columns == ["n"]
    assert numbers().rename({"n": "m", "k": "n"}).collect(1).to_pylist() == [{"n": "a", "m": 1, "t": 0}]


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda stream: stream.drop("x"), "no column 'x'"),
        (lambda stream: stream.drop("k", "n", "t"), "drop would leave no columns"),
        (lambda stream: stream.rename({"x": "y"}), "no column 'x'"),
        (lambda stream: stream.rename("x"), "rename is 'x': map old names to new ones"),
        (lambda stream: stream.rename({"n": "k"}), "'k'"),
        (lambda stream: stream.filter(), "filter needs a condition"),
        (lambda stream: stream.filter("n > 1", lambda n: True), "several expressions or one function"),
        (lambda stream: stream.collect(0), "limit"),
    ],
)
def test_what_cannot_be_is_refused(write: Callable[[wb.Stream], object], said: str) -> None:
    with pytest.raises(wb.errors.WorkbenchError, match=said):
        write(numbers())


def test_several_conditions_hold_all_at_once() -> None:
    kept = numbers().filter("n > 1", col("k") == "a", "n < 10 OR n IS NULL")
    assert kept.collect().column("n").to_pylist() == [3]


# Looking -------------------------------------------------------------------------------------------------------------


def test_a_stream_without_end_gives_its_first_rows_and_its_job_ends() -> None:
    def ones(first: int, count: int) -> pa.RecordBatch:
        return pa.record_batch({"n": list(range(first, first + count))})

    endless = wb.Stream.from_generator(ones, {"n": pa.int64()})
    assert endless.collect(3).column("n").to_pylist() == [0, 1, 2]
    assert wb.job("collect").wait("60s") == "CANCELED"


def test_what_has_come_when_the_time_is_over_is_given() -> None:
    silent = wb.Stream.from_table(ROWS, rate=0.001)
    assert len(silent.collect(3, timeout="200ms")) <= 1


def test_a_job_that_fails_says_so() -> None:
    with pytest.raises(wb.errors.JobError, match="division"):
        numbers().map(lambda n: n // 0, {"m": pa.int64()}, columns="n").collect()


def test_rows_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    numbers().with_columns(text="CASE WHEN n = 2 THEN '[red]' END").show(2)
    shown = capsys.readouterr().out
    assert "[red]" in shown
    assert " n " in shown
    assert len([line for line in shown.splitlines() if line.startswith("│")]) == 2


def test_a_stream_runs_into_a_table_of_its_jobs_name() -> None:
    job = numbers().filter("n > 1").run("large", parallelism=2)
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table("large").column("n").to_pylist()) == [2, 3]
    with pytest.raises(wb.errors.SettingError, match="table name"):
        numbers().run("a b")
