"""Windows of every kind against a model that works record by record, at random."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_model import SCHEMA, Collected, Model, Running

from workbench.durations import MAX_TIME, NO_TIME
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.aggregates.window_functions import collect_list, median, top_k
from workbench.operators.windows import entries as window_entries
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.windows import WindowAssigner, keep_last, keep_since
from workbench.windows.cumulative import Cumulative
from workbench.windows.schedule import AT_END, Schedule, on_count, on_event_time, on_processing_time, purging
from workbench.windows.session import Session
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

RUNNING = (("rows", agg.count()), ("total", agg.sum("v")), ("least", agg.min("v")), ("mean", agg.mean("v")))
WHOLE = (*RUNNING, ("middle", median("v")), ("top", top_k("v", 2)), ("all", collect_list("v")))


def results(rows: list[tuple]) -> tuple:
    """RUNNING of (value, time, arrival)."""
    some = [value for value, *_ in rows if value is not None]
    return (len(rows), *((sum(some), min(some), sum(some) / len(some)) if some else (None,) * 3))


def whole_results(rows: list[tuple]) -> tuple:
    """WHOLE of (value, time, arrival)."""
    some = sorted(value for value, *_ in rows if value is not None)
    middle = (some[(len(some) - 1) // 2] + some[len(some) // 2]) / 2 if some else None
    return (*results(rows), middle, tuple(some[::-1][:2]), tuple(value for value, *_ in rows))


def kept_last(n: int):
    return lambda rows: rows[-n:]


def kept_since(span: int):
    return lambda rows: [row for row in rows if row[1] > max(time for _, time, _ in rows) - span]


@pytest.fixture(autouse=True, scope="module")
def _pack_early() -> Iterator[None]:
    """Let the operator pack its entries also when they are few."""
    few, window_entries._FEW_ENTRIES = window_entries._FEW_ENTRIES, 2
    yield
    window_entries._FEW_ENTRIES = few


class Thirds(WindowAssigner):
    """A user's own: times up to 30 in two windows of different lengths, later ones in none."""

    def windows(self, time_us):
        if time_us <= 30:
            start = math.floor(time_us / 20) * 20
            yield start, start + 20
            yield start - 7, start + 23


def tumbling_model(size, offset=0):
    def windows(time):
        start = math.floor((time - offset) / size) * size + offset
        return [(start, start + size)]

    return windows


def sliding_model(size, slide, offset=0):
    def windows(time):
        starts = [s for s in range(time - size - slide, time + 1) if (s - offset) % slide == 0]
        return [(s, s + size) for s in starts if s <= time < s + size]

    return windows


def cumulative_model(size, step, offset=0):
    def windows(time):
        start = math.floor((time - offset) / size) * size + offset
        return [(start, end) for end in range(start + step, start + size + 1, step) if time < end]

    return windows


def thirds_model(time):
    return list(Thirds().windows(time))


KINDS = st.one_of(
    st.tuples(st.integers(1, 25), st.integers(0, 24)).map(
        lambda p: (Tumbling(p[0], p[1] % p[0]), tumbling_model(p[0], p[1] % p[0]))
    ),
    st.tuples(st.integers(1, 25), st.integers(1, 25), st.integers(0, 24)).map(
        lambda p: (Sliding(p[0], p[1], p[2] % p[1]), sliding_model(p[0], p[1], p[2] % p[1]))
    ),
    st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(0, 35)).map(
        lambda p: (
            Cumulative(p[0] * p[1], p[0], p[2] % (p[0] * p[1])),
            cumulative_model(p[0] * p[1], p[0], p[2] % (p[0] * p[1])),
        )
    ),
    st.integers(1, 20).map(lambda gap: (Session(gap), None)),
    st.just((Thirds(), thirds_model)),
)
TRIGGERS = st.one_of(
    st.just(AT_END),
    st.sampled_from([on_event_time(), on_processing_time(), purging(AT_END)]),
    st.integers(1, 4).map(on_count),
    st.integers(1, 4).map(lambda n: purging(on_count(n))),
    st.integers(2, 9).map(lambda us: Schedule(every_us=us)),
    st.integers(2, 9).map(lambda us: Schedule(every_us=us, every_in="event")),
    st.integers(2, 9).map(lambda us: purging(Schedule(every_us=us))),
)
EVICTORS = st.one_of(
    st.none(),
    st.none(),
    st.integers(1, 3).map(lambda n: (keep_last(n), kept_last(n))),
    st.integers(1, 9).map(lambda us: (keep_since(f"{us}us"), kept_since(us))),
)
TIMES = st.one_of(st.integers(-60, 60), st.integers(-20, 20), st.just(NO_TIME))
ROW = st.tuples(st.sampled_from(["a", "b", "c", None]), st.one_of(st.none(), st.integers(-9, 9)), TIMES)
ACTION = st.one_of(
    st.tuples(st.just("batch"), st.lists(ROW, min_size=1, max_size=12)),
    st.tuples(st.just("batch"), st.lists(ROW, min_size=1, max_size=12)),
    st.tuples(st.just("watermark"), st.integers(-70, 70)),
    st.tuples(st.just("clock"), st.integers(1, 15)),
    st.tuples(st.just("restore"), st.integers(1, 3)),
)


def test_an_offset_shifts_the_panes_as_it_shifts_the_windows() -> None:
    times = np.array([-1, 0, 2, 3, 12, 13], np.int64)
    shifted = Tumbling(10, 3)
    assert shifted.panes(times).tolist() == [-7, -7, -7, 3, 3, 13]
    assert [shifted.window_start(time) for time in times.tolist()] == shifted.panes(times).tolist()


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.sampled_from([("k",), ()]),
    KINDS,
    st.sampled_from(["event", "event", "processing"]),
    st.sampled_from([0, 0, 3, 30]),
    TRIGGERS,
    EVICTORS,
    st.booleans(),
    st.lists(ACTION, min_size=2, max_size=14),
)
def test_any_run_gives_what_the_model_gives(keys, kind, time, lateness, trigger, evictor, whole, actions):
    window, model_windows = kind
    if time == "processing":
        lateness, trigger = 0, AT_END if trigger == on_event_time() else trigger
    spec = WindowAggregate(
        keys, window, WHOLE if whole else RUNNING, lateness, "late", time, trigger, evictor and evictor[0]
    )
    model = Model(
        model_windows,
        whole_results if whole else results,
        keyed=bool(keys),
        gap=window.gap_us if isinstance(window, Session) else 0,
        lateness=lateness,
        by_clock=time == "processing",
        end=trigger.end,
        count=trigger.records,
        every=trigger.every_us,
        every_in=trigger.every_in,
        purge=trigger.purge,
        evict=evictor and evictor[1],
    )
    check(Running(spec), model, actions)


@settings(max_examples=100)
@given(
    st.integers(2, 30),
    st.integers(1, 12),
    st.integers(0, 11),
    st.sampled_from([0, 4, 30]),
    st.sampled_from([AT_END, AT_END, purging(AT_END), Schedule(every_us=4)]),
    st.lists(ACTION, min_size=2, max_size=12),
)
def test_records_that_are_folded_by_panes_count_once_in_each_window(size, slide, offset, lateness, trigger, actions):
    slide = min(slide, size - 1)
    window = Sliding(size, slide, offset % slide)
    spec = WindowAggregate(("k",), window, RUNNING, lateness, "late", trigger=trigger)
    assert spec.create([SCHEMA])._panes is not None
    model = Model(
        sliding_model(size, slide, offset % slide),
        results,
        lateness=lateness,
        every=trigger.every_us,
        purge=trigger.purge,
    )
    check(Running(spec), model, actions)


@settings(max_examples=200)
@given(
    st.integers(2, 12),
    st.sampled_from([0, 5, 40]),
    st.sampled_from([AT_END, AT_END, on_count(3), purging(AT_END), Schedule(every_us=3, every_in="event")]),
    st.booleans(),
    st.lists(
        st.one_of(
            st.tuples(
                st.just("batch"),
                st.lists(
                    st.tuples(st.sampled_from("ab"), st.integers(-9, 9), st.integers(0, 150)), min_size=4, max_size=40
                ),
            ),
            st.tuples(st.just("watermark"), st.integers(0, 160)),
            st.tuples(st.just("restore"), st.integers(1, 3)),
        ),
        max_size=6,
    ),
)
def test_many_sessions_of_few_keys_meet_as_in_the_model(gap, lateness, trigger, whole, actions):
    spec = WindowAggregate(("k",), Session(gap), WHOLE if whole else RUNNING, lateness, "late", trigger=trigger)
    model = Model(
        None,
        whole_results if whole else results,
        gap=gap,
        lateness=lateness,
        end=trigger.end,
        count=trigger.records,
        every=trigger.every_us,
        every_in=trigger.every_in,
        purge=trigger.purge,
    )
    check(Running(spec), model, actions)


def check(running: Running, model: Model, actions: list[tuple]) -> None:
    """Let both do the same and compare all that they say."""
    keys, ordered = running.spec.keys, True
    for action, argument in [*actions, ("watermark", MAX_TIME)]:
        out = Collected()
        late: list[tuple] = []
        wanted: list[tuple] = []
        first = model.watermark + 1 if model.by_clock else NO_TIME  # what those behind would still take
        if action == "batch":
            wanted, late = model.process(argument)
            running.process(argument, out)
        elif action == "watermark":
            wanted = model.advance_watermark(argument)
            running.watermark(argument, out)
        elif action == "clock":
            wanted = model.advance_clock(model.now + argument)
            running.advance(model.now, out)
        else:
            ordered = ordered and argument == 1
            running.restore(argument)
        assert out.rows == wanted if ordered else sorted(map(repr, out.rows)) == sorted(map(repr, wanted))
        assert sorted(map(repr, out.late)) == sorted(map(repr, late))
        assert out.times == [max(row[len(keys) + 1] - 1, first) for row in out.rows]
    assert sum(operator.snapshot(2)["windows"].num_rows for operator in running.operators) == 0
