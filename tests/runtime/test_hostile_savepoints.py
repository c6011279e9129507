"""A savepoint edited by an attacker reaches only files of the sink and the checkpoint directory, and is refused with an
error that names the problem (every sink with state)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from waiting import until

import workbench as wb
from workbench.durable.checksum import checksum
from workbench.runtime.storage import DirectoryStorage
from workbench.runtime.storage.encoding import decode, encode
from workbench.runtime.storage.manifest import MANIFEST, read_manifest

NUMBERS = pa.table({"n": range(3_000)})
SNAPSHOT = dict[str, Any]
Edit = Callable[[SNAPSHOT, Path], None]
"""Changes what a sink has saved; gets the folder to which it is restored, too."""


def sink_of(kind: str, folder: Path) -> Any:
    match kind:
        case "parquet":
            return wb.ParquetSink(folder / "rows")
        case "csv" | "json":
            return wb.FileSink(folder / "rows", kind)
        case "table":
            return wb.TableSink("rows")
        case "upsert":
            return wb.TableSink("rows", upsert_key=["n"])
        case _:
            return wb.SqlSink(f"{kind}:///{folder}/rows.db", "rows")


def pipeline(sink: Any, rate: int | None = None) -> wb.types.Pipeline:
    return wb.Stream.from_table(NUMBERS, rate=rate).uid("numbers").sink_to(sink)


@pytest.fixture(scope="module")
def savepoints(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A savepoint of a job with each kind of sink, with rows of the epoch that it ends."""
    taken: dict[str, Path] = {}

    def taken_of(kind: str) -> Path:
        if kind not in taken:
            folder = tmp_path_factory.mktemp(kind)
            job = pipeline(sink_of(kind, folder), rate=100).run(
                f"hostile-{kind}", checkpoint_dir=folder / "c", checkpoint_interval=None
            )
            until(lambda: job.status()["records_out"] >= 10)
            taken[kind] = Path(job.savepoint("saved"))
            job.cancel()
            job.wait("60s")
        return taken[kind]

    return taken_of


def edited(savepoint: Path, change: Callable[[SNAPSHOT], None]) -> None:
    """Edit what the sink has saved, as whoever can compute a checksum can."""
    manifest = read_manifest((savepoint / MANIFEST).read_bytes(), "", "")
    files = []
    for file in manifest.files:
        states = decode((savepoint / file.file).read_bytes(), file.file)
        for uid in states.keys() & {"rows"}:
            change(states[uid])
        data = encode(states).join()
        (savepoint / file.file).write_bytes(data)
        files.append(replace(file, size=len(data), checksum=checksum(data)))
    (savepoint / MANIFEST).write_bytes(replace(manifest, files=tuple(files)).to_json())


def tree(root: Path) -> dict[str, str]:
    """All names below a folder but those that the job may change, with what is there."""
    found = {}
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders[:] = [name for name in folders if name not in ("to", "c")]
        for name in folders:
            found[f"{folder}/{name}"] = "folder"
        for name in names:
            found[f"{folder}/{name}"] = hashlib.sha256(Path(folder, name).read_bytes()).hexdigest()
    return found


def of_part(**values: Any) -> Edit:
    """The first pre-committed file gets other values."""
    return lambda saved, _: saved["pending"][0].update(values)


def one_more(**values: Any) -> Edit:
    """One more line, like the first one."""
    return lambda saved, _: saved["pending"].append({**saved["pending"][0], **values})


def linked(name: str) -> Edit:
    """In the folder there is a link under the name that a line has, which leads to another program's file."""

    def edit(saved: SNAPSHOT, folder: Path) -> None:
        (folder / "rows").mkdir()
        (folder / "rows" / saved["pending"][0][name]).symlink_to(folder.parent / "home" / "startup.py")

    return edit


PART_EDITS: dict[str, tuple[Edit, str]] = {
    "up": (of_part(file="../../home/startup.py"), r"'\.\./\.\./home/startup\.py', which is not a name that this sink"),
    "absolute": (of_part(file="/etc/hostname"), "'/etc/hostname', which is not a name"),
    "NUL": (of_part(file=".pending\0"), r"'\.pending\\x00', which is not a name"),
    "in a folder": (of_part(file=".pending-00000001-0000-0-000-a/b.csv"), "which is not a name"),
    "line break": (of_part(target="part-00000001-0000-000.csv\n"), "which is not a name"),
    "other digits": (of_part(target="part-0000000١-0000-000.csv"), "which is not a name"),
    "target up": (of_part(target="../../home/00-start.py"), r"'\.\./\.\./home/00-start\.py', which is not a name"),
    "target absolute": (of_part(target="/tmp/part-00000001-0000-000.csv"), "which is not a name"),
    "program": (of_part(target="part-00000001-0000-000.py"), "this sink writes '"),
    "later epoch": (of_part(target="part-00000099-0000-000{suffix}"), "are not those up to"),
    "epoch 0": (of_part(target="part-00000000-0000-000{suffix}"), "are not those up to"),
    "huge subtask": (of_part(target=f"part-00000001-{'9' * 30}-000{{suffix}}"), "which is not a name"),
    "other subtask": (of_part(target="part-00000001-0001-000{suffix}"), "a part of another subtask"),
    "twice": (one_more(), "is named twice"),
    "target twice": (one_more(file=".pending-00000001-0000-0-007-x{suffix}"), "is named twice"),
    "a link": (linked("file"), r"/to/rows/\.pending-.* is a symbolic link"),
    "target a link": (linked("target"), r"/to/rows/part-.* is a symbolic link"),
    "no text": (of_part(file=7), r"\.pending\[0\]\.file is 7 instead of a str"),
    "no list": (lambda saved, _: saved.update(pending={}), r"\.pending is a dict instead of a list"),
    "no checkpoint": (lambda saved, _: saved.pop("checkpoint"), "has no checkpoint"),
    "unknown": (lambda saved, _: saved.update(run="sh"), "has 'run', which is not a known field"),
    "huge": (lambda saved, _: saved.update(checkpoint=2**70), "has more than 64 bits"),
}


def of_line(**values: Any) -> Edit:
    """The first part of a table gets other values."""
    return lambda saved, _: saved["parts"][0].update(values)


TABLE_EDITS: dict[str, tuple[Edit, str]] = {
    "up": (of_line(file="../../../home/startup.py"), r"'\.\./\.\./\.\./home/startup\.py', which is not a name"),
    "absolute": (of_line(file="/etc/hostname"), "'/etc/hostname', which is not a name"),
    "NUL": (of_line(file="epoch-1-0-0.arrow\0"), "which is not a name"),
    "other epoch": (of_line(first=0), "of the epochs 0 to "),
    "negative": (of_line(epoch=-1, first=-1), "of the epochs -1 to -1"),
    "later": (of_line(epoch=2**62), "of the epochs 1 to 4611686018427387904, and the checkpoint is 1"),
    "subtask": (of_line(subtask=2**40), "subtask 1099511627776 has"),
    "other file": (of_line(subtask=3), "is said to hold the epochs 1 to 1 of subtask 3"),
    "twice": (lambda saved, _: saved["parts"].append(saved["parts"][0]), "epoch 1 of subtask 0 .* is duplicated"),
    "rows": (of_line(rows=5_000), "should hold 5000 rows, but holds "),
    "no rows": (of_line(rows=0), "has 0 rows"),
    "no text": (of_line(checksum=7), r"\.parts\[0\]\.checksum is 7 instead of"),
}

SQL_EDITS: dict[str, tuple[Edit, str]] = {
    "later": (lambda saved, _: saved.update({"rows-9-0": NUMBERS}), "epoch 9 has rows, but the checkpoint is 1"),
    "no epoch": (lambda saved, _: saved.update({"rows-x-0": NUMBERS}), "'rows-x-0', which is not a name"),
    "other columns": (
        lambda saved, _: saved.update({"rows-1-1": pa.table({"secret": ["x"]})}),
        "had the columns secret string and now has n int64",
    ),
    "writer": (lambda saved, _: saved.update(writer=7), r"\.writer is 7 instead of a str"),
    "runs": (lambda saved, _: saved.update(runs={"own": "a", "before": [1]}), r"\.runs\.before is a list"),
}

CASES = [
    *(("parquet", name) for name in PART_EDITS),
    *((kind, name) for kind in ("csv", "json") for name in ("up", "target absolute", "twice", "a link")),
    *(("table", name) for name in TABLE_EDITS),
    *(("upsert", name) for name in ("up", "rows")),
    *((kind, name) for kind in ("sqlite", "duckdb") for name in SQL_EDITS),
]
SUFFIXES = {"parquet": ".parquet", "csv": ".csv", "json": ".jsonl"}


def edits_of(kind: str) -> dict[str, tuple[Edit, str]]:
    return PART_EDITS if kind in SUFFIXES else SQL_EDITS if kind in ("sqlite", "duckdb") else TABLE_EDITS


@pytest.mark.parametrize(("kind", "what"), CASES)
def test_an_edited_savepoint_reaches_nothing_outside(
    savepoints: Callable[[str], Path], tmp_path: Path, kind: str, what: str
) -> None:
    savepoint, folder = tmp_path / "saved", tmp_path / "to"
    shutil.copytree(savepoints(kind), savepoint)
    folder.mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "startup.py").write_text("print('mine')")
    edit, message = edits_of(kind)[what]

    def change(saved: SNAPSHOT) -> None:
        edit(saved, folder)
        for line in saved.get("pending", ()):
            if isinstance(line, dict):
                line.update({name: str(line[name]).replace("{suffix}", SUFFIXES[kind]) for name in ("target",)})
                if isinstance(line["file"], str):
                    line["file"] = line["file"].replace("{suffix}", SUFFIXES[kind])

    edited(savepoint, change)
    before = tree(tmp_path)
    with pytest.raises(wb.errors.CheckpointError, match=message):
        pipeline(sink_of(kind, folder)).run("restored", restore=savepoint, checkpoint_dir=tmp_path / "c")
    assert tree(tmp_path) == before
    assert (tmp_path / "home" / "startup.py").read_text() == "print('mine')"


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "table", "upsert", "sqlite", "duckdb"])
def test_one_that_nobody_edited_is_restored(savepoints: Callable[[str], Path], tmp_path: Path, kind: str) -> None:
    savepoint = tmp_path / "from" / "saved"
    shutil.copytree(savepoints(kind).parent.parent.parent, tmp_path / "from", dirs_exist_ok=True)
    shutil.copytree(savepoints(kind), savepoint)
    edited(savepoint, lambda saved: None)
    job = pipeline(sink_of(kind, tmp_path / "from")).run("on", restore=savepoint, checkpoint_dir=tmp_path / "new")
    assert job.wait("60s") == "FINISHED"


REFUSED_MEANWHILE: dict[str, tuple[Callable[[SNAPSHOT], None], str]] = {
    "parquet": (lambda saved: saved["pending"][0].update(target="/tmp/x"), "'/tmp/x', which is not a name"),
    "table": (lambda saved: saved["parts"][0].update(rows=5_000), "should hold 5000 rows"),
    "sqlite": (lambda saved: saved.update({"rows-9-0": NUMBERS}), "epoch 9 has rows"),
}


@pytest.mark.parametrize("kind", REFUSED_MEANWHILE)
def test_a_running_job_goes_on_when_its_edited_savepoint_is_refused(tmp_path: Path, kind: str) -> None:
    job = pipeline(sink_of(kind, tmp_path), rate=100).run(
        "going", checkpoint_dir=tmp_path / "c", checkpoint_interval=None
    )
    until(lambda: job.status()["records_out"] >= 10)
    change, message = REFUSED_MEANWHILE[kind]
    edited(Path(job.savepoint("saved")), change)
    storage = job._run.master.storage
    assert isinstance(storage, DirectoryStorage)
    storage._known.clear()  # as of a process that has not taken it itself
    with pytest.raises(wb.errors.CheckpointError, match=message):
        job.restore("saved")
    assert job.state == "RUNNING"
    job.cancel()
    job.wait("60s")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"other": pa.array([1] * 10)}), "had the columns other int64 and now has n int64"),
        (None, "holds no rows"),
    ],
)
def test_files_of_a_table_that_no_sink_writes_are_refused(
    savepoints: Callable[[str], Path], tmp_path: Path, table: pa.Table | None, message: str
) -> None:
    savepoint = tmp_path / "saved"
    shutil.copytree(savepoints("table"), savepoint)
    (file,) = (savepoint / "tables" / "rows").iterdir()
    if table is None:
        file.write_bytes(b"ARROW1 and so on")
    else:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    line = {"rows": 10, "checksum": checksum(file.read_bytes())}
    edited(savepoint, lambda saved: saved["parts"][0].update(line))
    with pytest.raises(wb.errors.CheckpointError, match=message):
        pipeline(wb.TableSink("rows")).run("restored", restore=savepoint, checkpoint_dir=tmp_path / "c")


def test_what_is_shown_of_a_name_is_one_short_line(savepoints: Callable[[str], Path], tmp_path: Path) -> None:
    savepoint = tmp_path / "saved"
    shutil.copytree(savepoints("csv"), savepoint)
    edited(savepoint, lambda saved: saved["pending"][0].update(file="\x1b[2J\n" + "x" * 10_000))
    with pytest.raises(wb.errors.CheckpointError) as refused:
        pipeline(wb.FileSink(tmp_path / "to", "csv")).run("r", restore=savepoint, checkpoint_dir=tmp_path / "c")
    assert len(str(refused.value)) < 400
    assert json.dumps(str(refused.value)).isascii()
    assert "\x1b" not in str(refused.value)
