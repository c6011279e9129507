"""The guarantee of a pipeline is that of its weakest end."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import workbench as wb
from workbench.plan.guarantee import weakest_guarantee

TABLE = wb.Stream.from_table(pa.table({"line": ["x"]}))
SOCKET = wb.Stream.from_socket("127.0.0.1", 9)


def of(pipeline: wb.types.Pipeline) -> tuple[str, str]:
    return weakest_guarantee(pipeline.logical_graph())


def test_exactly_once_from_end_to_end(tmp_path: Path) -> None:
    both = TABLE.sink_to(wb.TableSink("out")) + TABLE.sink_to(wb.ParquetSink(tmp_path))
    assert of(both) == (
        "exactly-once",
        "every source can be read again from a position, and every sink commits with the checkpoints",
    )


def test_one_sink_that_does_not_wait_is_enough() -> None:
    guarantee, reason = of(TABLE.sink_to(wb.TableSink("out")) + TABLE.sink_to(wb.PrintSink()))
    assert guarantee == "at-least-once"
    assert reason.startswith("the sink 'print' does not wait for checkpoints")


def test_a_source_that_cannot_go_back_is_weaker_still() -> None:
    guarantee, reason = of(TABLE.union(SOCKET).sink_to(wb.PrintSink()))
    assert guarantee == "at-most-once"
    assert reason.startswith("the source 'socket' cannot be read again from a position")
    hybrid = wb.Stream.hybrid(TABLE, SOCKET)
    assert of(hybrid.sink_to(wb.TableSink("out")))[0] == "at-most-once"
