"""Two jobs that start from one savepoint never lose or mix rows silently, whichever sink they write to."""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sink_job import SCHEMA, NoOutput, resolve, rows
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Sink, SinkContext
from workbench.errors import SinkError
from workbench.operators.contract.base import Operator, OperatorContext, Snapshot

ROWS = 3_000
NUMBERS = pa.table({"n": range(ROWS)})
RATE = 3_000
ENGINES = ("sqlite", "duckdb")


def pipeline(sink: Any, add: int = 0, rate: int | None = RATE) -> wb.types.Pipeline:
    source = wb.Stream.from_table(NUMBERS, rate=rate).uid("numbers")
    return source.with_columns(n=wb.col("n") + add).uid("added").sink_to(sink)


def saved(sink: Any, tmp_path: Path) -> str:
    """A savepoint of a job that has read a part of the numbers: at this pace all of them take half a minute."""
    job = pipeline(sink, rate=100).run("base", checkpoint_dir=tmp_path / "base", checkpoint_interval="50ms")
    until(lambda: job.status()["records_out"] >= 30)
    folder = job.savepoint("fork")
    job.cancel()
    job.wait("60s")
    return folder


def in_database(address: str) -> list[int]:
    engine, _, path = address.partition(":///")
    connection: Any = sqlite3.connect(path) if engine == "sqlite" else duckdb.connect(path)
    try:
        return [n for (n,) in connection.execute("SELECT n FROM numbers").fetchall()]
    finally:
        connection.close()


def whole(found: list[int], add: int) -> bool:
    """Whether each number is there once, those of the fork with what it adds."""
    return Counter(n % 100_000 for n in found) == Counter(range(ROWS)) and {n // 100_000 for n in found} == {0, add}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_the_second_fork_to_write_to_a_table_is_refused(tmp_path: Path, engine: str) -> None:
    sink = wb.SqlSink(f"{engine}:///{tmp_path}/out.db", "numbers")
    folder = saved(sink, tmp_path)

    def fork(n: int) -> wb.types.Job:
        return pipeline(sink, 100_000 * n).run(
            f"fork-{n}", restore=folder, checkpoint_dir=tmp_path / f"{n}", checkpoint_interval=None
        )

    first = fork(1)
    with pytest.raises(SinkError, match=r"'numbers' of .* is written to by job 'fork-1' of process"):
        fork(2)
    assert first.wait("60s") == "FINISHED"
    with pytest.raises(
        (wb.errors.JobError, SinkError), match=r"which this one does not continue|later than checkpoint"
    ):
        fork(2).wait("60s")
    assert whole(in_database(sink.url), 1)


def test_forks_into_tables_of_jobs_are_kept_apart(tmp_path: Path) -> None:
    folder = saved(wb.TableSink("numbers"), tmp_path)
    forks = [
        pipeline(wb.TableSink("numbers"), 100_000 * n).run(
            f"fork-{n}", restore=folder, checkpoint_dir=tmp_path / f"{n}", checkpoint_interval="50ms"
        )
        for n in (1, 2)
    ]
    for n, job in enumerate(forks, 1):
        assert job.wait("60s") == "FINISHED"
        assert whole(job.table("numbers")["n"].to_pylist(), n)


# one step after the other --------------------------------------------------------------------------------------------


def begun(sink: Sink, run: str, snapshots: list[Snapshot] | None = None) -> Operator:
    logic = sink.create(SCHEMA)
    logic.open(OperatorContext(job=run, uid="u", run=run))
    if snapshots is not None:
        logic.restore(snapshots)
    return logic


def pre_committed(logic: Operator, checkpoint_id: int, values: list[int]) -> Snapshot:
    if values:
        logic.process(rows(values), 0, NoOutput())
    return resolve(logic.snapshot(checkpoint_id))


def committed(logic: Operator, checkpoint_id: int, values: list[int]) -> Snapshot:
    snapshot = pre_committed(logic, checkpoint_id, values)
    logic.notify_complete(checkpoint_id)
    return snapshot


def database(tmp_path: Path) -> wb.SqlSink:
    return wb.SqlSink(f"sqlite:///{tmp_path}/out.db", "numbers")


def values_in(tmp_path: Path) -> list[int]:
    connection = sqlite3.connect(tmp_path / "out.db")
    try:
        return sorted(n for (n,) in connection.execute("SELECT value FROM numbers"))
    finally:
        connection.close()


def test_the_job_that_goes_on_and_its_fork_do_not_mix(tmp_path: Path) -> None:
    base = begun(database(tmp_path), "base")
    savepoint = committed(base, 1, [1])
    fork = begun(database(tmp_path), "fork", [savepoint])
    committed(base, 3, [2])
    kept = pre_committed(fork, 5, [3])  # later than all that is there: its number tells nothing
    with pytest.raises(SinkError, match=r"has rows of epoch 3 by another run of 'base/u'"):
        fork.notify_complete(5)
    for run in ("fork", "later"):  # another attempt, another process
        with pytest.raises(SinkError, match=r"has rows of epoch 3 by another run of 'base/u'"):
            begun(database(tmp_path), run, [kept])
    committed(base, 6, [4])
    assert values_in(tmp_path) == [1, 2, 4]


def test_a_fork_that_failed_before_it_committed_can_begin_again(tmp_path: Path) -> None:
    savepoint = pre_committed(begun(database(tmp_path), "base"), 1, [1])  # complete, and nobody was told
    pre_committed(begun(database(tmp_path), "fork", [savepoint]), 2, [2])
    again = begun(database(tmp_path), "again", [savepoint])
    late = committed(again, 2, [2])
    begun(database(tmp_path), "again", [late])
    third = begun(database(tmp_path), "third", [late])
    committed(third, 4, [3])
    assert values_in(tmp_path) == [1, 2, 3]


def test_two_jobs_of_one_name_that_begin_at_once_do_not_mix(tmp_path: Path) -> None:
    first, second = (begun(database(tmp_path), "base") for _ in range(2))
    second.open(OperatorContext(job="base", uid="u", run="twin"))
    late = [pre_committed(first, 1, [1]), pre_committed(second, 1, [2])]
    first.notify_complete(1)
    with pytest.raises(SinkError, match="by another run of 'base/u'"):
        second.notify_complete(1)
    assert len(late) == 2
    assert values_in(tmp_path) == [1]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_and_a_checkpoint_of_an_earlier_version_go_on(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "out.db"
    sink = wb.SqlSink(f"{engine}:///{path}", "numbers")
    connect: Any = sqlite3.connect if engine == "sqlite" else duckdb.connect
    connection = connect(str(path))
    connection.execute("CREATE TABLE numbers (key BIGINT, value BIGINT)")
    connection.execute("INSERT INTO numbers VALUES (1, 1)")
    connection.execute(
        "CREATE TABLE workbench_commits (writer VARCHAR NOT NULL, table_name VARCHAR NOT NULL, subtask INTEGER NOT "
        "NULL, epoch BIGINT NOT NULL, PRIMARY KEY (writer, table_name, subtask))"
    )
    connection.execute("INSERT INTO workbench_commits VALUES ('base/u', 'numbers', 0, 4)")
    connection.commit()
    connection.close()
    with pytest.raises(SinkError, match="already holds rows of 'base/u' up to epoch 4"):
        sink.check_fresh(SinkContext("base", "u", pa.schema([])))
    earlier: Snapshot = {"checkpoint": 4, "writer": "base/u"}
    with pytest.raises(SinkError, match="has rows of epoch 4, later than checkpoint 3 to restore"):
        begun(sink, "behind", [earlier | {"checkpoint": 3}])
    forks = [begun(sink, run, [earlier]) for run in ("one", "two")]
    committed(forks[0], 5, [2])
    pre_committed(forks[1], 5, [3])
    with pytest.raises(SinkError, match="has rows of epoch 5 by another run"):
        forks[1].notify_complete(5)
    committed(forks[0], 6, [4])
    connection = connect(str(path))
    assert sorted(connection.execute("SELECT value FROM numbers").fetchall()) == [(1,), (2,), (4,)]
    assert connection.execute("SELECT epoch, run FROM workbench_commits").fetchall() == [(6, "one")]
    connection.close()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_second_fork_to_commit_a_part_is_refused(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "out"
    sink: Any = wb.ParquetSink(folder) if kind == "parquet" else wb.FileSink(folder, format="csv")
    savepoint = committed(begun(sink, "base"), 1, [1])
    forks = [begun(sink, run, [savepoint]) for run in ("one", "two")]
    for fork, value in zip(forks, (2, 3), strict=True):
        pre_committed(fork, 2, [value])
    forks[0].notify_complete(2)
    with pytest.raises(SinkError, match="exists and would be overwritten by"):
        forks[1].notify_complete(2)
    assert sorted(n for (n,) in duckdb.sql(f"SELECT value FROM '{folder}/part-*.{kind}'").fetchall()) == [1, 2]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_forks_whose_epochs_differ_do_not_mix_in_a_folder(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "out"
    sink: Any = wb.ParquetSink(folder) if kind == "parquet" else wb.FileSink(folder, format="csv")
    savepoint = committed(begun(sink, "base"), 1, [1])
    one, two = (begun(sink, run, [savepoint]) for run in ("one", "two"))
    committed(one, 2, [2])
    committed(one, 4, [4])
    for epoch in (3, 5):  # between those that are there, and behind them
        pre_committed(two, epoch, [3])
        with pytest.raises(SinkError, match="committed by another job that writes to this folder"):
            two.notify_complete(epoch)
    committed(one, 6, [6])
    assert sorted(n for (n,) in duckdb.sql(f"SELECT value FROM '{folder}/part-*.{kind}'").fetchall()) == [1, 2, 4, 6]
