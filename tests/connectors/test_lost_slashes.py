"""A URI that was converted to a ``Path`` has lost a slash: it is not used as a local folder, whose name would contain a
secret, and the secret is not displayed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb
from workbench.arguments import location_of, path_of
from workbench.cli.command import folder, new_file
from workbench.errors import SettingError

LOST = Path("s3://key:pa55@bucket/x")
NUMBERS = wb.Stream.from_table(pa.table({"n": [1]}))
ROWS = NUMBERS.sink_to(wb.TableSink("rows"))

LOCATIONS: dict[str, Callable[[Path], object]] = {
    "checkpoint_dir": lambda path: ROWS.run("r", checkpoint_dir=path),
    "text": lambda path: ROWS.run("r", checkpoint_dir=str(path)),
    "standby": lambda path: ROWS.run("r", checkpoint_dir=path, standby=True),
    "restore": lambda path: ROWS.run("r", checkpoint_dir="c", restore=path),
    "savepoints": lambda path: wb.savepoints(path),
    "snapshot": lambda path: wb.Snapshot.open(path),
    "delete_savepoint": lambda path: wb.delete_savepoint(path),
    "found_jobs": lambda path: wb.found_jobs(path),
}
PATHS: dict[str, Callable[[Path | str], object]] = {
    "parquet": lambda path: wb.ParquetSink(path),
    "files": lambda path: wb.FileSink(path, "csv"),
    "from_files": lambda path: wb.Stream.from_files(path),
    "history": lambda path: wb.History.open(path),
    "from_arrow": lambda path: wb.History.from_arrow(
        pa.table({"t": pa.array([1], pa.timestamp("us"))}), path, event_time="t", arrival_time="t", progress=False
    ),
    "replay": lambda path: wb.Stream.replay(path),
    "recording": lambda path: wb.Recording.open(path),
    "folder option": lambda path: folder("--directory")(str(path)),
    "file option": lambda path: new_file("--html")(str(path)),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("entry", LOCATIONS)
def test_a_location_that_has_lost_a_slash_is_refused(here: Path, entry: str) -> None:
    with pytest.raises(
        SettingError, match=r"'s3:/\*\*\*@bucket/x', a URI .*: write the URI as text, 's3://"
    ) as refused:
        LOCATIONS[entry](LOST)
    assert "pa55" not in str(refused.value)
    assert [path.name for path in here.iterdir() if path.name != "c"] == []


@pytest.mark.parametrize("entry", PATHS)
@pytest.mark.parametrize("uri", [LOST, "s3://key:pa55@bucket/x", "sftp://key:pa55@bucket/x"])
def test_a_uri_where_a_path_belongs_is_refused(here: Path, entry: str, uri: Path | str) -> None:
    with pytest.raises(SettingError, match=r"://?\*\*\*@bucket/x', which is a URI: write a local path") as no:
        PATHS[entry](uri)
    assert "pa55" not in str(no.value)
    assert list(here.iterdir()) == []


def test_what_is_written_of_a_job_goes_to_no_such_folder(here: Path) -> None:
    job = ROWS.run("r")
    job.wait("60s")
    for write in (job.report, job.recording().save, job.recording().report):
        with pytest.raises(SettingError, match="which is a URI: write a local path"):
            write(LOST)
    assert list(here.iterdir()) == []


def test_paths_with_colons_are_paths() -> None:
    assert path_of("C:/data", "path") == Path("C:/data")
    assert path_of("out/s3:/x", "path") == Path("out/s3:/x")
    assert location_of("12:/x", "path") == "12:/x"
    assert location_of("s3://bucket/x", "path") == "s3://bucket/x"
    with pytest.raises(SettingError, match="is 7: write a path"):
        location_of(7, "checkpoint_dir")
