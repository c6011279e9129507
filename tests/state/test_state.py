"""Typed keyed state: each kind compared with a model, in memory and on disk, with times to live and snapshots."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.clock import VirtualClock
from workbench.durations import MAX_TIME
from workbench.elements import Records
from workbench.errors import CheckpointError, SettingError
from workbench.operators.contract.base import Operator, OperatorContext, Snapshot
from workbench.operators.process.process import Process
from workbench.runtime.storage.encoding import decode, encode
from workbench.state import keyed_states, states_on_disk
from workbench.state.expiring import ExpiringList, ExpiringMap, Moment
from workbench.state.key_groups import KeyPartitioner
from workbench.state.values import UnfitError, to_array

EVENTS = pa.schema({"k": pa.int64(), "n": pa.int64()})
BACKENDS = ["memory", "disk"]
TTL_US = 10


class Collected:
    """An output that keeps rows."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def emit(self, records: Records) -> None:
        self.rows += records.batch.to_pylist()

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few keys are many: state is packed, swept and written to disk all the time."""
    monkeypatch.setattr(keyed_states, "_FEW", 4)
    monkeypatch.setattr(keyed_states, "_SWEPT", 2)
    monkeypatch.setattr(states_on_disk, "RESIDENT_MAX", 3)


def events(rows: Sequence[tuple[int | None, int]]) -> Records:
    columns = [pa.array([row[at] for row in rows], pa.int64()) for at in (0, 1)]
    return Records(pa.RecordBatch.from_arrays(columns, schema=EVENTS), np.zeros(len(rows), np.int64))


def opened(spec: Process, clock: VirtualClock, subtask: int = 0, parallelism: int = 1) -> Operator:
    operator = spec.create([EVENTS])
    operator.open(OperatorContext(subtask=subtask, parallelism=parallelism, clock=clock))
    return operator


def rescaled(spec: Process, operators: Sequence[Operator], clock: VirtualClock, parallelism: int) -> list[Operator]:
    """Other subtasks with the state of these, through the bytes of a checkpoint."""
    snapshots: list[Snapshot] = [decode(encode({"p": o.snapshot(1)}).join(), "file")["p"] for o in operators]
    for operator in operators:
        operator.close()
    fresh = [opened(spec, clock, at, parallelism) for at in range(parallelism)]
    for operator in fresh:
        operator.restore(snapshots)
    return fresh


def rows_of(operator: Operator) -> int:
    """How many keys a checkpoint of this subtask has."""
    states: Any = operator.snapshot(1)["states"]
    return int((states().read_all() if callable(states) else states).num_rows)


def handle(operators: Sequence[Operator], rows: Sequence[tuple[int | None, int]]) -> list[dict[str, Any]]:
    out = Collected()
    parts = KeyPartitioner(["k"], EVENTS, len(operators)).split(events(rows))
    for operator, part in zip(operators, parts, strict=True):
        if part is not None:
            operator.process(part, 0, out)
    return out.rows


# --- all kinds, without and with a time to live


def kinds(ttl: str | None) -> dict[str, Any]:
    return {
        "last": wb.state.ValueState(pa.int64(), default=-1, ttl=ttl),
        "items": wb.state.ListState(pa.int64(), ttl=ttl),
        "seen": wb.state.MapState(pa.int64(), pa.string(), ttl=ttl),
        "highest": wb.state.ReducingState(pa.int64(), max, ttl=ttl),
        "mean": wb.state.AggregatingState(
            pa.list_(pa.float64()),
            create=lambda: [0.0, 0.0],
            add=lambda a, x: [a[0] + 1, a[1] + x],
            result=lambda a: a[1] / a[0],
            ttl=ttl,
        ),
    }


SHOWN = {
    "k": pa.int64(),
    "last": pa.int64(),
    "items": pa.list_(pa.int64()),
    "seen": pa.map_(pa.int64(), pa.string()),
    "highest": pa.int64(),
    "mean": pa.float64(),
}


def everything(record: dict[str, Any], state: wb.state.State) -> dict[str, Any]:
    n = record["n"]
    if n == 99:
        state.clear()
    elif n == 98:
        state.last = -1
        state.items = []
        state.seen = {}
        state.highest.clear()
    else:
        state.last = n
        state.items.append(n)
        state.seen[n % 3] = str(n)
        state.highest.add(n)
        state.mean.add(n)
    return {
        "k": record["k"],
        "last": state.last,
        "items": list(state.items),
        "seen": dict(state.seen),
        "highest": state.highest.get(),
        "mean": state.mean.get(),
    }


class Model:
    """The same by hand: all writes of a key with their times, read with the time to live applied."""

    def __init__(self, ttl_us: int) -> None:
        self.ttl_us = ttl_us
        self.writes: list[tuple[int, int]] = []
        self.since = {"last": 0, "items": 0, "seen": 0, "highest": 0, "mean": 0}  # index of the first write that counts
        self.last_us: int | None = None

    def row(self, k: int | None, n: int, now: int) -> dict[str, Any]:
        if n == 99:
            self.since = dict.fromkeys(self.since, len(self.writes))
        elif n == 98:
            self.since |= dict.fromkeys(("last", "items", "seen", "highest"), len(self.writes))
        else:
            self.writes.append((n, now))
        fresh = {name: self.writes[begin:] for name, begin in self.since.items()}
        alive = {name: [w for w in writes if now - w[1] < self.ttl_us] for name, writes in fresh.items()}
        seen: dict[int, tuple[str, int]] = {}
        for value, written in fresh["seen"]:
            seen[value % 3] = (str(value), written)
        highest = self.folded(fresh["highest"], now)
        mean = self.folded(fresh["mean"], now)
        return {
            "k": k,
            "last": alive["last"][-1][0] if alive["last"] else -1,
            "items": [value for value, _ in alive["items"]],
            "seen": {key: value for key, (value, written) in sorted(seen.items()) if now - written < self.ttl_us},
            "highest": max(highest, default=None),
            "mean": sum(mean) / len(mean) if mean else None,
        }

    def folded(self, writes: list[tuple[int, int]], now: int) -> list[int]:
        """Values of the last run of writes that were never `ttl_us` apart, if it is not over."""
        run: list[int] = []
        before: int | None = None
        for value, written in writes:
            if before is not None and written - before >= self.ttl_us:
                run = []
            run.append(value)
            before = written
        return run if before is not None and now - before < self.ttl_us else []


STEPS = st.lists(
    st.one_of(
        st.lists(
            st.tuples(st.one_of(st.none(), st.integers(0, 6)), st.sampled_from([1, 2, 3, 5, 8, 98, 99])), max_size=9
        ),
        st.integers(1, 15).map(lambda us: ("pass", us)),
        st.sampled_from([1, 2, 3]).map(lambda p: ("rescale", p)),
    ),
    max_size=14,
)


@pytest.mark.parametrize("ttl", [None, f"{TTL_US}us"])
@settings(max_examples=60)
@given(steps=STEPS)
def test_every_kind_of_state_against_a_naive_model(ttl: str | None, steps: list[Any]) -> None:
    against_a_naive_model("memory", ttl, steps)


@pytest.mark.parametrize("ttl", [None, f"{TTL_US}us"])
@settings(max_examples=10)  # to open RocksDB takes its time
@given(steps=STEPS)
def test_every_kind_of_state_on_disk_against_a_naive_model(ttl: str | None, steps: list[Any]) -> None:
    against_a_naive_model("disk", ttl, steps)


def against_a_naive_model(backend: Any, ttl: str | None, steps: list[Any]) -> None:
    spec = Process(("k",), everything, SHOWN, kinds(ttl), state_backend=backend)
    clock = VirtualClock(1_000)
    operators: list[Operator] = [opened(spec, clock)]
    models: dict[int | None, Model] = {}
    for step in steps:
        if isinstance(step, tuple) and step[0] == "pass":
            clock.advance_to(clock.now_us() + step[1])
        elif isinstance(step, tuple):
            operators = rescaled(spec, operators, clock, step[1])
        else:
            wanted = [
                models.setdefault(k, Model(MAX_TIME if ttl is None else TTL_US)).row(k, n, clock.now_us())
                for k, n in step
            ]
            got = [{**row, "seen": dict(sorted(row["seen"]))} for row in handle(operators, step)]
            assert sorted(map(repr, got)) == sorted(map(repr, wanted))
    known = [operator.query_keys(100) for operator in operators]
    assert [len(keys) for _, keys in known] == [count for count, _ in known]
    for k, model in models.items():
        found = [state for operator in operators if (state := operator.query({"k": k})) is not None]
        row = model.row(k, 98, clock.now_us()) if not found else None
        if row is not None:  # nothing is held: not even what 98 leaves
            assert row["mean"] is None
        elif found[0]["items"]:
            assert found[0]["last"] == found[0]["items"][-1]
        assert len(found) <= 1
    for operator in operators:
        operator.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_cleared_and_expired_keys_take_no_room(backend: Any) -> None:
    def put(record: dict[str, Any], state: wb.state.State) -> None:
        if record["n"] < 0:
            state.clear()
        else:
            state.last = record["n"]

    spec = Process(
        ("k",), put, {"n": pa.int64()}, {"last": wb.state.ValueState(pa.int64(), ttl="10us")}, state_backend=backend
    )
    clock = VirtualClock(100)
    (operator,) = operators = [opened(spec, clock)]
    handle(operators, [(k, k) for k in range(40)])
    assert rows_of(operator) == 40
    handle(operators, [(k, -1) for k in range(10)])
    assert rows_of(operator) == 30
    assert operator.query_keys(3)[0] == 30
    clock.advance_to(111)
    assert rows_of(operator) == 0
    for k in range(100, 140):
        handle(operators, [(k, 1), (k, -1)])
    assert len(operator._states.objects) < 12  # type: ignore[attr-defined]
    operator.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_timers_find_their_keys_when_keys_are_packed_or_written_to_disk(backend: Any) -> None:
    class Alarm(wb.functions.ProcessFunction):
        note = wb.state.ValueState(pa.int64())

        def process(self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext) -> None:
            if record["n"] > 0:
                state.note = record["n"]
                ctx.register_event_timer(record["n"])

        def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
            return {"k": ctx.key, "note": state.note}

    spec = Process(("k",), Alarm(), {"k": pa.int64(), "note": pa.int64()}, state_backend=backend)
    operators = [opened(spec, VirtualClock())]
    for begin in range(0, 60, 5):
        handle(operators, [(k, k if k % 4 == 1 else 0) for k in range(begin, begin + 5)])
    operators = rescaled(spec, operators, VirtualClock(), 2)
    out = Collected()
    for operator in operators:
        operator.on_watermark(1_000, out)
        operator.close()
    assert sorted(row["k"] for row in out.rows) == list(range(1, 60, 4))
    assert all(row["note"] == row["k"] for row in out.rows)


WORDS = pa.dictionary(pa.int32(), pa.string())
TYPED = {
    pa.bool_(): True,
    pa.int16(): -7,
    pa.float32(): 0.5,
    pa.string(): "ü",
    pa.binary(): b"\x00\xff",
    pa.decimal128(10, 2): Decimal("12.34"),
    pa.date32(): dt.date(2013, 7, 1),
    pa.timestamp("us"): dt.datetime(2013, 7, 1, 6, 0, 0, 5),
    pa.timestamp("ms", "UTC"): dt.datetime(2013, 7, 1, tzinfo=dt.UTC),
    pa.duration("s"): dt.timedelta(hours=1),
    pa.list_(pa.list_(pa.date32())): [[dt.date(2013, 7, 1)], None, []],
    pa.dictionary(pa.int8(), pa.string()): "ü",
    pa.dictionary(pa.int16(), pa.int64()): 7,
    pa.list_(pa.struct({"a": WORDS, "b": pa.list_(WORDS, 2)})): [{"a": "x", "b": ["y", None]}, {"a": None, "b": None}],
    pa.map_(WORDS, pa.large_list(WORDS)): {"x": ["y", "x"]},
    pa.struct({"a": pa.int64(), "b": pa.map_(pa.string(), pa.int64())}): {"a": None, "b": {"x": 1}},
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", TYPED, ids=str)
def test_values_of_every_type_come_back_as_they_were(backend: Any, kind: pa.DataType) -> None:
    def swap(record: dict[str, Any], state: wb.state.State) -> None:
        found.append(state.value)
        state.value = TYPED[kind]

    found: list[Any] = []
    spec = Process(("k",), swap, {"n": pa.int64()}, {"value": wb.state.ValueState(kind)}, state_backend=backend)
    operators: list[Operator] = [opened(spec, VirtualClock())]
    handle(operators, [(1, 0)])
    handle(operators, [(k, 0) for k in range(2, 20)])  # on disk, key 1 has to go
    handle(operators, [(1, 0)])
    operators = rescaled(spec, operators, VirtualClock(), 1)
    handle(operators, [(1, 0)])
    assert found == [None] * 19 + [TYPED[kind]] * 2
    operators[0].close()


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (
            {"n": wb.state.ValueState(pa.string())},
            "the state 'n' of operator 'operator' was int64 and is declared as string",
        ),
        ({"m": wb.state.ValueState(pa.int64())}, "the state 'n' of operator 'operator' is no longer declared"),
        ({"n": wb.state.ValueState(pa.int64(), ttl="1h")}, "has a ttl now and had none in the checkpoint"),
    ],
)
def test_state_that_was_declared_otherwise_is_refused(now: dict[str, Any], said: str) -> None:
    def put(record: dict[str, Any], state: wb.state.State) -> None:
        state.n = 1

    before = opened(Process(("k",), put, {"n": pa.int64()}, {"n": wb.state.ValueState(pa.int64())}), VirtualClock())
    handle([before], [(1, 1)])
    after = opened(Process(("k",), put, {"n": pa.int64()}, now), VirtualClock())
    with pytest.raises(CheckpointError) as caught:
        after.restore([before.snapshot(1)])
    assert said in str(caught.value)


def test_new_state_may_be_added() -> None:
    def put(record: dict[str, Any], state: wb.state.State) -> None:
        state.n += 1

    n = wb.state.ValueState(pa.int64(), default=5)
    before = opened(Process(("k",), put, {"n": pa.int64()}, {"n": n}), VirtualClock())
    handle([before], [(1, 1)])
    after = opened(Process(("k",), put, {"n": pa.int64()}, {"n": n, "m": n}), VirtualClock())
    after.restore([before.snapshot(1)])
    assert after.query({"k": 1}) == {"n": 6, "m": 5}


def test_a_backend_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rocksdict", None)
    spec = Process(("k",), everything, SHOWN, kinds(None), state_backend="disk")
    with pytest.raises(
        wb.errors.PlanError,
        match=r"state on disk needs the package rocksdict: run 'pip install \"streaming-workbench\[rocksdb\]\"'",
    ):
        opened(spec, VirtualClock())


# --- declarations and values


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: wb.state.ValueState(int), "ValueState got the type <class 'int'>: pass an Arrow type"),
        (lambda: wb.state.MapState(pa.string(), "int64"), "MapState got the type 'int64': pass an Arrow type"),
        (
            lambda: wb.state.ValueState(pa.int64(), default="x"),
            "the default 'x' of a ValueState does not fit its type int64",
        ),
        (lambda: wb.state.ListState(pa.int64(), ttl="soon"), "ttl is 'soon': write a number with a unit"),
        (lambda: wb.state.ReducingState(pa.int64(), max, ttl="0"), "ttl is 0: it must be above zero"),
    ],
)
def test_wrong_declarations(make: Any, said: str) -> None:
    with pytest.raises(SettingError) as caught:
        make()
    assert said in str(caught.value)


@given(st.lists(st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.text(max_size=2))))
@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint64()], ids=str)
def test_integer_columns_take_whole_numbers_in_range_and_nothing_else(kind: pa.DataType, values: list[Any]) -> None:
    low, high = (0, 2**64 - 1) if kind == pa.uint64() else (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1)

    def fits(value: Any) -> bool:
        if value is None:
            return True
        return isinstance(value, int | float) and value == value // 1 and low <= value <= high

    bad = next((at for at, value in enumerate(values) if not fits(value)), None)
    if bad is None:
        assert to_array(values, kind).to_pylist() == [None if value is None else int(value) for value in values]
    else:
        with pytest.raises(UnfitError) as caught:
            to_array(values, kind)
        assert repr(caught.value.value) == repr(values[bad])
        assert caught.value.at == bad


def test_expiring_lists_and_maps_are_like_lists_and_dicts() -> None:
    moment = Moment()
    items, seen = ExpiringList(moment, 10), ExpiringMap(moment, 10)
    items.extend([1, 2, 3])
    seen.update(a=1, b=2)
    moment.us = 6
    items[1] = 5
    items.insert(0, 9)
    seen["a"] = 7
    assert (items, items[1:], len(items), 3 in items) == ([9, 1, 5, 3], [1, 5, 3], 4, True)
    assert (seen, repr(seen), seen.get("c")) == ({"a": 7, "b": 2}, "{'a': 7, 'b': 2}", None)
    moment.us = 10
    assert (list(items), repr(items), dict(seen)) == ([9, 5], "[9, 5]", {"a": 7})
    items[0:1] = [4, 4]
    del items[2]
    del seen["a"]
    assert (items, len(seen)) == ([4, 4], 0)
    moment.us = 20
    assert not items
