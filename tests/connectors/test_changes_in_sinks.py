"""Sinks for changelogs: rows are replaced by key, and deleted when they are retracted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import workbench as wb
from workbench.errors import JobError, PlanError

TABLE = pa.table({"k": ["a", "b", "a", "c", "b", "a", None], "v": [1, 2, 3, 4, 5, 6, 7]})
QUERY = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM t WHERE k IS NOT NULL GROUP BY k HAVING COUNT(*) < 3"


def small_groups() -> wb.Stream:
    return wb.sql(QUERY, t=wb.Stream.from_table(TABLE))


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_database_table_has_the_rows_that_are_left(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    sink = wb.SqlSink(f"{engine}:///{path}", "rows")
    job = small_groups().sink_to(sink).run("groups", buffer_size=1, parallelism=2)
    assert job.wait("60s") == "FINISHED"
    connection = sqlite3.connect(path) if engine == "sqlite" else duckdb.connect(str(path))
    found = connection.execute("SELECT * FROM rows ORDER BY k").fetchall()  # type: ignore[union-attr]
    connection.close()
    assert found == [("b", 2, 7), ("c", 1, 4)]


def test_a_table_without_a_key_counts_equal_rows() -> None:
    job = small_groups().select("n").union(wb.Stream.from_table(pa.table({"n": [1]}))).run("sizes", buffer_size=1)
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table("sizes")["n"].to_pylist()) == [1, 1, 2]


def test_a_database_needs_a_key(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with pytest.raises(PlanError, match="no columns identify a row"):
        small_groups().select("n").sink_to(wb.SqlSink(url, "rows"))
    with pytest.raises(PlanError, match="is identified by k: use that key"):
        small_groups().sink_to(wb.SqlSink(url, "rows", upsert_key="n"))


def test_a_null_key_is_refused_by_databases_and_kept_by_tables(tmp_path: Path) -> None:
    counts = wb.Stream.from_table(TABLE).group_by("k").aggregate(n=wb.count())
    job = counts.run("counts")
    assert job.wait("60s") == "FINISHED"
    assert {row["k"]: row["n"] for row in job.table("counts").to_pylist()} == {"a": 3, "b": 2, "c": 1, None: 1}
    failing = counts.sink_to(wb.SqlSink(f"sqlite:///{tmp_path}/x.db", "rows")).run(
        "null", restart=wb.restart.no_restart()
    )
    with pytest.raises(JobError, match="is null"):
        failing.wait("60s")


def test_printed_changes_begin_with_their_kinds() -> None:
    text: list[str] = []
    counts = wb.Stream.from_table(TABLE.slice(0, 3)).group_by("k").aggregate(n=wb.count())
    job = counts.sink_to(wb.PrintSink(write=text.append)).run("printed", buffer_size=1)
    assert job.wait("60s") == "FINISHED"
    assert "".join(text).splitlines() == ["1> +I k=a, n=1", "1> +I k=b, n=1", "1> -U k=a, n=1", "1> +U k=a, n=2"]


@pytest.mark.parametrize("spread", [lambda stream: stream, lambda stream: stream.rebalance()], ids=["planned", "given"])
def test_changes_of_a_key_do_not_overtake_each_other_between_different_parallelisms(
    spread: Callable[[wb.Stream], wb.Stream], tmp_path: Path
) -> None:
    rows = 2_000
    numbers = wb.Stream.from_table(pa.table({"k": [n % 5 for n in range(rows)], "n": range(rows)}))
    groups = numbers.group_by("k").aggregate(n=wb.count(), last=wb.max("n")).with_parallelism(1)
    passed = spread(groups).with_columns(twice="last * 2").filter("n > 0")
    pipeline = passed.sink_to(wb.SqlSink(f"sqlite:///{tmp_path}/x.db", "groups"))
    job = pipeline.run("groups", parallelism=3, buffer_size=1)
    assert job.wait("60s") == "FINISHED"
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        found = sorted(database.execute("SELECT k, n, last, twice FROM groups"))
    last = [rows - 5 + k for k in range(5)]
    assert found == [(k, rows // 5, last[k], 2 * last[k]) for k in range(5)]
