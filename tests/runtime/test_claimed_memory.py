"""A small file that claims to need much memory is refused before memory is allocated; accepted data is valid to the
last offset."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from edited_savepoints import Stream, checksum_of, state_file_of, stream_of, write_manifest

import workbench as wb
from workbench.errors import CorruptCheckpointError
from workbench.from_arrow import Unfolding
from workbench.runtime.storage import DirectoryStorage, open_files
from workbench.runtime.storage.encoding import decode, encode
from workbench.runtime.storage.state_parts import read_parts


def state_file(*streams: bytes) -> bytes:
    """A task's file whose tables are these streams."""
    return state_file_of([("op", f"table-{at}", Stream(content)) for at, content in enumerate(streams)])


def nothing(count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.null(), count, [None])


def null_rows(count: int) -> bytes:
    return stream_of(pa.table({"n": nothing(count)}))


def dictionary(values: int, length: int) -> bytes:
    indices = pa.array(np.zeros(values, np.int8))
    return stream_of(pa.table({"n": pa.DictionaryArray.from_arrays(indices, ["x" * length])}))


def run_ends(rows: int) -> bytes:
    column = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int64()), pa.array(["x" * 1_000]))
    return stream_of(pa.table({"n": column}))


def list_of_nulls(items: int) -> bytes:
    column = pa.ListArray.from_arrays(pa.array([0, items], pa.int32()), nothing(items))
    return stream_of(pa.table({"n": column}))


def list_views(rows: int) -> bytes:
    """Every row is the whole of the values."""
    sizes = pa.array([rows] * rows, pa.int32())
    column = pa.ListViewArray.from_arrays(pa.array([0] * rows, pa.int32()), sizes, pa.array(range(rows), pa.int64()))
    return stream_of(pa.table({"n": column}))


def string_views(rows: int, length: int) -> bytes:
    """Every row is the one long text."""
    text = b"x" * length
    views = struct.pack("<i4sii", length, text[:4], 0, 0) * rows
    column = pa.Array.from_buffers(pa.string_view(), rows, [None, pa.py_buffer(views), pa.py_buffer(text)])
    return stream_of(pa.table({"n": column}))


def no_columns(rows: int) -> bytes:
    batch = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows, [None]))
    return stream_of(pa.Table.from_batches([batch]))


def widthless(kind: pa.DataType, rows: int) -> bytes:
    children = [pa.array([], pa.int64())] if pa.types.is_fixed_size_list(kind) else []
    buffers = [None] if children or pa.types.is_struct(kind) else [None, pa.py_buffer(b"")]
    return stream_of(pa.table({"n": pa.Array.from_buffers(kind, rows, buffers, children=children)}))


def repeated_columns(columns: int, rows: int) -> bytes:
    """By the metadata that names columns which are left out."""
    names = [f"c{at}" for at in range(columns)]
    repeats = ", ".join(f'"{name}": "c0"' for name in names[1:])
    listed = ", ".join(f'"{name}"' for name in names)
    content = f'{{"columns": [{listed}], "repeats": {{{repeats}}}}}'
    return stream_of(pa.table({"c0": range(rows)}, metadata={"workbench.repeats": content}))


def shared_names(columns: int, length: int) -> bytes:
    """A schema whose columns all have the long name of the first, which stands in the file once."""
    names = ["n" * length, *(f"c{at}" for at in range(columns - 1))]
    whole = stream_of(pa.schema([(name, pa.null()) for name in names]).empty_table())
    size = struct.unpack_from("<i", whole, 4)[0]
    metadata = bytearray(whole[8 : 8 + size])
    fields = _led_to(metadata, _slot(metadata, _led_to(metadata, _slot(metadata, _led_to(metadata, 0), 2)), 1))
    places = [_slot(metadata, _led_to(metadata, fields + 4 + 4 * at), 0) for at in range(columns)]
    long = _led_to(metadata, places[0])
    for place in places[1:]:
        assert long > place  # a reference leads forwards
        struct.pack_into("<I", metadata, place, long - place)
    return whole[:8] + bytes(metadata) + whole[8 + size :]


def _led_to(metadata: bytearray, at: int) -> int:
    """Where a reference of a flatbuffer leads to."""
    return at + int(struct.unpack_from("<I", metadata, at)[0])


def _slot(metadata: bytearray, table: int, slot: int) -> int:
    """Where a field of a flatbuffer's table stands."""
    vtable = table - struct.unpack_from("<i", metadata, table)[0]
    return table + int(struct.unpack_from("<H", metadata, vtable + 4 + 2 * slot)[0])


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "compressed": (lambda: stream_of(pa.table({"n": np.zeros(1 << 27)}), compression="zstd"), "it is compressed"),
    "compressed with LZ4": (lambda: stream_of(pa.table({"n": np.zeros(1 << 24)}), compression="lz4"), "is compressed"),
    "nulls": (lambda: null_rows(2**31 - 1), "its values take more than"),
    "nulls in a list": (lambda: list_of_nulls(2**31 - 1), "its values take more than"),
    "one text in a dictionary": (lambda: dictionary(100_000, 180_000), "its values take more than"),
    "a long run": (lambda: run_ends(1 << 30), "its values take more than"),
    "views of all values": (lambda: list_views(20_000), "its values take more than"),
    "views of one text": (lambda: string_views(10_000, 100_000), "its values take more than"),
    "rows without columns": (lambda: no_columns(2**31 - 1), "its values take more than"),
    "texts of no bytes": (lambda: widthless(pa.binary(0), 2**31 - 1), "its values take more than"),
    "lists of no items": (lambda: widthless(pa.list_(pa.int64(), 0), 2**31 - 1), "its values take more than"),
    "empty structs": (lambda: widthless(pa.struct([]), 2**31 - 1), "its values take more than"),
    "repeated columns": (lambda: repeated_columns(20_000, 10_000), "its values take more than"),
    "one name of many columns": (lambda: shared_names(20_000, 100_000), "parts of its schema share bytes"),
}


READER = """
import resource, sys
from pathlib import Path
from workbench.errors import CorruptCheckpointError
from workbench.runtime.storage.encoding import decode, encode
import pyarrow as pa
decode(encode({"a": {"t": pa.table({"n": [1]})}}).join(), "f")
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[1:]:
    try:
        decode(Path(path).read_bytes(), "f")
        told = "taken"
    except CorruptCheckpointError as error:
        told = str(error)
    print(told, "|", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""
"""Reads each file, and tells how that ends and the MB that its process took at its peak beyond those that it had."""


@pytest.mark.slow
def test_a_file_that_claims_much_is_refused_with_little_memory(tmp_path: Path) -> None:
    paths = []
    for number, (make, _) in enumerate(BOMBS.values()):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(state_file(make()))
        assert paths[-1].stat().st_size < 1 << 22
    told = subprocess.run([sys.executable, "-c", READER, *paths], capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    for (name, (_, why)), line in zip(BOMBS.items(), told.stdout.splitlines(), strict=True):
        found, _, megabytes = line.partition(" | ")
        assert found.startswith("the checkpoint file f cannot be read: "), (name, found)
        assert why in found, (name, found)
        assert int(megabytes) < 128, name


def changed_offsets(table: pa.Table, column: int, buffer: int, at: int, value: bytes) -> bytes:
    """A table's stream in which some bytes of a buffer are others."""
    content = bytearray(stream_of(table))
    original = table.column(column).chunk(0).buffers()[buffer].to_pybytes()
    begin = content.index(original)
    content[begin + at : begin + at + len(value)] = value
    return bytes(content)


TEXTS = pa.table({"t": ["abc", "de", "fghi"] * 3})
CODES = pa.table({"d": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1], pa.int32()), ["x", "y", "z"])})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (changed_offsets(TEXTS, 0, 1, 4, struct.pack("<i", 1_000_000)), "offset"),
        (changed_offsets(TEXTS, 0, 1, 4, struct.pack("<i", -5)), "offset"),
        (changed_offsets(TEXTS, 0, 2, 1, b"\xff"), "UTF8"),
        (changed_offsets(CODES, 0, 1, 4, struct.pack("<i", 77)), "out of bounds"),
    ],
)
def test_what_would_be_read_outside_of_its_buffers_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(CorruptCheckpointError, match=told):
        decode(state_file(content), "f")


def test_changes_of_a_table_repeat_no_rows_without_end() -> None:
    base = stream_of(pa.table({"n": range(1_000), "text": ["x" * 1_000] * 1_000}))
    rows = pa.table({"n": pa.array([], pa.int64()), "text": pa.array([], pa.string())})

    def changes(source: list[int], length: list[int]) -> bytes:
        return stream_of(pa.table({"source": source, "length": length})) + stream_of(rows)

    once = read_parts([base, changes([0, 500], [10, 500])], "p", Unfolding(len(base)))
    assert once.column("n").to_pylist() == [*range(10), *range(500, 1_000)]
    again = changes([0] * 1_000, [1_000] * 1_000)
    for wrong, told in [
        ((changes([0], [2**62]),), "of another table"),
        ((changes([2**62], [2**62]),), "of another table"),
        ((changes([-5], [5]),), "of another table"),
        ((again,), "its values take more than"),
        ((again, again), "its values take more than"),
    ]:
        with pytest.raises(CorruptCheckpointError, match=told):
            read_parts([base, *wrong], "p", Unfolding(len(base)))


def job_in(folder: Path, needs: tuple[str, ...] = (), file: str = "a-0.arrow") -> Path:
    """A complete savepoint of one task whose manifest names these files."""
    place = folder / "savepoints" / "s"
    place.mkdir(parents=True)
    content = encode({"a": {"n": 1}}).join()
    (place / Path(file).name).write_bytes(content)
    entry = {"task": "a[0]", "file": file, "size": len(content), "checksum": checksum_of(content)}
    entry |= {"needs": list(needs), "parts": [], "operators": ["a"], "written": 0}
    manifest = {"checkpoint_id": 1, "job": "j", "kind": "savepoint", "triggered_us": 1, "completed_us": 2, "format": 3}
    write_manifest(place, {**manifest, "parallelism": {"a": 1}, "files": [entry], "kinds": {}})
    return place


@pytest.mark.parametrize(
    "name",
    ["lock", "job.json", "lease.json", "taken-back.json", "savepoints/x/manifest.json", "chk-00000001/manifest.json",
     "tables", "tables/../lock", "../tables/x", "tables//x"],
)  # fmt: skip
def test_a_savepoint_brings_files_into_the_folders_of_sinks_and_state_alone(name: str, tmp_path: Path) -> None:
    place = job_in(tmp_path / "foreign", needs=(name,))
    with closing(DirectoryStorage(tmp_path / "own")) as storage:
        before = sorted((tmp_path / "own").iterdir())
        with pytest.raises(CorruptCheckpointError, match="has an invalid name"):
            storage.bring_in(open_files(place.parent), "s")
        assert sorted((tmp_path / "own").iterdir()) == before


@pytest.mark.parametrize("name", ["manifest.json", "sub/a.arrow", "../a.arrow"])
def test_a_tasks_file_lies_in_its_checkpoints_folder(name: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptCheckpointError, match="has an invalid name"):
        wb.Snapshot.open(job_in(tmp_path, file=name))


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "device"])
def test_what_a_savepoint_needs_is_a_regular_file(kind: str, tmp_path: Path) -> None:
    place = job_in(tmp_path / "foreign", needs=("tables/t/rows",))
    needed = place / "tables" / "t" / "rows"
    needed.parent.mkdir(parents=True)
    if kind == "device":
        needed.symlink_to("/dev/zero")
    else:
        pipe = needed if kind == "pipe" else needed.with_name("pipe")
        os.mkfifo(pipe)
        if kind != "pipe":
            needed.symlink_to(pipe)
    with closing(DirectoryStorage(tmp_path / "own")) as storage, pytest.raises(wb.errors.CheckpointError):
        storage.bring_in(open_files(place.parent), "s")
    assert not (tmp_path / "own" / "tables" / "t" / "rows").exists()


def test_a_file_that_is_larger_than_listed_is_not_read(tmp_path: Path) -> None:
    place = job_in(tmp_path)
    with (place / "a-0.arrow").open("r+b") as file:
        file.truncate(1 << 40)  # without a byte on the disk
    with pytest.raises(
        CorruptCheckpointError, match=r"it has 1,099,511,627,776 bytes, more than the maximum of [0-9,]+"
    ):
        wb.Snapshot.open(place).values("a")
    with (place / "manifest.json").open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptCheckpointError, match="more than the maximum"):
        wb.Snapshot.open(place)


def test_a_savepoint_is_deleted_in_a_folder_of_savepoints_alone(tmp_path: Path) -> None:
    place = job_in(tmp_path)
    other = place.parent.rename(tmp_path / "backup-savepoints") / "s"
    with pytest.raises(wb.errors.CheckpointError, match="contains no complete savepoint"):
        wb.delete_savepoint(other)
    assert other.exists()
    assert not (tmp_path / "backup-").exists()
