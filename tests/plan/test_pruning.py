"""Pruned and unpruned pipelines give the same rows, and user functions and sinks receive the same columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.durations import MAX_TIME
from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext
from workbench.plan import LogicalGraph, Node, build_physical_graph
from workbench.plan.pruning import pruned, travelling

SECOND = 1_000_000
DICTIONARY = pa.dictionary(pa.int8(), pa.string())
TABLE = pa.table(
    {
        "a": pa.array([5, 3, 8, 1, 9, 3, 7, 4, 2, 6], pa.int64()),
        "b": pa.array([1, None, 3, 4, None, 6, 7, 8, 9, 0], pa.int32()),
        "s": ["x", "y", None, "xy", "z", "x", "yy", "x", "", "z"],
        "d": pa.array(["p", "q", "p", None, "q", "r", "p", "q", "p", "r"]).dictionary_encode().cast(DICTIONARY),
        "f": pa.array([True, False, None, True, True, False, False, True, None, True]),
        "t": pa.array([int(n * SECOND / 2) for n in (0, 1, 2, 9, 4, 3, 20, 5, 21, 30)], pa.int64()),
    }
)


def source() -> wb.Stream:
    return wb.Stream.from_table(TABLE, event_time="t")


# --- a runtime that is as small as it can be ------------------------------------------------------------------------


@dataclass
class Run:
    """What a pipeline gave: the rows of each sink with their event times, and what each link carried."""

    rows: dict[str, list[Any]] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)


def run(graph: LogicalGraph, *, exchanges: Callable[[Node, int], pa.Schema]) -> Run:
    """Let all records pass, one operator after the other, with the columns that `exchanges` says on each input."""
    ran = Run()
    carried: dict[tuple[int, str | None], list[Records]] = {}
    for node in graph.nodes:
        spec: Any = node.spec
        uid = graph.uids[node]
        if node.role == "source":
            whole = TABLE.combine_chunks().to_batches()[0]
            times = whole.column("t").to_numpy()
            parts = [(0, 3), (3, 1), (4, 6)]
            carried[id(node), None] = [Records(whole.slice(at, n), times[at : at + n]) for at, n in parts]
            continue
        schemas = [exchanges(node, port) for port in range(len(node.inputs))]
        ran.widths[uid] = sum(len(schema) for schema in schemas)
        collected = Collected()
        operator: Operator = spec.create(schemas[0] if node.role == "sink" else schemas)
        if node.role == "sink":
            operator = Keep(ran.rows.setdefault(uid, []))
        operator.open(OperatorContext(uid=uid))
        for port, item in enumerate(node.inputs):
            for records in carried.get((id(item.node), item.tag), []):
                kept = records.batch.select(schemas[port].names)
                operator.process(Records(kept, records.timestamps), port, collected)
                operator.on_watermark(5 * SECOND if port == len(node.inputs) - 1 else 0, collected)
        operator.on_watermark(MAX_TIME, collected)
        for tag, parts_out in collected.parts.items():
            schema = node.schema if tag is None else node.side_schemas[tag]
            for records in parts_out:
                records.batch.validate(full=True)
                assert tag is not None or records.batch.schema.equals(schema)
            carried[id(node), tag] = parts_out
    return ran


class Collected:
    """An output that keeps what is emitted, by tag."""

    def __init__(self) -> None:
        self.parts: dict[str | None, list[Records]] = {}

    def emit(self, records: Records) -> None:
        if len(records):
            self.parts.setdefault(None, []).append(records)

    def emit_side(self, tag: str, records: Records) -> None:
        if len(records):
            self.parts.setdefault(tag, []).append(records)


class Keep(Operator):
    """A sink's logic that keeps rows."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def process(self, records: Records, port: int, out: object) -> None:
        times = [None] * len(records) if records.timestamps is None else records.timestamps.tolist()
        self._rows += zip(records.batch.to_pylist(), times, strict=True)
        self._rows.append(records.batch.schema.names)


def run_both(pipeline: Pipeline) -> tuple[Run, Run, LogicalGraph]:
    """The pipeline as it was written, and pruned with exchanges that carry only what is read."""
    plain = pipeline.logical_graph()
    narrow = pruned(plain)
    as_written = run(plain, exchanges=lambda node, port: node.inputs[port].schema)
    assert [narrow.uids[node] for node in narrow.nodes] == [plain.uids[node] for node in plain.nodes]

    def reads(node: Node, port: int) -> pa.Schema:
        return travelling(narrow, node.inputs[port], node)  # parallelism may put an exchange anywhere

    return as_written, run(narrow, exchanges=reads), narrow


def check(pipeline: Pipeline) -> LogicalGraph:
    """Both give the same rows; what is returned is the pruned graph."""
    as_written, narrow, graph = run_both(pipeline)
    assert narrow.rows == as_written.rows
    assert all(narrow.widths[uid] <= width for uid, width in as_written.widths.items())
    for node, uid in graph.uids.items():
        written = next(other for other, own in pipeline.logical_graph().uids.items() if own == uid)
        assert node.role == "source" or node.spec.describe() == written.spec.describe()
    return graph


def given_by(graph: LogicalGraph, uid: str) -> list[str]:
    """The columns of an operator's output."""
    names: list[str] = next(node for node, own in graph.uids.items() if own == uid).schema.names
    return names


# --- by hand --------------------------------------------------------------------------------------------------------


def test_a_filter_gives_only_what_is_read_behind_it() -> None:
    counts = source().filter("d = 'p'").select(c="a DIV 2", unused="s").key_by("c").aggregate(n=wb.count())
    graph = check(counts.sink_to(wb.TableSink("out")))
    assert given_by(graph, "filter") == ["a"]
    assert given_by(graph, "select") == ["c"]
    assert given_by(graph, "aggregate") == ["c", "n"]


def test_the_condition_of_a_second_filter_is_read() -> None:
    stream = source().filter("a > 1").filter("b > 2 AND f").select("s")
    graph = check(stream.sink_to(wb.TableSink("out")))
    assert given_by(graph, "filter") == ["b", "s", "f"]
    assert given_by(graph, "filter-2") == ["s"]


def test_a_replaced_column_keeps_its_place() -> None:
    stream = source().select("a", "b").rebalance().with_columns(a="b + 1", c="a * 2")
    graph = check(stream.sink_to(wb.TableSink("out")))
    assert given_by(graph, "with_columns") == ["a", "b", "c"]
    replaced = source().select("a", "b").rebalance().with_columns(a="b + 1")
    as_written, narrow, _ = run_both(replaced.sink_to(wb.TableSink("out")))
    assert narrow.rows == as_written.rows
    assert narrow.rows["out"][0][0] == {"a": 2, "b": 1}
    assert list(narrow.rows["out"][0][0]) == ["a", "b"]
    assert narrow.widths["with_columns"] == 1  # the old `a` need not travel


def test_columns_that_are_added_and_not_read_are_not_computed() -> None:
    stream = source().with_columns(x="a + 1", y="length(s)").with_columns(z="x * 2").select("z")
    graph = check(stream.sink_to(wb.TableSink("out")))
    assert given_by(graph, "with_columns") == ["x"]
    assert given_by(graph, "with_columns-2") == ["z"]


def test_each_reader_of_a_stream_gets_its_columns() -> None:
    stream = source().filter("f")
    graph = check(
        stream.select("a").sink_to(wb.TableSink("one")) + stream.select(y="b + 1").sink_to(wb.TableSink("two"))
    )
    assert given_by(graph, "filter") == ["a", "b"]


def test_a_union_passes_the_same_columns_of_all_its_inputs() -> None:
    left, right = source().filter("a > 3"), source()
    graph = check(left.union(right).select("b", "t").sink_to(wb.TableSink("out")))
    assert given_by(graph, "filter") == ["b", "t"]
    assert given_by(graph, "union") == ["b", "t"]
    assert given_by(graph, "table-2") == TABLE.column_names  # a source gives what it has


def test_a_count_of_rows_needs_one_column_and_takes_the_narrowest() -> None:
    stream = source().filter("a > 3").window(wb.tumbling("1s")).aggregate(n=wb.count())
    graph = check(stream.sink_to(wb.TableSink("out")))
    assert given_by(graph, "filter") == ["f"]


def test_sinks_see_every_column_in_its_place() -> None:
    graph = check(source().filter("a > 3").with_columns(b="a", z="s").sink_to(wb.TableSink("out")))
    assert given_by(graph, "filter") == ["a", "s", "d", "f", "t"]  # the old `b` is not read
    assert given_by(graph, "with_columns") == ["a", "b", "s", "d", "f", "t", "z"]


def test_side_outputs_are_passed_on_whole() -> None:
    stream = source().filter("a > 0").key_by("d").window(wb.tumbling("1s")).aggregate(n=wb.count())
    alone = check(stream.sink_to(wb.TableSink("out")))
    assert given_by(alone, "filter") == ["d"]
    both = stream.sink_to(wb.TableSink("out")) + stream.side_output("late").sink_to(wb.TableSink("late"))
    as_written, narrow, graph = run_both(both)
    assert given_by(graph, "filter") == TABLE.column_names
    assert narrow.rows == as_written.rows
    late = [row[0] for row in narrow.rows["late"] if isinstance(row, tuple)]
    assert sorted(row["t"] for row in late) == [int(1.5 * SECOND), 2 * SECOND, int(2.5 * SECOND), int(4.5 * SECOND)]


def test_a_user_function_sees_what_it_saw() -> None:
    seen: list[dict[str, Any]] = []

    def look(record: dict[str, Any]) -> dict[str, Any]:
        seen.append(record)
        return {"a": record["a"]}

    def batches(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.schema.names == TABLE.column_names
        return batch.select(["a", "b"])

    graph = check(source().filter("b > 0").map(look, {"a": pa.int64()}).select("a").sink_to(wb.TableSink("out")))
    assert given_by(graph, "filter") == TABLE.column_names
    rows = TABLE.filter(pa.array([bool(b) for b in TABLE.column("b").to_pylist()])).to_pylist()
    assert seen == rows + rows
    pair = {"a": pa.int64(), "b": pa.int32()}
    graph = check(source().filter("f").map_batches(batches, pair).select("b").sink_to(wb.TableSink("out")))
    assert given_by(graph, "map_batches") == ["a", "b"]  # what a function gives is left as it is
    each = source().filter("f").flat_map(lambda record: [record, record], TABLE.schema).select("b")
    assert given_by(check(each.sink_to(wb.TableSink("out"))), "flat_map") == TABLE.column_names


def test_a_partitioner_sees_every_column() -> None:
    stream = source().filter("a > 1").partition_by("b % 2").select("f")
    plain = stream.sink_to(wb.TableSink("out")).logical_graph()
    graph = pruned(plain)
    assert given_by(graph, "filter") == TABLE.column_names


# --- at random ------------------------------------------------------------------------------------------------------


def conditions(schema: pa.Schema) -> list[str]:
    found = []
    for item in schema:
        if pa.types.is_integer(item.type):
            found += [f"{item.name} > 3", f"{item.name} IS NULL", f"{item.name} % 2 = 0"]
        elif pa.types.is_boolean(item.type):
            found += [item.name, f"NOT {item.name}"]
        elif pa.types.is_timestamp(item.type):
            found.append(f"{item.name} IS NOT NULL")
        else:
            found += [f"{item.name} = 'p'", f"length({item.name}) = 1", f"{item.name} RLIKE 'x.?'"]
    return found


def values(schema: pa.Schema) -> list[str]:
    found = [f"{item.name} + 1" for item in schema if pa.types.is_integer(item.type)]
    return found + conditions(schema) + list(schema.names) + ["1", "'q'"]


@st.composite
def streams(draw: st.DrawFn) -> tuple[wb.Stream, list[wb.Stream]]:
    """A stream of up to six operators, and streams on the way to it which end in sinks of their own."""
    stream, ended = source(), []
    for _ in range(draw(st.integers(1, 6))):
        schema, kind = stream.schema, draw(st.integers(0, 11))
        if kind <= 2:
            stream = stream.filter(draw(st.sampled_from(conditions(schema))))
        elif kind <= 4:
            names = draw(st.lists(st.sampled_from([*schema.names, "x", "y"]), min_size=1, max_size=2, unique=True))
            stream = stream.with_columns(**{name: wb.expr(draw(st.sampled_from(values(schema)))) for name in names})
        elif kind == 5:
            names = draw(st.lists(st.sampled_from(schema.names), min_size=1, unique=True))
            computed = {name: wb.expr(draw(st.sampled_from(values(schema)))) for name in ("new",) if name not in names}
            stream = stream.select(*names, **computed)
        elif kind == 6:
            other = stream.filter(draw(st.sampled_from(conditions(schema))))
            stream = draw(st.sampled_from([stream.union(other), other.union(stream, other)]))
        elif kind == 7:
            stream = stream.map(lambda record: record)
        elif kind == 8:
            stream = stream.map_batches(lambda batch: batch)
        elif kind == 9:
            stream = draw(st.sampled_from([stream.rebalance(), stream.broadcast(), stream.rebalance(local=True)]))
        elif kind == 10:
            keys = draw(st.lists(st.sampled_from(schema.names), max_size=2, unique=True))
            measured = [name for name in schema.names if pa.types.is_integer(schema.field(name).type)]
            totals = {f"sum_{name}": wb.sum(name) for name in measured[:1] if f"sum_{name}" not in keys}
            if keys and "n" not in keys:
                stream = stream.key_by(*keys).aggregate(n=wb.count(), **totals)
        elif not {"window_start", "window_end", "m"} & set(schema.names):
            windows = stream.key_by(schema.names[0]).window(wb.tumbling("1s")).aggregate(m=wb.count())
            if draw(st.booleans()):
                ended.append(windows.side_output("late"))
            stream = windows.select(draw(st.sampled_from(windows.columns[:-1])), "m")
        if draw(st.integers(0, 5)) == 0:
            ended.append(stream)
    return stream, ended


@settings(max_examples=100)
@given(drawn=streams())
def test_random_pipelines_give_the_same_rows(drawn: tuple[wb.Stream, list[wb.Stream]]) -> None:
    stream, ended = drawn
    pipeline = stream.sink_to(wb.TableSink("out"))
    for number, other in enumerate(ended):
        pipeline += other.sink_to(wb.TableSink(f"out-{number}"))
    check(pipeline)


# --- in the real runtime --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_job_of_narrowed_operators_gives_the_rows_of_the_table(parallelism: int) -> None:
    left = source().filter("d <> 'q'").with_columns(h="a DIV 2", unread="concat(s, '!')")
    right = source().rebalance().filter("b >= 0 AND f").with_columns(h="a", unread="s")
    both = left.union(right).select("h", "b", "s").filter("s <> 'z'").key_by("h").aggregate(n=wb.count(), m=wb.max("b"))
    job = both.sink_to(wb.TableSink("out")).run("pruned", parallelism=parallelism)
    job.wait("60s")
    rows = TABLE.to_pylist()
    chosen = [(row["a"] // 2, row["b"], row["s"]) for row in rows if row["d"] is not None and row["d"] != "q"]
    chosen += [(row["a"], row["b"], row["s"]) for row in rows if row["b"] is not None and row["f"]]
    expected: dict[int, tuple[int, int | None]] = {}
    for key, value, text in chosen:
        if text is not None and text != "z":
            n, largest = expected.get(key, (0, None))
            both_values = [item for item in (largest, value) if item is not None]
            expected[key] = (n + 1, max(both_values, default=None))
    got: dict[int, tuple[int, int | None]] = {}
    for row in job.table("out").to_pylist():
        if row["h"] not in got or row["n"] > got[row["h"]][0]:
            got[row["h"]] = (row["n"], row["m"])
    assert got == expected


def test_a_column_that_is_replaced_behind_an_exchange_keeps_its_place() -> None:
    table = pa.table({"n": [1, 2, 3], "k": ["x", "x", "x"], "s": ["a", "b", "c"]})
    replaced = wb.Stream.from_table(table).rebalance().with_columns(k="'q'")
    copied = replaced.with_columns(z="s").sink_to(wb.TableSink("out"))
    job = copied.run("replaced", parallelism=2)
    job.wait("60s")
    rows = sorted(job.table("out").to_pylist(), key=lambda row: row["n"])
    assert rows == [{**row, "k": "q", "z": row["s"]} for row in table.to_pylist()]


def test_the_plan_carries_what_a_narrowed_operator_behind_an_exchange_reads() -> None:
    stream = source().rebalance().filter("b > 1").select("a").sink_to(wb.TableSink("out"))
    graph = build_physical_graph(stream.logical_graph(), 2)
    (edge,) = graph.edges
    assert edge.schema.names == ["a", "b"]
    assert [node.schema.names for node in graph.vertices[1].nodes] == [["a"], ["a"], ["a"]]
    assert np.all([vertex.parallelism == 2 for vertex in graph.vertices])
