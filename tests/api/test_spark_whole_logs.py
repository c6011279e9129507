"""The pipelines whose sources Spark reads in one batch, and continuing such a run; needs no Java."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.errors import CheckpointError
from workbench.spark.engine.directory import Directory, Identity
from workbench.spark.engine.whole_log import is_read_whole

ROWS = 100
IDENTITY = Identity({"replay": "source"}, {"replay": 1}, 128, "native", 2, whole=True, run="first")


def log_at(path: Path, *, rows: int = ROWS, numbers: bool = False) -> ReplayLog:
    numbered = pa.array(range(rows), pa.int64())
    times = numbered.cast(pa.timestamp("us", "UTC"))
    table = pa.table({"k": ["a"] * rows, "t": numbered if numbers else times, "arrived": times})
    return write_log(table, path, event_time="t", arrival_time="arrived", channels=2)


def whole(*streams: wb.Stream, most: int = ROWS) -> bool:
    sinks = [stream.sink_to(wb.TableSink(f"table-{number}")) for number, stream in enumerate(streams)]
    pipeline = sinks[0]
    for other in sinks[1:]:
        pipeline = pipeline + other
    return is_read_whole(pipeline.logical_graph(), most)


def windows(stream: wb.Stream) -> wb.Stream:
    return stream.key_by("k").window(wb.tumbling("1h")).aggregate(n=wb.count())


def test_logs_at_full_speed_are_read_whole_while_they_fit_one_batch(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a.log")
    stream = wb.Stream.replay(log, out_of_orderness="1s")
    assert whole(windows(stream))
    assert whole(windows(stream), stream.filter("k = 'a'"))
    assert not whole(windows(stream), most=ROWS - 1)
    assert whole(stream, wb.Stream.replay(log), most=2 * ROWS)
    assert not whole(stream, wb.Stream.replay(log), most=2 * ROWS - 1)
    assert not whole(windows(stream), windows(stream))


def test_other_sources_and_what_sparks_reader_would_misread_are_not(tmp_path: Path) -> None:
    log = log_at(tmp_path / "a.log")
    assert not whole(wb.Stream.replay(log, speed="600x"))
    assert not whole(wb.Stream.replay(log), wb.Stream.from_table(pa.table({"k": ["a"]})))
    assert not whole(wb.Stream.replay(log_at(tmp_path / "{a,b}.log")))
    assert not whole(wb.Stream.replay(log_at(tmp_path / "numbers.log", numbers=True)))
    assert not whole(wb.Stream.replay(log_at(tmp_path / "empty.log", rows=0)))


@pytest.mark.parametrize("now", [True, False])
def test_a_run_that_wrote_nothing_begins_anew_as_the_log_is_now(tmp_path: Path, now: bool) -> None:
    first = Directory(tmp_path, False, IDENTITY, "job")
    assert first.whole
    (first.folder("spark") / "offsets").mkdir()
    first.close()
    again = Directory(tmp_path, True, replace(IDENTITY, whole=now, run="second"), "job")
    assert (again.whole, again.run) == (now, "first")
    assert list(again.folder("spark").iterdir()) == []
    again.close()


def test_a_run_whose_batch_is_written_stays_as_it_was(tmp_path: Path) -> None:
    first = Directory(tmp_path, False, IDENTITY, "job")
    (first.folder("spark") / "offsets").mkdir()
    first.folder("epochs").mkdir()
    (first.folder("epochs") / "1.epoch").touch()
    first.close()
    again = Directory(tmp_path, True, replace(IDENTITY, whole=False), "job")
    assert again.whole
    assert len(list(again.folder("spark").iterdir())) == 1
    again.close()
    with pytest.raises(CheckpointError, match="number of shuffle partitions: 2 then, 3 now"):
        Directory(tmp_path, True, replace(IDENTITY, partitions=3), "job")
