"""Keyed process functions: hand-worked streams, timers compared with a naive model, side outputs, and errors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.clock import VirtualClock
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Records
from workbench.errors import PlanError, RecordError, SettingError
from workbench.operators.contract.base import Operator, OperatorContext, Snapshot
from workbench.operators.functions.record_loop import CHUNK
from workbench.operators.process.process import Process
from workbench.state.key_groups import KeyPartitioner

EVENTS = pa.schema({"k": pa.string(), "n": pa.int64()})
ZERO = wb.state.ValueState(pa.int64(), default=0)


class Collected:
    """An output that keeps rows and their times."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.times: list[int | None] = []
        self.side: dict[str, list[tuple[Any, ...]]] = {}

    def emit(self, records: Records) -> None:
        records.batch.validate(full=True)
        self.rows += [tuple(row.values()) for row in records.batch.to_pylist()]
        self.times += [None] * len(records) if records.timestamps is None else records.timestamps.tolist()

    def emit_side(self, tag: str, records: Records) -> None:
        times = [None] * len(records) if records.timestamps is None else records.timestamps.tolist()
        rows = [tuple(row.values()) for row in records.batch.to_pylist()]
        self.side.setdefault(tag, []).extend((*row, time) for row, time in zip(rows, times, strict=True))


def events(rows: Sequence[tuple[str | None, int | None]], times: Sequence[int] | None = None) -> Records:
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(EVENTS)]
    batch = pa.RecordBatch.from_arrays(columns, schema=EVENTS)
    return Records(batch, None if times is None else np.array(times, np.int64))


def opened(spec: Process, subtask: int = 0, parallelism: int = 1, clock: VirtualClock | None = None) -> Operator:
    operator = spec.create([EVENTS])
    operator.open(OperatorContext(subtask=subtask, parallelism=parallelism, clock=clock or VirtualClock()))
    return operator


def process(function: Any, schema: dict[str, pa.DataType], **options: Any) -> Process:
    spec = Process(("k",), function, schema, **options)
    spec.output_schema([EVENTS])
    return spec


# --- streams worked out by hand


def test_running_sums_of_even_and_odd_numbers() -> None:
    """F2-7: 1 to 6, the sum of the even and of the odd numbers so far."""

    def add(record: dict[str, Any], state: wb.state.State) -> dict[str, Any]:
        state.sum += record["n"]
        return {"k": record["k"], "sum": state.sum}

    operator = opened(process(add, {"k": pa.string(), "sum": pa.int64()}, state={"sum": ZERO}))
    out = Collected()
    operator.process(events([("odd", 1), ("even", 2), ("odd", 3)], [10, 20, 30]), 0, out)
    operator.process(events([("even", 4), ("odd", 5), ("even", 6)], [40, 50, 60]), 0, out)
    assert out.rows == [("odd", 1), ("even", 2), ("odd", 4), ("even", 6), ("odd", 9), ("even", 12)]
    assert out.times == [10, 20, 30, 40, 50, 60]
    assert operator.query({"k": "even"}) == {"sum": 12}
    assert operator.query({"k": "neither"}) is None
    assert operator.query_keys(1) == (2, [{"k": "odd"}])


class Sessions(wb.functions.ProcessFunction):
    """Counts the events of a key until it is silent for 10."""

    count = ZERO
    until = wb.state.ValueState(pa.int64())

    def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
        assert ctx.timestamp is not None
        if state.until is not None:
            ctx.delete_event_timer(state.until)
        state.count += 1
        state.until = max(state.until or 0, ctx.timestamp + 10)
        ctx.register_event_timer(state.until)

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
        count = state.count
        state.clear()
        return {"k": ctx.key, "count": count, "at": ctx.watermark}


def test_sessions_end_when_the_watermark_passes_their_timers() -> None:
    operator = opened(process(Sessions(), {"k": pa.string(), "count": pa.int64(), "at": pa.int64()}))
    out = Collected()
    operator.process(events([("a", 0), ("b", 0), ("a", 0)], [1, 4, 7]), 0, out)  # a until 17, b until 14
    operator.on_watermark(13, out)
    assert out.rows == []
    operator.on_watermark(16, out)
    assert (out.rows, out.times) == ([("b", 1, 16)], [14])
    operator.process(events([("b", 0)], [20]), 0, out)
    operator.on_watermark(MAX_TIME, out)
    assert out.rows[1:] == [("a", 2, MAX_TIME), ("b", 1, MAX_TIME)]
    assert out.times[1:] == [17, 30]
    assert operator.query({"k": "a"}) is None


def test_a_job_with_a_process_function_a_side_output_and_two_subtasks() -> None:
    class Split(wb.functions.ProcessFunction):
        seen = wb.state.ListState(pa.int64())

        def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
            state.seen.append(record["n"])
            if record["n"] < 0:
                ctx.output("negative", {"k": ctx.key, "n": record["n"]})
                return
            yield {"k": record["k"], "seen": state.seen}

    table = pa.table({"k": ["a", "b", "a", "a"], "n": [1, -2, -3, 4]})
    made = (
        wb.Stream.from_table(table)
        .with_parallelism(1)  # so that the records of a key keep their order
        .key_by("k")
        .process(Split(), {"k": pa.string(), "seen": pa.list_(pa.int64())}, side_outputs={"negative": EVENTS})
    )
    both = made.sink_to(wb.TableSink("seen")) + made.side_output("negative").sink_to(wb.TableSink("negative"))
    job = both.run("split", parallelism=2)
    job.wait("120s")
    seen = job.table("seen").to_pylist()
    assert [row["seen"] for row in seen if row["k"] == "a"] == [[1], [1, -3, 4]]
    assert len(seen) == 2
    assert sorted(job.table("negative").to_pydict()["n"]) == [-3, -2]


# --- what functions may return


@pytest.mark.parametrize("with_context", [False, True])
@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=30), st.data())
def test_none_one_and_several_rows_in_any_order(with_context: bool, rows: list[tuple[str, int]], data: Any) -> None:
    def several(n: int, k: str) -> Any:
        if n == 0:
            return None
        if n == 1:
            return {"k": k, "i": 0}
        return ({"k": k, "i": i} for i in range(n - 2))  # 2 gives an empty generator

    def plain(record: dict[str, Any], state: wb.state.State) -> Any:
        return several(record["n"], record["k"])

    def contextual(record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
        assert ctx.key == record["k"]
        return several(record["n"], f"{ctx.key}{ctx.timestamp}")

    operator = opened(process(contextual if with_context else plain, {"k": pa.string(), "i": pa.int64()}))
    out = Collected()
    cut = data.draw(st.integers(0, len(rows)))
    times = list(range(len(rows)))
    operator.process(events(rows[:cut], times[:cut]), 0, out)
    operator.process(events(rows[cut:], times[cut:]), 0, out)
    wanted = [
        (f"{k}{time}" if with_context else k, i, time)
        for time, (k, n) in enumerate(rows)
        for i in range({0: 0, 1: 1}.get(n, n - 2))
    ]
    assert [(*row, time) for row, time in zip(out.rows, out.times, strict=True)] == wanted


def test_batches_longer_than_a_chunk() -> None:
    def odd_ones(record: dict[str, Any], state: wb.state.State) -> Any:
        state.n += 1
        return {"n": record["n"] * 1_000_000 + state.n} if record["n"] % 2 else None

    operator = opened(process(odd_ones, {"n": pa.int64()}, state={"n": ZERO}))
    out = Collected()
    size = 2 * CHUNK + 3
    operator.process(events([(str(i % 10), i) for i in range(size)], range(size)), 0, out)
    assert out.rows == [(i * 1_000_000 + i // 10 + 1,) for i in range(1, size, 2)]
    assert out.times == list(range(1, size, 2))


def test_what_comes_out_does_not_change_with_the_state_later_on() -> None:
    def collect(record: dict[str, Any], state: wb.state.State) -> Any:
        state.seen.append(record["n"])
        state.by.setdefault(record["k"], []).append(record["n"])
        return {"seen": state.seen, "by": state.by}

    kinds = {"seen": pa.list_(pa.int64()), "by": pa.map_(pa.string(), pa.list_(pa.int64()))}
    state = {"seen": wb.state.ListState(pa.int64()), "by": wb.state.MapState(pa.string(), pa.list_(pa.int64()))}
    out = Collected()
    opened(process(collect, kinds, state=state)).process(events([("a", 1), ("a", 2)]), 0, out)
    assert out.rows == [([1], [("a", [1])]), ([1, 2], [("a", [1, 2])])]
    assert out.times == [None, None]


# --- timers


class Alarms(wb.functions.ProcessFunction):
    """Sets, and takes back, the timers that a record says; a timer at t sets another at t + 100 if t is below 50."""

    def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
        if record["n"] >= 0:
            ctx.register_event_timer(record["n"])
        else:
            ctx.delete_event_timer(-record["n"])

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
        if time < 50:
            ctx.register_event_timer(time + 100)
        yield {"k": ctx.key, "t": time}


ALARMS = {"k": pa.string(), "t": pa.int64()}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.integers(-60, 90)),
        st.integers(0, 200),  # a watermark
        st.sampled_from([1, 2, 3]).map(lambda p: ("rescale", p)),
    ),
    max_size=40,
)


def snapshots_of(operators: Sequence[Operator]) -> list[Snapshot]:
    return [operator.snapshot(1) for operator in operators]


@settings(max_examples=150)
@given(STEPS)
def test_timers_against_a_naive_model_with_rescaling_at_any_point(steps: list[Any]) -> None:
    spec = process(Alarms(), ALARMS)
    operators = [opened(spec)]
    watermark = NO_TIME
    timers: set[tuple[int, str]] = set()
    for step in [*steps, MAX_TIME]:
        out = Collected()
        if isinstance(step, int):
            watermark = max(watermark, step)
            for operator in operators:
                operator.on_watermark(watermark, out)
            wanted = []
            while due := sorted(timer for timer in timers if timer[0] <= watermark):
                for timer in due:
                    timers.remove(timer)
                    wanted.append(timer)
                    if timer[0] < 50:
                        timers.add((timer[0] + 100, timer[1]))
            assert sorted((t, k) for k, t in out.rows) == sorted(wanted)
            assert out.times == [t for _, t in out.rows]
            if len(operators) == 1:
                assert [t for _, t in out.rows] == sorted(t for t, _ in wanted)
        elif step[0] == "rescale":
            snapshots = snapshots_of(operators)
            operators = [opened(spec, at, step[1]) for at in range(step[1])]
            for operator in operators:
                operator.restore(snapshots)
        else:
            k, n = step
            parts = KeyPartitioner(["k"], EVENTS, len(operators)).split(events([(k, n)], [0]))
            for operator, part in zip(operators, parts, strict=True):
                if part is not None:
                    operator.process(part, 0, out)
            timers.add((n, k)) if n >= 0 else timers.discard((-n, k))
            assert out.rows == []


def test_fired_timers_are_counted() -> None:
    operator = opened(process(Alarms(), ALARMS))
    context = operator._operator  # type: ignore[attr-defined]
    operator.process(events([("a", 60), ("a", 60), ("b", 60), ("a", 40)], [0] * 4), 0, Collected())
    operator.on_watermark(60, Collected())
    assert context.counters.numFiredTimers == 3
    operator.on_watermark(140, Collected())
    assert context.counters.numFiredTimers == 4


def test_processing_timers_fire_by_the_clock_and_survive_a_snapshot() -> None:
    class Later(wb.functions.ProcessFunction):
        def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            ctx.register_processing_timer(ctx.processing_time + record["n"])
            ctx.register_processing_timer(dt.datetime(1970, 1, 1, second=1))
            ctx.delete_processing_timer(1_000_000)

        def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
            assert ctx.domain == "processing"
            ctx.output("side", {"k": ctx.key, "n": time})
            return {"k": ctx.key, "t": time}

    spec = process(Later(), ALARMS, side_outputs={"side": EVENTS})
    clock = VirtualClock(1_000)
    operator = opened(spec, clock=clock)
    assert operator.next_time_us() is None
    operator.process(events([("a", 50), ("b", 20)], [7, 7]), 0, Collected())
    assert operator.next_time_us() == 1_020
    restored = opened(spec, clock=clock)
    restored.restore([operator.snapshot(1)])
    clock.advance_to(1_060)
    out = Collected()
    assert restored.next_time_us() == 1_020
    restored.on_time(1_060, out)
    assert (out.rows, out.times) == ([("b", 1_020), ("a", 1_050)], [NO_TIME, NO_TIME])
    assert out.side == {"side": [("b", 1_020, NO_TIME), ("a", 1_050, NO_TIME)]}
    assert restored.next_time_us() is None


def test_timers_that_would_go_on_for_ever_after_the_last_record_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ticking(wb.functions.ProcessFunction):
        def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            ctx.register_event_timer(0)

        def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            ctx.register_event_timer(time + 1)

    monkeypatch.setattr("workbench.operators.process.process_logic._AT_THE_END", 1_000)
    operator = opened(process(Ticking(), ALARMS))
    operator.process(events([("a", 0)], [0]), 0, Collected())
    operator.on_watermark(10, Collected())
    with pytest.raises(RecordError, match="set 1,000 timers in on_timer after the last record"):
        operator.on_watermark(MAX_TIME, Collected())


# --- one copy of the function for each subtask


def test_open_and_close_are_called_for_each_subtask() -> None:
    calls: list[str] = []

    class Opened(wb.functions.ProcessFunction):
        def open(self) -> None:
            self.count = 0
            calls.append("open")

        def process(self, record: dict[str, Any], state: wb.state.State) -> Any:  # type: ignore[override]
            self.count += 1
            return {"n": self.count}

        def close(self) -> None:
            calls.append(f"close {self.count}")

    spec = process(Opened(), {"n": pa.int64()})
    first, second = opened(spec), opened(spec)
    out = Collected()
    first.process(events([("a", 1), ("b", 1)]), 0, out)
    second.process(events([("a", 1)]), 0, out)
    assert out.rows == [(1,), (2,), (1,)]
    first.close()
    first.close()
    second.close()
    assert calls == ["open", "open", "close 2", "close 1"]


# --- what errors say


def failing(function: Callable[..., Any], schema: dict[str, pa.DataType] | None = None, **options: Any) -> str:
    operator = opened(process(function, schema or {"k": pa.string()}, **options))

    def run() -> None:
        operator.process(events([("a", 1), ("b", 2)], [0, 0]), 0, Collected())
        operator.on_watermark(MAX_TIME, Collected())
        operator.snapshot(1)

    with pytest.raises(RecordError) as caught:
        run()
    return str(caught.value)


def wrong(result: Any) -> Callable[..., Any]:
    def answer(record: dict[str, Any], state: wb.state.State) -> Any:
        return {"k": "fine"} if record["n"] == 1 else result

    answer.__qualname__ = "answer"
    return answer


ON_B = "for key 'b' on record {'k': 'b', 'n': 2}"


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({}, f"returned a dict that lacks k, expected a dict with the columns k, {ON_B}"),
        (
            {"k": "x", "m": 1},
            f"returned a dict that has also m, expected a dict with the columns k, {ON_B}",
        ),
        ([{"k": "x"}, 5], f"returned 5 (int), expected a dict with the columns k, {ON_B}"),
        (
            "text",
            f"returned 'text' (str), expected None, a dict or an iterable of dicts, {ON_B}: return a list or use yield",
        ),
        (7, f"returned 7 (int), expected None, a dict or an iterable of dicts, {ON_B}: return a list or use yield"),
        ({"k": 5}, "returned 5 for column 'k', which is declared as string, on record {'k': 'b', 'n': 2}"),
    ],
)
def test_a_bad_return_value_is_named_with_its_record(result: Any, said: str) -> None:
    assert failing(wrong(result)) == f"process function 'answer' {said}"


def test_an_exception_names_key_and_record() -> None:
    def look_up(record: dict[str, Any], state: wb.state.State) -> Any:
        return {"k": {1: 0}[record["n"]]}

    look_up.__qualname__ = "look_up"
    said = failing(look_up, {"k": pa.int64()})
    assert said == f"process function 'look_up' raised KeyError: 2 {ON_B}"


def test_state_that_is_not_declared_is_an_error_with_the_nearest_name() -> None:
    def misspelt(record: dict[str, Any], state: wb.state.State) -> None:
        state.cuont = 1

    misspelt.__qualname__ = "misspelt"
    said = failing(misspelt, state={"count": ZERO})
    assert said.startswith(
        "process function 'misspelt' uses unknown state 'cuont': did you mean 'count'? Valid: count, for key 'a' on"
    )


def test_state_of_a_wrong_type_is_an_error_at_the_snapshot() -> None:
    def text(record: dict[str, Any], state: wb.state.State) -> None:
        state.count = record["k"] if record["k"] == "b" else 0.5 * 4

    text.__qualname__ = "text"
    said = failing(text, state={"count": ZERO})
    assert said == "process function 'text' left 'b' in state.count, which is declared as int64, for key 'b'"


def test_a_list_replaced_by_something_else_is_an_error_at_the_snapshot() -> None:
    def number(record: dict[str, Any], state: wb.state.State) -> None:
        state.seen = {"b": 7}.get(record["k"], [1])

    number.__qualname__ = "number"
    assert "left 7 in state.seen, which is declared as list" in failing(
        number, state={"seen": wb.state.ListState(pa.int8())}
    )


def test_a_failing_timer_names_its_time_and_key() -> None:
    class Failing(wb.functions.ProcessFunction):
        def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            ctx.register_event_timer(1_000_000 * record["n"])

        def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> Any:
            return {"k": "x"} if ctx.key == "a" else {"m": 1}

    Failing.__qualname__ = "Failing"
    assert failing(Failing()) == (
        "process function 'Failing' returned a dict that lacks k and has also m, expected a dict with the columns k, "
        "in on_timer at 1970-01-01 00:00:02 for key 'b'"
    )


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda ctx: ctx.register_event_timer(5), "a timer needs on_timer: subclass ProcessFunction and define it"),
        (
            lambda ctx: ctx.delete_event_timer(1.5),
            "a timer's time is 1.5 (float): pass whole microseconds or a dateti",
        ),
        (lambda ctx: ctx.output("lat", {"n": 1}), "unknown side output 'lat': did you mean 'late'? Valid: late"),
        (
            lambda ctx: ctx.output("late", {"m": 1}),
            "output('late') got a dict that lacks n and has also m, expected a dict with the columns n",
        ),
    ],
)
def test_wrong_use_of_the_context(use: Callable[[wb.functions.ProcessContext], None], said: str) -> None:
    def using(record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
        use(ctx)

    using.__qualname__ = "using"
    message = failing(using, side_outputs={"late": {"n": pa.int64()}})
    assert message.startswith(f"process function 'using' raised TypeError: {said}")
    assert message.endswith("for key 'a' on record {'k': 'a', 'n': 1}")


def test_a_value_that_does_not_fit_its_side_output_names_the_key() -> None:
    def using(record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
        ctx.output("late", {"n": record["k"]})

    message = failing(using, side_outputs={"late": {"n": pa.int64()}})
    assert message.endswith("returned 'a' for column 'n', which is declared as int64, in output('late') for key 'a'")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"function": Sessions}, PlanError, "pass a ProcessFunction, such as Sessions(), or a function of"),
        ({"function": 5}, PlanError, "process got 5: pass a ProcessFunction"),
        ({"function": lambda record: None}, PlanError, "takes (record): it is called with (record, state) or"),
        ({"function": Sessions(), "state": {"n": ZERO}}, PlanError, "declare its state as class attributes instead"),
        ({"state": {"n": int}}, PlanError, "the state 'n' is <class 'int'>: declare it with an Arrow type"),
        ({"state": {"_n": ZERO}}, SettingError, "state cannot be called '_n'"),
        ({"state": {"clear": ZERO}}, SettingError, "state cannot be called 'clear'"),
        ({"state_backend": "tape"}, PlanError, "unknown state backend 'tape': Valid: disk, memory"),
        ({"keys": ("z",)}, PlanError, "unknown key column 'z'"),
        ({"schema": {}}, PlanError, "process declares no columns"),
    ],
)
def test_declarations_are_checked_when_the_graph_is_built(
    options: dict[str, Any], error: type[Exception], said: str
) -> None:
    defaults: dict[str, Any] = {"keys": ("k",), "function": wrong(None), "schema": {"k": pa.string()}}
    with pytest.raises(error) as caught:
        Process(**{**defaults, **options}).output_schema([EVENTS])
    assert said in str(caught.value)


def test_the_end_of_the_input_does_not_wait_for_processing_timers() -> None:
    class Later(wb.functions.ProcessFunction):
        def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            ctx.register_processing_timer(ctx.processing_time + 3_600_000_000)

        def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
            return {"key": ctx.key}

    stream = wb.Stream.from_table(pa.table({"key": [1, 2]})).key_by("key").process(Later(), {"key": pa.int64()})
    job = stream.sink_to(wb.TableSink("out")).run("later")
    assert (job.wait("30s"), len(job.table())) == ("FINISHED", 0)
