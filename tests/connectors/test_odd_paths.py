"""Paths that are not UTF-8, and folders without permission: they work, or an error names them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.api.kept.job_record import KnownDirectories

NAME = os.fsdecode(b"caf\xe9")
NUMBERS = pa.table({"n": [1, 2]})
TIMES = pa.table({"n": [1, 2], "t": pa.array([1, 2], pa.timestamp("s"))})


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder whose name is no UTF-8."""
    (folder := tmp_path / NAME).mkdir()
    return folder


def run(sink: Any, name: str = "odd", **settings: Any) -> wb.types.Job:
    job = wb.Stream.from_table(NUMBERS).sink_to(sink).run(name, restart=wb.restart.no_restart(), **settings)
    assert job.wait("60s") == "FINISHED"
    return job


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_file_that_arrow_cannot_open_is_named(odd: Path, name: str) -> None:
    (odd / "a.csv").write_text("n\n1\n")
    (odd / "a.jsonl").write_text('{"n": 1}\n')
    with (odd / "a.parquet").open("wb") as file:
        pq.write_table(NUMBERS, file)
    with pytest.raises(
        wb.errors.SourceError, match=r"caf\\udce9/.* is not UTF-8, which Arrow cannot open: rename it"
    ) as told:
        wb.Stream.from_files(odd / name)
    str(told.value).encode()


@pytest.mark.parametrize(
    "act",
    [
        lambda odd: wb.History.from_arrow(TIMES, odd / "h", event_time="t", arrival_time="t", progress=False),
        lambda odd: wb.Stream.replay(odd / "h"),
        lambda odd: wb.Stream.from_files(odd / "none.csv"),
        lambda odd: run(wb.SqlSink(f"sqlite:///{odd}/out.db", "t")),
        lambda odd: wb.Recording.open(odd / "r"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence_that_can_be_printed(odd: Path, act: Callable[[Path], object]) -> None:
    with pytest.raises(wb.errors.WorkbenchError, match=r"caf\\udce9") as told:
        act(odd)
    str(told.value).encode()


def test_databases_below_such_a_working_directory(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(odd)
    run(wb.SqlSink("sqlite:///out.db", "t"))
    with pytest.raises(wb.errors.SinkError, match=r"DuckDB cannot open .*caf\\udce9/out.duckdb, which is not UTF-8"):
        run(wb.SqlSink("duckdb:///out.duckdb", "t"))


def test_files_and_checkpoints_may_lie_there(odd: Path, tmp_path: Path) -> None:
    run(wb.ParquetSink(odd / "parts"), "parts", checkpoint_dir=odd / "first")
    assert [part.suffix for part in (odd / "parts").glob("part-*")] == [".parquet"]
    run(wb.TableSink("t"), "table", checkpoint_dir=odd / "second")
    again = run(wb.TableSink("t"), "again", checkpoint_dir=odd / "second", resume=True)
    assert again.table().to_pylist() == NUMBERS.to_pylist()
    refused = rf"{NAME.encode('unicode_escape').decode()!r}/second.*".replace("'", "")
    with pytest.raises(
        wb.errors.CheckpointError, match=rf"{refused}the latest is \d+, written by process {os.getpid()} on"
    ):
        run(wb.TableSink("t"), "table", checkpoint_dir=odd / "second")
    found = wb.found_jobs(odd)
    assert [job.name for job in found] == ["parts", "again"]
    repr(found).encode()
    assert f"started with Python by process {os.getpid()} on" in repr(found)
    known = KnownDirectories(tmp_path / "known")
    known.add(str(odd / "first"))


def test_a_folder_that_may_not_be_looked_into_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(self))

    stream = wb.Stream.from_table(NUMBERS)
    pipeline = stream.sink_to(wb.ParquetSink(tmp_path / "out"))
    with monkeypatch.context() as denied:
        denied.setattr(Path, "exists", refuse)
        with pytest.raises(
            wb.errors.SinkError, match=r"cannot list the folder .*out: Permission denied; change its perm"
        ):
            stream.sink_to(wb.ParquetSink(tmp_path / "out"))
    known = KnownDirectories(tmp_path / "known")
    known.add(str(tmp_path))
    with monkeypatch.context() as denied:
        stat = Path.stat
        denied.setattr(Path, "stat", lambda self, **links: refuse(self) if self == tmp_path else stat(self, **links))
        assert known.locations() == []  # and it is not forgotten
        denied.setattr(Path, "iterdir", refuse)
        with pytest.raises(wb.errors.SinkError, match=r"cannot list the folder .*out: Permission denied"):
            pipeline.run("refused")
    assert known.locations() == [str(tmp_path)]
