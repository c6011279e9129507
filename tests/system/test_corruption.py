"""Whatever happens to the bytes of a checkpoint is noticed: nothing damaged is restored silently (I6, I13).

A sample of truncations and flipped bits; with ``WORKBENCH_ALL_DAMAGE=1`` every truncation and 10,000 bits.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sink_job import SCHEMA, NoOutput, rows

import workbench as wb
from workbench.connectors.tables.table_sink import TableSink
from workbench.connectors.tables.tables import Tables
from workbench.operators.contract.base import OperatorContext
from workbench.runtime.storage import DirectoryStorage, Manifest, folder_named, folder_of
from workbench.runtime.storage.encoding import encode

ALL = bool(os.environ.get("WORKBENCH_ALL_DAMAGE"))
FLIPS, TRUNCATIONS = (10_000, None) if ALL else (300, 300)

Restored = tuple[list[Any], list[int]]


def checkpoints(folder: Path) -> None:
    """Two checkpoints and a savepoint between them: state with changes, positions, a table's committed rows."""
    table = pa.table({"key:k": range(400), "n": [0] * 400})
    with closing(DirectoryStorage(folder, incremental_above_bytes=1_000)) as storage:
        sink = TableSink("t").create(SCHEMA)
        sink.open(OperatorContext(tables=Tables(), data_dir=folder))
        for number, savepoint in [(1, None), (2, "s"), (3, None)]:
            sink.process(rows(list(range(10 * number, 10 * number + 10))), 0, NoOutput())
            values = table.column("n").to_pylist()
            values[number] = number
            table = table.set_column(1, "n", pa.array(values))
            state = {"agg": {"groups": table}, "sink": sink.snapshot(number), "source": {"offset": number}}
            place = folder_of(number, savepoint)
            file = storage.write(place, "agg[0]", encode(state))
            kind = "savepoint" if savepoint else "periodic"
            manifest = Manifest(number, "job", kind, 1, 2, {"agg": 1, "sink": 1, "source": 1}, (file,), place=place)
            storage.complete(place, manifest)
            sink.notify_complete(number)


def restored(folder: Path) -> Restored:
    """All that a job in this directory begins with, as plain values."""
    with closing(DirectoryStorage(folder)) as storage:
        manifest = storage.latest()
        assert manifest is not None
        states = [storage.states(manifest, file) for file in manifest.files]
        tables = Tables()
        sink = TableSink("t").create(SCHEMA)
        sink.open(OperatorContext(tables=tables, data_dir=folder))
        sink.restore([state["sink"] for state in states])
        return [state["agg"]["groups"].to_pydict() for state in states], tables.read("t").column("value").to_pylist()


def damages(size: int, rng: np.random.Generator) -> Iterator[tuple[str, int]]:
    """What is done to a file of so many bytes."""
    lengths = np.arange(size) if TRUNCATIONS is None else rng.integers(0, size, TRUNCATIONS // 4)
    yield from (("truncated to", int(length)) for length in lengths)
    for _ in range(FLIPS // 4):
        yield "flipped bit", int(rng.integers(0, 8 * size))


def damaged(content: bytes, what: str, where: int) -> bytes:
    if what == "truncated to":
        return content[:where]
    changed = bytearray(content)
    changed[where // 8] ^= 1 << where % 8
    return bytes(changed)


@pytest.mark.parametrize("name", ["manifest.json", "agg-0.arrow", "changes", "rows"])
def test_every_damage_to_a_checkpoint_is_noticed(tmp_path: Path, name: str) -> None:
    checkpoints(tmp_path)
    whole = restored(tmp_path)
    assert whole[0][0]["n"][:5] == [0, 1, 2, 3, 0]
    assert whole[1] == list(range(10, 40))
    path = {
        "changes": tmp_path / "state" / "chk-00000003-agg-0-0.arrow",
        "rows": tmp_path / "tables" / "t" / "epoch-2-0-0.arrow",
    }.get(name, tmp_path / "chk-00000003" / name)
    content = path.read_bytes()
    rng = np.random.default_rng(len(name))
    silent = []
    for what, where in damages(len(content), rng):
        path.write_bytes(damaged(content, what, where))
        with suppress(wb.errors.CheckpointError):
            restored(tmp_path)
            silent.append((what, where))
    assert silent == []
    path.write_bytes(content)
    assert restored(tmp_path) == whole


def test_every_damage_to_a_savepoint_is_noticed_when_it_is_brought_elsewhere(tmp_path: Path) -> None:
    checkpoints(tmp_path / "c")
    source = tmp_path / "c" / "savepoints" / "s"
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    assert [str(path) for path in files] == [
        "agg-0.arrow", "manifest.json", "tables/t/epoch-1-0-0.arrow", "tables/t/epoch-2-0-0.arrow",
    ]  # fmt: skip
    rng = np.random.default_rng(5)
    for number, file in enumerate(files * 6):
        what, where = list(damages((source / file).stat().st_size, rng))[-1 - number]
        copy = shutil.copytree(source, tmp_path / f"copy-{number}" / "s")
        (copy / file).write_bytes(damaged((source / file).read_bytes(), what, where))
        target = tmp_path / f"target-{number}"
        with pytest.raises(wb.errors.CheckpointError):
            bring(copy, target)
    bring(source, tmp_path / "whole")
    assert restored(tmp_path / "whole")[1] == list(range(10, 30))


def bring(source: Path, target: Path) -> None:
    with closing(DirectoryStorage(target)) as storage:
        found = folder_named(source)
        assert found is not None
        storage.bring_in(*found)
    restored(target)


def test_a_missing_file_is_noticed(tmp_path: Path) -> None:
    checkpoints(tmp_path)
    for path in [
        tmp_path / "chk-00000003" / "agg-0.arrow",
        *(tmp_path / "state").iterdir(),
        *(tmp_path / "tables" / "t").iterdir(),
    ]:
        content = path.read_bytes()
        path.unlink()
        with pytest.raises(wb.errors.CorruptCheckpointError, match="cannot be read"):
            restored(tmp_path)
        path.write_bytes(content)
    restored(tmp_path)


def test_a_record_of_going_back_that_is_damaged_is_noticed(tmp_path: Path) -> None:
    checkpoints(tmp_path)
    with closing(DirectoryStorage(tmp_path)) as storage:
        saved = storage.savepoint("s")
        assert saved is not None
        storage.take_back(saved, 4)
    assert restored(tmp_path)[1] == list(range(10, 30))
    path = tmp_path / "taken-back.json"
    content = path.read_bytes()
    silent = []
    for what, where in [*(("truncated to", at) for at in range(len(content))),
                        *(("flipped bit", at) for at in range(8 * len(content)))]:  # fmt: skip
        path.write_bytes(damaged(content, what, where))
        with suppress(wb.errors.CheckpointError), closing(DirectoryStorage(tmp_path)) as storage:
            storage.latest()
            silent.append((what, where))
    assert silent == []
