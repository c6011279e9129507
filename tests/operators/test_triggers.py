"""Triggers and evictors: built-in ones, and those of users."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_windows import ACTION, RUNNING, WHOLE, results, tumbling_model, whole_results
from window_model import Collected, Model, Running

from workbench.durations import MAX_TIME, NO_TIME
from workbench.errors import RecordError, SettingError
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.aggregates.window_functions import collect_list
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.windows import Evictor, global_window, keep_last, keep_since, tumbling
from workbench.windows.schedule import early, on_count, on_event_time, on_processing_time, purging
from workbench.windows.session import Session
from workbench.windows.trigger import Action, Trigger
from workbench.windows.tumbling import Tumbling

SUM = (("sum", agg.sum("v")),)


def windows_of_ten(trigger=None, lateness=0, time="event", evictor=None, aggregates=SUM, window=None) -> Running:
    more = {} if trigger is None else {"trigger": trigger}
    window = window or Tumbling(10)
    return Running(WindowAggregate(("k",), window, aggregates, lateness, "late", time, evictor=evictor, **more))


# the workbench's own -------------------------------------------------------------------------------------------------


def test_a_window_fires_once_at_its_end_whatever_the_clock_says():
    job, out = windows_of_ten(on_event_time()), Collected()
    job.process([("a", 1, 3)], out)
    job.advance(1_000, out)
    assert out.rows == []
    job.watermark(9, out)
    job.watermark(30, out)
    assert out.rows == [("a", 0, 10, 1)]


def test_a_window_of_event_time_may_fire_by_the_clock():
    job, out = windows_of_ten(on_processing_time()), Collected()
    job.process([("a", 1, 3), ("a", 1, 15)], out)
    assert [operator.next_time_us() for operator in job.operators] == [10]
    job.advance(10, out)
    job.watermark(9, out)
    assert out.rows == [("a", 0, 10, 1)]
    job.process([("a", 2, 18)], out)
    job.advance(25, out)
    assert out.rows[1:] == [("a", 10, 20, 3)]


def test_early_results_come_while_there_is_news_and_the_final_one_always():
    job, out = windows_of_ten(early("2us"), window=Tumbling(100)), Collected()
    job.process([("a", 1, 3)], out)
    assert out.rows == []
    job.advance(2, out)
    assert out.rows == [("a", 0, 100, 1)]
    job.advance(50, out)
    assert len(out.rows) == 1  # no news
    job.process([("a", 2, 4), ("b", 5, 4)], out)
    job.process([("a", 4, 4)], out)
    job.advance(52, out)
    assert out.rows[1:] == [("a", 0, 100, 7), ("b", 0, 100, 5)]
    job.watermark(99, out)
    assert out.rows[3:] == [("a", 0, 100, 7), ("b", 0, 100, 5)]


def test_early_results_by_the_watermark():
    job, out = windows_of_ten(early("20us", time="event"), window=Tumbling(100)), Collected()
    job.process([("a", 1, 3), ("a", 2, 25)], out)
    job.watermark(18, out)
    assert out.rows == []
    job.watermark(19, out)
    assert out.rows == [("a", 0, 100, 3)]
    job.watermark(45, out)
    assert len(out.rows) == 1  # no news
    job.process([("a", 4, 50)], out)
    job.watermark(58, out)
    assert len(out.rows) == 1
    job.watermark(59, out)
    assert out.rows[1:] == [("a", 0, 100, 7)]


def test_the_result_of_a_timer_in_event_time_has_the_time_of_the_timer():
    class At(Trigger):
        def on_record(self, time_us, window, context):
            context.register_event_timer(time_us + 30)
            context.register_event_timer(window.end - 1)

        def on_event_time(self, time_us, window, context):
            return Action.FIRE

    for marks in ([31, 36, 80], [10, 60, 80], [80]):
        job, out = windows_of_ten(At(), window=global_window()), Collected()
        job.process([("a", 1, 1), ("b", 2, 6)], out)
        for mark in marks:
            job.watermark(mark, out)
        job.watermark(MAX_TIME, out)  # no time for a record
        assert sorted(zip(out.rows, out.times, strict=True)) == [
            (("a", 1), 31),
            (("a", 1), 81),
            (("b", 2), 36),
            (("b", 2), 81),
        ]


def test_early_results_that_purge_are_parts_of_the_whole():
    job, out = windows_of_ten(purging(early("2us")), window=Tumbling(100)), Collected()
    job.process([("a", 1, 3)], out)
    job.advance(2, out)
    job.process([("a", 2, 4)], out)
    job.advance(4, out)
    job.watermark(99, out)
    assert out.rows == [("a", 0, 100, 1), ("a", 0, 100, 2)]


def test_a_window_that_fires_by_count_does_not_fire_at_its_end():
    job, out = windows_of_ten(on_count(2)), Collected()
    job.process([("a", 1, 1), ("b", 2, 2), ("a", 4, 3), ("a", 8, 4), ("a", 16, 5), ("a", 32, 6)], out)
    assert out.rows == [("a", 0, 10, 5), ("a", 0, 10, 29)]
    job.watermark(MAX_TIME, out)
    assert len(out.rows) == 2
    assert job.operators[0].snapshot(1)["windows"].num_rows == 0


def test_a_session_counts_the_records_of_those_that_it_absorbs():
    job, out = windows_of_ten(on_count(3), window=Session(10)), Collected()
    job.process([("a", 1, 0), ("a", 2, 16), ("a", 4, 8), ("a", 8, 9)], out)
    assert out.rows == [("a", 0, 26, 7)]


def test_late_records_are_corrections_dropped_or_put_aside():
    """One stream, three ways: the record of time 5 comes when the watermark is at 12."""
    for lateness, corrected, aside in ((0, [], [("a", 4, 5)]), (3, [], [("a", 4, 5)]), (4, [("a", 0, 10, 5)], [])):
        job, out = windows_of_ten(lateness=lateness), Collected()
        job.process([("a", 1, 3), ("a", 2, 14)], out)
        job.watermark(12, out)
        job.process([("a", 4, 5)], out)
        assert out.rows == [("a", 0, 10, 1), *corrected]
        assert out.late == aside


def test_triggers_are_described_and_checked():
    assert Running(WindowAggregate((), tumbling("1h"), SUM, trigger=early("1min"))).spec.describe() == (
        "tumbling 1h, early 1min: sum(v)"
    )
    assert purging(on_count(3)).describe() == "on count 3, purging"
    for make, message in (
        (lambda: on_count(0), r"on_count\(0\): a window fires after at least one record"),
        (lambda: early("0s"), r"the interval of early\(\) is 0ms: it must be above zero"),
        (lambda: early("1s", time="wall"), "'wall'"),
        (lambda: keep_last(0), r"keep_last\(0\): a window keeps at least one record"),
        (lambda: keep_since("0s"), r"keep_since\(0ms\): the span must be longer than zero"),
        (
            lambda: windows_of_ten(trigger="daily"),
            r"the trigger is 'daily': write for example wb.triggers.early\('1min'\)",
        ),
        (lambda: windows_of_ten(evictor=3), r"the evictor is 3: write for example wb.windows.keep_last\(100\)"),
        (lambda: windows_of_ten(time="wall"), "'wall'"),
        (
            lambda: windows_of_ten(on_event_time(), time="processing"),
            "windows of processing time cannot wait for event time: leave out the trigger 'on event time', or the time",
        ),
        (lambda: WindowAggregate((), "1h", SUM), r"the window is '1h': write for example wb.tumbling\('1h'\)"),
    ):
        with pytest.raises(SettingError, match=message):
            make()


# users' triggers -----------------------------------------------------------------------------------------------------


class AtEndOr(Trigger):
    """At the end, or after each `n` records; by the letter of what `Schedule` does, once per batch for late ones."""

    def __init__(self, n: int | None, purge: bool = False) -> None:
        self.n = n
        self.purge = purge

    def _fire(self) -> Action:
        return Action.FIRE_AND_PURGE if self.purge else Action.FIRE

    def on_record(self, time_us, window, context):
        if self.n is None:
            context.register_event_timer(window.end - 1)
            return None
        context.state["seen"] = context.state.get("seen", 0) + 1
        if context.state["seen"] < self.n:
            return Action.CONTINUE
        context.state["seen"] = 0
        return self._fire()

    def on_event_time(self, time_us, window, context):
        return self._fire() if time_us == window.end - 1 else Action.CONTINUE

    def on_merge(self, window, context, absorbed):
        seen = sum(other.state.get("seen", 0) for other in absorbed)
        context.state["seen"] = context.state.get("seen", 0) + seen


@settings(max_examples=150)
@given(
    st.one_of(st.integers(1, 25).map(Tumbling), st.integers(1, 20).map(Session)),
    st.sampled_from([0, 3, 30]),
    st.sampled_from([None, 1, 2, 3]),
    st.booleans(),
    st.booleans(),
    st.lists(ACTION, max_size=12),
)
def test_a_trigger_that_does_what_the_workbenchs_do_gives_what_they_give(window, lateness, n, purge, whole, actions):
    trigger = AtEndOr(n, purge)
    spec = WindowAggregate(("k",), window, WHOLE if whole else RUNNING, lateness, "late", trigger=trigger)
    model = Model(
        None if isinstance(window, Session) else tumbling_model(window.size_us),
        whole_results if whole else results,
        gap=window.gap_us if isinstance(window, Session) else 0,
        lateness=lateness,
        end="window" if n is None else "never",
        count=n,
        purge=purge,
    )
    running, ordered = Running(spec), True
    for action, argument in [*actions, ("watermark", MAX_TIME)]:
        out = Collected()
        late, wanted = [], []
        if action == "batch":
            wanted, late = model.process(argument)
            running.process(argument, out)
        elif action == "watermark":
            wanted = model.advance_watermark(argument)
            running.watermark(argument, out)
        elif action == "restore":
            ordered = ordered and argument == 1
            running.restore(argument)
        in_order = ordered and action == "batch" and n is not None
        assert out.rows == wanted if in_order else sorted(map(repr, out.rows)) == sorted(map(repr, wanted))
        assert sorted(map(repr, out.late)) == sorted(map(repr, late))


class Pairs(Trigger):
    """Gives every two records, and at the end what is left."""

    def on_record(self, time_us, window, context):
        context.register_event_timer(window.end - 1)
        context.state["odd"] = not context.state.get("odd")
        return Action.CONTINUE if context.state["odd"] else Action.FIRE_AND_PURGE

    def on_event_time(self, time_us, window, context):
        return Action.FIRE


@pytest.mark.parametrize("restored", [False, True])
def test_a_window_without_records_since_it_was_purged_does_not_fire(restored):
    job, out = windows_of_ten(Pairs()), Collected()
    job.process([("a", 1, 1), ("a", 2, 1), ("b", 4, 1), ("b", 8, 2), ("b", 16, 3)], out)
    assert sorted(row[-1] for row in out.rows) == [3, 12]
    if restored:
        job.restore(2)
    job.watermark(9, out)
    assert [row[-1] for row in out.rows[2:]] == [16]


def test_a_count_that_purges_gives_each_record_once():
    job, out = windows_of_ten(purging(on_count(2))), Collected()
    job.process([("a", 1, 1), ("a", 2, 1), ("a", 4, 2), ("b", 8, 3), ("a", 16, 3), ("a", 32, 4)], out)
    assert out.rows == [("a", 0, 10, 3), ("a", 0, 10, 20)]


class Impatient(Trigger):
    """Fires five microseconds of the clock after the first record, and forgets; throws away what is negative."""

    def on_record(self, time_us, window, context):
        if "at" not in context.state:
            context.state["at"] = context.now_us + 5
            context.register_processing_timer(context.now_us + 5)
        return Action.PURGE if time_us < 0 else None

    def on_processing_time(self, time_us, window, context):
        del context.state["at"]
        return Action.FIRE_AND_PURGE

    def describe(self):
        return "impatient"


def test_a_trigger_with_timers_of_processing_time_and_state_that_survives():
    job, out = windows_of_ten(Impatient(), window=global_window()), Collected()
    job.advance(100, out)
    job.process([("a", 1, 1), ("a", 2, -1), ("a", 4, 1), ("b", 8, 1)], out)
    job.advance(102, out)
    job.process([("a", 16, 1)], out)
    job.restore(3)
    assert min(op.next_time_us() for op in job.operators if op.next_time_us() is not None) == 105
    job.advance(104, out)
    assert out.rows == []
    job.advance(105, out)
    assert sorted(out.rows) == [("a", 20), ("b", 8)]
    job.process([("b", 32, 1)], out)
    job.advance(110, out)
    assert out.rows[2:] == [("b", 32)]
    assert job.spec.describe() == "global, impatient: sum(v)"


class Restless(Trigger):
    """Fires at the end of the window, and after that by timers of both times."""

    def on_record(self, time_us, window, context):
        for after_us in (-1, 5, 90):
            context.register_event_timer(window.end + after_us)
        context.register_processing_timer(1_000_000)

    def on_event_time(self, time_us, window, context):
        return Action.FIRE

    def on_processing_time(self, time_us, window, context):
        return Action.FIRE


@pytest.mark.parametrize("marks", [(9, 12, 30, 200), (30, 200), (200,), (MAX_TIME,)])
@pytest.mark.parametrize(("lateness", "firings"), [(0, 1), (20, 2)])
def test_a_window_that_is_over_is_not_asked_however_far_time_goes_at_once(marks, lateness, firings):
    job, out = windows_of_ten(Restless(), lateness), Collected()
    job.process([("a", 1, 3)], out)
    for mark in marks:
        job.watermark(mark, out)
    assert out.rows == [("a", 0, 10, 1)] * firings


@pytest.mark.parametrize("moments", [(10, 1_000_000), ()])
def test_neither_is_one_of_processing_time(moments):
    job, out = windows_of_ten(AtClocksEnd(), time="processing"), Collected()
    job.process([("a", 1, 3)], out)
    for moment in moments:
        job.advance(moment, out)
    job.watermark(MAX_TIME, out)  # no window waits for the clock any more
    assert out.rows == [("a", 0, 10, 1)]


class AtClocksEnd(Trigger):
    """Fires when the clock ends the window, and would after that."""

    def on_record(self, time_us, window, context):
        context.register_processing_timer(window.end)
        context.register_processing_timer(window.end + 5)

    def on_processing_time(self, time_us, window, context):
        return Action.FIRE


class Cancelling(Trigger):
    """Moves its timer with each record."""

    def on_record(self, time_us, window, context):
        for timer in list(context.event_timers):
            context.delete_event_timer(timer)
        context.register_event_timer(time_us + 2)

    def on_event_time(self, time_us, window, context):
        context.register_event_timer(time_us + 3)
        return Action.FIRE


def test_timers_can_be_taken_back_and_set_while_one_fires():
    job, out = windows_of_ten(Cancelling(), window=Tumbling(100)), Collected()
    job.process([("a", 1, 1), ("a", 2, 5)], out)
    job.watermark(6, out)
    assert out.rows == []
    job.watermark(13, out)  # at 7, 10 and 13
    assert out.rows == [("a", 0, 100, 3)] * 3
    counters = job.operators[0]._context.counters
    assert counters.numFiredTimers == 3


class Broken(Trigger):
    def __init__(self, result: object) -> None:
        self.result = result

    def on_record(self, time_us, window, context):
        if isinstance(self.result, Exception):
            raise self.result
        context.state["set"] = {1}
        return self.result


def test_what_goes_wrong_in_a_trigger_is_said():
    for result, message in (
        (ValueError("no"), "the trigger Broken raised ValueError: no"),
        (True, "the trigger Broken returned True: return a wb.triggers.Action, or None to continue"),
    ):
        with pytest.raises(RecordError) as error:
            windows_of_ten(Broken(result)).process([("a", 1, 1)], Collected())
        assert str(error.value) == message
    job = windows_of_ten(Broken(None))
    job.process([("a", 1, 1)], Collected())
    with pytest.raises(RecordError, match=r"keeps .*'set': \{1\}.*: put JSON values only into context.state"):
        job.operators[0].snapshot(1)


# evictors ------------------------------------------------------------------------------------------------------------


def test_only_the_last_records_count():
    aggregates = (("n", agg.count()), ("sum", agg.sum("v")), ("all", collect_list("v")))
    job, out = windows_of_ten(evictor=keep_last(2), aggregates=aggregates, lateness=5), Collected()
    job.process([("a", 1, 9), ("a", 2, 0), ("b", 8, 1), ("a", 4, 3)], out)
    job.watermark(9, out)
    assert out.rows == [("a", 0, 10, 2, 6, (2, 4)), ("b", 0, 10, 1, 8, (8,))]
    job.process([("a", 16, 1)], out)
    assert out.rows[2:] == [("a", 0, 10, 2, 20, (4, 16))]


def test_only_recent_records_count():
    job, out = windows_of_ten(evictor=keep_since("3us"), aggregates=(("all", collect_list("v")),)), Collected()
    job.process([("a", 1, 9), ("a", 2, 6), ("a", 4, 7), ("b", 8, 1)], out)
    job.watermark(9, out)
    assert out.rows == [("a", 0, 10, (1, 4)), ("b", 0, 10, (8,))]


def test_records_without_a_time_are_recent_only_among_their_like():
    aggregates = (("all", collect_list("v")),)
    spec = WindowAggregate(("k",), global_window(), aggregates, trigger=on_count(2), evictor=keep_since("3us"))
    job, out = Running(spec), Collected()
    job.process(
        [("a", 1, NO_TIME), ("a", 2, NO_TIME), ("b", 4, NO_TIME), ("b", 8, -7), ("b", 16, 5), ("b", 32, 3)], out
    )
    assert out.rows == [("a", (1, 2)), ("b", (8,)), ("b", (16, 32))]


class Positive(Evictor):
    """A user's own, which looks at a column that is not aggregated."""

    columns = ("v",)

    def keep(self, records, times):
        return np.array([value is not None and value > 0 for value in records["v"].to_pylist()])


def test_a_users_evictor_takes_records_out_of_the_window():
    spec = WindowAggregate(("k",), Tumbling(10), (("n", agg.count()),), trigger=on_count(2), evictor=Positive())
    job, out = Running(spec), Collected()
    job.process([("a", 1, 1), ("a", -1, 2), ("a", 3, 3), ("a", None, 4)], out)
    assert out.rows == [("a", 0, 10, 1), ("a", 0, 10, 2)]
    assert spec.columns_read() == {"k", "v"}
    assert spec.describe() == "tumbling 10us, on count 2, Positive: count()"
    assert job.operators[0].snapshot(1)["members"].num_rows == 2


def test_only_a_trigger_can_purge() -> None:
    with pytest.raises(SettingError, match=r"purging\(3\): pass a trigger"):
        purging(3)  # type: ignore[arg-type]
