"""A replay keeps the order of arrival: of all records in one subtask, and of those of a key with ``partition_by``."""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched
from workbench.connectors.replay.log import ReplayLog, block_of, write_log
from workbench.connectors.replay.manifest import MANIFEST
from workbench.connectors.replay.pace import Pace
from workbench.connectors.replay.source import ReplayReader, ReplaySource
from workbench.errors import HistoryError
from workbench.operators.contract.base import OperatorContext

ROWS = 400
INSTANT = pa.timestamp("us", "UTC")


def table_of(rows: int = ROWS, per_instant: int = 3) -> pa.Table:
    """Records numbered in the order in which they are written; several arrive at once."""
    arrivals = pa.array([row // per_instant * 1_000 for row in range(rows)], INSTANT)
    return pa.table(
        {"n": range(rows), "key": [f"k{row * 7 % 5}" for row in range(rows)], "happened": arrivals, "known": arrivals}
    )


def log_of(path: Path, table: pa.Table, channels: int, partition_by: tuple[str, ...] = (), rows: int = 16) -> ReplayLog:
    return write_log(
        table, path / "a.log", event_time="happened", arrival_time="known", channels=channels,
        partition_by=partition_by, row_group_rows=rows,
    )  # fmt: skip


def reader_of(log: ReplayLog, pace: Pace | None, clock: VirtualClock, subtask: int = 0, of: int = 1) -> ReplayReader:
    reader = ReplaySource(log).create(pace)
    reader.open(OperatorContext(clock=clock, subtask=subtask, parallelism=of))
    return reader


def numbers(fetched: Fetched) -> list[int]:
    return fetched.records.batch.column("n").to_pylist()


def read(reader: ReplayReader, clock: VirtualClock, chance: random.Random) -> list[int]:
    found: list[int] = []
    while not isinstance(fetched := reader.poll(chance.randint(1, 40)), Exhausted):
        if isinstance(fetched, Fetched):
            found += numbers(fetched)
        else:
            clock.advance_to(fetched.time_us or 0)
    return found


@pytest.mark.parametrize("channels", [1, 2, 3, 7])
@pytest.mark.parametrize("partition_by", [(), ("key",)])
@pytest.mark.parametrize("speed", [math.inf, 10.0, 0.001])
def test_one_subtask_reads_all_records_in_order(
    tmp_path: Path, channels: int, partition_by: tuple[str, ...], speed: float
) -> None:
    log, clock = log_of(tmp_path, table_of(), channels, partition_by), VirtualClock()
    pace = Pace(speed, log.start_us, end_us=log.end_us, channels=channels)
    assert read(reader_of(log, pace, clock), clock, random.Random(channels)) == list(range(ROWS))


@pytest.mark.parametrize("rows", [1, 5, 20_000])
def test_blocks_of_any_length_and_records_in_no_order_are_read_in_order(tmp_path: Path, rows: int) -> None:
    table = table_of(rows).take(pa.array(random.Random(rows).sample(range(rows), rows)))
    log, clock = log_of(tmp_path, table, 3, rows=1_000), VirtualClock()
    assert log.manifest.block_rows == block_of(rows) == max(1, rows // 2_048)
    # Equal arrivals keep the order in which they are written.
    at = table["known"].cast(pa.int64()).to_pylist()
    expected = [n for _, _, n in sorted(zip(at, range(rows), table["n"].to_pylist(), strict=True))]
    assert read(reader_of(log, None, clock), clock, random.Random(1)) == expected


@pytest.mark.parametrize("parallelism", [2, 3, 4])
def test_the_records_of_a_key_keep_their_order_at_any_parallelism(tmp_path: Path, parallelism: int) -> None:
    log, clock = log_of(tmp_path, table_of(), 3, ("key",)), VirtualClock()
    readers: dict[str, set[int]] = defaultdict(set)
    for subtask in range(parallelism):
        reader = reader_of(log, None, clock, subtask, parallelism)
        last: dict[str, int] = {}
        while isinstance(fetched := reader.poll(9), Fetched):
            for key, number in zip(fetched.records.batch["key"].to_pylist(), numbers(fetched), strict=True):
                assert number > last.get(key, -1)
                last[key] = number
                readers[key].add(subtask)
    assert {key: len(subtasks) for key, subtasks in readers.items()} == {f"k{i}": 1 for i in range(5)}


@pytest.mark.parametrize("partition_by", [(), ("key",)])
@pytest.mark.parametrize("seed", range(4))
def test_tuning_pausing_and_recovering_keep_the_order(tmp_path: Path, partition_by: tuple[str, ...], seed: int) -> None:
    """Random commands between the polls; after a recovery the reader continues with the record after its snapshot."""
    chance, clock = random.Random(seed), VirtualClock()
    log = log_of(tmp_path, table_of(), 3, partition_by)
    pace = Pace(1.0, log.start_us, end_us=log.end_us, channels=3)
    reader, found = reader_of(log, pace, clock), []
    snapshot, behind = reader.snapshot(), 0
    while not isinstance(fetched := reader.poll(chance.randint(1, 30)), Exhausted):
        if isinstance(fetched, Fetched):
            found += numbers(fetched)
        now_us = clock.now_us() + chance.randint(0, 9_000)
        clock.advance_to(now_us)
        match chance.randint(0, 6):
            case 0:
                pace.set_speed(chance.choice([0.5, 3.0, math.inf]), now_us)
            case 1:
                pace.pause(now_us)
            case 2:
                snapshot, behind = reader.snapshot(), len(found)
            case 3:
                reader.close()
                reader, found = reader_of(log, pace, clock), found[:behind]
                reader.restore([snapshot])
            case _:
                pace.resume(now_us)
    assert found == list(range(ROWS))


def test_after_a_seek_records_come_in_order_from_there(tmp_path: Path) -> None:
    log, clock = log_of(tmp_path, table_of(), 3, ("key",)), VirtualClock()
    pace = Pace(math.inf, log.start_us, channels=3)
    reader = reader_of(log, pace, clock)
    reader.poll(100)
    for arrival_us, first in ((90_000, 270), (30_000, 90)):
        pace.seek(arrival_us, 0)
        fetched = reader.poll(50)
        assert isinstance(fetched, Fetched)
        assert numbers(fetched)[0] == first
    assert read(reader, clock, random.Random(2))[-1] == ROWS - 1


def test_a_log_without_facts_about_its_order_is_merged_by_arrival(tmp_path: Path) -> None:
    """As logs were written before: dealt out row by row, and with nothing about it in the manifest."""
    log, clock = log_of(tmp_path, table_of(), 3), VirtualClock()
    place = log.path / MANIFEST
    content = json.loads(place.read_text())
    for name in ("block_rows", "order_column", "partitioned", "appended_after"):
        del content[name]
    place.write_text(json.dumps(content))
    assert read(reader_of(ReplayLog.open(log.path), None, clock), clock, random.Random(3)) == list(range(ROWS))


def test_a_record_is_found_at_the_place_that_errors_name(tmp_path: Path) -> None:
    log, clock = log_of(tmp_path, table_of(), 3, ("key",)), VirtualClock()
    reader = reader_of(log, None, clock)
    reader.poll(37)
    fetched = reader.poll(20)
    assert isinstance(fetched, Fetched)
    assert fetched.where is not None
    for row, number in enumerate(numbers(fetched)):
        _, channel, offset = fetched.where(row).rsplit(", ", 2)
        cursor = log.cursor(int(channel.removeprefix("channel ")))
        cursor.seek(int(offset.removeprefix("offset ")))
        batch = cursor.read(1)
        assert batch is not None
        assert batch["n"].to_pylist() == [number]


def test_the_column_of_the_order_has_a_free_name_and_is_not_among_the_records(tmp_path: Path) -> None:
    table = table_of().rename_columns(["$order", "key", "happened", "known"])
    log = log_of(tmp_path, table, 2, ("key",))
    assert (log.manifest.order_column, log.schema.names) == ("$order_", table.column_names)
    stored = pq.read_table(log.path / next(iter(log.manifest.files)).name)
    assert stored["$order_"].to_pylist() == stored["$order"].to_pylist()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("block_rows", 0),
        ("block_rows", 10**12),
        ("order_column", "n"),
        ("partitioned", {"by": ["none"], "writer": "arrow"}),
        ("appended_after", [[1]]),
        ("appended_after", [[10**6, 0, 0]]),
    ],
)
def test_impossible_facts_about_the_order_are_refused(tmp_path: Path, name: str, value: object) -> None:
    place = log_of(tmp_path, table_of(), 3).path / MANIFEST
    place.write_text(json.dumps(json.loads(place.read_text()) | {name: value}))
    with pytest.raises(HistoryError, match="is not a replay log's manifest"):
        ReplayLog.open(place.parent)


# --- Jobs ---


def latest(history: wb.History, parallelism: int, speed: str) -> list[int]:
    stream = wb.Stream.replay(history, speed=speed).key_by("key").latest_by()
    job = stream.sink_to(wb.TableSink("latest")).run("latest", parallelism=parallelism, replace=True)
    job.wait("60s")
    return sorted(job.table("latest")["n"].to_pylist())


@pytest.mark.parametrize("speed", ["max", "10x"])
def test_the_latest_record_of_a_key_is_the_last_one(tmp_path: Path, speed: str) -> None:
    times = {"event_time": "happened", "arrival_time": "known", "progress": False}
    plain = wb.History.from_arrow(table_of(), tmp_path / "plain.log", **times)
    keyed = wb.History.from_arrow(table_of(), tmp_path / "keyed.log", channels=3, partition_by="key", **times)
    last = list(range(ROWS - 5, ROWS))  # the keys take turns
    assert latest(plain, 1, speed) == last
    assert [latest(keyed, parallelism, speed) for parallelism in (1, 2, 3)] == [last] * 3


def test_a_run_says_once_that_its_result_needs_an_order_that_is_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {"event_time": "happened", "arrival_time": "known", "progress": False}
    plain = wb.History.from_arrow(table_of(), tmp_path / "plain.log", **times)
    keyed = wb.History.from_arrow(table_of(), tmp_path / "keyed.log", partition_by=["key"], **times)
    latest(plain, 1, "max")
    latest(keyed, 2, "max")
    assert capsys.readouterr().err == ""
    latest(plain, 2, "max")
    assert capsys.readouterr().err == (
        f"workbench: 'top' depends on the order of its records, and a replay of {plain.path} with parallelism 2 does "
        "not keep the order of arrival within key: run it with parallelism=1, or write the history with "
        "partition_by=['key']\n"
    )
