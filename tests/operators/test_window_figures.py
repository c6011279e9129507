"""The figures of windows and time, as small streams with results worked out by hand, through the public interface."""

from __future__ import annotations

from statistics import median

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from window_model import Collected

import workbench as wb
from workbench.api.job.job import Job
from workbench.clock import VirtualClock
from workbench.elements import Records
from workbench.errors import JobError, PlanError, WorkbenchError
from workbench.operators.contract.base import OperatorContext

SECOND = 1_000_000
MINUTE = 60 * SECOND


def stream_of(rows: dict[str, list], seconds: list[float] | None = None, **more) -> wb.Stream:
    table = pa.table(rows)
    if seconds is not None:
        times = pa.array([int(at * SECOND) for at in seconds], pa.timestamp("us", "UTC"))
        table = table.append_column("t", times)
        more = {"event_time": "t", **more}
    return wb.Stream.from_table(table, **more).with_parallelism(1)


def run(stream: wb.Stream, **settings) -> list[tuple]:
    """The rows that a job gives, times in seconds."""
    job = stream.sink_to(wb.TableSink("results")).run("figure", **{"parallelism": 2, **settings})
    job.wait("120s")
    return rows_of(job)


def rows_of(job: Job) -> list[tuple]:
    table = job.table("results")
    columns = []
    for column in table.columns:
        if pa.types.is_timestamp(column.type):
            columns.append([at / SECOND for at in column.cast(pa.int64()).to_pylist()])
        else:
            columns.append(column.to_pylist())
    return sorted(zip(*columns, strict=True))


def test_f1_6_a_count_window_of_four() -> None:
    rides = stream_of({"distance": [1, 3, 2, 8, 5, 5, 1, 1, 4]})
    assert run(rides.window(wb.windows.count_tumbling(4)).aggregate(total=wb.sum("distance"))) == [
        (0, 4, 14),
        (4, 8, 12),
    ]


def test_f1_7_a_time_window_of_ten_minutes() -> None:
    seconds = [60, 200, 599, 600, 1_300]
    rides = stream_of({"distance": [1, 2, 3, 4, 5]}, seconds)
    result = run(rides.window(wb.tumbling("10min")).aggregate(total=wb.sum("distance")))
    assert result == [(0, 600, 6), (600, 1_200, 4), (1_200, 1_800, 5)]


def test_f1_8_a_count_window_of_four_that_slides_by_three() -> None:
    rides = stream_of({"distance": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]})
    result = run(rides.window(wb.windows.count_sliding(4, 3)).aggregate(total=wb.sum("distance")))
    assert result == [(0, 4, 10), (3, 7, 22), (6, 10, 34)]


def test_f1_9_sessions_part_where_the_gap_is() -> None:
    clicks = stream_of({"page": ["a", "b", "c", "d", "e"]}, [0, 20, 70, 500, 520])
    result = run(clicks.window(wb.session("1min")).aggregate(n=wb.count(), pages=wb.collect_list("page")))
    assert result == [(0, 130, 3, ["a", "b", "c"]), (500, 580, 2, ["d", "e"])]


def test_f1_10_parallel_count_windows_of_two_per_colour() -> None:
    colours = ["blue", "red", "blue", "green", "red", "blue", "green", "blue"]
    cars = stream_of({"colour": colours, "speed": [1, 2, 3, 4, 5, 6, 7, 8]})
    result = run(cars.key_by("colour").window(wb.windows.count_tumbling(2)).aggregate(total=wb.sum("speed")))
    assert result == [("blue", 0, 2, 4), ("blue", 2, 4, 14), ("green", 0, 2, 11), ("red", 0, 2, 7)]


# Alice plays a game in the subway: one bubble a second. In the tunnel her phone is offline from second 25 to 65; what
# she does there arrives when she comes out, at second 70 and after.
HAPPENED = [5, 15, 22, 30, 45, 58, 63, 75]
ARRIVED = [5, 15, 22, 70, 70, 71, 71, 75]


@pytest.fixture
def subway() -> wb.Stream:
    order = np.argsort(ARRIVED, kind="stable")
    rows = {"bubbles": [1] * 8, "arrived": [ARRIVED[i] for i in order]}
    return stream_of(rows, [HAPPENED[i] for i in order], out_of_orderness="60s")


def test_f1_11_to_13_event_time_counts_what_happened_whenever_it_arrives(subway: wb.Stream) -> None:
    result = run(subway.window(wb.tumbling("1min")).aggregate(bubbles=wb.count()))
    assert result == [(0, 60, 6), (60, 120, 2)]


def test_f1_11_to_13_processing_time_counts_what_arrives(subway: wb.Stream) -> None:
    """The same pipeline with one word changed, driven by a clock that shows the times of arrival."""
    windowed = subway.window(wb.tumbling("1min"), time="processing").aggregate(bubbles=wb.count())
    operator = windowed._end.node.spec.create([subway.schema])
    clock, out = VirtualClock(), Collected()
    operator.open(OperatorContext(clock=clock))
    batch = pa.record_batch({"bubbles": [1], "arrived": [0], "t": pa.array([0], pa.timestamp("us", "UTC"))})
    for at in ARRIVED:
        clock.advance_to(at * SECOND)
        due = operator.next_time_us()
        if due is not None and due <= at * SECOND:
            operator.on_time(at * SECOND, out)
        operator.process(Records(batch, np.array([0])), 0, out)
    operator.on_time(120 * SECOND, out)
    assert out.rows == [(0, 60 * SECOND, 3), (60 * SECOND, 120 * SECOND, 5)]


def test_processing_time_in_a_job_whose_clock_goes_on() -> None:
    """With a virtual clock, three records at once are in one window; it fires when the input ends."""
    stream = stream_of({"n": [1, 2, 3]}, [0, 1_000, 5_000])
    counted = stream.window(wb.tumbling("1h"), time="processing").aggregate(total=wb.sum("n"))
    job = counted.sink_to(wb.TableSink("results")).run("figure", driver="stepping")
    job.wait("1h")
    [(start, end, total)] = rows_of(job)
    assert (end - start, total) == (3_600, 6)


def test_holistic_aggregates_are_of_all_records() -> None:
    values = [3, 1, 2, 9, None, 4, 4]
    stream = stream_of({"v": values, "name": list("cabixdd")}, [0, 1, 2, 3, 4, 5, 70])
    result = run(
        stream.window(wb.tumbling("1min")).aggregate(
            n=wb.count(), mid=wb.median("v"), top=wb.top_k("v", 2), last=wb.top_k("name", 1), all=wb.collect_list("v")
        )
    )
    assert result == [
        (0, 60, 6, median([3, 1, 2, 9, 4]), [9, 4], ["x"], [3, 1, 2, 9, None, 4]),
        (60, 120, 1, 4.0, [4], ["d"], [4]),
    ]


def test_a_function_over_all_records_of_a_window() -> None:
    def spans(key, window, records):
        if key == "none":
            return None
        times = records["t"].cast(pa.int64()).to_pylist()
        row = {"first": (times[0] - window.start) // SECOND, "size": records.num_rows}
        return row if key == "one" else [row, {"first": -1, "size": window.end_time.minute}]

    stream = stream_of({"k": ["one", "two", "none", "one", "two"]}, [3, 5, 7, 9, 71])
    result = run(stream.key_by("k").window(wb.tumbling("1min")).apply(spans, {"first": pa.int64(), "size": pa.int64()}))
    assert result == [
        ("one", 0, 60, 3, 2),
        ("two", 0, 60, -1, 1),
        ("two", 0, 60, 5, 1),
        ("two", 60, 120, -1, 2),
        ("two", 60, 120, 11, 1),
    ]


def test_what_goes_wrong_in_a_function_is_said() -> None:
    stream = stream_of({"k": ["a"]}, [3]).key_by("k").window(wb.tumbling("1min"))
    for function, message in (
        (lambda key, window, records: 1 / 0, "raised ZeroDivisionError: division by zero on the 1 records of key 'a'"),
        (
            lambda key, window, records: {"y": 1},
            "returned a dict that lacks x and has also y, expected a dict with the columns x",
        ),
        (lambda key, window, records: [3], "returned 3 (int), expected a dict with the columns x"),
        (
            lambda key, window, records: {"x": "b"},
            "returned 'b' for column 'x', which is declared as int64, for key 'a'",
        ),
    ):
        job = stream.apply(function, {"x": pa.int64()}).sink_to(wb.TableSink("results")).run("figure")
        with pytest.raises(JobError) as error:
            job.wait("120s")
        assert message in str(error.value)
        assert "test_window_figures.py" in str(error.value)


def test_a_users_assigner_trigger_and_evictor_in_a_job() -> None:
    class Halves(wb.windows.WindowAssigner):
        def windows(self, time_us):
            start = time_us - time_us % MINUTE
            yield start, start + MINUTE // 2
            yield start, start + MINUTE

    class EachRecord(wb.triggers.Trigger):
        def on_record(self, time_us, window, context):
            return wb.triggers.Action.FIRE

    class Odd(wb.windows.Evictor):
        columns = ("v",)

        def keep(self, records, times):
            return records["v"].to_numpy() % 2 == 1

    stream = stream_of({"v": [1, 2, 5]}, [3, 5, 7])
    windowed = stream.window(Halves(), trigger=EachRecord(), evictor=Odd())
    assert run(windowed.aggregate(total=wb.sum("v"))) == [
        (0, 30, 1),
        (0, 30, 1),
        (0, 30, 6),
        (0, 60, 1),
        (0, 60, 1),
        (0, 60, 6),
    ]


def test_late_records_of_a_sliding_window_go_to_the_side_output() -> None:
    """A record per second of the clock. After that of second 30 the windows that end by second 15 are over: that of
    second 12 is in time for [10, 20) alone, and that of second 3 for none."""
    stream = stream_of({"v": [1, 2, 4, 8]}, [1, 30, 12, 3], out_of_orderness="15s", rate=1)
    result = stream.window(wb.sliding("10s", "5s")).aggregate(total=wb.sum("v"))
    pipeline = result.sink_to(wb.TableSink("results"))
    late = result.side_output("late").sink_to(wb.TableSink("late"))
    job = wb.types.Pipeline((*pipeline._sinks, *late._sinks)).run("figure", driver="stepping")
    job.wait("1h")
    assert rows_of(job) == [(-5, 5, 1), (0, 10, 1), (10, 20, 4), (25, 35, 2), (30, 40, 2)]
    assert job.table("late")["v"].to_pylist() == [8]


def test_sliding_windows_of_many_records_agree_with_duckdb() -> None:
    rng = np.random.default_rng(1)
    n = 40_000
    times = np.sort(rng.integers(0, 7_200 * SECOND, n))
    frame = pa.table({"k": rng.integers(0, 50, n), "v": rng.normal(size=n), "t": times})
    expected = duckdb.sql(
        f"""
        WITH starts AS (SELECT unnest(range(-3000, 7200, 600)) * {SECOND} AS s)
        SELECT k, s, count(*), median(v), max(v) FROM frame, starts
        WHERE t >= s AND t < s + {3600 * SECOND} GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    stream = wb.Stream.from_table(frame, event_time="t").key_by("k").window(wb.sliding("1h", "10min"))
    for aggregates in (
        {"n": wb.count(), "top": wb.max("v")},
        {"n": wb.count(), "mid": wb.median("v"), "top": wb.max("v")},
    ):
        got = run(stream.aggregate(**aggregates))
        assert [(k, s * SECOND, n) for k, s, _, n, *_ in got] == [(k, s, n) for k, s, n, *_ in expected]
        for row, (*_, middle, top) in zip(got, expected, strict=True):
            assert row[4:] == ((top,) if "mid" not in aggregates else (pytest.approx(middle), top))


def test_errors_in_windows_name_the_users_line() -> None:
    stream = stream_of({"k": ["a"], "v": [1]}, [3])
    for make, message in (
        (lambda: stream.window(wb.tumbling("1h")).aggregate(), "aggregate needs at least one"),
        (lambda: stream.window(wb.tumbling("1h")).aggregate(x=3), "the aggregate 'x' is 3"),
        (lambda: stream.window(wb.tumbling("1h")).aggregate(x=wb.median("k")), "column 'k' has type string"),
        (lambda: stream.window(wb.tumbling("1h")).aggregate(x=wb.median("w")), "'w'"),
        (lambda: stream.window(wb.tumbling("1h"), time="wall"), "'wall'"),
        (lambda: stream.window("1h"), "the window is '1h'"),
        (lambda: stream.window(wb.tumbling("1h")).apply(print, {}), "declares no columns"),
    ):
        with pytest.raises(WorkbenchError) as error:
            make()
        assert message in str(error.value)
        assert "test_window_figures.py" in str(error.value)
    with pytest.raises(PlanError, match="'x' is HolisticAggregation"):
        stream.key_by("k").aggregate(x=wb.median("v"))


def test_the_windows_of_a_key_can_be_asked_for() -> None:
    """Of sliding windows, of which each record is in two; sums are told, of kept records how many there are."""
    times = np.array([3, 5, 71]) * SECOND
    batch = pa.record_batch({"k": ["a", "b", "a"], "v": [1, 2, 5], "t": pa.array(times, pa.timestamp("us", "UTC"))})
    windowed = stream_of({"k": ["a"], "v": [1]}, [3]).key_by("k").window(wb.sliding("1min", "30s"))
    for stream, column, wanted in (
        (windowed.aggregate(total=wb.sum("v")), "total", [1, 1, 5, 5]),
        (windowed.aggregate(all=wb.collect_list("v")), "records", [1, 1, 1, 1]),
    ):
        operator = stream._end.node.spec.create([batch.schema])
        operator.open(OperatorContext())
        operator.process(Records(batch, times), 0, Collected())
        windows = operator.query({"k": "a"})["windows"]
        assert [int(window["window_start"].timestamp()) for window in windows] == [-30, 0, 30, 60]
        assert [window[column] for window in windows] == wanted
        assert operator.query({"k": "c"}) is None
        assert operator.query_keys(1) == (2, [{"k": "a"}])
        operator.on_watermark(60 * SECOND, Collected())
        assert [window[column] for window in operator.query({"k": "a"})["windows"]] == wanted[2:]
        assert operator.query_keys(5) == (1, [{"k": "a"}])
