"""Count windows and the global window: compared with a model on random input, and worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_windows import RUNNING, WHOLE, results, whole_results
from window_model import SCHEMA, Collected, Running, records

import workbench as wb
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Records
from workbench.errors import SettingError
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.windows import entries as window_entries
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.windows import count_sliding, count_tumbling, global_window, keep_last, tumbling
from workbench.windows.count import CountWindows
from workbench.windows.global_window import GlobalWindow
from workbench.windows.schedule import AT_END, Schedule, early, on_count, on_event_time, purging


@pytest.fixture(autouse=True, scope="module")
def _pack_early() -> Iterator[None]:
    few, window_entries._FEW_ENTRIES = window_entries._FEW_ENTRIES, 2
    yield
    window_entries._FEW_ENTRIES = few


ROW = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.one_of(st.none(), st.integers(-9, 9)),
    st.one_of(st.integers(-60, 60), st.just(NO_TIME)),
)
ACTION = st.one_of(
    st.tuples(st.just("batch"), st.lists(ROW, max_size=12)),
    st.tuples(st.just("watermark"), st.integers(-70, 70)),
    st.tuples(st.just("restore"), st.integers(1, 3)),
)


@settings(max_examples=150)
@given(
    st.sampled_from([("k",), ()]),
    st.integers(1, 5),
    st.integers(1, 5),
    st.sampled_from([AT_END, AT_END, on_count(1), on_count(2), purging(on_count(2))]),
    st.sampled_from([None, None, 1, 2]),
    st.booleans(),
    st.lists(ACTION, max_size=10),
)
def test_count_windows_give_what_counting_by_hand_gives(keys, length, slide, trigger, last, whole, actions):
    of = whole_results if whole else results
    running = Running(
        WindowAggregate(
            keys,
            CountWindows(length, slide),
            WHOLE if whole else RUNNING,
            trigger=trigger,
            evictor=None if last is None else keep_last(last),
        )
    )
    every = trigger.records or length
    had: dict[object, int] = {}
    windows: dict[tuple, list[tuple]] = {}
    seen: dict[tuple, int] = {}
    latest: dict[tuple, int] = {}
    ordered = True
    reached = NO_TIME
    for action, argument in actions:
        out = Collected()
        wanted, times = [], []
        if action == "batch":
            running.process(argument, out)
            for key, value, time in argument:
                group = key if keys else None
                position = had.get(group, 0)
                had[group] = position + 1
                for start in range(0, position + 1, slide):
                    if position >= start + length:
                        continue
                    at = (group, start)
                    windows.setdefault(at, []).append((value, time, position))
                    latest[at] = max(latest.get(at, NO_TIME), time)
                    seen[at] = seen.get(at, 0) + 1
                    if seen[at] == every:
                        seen[at] = 0
                        windows[at] = windows[at][-(last or 99) :]
                        wanted.append((*([group] if keys else []), start, start + length, *of(windows[at])))
                        times.append(NO_TIME if latest[at] == NO_TIME else max(latest[at], reached + 1))
                        if trigger.purge:
                            windows[at], latest[at] = [], NO_TIME
        elif action == "watermark":
            running.watermark(argument, out)
            reached = max(reached, argument)
        else:
            ordered = ordered and argument == 1
            snapshots = [operator.snapshot(1) for operator in running.operators]
            running.operators = [running._opened(subtask, argument) for subtask in range(argument)]
            for operator in running.operators:
                operator.restore(snapshots)
        if ordered:
            assert (out.rows, out.times) == (wanted, times)
        assert sorted(map(repr, out.rows)) == sorted(map(repr, wanted))
    open_windows = {at for at, rows in windows.items() if had[at[0]] < at[1] + length}
    assert sum(operator.snapshot(2)["windows"].num_rows for operator in running.operators) == len(open_windows)


def test_a_count_window_of_four():
    """F1-6: 1 2 3 4 | 5 6 7 8 | 9: the sums 10 and 26; the fifth window is never complete."""
    running, out = Running(WindowAggregate((), count_tumbling(4), (("sum", agg.sum("v")),))), Collected()
    running.process([(None, n, 10 * n) for n in range(1, 10)], out)
    running.watermark(MAX_TIME, out)
    assert out.rows == [(0, 4, 10), (4, 8, 26)]
    assert out.times == [40, 80]


def test_a_count_window_of_four_that_slides_by_three():
    """F1-8: 1 2 3 [4] 5 6 [7] 8 9 10: the last record of a window is the first of the next."""
    spec = WindowAggregate((), count_sliding(4, 3), (("sum", agg.sum("v")),))
    running, out = Running(spec), Collected()
    for n in range(1, 12):
        running.process([(None, n, n)], out, timed=False)
    assert out.rows == [(0, 4, 10), (3, 7, 22), (6, 10, 34)]
    assert out.times == [None] * 3


def test_parallel_count_windows_of_two_per_colour():
    """F1-10: each colour counts for itself, wherever it is counted."""
    spec = WindowAggregate(("k",), count_tumbling(2), (("sum", agg.sum("v")),))
    running, out = Running(spec), Collected()
    running.process([("blue", 1, 0), ("red", 2, 0), ("blue", 3, 0), ("green", 4, 0), ("red", 5, 0)], out)
    running.restore(2)
    running.process([("blue", 6, 0), ("green", 7, 0), ("blue", 8, 0)], out)
    assert out.rows[:2] == [("blue", 0, 2, 4), ("red", 0, 2, 7)]
    assert sorted(out.rows[2:]) == [("blue", 2, 4, 14), ("green", 0, 2, 11)]


def test_the_state_of_count_windows_is_a_counter_per_key_and_what_is_incomplete():
    running, out = Running(WindowAggregate(("k",), count_tumbling(3), (("n", agg.count()),))), Collected()
    for at in range(200):
        running.process([(f"k{i}", at, at) for i in range(5)], out)
    assert len(out.rows) == 5 * (200 // 3)
    [operator] = running.operators
    assert len(operator._entries) <= 3 * 5
    state = operator.snapshot(1)
    assert state["windows"].num_rows == 5
    assert sorted(zip(state["keys"]["key:k"].to_pylist(), state["keys"]["seen"].to_pylist(), strict=True)) == [
        (f"k{i}", 200) for i in range(5)
    ]


def test_the_global_window_fires_when_the_input_ends():
    running, out = Running(WindowAggregate(("k",), global_window(), (("sum", agg.sum("v")),))), Collected()
    running.process([("a", 1, 5), ("b", 2, 9), ("a", 3, NO_TIME)], out)
    running.watermark(10**15, out)
    running.restore(2)
    assert out.rows == []
    running.watermark(MAX_TIME, out)
    assert sorted(zip(out.rows, out.times, strict=True)) == [(("a", 4), 10**15 + 1), (("b", 2), 10**15 + 1)]
    assert running.spec.output_schema([SCHEMA]).names == ["k", "sum"]


def test_the_global_window_fires_by_count_with_all_records_so_far_or_only_the_new_ones():
    for trigger, wanted in ((on_count(2), [3, 10, 21]), (purging(on_count(2)), [3, 7, 11])):
        spec = WindowAggregate((), global_window(), (("sum", agg.sum("v")),), trigger=trigger)
        running, out = Running(spec), Collected()
        running.process([(None, n, n) for n in (1, 2, 3, 4, 5)], out)
        running.process([(None, n, n) for n in (6, 7)], out)
        assert out.rows == [(total,) for total in wanted]
        assert out.times == [2, 4, 6]
        running.watermark(MAX_TIME, out)
        assert len(out.rows) == 3


GLOBAL_SUM = (("sum", agg.sum("v")),)


def test_a_result_is_not_late_because_of_when_its_window_fires():
    """Those behind know the watermark that was sent on before: nothing at or before it would be taken."""
    running, out = Running(WindowAggregate(("k",), global_window(), GLOBAL_SUM)), Collected()
    running.process([("a", 1, 5), ("b", 2, 50)], out)
    running.watermark(30, out)
    running.restore(2)
    running.watermark(40, out)
    running.watermark(MAX_TIME, out)
    assert sorted(zip(out.rows, out.times, strict=True)) == [(("a", 1), 41), (("b", 2), 50)]

    running, out = Running(WindowAggregate((), count_tumbling(2), GLOBAL_SUM)), Collected()
    running.process([(None, 1, 5)], out)
    running.watermark(30, out)
    running.process([(None, 2, 20), (None, 3, NO_TIME), (None, 4, NO_TIME)], out)  # late, and without a time
    assert list(zip(out.rows, out.times, strict=True)) == [((0, 2, 3), 31), ((2, 4, 7), NO_TIME)]


def test_a_window_that_fires_at_a_moment_of_event_time_has_a_result_of_that_moment_however_often_watermarks_come():
    for marks in ([99], [40, 70, 98, 99], [150], [40, MAX_TIME]):
        spec = WindowAggregate((), global_window(), GLOBAL_SUM, trigger=purging(early("100us", "event")))
        running, out = Running(spec), Collected()
        running.process([(None, 1, 5), (None, 2, 20)], out)
        for mark in marks:
            running.watermark(mark, out)
        assert list(zip(out.rows, out.times, strict=True)) == [((3,), 99)]


def test_the_result_of_a_window_that_forgets_is_not_as_late_as_the_records_that_it_has_forgotten():
    spec = WindowAggregate((), global_window(), GLOBAL_SUM, trigger=purging(on_count(2)))
    running, out = Running(spec), Collected()
    running.process([(None, 1, 5), (None, 2, 80), (None, 3, 7), (None, 4, 6)], out)
    assert list(zip(out.rows, out.times, strict=True)) == [((3,), 80), ((7,), 7)]


def test_a_window_of_the_clock_has_results_that_are_not_late_where_event_time_is_further():
    spec = WindowAggregate((), tumbling("10us"), GLOBAL_SUM, time="processing")
    running, out = Running(spec), Collected()
    running.process([(None, 1, 500)], out)
    running.advance(10, out)
    running.watermark(400, out)
    running.process([(None, 2, 500)], out)
    running.advance(20, out)
    assert list(zip(out.rows, out.times, strict=True)) == [((0, 10, 1), 9), ((10, 20, 2), 401)]


def test_windows_behind_a_global_window_take_all_its_results():
    times = pa.array([0, 1, 2, 100, 200, 300], pa.timestamp("s"))
    table = pa.table({"k": list("ababbb"), "v": [1, 2, 3, 4, 5, 6], "t": times})
    for trigger in (None, wb.triggers.early("50s", "event"), wb.triggers.on_count(3)):
        numbers = wb.Stream.from_table(table, event_time="t", rate=1)
        totals = numbers.key_by("k").window(wb.windows.global_window(), trigger=trigger)
        again = totals.aggregate(total=wb.sum("v")).key_by("k").window(wb.tumbling("10s")).aggregate(n=wb.count())
        seen, behind = totals.aggregate(total=wb.sum("v")), again.sink_to(wb.TableSink("behind"))
        first = seen.sink_to(wb.TableSink("first")).run("seen", driver="stepping", buffer_size=1)
        job = behind.run("taken", driver="stepping", buffer_size=1)
        assert first.wait("1h") == job.wait("1h") == "FINISHED"
        assert sum(job.table("behind")["n"].to_pylist()) == first.table("first").num_rows > 0
        assert job.status()["late_records"] == 0


def test_a_count_window_may_show_what_it_has_before_it_is_full():
    spec = WindowAggregate((), count_tumbling(3), (("sum", agg.sum("v")),), trigger=early("10us"))
    running, out = Running(spec), Collected()
    running.process([(None, 1, 0)], out)
    running.advance(9, out)
    assert out.rows == []
    running.advance(25, out)
    assert out.rows == [(0, 3, 1)]
    running.process([(None, 1, 0), (None, 1, 0)], out)
    running.advance(99, out)
    assert out.rows == [(0, 3, 1), (0, 3, 3)]


def test_count_windows_are_checked():
    assert count_sliding(4, 3).describe() == "count 4 every 3"
    for make, message in (
        (lambda: count_tumbling(0), "the length of a count window is 0: it must be a whole number, at least 1"),
        (lambda: count_sliding(4, 1.5), "the slide of a count window is 1.5: write a whole number, such as 2"),
        (
            lambda: WindowAggregate((), count_tumbling(4), RUNNING, 5_000_000),
            "allowed_lateness is 5s, but nothing is late in count 4 windows: leave it out",
        ),
        (
            lambda: WindowAggregate((), global_window(), RUNNING, 5_000_000),
            "allowed_lateness is 5s, but nothing is late in global windows: leave it out",
        ),
        (
            lambda: WindowAggregate((), tumbling("1h"), RUNNING, 5_000_000, time="processing"),
            "allowed_lateness is 5s, but nothing is late in processing time: leave it out",
        ),
        (
            lambda: WindowAggregate((), count_tumbling(4), RUNNING, trigger=on_event_time()),
            "count 4 windows end with a record, not at a time: leave out the trigger 'on event time', or use "
            "wb.triggers.on_count() or wb.triggers.early()",
        ),
    ):
        with pytest.raises(SettingError) as error:
            make()
        assert str(error.value) == message


def test_records_of_count_windows_that_are_kept_have_no_time_where_the_stream_has_none():
    spec = WindowAggregate((), GlobalWindow(), WHOLE, trigger=Schedule("never", records=2))
    running, out = Running(spec), Collected()
    batch = pa.RecordBatch.from_arrays([pa.array(["a"] * 3), pa.array([3, 1, 2])], schema=SCHEMA)
    running.operators[0].process(Records(batch), 0, out)
    assert out.rows == [(2, 4, 1, 2.0, 2.0, (3, 1), (3, 1))]
    assert records([]).timestamps.dtype == np.int64
