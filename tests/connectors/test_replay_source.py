"""Replay: the pace maps processing time to history, and the reader keeps to it and to its offsets."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, WaitUntil
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.connectors.replay.pace import Pace
from workbench.connectors.replay.source import BREATH_US, ReplayReader, ReplaySource
from workbench.durations import MAX_TIME, NO_TIME
from workbench.errors import HistoryError
from workbench.operators.contract.base import OperatorContext


def log_of(path: Path, arrivals: list[int], channels: int = 2) -> ReplayLog:
    data = pa.table(
        {
            "happened": pa.array([None if a % 5 == 0 else a - 3 for a in arrivals], pa.timestamp("us", "UTC")),
            "known": pa.array(arrivals, pa.timestamp("us", "UTC")),
        }
    )
    return write_log(
        data, path / "a.log", event_time="happened", arrival_time="known", channels=channels, row_group_rows=4
    )


def open_reader(
    source: ReplaySource, clock: VirtualClock, pace: Pace | None = None, subtask: int = 0, of: int = 1
) -> ReplayReader:
    reader = source.create(pace)
    reader.open(OperatorContext(clock=clock, subtask=subtask, parallelism=of))
    return reader


def known(fetched: object) -> list[int]:
    assert isinstance(fetched, Fetched), fetched
    return fetched.records.batch.column("known").cast(pa.int64()).to_pylist()


def drain(reader: ReplayReader, chunk: int = 3) -> list[int]:
    read: list[int] = []
    while not isinstance(fetched := reader.poll(chunk), Exhausted):
        read += known(fetched)
    return read


# --- Pace ---


def test_position_and_due_time_are_inverse() -> None:
    pace = Pace(600.0, 1_000, now_us=50)
    assert pace.position_us(50) == 1_000
    assert pace.position_us(150) == 61_000
    assert pace.due_at(61_000) == 150
    assert pace.due_at(61_001) == 151
    assert pace.due_at(0) == 50


def test_changing_the_speed_does_not_jump() -> None:
    pace = Pace(10.0, 0)
    pace.set_speed(2.0, now_us=100)
    assert [pace.position_us(now) for now in (100, 150)] == [1_000, 1_100]
    assert pace.speed == 2.0


def test_a_paused_pace_stands_still_and_resumes_where_it_stood() -> None:
    pace = Pace(10.0, 0)
    pace.pause(100)
    assert (pace.position_us(900), pace.limit_us(900), pace.due_at(0), pace.paused) == (1_000, None, None, True)
    pace.set_speed(1.0, 950)
    assert pace.paused
    pace.resume(1_000)
    assert (pace.position_us(1_007), pace.due_at(1_007)) == (1_007, 1_007)
    pace.resume(2_000)
    assert pace.position_us(2_000) == 2_000


def test_without_pacing_everything_is_due_and_the_position_is_what_was_read() -> None:
    pace = Pace(math.inf, 7, channels=2)
    assert (pace.position_us(99), pace.limit_us(99), pace.due_at(10**15)) == (7, MAX_TIME, 0)
    pace.reached(1, 500)
    pace.reached(0, 300)
    assert pace.position_us(99) == 500
    pace.set_speed(2.0, now_us=100)
    assert pace.position_us(110) == 520


def test_the_position_ends_with_the_history() -> None:
    assert Pace(1e300, 0, end_us=70).position_us(10**12) == 70
    assert Pace(1e-300, 0).due_at(1) == 2**62


def test_a_seek_moves_the_position_and_is_seen_by_its_generation() -> None:
    pace = Pace(10.0, 0)
    assert pace.sought() == (0, 0)
    pace.seek(5_000, now_us=100)
    assert (pace.generation, pace.sought(), pace.position_us(101)) == (1, (1, 5_000), 5_010)
    pace.restart(200, now_us=300)
    assert (pace.generation, pace.position_us(301)) == (1, 210)


@settings(max_examples=100)
@given(speed=st.floats(1e-3, 1e6), gap=st.integers(0, 10**15), now=st.integers(0, 10**15))
def test_what_is_due_is_within_the_position(speed: float, gap: int, now: int) -> None:
    pace = Pace(speed, 1_000, now_us=now)
    due = pace.due_at(1_000 + gap)
    assert due is not None
    # Floating point costs at most a few parts in 2**53 of the gap.
    assert pace.position_us(due) >= 1_000 + gap - 1 - gap // 2**50


# --- Reader ---


def test_at_full_speed_everything_is_read_once(tmp_path: Path) -> None:
    arrivals = list(range(10, 40))
    reader = open_reader(ReplaySource(log_of(tmp_path, arrivals, 3)), VirtualClock())
    assert (reader.splits(), reader.pending_records()) == (["0", "1", "2"], 30)
    assert sorted(drain(reader)) == arrivals
    assert (reader.splits(), reader.pending_records(), reader.records_read, reader.position_us) == ([], 0, 30, 39)


def test_records_carry_their_event_times(tmp_path: Path) -> None:
    reader = open_reader(ReplaySource(log_of(tmp_path, [10, 12, 13], 1)), VirtualClock())
    fetched = reader.poll(10)
    assert isinstance(fetched, Fetched)
    assert fetched.records.timestamps is not None
    assert fetched.records.timestamps.tolist() == [NO_TIME, 9, 10]
    assert fetched.split == "0"
    assert reader.splits() == []


def test_single_records_come_in_order_of_arrival_over_all_channels(tmp_path: Path) -> None:
    arrivals = [10, 11, 11, 13, 20, 21, 35]
    assert drain(open_reader(ReplaySource(log_of(tmp_path, arrivals, 3)), VirtualClock()), chunk=1) == arrivals


def test_the_reader_keeps_to_the_pace(tmp_path: Path) -> None:
    clock = VirtualClock(1_000)
    log = log_of(tmp_path, [100_000, 300_000, 400_000, 700_000], 2)
    reader = open_reader(ReplaySource(log, speed=10.0), clock)
    assert known(reader.poll(10)) == [100_000]
    assert reader.poll(10) == WaitUntil(21_000)
    clock.advance_to(31_000)
    assert known(reader.poll(10)) == [300_000, 400_000]
    assert reader.poll(10) == WaitUntil(61_000)
    assert reader.position_us == 400_000
    clock.advance_to(62_000)
    assert known(reader.poll(10)) == [700_000]
    assert reader.poll(10) == Exhausted()
    assert reader.position_us == 700_000


def test_a_fast_replay_comes_in_chunks(tmp_path: Path) -> None:
    clock = VirtualClock()
    reader = open_reader(ReplaySource(log_of(tmp_path, list(range(0, 90_000, 10)), 1), speed=10.0), clock)
    assert known(reader.poll(9_000)) == [0]
    assert reader.poll(9_000) == WaitUntil(BREATH_US)  # the next record is due at 1, and would be a step of its own
    clock.advance_to(BREATH_US - 1)
    assert reader.poll(9_000) == WaitUntil(BREATH_US)
    clock.advance_to(BREATH_US)
    found: list[int] = []
    while isinstance(fetched := reader.poll(9_000), Fetched):
        found += known(fetched)
    assert found == list(range(10, 10 * BREATH_US + 10, 10))
    assert fetched == WaitUntil(2 * BREATH_US)


def test_pausing_stops_all_readers_and_resuming_goes_on(tmp_path: Path) -> None:
    clock = VirtualClock()
    source = ReplaySource(log_of(tmp_path, [100, 101, 102, 103], 2))
    pace = source.open_pace(0)
    readers = [open_reader(source, clock, pace, subtask, of=2) for subtask in range(2)]
    assert [known(reader.poll(1)) for reader in readers] == [[100], [101]]
    pace.pause(5)
    assert [reader.poll(1) for reader in readers] == [WaitUntil(None), WaitUntil(None)]
    assert pace.position_us(9) == 101
    pace.resume(10)
    assert [known(reader.poll(1)) for reader in readers] == [[102], [103]]


def test_a_seek_is_followed_forwards_and_backwards(tmp_path: Path) -> None:
    clock = VirtualClock()
    source = ReplaySource(log_of(tmp_path, list(range(100, 120)), 2))
    pace = source.open_pace(0)
    reader = open_reader(source, clock, pace)
    pace.seek(115, 0)
    assert (known(reader.poll(1)), reader.pending_records()) == ([115], 4)
    pace.seek(103, 0)
    assert drain(reader, chunk=1) == list(range(103, 120))
    pace.seek(100, 0)
    assert reader.poll(1) == Exhausted()


def test_a_seek_behind_the_end_ends_the_replay(tmp_path: Path) -> None:
    source = ReplaySource(log_of(tmp_path, [1, 2, 3], 2))
    pace = source.open_pace(0)
    reader = open_reader(source, VirtualClock(), pace)
    pace.seek(50, 0)
    assert (reader.poll(9), reader.splits()) == (Exhausted(), [])


def test_a_subtask_without_a_channel_has_nothing_to_do(tmp_path: Path) -> None:
    reader = open_reader(ReplaySource(log_of(tmp_path, [1, 2], 2)), VirtualClock(), subtask=2, of=3)
    assert (reader.splits(), reader.poll(5)) == ([], Exhausted())


@settings(max_examples=60)
@given(
    size=st.integers(0, 40),
    channels=st.integers(1, 4),
    before=st.integers(1, 4),
    after=st.integers(1, 4),
    polls=st.integers(0, 12),
)
def test_a_recovery_continues_where_the_snapshot_was_taken(
    tmp_path_factory: pytest.TempPathFactory, size: int, channels: int, before: int, after: int, polls: int
) -> None:
    """Every record is read exactly once, also when the parallelism changes."""
    source = ReplaySource(log_of(tmp_path_factory.mktemp("log"), list(range(size)), channels))
    clock, read = VirtualClock(), []
    readers = [open_reader(source, clock, None, subtask, before) for subtask in range(before)]
    for i in range(polls):
        if isinstance(fetched := readers[i % before].poll(3), Fetched):
            read += known(fetched)
    snapshots = [reader.snapshot() for reader in readers]
    for reader in readers:
        reader.poll(3)
        reader.close()
    for subtask in range(after):
        reader = open_reader(source, clock, None, subtask, after)
        reader.restore(snapshots)
        read += drain(reader)
    assert sorted(read) == list(range(size))


def test_a_recovery_moves_the_pace_back(tmp_path: Path) -> None:
    clock = VirtualClock()
    source = ReplaySource(log_of(tmp_path, list(range(0, 1000, 10)), 1), speed=10.0)
    pace = source.open_pace(0)
    reader = open_reader(source, clock, pace)
    clock.advance_to(10)
    assert known(reader.poll(100)) == list(range(0, 40, 10))  # one row group
    snapshot = reader.snapshot()
    log = source.log.manifest.identity
    assert snapshot == {"log": log, "offsets": {"0": 4}, "position_us": 100}
    clock.advance_to(60)
    reader = open_reader(source, clock, pace)
    reader.restore([snapshot])
    assert pace.position_us(60) == 100
    clock.advance_to(62)
    assert known(reader.poll(3)) == [40, 50, 60]


def test_a_checkpoint_of_another_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    other = open_reader(ReplaySource(log_of(tmp_path / "x", [1, 2, 3])), VirtualClock()).snapshot()
    reader = open_reader(ReplaySource(log_of(tmp_path, [1, 2])), VirtualClock())
    with pytest.raises(HistoryError, match="was taken on another version of"):
        reader.restore([other])
    mine = reader.snapshot()
    mine["offsets"] = {"0": 1}
    with pytest.raises(HistoryError, match="has no offset for channel 1"):
        reader.restore([mine])


def test_the_source_describes_itself(tmp_path: Path) -> None:
    source = ReplaySource(log_of(tmp_path, [1], 1))
    assert (source.describe(), source.event_time, source.schema.names) == (
        "a.log, 1 channel",
        "happened",
        ["happened", "known"],
    )
