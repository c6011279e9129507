"""What a feed sends between two batches of a job on Spark is not lost; without Spark."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.connectors.tables.table_source import TableSource
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext
from workbench.plan.physical import build_physical_graph
from workbench.spark import listening
from workbench.spark.carried.plan import CarriedPlan
from workbench.spark.engine.reading import BEGIN, Reading
from workbench.spark.listening import ListeningReader

COLUMNS = {"n": pa.int64()}


def test_a_connection_is_kept_while_no_batch_is_read(tmp_path: Path) -> None:
    serve = pytest.importorskip("websockets.sync.server", reason="the package websockets is not installed").serve
    between_batches = threading.Event()
    answered: list[bool] = []

    def handle(connection: Any) -> None:
        if answered:
            return  # the client has come again
        connection.send('{"n": 0}')
        between_batches.wait(60)
        answered.append(connection.ping().wait(5))
        connection.send('{"n": 1}')

    with serve(handle, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        source = wb.WebSocketSource(f"ws://127.0.0.1:{server.socket.getsockname()[1]}/", COLUMNS)
        graph = wb.Stream.from_source(source).sink_to(wb.DiscardSink()).logical_graph()
        reading = Reading(CarriedPlan(build_physical_graph(graph, 1), "job"), tmp_path, 100)
        offsets = [BEGIN]

        def reached(records: int) -> bool:
            offsets.append(reading.next_offset(offsets[-1]))
            return bool(offsets[-1].get("records") == records)

        try:
            until(lambda: reached(1))
            between_batches.set()
            until(lambda: answered)
            assert answered == [True]
            until(lambda: reached(2))
        finally:
            reading.close()
            server.shutdown()


@pytest.mark.parametrize("rows_max", [100_000, 9_000])
def test_the_position_is_behind_what_was_delivered(rows_max: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much was heard, of which a part waits."""
    monkeypatch.setattr(listening, "ROWS_MAX", rows_max)
    rows = listening._CHUNK_ROWS * 3 + 5
    source = TableSource(pa.table({"n": range(rows)}))
    reader = ListeningReader(source.create())
    reader.open(OperatorContext())
    found: list[int] = []
    while not isinstance(polled := reader.poll(10), Exhausted):
        if isinstance(polled, WaitUntil):
            continue
        assert isinstance(polled, Fetched)
        found += polled.records.batch.column("n").to_pylist()
        (again,) = readers(source, 1)
        again.restore([reader.snapshot()])
        rest = again.poll(1)
        assert isinstance(rest, Exhausted) or rest.records.batch.column("n").to_pylist() == [len(found)]  # type: ignore[union-attr]
    assert found == list(range(rows))
    reader.close()


def test_an_error_comes_after_what_was_heard_before_it() -> None:
    class Failing(SourceReader):
        shares_event_time = False

        def __init__(self) -> None:
            self._reader = TableSource(pa.table({"n": [1, 2]})).create()

        def open(self, context: OperatorContext) -> None:
            self._reader.open(context)

        def splits(self) -> Any:
            return self._reader.splits()

        def snapshot(self) -> Any:
            return self._reader.snapshot()

        def poll(self, max_records: int) -> Any:
            if isinstance(polled := self._reader.poll(max_records), Exhausted):
                raise SourceError("the server refuses")
            return polled

        def close(self) -> None: ...

    reader = ListeningReader(Failing())
    reader.open(OperatorContext())
    found: list[Any] = []
    with pytest.raises(SourceError, match="the server refuses"):
        until(lambda: found.append(reader.poll(10)))
    assert [len(each.records) for each in found if isinstance(each, Fetched)] == [1, 1]
    reader.close()
