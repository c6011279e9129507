"""Sessions: how they grow, merge and are corrected."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from window_model import SCHEMA, Collected, Running, records

import workbench as wb
from workbench.durations import MAX_TIME
from workbench.elements import Records
from workbench.errors import ExpressionError, PlanError, RecordError, SettingError
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.aggregates.window_functions import collect_list, median
from workbench.operators.contract.base import OperatorContext
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.windows import session
from workbench.windows.schedule import early, on_count
from workbench.windows.session import Session

COUNT_AND_SUM = (("n", agg.count()), ("sum", agg.sum("v")))


def running(gap: int, lateness: int = 0, aggregates=COUNT_AND_SUM, **more) -> Running:
    return Running(WindowAggregate(("k",), Session(gap), aggregates, lateness, "late", **more))


def test_records_less_than_a_gap_apart_are_one_session():
    """F1-9: activity, a silence longer than the gap, activity again; each key by itself."""
    job, out = running(10), Collected()
    job.process([("a", 1, 0), ("a", 2, 8), ("b", 7, 9), ("a", 4, 15), ("a", 8, 40), ("b", 7, 50)], out)
    job.watermark(25, out)
    assert out.rows == [("b", 9, 19, 1, 7), ("a", 0, 25, 3, 7)]
    job.watermark(MAX_TIME, out)
    assert out.rows[2:] == [("a", 40, 50, 1, 8), ("b", 50, 60, 1, 7)]
    assert out.times == [18, 24, 49, 59]
    assert out.watermarks == [24, MAX_TIME]


def test_records_exactly_a_gap_apart_belong_together_and_one_more_microsecond_parts_them():
    job, out = running(10), Collected()
    job.process([("a", 1, 0), ("a", 2, 10), ("a", 4, 21)], out)
    job.watermark(MAX_TIME, out)
    assert out.rows == [("a", 0, 20, 2, 3), ("a", 21, 31, 1, 4)]


@pytest.mark.parametrize("told", [False, True])
def test_whether_a_record_at_the_end_of_a_session_joins_it_does_not_depend_on_when_watermarks_come(told):
    """A watermark of 9 says that no record at 9 or before comes; one at 10 may, and is within the gap of that at 0."""
    job, out = running(10), Collected()
    job.process([("a", 1, 0)], out)
    if told:
        job.watermark(9, out)
    job.process([("a", 2, 10)], out)
    job.watermark(MAX_TIME, out)
    assert (out.rows, out.late) == ([("a", 0, 20, 2, 3)], [])


def test_what_a_session_gives_is_never_late_behind_it():
    job, out = running(10), Collected()
    job.process([("a", 1, 0)], out)
    job.watermark(9, out)
    assert (out.rows, out.watermarks) == ([], [8])
    job.watermark(10, out)
    assert (out.rows, out.times, out.watermarks) == ([("a", 0, 10, 1, 1)], [9], [8, 9])


def test_a_record_joins_the_sessions_on_both_sides_of_it():
    job, out = running(10), Collected()
    job.process([("a", 1, 0), ("a", 2, 18), ("a", 4, 36)], out)
    job.process([("a", 8, 27)], out)
    job.process([("a", 16, 9)], out)
    assert out.rows == []
    job.watermark(MAX_TIME, out)
    assert out.rows == [("a", 0, 46, 5, 31)]
    assert job.operators[0].snapshot(1)["windows"].num_rows == 0


def test_a_late_record_joins_two_sessions_that_have_fired():
    """Both have been emitted; the correction is emitted once, with the bounds and the records of both."""
    job, out = running(10, lateness=50), Collected()
    job.process([("a", 1, 0), ("a", 2, 18)], out)
    job.watermark(28, out)
    assert out.rows == [("a", 0, 10, 1, 1), ("a", 18, 28, 1, 2)]
    job.process([("a", 4, 9)], out)
    assert out.rows[2:] == [("a", 0, 28, 3, 7)]
    job.watermark(40, out)
    assert len(out.rows) == 3
    job.process([("a", 8, 20)], out)
    assert out.rows[3:] == [("a", 0, 30, 4, 15)]


def test_a_late_record_that_extends_a_fired_session_beyond_the_watermark_waits_for_its_new_end():
    job, out = running(10, lateness=50), Collected()
    job.process([("a", 1, 0)], out)
    job.watermark(12, out)
    job.process([("a", 2, 9)], out)
    assert out.rows == [("a", 0, 10, 1, 1)]
    job.watermark(18, out)
    assert len(out.rows) == 1
    job.watermark(19, out)
    assert out.rows[1:] == [("a", 0, 19, 2, 3)]


def test_a_session_fires_early_when_the_one_that_it_took_over_would_have():
    job, out = running(10, trigger=early("10us", time="event")), Collected()
    job.process([("a", 1, 40), ("a", 2, 20), ("a", 4, 30)], out)  # early firings at 50, 30 and 40; one session
    job.watermark(29, out)
    assert out.rows == []
    job.watermark(30, out)
    assert out.rows == [("a", 20, 50, 3, 7)]


def test_the_records_of_joined_sessions_stay_in_the_order_of_arrival():
    """The second record makes the first session fire, so its later ones come in after those of the other session."""
    job, out = running(10, aggregates=(("all", collect_list("v")),), trigger=on_count(2)), Collected()
    job.process([("a", n, time) for n, time in enumerate([0, 1, 2, 20, 11])], out)
    assert out.rows == [("a", 0, 11, (0, 1)), ("a", 0, 30, (0, 1, 2, 3, 4))]


def test_a_record_is_late_only_if_it_meets_no_session_that_is_open():
    job, out = running(10), Collected()
    job.process([("a", 1, 20)], out)
    job.watermark(25, out)
    job.process([("a", 2, 11), ("a", 4, 9), ("a", 8, -2), ("b", 5, 15)], out)
    assert out.late == [("a", 8, -2), ("b", 5, 15)]  # 9 meets [11, 30), which 11 has made of [20, 30)
    job.watermark(MAX_TIME, out)
    assert out.rows == [("a", 9, 30, 3, 7)]


def test_late_records_are_counted_where_nobody_takes_them():
    job, out = Running(WindowAggregate((), Session(10), COUNT_AND_SUM)), Collected()
    job.watermark(100, out)
    job.process([("a", 1, 90), ("a", 1, 92)], out)
    counters = job.operators[0]._context.counters
    assert (counters.numLateRecordsDropped, out.late) == (1, [])


def test_sessions_survive_at_another_parallelism():
    job, out = (
        running(10, lateness=30, aggregates=(*COUNT_AND_SUM, ("all", collect_list("v")), ("mid", median("v")))),
        None,
    )
    out = Collected()
    job.process([(key, at, at) for at in (0, 20, 5) for key in "abcdef"], out)
    job.watermark(15, out)
    assert sorted(out.rows) == [(key, 0, 15, 2, 5, (0, 5), 2.5) for key in "abcdef"]
    job.restore(3)
    job.process([(key, 12, 12) for key in "abcdef"], out)
    job.restore(2)
    job.watermark(MAX_TIME, out)
    assert sorted(out.rows[6:]) == [(key, 0, 30, 4, 37, (0, 20, 5, 12), 8.5) for key in "abcdef"]


def test_each_record_may_have_its_own_gap():
    schema = SCHEMA.append(pa.field("gap", pa.duration("ms")))
    spec = WindowAggregate(("k",), session(column="gap"), COUNT_AND_SUM)
    operator, out = spec.create([schema]), Collected()
    operator.open(OperatorContext())

    def batch(rows: list[tuple], gaps: list[int | None]) -> Records:
        some = records(rows)
        columns = [*some.batch.columns, pa.array(gaps, pa.duration("ms"))]
        return Records(pa.RecordBatch.from_arrays(columns, schema=schema), some.timestamps)

    operator.process(batch([("a", 1, 0), ("a", 2, 4_000), ("a", 4, 9_000)], [3, 2, 1]), 0, out)
    operator.process(batch([("a", 8, 1_000)], [100]), 0, out)  # reaches all three
    operator.on_watermark(MAX_TIME, out)
    assert out.rows == [("a", 0, 101_000, 4, 15)]
    assert spec.columns_read() == {"k", "v", "gap"}
    for gaps, shown in (([0], "0"), ([None], "null")):
        with pytest.raises(RecordError, match=f"the column 'gap' has the session gap .*{shown}.*must be above zero"):
            operator.process(batch([("a", 1, 0)], gaps), 0, out)


def test_many_sessions_agree_with_duckdb():
    rng = np.random.default_rng(3)
    n = 30_000
    frame = pa.table(
        {
            "k": rng.integers(0, 200, n),
            "v": rng.integers(-50, 50, n),
            "id": np.arange(n),
            "t": np.cumsum(rng.integers(0, 3, n)) + rng.integers(0, 40, n),
        }
    )
    expected = duckdb.sql(
        """
        WITH marked AS (
            SELECT *, CASE WHEN t - lag(t) OVER w > 150 THEN 1 ELSE 0 END AS fresh
            FROM frame WINDOW w AS (PARTITION BY k ORDER BY t, id)),
        numbered AS (SELECT *, sum(fresh) OVER (PARTITION BY k ORDER BY t, id) AS s FROM marked)
        SELECT k, min(t), max(t) + 150, count(*), sum(v) FROM numbered GROUP BY k, s ORDER BY ALL
        """
    ).fetchall()
    spec = WindowAggregate(("k",), Session(150), COUNT_AND_SUM)
    operator, out = spec.create([frame.schema]), Collected()
    operator.open(OperatorContext())
    times = frame["t"].to_numpy()
    for at in range(0, n, 1_000):
        part = frame.slice(at, 1_000).combine_chunks().to_batches()[0].select(["k", "v", "t"])
        operator.process(Records(part, times[at : at + 1_000]), 0, out)
        operator.on_watermark(int(times[: at + 1_000].max()) - 41, out)
    operator.on_watermark(MAX_TIME, out)
    assert len(out.rows) > 3_000
    assert sorted(out.rows) == expected


def test_sessions_of_processing_time_end_with_silence():
    job, out = running(10, time="processing"), Collected()
    job.process([("a", 1, 0)], out)
    job.advance(7, out)
    job.process([("a", 2, 0)], out)
    job.advance(16, out)
    assert out.rows == []
    job.advance(17, out)
    assert out.rows == [("a", 0, 17, 2, 3)]
    job.process([("a", 4, 0)], out)
    job.watermark(MAX_TIME, out)
    assert out.rows[1:] == [("a", 17, 27, 1, 4)]


def test_sessions_in_a_job():
    minute = 60_000_000
    times = [0, 10, 20, 70, 75, 200]
    table = pa.table(
        {"user": ["ann", "bob", "ann", "ann", "bob", "bob"], "t": pa.array([m * minute for m in times], pa.int64())}
    )
    stream = wb.Stream.from_table(table, event_time="t").key_by("user").window(wb.session("30min"))
    job = stream.aggregate(clicks=wb.count()).sink_to(wb.TableSink("sessions")).run("sessions", parallelism=2)
    job.wait("120s")
    got = job.table("sessions")
    starts = got["window_start"].cast(pa.int64()).to_pylist()
    rows = zip(got["user"].to_pylist(), starts, got["clicks"].to_pylist(), strict=True)
    assert sorted((user, start // minute, clicks) for user, start, clicks in rows) == [
        ("ann", 0, 2),
        ("ann", 70, 1),
        ("bob", 10, 1),
        ("bob", 75, 1),
        ("bob", 200, 1),
    ]


def test_sessions_are_described_and_checked():
    assert session("30min").describe() == "session 30min"
    with pytest.raises(SettingError, match="the session gap is 0ms: it must be longer than zero"):
        session("0s")
    with pytest.raises(SettingError, match="takes either a gap or a column"):
        session()
    with pytest.raises(SettingError, match="takes either a gap or a column"):
        session("1s", column="gap")
    with pytest.raises(ExpressionError, match=r"session by pause: .*'pause'"):
        WindowAggregate((), session(column="pause"), COUNT_AND_SUM).output_schema([SCHEMA])
    with pytest.raises(PlanError, match="the session gap 'k' has type string"):
        WindowAggregate((), session(column="k"), COUNT_AND_SUM).output_schema([SCHEMA])
