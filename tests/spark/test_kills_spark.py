"""Real ``kill -9`` of a process and its JVM, in the middle of a batch of each of several jobs on Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spark_connectors
import spark_feeds
from databases import query

PROGRAM = Path(__file__).parents[1] / "support" / "spark_kill_job.py"
LATE = 100

pytestmark = pytest.mark.spark


@contextmanager
def program(folder: Path, how: str, ends_with: int) -> Iterator[subprocess.Popen[str]]:
    """The jobs in a group of processes of their own."""
    with (folder / f"{how}.txt").open("w") as told:
        started = subprocess.Popen(
            [sys.executable, PROGRAM, folder, how], stdout=told, stderr=told, start_new_session=True, text=True
        )
        try:
            yield started
            assert started.wait(2 * spark_feeds.PATIENCE_S) == ends_with, (folder / f"{how}.txt").read_text()[-2_000:]
        finally:
            started.kill()
            started.wait()


def parts(folder: Path) -> pa.Table:
    return pa.concat_tables(pq.read_table(part) for part in sorted(folder.glob("part-*.parquet")))


def counted(table: pa.Table) -> Counter[tuple[str, int]]:
    return Counter((row["source"], row["n"]) for row in table.to_pylist())


def test_what_ends_in_the_middle_of_a_batch_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed with its JVM, and at last a JVM alone; with sources and sinks of every kind, at each
    place in a batch."""
    passwords = spark_connectors.PASSWORDS | spark_feeds.PASSWORDS
    for name, value in passwords.items():
        monkeypatch.setenv(name, value)
    with spark_connectors.servers(tmp_path) as between, spark_feeds.feeds(tmp_path) as feeds:
        with program(tmp_path, "killed", -9) as process:
            feeds.send(0, process)
        stored, called = feeds.written(), feeds.called()
        with program(tmp_path, "resumed", 0) as process:
            feeds.send(spark_feeds.ROWS, process)
        found = between.written()
    everything = spark_connectors.EXPECTED
    assert {name for name, rows in found.items() if rows != everything} == set()
    lines = (tmp_path / "called.jsonl").read_text().splitlines()
    assert Counter(tuple(json.loads(line).values()) for line in lines) == everything  # its batch was recorded as done

    assert feeds.written() == spark_feeds.expected(2)
    again = {row for row, times in feeds.called().items() if times == 2 and row[1] != spark_feeds.PROBE}
    assert again == {row for row in called if row not in stored and row[1] != spark_feeds.PROBE} != set()
    assert feeds.called().keys() - again >= stored.keys()

    of_history = Counter(("log", n) for n in range(spark_connectors.ROWS))
    assert Counter(query(f"sqlite:///{tmp_path}/native.sqlite", "SELECT source, n FROM rows")) == of_history
    assert counted(parts(tmp_path / "native")) == of_history
    assert counted(pq.read_table(tmp_path / "native.parquet")) == of_history

    assert pq.read_table(tmp_path / "sessions.parquet")["n"].to_pylist() == [20] * 150
    times = parts(tmp_path / "events")["t"].to_pylist()
    assert len(times) == len(set(times)) == 3_000 + LATE

    told = json.loads((tmp_path / "told.json").read_text())
    assert 0 < told["late"] <= LATE  # of the second process
    assert told["problems"] == []
    assert told["tiers"] == {"sessions": "carried", "native": "carried", "connected": "carried", "random": "carried"}
    assert min(told["batches"].values()) > 0
    assert "the JVM of Spark has ended" in told["orphan"]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if any(each.encode() in path.read_bytes() for each in passwords.values())] == []
