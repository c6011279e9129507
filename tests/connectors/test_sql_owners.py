"""Only one job at a time writes to a table of a database, in whichever process it runs."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sink_job import NoOutput
from test_sql_sink import ENGINES, SCHEMA, context, query, url

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.epochs import owner as epochs_owner
from workbench.connectors.epochs.owner import LEASE_US, RENEW_US, WATCH_US, PlaceOwner
from workbench.connectors.sql.owner import OWNERS, TableOwners
from workbench.connectors.sql.sink import SqlSink
from workbench.elements import Records
from workbench.errors import CommittedRowsError, SinkError
from workbench.operators.contract.base import Operator

RUN = """
import sys
import pyarrow as pa
import workbench as wb
address, folder = sys.argv[1:]
rows = wb.Stream.from_table(pa.table({"key": [0] * 2_000, "value": range(2_000)}), rate=200)
job = rows.sink_to(wb.SqlSink(address, "numbers")).run("first", checkpoint_dir=folder, resume=True,
                                                       checkpoint_interval="50ms")
print("started", flush=True)
sys.stdin.readline()
job.cancel()
print(job.wait(), flush=True)
"""


def few(address: str, name: str) -> wb.types.Job:
    table = pa.table({"key": [1] * 3, "value": [10_000, 10_001, 10_002]})
    return wb.Stream.from_table(table).sink_to(wb.SqlSink(address, "NUMBERS")).run(name)


@pytest.fixture
def first(tmp_path: Path, engine: str) -> Iterator[subprocess.Popen[str]]:
    """A process whose job writes to the table."""
    command = [sys.executable, "-c", RUN, url(engine, tmp_path), str(tmp_path / "checkpoints")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process
        process.kill()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_is_refused_at_its_start_while_another_process_writes_to_the_table(
    tmp_path: Path, engine: str, first: subprocess.Popen[str]
) -> None:
    address = url(engine, tmp_path)
    with pytest.raises(SinkError, match=rf"'NUMBERS' of .* is written to by job 'first' of process {first.pid} on"):
        few(address, "second")
    other = wb.Stream.from_table(pa.table({"key": [1], "value": [1]})).sink_to(wb.SqlSink(address, "others"))
    assert other.run("other").wait("60s") == "FINISHED"
    assert first.stdin is not None
    print(file=first.stdin, flush=True)
    assert first.communicate()[0] == "CANCELED\n"
    assert few(address, "second").wait("60s") == "FINISHED"  # one after the other
    assert query(address, f"SELECT * FROM {OWNERS}") == []
    found = [value for (value,) in query(address, "SELECT value FROM numbers ORDER BY value")]
    assert found == [*range(len(found) - 3), 10_000, 10_001, 10_002]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_is_free_when_its_process_was_killed(tmp_path: Path, engine: str, first: subprocess.Popen[str]) -> None:
    first.send_signal(signal.SIGKILL)
    first.wait()
    address = url(engine, tmp_path)
    assert [run for (run,) in query(address, f"SELECT table_name FROM {OWNERS}")] == ["numbers"]
    assert few(address, "second").wait("60s") == "FINISHED"


def job_of(run: str, **values: Any) -> SinkContext:
    return SinkContext("job", "out", SCHEMA, run, **values)


def pre_committed(sink: SqlSink, run: str) -> Operator:
    logic = sink.create(SCHEMA)
    logic.open(context(run=run))
    logic.process(Records(pa.record_batch([[1], [1]], schema=SCHEMA), None), 0, NoOutput())
    logic.snapshot(1)
    return logic


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("upsert_key", [(), "key"])
def test_an_owner_on_another_machine_is_followed_when_its_lease_is_over_and_commits_no_more(
    tmp_path: Path, engine: str, upsert_key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock(10**15)
    sink = SqlSink(url(engine, tmp_path), "numbers", upsert_key=upsert_key)
    database = sink.target.database
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(platform, "node", lambda: "elsewhere")
        far = PlaceOwner(TableOwners(database, "numbers"), job_of("far"), clock)
    clock.advance_to(10**15 + RENEW_US)
    far.keep()
    clock.advance_to(10**15 + RENEW_US + LEASE_US)
    with pytest.raises(SinkError, match=f"written to by job 'job' of process {os.getpid()} on elsewhere since"):
        PlaceOwner(TableOwners(database, "numbers"), job_of("near"), clock)
    late = pre_committed(sink, "far") if not upsert_key else None
    clock.advance_to(10**15 + RENEW_US + LEASE_US + 1)
    monkeypatch.setattr(epochs_owner, "rest", lambda seconds: clock.advance_to(clock.now_us() + int(seconds * 1e6)))
    near = PlaceOwner(TableOwners(database, "numbers"), job_of("near"), clock)
    assert clock.now_us() == 10**15 + RENEW_US + LEASE_US + 1 + WATCH_US
    with pytest.raises(CommittedRowsError, match="was taken by job 'job' of process"):
        far.keep()
    with pytest.raises(CommittedRowsError, match=r"'numbers' of .* was taken by job 'job' of process"):
        late.notify_complete(1) if late is not None else pre_committed(sink, "far")
    far.release()  # takes nothing from its successor
    assert [run for (run,) in query(sink.url, f"SELECT run FROM {OWNERS}")] == ["near"]
    near.release()
    assert query(sink.url, f"SELECT run FROM {OWNERS}") == []


class SetClock(VirtualClock):
    """Somebody has set it ahead, or back."""

    ahead_us = 0

    def wall_us(self) -> int:
        return self.now_us() + self.ahead_us


@pytest.mark.parametrize("ahead_us", [3_600_000_000, -3_600_000_000])
def test_an_owner_that_lives_keeps_the_table_when_the_clock_is_set(
    tmp_path: Path, ahead_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(10**15)
    database = SqlSink(url("sqlite", tmp_path), "numbers").target.database
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(platform, "node", lambda: "elsewhere")
        far = PlaceOwner(TableOwners(database, "numbers"), job_of("far"), clock)
    lives = True

    def passes(seconds: float) -> None:
        clock.advance_to(clock.now_us() + int(seconds * 1e6))
        if lives:
            far.keep()

    monkeypatch.setattr(epochs_owner, "rest", passes)
    clock.ahead_us = ahead_us
    with pytest.raises(SinkError, match="written to by job 'job'"):
        PlaceOwner(TableOwners(database, "numbers"), job_of("near"), clock)
    assert clock.now_us() == 10**15 + RENEW_US
    lives = False
    clock.ahead_us = 2 * ahead_us
    PlaceOwner(TableOwners(database, "numbers"), job_of("near"), clock).release()
    assert clock.now_us() == 10**15 + RENEW_US + WATCH_US


def test_a_job_that_holds_the_checkpoint_directory_of_the_owner_takes_over_at_once(tmp_path: Path) -> None:
    database = SqlSink(url("sqlite", tmp_path), "numbers").target.database
    here, other = (job_of("run", directory=str(place), data_dir=place) for place in (tmp_path / "a", tmp_path / "b"))
    PlaceOwner(TableOwners(database, "numbers"), here)
    with pytest.raises(SinkError, match="is written to by job 'job'"):
        PlaceOwner(TableOwners(database, "numbers"), SinkContext(**{**vars_of(other), "run": "another"}))
    PlaceOwner(TableOwners(database, "numbers"), SinkContext(**{**vars_of(here), "run": "another"})).release()


def vars_of(given: SinkContext) -> dict[str, Any]:
    return {name: getattr(given, name) for name in SinkContext.__dataclass_fields__}


def test_a_row_that_was_deleted_is_written_again_and_a_busy_database_is_passed_over(tmp_path: Path) -> None:
    clock = VirtualClock(0)
    sink = SqlSink(url("sqlite", tmp_path), "numbers")
    owner = PlaceOwner(TableOwners(sink.target.database, "numbers"), job_of("run"), clock)
    with sink.target.database.transaction("forget") as connection:
        connection.execute(f"DELETE FROM {OWNERS}")
        clock.advance_to(RENEW_US)
        owner.keep()  # this very thread has the database
    assert query(sink.url, f"SELECT run FROM {OWNERS}") == []
    owner.keep()
    assert query(sink.url, f"SELECT run, renewed_us FROM {OWNERS}") == [("run", RENEW_US)]
    sink.target.database.path.unlink()
    clock.advance_to(3 * RENEW_US)
    owner.keep()
    assert not sink.target.database.path.exists()
    owner.release()
