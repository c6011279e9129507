"""Paths that the system refuses: every call that takes a path raises an error that names it, never a raw OSError."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from unprivileged import unprivileged

import workbench as wb
from workbench.connectors.replay.log import write_log
from workbench.errors import SettingError, WorkbenchError

ROWS = pa.table({"n": range(10), "t": range(10)})
_runs = count()


def rows() -> wb.Stream:
    return wb.Stream.from_table(ROWS, event_time="t")


def run(pipeline: wb.Pipeline, **settings: Any) -> None:
    job = pipeline.run(f"unusable-{next(_runs)}", restart="none", **settings)
    try:
        job.wait("60s")
    finally:
        job.cancel()


@pytest.fixture(scope="module")
def ended() -> wb.types.Job:
    job = rows().sink_to(wb.DiscardSink()).run("unusable-ended")
    job.wait("60s")
    return job


WRITES: dict[str, Callable[[str, wb.types.Job], object]] = {
    "checkpoint_dir": lambda path, ended: run(rows().sink_to(wb.DiscardSink()), checkpoint_dir=path),
    "checkpoint_dir of tables": lambda path, ended: run(rows().sink_to(wb.TableSink("t")), checkpoint_dir=path),
    "Job.recording": lambda path, ended: ended.recording(path),
    "Recording.save": lambda path, ended: ended.recording().save(path),
    "Job.report": lambda path, ended: ended.report(path),
    "Recording.report": lambda path, ended: ended.recording().report(path),
    "Dashboard.save": lambda path, ended: ended.dashboard().save(path),
    "write_log": lambda path, ended: write_log(ROWS, path, event_time="t", arrival_time="n"),
    "History.from_arrow": lambda path, ended: wb.History.from_arrow(
        ROWS, path, event_time="t", arrival_time="n", progress=False
    ),
    "FileSink": lambda path, ended: run(rows().sink_to(wb.FileSink(path, "csv"))),
    "ParquetSink": lambda path, ended: run(rows().sink_to(wb.ParquetSink(path))),
    "SqlSink sqlite": lambda path, ended: run(rows().sink_to(wb.SqlSink(f"sqlite:///{path}", "t"))),
    "SqlSink duckdb": lambda path, ended: run(rows().sink_to(wb.SqlSink(f"duckdb:///{path}", "t"))),
}
READS: dict[str, Callable[[str, wb.types.Job], object]] = {
    "restore": lambda path, ended: run(
        rows().sink_to(wb.DiscardSink()), restore=path, checkpoint_dir=str(Path(path).parents[1] / "usable")
    ),
    "Recording.open": lambda path, ended: wb.Recording.open(path),
    "Snapshot.open": lambda path, ended: wb.Snapshot.open(path),
    "savepoints": lambda path, ended: wb.savepoints(path),
    "delete_savepoint": lambda path, ended: wb.delete_savepoint(path),
    "found_jobs": lambda path, ended: wb.found_jobs(path),
    "Stream.replay": lambda path, ended: wb.Stream.replay(path),
    "from_files csv": lambda path, ended: wb.Stream.from_files(path, format="csv"),
    "from_files json": lambda path, ended: wb.Stream.from_files(path, format="json"),
    "from_files parquet": lambda path, ended: wb.Stream.from_files(path, format="parquet"),
}
CALLS = WRITES | READS


def refused(call: Callable[[str, wb.types.Job], object], path: Path, ended: wb.types.Job) -> str:
    with pytest.raises(WorkbenchError) as caught:
        call(str(path), ended)
    message = str(caught.value)
    assert "\n" not in message
    assert path.parent.name in message
    return message


@pytest.mark.parametrize("name", CALLS)
def test_a_file_in_place_of_a_folder(name: str, tmp_path: Path, ended: wb.types.Job) -> None:
    (tmp_path / "unusable").write_text("a file")
    refused(CALLS[name], tmp_path / "unusable" / "x", ended)


@pytest.mark.parametrize("name", CALLS)
def test_no_path_has_such_characters(name: str, tmp_path: Path, ended: wb.types.Job) -> None:
    with pytest.raises(SettingError, match=r"a path cannot have|not name a file"):
        CALLS[name](f"{tmp_path}/unusable\0x", ended)


@pytest.mark.parametrize("name", CALLS)
def test_a_path_with_too_long_a_name(name: str, tmp_path: Path, ended: wb.types.Job) -> None:
    refused(CALLS[name], tmp_path / ("unusable" + "x" * 300), ended)


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """A folder that this user may not enter, with a file that it may not read beside it."""
    folder = tmp_path / "unusable"
    folder.mkdir(mode=0)
    yield folder
    folder.chmod(0o700)


@pytest.mark.parametrize("name", CALLS)
def test_a_folder_that_may_not_be_entered(name: str, closed: Path, ended: wb.types.Job) -> None:
    with unprivileged():
        message = refused(CALLS[name], closed / "x", ended)
    assert re.search(r"Permission denied|unable to open|cannot be written", message)


@pytest.mark.parametrize("name", WRITES)
def test_a_folder_that_may_not_be_written(name: str, closed: Path, ended: wb.types.Job) -> None:
    closed.chmod(0o500)
    with unprivileged():
        refused(WRITES[name], closed / "x", ended)
    assert list(closed.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in READS if name.startswith(("from_files", "Recording"))])
def test_a_file_that_may_not_be_read(name: str, tmp_path: Path, ended: wb.types.Job) -> None:
    file = tmp_path / "unusable"
    file.touch(mode=0)
    with unprivileged():
        message = refused(READS[name], file, ended)
    assert message.endswith("cannot be read: Permission denied; change its permissions")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("name", ["Job.recording", "Job.report", "Dashboard.save"])
def test_a_full_disk(name: str, ended: wb.types.Job) -> None:
    with pytest.raises(SettingError, match=r"'/dev/full': No space left on device; free some space, or name a file"):
        WRITES[name]("/dev/full", ended)


def test_nothing_is_drawn_for_a_report_that_cannot_be_written(
    tmp_path: Path, ended: wb.types.Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.dashboard.shown.report.PlaybackView", None)
    refused(WRITES["Job.report"], tmp_path / "missing" / "report.html", ended)
