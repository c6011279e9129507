"""A replay log that grows: appending is atomic, concurrent readers are not disturbed, and offsets stay valid."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.clock import SystemClock
from workbench.connectors.contract.base import Exhausted, Fetched
from workbench.connectors.replay import draft as replay_draft
from workbench.connectors.replay.appending import LogAppend
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.connectors.replay.source import ReplayReader, ReplaySource
from workbench.errors import HistoryError
from workbench.operators.contract.base import OperatorContext


def rows(first: int, last: int) -> pa.Table:
    times = pa.array(range(first, last), pa.timestamp("us", "UTC"))
    return pa.table({"known": times, "number": pa.array(range(first, last), pa.int64())})


@pytest.fixture
def log(tmp_path: Path) -> ReplayLog:
    return write_log(rows(0, 10), tmp_path / "a.log", event_time="known", arrival_time="known", channels=2)


def added(log: ReplayLog, first: int, last: int) -> LogAppend:
    """Records in the folder of a log, not committed."""
    draft = LogAppend(log.path, log.manifest)
    for channel in range(log.channels):
        draft.add_channel()
        pq.write_table(rows(first, last)[channel::2], draft.folder / "x.parquet")
        draft.add_file(draft.folder / "x.parquet")
    return draft


def append(log: ReplayLog, first: int, last: int) -> ReplayLog:
    draft = added(log, first, last)
    assert draft.rows == last - first
    draft.publish(log.schema, {}, (), 0)
    draft.discard()
    return ReplayLog.open(log.path)


def read(reader: ReplayReader) -> list[int]:
    found: list[int] = []
    while not isinstance(fetched := reader.poll(3), Exhausted):
        assert isinstance(fetched, Fetched)
        found += fetched.records.batch.column("number").to_pylist()
    return found


def reader_of(log: ReplayLog) -> ReplayReader:
    reader = ReplaySource(log).create()
    reader.open(OperatorContext(clock=SystemClock()))
    return reader


def test_what_was_appended_follows_what_arrived_at_the_same_time(tmp_path: Path) -> None:
    """Eleven records leave the first channel one record longer than the second."""
    numbers = pa.array(range(15), pa.int64())
    table = pa.table({"known": pa.array([5] * 15, pa.timestamp("us", "UTC")), "number": numbers})
    path = tmp_path / "ties.log"
    log = write_log(table.slice(0, 11), path, event_time="known", arrival_time="known", channels=2)
    draft = LogAppend(log.path, log.manifest)
    for channel in range(2):
        draft.add_channel()
        pq.write_table(table.slice(11)[channel::2], draft.folder / "x.parquet")
        draft.add_file(draft.folder / "x.parquet")
    draft.publish(log.schema, {}, (), 0)
    draft.discard()
    assert ReplayLog.open(path).manifest.appended_after == ((6, 5),)
    assert read(reader_of(ReplayLog.open(path))) == list(range(15))


def test_a_reader_continues_on_the_longer_log(log: ReplayLog) -> None:
    reader = reader_of(log)
    assert sorted(read(reader)) == list(range(10))
    at_end = reader.snapshot()
    longer = append(append(log, 10, 14), 14, 20)
    longer.verify()
    assert (longer.rows, len(longer.manifest.grown_from)) == (20, 2)
    later = reader_of(longer)
    later.restore([at_end])
    assert sorted(read(later)) == list(range(10, 20))
    assert sorted(read(reader_of(log))) == list(range(10))  # opened before
    other = write_log(rows(0, 10), log.path, event_time="known", arrival_time="known", channels=1)
    with pytest.raises(HistoryError, match="another version"):
        reader_of(other).restore([at_end])


def test_what_was_not_committed_is_never_read(log: ReplayLog, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sorted(log.path.rglob("*.parquet"))
    draft = added(log, 10, 20)
    assert len(list(log.path.rglob("*.parquet"))) == len(files) + 2
    assert ReplayLog.open(log.path).manifest == log.manifest
    with pytest.raises(HistoryError, match="is being written by another thread"):
        LogAppend(log.path, log.manifest)
    monkeypatch.setattr(replay_draft, "_in_progress", {})  # the process ends here
    assert draft._lock is not None
    draft._lock.release()
    assert append(log, 10, 12).rows == 12
    assert len(list(log.path.rglob("*.parquet"))) == len(files) + 2
    added(ReplayLog.open(log.path), 12, 20).discard()
    assert ReplayLog.open(log.path).rows == 12
    assert len(list(log.path.rglob("*.parquet"))) == len(files) + 2


def test_arrivals_do_not_go_back_and_a_rewritten_log_is_left_alone(log: ReplayLog) -> None:
    draft = LogAppend(log.path, log.manifest)
    draft.add_channel()
    pq.write_table(rows(3, 5), draft.folder / "x.parquet")
    with pytest.raises(HistoryError, match="the arrival time goes back"):
        draft.add_file(draft.folder / "x.parquet")
    draft.discard()
    late = added(log, 10, 12)
    (log.path / "manifest.json").write_text(
        ReplayLog.open(log.path).manifest.to_json().replace('"sha256": "', '"sha256": "0')
    )
    with pytest.raises(HistoryError, match="was rewritten meanwhile"):
        late.publish(log.schema, {}, (), 0)
    late.discard()
