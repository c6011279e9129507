"""Records near the ends of time: each is in its windows and joins, or refused with an error; no bound wraps around."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from window_model import SCHEMA, Collected, Running

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.replay.log import write_log
from workbench.dashboard.views.sink_part import Latest, html, series
from workbench.drivers.contract.step import told
from workbench.durations import (
    EARLIEST_TIME,
    LAST_WATERMARK,
    LATEST_TIME,
    LONGEST_US,
    MAX_TIME,
    NO_TIME,
    format_instant,
    parse_duration,
)
from workbench.elements import Records, Watermark, event_times
from workbench.errors import HistoryError, JobError, RecordError, SettingError
from workbench.operators.contract.base import OperatorContext
from workbench.operators.contract.python_rows import python_rows, python_values
from workbench.operators.event_time.timestamps import AssignTimestamps
from workbench.operators.event_time.watermarks import Bounded, Custom
from workbench.operators.joins.columns import JoinColumns
from workbench.operators.joins.interval import IntervalJoin
from workbench.operators.joins.window import WindowJoin
from workbench.operators.process.process import Process
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.operators.windows.apply import WindowApply
from workbench.operators.windows.settings import WindowSettings
from workbench.telemetry.scene import marbles_of
from workbench.windows.session import Session
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

HOUR = 3_600_000_000
LONGEST = timedelta(microseconds=LONGEST_US)
NEAR = st.one_of(
    st.sampled_from([0, 1, HOUR - 1, HOUR, HOUR + 1, LONGEST_US // 2]), st.integers(0, 3 * HOUR), st.integers(0, 3)
)
TIMES = st.one_of(NEAR.map(lambda gap: EARLIEST_TIME + gap), NEAR.map(lambda gap: LATEST_TIME - gap), st.just(0))
SIZES = st.sampled_from([1, 7, HOUR, LONGEST_US - 1, LONGEST_US])

Row = tuple[str, int, int]
"""Key, value and event time."""
Window = tuple[int, int]


@st.composite
def rows(draw: st.DrawFn, least: int = 1) -> list[Row]:
    """In the order of their times, so that none is late."""
    times = sorted(draw(st.lists(TIMES, min_size=least, max_size=12)))
    return [(draw(st.sampled_from("ab")), number, time) for number, time in enumerate(times)]


# windows -------------------------------------------------------------------------------------------------------------


def tumbling(time: int, size: int, offset: int) -> list[Window]:
    start = (time - offset) // size * size + offset
    return [(start, start + size)]


def sliding(time: int, size: int, slide: int, offset: int) -> list[Window]:
    last = (time - offset) // slide * slide + offset
    starts = [last - back * slide for back in range(size // slide + 1)]
    return [(start, start + size) for start in starts if start <= time < start + size]


def sessions(some: Sequence[Row], gap: int) -> Counter[tuple[str, int, int]]:
    """How many records each session has."""
    found: Counter[tuple[str, int, int]] = Counter()
    for key in "ab":
        times = [time for k, _, time in some if k == key]
        while times:
            start = end = times[0]
            count = 0
            while times and times[0] <= end:
                end = times.pop(0) + gap
                count += 1
            found[key, start, end] = count
    return found


class OnEach(wb.triggers.Trigger):
    """Fires at the end, which a timer tells; another waits for ever."""

    def on_record(self, time_us, window, context):
        context.register_event_timer(window.end - 1)
        context.register_event_timer(2**70)
        context.register_processing_timer(2**70)

    def on_event_time(self, time_us, window, context):
        return wb.triggers.Action.FIRE_AND_PURGE if time_us == window.end - 1 else None


class WaitsForEver(wb.triggers.Trigger):
    """Fires when the input ends."""

    def on_record(self, time_us, window, context):
        context.register_event_timer(2**62)
        context.register_processing_timer(2**62)

    def on_event_time(self, time_us, window, context):
        return wb.triggers.Action.FIRE


class HalfOpen(wb.windows.WindowAssigner):
    """An assigner of a user: hours, and everything since the hour began."""

    def windows(self, time_us):
        start = time_us // HOUR * HOUR
        return [(start, start + HOUR), (start, MAX_TIME)]


@dataclass(frozen=True)
class Kind:
    """How windows are declared, and in which windows a time is."""

    make: Callable[[int, int], wb.windows.WindowAssigner]
    windows: Callable[[int, int, int], list[Window]] | None
    options: Callable[[int, int], dict[str, Any]] = lambda size, offset: {}
    apply: bool = False


def _tumbling(time: int, size: int, offset: int) -> list[Window]:
    return tumbling(time, size, offset)


def _slide(size: int) -> int:
    return max(1, size // 3)


KINDS = {
    "tumbling": Kind(Tumbling, _tumbling),
    "lateness": Kind(Tumbling, _tumbling, lambda size, offset: {"allowed_lateness_us": LONGEST_US}),
    "evictor": Kind(Tumbling, _tumbling, lambda size, offset: {"evictor": wb.windows.keep_since(LONGEST)}),
    "early": Kind(Tumbling, _tumbling, lambda size, offset: {"trigger": wb.triggers.early(LONGEST, "event")}),
    "early, by the clock": Kind(Tumbling, _tumbling, lambda size, offset: {"trigger": wb.triggers.early(LONGEST)}),
    "trigger": Kind(Tumbling, _tumbling, lambda size, offset: {"trigger": OnEach()}),
    "apply": Kind(Tumbling, _tumbling, apply=True),
    "sliding": Kind(
        lambda size, offset: Sliding(size, _slide(size), offset % _slide(size)),
        lambda time, size, offset: sliding(time, size, _slide(size), offset % _slide(size)),
    ),
    "longest slide": Kind(
        lambda size, offset: Sliding(size, LONGEST_US, offset),
        lambda time, size, offset: sliding(time, size, LONGEST_US, offset),
    ),
    "session": Kind(lambda size, offset: Session(size), None),
    "own assigner": Kind(
        lambda size, offset: HalfOpen(),
        lambda time, size, offset: [(time // HOUR * HOUR, time // HOUR * HOUR + HOUR), (time // HOUR * HOUR, MAX_TIME)],
    ),
}


def spec_of(kind: Kind, size: int, offset: int) -> Any:
    window, options = kind.make(size, offset), kind.options(size, offset)
    if kind.apply:
        schema = {"n": pa.int64()}
        return WindowApply(("k",), WindowSettings(window), lambda key, window, table: {"n": table.num_rows}, schema)
    return WindowAggregate(("k",), window, (("n", wb.count()),), **options)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=40, deadline=None)
@given(rows(), SIZES, st.integers(0, 12), st.data())
def test_every_record_is_in_its_windows(name: str, some: list[Row], size: int, cut: int, data: st.DataObject) -> None:
    """With a restore at another parallelism in between."""
    kind = KINDS[name]
    offset = data.draw(st.sampled_from([0, size // 2, size - 1]), label="offset")
    running, out = Running(spec_of(kind, size, offset)), Collected()
    first, second = some[:cut], some[cut:]
    running.process(first, out)
    if first:
        running.watermark(first[-1][2] - 1, out)
    running.restore(2)
    running.process(second, out)
    running.watermark(LAST_WATERMARK, out)
    running.watermark(MAX_TIME, out)
    if kind.windows is None:
        wanted = sessions(some, size)
    else:
        wanted = Counter((k, *window) for k, _, time in some for window in kind.windows(time, size, offset))
    found: dict[tuple[str, int, int], int] = {}
    for key, start, end, count in out.rows:
        found[key, start, end] = max(count, found.get((key, start, end), 0))
    assert found == dict(wanted)
    assert all(EARLIEST_TIME <= time <= LATEST_TIME for time in out.times)
    assert out.late == []


@settings(max_examples=60, deadline=None)
@given(rows(), SIZES, SIZES)
def test_windows_over_results_of_windows_lose_nothing(some: list[Row], size: int, next_size: int) -> None:
    """What comes out of a window at the end of time has a time that the next window can add its own size to."""
    first, between = Running(WindowAggregate(("k",), Session(size), (("v", wb.count()),))), Collected()
    first.process(some, between)
    first.watermark(MAX_TIME, between)
    inner = [(key, count, time) for (key, _, _, count), time in zip(between.rows, between.times, strict=True)]
    for window in (Tumbling(next_size), Session(next_size), Sliding(next_size, _slide(next_size))):
        second, out = Running(WindowAggregate(("k",), window, (("n", wb.sum("v")),))), Collected()
        second.process(inner, out)
        second.watermark(MAX_TIME, out)
        assert all(start < end for _, start, end, _ in out.rows)
        if not isinstance(window, Sliding):
            assert sum(count for *_, count in out.rows) == len(some)


@pytest.mark.parametrize(
    "window", [wb.windows.count_tumbling(2), wb.windows.global_window()], ids=lambda window: window.describe()
)
def test_windows_without_times_emit_results_whose_times_can_be_used(window: wb.windows.WindowAssigner) -> None:
    trigger = wb.triggers.early(LONGEST, "event")
    running, out = Running(WindowAggregate(("k",), window, (("n", wb.count()),), trigger=trigger)), Collected()
    running.process([("a", 1, EARLIEST_TIME), ("b", 2, LATEST_TIME - 1), ("b", 3, LATEST_TIME)], out)
    running.watermark(LAST_WATERMARK, out)
    running.watermark(MAX_TIME, out)
    assert {row[0]: row[-1] for row in out.rows} == {"a": 1, "b": 2}
    assert all(EARLIEST_TIME <= time <= LATEST_TIME for time in out.times)
    waiting = Running(WindowAggregate(("k",), window, (("n", wb.count()),), trigger=WaitsForEver()))
    waiting.process([("a", 1, 5), ("b", 2, NO_TIME)], out := Collected())
    assert waiting.operators[0].next_time_us() is None  # no clock comes so far
    waiting.watermark(MAX_TIME, out)
    assert (out.rows and set(out.times)) == {5, NO_TIME}  # a timer there is no time of a record
    after, later = Running(WindowAggregate(("k",), window, (("n", wb.count()),), trigger=trigger)), Collected()
    after.watermark(MAX_TIME, later)
    after.restore(1)  # a job that goes on from the end of its input
    after.process([("a", 1, 5)], later)
    assert later.rows == []  # no such moment comes


def test_no_clock_comes_to_the_end_of_a_window_without_end() -> None:
    class Open(wb.windows.WindowAssigner):
        def windows(self, time_us):
            return [(0, 2**62)]

    running, out = Running(WindowAggregate(("k",), Open(), (("n", wb.count()),), time="processing")), Collected()
    running.process([("a", 1, 5)], out)
    assert running.operators[0].next_time_us() is None
    running.watermark(MAX_TIME, out)
    assert out.rows == [("a", 0, 2**62, 1)]


def test_an_assigner_whose_windows_cannot_be_counted_is_refused() -> None:
    class Far(wb.windows.WindowAssigner):
        def windows(self, time_us):
            return [(time_us, time_us + 2**63)]

    running = Running(WindowAggregate((), Far(), (("n", wb.count()),)))
    with pytest.raises(RecordError, match=r"Far gave the window \(5, 9223372036854775813\): its bounds are microsec"):
        running.process([("a", 1, 5)], Collected())


@pytest.mark.parametrize(
    ("kind", "gap", "shown"),
    [
        (pa.int64(), LONGEST_US + 1, str(LONGEST_US + 1)),
        (pa.uint64(), 2**64 - 1, f"{2**64 - 1} as uint64"),
        (pa.duration("s"), 2**60, f"{2**60} as duration[s]"),
        (pa.duration("ns"), 1, "0"),
    ],
)
def test_a_gap_beyond_all_time_is_refused(kind: pa.DataType, gap: int, shown: str) -> None:
    schema = SCHEMA.append(pa.field("gap", kind))
    operator = WindowAggregate((), Session(column="gap"), (("n", wb.count()),)).create([schema])
    operator.open(OperatorContext())
    gaps = pa.array([gap], kind if not pa.types.is_duration(kind) else pa.int64()).cast(kind)
    batch = pa.record_batch([pa.array(["a"]), pa.array([1]), gaps], schema=schema)
    with pytest.raises(RecordError, match=re.escape(f"the session gap {shown}: a gap must be above zero and")):
        operator.process(Records(batch, np.array([0])), 0, Collected())


# joins ---------------------------------------------------------------------------------------------------------------

LEFT = pa.schema({"k": pa.string(), "x": pa.int64()})
RIGHT = pa.schema({"k": pa.string(), "y": pa.int64()})
Pair = tuple[str, int | None, int | None]


class Joined:
    """An output that keeps pairs and their times."""

    def __init__(self) -> None:
        self.pairs: list[Pair] = []
        self.times: list[int] = []

    def emit(self, records: Records) -> None:
        self.pairs += zip(*(records.batch.column(name).to_pylist() for name in ("k", "x", "y")), strict=True)
        self.times += [] if records.timestamps is None else records.timestamps.tolist()

    def emit_watermark(self, watermark_us: int) -> None:
        pass


def joined(spec: Any, left: Sequence[Row], right: Sequence[Row]) -> Joined:
    """All records of both sides through a join, restored in the middle."""

    def opened() -> Any:
        operator = spec.create([LEFT, RIGHT])
        operator.open(OperatorContext())
        return operator

    operator, out = opened(), Joined()
    ordered = sorted([(row, 0) for row in left] + [(row, 1) for row in right], key=lambda item: item[0][2])
    for at, ((key, value, time), port) in enumerate(ordered):
        if at == len(ordered) // 2:
            operator.on_watermark(time - 1, out)
            snapshot = {name: item() if callable(item) else item for name, item in operator.snapshot(1).items()}
            operator = opened()
            operator.restore([snapshot])
        batch = pa.record_batch([pa.array([key]), pa.array([value])], schema=(LEFT, RIGHT)[port])
        operator.process(Records(batch, np.array([time])), port, out)
    operator.on_watermark(LAST_WATERMARK, out)
    operator.on_watermark(MAX_TIME, out)
    assert operator._context.counters.numLateRecordsDropped == 0
    assert all(EARLIEST_TIME <= time <= LATEST_TIME for time in out.times)
    return out


def paired(left: Sequence[Row], right: Sequence[Row], near: Callable[[int, int], int]) -> Counter[Pair]:
    """Pairs as often as `near` says of their times, and what has none."""
    found: Counter[Pair] = Counter()
    for (k, x, l_time), (other, y, r_time) in product(left, right):
        if k == other and (times := near(l_time, r_time)):
            found[k, x, y] += times
    return found


@settings(max_examples=80, deadline=None)
@given(rows(0), rows(0), st.sampled_from([-LONGEST_US, -HOUR, 0, 1]), st.sampled_from([1, HOUR, LONGEST_US]))
def test_an_interval_join_at_the_ends_of_time(left: list[Row], right: list[Row], before: int, after: int) -> None:
    spec = IntervalJoin(JoinColumns(("k",), ("k",), "left"), before, after)
    out = joined(spec, left, right)
    wanted = paired(left, right, lambda l_time, r_time: before <= r_time - l_time <= after)
    wanted.update((k, x, None) for k, x, _ in left if not any((k, x) == pair[:2] for pair in wanted))
    assert Counter(out.pairs) == wanted


@pytest.mark.parametrize("kind", ["tumbling", "sliding"])
@settings(max_examples=60, deadline=None)
@given(rows(0), rows(0), SIZES)
def test_a_windowed_join_at_the_ends_of_time(kind: str, left: list[Row], right: list[Row], size: int) -> None:
    def windows(time: int) -> set[Window]:
        return set(tumbling(time, size, 0) if kind == "tumbling" else sliding(time, size, _slide(size), 0))

    window = Tumbling(size) if kind == "tumbling" else Sliding(size, _slide(size))
    out = joined(WindowJoin(JoinColumns(("k",), ("k",)), window), left, right)
    wanted = paired(left, right, lambda l_time, r_time: len(windows(l_time) & windows(r_time)))
    assert Counter(out.pairs) == wanted


@settings(max_examples=60, deadline=None)
@given(rows(0), rows(0), SIZES)
def test_a_session_join_at_the_ends_of_time(left: list[Row], right: list[Row], gap: int) -> None:
    out = joined(WindowJoin(JoinColumns(("k",), ("k",)), Session(gap)), left, right)
    found = sessions(sorted(left + right, key=lambda row: row[2]), gap)

    def of(key: str, time: int) -> tuple[str, int, int]:
        return next(one for one in found if one[0] == key and one[1] <= time < one[2])

    wanted: Counter[Pair] = Counter()
    for (k, x, l_time), (other, y, r_time) in product(left, right):
        if k == other and of(k, l_time) == of(other, r_time):
            wanted[k, x, y] += 1
    assert Counter(out.pairs) == wanted


# jobs ----------------------------------------------------------------------------------------------------------------


def run(stream: wb.Stream, **options: Any) -> wb.types.Job:
    pipeline = stream.sink_to(wb.TableSink("out"))
    return pipeline.run("ends", driver="stepping", checkpoint_interval=None, restart=wb.restart.no_restart(), **options)


def metric(job: wb.types.Job, name: str) -> int:
    return sum(int(str(row[name])) for row in job.metrics())


def ends(count: int) -> pa.Table:
    """Records of two keys within three hours of both ends, those of the beginning first."""
    gaps = np.arange(count, dtype=np.int64) * (3 * HOUR // count)
    times = np.concatenate([EARLIEST_TIME + gaps, LATEST_TIME - gaps])
    return pa.table({"k": ["a", "b"] * count, "t": times, "end": ["first"] * count + ["last"] * count})


@pytest.mark.parametrize("local", [True, False], ids=["partials", "records"])
def test_a_job_counts_every_record_at_both_ends_of_time(local: bool, tmp_path: Path) -> None:
    """At parallelism 2, aggregated before the exchange or not, and with a failure in the middle."""
    count = 40_000
    stream = wb.Stream.from_table(ends(count), event_time="t").with_parallelism(1)
    windowed = stream.key_by("k").window(wb.tumbling("1h"), allowed_lateness=LONGEST)
    totals = windowed.aggregate(n=wb.count(), first=wb.min("t"), last=wb.max("t"))
    settings: dict[str, Any] = {"driver": "stepping", "parallelism": 2, "checkpoint_interval": "1h"}
    job = totals.sink_to(wb.TableSink("out")).run("both", local_aggregation=local, **settings)
    job.stepper.step(40)
    job.checkpoint()
    job.stepper.driver.next_checkpoint()
    job.stepper.step(10)
    job.fail(task=next(row["task"] for row in job.metrics() if row["task"].startswith("aggregate")))
    assert job.wait("1h") == "FINISHED"
    partials = sum(int(str(row["numRecordsIn"])) for row in job.metrics() if row["task"].startswith("aggregate"))
    assert (partials < count // 8) == local  # since the failure
    assert metric(job, "numLateRecordsDropped") == 0
    found: dict[tuple[str, int], int] = {}
    for row in job.table("out").cast(_as_numbers(job.table("out").schema)).to_pylist():
        start, end = row["window_start"], row["window_end"]
        assert end - start == HOUR
        assert start <= row["first"] <= row["last"] < end
        assert EARLIEST_TIME - HOUR < start < LATEST_TIME + HOUR
        found[row["k"], start] = max(row["n"], found.get((row["k"], start), 0))  # the last correction
    assert sum(found.values()) == 2 * count


def _as_numbers(schema: pa.Schema) -> pa.Schema:
    return pa.schema([(item.name, pa.int64() if pa.types.is_timestamp(item.type) else item.type) for item in schema])


@pytest.mark.parametrize("offset", [0, 7 * HOUR])
def test_late_records_and_those_in_windows_are_all_there_are(offset: int) -> None:
    """The last records come first, so that those of the beginning are late."""
    table = pa.concat_tables([ends(300).slice(300), ends(300).slice(0, 300)])
    stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="1h").with_parallelism(1)
    window = wb.tumbling("1d", f"{offset}us")
    job = run(stream.key_by("k").window(window).aggregate(n=wb.count()), buffer_size=50)
    assert job.wait("1h") == "FINISHED"
    late = metric(job, "numLateRecordsDropped")
    assert late > 0
    assert sum(job.table("out")["n"].to_pylist()) + late == 600


# where event times enter -------------------------------------------------------------------------------------------

BEYOND = {
    "int64, for ever": (pa.int64(), 2**63 - 1),
    "int64, just behind": (pa.int64(), LATEST_TIME + 1),
    "int64, just before": (pa.int64(), EARLIEST_TIME - 1),
    "int64, nearly null": (pa.int64(), -(2**63) + 1),
    "us": (pa.timestamp("us"), LATEST_TIME + 1),
    "ms": (pa.timestamp("ms", "UTC"), LATEST_TIME // 1000 + 1),
    "ms, before": (pa.timestamp("ms"), EARLIEST_TIME // 1000 - 1),
    "s": (pa.timestamp("s"), 10**13),
    "date32": (pa.date32(), 2**31 - 1),
    "date64": (pa.date64(), 2**62 // 86_400_000 * 86_400_000),
}


def column_of(kind: pa.DataType, values: Sequence[int | None]) -> pa.Array:
    return pa.array(values, pa.int32() if kind == pa.date32() else pa.int64()).view(kind)


@pytest.mark.parametrize("kind", BEYOND)
def test_a_time_that_no_record_can_have_ends_the_job_with_its_value_and_column(kind: str) -> None:
    type_, value = BEYOND[kind]
    table = pa.table({"at": column_of(type_, [0, None, value]), "n": [1, 2, 3]})
    in_us = re.escape(f"{value} as {type_}") if type_ not in (pa.int64(), pa.timestamp("us")) else rf"{value} as micros"
    if kind.startswith("ms"):
        in_us = rf"{value * 1000} as microseconds"
    sentence = rf"a time of 'at' is {in_us}.*, more than 73,000 years from 1970: is it in another unit\? If it stands"
    for stream in (
        wb.Stream.from_table(table, event_time="at"),
        wb.Stream.from_table(table).assign_timestamps("at"),
        wb.Stream.from_table(table).map_batches(lambda batch: batch, event_time="at"),
    ):
        job = run(stream.window(wb.tumbling("1h")).aggregate(n=wb.count()))
        with pytest.raises(JobError, match=sentence):
            job.wait("1h")


@pytest.mark.parametrize("kind", [pa.int64(), *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")), pa.date32()])
def test_the_ends_themselves_can_be_used_in_every_unit(kind: pa.DataType) -> None:
    in_us = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}[getattr(kind, "unit", "us")]
    in_us = 86_400 * 10**6 if kind == pa.date32() else in_us
    limits = (
        (2**62 // 1000 * 1000, -(2**62) // 1000 * 1000)
        if kind == pa.timestamp("ns")
        else (LATEST_TIME // in_us, -(-EARLIEST_TIME // in_us))
    )
    wanted = [limit // 1000 if kind == pa.timestamp("ns") else limit * in_us for limit in limits]
    assert event_times(column_of(kind, [*limits, None]), "t").tolist() == [*wanted, NO_TIME]


def test_the_smallest_number_stands_for_null() -> None:
    table = pa.table({"t": pa.array([-(2**63), None, 5], pa.int64())})
    job = run(wb.Stream.from_table(table, event_time="t").window(wb.tumbling("1h")).aggregate(n=wb.count()))
    assert job.wait("1h") == "FINISHED"
    assert job.table("out")["n"].to_pylist() == [1]
    assert metric(job, "numRecordsWithoutTimestamp") == 2


def test_never_and_for_ever_become_null_as_the_error_says() -> None:
    table = pa.table({"t": pa.array([7, 2**63 - 1], pa.int64())})
    stream = wb.Stream.from_table(table).assign_timestamps(f"nullif(t, {2**63 - 1})")
    job = run(stream.window(wb.tumbling("1h")).aggregate(n=wb.count()))
    assert job.wait("1h") == "FINISHED"
    assert job.table("out")["n"].to_pylist() == [1]
    assert metric(job, "numRecordsWithoutTimestamp") == 1


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_line_with_such_a_time_is_a_dead_letter(form: str, tmp_path: Path) -> None:
    values = [3, 2**63 - 1, 5]
    lines = ["n", *map(str, values)] if form == "csv" else [f'{{"n": {value}}}' for value in values]
    path = tmp_path / f"times.{form}"
    path.write_text("\n".join(lines) + "\n")
    stream = wb.Stream.from_files(path, event_time="n", format=form, on_error="dead_letter")  # type: ignore[arg-type]
    pipeline = stream.sink_to(wb.TableSink("out")) + stream.dead_letters().sink_to(wb.TableSink("dead"))
    job = pipeline.run("lines", driver="stepping")
    assert job.wait("1h") == "FINISHED"
    assert job.table("out")["n"].to_pylist() == [3, 5]
    (letter,) = job.table("dead").to_pylist()
    place = 3 if form == "csv" else 2
    found = f"{path}, line {place} is not a record: a time of 'n' is {2**63 - 1} as microseconds"
    assert letter["error"].startswith(found)
    assert metric(job, "numRecordsInErrors") == 1


def test_a_batch_of_a_function_with_such_a_time_is_a_dead_letter() -> None:
    table = pa.table({"t": pa.array([7, 2**63 - 1, 9], pa.int64())})
    mapped = wb.Stream.from_table(table).map_batches(lambda batch: batch, event_time="t", on_error="dead_letter")
    pipeline = mapped.sink_to(wb.TableSink("out")) + mapped.dead_letters().sink_to(wb.TableSink("dead"))
    job = pipeline.run("function", driver="stepping")
    assert job.wait("1h") == "FINISHED"
    assert (job.table("out")["t"].to_pylist(), job.table("dead").num_rows) == ([7, 9], 1)


@pytest.mark.parametrize("role", ["event_time", "arrival_time"])
def test_a_replay_log_refuses_such_times_where_it_is_written(role: str, tmp_path: Path) -> None:
    for kind, value in BEYOND.values():
        columns = {"event_time": column_of(kind, [0, 0]), "arrival_time": column_of(kind, [0, 0])}
        columns[role] = column_of(kind, [0, value])
        with pytest.raises(RecordError, match=f"a time of '{role}' is .* more than 73,000 years from 1970"):
            write_log(pa.table(columns), tmp_path / "log", event_time="event_time", arrival_time="arrival_time")


def test_a_timestamp_that_a_replay_log_cannot_keep_is_refused(tmp_path: Path) -> None:
    table = pa.table({"t": [1], "valid_until": pa.array([10**13], pa.timestamp("s"))})
    found = "column 'valid_until' has the time 10000000000000 in row 0, .*: a replay log stores microseconds"
    with pytest.raises(HistoryError, match=found):
        write_log(table, tmp_path / "log", event_time="t", arrival_time="t")
    cut = pa.table({"t": [1], "fine": pa.array([1_999], pa.timestamp("ns"))})  # what is less than a microsecond goes
    log = write_log(cut, tmp_path / "log", event_time="t", arrival_time="t")
    rows = wb.Stream.replay(str(log.path)).sink_to(wb.TableSink("out")).run("fine", driver="stepping")
    assert rows.wait("1h") == "FINISHED"
    assert rows.table("out")["fine"].cast(pa.int64()).to_pylist() == [1]


# watermarks ----------------------------------------------------------------------------------------------------------


class Told(wb.watermarks.WatermarkGenerator):
    """Says first that all is over, then nothing."""

    mark = 2**70

    def on_batch(self, batch, times):
        return self.mark


@pytest.mark.parametrize("mark", [2**63 - 1, 2**70])
@pytest.mark.parametrize("at", ["source", "operator"])
def test_a_generator_cannot_end_the_input(mark: int, at: str) -> None:
    """It ends the windows that end before it; the others, and the clock, wait for the end of the input."""

    class Over(Told):
        pass

    Over.mark = mark
    table = pa.table({"t": pa.array([5, LATEST_TIME, 7], pa.int64())})
    told = {"watermarks": wb.watermarks.punctuated("t = 7 or t = 5") if mark == 0 else Over}
    if at == "source":
        stream = wb.Stream.from_table(table, event_time="t", **told).with_parallelism(1)
    else:
        stream = wb.Stream.from_table(table).with_parallelism(1).assign_timestamps("t", **told)
    job = run(stream.window(wb.tumbling("1h")).aggregate(n=wb.count()), buffer_size=1, buffer_timeout="0ms")
    assert job.wait("1h") == "FINISHED"
    rows = job.table("out").cast(_as_numbers(job.table("out").schema)).to_pylist()
    start = LATEST_TIME // HOUR * HOUR
    assert [(row["window_start"], row["n"]) for row in rows] == [(0, 1), (start, 1)]
    assert metric(job, "numLateRecordsDropped") == 1


def test_a_generator_that_is_asked_cannot_end_the_input_either() -> None:
    class Asked(wb.watermarks.WatermarkGenerator):
        def on_periodic(self, now_us):
            return 2**63 - 1

    schema = pa.schema({"t": pa.int64()})
    operator = AssignTimestamps(wb.col("t"), Custom(Asked)).create([schema])
    operator.open(OperatorContext(clock=VirtualClock()))
    out = Collected()
    operator.on_time(0, out)
    operator.on_watermark(MAX_TIME, out)
    assert out.watermarks == [LAST_WATERMARK, MAX_TIME]


def test_marks_behind_all_times_leave_the_latest_records_in_time() -> None:
    table = pa.table({"t": pa.array([5, LATEST_TIME], pa.int64()), "mark": pa.array([2**63 - 1, None], pa.int64())})
    stream = wb.Stream.from_table(table, event_time="t", watermarks=wb.watermarks.punctuated("mark")).with_parallelism(
        1
    )
    job = run(stream.window(wb.tumbling("1h")).aggregate(n=wb.count()))
    assert job.wait("1h") == "FINISHED"
    assert job.table("out")["n"].to_pylist() == [1, 1]


@pytest.mark.parametrize("bound", ["0s", LONGEST])
def test_the_bound_and_the_drift_may_be_as_long_as_can_be(bound: Any) -> None:
    parts = [
        wb.Stream.from_table(
            ends(20).slice(first, 20),
            event_time="t",
            out_of_orderness=bound,
            align="both",
            max_drift=LONGEST,  # type: ignore[arg-type]
        )
        for first in (0, 20)
    ]
    stream = parts[0].union(parts[1])
    job = run(stream.key_by("k").window(wb.session("30min")).aggregate(n=wb.count()), parallelism=2)
    assert job.wait("1h") == "FINISHED"
    assert sum(job.table("out")["n"].to_pylist()) + metric(job, "numLateRecordsDropped") == 40


# timers --------------------------------------------------------------------------------------------------------------


class ForEver(wb.functions.ProcessFunction):
    """Sets timers around and beyond both ends, and takes one of them back."""

    last = wb.state.ValueState(pa.int64(), ttl=LONGEST)

    def process(self, record, state, ctx):
        state.last = record["n"]
        for time in (-(2**70), EARLIEST_TIME, 5, LATEST_TIME, 2**62, 2**63 - 1, 2**70):
            ctx.register_event_timer(time)
            ctx.register_processing_timer(max(time, LATEST_TIME + 1))
        ctx.delete_event_timer(2**62)

    def on_timer(self, time, state, ctx):
        ctx.output("side", {"at": time})
        return {"at": time, "n": state.last}


def test_timers_for_ever_fire_when_the_input_ends(tmp_path: Path) -> None:
    table = pa.table({"k": ["a"], "n": [1], "t": pa.array([3], pa.int64())})
    stream = wb.Stream.from_table(table, event_time="t").key_by("k")
    schema = {"at": pa.int64(), "n": pa.int64()}
    fired = stream.process(ForEver(), schema, side_outputs={"side": {"at": pa.int64()}})
    counted = fired.window(wb.tumbling("1h")).aggregate(n=wb.count())
    beside = fired.side_output("side").window(wb.session("1h")).aggregate(n=wb.count())
    pipeline = counted.sink_to(wb.TableSink("out")) + beside.sink_to(wb.TableSink("side"))
    job = (pipeline + fired.sink_to(wb.TableSink("all"))).run("timers", driver="stepping", buffer_size=1)
    assert job.wait("1h") == "FINISHED"
    wanted = [EARLIEST_TIME, 5, LATEST_TIME, MAX_TIME]
    assert [row["at"] for row in job.table("all").to_pylist()] == wanted
    for name in ("out", "side"):
        total = sum(job.table(name)["n"].to_pylist())
        assert total + metric(job, "numLateRecordsDropped") in (4, 5)
        starts = job.table(name)["window_start"].cast(pa.int64()).to_pylist()
        assert max(starts) <= LATEST_TIME


def test_no_clock_comes_to_a_timer_for_ever() -> None:
    schema = pa.schema({"k": pa.string(), "n": pa.int64()})
    spec = Process(("k",), ForEver(), {"at": pa.int64(), "n": pa.int64()}, side_outputs={"side": {"at": pa.int64()}})
    operator = spec.create([schema])
    operator.open(OperatorContext(clock=VirtualClock()))
    operator.process(Records(pa.record_batch([pa.array(["a"]), pa.array([1])], schema=schema)), 0, Collected())
    assert operator.next_time_us() is None
    operator.close()


def test_a_live_job_waits_neither_for_a_far_timer_nor_for_a_long_interval() -> None:
    class Later(wb.functions.ProcessFunction):
        def process(self, record, state, ctx):
            for year in (2400, 9999):  # the system cannot wait so long at once
                ctx.register_processing_timer(datetime(year, 1, 1))
            ctx.register_processing_timer(2**70)
            return {"n": record["n"]}

        def on_timer(self, time, state, ctx):
            raise AssertionError("the clock has not come so far")

    stream = wb.Stream.from_table(pa.table({"k": ["a"], "n": [1]}), rate=1000).key_by("k")

    job = (
        stream.process(Later(), {"n": pa.int64()})
        .sink_to(wb.TableSink("out"))
        .run("far", buffer_timeout="30000d", checkpoint_interval="20000000d")
    )
    assert job.wait("60s") == "FINISHED"
    assert job.table("out").num_rows == 1


# words ---------------------------------------------------------------------------------------------------------------


def test_durations_end_where_sums_would_leave_64_bits() -> None:
    assert parse_duration(LONGEST, "size") == LONGEST_US
    for longer in (timedelta(microseconds=LONGEST_US + 1), "1" + "0" * 30 + "h", "999999999 d", timedelta.max):
        with pytest.raises(SettingError, match=r"size is .*more than the maximum of 73,000"):
            parse_duration(longer, "size")
    for negative in ("-5s", timedelta(seconds=-1)):
        with pytest.raises(SettingError, match="a duration cannot be negative"):
            parse_duration(negative, "size")


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (-62_135_596_800_000_001, "0000-12-31 23:59:59.999999"),
        (-62_135_596_800_000_000, "0001-01-01 00:00:00"),
        (253_402_300_799_000_000, "9999-12-31 23:59:59"),
        (253_402_300_800_000_000, "10000-01-01 00:00:00"),
        (2**63 - 2, "294247-01-10 04:00:54.775806"),
        (-(2**63) + 1, "-290308-12-21 19:59:05.224193"),
        (-62_167_219_200_000_001, "-0001-12-31 23:59:59.999999"),
        (2**63 - 1, "end"),
        (NO_TIME, "-"),
    ],
)
def test_every_instant_can_be_told(us: int, text: str) -> None:
    """As Java's ``Instant`` writes the ends of its 64 bits."""
    assert format_instant(us) == text


# rows for people and functions ---------------------------------------------------------------------------------------

FAR = pa.table(
    {"k": ["a"], "until": pa.array([LATEST_TIME], pa.timestamp("us", "UTC")), "t": pa.array([1], pa.int64())}
)
TEXT = "75039-04-04 19:00:13.693952"


def test_what_python_cannot_hold_is_shown_as_text() -> None:
    date = pa.array([2**31 - 1], pa.int32()).view(pa.date32())
    length = pa.array([2**60], pa.int64()).view(pa.duration("s"))
    nested = pa.StructArray.from_arrays([FAR.column("until").chunk(0)], ["until"])
    inner = pa.ListArray.from_arrays([0, 1], FAR.column("until").chunk(0))
    table = pa.table({"n": [1], "date": date, "length": length, "nested": nested, "inner": inner})
    assert python_rows(table) == [
        {"n": 1, "date": "5881580-07-11 00:00:00", "length": str(2**60), "nested": {"until": TEXT}, "inner": [TEXT]}
    ]
    milliseconds = pa.array([0, None, LATEST_TIME // 1000], pa.timestamp("ms"))
    assert python_values(pa.chunked_array([milliseconds]))[1:] == [None, TEXT[:-3] + "000"]


def test_a_record_on_its_way_is_shown_with_such_an_instant() -> None:
    record = Records(FAR.to_batches()[0], np.array([LATEST_TIME]))
    (marble,) = marbles_of(record, ["until"])
    assert marble.key is not None
    assert marble.key.startswith(TEXT[:10])
    assert told(record) == f"record k=a, until={TEXT}, t=1"
    (mark,) = marbles_of(Watermark(LATEST_TIME), [])
    assert mark.text == TEXT.partition(" ")[2]


def test_windows_at_the_end_of_time_can_be_looked_at() -> None:
    """By a query, in the stepper and in the dashboard's table, and printed."""
    printed: list[str] = []
    windowed = wb.Stream.from_table(ends(4), event_time="t").with_parallelism(1).key_by("k")
    for window in (wb.tumbling("1h"), wb.sliding("1h", "30min")):
        counted = windowed.window(window, allowed_lateness="1d").aggregate(n=wb.count())
        pipeline = counted.sink_to(wb.TableSink("out")) + counted.sink_to(wb.PrintSink(write=printed.append))
        job = pipeline.run("seen", driver="stepping", buffer_size=1, buffer_timeout="0ms", parallelism=1)
        seen = ""
        while EARLY not in seen and not job.over:
            job.stepper.step()
            assert job.stepper.scene() is not None
            seen = str([job.operator_state("aggregate").get(key) for key in ("a", "b")]) if not job.over else ""
        assert EARLY in seen
        assert job.wait("1h") == "FINISHED"
        assert "75039-04-0" in html(Latest(job.table("out").num_rows, job.table("out")), 40)
        assert series(Latest(job.table("out").num_rows, job.table("out")), "n")[0].x[0] < EARLIEST_TIME / 1000 + 1e8
    assert any("window_end=75039-04-0" in line for line in printed)


EARLY = "-71100-09-29"


def test_a_function_that_gets_an_instant_which_python_cannot_hold_says_so() -> None:
    stream = wb.Stream.from_table(FAR)
    schema = {"k": pa.string()}
    for made in (
        stream.map(lambda record: {"k": record["k"]}, schema),
        stream.flat_map(lambda record: [{"k": record["k"]}], schema),
        stream.key_by("k").process(lambda record, state: {"k": record["k"]}, schema),
        stream.key_by("k").reduce(lambda held, record: held),
    ):
        found = rf"cannot receive {TEXT} in column 'until', which is out of the range of"
        with pytest.raises(JobError, match=found):
            run(made).wait("1h")


def test_a_compiled_function_gets_no_wrapped_instant() -> None:
    table = pa.table({"until": pa.array([10**13], pa.timestamp("s"))})
    stream = wb.Stream.from_table(table).filter(lambda until: until > 0, columns="until", compiled=True)
    with pytest.raises(JobError, match=r"a value of type timestamp\[s\] does not fit in 64 bits as microseconds"):
        run(stream).wait("1h")


def test_a_poor_record_with_such_an_instant_is_a_dead_letter() -> None:
    def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("no")

    mapped = wb.Stream.from_table(FAR).map_batches(fail, on_error="dead_letter")
    job = run(mapped.dead_letters())
    assert job.wait("1h") == "FINISHED"
    assert TEXT in job.table("out")["record"].to_pylist()[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: wb.windows.count_tumbling(2**70),
        lambda: wb.windows.count_sliding(4, 2**70),
        lambda: wb.windows.keep_last(2**70),
        lambda: wb.triggers.on_count(2**70),
        lambda: wb.top_k("t", 2**70),
    ],
)
def test_more_records_than_can_be_counted_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(SettingError, match=f"is {2**70}, which is too large: write at most {2**61}"):
        make()


def test_windows_that_overlap_without_end_are_refused() -> None:
    with pytest.raises(SettingError, match="sliding 20d every 1us: a record would belong to 1,728,000,000,000 windows"):
        wb.sliding("20d", "1us")
    with pytest.raises(SettingError, match="a record would belong to 4,000,000 windows"):
        wb.windows.count_sliding(4_000_000, 1)
    assert wb.sliding("1d", "1s").describe() == "sliding 1d every 1s"


def test_the_latest_time_of_a_batch_is_found_with_its_check() -> None:
    def read(times: list[int | None]) -> Records:
        return Records.timed(pa.record_batch({"t": pa.array(times, pa.int64())}), "t")

    assert read([3, 0, LATEST_TIME, 7]).latest_us == LATEST_TIME
    for unknown in ([5, -1], [5, None], [EARLIEST_TIME], []):
        assert read(unknown).latest_us is None
    for far in ([1, LATEST_TIME + 1], [EARLIEST_TIME - 1, 4]):
        with pytest.raises(RecordError, match=r"a time of 't' is"):
            read(far)


def test_a_watermark_counts_the_latest_time_of_each_batch() -> None:
    generator = Bounded(0).create(pa.schema([("t", pa.int64())]))
    for times, reached in (([-9, -5], -5), ([7, 3], 7), ([None, 2], 7), ([8], 8)):
        generator.observe(Records.timed(pa.record_batch({"t": pa.array(times, pa.int64())}), "t"))
        assert generator.on_periodic(0) == reached - 1
