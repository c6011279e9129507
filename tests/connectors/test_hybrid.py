"""Hybrid sources: history, then live data, in one program; and Alice, whose phone is offline in the subway."""

from __future__ import annotations

import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import until

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.connectors.live.hybrid_source import HybridSource
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.connectors.replay.source import ReplaySource
from workbench.connectors.tables.table_source import TableSource
from workbench.errors import PlanError
from workbench.operators.contract.base import OperatorContext, Snapshot

MINUTE = 60_000_000


def times(*minutes: float) -> pa.Array:
    return pa.array([int(minute * MINUTE) for minute in minutes], pa.timestamp("us", "UTC"))


def log_of(folder: Path, count: int) -> ReplayLog:
    table = pa.table({"n": list(range(count)), "t": times(*range(count)), "landed": times(*range(count))})
    return write_log(table, folder / "past.log", event_time="t", arrival_time="landed", channels=3)


def present_of(log: ReplayLog, first: int, count: int) -> pa.Table:
    minutes = range(first, first + count)
    return pa.table([list(minutes), times(*minutes), times(*minutes)], schema=log.schema)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> ReplayLog:
    return log_of(tmp_path_factory.mktemp("hybrid"), 30)


def readers(source: HybridSource, parallelism: int, snapshots: list[Snapshot]) -> list[SourceReader]:
    made = [source.create() for _ in range(parallelism)]
    clock = VirtualClock()
    for subtask, reader in enumerate(made):
        reader.open(OperatorContext(subtask=subtask, parallelism=parallelism, clock=clock))
        if snapshots:
            reader.restore(json.loads(json.dumps(snapshots)))
    return made


def poll(reader: SourceReader, size: int) -> tuple[str, list[int]] | None:
    """A split and its records; None at the end."""
    for _ in range(3):
        fetched = reader.poll(size)
        if isinstance(fetched, Fetched):
            return fetched.split, fetched.records.batch.column("n").to_pylist()
        if isinstance(fetched, Exhausted):
            return None
        assert isinstance(fetched, WaitUntil)
    raise AssertionError("it waits for ever")


@pytest.mark.parametrize("replayed", [True, False])
def test_the_history_comes_first_and_whole(past: ReplayLog, replayed: bool) -> None:
    history: Any = ReplaySource(past) if replayed else TableSource(present_of(past, 0, 30), event_time="t")
    source = HybridSource(history, TableSource(present_of(past, 30, 20), event_time="t"))
    (reader,) = readers(source, 1, [])
    seen: list[int] = []
    phases: list[str] = []
    while (fetched := poll(reader, 4)) is not None:
        phases.append(fetched[0].split()[0])
        seen += fetched[1]
    assert sorted(seen[:30]) == list(range(30))
    assert seen[30:] == list(range(30, 50))
    assert phases == sorted(phases)  # history ... live
    assert (source.kind, source.resettable) == ("hybrid", True)


@settings(max_examples=60)
@given(
    replayed=st.booleans(),
    runs=st.lists(st.tuples(st.integers(1, 4), st.lists(st.integers(1, 20), max_size=12)), min_size=1, max_size=4),
)
def test_every_row_once_however_often_the_job_is_stopped_and_rescaled(
    past: ReplayLog, replayed: bool, runs: list[tuple[int, list[int]]]
) -> None:
    history: Any = ReplaySource(past) if replayed else TableSource(present_of(past, 0, 30), event_time="t")
    source = HybridSource(history, TableSource(present_of(past, 30, 20), event_time="t", splits=3))
    seen: list[int] = []
    snapshots: list[Snapshot] = []
    for parallelism, polls in runs:
        made = readers(source, parallelism, snapshots)
        for number, size in enumerate(polls):
            fetched = poll(made[number % parallelism], size)
            seen += [] if fetched is None else fetched[1]
        snapshots = [reader.snapshot() for reader in made]
        for reader in made:  # what is read after the snapshot is lost in the crash, and read again
            poll(reader, 7)
            reader.close()
    for reader in readers(source, 2, snapshots):
        while (fetched := poll(reader, 9)) is not None:
            seen += fetched[1]
        reader.close()
    assert Counter(seen) == Counter(range(50))


def test_the_snapshot_says_which_phase_it_is(past: ReplayLog) -> None:
    source = HybridSource(ReplaySource(past), TableSource(present_of(past, 30, 20), event_time="t"))
    (reader,) = readers(source, 1, [])
    poll(reader, 100)
    assert reader.snapshot()["phase"] == "history"
    while (fetched := poll(reader, 100)) is not None and not fetched[0].startswith("live"):
        pass
    state = reader.snapshot()
    assert state["phase"] == "live"
    (again,) = readers(source, 1, [state])
    assert again.splits() == reader.splits()
    assert all(split.startswith("live ") for split in again.splits())


def hours(stream: wb.Stream) -> wb.types.Pipeline:
    windows = stream.window(wb.tumbling("10min")).aggregate(n=wb.count(), last=wb.max("n"))
    return windows.sink_to(wb.TableSink("out"))


def counted(job: Any) -> list[tuple[int, int, int]]:
    return sorted(
        (row["window_start"].minute + 60 * row["window_start"].hour, row["n"], row["last"])
        for row in job.table("out").to_pylist()
    )


@pytest.mark.parametrize("parallelism", [1, 2])
def test_the_same_program_catches_up_with_the_present(past: ReplayLog, parallelism: int) -> None:
    live = wb.Stream.from_table(present_of(past, 28, 12), event_time="t", rate=2.0)
    stream = wb.Stream.hybrid(wb.Stream.replay(past, speed="600x"), live)
    job = hours(stream).run("hybrid", driver="stepping", parallelism=parallelism, checkpoint_interval="1s")
    start = job.stepper.driver.clock.now_us()
    assert job.stepper.driver.run_until(lambda: job.table("out").num_rows >= 2)
    job.fail(next(row["task"] for row in job.metrics()))
    assert job.wait() == "FINISHED"
    # A window from both sides of the seam: 28 and 29 come from the history and from the live source.
    assert counted(job) == [(0, 10, 9), (10, 10, 19), (20, 12, 29), (30, 10, 39)]
    # 29 minutes at 600x are 2.9 seconds, then 12 records at 2 a second: 5.5 more (a subtask whose channels end sooner
    # begins sooner); a restart repeats a part.
    assert 7 <= (job.stepper.driver.clock.now_us() - start) / 1e6 <= 15
    assert sum(int(str(row["numLateRecordsDropped"])) for row in job.metrics()) == 0


def test_the_speed_of_the_history_can_be_tuned(past: ReplayLog) -> None:
    live = wb.Stream.from_table(present_of(past, 30, 10), event_time="t")
    stream = wb.Stream.hybrid(wb.Stream.replay(past, speed="1x"), live)
    job = hours(stream).run("hybrid", driver="stepping", checkpoint_interval=None)
    job.stepper.step(20)
    job.tune(speed="max")
    start = job.stepper.driver.clock.now_us()
    assert job.wait() == "FINISHED"
    assert job.stepper.driver.clock.now_us() - start < MINUTE
    assert counted(job) == [(0, 10, 9), (10, 10, 19), (20, 10, 29), (30, 10, 39)]


def test_a_table_goes_over_into_a_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        past = wb.Stream.from_table(pa.table({"n": list(range(100))}), event_time=wb.watermarks.INGESTION)
        live = wb.Stream.from_socket(
            "127.0.0.1", listener.getsockname()[1], past.schema, format="csv", event_time=wb.watermarks.INGESTION
        )
        stream = wb.Stream.hybrid(past, live)
        job = stream.sink_to(wb.TableSink("out")).run("hybrid", parallelism=2, buffer_timeout="0ms")
        peer, _ = listener.accept()
        peer.sendall(b"".join(b"%d\n" % n for n in range(100, 150)))
        peer.close()
        assert job.wait("120s") == "FINISHED"
    assert sorted(job.table("out")["n"].to_pylist()) == list(range(150))


def test_what_does_not_fit_together_is_refused(past: ReplayLog) -> None:
    table = present_of(past, 0, 3)
    stream = wb.Stream.from_table(table, event_time="t")
    with pytest.raises(PlanError, match=r"history has the columns n int64, t .* and the live source n int64: they"):
        wb.Stream.hybrid(stream, wb.Stream.from_table(table.select(["n"]), event_time="n"))
    with pytest.raises(
        PlanError, match="the event time of the history is in order and that of the live source not defined"
    ):
        wb.Stream.hybrid(stream, wb.Stream.from_table(table))
    with pytest.raises(PlanError, match="in order and that of the live source at most 5s out of order"):
        wb.Stream.hybrid(stream, wb.Stream.from_table(table, event_time="t", out_of_orderness="5s"))
    with pytest.raises(PlanError, match="history already has an operator"):
        wb.Stream.hybrid(stream.filter("n > 1"), stream)
    with pytest.raises(PlanError, match="the history has event times and the live source has none"):
        HybridSource(TableSource(table, event_time="t"), TableSource(table))


class Hearing(TableSource):
    """Notes what its readers are told of checkpoints."""

    keeps_savepoints = True
    heard: list[tuple[Any, ...]]

    def create(self) -> SourceReader:
        reader, heard = super().create(), self.heard
        reader.complete = lambda snapshot: heard.append(("complete", snapshot))  # type: ignore[method-assign]
        reader.keep = lambda number: heard.append(("keep", number))  # type: ignore[method-assign]
        reader.give_up = lambda number: heard.append(("give up", number))  # type: ignore[method-assign]
        reader.forget = lambda number: heard.append(("forget", number))  # type: ignore[method-assign]
        return reader


def hearing(table: pa.Table) -> Hearing:
    source = Hearing(table, event_time="t", rate=100)
    object.__setattr__(source, "heard", [])
    return source


def test_both_sources_hear_of_checkpoints_and_savepoints(past: ReplayLog, tmp_path: Path) -> None:
    before, after = hearing(present_of(past, 0, 500)), hearing(present_of(past, 500, 5))
    source = HybridSource(before, after)
    assert source.keeps_savepoints
    assert not HybridSource(TableSource(before.table, event_time="t"), ReplaySource(past)).keeps_savepoints
    job = wb.Stream.from_source(source).sink_to(wb.TableSink("out")).run("heard", checkpoint_dir=tmp_path)
    job.tune(checkpoint_interval="10ms")
    job.savepoint("mark")
    until(lambda: all("complete" in [one[0] for one in part.heard] for part in (before, after)))
    job.delete_savepoint("mark")
    job.stop()
    for part in (before, after):
        kinds = [one[0] for one in part.heard]
        assert kinds.count("keep") == kinds.count("forget") == 1
        reader = part.create()
        reader.open(OperatorContext(subtask=0, parallelism=1, clock=VirtualClock()))
        reader.restore([one[1] for one in part.heard if one[0] == "complete"][-1:])  # a position of its own


def test_changes_of_rows_are_refused(past: ReplayLog) -> None:
    class Changes(TableSource):
        changelog_key = ("n",)

    table = TableSource(present_of(past, 0, 3), event_time="t")
    with pytest.raises(PlanError, match=r"the live source gives changes of rows .*: pass sources whose"):
        HybridSource(table, Changes(present_of(past, 0, 3), event_time="t"))


# F1-11 to F1-13: Alice in the subway ---------------------------------------------------------------------------------

# She pops bubbles at these minutes; in the tunnel, from 0.5 to 2, the phone is offline and sends all when it is out.
POPPED = (0.1, 0.2, 0.4, 0.6, 0.9, 1.1, 1.5, 2.2, 2.3)
ARRIVED = (0.1, 0.2, 0.4, 2.0, 2.0, 2.0, 2.0, 2.2, 2.3)


@pytest.fixture(scope="module")
def bubbles(tmp_path_factory: pytest.TempPathFactory) -> ReplayLog:
    table = pa.table({"n": list(range(9)), "popped": times(*POPPED), "landed": times(*ARRIVED)})
    path = tmp_path_factory.mktemp("alice") / "bubbles.log"
    return write_log(table, path, event_time="popped", arrival_time="landed", channels=1)


def counts(stream: wb.Stream, size: str = "1min") -> list[int]:
    windows = stream.window(wb.tumbling(size)).aggregate(n=wb.count())
    job = windows.sink_to(wb.TableSink("out")).run("alice", driver="stepping", checkpoint_interval=None)
    assert job.wait() == "FINISHED"
    assert sum(int(str(row["numLateRecordsDropped"])) for row in job.metrics()) == 0
    found = sorted((row["window_start"], row["n"]) for row in job.table("out").to_pylist())
    return [n for _, n in found]


def test_event_time_windows_count_what_she_did(bubbles: ReplayLog) -> None:
    assert counts(wb.Stream.replay(bubbles, speed="60x", out_of_orderness="2min")) == [5, 2, 2]


def test_by_the_time_of_arrival_she_did_nothing_in_the_tunnel(bubbles: ReplayLog) -> None:
    # At 60x a minute takes a second. The clock of the job starts where it likes, so a window may begin within a minute.
    found = counts(wb.Stream.replay(bubbles, speed="60x").assign_timestamps(wb.watermarks.INGESTION), "1s")
    assert sum(found) == 9
    assert max(found) >= 4  # what she did in two minutes comes in one burst
    assert found != [5, 2, 2]


@pytest.mark.parametrize("speed", ["30x", "600x", "max"])
def test_replayed_at_any_speed_the_past_gives_the_same(bubbles: ReplayLog, speed: str) -> None:
    assert counts(wb.Stream.replay(bubbles, speed=speed, out_of_orderness="2min")) == [5, 2, 2]
