"""Aggregation before the exchange: windows, late records, state and recovery are the same as with single records."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_window_aggregate import ACTION, AGGREGATES, SCHEMA, SPEC, Collected, Model, opened, records

import workbench as wb
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import CheckpointBarrier, Element, Records, Watermark
from workbench.errors import RecordError
from workbench.lab.pipelines.comparing import equal
from workbench.lab.pipelines.inputs import source
from workbench.lab.pipelines.topologies import Trial
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.simulation import run_scenario
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.aggregates.local_aggregate import LocalAggregate, LocalAggregation, Worthwhile
from workbench.operators.aggregates.preaggregated import RECORDS, Merging, is_preaggregated
from workbench.operators.contract.base import OperatorContext
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.plan import build_physical_graph
from workbench.runtime.exchange.channel import Channel, Waker
from workbench.runtime.exchange.in_flight import Flow, InFlight, restored, saved
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.exchange.output_pool import OutputPool
from workbench.state.key_groups import KeyPartitioner
from workbench.windows.tumbling import Tumbling

ALWAYS = Worthwhile(rows=1, shrinks=1, pause=0)
NUMBERS = pa.schema({"k": pa.int64(), "v": pa.int64()})


def numbers(keys: list[int], values: list[int], times: list[int]) -> Records:
    batch = pa.record_batch([pa.array(keys, pa.int64()), pa.array(values, pa.int64())], schema=NUMBERS)
    return Records(batch, np.array(times, np.int64))


def local(aggregates: tuple[agg.Aggregation, ...], worthwhile: Worthwhile = ALWAYS, size: int = 10) -> LocalAggregate:
    return LocalAggregation(("k",), Tumbling(size), aggregates, 0).create(NUMBERS, worthwhile)


# the operators -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=200)
@given(SPEC, st.lists(ACTION, max_size=12), st.booleans())
def test_windows_of_partials_are_those_of_the_model(spec, actions, sender_knows):
    """Any run, with each batch aggregated where that may be, and with late partials if the sender has no watermark."""
    what = spec.local_aggregation()
    assert what is not None
    sender = what.create(SCHEMA, ALWAYS)
    model, operators, ordered, late = Model(spec), [opened(spec)], True, 0
    counted = 0
    for action, argument in [*actions, ("watermark", MAX_TIME)]:
        out, wanted = Collected(), []
        if action == "batch":
            wanted, some = model.process(argument)
            late += len(some)
            batch = records(argument)
            partials = sender.fold(batch, model.watermark if sender_knows else NO_TIME)
            if partials is not None:
                assert sum(partials.batch.column(RECORDS).to_pylist()) == len(batch)
                assert min(partials.timestamps) >= min(batch.timestamps)
                if sender_knows and model.watermark != NO_TIME:
                    assert not some
            sent = batch if partials is None else partials
            parts: list[Records | None] = [sent] + [None] * (len(operators) - 1)
            if spec.keys:
                parts = KeyPartitioner(["k"], SCHEMA, len(operators)).of(sent.batch.schema).split(sent)
            for operator, part in zip(operators, parts, strict=True):
                if part is not None:
                    operator.process(part, 0, out)
        elif action == "watermark":
            wanted = model.advance(argument)
            for operator in operators:
                operator.on_watermark(argument, out)
        else:
            ordered = ordered and argument == 1
            counted += sum(operator._context.counters.numLateRecordsDropped for operator in operators)
            snapshots = [operator.snapshot(1) for operator in operators]
            operators = [opened(spec, subtask, argument) for subtask in range(argument)]
            for operator in operators:
                operator.restore(snapshots)
        counted += len(out.late)  # of batches that travelled as they are
        assert out.rows == wanted if ordered else sorted(map(repr, out.rows)) == sorted(map(repr, wanted))
    assert counted + sum(operator._context.counters.numLateRecordsDropped for operator in operators) == late


def test_a_snapshot_of_partials_is_that_of_their_records():
    spec = WindowAggregate(("k",), Tumbling(10), AGGREGATES)
    rows = [("a", 1, 3), ("b", None, 4), ("a", None, 15), (None, 4, 5), ("a", 2, 2)]
    plain, merged = opened(spec), opened(spec)
    plain.process(records(rows), 0, Collected())
    partials = spec.local_aggregation().create(SCHEMA, ALWAYS).fold(records(rows), NO_TIME)
    assert len(partials) == 4
    merged.process(partials, 0, Collected())
    assert merged.snapshot(1) == plain.snapshot(1)


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([0.0, -0.0, 1.5, -2.0, float("nan"), float("inf"), None])),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 7),
)
def test_extremes_of_floats_are_the_same_to_the_last_bit(rows, step):
    schema = pa.schema({"k": pa.int64(), "x": pa.float64()})
    spec = WindowAggregate(("k",), Tumbling(10), (("least", agg.min("x")), ("most", agg.max("x"))))
    sender = spec.local_aggregation().create(schema, ALWAYS)
    results = []
    for fold in (False, True):
        operator, out = spec.create([schema]), Collected()
        operator.open(OperatorContext())
        for at in range(0, len(rows), step):
            keys, values = zip(*rows[at : at + step], strict=True)
            batch = Records(
                pa.record_batch([list(keys), pa.array(values, pa.float64())], schema=schema),
                np.zeros(len(keys), np.int64),
            )
            operator.process(sender.fold(batch, NO_TIME) if fold else batch, 0, out)
        operator.on_watermark(9, out)
        results.append(repr(out.rows))
    assert results[0] == results[1]


def test_what_would_hardly_shrink_travels_as_it_is_and_so_do_the_next_batches():
    few = local((agg.count(),), Worthwhile(rows=4, shrinks=2, pause=1))
    assert few.fold(numbers([1, 1, 1], [0] * 3, [0] * 3), NO_TIME) is None  # too few
    assert len(few.fold(numbers([1, 1, 2, 2], [0] * 4, [0] * 4), NO_TIME)) == 2
    assert few.fold(numbers([1, 2, 3, 3], [0] * 4, [0] * 4), NO_TIME) is None  # three rows of four
    assert few.fold(numbers([1, 1, 1, 1], [0] * 4, [0] * 4), NO_TIME) is None  # the pause
    assert len(few.fold(numbers([1, 1, 1, 1], [0] * 4, [0] * 4), NO_TIME)) == 1
    many = local((agg.count(),), Worthwhile(rows=4, shrinks=8, pause=0))
    assert many.fold(numbers(list(range(5_000)), [0] * 5_000, [0] * 5_000), NO_TIME) is None
    assert len(many.fold(numbers([7] * 800 + list(range(100)), [0] * 900, [0] * 900), NO_TIME)) == 100


def test_a_batch_with_a_late_record_or_one_without_time_travels_as_it_is():
    sender = local((agg.count(),))
    assert sender.fold(numbers([1, 1], [0, 0], [9, 10]), 8) is not None
    assert sender.fold(numbers([1, 1], [0, 0], [9, 10]), 9) is None
    assert sender.fold(numbers([1, 1], [0, 0], [NO_TIME, 10]), 9) is None
    assert sender.fold(Records(numbers([1], [0], [0]).batch), 9) is None


def test_a_sum_that_leaves_its_range_does_so_where_it_did_before():
    """Alone these two values cannot be added; with what their window holds they can, and only it may say so."""
    sender, big = local((agg.sum("v"),)), 2**62
    assert sender.fold(numbers([1, 1], [big, big], [0, 0]), NO_TIME) is None
    spec = WindowAggregate(("k",), Tumbling(10), (("total", agg.sum("v")),))
    operator = spec.create([NUMBERS])
    operator.open(OperatorContext())
    operator.process(sender.fold(numbers([1, 1], [big, big - 1], [0, 0]), NO_TIME), 0, Collected())
    with pytest.raises(RecordError, match=r"sum\(v\) exceeded the range of int64"):
        operator.process(sender.fold(numbers([1], [1], [0]), NO_TIME), 0, Collected())


def test_a_late_partial_counts_its_records_and_shows_its_key():
    spec = WindowAggregate(("k",), Tumbling(10), (("n", agg.count()),))
    operator, out = spec.create([NUMBERS]), Collected()
    operator.open(OperatorContext())
    operator.on_watermark(9, out)
    operator.process(local((agg.count(),)).fold(numbers([7, 7, 8, 7], [0] * 4, [5, 6, 11, 3]), NO_TIME), 0, out)
    counters = operator._context.counters
    assert counters.numLateRecordsDropped == 3
    assert counters.numRecordsInFolded == 2  # 4 records in 2 rows
    (seen,) = counters.late.latest
    assert (seen.rows.to_pylist(), seen.times.tolist()) == ([{"k": 7, RECORDS: 3}], [3])


# the plan ----------------------------------------------------------------------------------------------------------


def counted(stream: wb.Stream, **window: Any) -> wb.Stream:
    return stream.key_by("k").window(wb.tumbling("10us"), **window).aggregate(n=wb.count(), s=wb.sum("v"))


TABLE = pa.table({"k": [1], "v": [1], "x": [1.0], "t": [1]})


@pytest.mark.parametrize(
    ("make", "possible"),
    [
        (lambda s: counted(s), True),
        (lambda s: counted(s, allowed_lateness="5us"), True),
        (lambda s: counted(s).side_output("late"), False),
        (lambda s: counted(s, time="processing"), False),
        (lambda s: s.key_by("k").window(wb.sliding("10us", "5us")).aggregate(n=wb.count()), False),
        (lambda s: s.key_by("k").window(wb.session("10us")).aggregate(n=wb.count()), False),
        (lambda s: s.key_by("k").window(wb.tumbling("10us")).aggregate(s=wb.sum("x")), False),
        (lambda s: s.key_by("k").window(wb.tumbling("10us")).aggregate(s=wb.max("x")), True),
        (lambda s: s.key_by("k").window(wb.tumbling("10us")).aggregate(s=wb.median("v")), False),
        (
            lambda s: (
                s.key_by("k").window(wb.tumbling("10us"), evictor=wb.windows.keep_last(2)).aggregate(n=wb.count())
            ),
            False,
        ),
        (lambda s: s.key_by("k").aggregate(n=wb.count()), False),
    ],
)
def test_only_what_can_be_merged_is_aggregated_before_the_exchange(make, possible):
    stream = make(wb.Stream.from_table(TABLE, event_time="t"))
    for parallelism in (1, 2):
        graph = build_physical_graph(stream.sink_to(wb.DiscardSink()).logical_graph(), parallelism)
        (edge,) = [edge for edge in graph.edges if edge.exchange == "hash"]
        assert (edge.local is not None) == (possible and parallelism == 2)


def test_the_local_step_is_shown_in_the_chain_as_long_as_it_is_on():
    pipeline = counted(wb.Stream.from_table(TABLE, event_time="t").filter("v > 0")).sink_to(wb.TableSink("out"))
    plan = pipeline.explain(parallelism=2)
    assert "table x 2: table -> filter -> local aggregate\n" in repr(plan)
    assert [row["operators"] for row in plan.vertices] == ["table, filter, local aggregate", "aggregate, out"]
    assert "local aggregate" in plan.svg
    assert "local aggregate" not in repr(pipeline.explain(parallelism=1))
    for on, chain in ((True, ("table", "filter", "local aggregate")), (False, ("table", "filter"))):
        job = pipeline.run(f"shown-{on}", parallelism=2, local_aggregation=on)
        job.wait("60s")
        assert job.recorder.latest().vertices[0].chain == chain


# the sending end ---------------------------------------------------------------------------------------------------


def sending(size: int = 4, channels: int = 1, floating: int = 1) -> EdgeOutput:
    ends = [Channel("e", "a[0]", f"b[{i}]", 1, Waker(), Waker()) for i in range(channels)]
    partitioner = KeyPartitioner(("k",), NUMBERS, channels)
    worthwhile = Worthwhile(rows=3, shrinks=2, pause=0)
    edge = EdgeOutput(
        ends, "hash", partitioner, None, lambda: 1_000, size, None, local=local((agg.count(),), worthwhile)
    )
    OutputPool([edge], floating)
    return edge


def told(element: Element) -> Any:
    if isinstance(element, Records):
        column = RECORDS if is_preaggregated(element.batch) else "v"
        return column, element.batch.column(column).to_pylist()
    return type(element).__name__


def test_a_buffer_holds_records_or_partials_and_their_order_is_kept():
    edge = sending()
    edge.route(numbers([1], [10], [0]))
    edge.route(numbers([1, 1, 1], [1, 2, 3], [0, 0, 0]))
    edge.route(numbers([1, 2, 1, 2], [1, 2, 3, 4], [0, 0, 0, 0]))
    edge.emit_watermark(Watermark(5))
    edge.route(numbers([1, 2], [20, 21], [6, 6]))
    edge.emit_event(CheckpointBarrier(1, 0))
    found = [told(element) for element in iter(edge.channels[0].poll, None)]
    assert found == [("v", [10]), (RECORDS, [3, 2, 2]), "Watermark", ("v", [20, 21]), "CheckpointBarrier"]
    assert edge.travelled == 6  # 10 records
    assert edge.watermark_us == 5


def test_without_room_what_cannot_be_in_one_buffer_waits_as_a_backlog():
    edge = sending(floating=0)
    pool = edge.pool
    assert pool is not None
    values = iter(range(100))
    sent: list[Any] = []
    while pool.has_room:
        if len(sent) % 2:
            edge.route(numbers([1, 1, 1], [0] * 3, [0] * 3))
            sent.append((RECORDS, [3]))
        else:
            value = next(values)
            edge.route(numbers([1], [value], [0]))
            sent.append(("v", [value]))
    edge.route(numbers([1, 1, 1, 1], [0] * 4, [0] * 4))
    sent.append((RECORDS, [4]))
    edge.route(numbers([1], [99], [0]))
    sent.append(("v", [99]))
    assert pool.backlogged
    assert pool.used <= pool.total + 1
    found = []
    while (element := edge.channels[0].poll()) is not None:
        found.append(told(element))
        edge.drain()
        assert pool.used <= pool.total + 1
    assert not pool.backlogged
    edge.ship_all()
    found += [told(element) for element in iter(edge.channels[0].poll, None)]
    assert [value for kind, values in found for value in [(kind, one) for one in values]] == [
        (kind, values[0]) for kind, values in sent
    ]


@settings(max_examples=150)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), min_size=1, max_size=9), max_size=15),
    st.integers(1, 3),
    st.integers(1, 6),
    st.lists(st.booleans(), max_size=15),
)
def test_nothing_is_lost_between_records_and_partials(batches, channels, size, takes):
    edge = sending(size, channels, floating=0)
    wanted: Counter[tuple[int, int]] = Counter()
    found: Counter[tuple[int, int]] = Counter()

    def take(channel: Channel) -> bool:
        element = channel.poll()
        if isinstance(element, Records):
            counts = (
                element.batch.column(RECORDS).to_pylist() if is_preaggregated(element.batch) else [1] * len(element)
            )
            keys = element.batch.column("k").to_pylist()
            for key, time, count in zip(keys, element.timestamps.tolist(), counts, strict=True):
                found[key, time // 10] += count
        return element is not None

    for batch, now in zip(batches, [*takes, *[False] * len(batches)], strict=False):
        keys, times = map(list, zip(*batch, strict=True))
        wanted.update((key, time // 10) for key, time in batch)
        edge.route(numbers(keys, [0] * len(keys), times))
        if now:
            for channel in edge.channels:
                take(channel)
            edge.drain()
    for _ in range(100):
        edge.drain()
        for channel in edge.channels:
            take(channel)
    edge.ship_all()
    for channel in edge.channels:
        while take(channel):
            pass
    assert found == wanted


def test_what_was_in_flight_is_kept_by_its_kind_and_in_order():
    sender = local((agg.count(),))
    first, last = numbers([1], [10], [0]), numbers([3], [11], [0])
    partials = [sender.fold(numbers([n, n], [0, 0], [0, 0]), NO_TIME) for n in (1, 2)]
    flow = Flow("a", None, "b", 0, 0, 0, 1)
    snapshot = saved("b[0]", [InFlight(flow, (first, *partials, last))], 0)
    tables = {name: value() if callable(value) else value for name, value in snapshot.items()}
    back = [told(buffer) for piece in restored([tables]) for buffer in piece.buffers]
    assert back == [("v", [10]), (RECORDS, [2]), (RECORDS, [2]), ("v", [11])]


# whole jobs --------------------------------------------------------------------------------------------------------


def flows(rows: int, disorder: int) -> pa.Table:
    rng = np.random.default_rng(3)
    times = np.arange(rows) * 5 - rng.integers(0, disorder, rows)
    return pa.table({"k": rng.integers(0, 20, rows), "v": rng.integers(-50, 50, rows), "t": times})


@pytest.mark.parametrize("driver", ["live", "stepping"])
def test_a_job_gives_the_same_windows_and_moves_fewer_rows(driver):
    table = flows(200_000, 100)
    stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="100us")
    windows = stream.key_by("k").window(wb.tumbling("20ms"))
    result = windows.aggregate(n=wb.count(), s=wb.sum("v"), m=wb.mean("v")).sink_to(wb.TableSink("out"))
    frame = table.to_pandas()
    grouped = frame.groupby(["k", frame.t // 20_000 * 20_000]).v
    wanted = Counter(
        (k, start, *row) for (k, start), *row in grouped.agg(["size", "sum", "mean"]).itertuples(name=None)
    )
    moved = {}
    for on in (True, False):
        job = result.run(f"local-{driver}-{on}", parallelism=2, local_aggregation=on, driver=driver)
        if driver == "stepping":
            job.resume()
        assert job.wait("60s") == "FINISHED"
        out = job.table("out").drop_columns(["window_end"])
        starts = [round(start.timestamp() * 1e6) for start in out.column("window_start").to_pylist()]
        columns = [starts if name == "window_start" else out.column(name).to_pylist() for name in out.column_names]
        assert Counter(zip(*columns, strict=True)) == wanted
        vertices = {row["task"]: row for row in job.metrics()}
        sent = sum(row["numRecordsOut"] for task, row in vertices.items() if task.startswith("table["))
        moved[on] = sum(row["numRecordsIn"] for task, row in vertices.items() if task.startswith("aggregate["))
        assert moved[on] == sent
    assert moved[False] == 200_000
    assert moved[True] < 100_000


COPIES = 8
MANY = pa.schema([("m", pa.int64()), ("v", pa.int64()), ("key", pa.string()), ("t", pa.int64())])


def many_windows(chance: Random, folder: Path) -> Trial:
    """Windows over several copies of each record, by a text or by a number, whose batches shrink."""
    stream, rows = source(chance)
    size = chance.choice((20, 100))
    keys = chance.choice((1, 2, 5))
    times = stream.flat_map(
        lambda row: [
            {"m": COPIES * row["n"] + c, "v": row["v"], "key": row["key"], "t": row["t"]} for c in range(COPIES)
        ],
        MANY,
    )
    key = chance.choice(("key", "bucket"))
    windows = times.with_columns(bucket=wb.col("m") % keys).key_by(key).window(wb.tumbling(f"{size}us"))
    counts = windows.aggregate(count=wb.count(), total=wb.sum("v"), most=wb.max("m"))
    groups: dict[tuple[Any, int], list[tuple[int, int | None]]] = {}
    for row in rows:
        for m in range(COPIES * row.n, COPIES * (row.n + 1)):
            if row.t is not None:
                group = row.key if key == "key" else m % keys
                groups.setdefault((group, row.t // size * size), []).append((m, row.v))
    expected: Counter[tuple[Any, ...]] = Counter()
    for (group, _), values in groups.items():
        known = [v for _, v in values if v is not None]
        expected[group, len(values), sum(known) if known else None, max(m for m, _ in values)] += 1
    pipeline = counts.select(key, "count", "total", "most").sink_to(wb.TableSink("out"))
    return Trial(pipeline, equal("out", expected))


def many_windows_drawn_by(seed: int) -> Scenario:
    return Scenario(seed, {"many windows": many_windows}, long=True)


@pytest.mark.slow
def test_simulated_jobs_keep_every_promise_with_partials(monkeypatch):
    """Crashes, kills, rescaling, savepoints and all modes of checkpoints, while batches of both kinds travel."""
    seen: Counter[str] = Counter()
    fold = LocalAggregate.fold

    def folded(self: LocalAggregate, batch: Records, watermark_us: int) -> Records | None:
        partials = fold(self, batch, watermark_us)
        seen["records" if partials is None else "shrunk" if len(partials) < len(batch) else "partials"] += 1
        return partials

    monkeypatch.setattr(LocalAggregate, "fold", folded)
    broken = [result for seed in range(120) if not (result := run_scenario(many_windows_drawn_by(seed))).ok]
    assert broken == []
    assert min(seen["records"], seen["shrunk"]) > 100


@pytest.mark.parametrize("bug", ["a partial counts as one", "its records are counted, its values are not"])
def test_simulations_find_partials_that_are_merged_wrongly(monkeypatch, bug):
    merge = Merging.merge

    def wrong(self: Merging, partials: pa.RecordBatch, into: Any, slots: Any) -> None:
        names = partials.schema.names
        spoilt = {RECORDS} if bug == "a partial counts as one" else {n for n in names if n.startswith("cell:sum")}
        columns = [pa.array([1] * len(slots)) if n in spoilt else partials.column(n) for n in names]
        merge(self, pa.RecordBatch.from_arrays(columns, schema=partials.schema), into, slots)

    monkeypatch.setattr(Merging, "merge", wrong)
    results = [run_scenario(many_windows_drawn_by(seed)) for seed in range(30)]
    assert any(text.startswith("I7") for result in results for text in result.violations)
