"""The plan: uids, chaining, exchanges, parallelism, slots, what travels, and the drawing layout."""

from __future__ import annotations

import pyarrow as pa
import pytest

import workbench as wb
from workbench import col
from workbench.plan import PhysicalGraph, build_physical_graph

TABLE = pa.table({"t": pa.array([1], pa.int64()), "k": ["a"], "v": [1.5], "unread": ["x"]})


def source() -> wb.Stream:
    return wb.Stream.from_table(TABLE, event_time="t")


def plan(pipeline: wb.Pipeline, parallelism: int = 2) -> PhysicalGraph:
    return build_physical_graph(pipeline.logical_graph(), parallelism)


def edges(graph: PhysicalGraph) -> list[tuple[str, str, str]]:
    return [(edge.source.name, edge.target.name, edge.exchange) for edge in graph.edges]


def windows() -> wb.Stream:
    return source().filter("v > 1").key_by("k").window(wb.tumbling("1s")).aggregate(n=wb.count(), m=wb.mean("v"))


def test_operators_are_chained_up_to_an_exchange_by_key() -> None:
    graph = plan(windows().with_columns(x=col("n") + 1).sink_to(wb.TableSink("out")))
    assert [vertex.uids for vertex in graph.vertices] == [["table", "filter"], ["aggregate", "with_columns", "out"]]
    assert edges(graph) == [("table", "aggregate", "hash")]
    assert graph.edges[0].keys == ("k",)
    assert [vertex.parallelism for vertex in graph.vertices] == [2, 2]


def test_exchanges_that_were_asked_for_cut_the_chain() -> None:
    graph = plan(source().rebalance().filter("v > 1").broadcast().filter("v > 2").sink_to(wb.TableSink("out")))
    assert edges(graph) == [("table", "filter", "rebalance"), ("filter", "filter-2", "broadcast")]
    assert graph.vertices[2].uids == ["filter-2", "out"]


def test_another_parallelism_needs_a_rebalance_and_takes_more_slots() -> None:
    graph = plan(source().filter("v > 1").with_parallelism(3).sink_to(wb.TableSink("out")))
    assert edges(graph) == [("table", "filter", "rebalance"), ("filter", "out", "rebalance")]
    assert graph.slots == 3
    assert [graph.slot_name(i) for i in range(4)] == ["tm-0/slot-0", "tm-0/slot-1", "tm-1/slot-0", "tm-1/slot-1"]


def test_a_union_takes_each_stream_on_a_port_of_its_own() -> None:
    graph = plan(source().union(source(), source().filter("v > 1")).sink_to(wb.TableSink("out")))
    assert edges(graph) == [
        ("table", "union", "forward"),
        ("table-2", "union", "forward"),
        ("table-3", "union", "forward"),
    ]
    assert [edge.port for edge in graph.edges] == [0, 1, 2]


def test_several_sinks_of_one_stream_share_its_operators() -> None:
    stream = windows()
    graph = plan(stream.sink_to(wb.TableSink("a")) + stream.sink_to(wb.TableSink("b")))
    assert [vertex.uids for vertex in graph.vertices] == [["table", "filter"], ["aggregate", "a", "b"]]


def test_only_columns_that_are_read_travel() -> None:
    graph = plan(windows().sink_to(wb.TableSink("out")))
    assert graph.edges[0].schema.names == ["k", "v"]
    rolling = source().key_by("k").aggregate(n=wb.count()).sink_to(wb.TableSink("out"))
    assert plan(rolling).edges[0].schema.names == ["k"]
    counted = source().window(wb.tumbling("1s")).aggregate(n=wb.count()).sink_to(wb.TableSink("out"))
    assert plan(counted).edges[0].schema.names == ["t"]  # a batch needs a column to have a length
    stream = windows()
    with_late = stream.sink_to(wb.TableSink("out")) + stream.side_output("late").sink_to(wb.TableSink("late"))
    assert plan(with_late).edges[0].schema.names == ["t", "k", "v", "unread"]  # late records are passed on whole


def test_uids_are_unique_and_the_users_own_come_first() -> None:
    graph = source().filter("v > 1").uid("filter-2").filter("v > 2").filter("v > 3").sink_to(wb.TableSink("out"))
    logical = graph.logical_graph()
    assert [logical.uids[node] for node in logical.nodes] == ["table", "filter-2", "filter", "filter-3", "out"]
    twice = source().filter("v > 1").uid("mine").filter("v > 2").uid("mine").sink_to(wb.TableSink("out"))
    with pytest.raises(wb.PlanError, match="two operators have the uid 'mine'"):
        twice.logical_graph()


def test_the_layout_goes_from_left_to_right_without_overlap() -> None:
    stream = windows()
    late = stream.side_output("late").rebalance()
    graph = plan(stream.rebalance().sink_to(wb.TableSink("a")) + late.sink_to(wb.TableSink("b")))
    places = {vertex.name: (vertex.x, vertex.y) for vertex in graph.vertices}
    assert places["table"] == (0.0, 0.5)
    assert places["aggregate"] == (0.5, 0.5)
    assert {places["a"], places["b"]} == {(1.0, 0.25), (1.0, 0.75)}


def test_a_parallelism_beyond_the_key_groups_is_refused() -> None:
    with pytest.raises(wb.PlanError, match="parallelism is 129: it must be between 1 and 128"):
        plan(windows().sink_to(wb.TableSink("out")), 129)
