"""The plan: uids, chaining, exchanges, parallelism, slots, the columns that are sent, and the layout of the drawing."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import col
from workbench.plan import PhysicalGraph, build_physical_graph

TABLE = pa.table({"t": pa.array([1], pa.int64()), "k": ["a"], "v": [1.5], "unread": ["x"]})


def source() -> wb.Stream:
    return wb.Stream.from_table(TABLE, event_time="t")


def plan(pipeline: wb.types.Pipeline, parallelism: int = 2) -> PhysicalGraph:
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
    with pytest.raises(wb.errors.PlanError, match="two operators have the uid 'mine'"):
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
    pipeline = windows().with_parallelism(3).sink_to(wb.TableSink("out"))
    with pytest.raises(
        wb.errors.PlanError, match="parallelism is 129: it must be between 1 and 128, the job's max_parall"
    ):
        pipeline.explain(129, max_parallelism=128)
    with pytest.raises(
        wb.errors.PlanError, match="the parallelism of 'aggregate' is 3: it must be between 1 and 2, the job's"
    ):
        pipeline.explain(2, max_parallelism=2)
    with pytest.raises(
        wb.errors.PlanError, match="parallelism is 32769: it must be between 1 and 32768, which no job ex"
    ):
        pipeline.explain(32_769)
    with pytest.raises(wb.errors.SettingError, match="max_parallelism is 32769: there are at most 32768 key groups"):
        pipeline.explain(2, max_parallelism=32_769)


def test_the_widest_operator_decides_on_the_number_of_key_groups() -> None:
    pipeline = windows().with_parallelism(86).rebalance().sink_to(wb.TableSink("out"))
    assert [plan(pipeline, width).max_parallelism for width in (1, 86, 170, 171)] == [256, 256, 256, 256]
    assert plan(windows().sink_to(wb.TableSink("out")), 85).max_parallelism == 128
    assert "granted by the receivers, 256 key groups\n" in repr(pipeline.explain(86))


def test_more_channels_than_fit_into_a_process_are_refused() -> None:
    pipeline = windows().sink_to(wb.TableSink("out"))
    assert plan(pipeline, 1_000).channels == 1_000_000
    with pytest.raises(
        wb.errors.PlanError, match="the exchanges have 1,002,001 channels, more than the maximum of 1,000,000: lower"
    ):
        plan(pipeline, 1_001)
    assert pipeline.explain(1_000).channels == 1_000_000


# exchanges and channels --------------------------------------------------------------------------------------------


def between(senders: int, receivers: int, exchange: str) -> list[tuple[int, int]]:
    """The channels from a filter of one width to a filter of another."""
    upstream = source().rebalance().filter("v > 1").with_parallelism(senders)
    spread = upstream.rebalance(local=True) if exchange == "local rebalance" else getattr(upstream, exchange)()
    stream = spread.filter("v > 2").with_parallelism(receivers)
    graph = plan(stream.rebalance().sink_to(wb.TableSink("out")), 5)
    return graph.edges[1].pairs


def test_four_senders_and_four_receivers_have_sixteen_channels() -> None:
    """F2-3: the number of channels, and so of buffers, grows with the square of the parallelism."""
    pipeline = source().rebalance().filter("v > 1").sink_to(wb.TableSink("out"))
    assert plan(pipeline, 4).channels == 16
    assert [plan(pipeline, width).channels for width in (1, 2, 3, 8, 128)] == [1, 4, 9, 64, 16_384]
    view = pipeline.explain(4)
    assert view.channels == 16
    assert view.buffers >= 16
    assert view.edges == [
        {"source": "table", "target": "filter", "exchange": "rebalance", "channels": 16, "buffers": 32}
    ]


def test_a_local_rebalance_connects_local_groups_only() -> None:
    assert between(2, 4, "local rebalance") == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert between(4, 2, "local rebalance") == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert between(2, 3, "local rebalance") == [(0, 0), (0, 1), (1, 2)]
    assert between(3, 2, "local rebalance") == [(0, 0), (1, 0), (2, 1)]
    assert between(3, 3, "local rebalance") == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("exchange", ["rebalance", "shuffle", "broadcast"])
def test_other_exchanges_connect_everybody(exchange: str) -> None:
    assert between(2, 3, exchange) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def test_what_a_partitioner_looks_at_travels() -> None:
    stream = source().partition_by("length(unread)").map_batches(lambda batch: batch).select("k")
    [edge] = plan(stream.sink_to(wb.TableSink("out"))).edges
    assert edge.exchange == "custom"
    assert edge.partitioner is not None
    assert edge.partitioner.describe() == "LENGTH(unread)"
    assert "unread" in edge.schema.names


# slots -------------------------------------------------------------------------------------------------------------


def test_operators_of_parallelism_two_and_four_in_two_taskmanagers_of_two_slots() -> None:
    """F2-2: A, B and D have four subtasks and fill the slots; C and E have two, and share the TaskManagers evenly."""
    a = source().uid("A").with_parallelism(4)
    b = a.rebalance().filter("v > 1").uid("B").with_parallelism(4)
    c = source().uid("C").with_parallelism(2)
    d = b.union(c).uid("D").with_parallelism(4)
    e = d.rebalance().filter("v > 1").uid("E").with_parallelism(2)
    graph = plan(e.sink_to(wb.TableSink("out")), 2)
    assert graph.placement == {
        "tm-0/slot-0": ["A[0]", "B[0]", "C[0]", "D[0]"],
        "tm-0/slot-1": ["A[1]", "B[1]", "D[1]", "E[0]"],
        "tm-1/slot-0": ["A[2]", "B[2]", "C[1]", "D[2]"],
        "tm-1/slot-1": ["A[3]", "B[3]", "D[3]", "E[1]"],
    }


def test_slots_of_a_taskmanager_are_chosen_when_the_job_is_run() -> None:
    view = source().rebalance().filter("v > 1").sink_to(wb.TableSink("out")).explain(4, slots_per_taskmanager=3)
    assert list(view.slots) == ["tm-0/slot-0", "tm-0/slot-1", "tm-0/slot-2", "tm-1/slot-0"]
    assert view.slots["tm-1/slot-0"] == ["table[3]", "filter[3]"]
    with pytest.raises(wb.errors.SettingError, match="slots_per_taskmanager is 0: it must be above zero"):
        source().sink_to(wb.TableSink("out")).explain(slots_per_taskmanager=0)


def test_slot_sharing_groups_have_slots_of_their_own() -> None:
    heavy = source().filter("v > 1").slot_sharing_group("heavy").filter("v > 2")
    graph = plan(heavy.sink_to(wb.TableSink("out")))
    assert [vertex.uids for vertex in graph.vertices] == [["table"], ["filter", "filter-2", "out"]]
    assert edges(graph) == [("table", "filter", "forward")]
    assert graph.slots == 4
    assert graph.placement == {
        "tm-0/slot-0": ["table[0]"],
        "tm-0/slot-1": ["table[1]"],
        "tm-1/slot-0": ["filter[0]"],
        "tm-1/slot-1": ["filter[1]"],
    }


def test_a_group_is_inherited_from_inputs_that_agree_on_it() -> None:
    left, right = source().slot_sharing_group("a"), source().slot_sharing_group("a")
    agreeing = plan(left.union(right).sink_to(wb.TableSink("out")))
    assert {vertex.name: vertex.slot_sharing_group for vertex in agreeing.vertices}["union"] == "a"
    other = source().slot_sharing_group("b")
    differing = plan(left.union(other).sink_to(wb.TableSink("out")))
    assert {vertex.name: vertex.slot_sharing_group for vertex in differing.vertices}["union"] == "default"
    assert differing.slots == 6


@given(st.lists(st.tuples(st.integers(1, 6), st.sampled_from("abc")), min_size=1, max_size=8))
def test_no_slot_holds_two_subtasks_of_one_operator_or_two_groups(widths: list[tuple[int, str]]) -> None:
    stream = source()
    for width, group in widths:
        stream = stream.rebalance().filter("v > 1").with_parallelism(width).slot_sharing_group(group)
    graph = plan(stream.sink_to(wb.TableSink("out")), 1)
    groups: dict[int, set[str]] = {}
    for vertex in graph.vertices:
        assert len(set(vertex.slots)) == vertex.parallelism == len(vertex.slots)
        for slot in vertex.slots:
            groups.setdefault(slot, set()).add(vertex.slot_sharing_group)
    assert sorted(groups) == list(range(graph.slots))
    assert all(len(found) == 1 for found in groups.values())


def test_a_plan_tells_itself_in_words() -> None:
    view = windows().sink_to(wb.TableSink("out")).explain(2)
    assert repr(view).splitlines() == [
        "4 tasks in 2 slots of 1 TaskManager, 4 channels, 8 buffers granted by the receivers, 128 key groups",
        "  table x 2: table -> filter",
        "  aggregate x 2: aggregate -> out",
        "  table -> aggregate: hash by k, 2 x 2 subtasks, 4 channels",
        "  tm-0/slot-0: table[0], aggregate[0]",
        "  tm-0/slot-1: table[1], aggregate[1]",
    ]
    assert view.vertices[1] == {
        "vertex": "aggregate",
        "operators": "aggregate, out",
        "parallelism": 2,
        "slot_sharing_group": "default",
        "slots": "tm-0/slot-0, tm-0/slot-1",
    }
    assert view.svg.startswith("<svg")


@pytest.mark.parametrize("name", ["", None, 3])
def test_operators_and_groups_have_names(name: object) -> None:
    stream = wb.Stream.from_table(pa.table({"n": [1]}))
    with pytest.raises(wb.errors.SettingError, match="uid is "):
        stream.uid(name)  # type: ignore[arg-type]
    with pytest.raises(wb.errors.SettingError, match="slot_sharing_group is "):
        stream.slot_sharing_group(name)  # type: ignore[arg-type]
