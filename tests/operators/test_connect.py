"""Connected streams, broadcast state, split and merge, and graphs of several sources and sinks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import until

import workbench as wb
from workbench.durations import NO_TIME
from workbench.elements import Records
from workbench.errors import CheckpointError, ExpressionError, PlanError, RecordError, SettingError
from workbench.expressions import expr
from workbench.operators.contract.base import Operator, OperatorContext
from workbench.operators.process.connect import ConnectedMap, ConnectedProcess
from workbench.operators.stateless.split import Split
from workbench.state.key_groups import KeyPartitioner

FIRST = pa.schema({"k": pa.int32(), "v": pa.int64()})
SECOND = pa.schema({"w": pa.int64(), "key": pa.int64()})
SCHEMAS = (FIRST, SECOND)
OUT = {"k": pa.int64(), "what": pa.string(), "n": pa.int64()}


class Collected:
    """An output that keeps rows, each with its event time at the end."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.side: list[Any] = []

    def emit(self, records: Records) -> None:
        self.rows += rows_of(records)

    def emit_side(self, tag: str, records: Records) -> None:
        self.side += [(tag, *row) for row in rows_of(records)]


def rows_of(records: Records) -> list[Any]:
    records.batch.validate(full=True)
    times = [None] * len(records) if records.timestamps is None else records.timestamps.tolist()
    return list(zip(*(column.to_pylist() for column in records.batch.columns), times, strict=True))


def records(port: int, *rows: tuple[Any, Any, int]) -> Records:
    """Rows are (key, value, event time)."""
    keys, values, times = zip(*rows, strict=True) if rows else ((), (), ())
    by_name = {"k": keys, "key": keys, "v": values, "w": values}
    arrays = [pa.array(by_name[field.name], field.type) for field in SCHEMAS[port]]
    return Records(pa.RecordBatch.from_arrays(arrays, schema=SCHEMAS[port]), np.array(times, np.int64))


def opened(spec: Any, subtask: int = 0, parallelism: int = 1) -> Operator:
    spec.output_schema(SCHEMAS)
    operator: Operator = spec.create(SCHEMAS)
    operator.open(OperatorContext(uid="process", subtask=subtask, parallelism=parallelism))
    return operator


# keyed ---------------------------------------------------------------------------------------------------------------


class Ledger(wb.functions.CoProcessFunction):
    """Deposits come on the first stream, withdrawals on the second; what would overdraw is told."""

    balance = wb.state.ValueState(pa.int64(), default=0)

    def process1(self, record, state):
        state.balance += record["v"]

    def process2(self, record, state, ctx):
        if record["w"] > state.balance:
            ctx.output("refused", {"k": ctx.key, "asked": record["w"]})
            return None
        state.balance -= record["w"]
        return {"k": ctx.key, "what": "paid", "n": state.balance}


LEDGER = ConnectedProcess(
    ("k",),
    Ledger(),
    OUT,
    side_outputs={"refused": {"k": pa.int64(), "asked": pa.int64()}},
    other_keys=("key",),
)


def test_both_streams_reach_the_state_of_their_key():
    operator, out = opened(LEDGER), Collected()
    operator.process(records(0, (1, 100, 5), (2, 50, 6)), 0, out)
    operator.process(records(1, (1, 30, 7), (2, 60, 8), (1, 80, 9), (1, 70, 10)), 1, out)
    assert out.rows == [(1, "paid", 70, 7), (1, "paid", 0, 10)]
    assert out.side == [("refused", 2, 60, 8), ("refused", 1, 80, 9)]


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.integers(0, 1), st.lists(st.tuples(st.sampled_from([1, 2, 3, None]), st.integers(0, 20)), max_size=6)
            ),
            st.tuples(st.just("restore"), st.integers(1, 3)),
        ),
        max_size=10,
    )
)
def test_any_run_gives_what_a_dict_of_balances_gives(actions):
    balances: Counter[Any] = Counter()
    operators = [opened(LEDGER)]
    for action, argument in actions:
        if action == "restore":
            snapshots = [operator.snapshot(1) for operator in operators]
            operators = [opened(LEDGER, subtask, argument) for subtask in range(argument)]
            for operator in operators:
                operator.restore(snapshots)
            continue
        paid, refused = [], []
        for key, value in argument:
            if action == 0:
                balances[key] += value
            elif value > balances[key]:
                refused.append(("refused", key, value, 7))
            else:
                balances[key] -= value
                paid.append((key, "paid", balances[key], 7))
        out = Collected()
        everything = records(action, *((key, value, 7) for key, value in argument))
        keys = (("k",), ("key",))[action]
        parts = KeyPartitioner(keys, SCHEMAS[action], len(operators)).split(everything)
        for operator, part in zip(operators, parts, strict=True):
            if part is not None:
                operator.process(part, action, out)
        assert Counter(out.rows) == Counter(paid)
        assert Counter(out.side) == Counter(refused)


class Pairs(wb.functions.CoProcessFunction):
    """Waits ten microseconds for the other half."""

    half = wb.state.ValueState(pa.string())

    def process1(self, record, state, ctx):
        return self.met("first", state, ctx)

    def process2(self, record, state, ctx):
        return self.met("second", state, ctx)

    def met(self, side, state, ctx):
        if state.half is not None:
            state.clear()
            return {"k": ctx.key, "what": "pair", "n": ctx.watermark}
        state.half = side
        ctx.register_event_timer(ctx.timestamp + 10)
        return None

    def on_timer(self, time, state, ctx):
        if state.half is not None:
            yield {"k": ctx.key, "what": state.half, "n": time}
            state.clear()


def test_timers_belong_to_the_key_whichever_stream_set_them():
    operator, out = opened(ConnectedProcess(("k",), Pairs(), OUT, other_keys=("key",))), Collected()
    operator.process(records(0, (1, 0, 0), (2, 0, 1)), 0, out)
    operator.process(records(1, (3, 0, 2)), 1, out)
    operator.on_watermark(5, out)
    operator.process(records(1, (2, 0, 6)), 1, out)
    operator.on_watermark(12, out)
    assert out.rows == [(2, "pair", 5, 6), (1, "first", 10, 10), (3, "second", 12, 12)]
    assert operator._operator.counters.numFiredTimers == 3


# broadcast -----------------------------------------------------------------------------------------------------------


class Limits(wb.functions.CoProcessFunction):
    """Rules set a limit for a key; records above it are told, with how many of their key have been told before."""

    limits = wb.state.BroadcastState(pa.int64(), pa.int64())
    told = wb.state.ValueState(pa.int64(), default=0)

    def process1(self, record, state, ctx):
        if record["v"] > ctx.broadcast.limits.get(record["k"], 100):
            state.told += 1
            return {"k": record["k"], "what": "above", "n": state.told}
        return None

    def process2(self, rule, state, ctx):
        assert ctx.key is None
        if rule["w"] is None:
            state.limits.pop(rule["key"], None)
        else:
            state.limits[rule["key"]] = rule["w"]


LIMITS = ConnectedProcess(("k",), Limits(), OUT, broadcasts=True)


def test_broadcast_state_is_restored_to_any_number_of_subtasks():
    operators = [opened(LIMITS, subtask, 2) for subtask in range(2)]
    rules = records(1, (1, 10, 0), (2, 20, 0), (3, 30, 0), (3, None, 1))
    for operator in operators:
        operator.process(rules, 1, Collected())
    snapshots = [operator.snapshot(1) for operator in operators]
    assert [snapshot["broadcast"].to_pylist() for snapshot in snapshots] == [
        [{"subtask": subtask, "state:limits": [(1, 10), (2, 20)]}] for subtask in range(2)
    ]
    earlier = [{**snapshots[0], "broadcast": snapshots[0]["broadcast"].drop_columns(["subtask"])}, snapshots[1].copy()]
    del earlier[1]["broadcast"]
    for order in (snapshots, snapshots[::-1], earlier):
        for parallelism in (1, 2, 3):
            for subtask in range(parallelism):
                operator = opened(LIMITS, subtask, parallelism)
                operator.restore(order)
                assert operator._shared.states[0].limits == {1: 10, 2: 20}
    operator, out = opened(LIMITS, 2, 3), Collected()
    operator.restore(snapshots)
    operator.process(records(0, (1, 11, 5), (1, 10, 6), (3, 31, 7), (3, 101, 8), (1, 12, 9)), 0, out)
    assert out.rows == [(1, "above", 1, 5), (3, "above", 1, 8), (1, "above", 2, 9)]


def test_each_subtask_goes_on_from_its_own_broadcast_state():
    """An unaligned checkpoint holds for each of them what is still on its way to it."""
    operators = [opened(LIMITS, subtask, 2) for subtask in range(2)]
    for operator, rules in zip(operators, ([(1, 10, 0)], [(1, 10, 0), (2, 20, 0)]), strict=True):
        operator.process(records(1, *rules), 1, Collected())
    snapshots = [operator.snapshot(1) for operator in operators]
    for order in (snapshots, snapshots[::-1]):
        held = []
        for subtask in range(2):
            operator = opened(LIMITS, subtask, 2)
            operator.restore(order)
            held.append(dict(operator._shared.states[0].limits))
        assert held == [{1: 10}, {1: 10, 2: 20}]


class Tally(wb.functions.CoProcessFunction):
    """What is taken in twice, or not at all, shows."""

    times = wb.state.BroadcastState(pa.int64(), pa.int64())

    def process1(self, record, state, ctx):
        ctx.register_event_timer(2**63 - 2)  # a time that only the end of the input reaches

    def on_timer(self, time, state, ctx):
        times = ctx.broadcast.times
        return {"k": ctx.key, "what": str(set(times.values())), "n": len(times)}

    def process2(self, rule, state):
        state.times[rule["key"]] = state.times.get(rule["key"], 0) + 1


@pytest.mark.slow
def test_every_subtask_has_every_rule_once_after_failures_with_rules_on_their_way():
    rules = wb.Stream.from_table(pa.table({"key": range(300)}), rate=1_000).uid("rules")
    readings = wb.Stream.from_table(pa.table({"k": range(20_000)}), rate=1_000).uid("readings")
    judged = readings.connect(rules.broadcast(), on="k").process(Tally(), OUT).uid("judged")
    job = judged.sink_to(wb.TableSink("judged")).run(
        "tally", parallelism=3, checkpoint_mode="unaligned", checkpoint_interval="10ms", buffer_timeout="1ms",
        buffer_size=4, restart=wb.restart.fixed_delay(100, "1ms"),
    )  # fmt: skip
    job.faults.slow_down("judged", "4ms")
    for _ in range(6):
        before = job.status()["checkpoints"]
        until(lambda before=before: job.status()["checkpoints"] >= before + 3)
        job.fail("judged[1]")
    job.faults.slow_down("judged", "0s")
    job.tune(rate="max")  # until here it was too slow to end meanwhile
    assert job.wait("60s") == "FINISHED"
    rows = job.table().to_pylist()
    assert sorted(row["k"] for row in rows) == list(range(20_000))
    assert {(row["what"], row["n"]) for row in rows} == {("{1}", 300)}


def test_records_are_judged_by_the_rules_as_of_then():
    operator, out = opened(LIMITS), Collected()
    for port, row in ((0, (1, 50, 0)), (1, (1, 40, 1)), (0, (1, 50, 2)), (1, (1, 60, 3)), (0, (1, 50, 4))):
        operator.process(records(port, row), port, out)
    assert out.rows == [(1, "above", 1, 2)]


class Meddling(Limits):
    def process1(self, record, state, ctx):
        ctx.broadcast.limits[1] = 5


class Counting(Limits):
    def process2(self, rule, state, ctx):
        ctx.register_event_timer(5)

    def on_timer(self, time, state, ctx):
        return None


class Wrong(Limits):
    def process2(self, rule, state, ctx):
        state.limits["x"] = "y"


def test_records_cannot_change_broadcast_state_and_rules_cannot_set_timers():
    with pytest.raises(RecordError, match="raised TypeError: 'mappingproxy' object does not support item assignment"):
        opened(ConnectedProcess(("k",), Meddling(), OUT, broadcasts=True)).process(
            records(0, (1, 2, 3)), 0, Collected()
        )
    with pytest.raises(RecordError) as caught:
        opened(ConnectedProcess(("k",), Counting(), OUT, broadcasts=True)).process(
            records(1, (1, 2, 3)), 1, Collected()
        )
    assert str(caught.value) == (
        "process function 'Counting' raised TypeError: a timer belongs to a key, and this record has none: connect the "
        "streams with on= on record {'w': 2, 'key': 1}"
    )
    wrong = opened(ConnectedProcess(("k",), Wrong(), OUT, broadcasts=True))
    wrong.process(records(1, (1, 2, 3)), 1, Collected())
    with pytest.raises(RecordError) as caught:
        wrong.snapshot(1)
    assert str(caught.value) == (
        "process function 'Wrong' left [('x', 'y')] in the broadcast state 'limits', which is declared as "
        "map<int64, int64>"
    )


class Wider(Limits):
    limits = wb.state.BroadcastState(pa.int64(), pa.float64())


def test_broadcast_state_of_another_type_is_refused():
    operator = opened(LIMITS)
    operator.process(records(1, (1, 10, 0)), 1, Collected())
    with pytest.raises(CheckpointError, match="the state 'limits' of operator 'process' was map<int64, int64"):
        opened(ConnectedProcess(("k",), Wider(), OUT, broadcasts=True)).restore([operator.snapshot(1)])


class Unkeyed(wb.functions.CoProcessFunction):
    names = wb.state.BroadcastState(pa.int64(), pa.int64())

    def process1(self, record, state, ctx):
        return {"k": record["k"], "what": str(ctx.key), "n": ctx.broadcast.names.get(record["k"])}

    def process2(self, record, state):
        state.names[record["key"]] = record["w"]


def test_without_keys_there_is_broadcast_state_alone():
    spec = ConnectedProcess((), Unkeyed(), OUT, broadcasts=True)
    operators = [opened(spec, subtask, 2) for subtask in range(2)]
    for operator in operators:
        operator.process(records(1, (1, 7, 0)), 1, Collected())
    operators[0].on_watermark(5, Collected())
    restored, out = opened(spec, 1, 2), Collected()
    restored.restore([operator.snapshot(1) for operator in operators])
    restored.process(records(0, (1, 0, 6), (2, 0, 7)), 0, out)
    assert out.rows == [(1, "None", 7, 6), (2, "None", None, 7)]
    assert restored._context.watermark == NO_TIME  # of the other subtask, which had seen none


def test_streams_with_and_without_event_times_can_meet():
    out = Collected()
    spec = ConnectedMap(lambda r: {"n": r["v"]}, lambda r: {"n": -r["w"]}, {"n": pa.int64()})
    operator = spec.create(SCHEMAS)
    operator.process(records(0, (1, 5, 9)), 0, out)
    operator.process(Records(records(1, (1, 6, 9)).batch), 1, out)
    assert out.rows == [(5, 9), (-6, NO_TIME)]
    keyed, out = opened(LEDGER), Collected()
    keyed.process(Records(records(0, (1, 5, 9)).batch), 0, out)
    keyed.process(records(1, (1, 5, 9)), 1, out)
    assert out.rows == [(1, "paid", 0, 9)]


def test_buffers_of_streams_with_and_without_event_times_can_be_put_together():
    timed, timeless = records(0, (1, 2, 3)), Records(records(0, (4, 5, 6)).batch)
    assert rows_of(Records.concat([timed, timeless])) == [(1, 2, 3), (4, 5, NO_TIME)]
    assert rows_of(Records.concat([timeless, timed])) == [(4, 5, NO_TIME), (1, 2, 3)]
    assert Records.concat([timeless, timeless]).timestamps is None


# whole jobs ----------------------------------------------------------------------------------------------------------


def numbers(n: int = 40, **more: Any) -> wb.Stream:
    table = pa.table({"n": range(n), "t": pa.array(range(n)).cast(pa.timestamp("us")), **more})
    return wb.Stream.from_table(table, event_time="t")


def run(pipeline: wb.types.Pipeline, **settings: Any) -> wb.types.Job:
    job = pipeline.run("test", **{"parallelism": 2, "buffer_size": 7, **settings})
    job.wait("120s")
    return job


def column(job: wb.types.Job, table: str, name: str = "n") -> list[Any]:
    return sorted(job.table(table).column(name).to_pylist())


def test_several_sources_and_sinks_split_and_merge():
    """Two sources meet, part by size, and the parts meet again, one of them after a detour (F1-4)."""
    small, large = numbers(10), numbers(30).select("t", n=wb.col("n") + 100).select("n", "t")
    parts = small.union(large).split({"even": "n % 2 = 0", "over": "n > 120"}, rest="other")
    shifted = parts["over"].with_columns(n=wb.col("n") + 1000)
    merged = shifted.union(parts["other"])
    pipeline = merged.sink_to(wb.TableSink("merged")) + parts["even"].sink_to(wb.TableSink("even"))
    job = run(pipeline + parts["other"].sink_to(wb.TableSink("other")))
    everything = [*range(10), *range(100, 130)]
    even = [n for n in everything if n % 2 == 0]
    over = [n for n in everything if n % 2 and n > 120]
    other = [n for n in everything if n % 2 and n <= 120]
    assert column(job, "even") == even
    assert column(job, "other") == other
    assert column(job, "merged") == sorted(other + [n + 1000 for n in over])


@pytest.mark.parametrize(
    "spread",
    [
        lambda stream: stream.rebalance(local=True),
        lambda stream: stream.shuffle(),
        lambda stream: stream.partition_by("n % 3"),
        lambda stream: stream.partition_by(lambda batch: batch.column("n").to_numpy() // 2),
    ],
)
def test_however_records_are_spread_none_is_lost(spread):
    source = numbers().with_parallelism(1)
    job = run(spread(source).with_columns(m=wb.col("n") * 2).sink_to(wb.TableSink("out")), parallelism=3)
    assert column(job, "out", "m") == [2 * n for n in range(40)]


def test_a_partitioner_keeps_its_word():
    seen: list[tuple[int, list[int]]] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.append((min(batch.column("n").to_pylist()) % 2, batch.column("n").to_pylist()))
        return batch

    run(numbers().with_parallelism(1).partition_by("n % 2").map_batches(look).sink_to(wb.DiscardSink()))
    assert all(n % 2 == parity for parity, part in seen for n in part)
    assert sorted(n for _, part in seen for n in part) == list(range(40))


@pytest.mark.parametrize("driver", ["live", "stepping"])
def test_a_job_keeps_state_for_two_streams(driver):
    deposits = numbers(40, k=[i % 4 for i in range(40)])
    rates = wb.Stream.from_table(pa.table({"key": [0, 1, 2, 3], "w": [1, 2, 3, 4]}))

    class Sum(wb.functions.CoProcessFunction):
        total = wb.state.ValueState(pa.int64(), default=0)

        def process1(self, record, state):
            state.total += record["n"]
            return {"k": record["k"], "total": state.total}

        def process2(self, record, state):
            state.total += 1000 * record["w"]
            return {"k": record["key"], "total": state.total}

    connected = deposits.connect(rates, on={"k": "key"})
    assert repr(connected).startswith("ConnectedStreams on k: Stream(n int64")
    pipeline = connected.process(Sum(), {"k": pa.int64(), "total": pa.int64()}).sink_to(wb.TableSink("out"))
    if driver == "stepping":
        job = pipeline.run("test", parallelism=2, driver="stepping")
        while not job.over:
            job.stepper.step()
    else:
        job = run(pipeline)
    rows = job.table("out").to_pylist()
    assert len(rows) == 44
    last = {k: max(row["total"] for row in rows if row["k"] == k) for k in range(4)}
    assert last == {k: sum(n for n in range(40) if n % 4 == k) + 1000 * (k + 1) for k in range(4)}


def test_a_job_maps_two_streams_to_one():
    words = wb.Stream.from_table(pa.table({"word": ["a", "b"]}))
    mapped = (
        numbers(3)
        .connect(words)
        .map(lambda r: {"text": str(r["n"])}, lambda r: {"text": r["word"]}, {"text": pa.string()})
    )
    assert column(run(mapped.sink_to(wb.TableSink("out"))), "out", "text") == ["0", "1", "2", "a", "b"]


# split ---------------------------------------------------------------------------------------------------------------


def test_split_tries_conditions_in_turn_and_null_is_not_true():
    schema = pa.schema({"n": pa.int64()})
    spec = Split((("high", expr("n > 5")), ("even", expr("n % 2 = 0"))))
    batch = pa.record_batch([pa.array([8, None, 7, 2, 3], pa.int64())], schema=schema)
    out = Collected()
    operator = spec.create([schema])
    operator.process(Records(batch, np.array([0, 1, 2, 3, 4])), 0, out)
    operator.process(Records(batch.slice(1, 1)), 0, out)
    operator.process(Records(batch.slice(0, 0)), 0, out)
    assert out.side == [("high", 8, 0), ("high", 7, 2), ("even", 2, 3)]
    assert out.rows == [(None, 1), (3, 4), (None, None)]
    assert spec.describe() == "high: n > 5, even: n % 2 = 0"


class Stateless(wb.functions.CoProcessFunction):
    def process1(self, record, state):
        return None

    def process2(self, record, state):
        return None


class NeedsKeys(Stateless):
    total = wb.state.ValueState(pa.int64(), default=0)


class Timed(Stateless):
    def on_timer(self, time, state, ctx):
        return None


class Four(Stateless):
    def process2(self, record, state, ctx, more):
        return None


@pytest.mark.parametrize(
    ("build", "kind", "said"),
    [
        (
            lambda a, b: a.split({}),
            PlanError,
            "split needs at least one condition, for example split({'late': 'dep_delay > 15'})",
        ),
        (
            lambda a, b: a.split({"rest": "n > 1"}),
            PlanError,
            "split has a condition named 'rest', which is also the name of the rest: pass another rest=",
        ),
        (
            lambda a, b: a.split({"x": "n + 1"}),
            ExpressionError,
            "split needs conditions that are true or false, but 'n + 1' of 'x' is bigint: compare it with a value",
        ),
        (lambda a, b: a.connect([1]), PlanError, "connect got [1]: pass a stream"),
        (
            lambda a, b: a.connect(b, on="x").process(Stateless(), OUT),
            PlanError,
            "on the left side: unknown key column 'x': Valid: n, t",
        ),
        (
            lambda a, b: a.connect(b).process(Ledger, OUT),
            PlanError,
            f"process of connected streams got {Ledger!r}: pass an object of a subclass of CoProcessFunction, such as "
            "Alarms()",
        ),
        (
            lambda a, b: a.connect(b).process(NeedsKeys(), OUT),
            PlanError,
            "NeedsKeys declares the state total, which belongs to keys: name them with connect(other, on=...)",
        ),
        (
            lambda a, b: a.connect(b.broadcast()).process(Timed(), OUT),
            PlanError,
            "Timed declares on_timer, which belongs to keys: name them with connect(other, on=...)",
        ),
        (
            lambda a, b: a.connect(b, on="n").process(Limits(), OUT),
            PlanError,
            "Limits declares the broadcast state limits, but its second stream is not broadcast: connect it with "
            "connect(other.broadcast())",
        ),
        (
            lambda a, b: a.connect(b).process(Four(), OUT),
            PlanError,
            "process function 'Four.process2' takes (record, state, ctx, more): it is called with (record, state) or "
            "(record, state, ctx)",
        ),
        (lambda a, b: a.connect(b).map(len, len, {}), PlanError, "map declares no columns"),
        (
            lambda a, b: a.partition_by("n / 2"),
            PlanError,
            "partition_by('n / 2') gives double: an exchange needs integers",
        ),
    ],
)
def test_what_is_refused_is_said_with_the_users_line(
    build: Callable[..., Any], kind: type[wb.errors.WorkbenchError], said: str
):
    with pytest.raises(kind) as caught:
        build(numbers(), numbers())
    assert caught.value.message.startswith(said)
    assert "test_connect.py" in str(caught.value)


def test_broadcast_state_needs_arrow_types():
    with pytest.raises(
        SettingError, match=r"BroadcastState got the type 'int': pass an Arrow type such as pyarrow.int64"
    ):
        wb.state.BroadcastState("int", pa.int64())
