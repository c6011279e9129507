"""A failure during a restart counts like any other failure, unless another restart could not help (F2-7)."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.connectors.sql.database import DatabaseFile
from workbench.connectors.sql.sink import ENGINES
from workbench.connectors.sql.table import SqlTable
from workbench.connectors.tables.table_sink import _TableSinkLogic
from workbench.drivers.faults.faults import Fault, FaultPlan
from workbench.errors import (
    CommittedRowsError,
    CorruptCheckpointError,
    JobError,
    PlanError,
    SinkError,
    UnreadableCheckpointError,
    sentence_of,
)
from workbench.lab.pipelines.topologies import TOPOLOGIES
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.simulation import run_scenario
from workbench.runtime.job.restarts import is_final
from workbench.runtime.storage import DirectoryStorage, MemoryStorage
from workbench.runtime.storage.files import LocalFiles

LOCKED = SinkError("database is locked")
EIO = OSError(5, "Input/output error")


def failing(patch: pytest.MonkeyPatch, owner: type, name: str, error: Exception, times: int = 1) -> Callable[[], int]:
    """Have a method raise so many times; how often it was called."""
    real, calls = getattr(owner, name), [0]

    def method(*args: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] <= times:
            raise error
        return real(*args, **options)

    patch.setattr(owner, name, method)
    return lambda: calls[0]


def numbers(column: str = "n", count: int = 400) -> wb.Stream:
    return wb.Stream.from_table(pa.table({column: range(count)}), rate=1000)


def job_to(sink: Any, tmp_path: Path, restart: object = None, **settings: Any) -> wb.types.Job:
    stream = numbers().uid("source").rebalance().filter("n >= 0").uid("keep")
    return stream.sink_to(sink).run(
        "again",
        driver="stepping",
        buffer_size=10,
        checkpoint_dir=tmp_path / "checkpoints",
        checkpoint_interval="20ms",
        restart=restart or wb.restart.fixed_delay(3, "50ms"),
        **settings,
    )


def texts(job: wb.types.Job) -> list[str]:
    return [event.text for event in job.recorder.latest().events]  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "method", "error"),
    [(SqlTable, "prepare", LOCKED), (LocalFiles, "read", EIO), (SqlTable, "commit", LOCKED)],
)
def test_what_does_not_answer_once_costs_one_restart_more(
    owner: type, method: str, error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_to(wb.SqlSink(f"sqlite:///{tmp_path}/rows.db", "r"), tmp_path)
    assert job.stepper.driver.next_checkpoint()
    job.fail("keep[0]")
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    called = failing(monkeypatch, owner, method, error)
    assert job.wait("60s") == "FINISHED"
    assert called() > 1
    assert job.status()["restarts"] == 2
    with sqlite3.connect(tmp_path / "rows.db") as database:
        assert [n for (n,) in database.execute("SELECT n FROM r ORDER BY n")] == list(range(400))
    database.close()
    states = [event.text for event in job.recorder.latest().events if event.kind == "state"]  # type: ignore[union-attr]
    again = ["FAILING", "RESTARTING", "INITIALIZING"]
    assert states == ["INITIALIZING", "RUNNING", *again, *again, "RUNNING", "FINISHED"]


def test_what_never_answers_uses_the_restart_strategy_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_to(wb.DiscardSink(), tmp_path, wb.restart.fixed_delay(3, "1s"))
    assert job.stepper.driver.next_checkpoint()
    job.fail("keep[0]")
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    begun_us = job.stepper.driver.clock.now_us()
    called = failing(monkeypatch, LocalFiles, "read", EIO, times=99)
    with pytest.raises(
        JobError, match=r"cannot be read now: .*Input/output error; try again when .*\(could not start a"
    ):
        job.wait("60s")
    assert called() == 3
    assert job.stepper.driver.clock.now_us() - begun_us >= 3_000_000
    assert "gave up at failure 4 (restart=fixed-delay:attempts=3,delay=1s)" in texts(job)
    metrics = job.recorder.latest().metrics  # type: ignore[union-attr]
    assert metrics["restartingTime"] >= 3_000


@pytest.mark.parametrize(
    "error", [CorruptCheckpointError("torn"), CommittedRowsError("rows of epoch 9"), PlanError("p")]
)
def test_what_would_come_again_ends_the_job_at_once(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_final(error)
    job = job_to(wb.TableSink("rows"), tmp_path)
    assert job.stepper.driver.next_checkpoint()
    job.fail("keep[0]")
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    called = failing(monkeypatch, LocalFiles, "read", error)
    with pytest.raises(JobError, match=str(error)):
        job.wait("60s")
    assert called() == 1
    assert job.status()["restarts"] == 1
    assert not any(text.startswith("gave up") for text in texts(job))


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    ("mode", "change"),
    [
        ({}, "DROP TABLE r"),
        ({}, "DROP TABLE r; CREATE TABLE r (m BIGINT)"),
        ({"upsert_key": "n"}, "DROP TABLE r; CREATE TABLE r (n BIGINT)"),
    ],
)
def test_a_table_that_does_not_fit_any_more_ends_the_job_at_once(
    engine: str, mode: dict[str, Any], change: str, tmp_path: Path
) -> None:
    if engine == "duckdb":
        pytest.importorskip("duckdb")
    database = DatabaseFile.at(f"{engine}:///{tmp_path}/rows.db", ENGINES)

    def execute(statements: str) -> None:
        with database.transaction("prepare the test") as connection:
            for statement in statements.split(";"):
                connection.execute(statement)

    execute("CREATE TABLE r (n BIGINT PRIMARY KEY)")
    job = job_to(wb.SqlSink(database.url, "r", create=False, **mode), tmp_path)
    assert job.stepper.driver.next_checkpoint()
    job.fail("keep[0]")
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    execute(change)
    with pytest.raises(
        JobError, match=r"cannot write to the table 'r' of .*rows.db: .*; fix this and resume \(could not"
    ):
        job.wait("60s")
    assert job.status()["restarts"] == 1
    assert not any(text.startswith("gave up") for text in texts(job))


def test_whatever_fails_the_first_start_is_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, SqlTable, "prepare", LOCKED)
    with pytest.raises(SinkError, match="database is locked"):
        job_to(wb.SqlSink(f"sqlite:///{tmp_path}/rows.db", "r"), tmp_path)


@pytest.mark.slow
def test_a_region_that_cannot_start_again_tries_again_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    left = numbers("a").uid("left").rebalance().filter("a >= 0").uid("keep").sink_to(wb.TableSink("left-rows"))
    right = numbers("b").uid("right").rebalance().filter("b >= 0").uid("hold").sink_to(wb.TableSink("right-rows"))
    job = (left + right).run(
        "regions", driver="stepping", buffer_size=10, checkpoint_interval="20ms", restart="fixed-delay"
    )
    driver = job.stepper.driver
    assert driver.next_checkpoint()
    before = {task.name: task for task in driver.master.execution.tasks}  # type: ignore[union-attr]
    called = failing(monkeypatch, MemoryStorage, "states", EIO, times=2)
    job.fail("keep[0]")
    assert driver.run_until(lambda: called() >= 3)
    assert job.state == "RUNNING"
    driver.run_until(lambda: len(driver.master.execution.tasks) == 4)  # type: ignore[union-attr]
    after = {task.name: task for task in driver.master.execution.tasks}  # type: ignore[union-attr]
    assert {name for name in before if before[name] is after[name]} == {"right[0]", "hold[0]"}
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 3
    assert any(text.startswith("starting left -> keep again failed: OSError") for text in texts(job))
    assert sorted(job.table("left-rows")["a"].to_pylist()) == list(range(400))
    assert sorted(job.table("right-rows")["b"].to_pylist()) == list(range(400))


class Counted(wb.functions.ProcessFunction):
    """Counts how often it is opened and closed."""

    opened = closed = 0

    def open(self) -> None:
        type(self).opened += 1

    def process(self, record: Any, state: Any, ctx: Any) -> Any:
        return record

    def close(self) -> None:
        type(self).closed += 1


def test_what_was_opened_is_closed_once_when_a_start_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    Counted.opened = Counted.closed = 0
    stream = numbers().key_by("n").process(Counted(), {"n": pa.int64()}).uid("counted")
    job = stream.sink_to(wb.TableSink("rows")).run("closes", driver="stepping", restart=wb.restart.fixed_delay(2, "1s"))
    job.fail("counted[0]")
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING")
    assert (Counted.opened, Counted.closed) == (1, 1)
    failing(monkeypatch, _TableSinkLogic, "open", TimeoutError("the service does not answer"))
    assert job.stepper.driver.run_until(lambda: job.status()["restarts"] == 2)
    assert (Counted.opened, Counted.closed) == (2, 2)
    job.cancel()
    assert job.wait("60s") == "CANCELED"
    assert (Counted.opened, Counted.closed) == (2, 2)


def test_a_file_that_cannot_be_read_now_is_not_one_to_delete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_to(wb.TableSink("rows"), tmp_path)
    assert job.stepper.driver.next_checkpoint()
    job.cancel()
    job.wait("60s")
    for error in (EIO, PermissionError(13, "Permission denied"), TimeoutError("the store does not answer")):
        with monkeypatch.context() as patch:
            failing(patch, LocalFiles, "read", error, times=99)
            fix = "change its permissions" if isinstance(error, PermissionError) else "try again"
            with pytest.raises(UnreadableCheckpointError, match=rf"cannot be read now: .*; {fix}") as raised:
                job_to(wb.TableSink("rows"), tmp_path, resume=True)
        assert "delete" not in str(raised.value)
        assert not is_final(raised.value)
    assert job_to(wb.TableSink("rows"), tmp_path, resume=True).wait("60s") == "FINISHED"


@pytest.mark.slow
@pytest.mark.parametrize("error", [EIO, PermissionError(13, "Permission denied")])
@pytest.mark.parametrize("closed", ["the latest", "all"])
def test_a_checkpoint_that_cannot_be_looked_at_is_not_taken_for_one_that_never_was(
    closed: str, error: OSError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_to(wb.TableSink("rows"), tmp_path)
    for _ in range(3):
        assert job.stepper.driver.next_checkpoint()
    job.cancel()
    job.wait("60s")
    folders = sorted(folder.name for folder in (tmp_path / "checkpoints").glob("chk-*"))[
        -1 if closed == "the latest" else 0 :
    ]
    before = {file: file.read_bytes() for file in tmp_path.glob("*/**/*") if file.is_file()}
    stat = os.stat

    def refuse(path: Any, **options: Any) -> os.stat_result:
        if Path(str(path)).parent.name in folders:
            raise error
        return stat(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", refuse)
        with pytest.raises(UnreadableCheckpointError, match=rf"{folders[0]}/manifest.json: {error.strerror}; "):
            job_to(wb.TableSink("rows"), tmp_path, resume=True)
    assert {file: file.read_bytes() for file in tmp_path.glob("*/**/*") if file.is_file()} == before
    again = job_to(wb.TableSink("rows"), tmp_path, resume=True)
    assert any(f"restored from {folders[-1]}" in text for text in texts(again))
    assert again.wait("60s") == "FINISHED"
    assert sorted(again.table("rows")["n"].to_pylist()) == list(range(400))


@pytest.mark.parametrize("resume", [False, True])
def test_a_checkpoint_directory_that_cannot_be_listed_is_told(
    resume: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, LocalFiles, "folders", PermissionError(13, "Permission denied"), times=99)
    said = (
        r"the checkpoint directory .* cannot be used \(Permission denied\): change its permissions, or choose another"
    )
    with pytest.raises(UnreadableCheckpointError, match=said):
        job_to(wb.TableSink("rows"), tmp_path, resume=resume)


@pytest.mark.parametrize("kind", ["crash", "error", "broken"])
def test_simulated_restarts_fail_too(kind: Any) -> None:
    for seed in (4, 8, 10):
        plan = FaultPlan((Fault("step", 60, "crash"), Fault("restore read", 1, kind)))
        scenario = Scenario(seed, {"latest": TOPOLOGIES["latest"]}, faults=plan, actions=(), durable=True, long=True)
        result = run_scenario(scenario)
        assert result.ok, result
        assert (len(result.faults), result.processes, result.restarts) == (2, 1, 2)


# no other master, or no other process, can take over yet --------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("error", [EIO, UnreadableCheckpointError("the manifest cannot be read now")])
def test_a_coordinator_gets_its_successor_when_the_storage_answers_again(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_to(wb.TableSink("rows"), tmp_path, wb.restart.fixed_delay(3, "1s"))
    assert job.stepper.driver.next_checkpoint()
    called = failing(monkeypatch, DirectoryStorage, "latest", error, times=2)
    first, begun_us = job.stepper.driver.master, job.stepper.driver.clock.now_us()
    job.faults.fail(coordinator=True)
    assert job.stepper.driver.run_until(lambda: called() == 1)
    assert job.stepper.driver.run_until(lambda: job.state == "RESTARTING" and job.status()["restarts"] == 2)
    assert job.wait("60s") == "FINISHED"
    assert job.stepper.driver.master is not first
    assert called() == 3
    assert job.stepper.driver.clock.now_us() - begun_us >= 2_000_000
    assert job.status()["restarts"] == 3
    assert [text for text in texts(job) if text.startswith("no other coordinator could take over: ")] == 2 * [
        f"no other coordinator could take over: {sentence_of(error)}"
    ]
    assert sorted(job.table("rows")["n"].to_pylist()) == list(range(400))


def test_a_live_coordinator_gets_its_successor_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = wb.Stream.from_table(pa.table({"n": range(400)}), rate=5).sink_to(wb.TableSink("rows"))
    job = stream.run(
        "live", checkpoint_dir=tmp_path, checkpoint_interval="20ms", restart=wb.restart.fixed_delay(2, "50ms")
    )
    called = failing(monkeypatch, DirectoryStorage, "latest", EIO)
    job.faults.fail(coordinator=True)
    job.tune(rate="max")  # until here it was too slow to end meanwhile
    assert job.wait("60s") == "FINISHED"
    assert called() == 2
    assert sorted(job.table("rows")["n"].to_pylist()) == list(range(400))


@pytest.mark.parametrize(("error", "calls", "restarts"), [(EIO, 3, 3), (CorruptCheckpointError("torn"), 1, 1)])
def test_a_coordinator_without_successor_ends_the_job_by_the_restart_strategy(
    error: Exception, calls: int, restarts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_to(wb.TableSink("rows"), tmp_path, wb.restart.fixed_delay(3, "1s"))
    assert job.stepper.driver.next_checkpoint()
    called = failing(monkeypatch, DirectoryStorage, "latest", error, times=99)
    job.faults.fail(coordinator=True)
    with pytest.raises(JobError, match=r"(Input/output error|torn) \(no other coordinator could take over"):
        job.wait("60s")
    assert called() == calls
    assert job.status()["restarts"] == restarts
    assert any(text.startswith("gave up at failure 4") for text in texts(job)) == (calls > 1)


def test_a_job_that_waits_for_another_coordinator_can_be_canceled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_to(wb.TableSink("rows"), tmp_path, wb.restart.fixed_delay(3, "1s"))
    assert job.stepper.driver.next_checkpoint()
    called = failing(monkeypatch, DirectoryStorage, "latest", EIO)
    job.faults.fail(coordinator=True)
    assert job.stepper.driver.run_until(lambda: job.status()["restarts"] == 2)
    job.cancel()
    assert job.wait("60s") == "CANCELED"
    assert called() == 1


def test_another_coordinator_drops_the_state_that_the_first_one_was_to_drop(tmp_path: Path) -> None:
    def counted(uid: str) -> Any:
        return numbers().uid("source").key_by("n").aggregate(c=wb.count()).uid(uid).sink_to(wb.TableSink("rows"))

    first = counted("before").run("first", driver="stepping", buffer_size=10, checkpoint_dir=tmp_path / "c")
    first.stepper.step(60)
    first.savepoint("kept")
    first.cancel()
    first.wait("60s")
    job = counted("after").run(
        "again",
        driver="stepping",
        buffer_size=10,
        checkpoint_dir=tmp_path / "c",
        restore="kept",
        allow_non_restored_state=True,
    )
    job.faults.fail(coordinator=True)
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 1
    assert sorted(job.table("rows")["n"].to_pylist()) == list(range(400))
