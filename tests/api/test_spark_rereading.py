"""Replay logs that executors read by ranges of rows: each row once, in the batches of the driver's reader."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.errors import HistoryError
from workbench.plan.physical import build_physical_graph
from workbench.spark.carried.plan import CarriedPlan
from workbench.spark.engine.reading import BEGIN, Reading
from workbench.spark.engine.rereading import Piece, can_reread, pieces, read_piece

ROWS = 20_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> ReplayLog:
    chance = Random(3)
    times = [1_600_000_000_000_000 + at for at in range(ROWS)]
    table = pa.table(
        {
            "n": pa.array(range(ROWS), pa.int64()),
            "t": pa.array([time - chance.randint(0, 500) for time in times], pa.timestamp("us", "UTC")),
            "text": ["x" * 20] * ROWS,
            "arrived": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    path = tmp_path_factory.mktemp("rereading") / "a.log"
    return write_log(table, path, event_time="t", arrival_time="arrived", channels=3, row_group_rows=3_000)


def plan_of(log: ReplayLog, **options: Any) -> CarriedPlan:
    graph = wb.Stream.replay(log, **options).sink_to(wb.DiscardSink()).logical_graph()
    return CarriedPlan(build_physical_graph(graph, 1), "job")


@pytest.mark.parametrize("batch_rows", [1_000, 9_999])
def test_executors_read_what_the_driver_would(log: ReplayLog, tmp_path: Path, batch_rows: int) -> None:
    plan = plan_of(log)
    [source] = [vertex.name for vertex in plan.sources]
    (tmp_path / "log").mkdir()
    logged = Reading(plan, tmp_path / "log", batch_rows)
    reread = Reading(plan, tmp_path / "none", batch_rows, reread=True)
    start, found = BEGIN, []
    while not start["ended"]:
        end = reread.next_offset(start)
        assert {**logged.next_offset(start), "positions": None} == {**end, "positions": None}
        before, behind = (
            {c: n for each in offset["positions"].get(source, {}).values() for c, n in each["offsets"].items()}
            for offset in (start, end)
        )
        for share in pieces(before, behind, 4):
            for piece in share:
                for batch, times in read_piece(str(log.path), log.manifest.identity, piece, ["n"]):
                    assert batch.schema.names == ["n"]
                    assert len(times) == batch.num_rows
                    found += batch.column("n").to_pylist()
        start = end
    assert sorted(found) == list(range(ROWS))
    assert not (tmp_path / "none").exists()


def test_pieces_are_all_rows_in_as_many_parts_as_asked_for() -> None:
    assert pieces({}, {"0": 10}, 3) == [[Piece(0, 0, 3)], [Piece(0, 3, 6)], [Piece(0, 6, 10)]]
    assert pieces({"0": 4}, {"0": 4, "1": 2}, 1) == [[Piece(1, 0, 2)]]
    assert pieces({}, {"0": 3, "1": 3, "2": 3}, 2) == [[Piece(0, 0, 3), Piece(2, 0, 3)], [Piece(1, 0, 3)]]
    assert pieces({"0": 4}, {"0": 4}, 2) == [[]]


def test_a_paced_replay_and_other_sources_are_read_in_the_driver(log: ReplayLog) -> None:
    def spec(stream: wb.Stream) -> object:
        return stream.sink_to(wb.DiscardSink()).logical_graph().nodes[0].spec

    assert can_reread(spec(wb.Stream.replay(log)))
    assert not can_reread(spec(wb.Stream.replay(log, speed="600x")))
    assert not can_reread(spec(wb.Stream.from_table(pa.table({"n": [1]}))))


def test_a_log_that_was_rewritten_is_rejected(log: ReplayLog) -> None:
    with pytest.raises(HistoryError, match="was rewritten while a job on Spark read it"):
        list(read_piece(str(log.path), "another", Piece(0, 0, 1), ["n"]))
