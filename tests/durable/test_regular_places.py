"""Foreign objects in a directory in place of our files or folders are refused before use."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb
from workbench.runtime.storage import DirectoryStorage


def numbers() -> wb.types.Pipeline:
    return wb.Stream.from_table(pa.table({"n": [1, 2, 3]})).sink_to(wb.TableSink("out"))


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a folder"])
def test_a_lock_that_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    lock, outside = tmp_path / "checkpoints" / "lock", tmp_path / "outside"
    lock.parent.mkdir()
    outside.write_text("mine")
    {"a pipe": lambda: os.mkfifo(lock), "a link": lambda: lock.symlink_to(outside), "a folder": lock.mkdir}[kind]()
    with pytest.raises(wb.errors.CheckpointError, match="Not a regular file"):
        DirectoryStorage(lock.parent)
    assert outside.read_text() == "mine"


def test_a_manifest_that_is_a_link_to_itself_is_unreadable(tmp_path: Path) -> None:
    job = numbers().run("once", checkpoint_dir=tmp_path / "checkpoints")
    assert job.wait("60s") == "FINISHED"
    [manifest] = (tmp_path / "checkpoints").glob("chk-*/manifest.json")
    manifest.unlink()
    manifest.symlink_to(manifest.name)
    with pytest.raises(wb.errors.CheckpointError, match="symbolic links"):
        numbers().run("again", checkpoint_dir=tmp_path / "checkpoints", resume=True)


def test_a_tables_folder_that_leads_out_is_refused(tmp_path: Path) -> None:
    job = numbers().run("once", checkpoint_dir=tmp_path / "checkpoints")
    assert job.wait("60s") == "FINISHED"
    table = tmp_path / "checkpoints" / "tables" / "out"
    table.rename(tmp_path / "outside")
    table.symlink_to(tmp_path / "outside")
    with pytest.raises(wb.errors.WorkbenchError, match="of the table 'out' is a symbolic link"):
        numbers().run("again", checkpoint_dir=tmp_path / "checkpoints", resume=True).wait("60s")


def test_a_column_whose_name_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"\xee": 1}\n')
    with pytest.raises(wb.errors.SourceError, match="cannot be read"):
        wb.Stream.from_files(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("text", "said"), [("n + 2e", "is not a number"), ("t + INTERVAL 9223372036854775807 DAYS", "at most 73,000 years")]
)
def test_numbers_that_nothing_can_hold_are_refused_where_they_are_written(text: str, said: str) -> None:
    table = pa.table({"n": [1.5], "t": pa.array([0], pa.timestamp("us", "UTC"))})
    with pytest.raises(wb.errors.ExpressionError, match=said):
        wb.Stream.from_table(table).with_columns(x=text)
