"""FileSink: CSV and JSON-lines files that hold exactly the committed rows, whatever crashes when."""

from __future__ import annotations

import csv
import errno
import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from io import FileIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sink_job import CRASH_POINTS, SinkJob, crash_at, go_on

import workbench as wb
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.parts import part_sink
from workbench.connectors.parts.file_sink import FileSink
from workbench.durable.disk import DISK, Disk
from workbench.errors import SettingError, SinkError


def csv_values(part: Path) -> list[int]:
    with part.open(newline="") as file:
        return [int(row["value"]) for row in csv.DictReader(file)]


def json_values(part: Path) -> list[int]:
    return [json.loads(line)["value"] for line in part.read_text().splitlines()]


def parquet_values(part: Path) -> list[int]:
    return list(pq.read_table(part)["value"].to_pylist())


READERS: dict[str, tuple[str, Callable[[Path], list[int]]]] = {
    "csv": ("csv", csv_values),
    "json": ("jsonl", json_values),
    "parquet": ("parquet", parquet_values),
}
EVERY = pytest.mark.parametrize("form", READERS)


def visible(folder: Path, form: str) -> list[int]:
    """What another program reads."""
    suffix, read = READERS[form]
    assert {path.suffix for path in folder.glob("part-*")} <= {f".{suffix}"}
    return sorted(value for part in folder.glob(f"part-*.{suffix}") for value in read(part))


@EVERY
@pytest.mark.parametrize("point", CRASH_POINTS)
@pytest.mark.parametrize(("parallelism", "killed"), [(1, True), (2, False), (3, True)])
def test_crash_points(tmp_path: Path, form: Any, point: str, parallelism: int, killed: bool) -> None:
    job = SinkJob(FileSink(tmp_path, form), None, parallelism=2)
    crash_at(point, job, lambda: visible(tmp_path, form), parallelism=parallelism, killed=killed)
    assert list(tmp_path.glob(".pending-*")) == []
    go_on(job, lambda: visible(tmp_path, form), killed=killed)


class NotedDisk(Disk):
    """Notes each file that is written; on request, a disk without hard links, or one that deletes nothing."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.has_links = True
        self.deletes = True

    def write(self, file: FileIO, path: str, data: Any) -> None:
        self.written.append(path)
        super().write(file, path, data)

    def link(self, source: str, target: str) -> None:
        if not self.has_links and Path(source).exists():
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        super().link(source, target)

    def delete(self, path: str) -> None:
        if not self.deletes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().delete(path)


def inodes(folder: Path) -> dict[str, tuple[int, int]]:
    """Of each part file, what changes if the file is written again, even with the same bytes."""
    stats = {path.name: path.stat() for path in folder.glob("part-*")}
    return {name: (stat.st_ino, stat.st_mtime_ns) for name, stat in stats.items()}


@EVERY
@pytest.mark.parametrize("has_links", [True, False])
def test_a_commit_that_is_tried_again_writes_no_file_again(tmp_path: Path, form: Any, has_links: bool) -> None:
    disk = NotedDisk()
    disk.has_links = has_links
    token = DISK.set(disk)
    try:
        job = SinkJob(FileSink(tmp_path, form), None, parallelism=2)
        job.process(10)
        first = job.trigger()
        job.process(5)
        second = job.trigger()  # lists the files of the first too
        job.write(first)
        job.write(second)
        assert len(disk.written) == len(set(disk.written)) == 4
        if has_links:
            disk.deletes = False
            with pytest.raises(SinkError, match="cannot rename"):
                job.notify(second)  # each file of a subtask has both of its names now
            disk.deletes = True
        else:
            job.notify(second, only=lambda index: index == 0)
        committed = inodes(tmp_path)
        assert len(committed) == 2
        for _ in range(2):  # the first time some hidden names still exist, the second time none does
            job.crash(killed=True)
            assert inodes(tmp_path).items() >= committed.items()
            committed = inodes(tmp_path)
            assert len(committed) == 4
        assert len(disk.written) == 4
    finally:
        DISK.reset(token)
    assert visible(tmp_path, form) == list(range(15))


@EVERY
def test_many_rows_roll_to_further_files(tmp_path: Path, form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_sink, "_FILE_ROWS_MAX", 10)
    job = SinkJob(FileSink(tmp_path, form), None)
    for _ in range(5):
        job.process(6)
    job.checkpoint()
    suffix, read = READERS[form]
    names = [f"part-00000001-0000-00{number}.{suffix}" for number in range(3)]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert [len(read(tmp_path / name)) for name in names] == [12, 12, 6]


@EVERY
def test_a_fresh_start_beside_committed_rows_is_refused(tmp_path: Path, form: Any) -> None:
    job = SinkJob(FileSink(tmp_path, form), None)
    job.process(4)
    job.checkpoint()
    for other in READERS:
        with pytest.raises(SinkError, match=r"already holds 1 committed files.*choose another path, or resume"):
            FileSink(tmp_path, other).check_fresh(SinkContext("job", "out", pa.schema([])))  # type: ignore[arg-type]


LEAP, EPOCH = datetime(2024, 2, 29, 1, 2, 3, 4, UTC), datetime(1970, 1, 1, tzinfo=UTC)
ROWS = pa.table(
    {
        "text": pa.array(['say "ä", now\n', None, ""]),
        "kind": pa.array(["a", "b", None]).dictionary_encode(),
        "x": pa.array([0.1, None, -2.5]),
        "yes": pa.array([True, None, False]),
        "at": pa.array(
            [datetime(2024, 2, 29, 1, 2, 3, 4, UTC), None, datetime(1970, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")
        ),
        "day": pa.array([date(2024, 2, 29), None, date(1970, 1, 1)]),
        "took": pa.array([timedelta(seconds=3), None, timedelta(0)], pa.duration("ms")),
        "price": pa.array([Decimal("1.50"), None, Decimal("0.00")], pa.decimal128(5, 2)),
    }
)


def written(table: pa.Table, folder: Path, form: Any) -> Path:
    job = wb.Stream.from_table(table).sink_to(wb.FileSink(folder, form)).run(f"write-{form}")
    job.wait("120s")
    [part] = folder.glob("part-*")
    return part


def test_csv_as_it_is_written(tmp_path: Path) -> None:
    assert written(ROWS, tmp_path / "out", "csv").read_text() == (
        '"text","kind","x","yes","at","day","took","price"\n'
        '"say ""ä"", now\n","a",0.1,true,2024-02-29 01:02:03.000004Z,2024-02-29,3000,1.50\n'
        ',"b",,,,,,\n'
        '"",,-2.5,false,1970-01-01 00:00:00.000000Z,1970-01-01,0,0.00\n'
    )


def test_json_as_it_is_written(tmp_path: Path) -> None:
    table = ROWS.append_column("nested", pa.array([{"t": datetime(2024, 1, 1), "l": [1.5, float("nan")]}, None, None]))
    table = table.append_column("odd", pa.array([float("inf"), float("nan"), 1e300]))
    assert written(table, tmp_path / "out", "json").read_text() == (
        '{"text":"say \\"ä\\", now\\n","kind":"a","x":0.1,"yes":true,"at":"2024-02-29 01:02:03.000004Z",'
        '"day":"2024-02-29","took":3000,"price":"1.50","nested":{"t":"2024-01-01 00:00:00","l":[1.5,null]},'
        '"odd":null}\n'
        '{"text":null,"kind":"b","x":null,"yes":null,"at":null,"day":null,"took":null,"price":null,"nested":null,'
        '"odd":null}\n'
        '{"text":"","kind":null,"x":-2.5,"yes":false,"at":"1970-01-01 00:00:00.000000Z","day":"1970-01-01","took":0,'
        '"price":"0.00","nested":null,"odd":1e+300}\n'
    )


@EVERY
def test_what_is_written_can_be_read_again(tmp_path: Path, form: Any) -> None:
    days = [] if form == "json" else ["day"]  # Arrow reads no dates from JSON
    table = ROWS.select(["x", "yes", "at", *days]).append_column("text", pa.array(['a,"b"', "c\nd", ""]))
    written(table, tmp_path / "out", form)
    job = wb.Stream.from_files(tmp_path / "out", table.schema).sink_to(wb.TableSink("back")).run("read")
    job.wait("120s")
    assert job.table("back").equals(table)


def test_what_a_format_cannot_hold_is_refused_when_the_graph_is_built(tmp_path: Path) -> None:
    lists = wb.Stream.from_table(pa.table({"n": pa.array([[1]])}))
    with pytest.raises(SinkError, match=r"CSV cannot hold these columns.*list<"):
        lists.sink_to(FileSink(tmp_path / "out", "csv"))
    lists.sink_to(FileSink(tmp_path / "out", "json"))
    for kind in (pa.binary(), pa.list_(pa.binary()), pa.map_(pa.string(), pa.int64()), pa.month_day_nano_interval()):
        with pytest.raises(SinkError, match="JSON cannot hold these columns: column 'v' is "):
            FileSink(tmp_path / "out", "json").check(pa.schema({"v": kind}))
    for kind in (pa.binary(), pa.binary(3), pa.large_binary(), pa.dictionary(pa.int8(), pa.binary())):
        with pytest.raises(SinkError, match="CSV cannot hold these columns: column 'v' is "):
            FileSink(tmp_path / "out", "csv").check(pa.schema({"v": kind}))
    FileSink(tmp_path / "out", "json").check(pa.schema({"v": pa.int64()}))
    with pytest.raises(SinkError, match="JSON cannot hold these columns: column 'v' is "):  # whoever asks again
        FileSink(tmp_path / "out", "json").check(pa.schema({"v": pa.binary()}))
    with pytest.raises(SinkError, match="CSV cannot hold"):
        FileSink(tmp_path / "out", "csv").check(pa.schema({"v": pa.month_day_nano_interval()}))
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(SettingError, match="unknown file format 'cvs': did you mean 'csv'"):
        FileSink("out", "cvs")  # type: ignore[arg-type]


def test_two_sinks_in_one_folder_are_refused(tmp_path: Path) -> None:
    stream = wb.Stream.from_table(ROWS)
    both = stream.sink_to(wb.FileSink(tmp_path / "out", "csv")) + stream.sink_to(wb.ParquetSink(tmp_path / "out"))
    with pytest.raises(wb.errors.PlanError, match="two sinks write to"):
        both.run("both")
