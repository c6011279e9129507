"""Files that say of their own size what is not true, were cut, or change while they are read: refused by name."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import os
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.connectors.contract.base import Exhausted, Fetched
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.messages.message_format import ArrowMessages
from workbench.connectors.parts.part_formats import encode_json
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext

ROWS = 52
_AS_IN_THE_FILE = 2 * ROWS  # as Thrift writes it: zigzag in one byte


def parquet() -> bytes:
    table = pa.table({"a": pa.array(range(ROWS), pa.int64()), "s": [f"x{n}" for n in range(ROWS)]})
    file = io.BytesIO()
    how = {"compression": "none", "use_dictionary": False, "write_statistics": False, "store_schema": False}
    pq.write_table(table, file, **how)
    return file.getvalue()


def counts_in(content: bytes) -> list[int]:
    """The places of all bytes in the footer that may be the number of rows."""
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return [at for at in range(footer, len(content) - 8) if content[at] == _AS_IN_THE_FILE]


def counted(content: bytes) -> tuple[int, int, list[int]]:
    """The rows of the footer, of the row group, and the values of its columns."""
    metadata = pq.read_metadata(io.BytesIO(content))
    group = metadata.row_group(0)
    return metadata.num_rows, group.num_rows, [group.column(at).num_values for at in range(2)]


def drained(path: Path, columns: Any = None) -> list[dict[str, Any]]:
    reader = FileSource(path, columns).create()
    reader.open(OperatorContext(uid="files", subtask=0))
    rows = []
    try:
        while not isinstance(polled := reader.poll(20), Exhausted):
            assert isinstance(polled, Fetched)
            rows += polled.records.batch.to_pylist()
    finally:
        reader.close()
    return rows


@pytest.mark.parametrize("said", [50, 55])
def test_a_parquet_file_that_counts_other_rows(said: int, tmp_path: Path) -> None:
    whole = parquet()
    path = tmp_path / "a.parquet"
    path.write_bytes(whole)
    assert len(drained(path)) == ROWS
    lies = set()
    for at in counts_in(whole):
        content = bytearray(whole)
        content[at] = 2 * said
        if (counts := counted(bytes(content))) != (ROWS, ROWS, [ROWS, ROWS]):
            path.write_bytes(content)
            lies.add(str(counts))
            with pytest.raises(SourceError, match=r"a\.parquet counts .*the file is damaged"):
                drained(path)
    assert len(lies) == 4, "the footer, the row group, and each column"


def test_a_job_over_a_damaged_parquet_file_fails(tmp_path: Path) -> None:
    content = bytearray(parquet())
    for at in counts_in(bytes(content)):
        content[at] = 2 * 55
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(wb.errors.JobError, match=r"a\.parquet counts 55 rows in row group 0, and 52 were found"):
        wb.Stream.from_files(tmp_path / "a.parquet").collect()


def _by_arrow(name: str) -> Callable[[bytes], bytes]:
    def compressed(content: bytes) -> bytes:
        buffer = pa.BufferOutputStream()
        with pa.CompressedOutputStream(buffer, name) as stream:
            stream.write(content)
        return bytes(buffer.getvalue())

    return compressed


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", _by_arrow("zstd")), ("lz4", _by_arrow("lz4"))],
)
def test_compressed_files_that_were_cut(suffix: str, compress: Callable[[bytes], bytes], tmp_path: Path) -> None:
    one, two = compress(b"n\n1\n2\n"), compress(b"3\n4\n")
    path = tmp_path / f"a.csv.{suffix}"
    columns = pa.schema({"n": pa.int64()})
    path.write_bytes(one + two)
    assert [row["n"] for row in drained(path, columns)] == [1, 2, 3, 4]
    for cut in (b"", one[:-1], one[: len(one) // 2], one + two[:-1], one + two[:5], one + b"more text"):
        path.write_bytes(cut)
        with pytest.raises(SourceError, match=rf"a\.csv\.{suffix} cannot be read: "):
            drained(path, columns)
    (tmp_path / "b.csv").write_bytes(one)
    with pytest.raises(SourceError, match=r"b\.csv cannot be read: it is compressed by (gzip|bzip2|zstd|lz4), which"):
        drained(tmp_path / "b.csv", columns)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("change", ["appended", "rewritten", "replaced"])
def test_a_file_that_changes_while_it_is_read(name: str, change: str, tmp_path: Path) -> None:
    path = tmp_path / name
    numbers = pa.table({"n": range(100)})
    text = "n\n" + "1\n" * 100 if name == "a.csv" else '{"n": 1}\n' * 100
    if name == "a.parquet":
        pq.write_table(numbers, path)
    else:
        path.write_text(text)
    os.utime(path, ns=(1, 1))
    reader = FileSource(path).create()
    reader.open(OperatorContext(uid="files", subtask=0))
    assert isinstance(reader.poll(20), Fetched)
    content = path.read_bytes()
    if change == "replaced":
        (tmp_path / "new").write_bytes(content)
        (tmp_path / "new").rename(path)
    else:
        path.write_bytes(content + (b"\n" if change == "appended" else b""))
    with pytest.raises(SourceError, match=rf"{name} was changed while the job read it"):
        _rest_of(reader)
    reader.close()


def _rest_of(reader: Any) -> None:
    while isinstance(reader.poll(20), Fetched):
        pass


def test_times_of_96_bits(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    times = [dt.datetime(9999, 12, 31, 2), None, dt.datetime(2021, 6, 9, 3, 2, 37, 5), dt.datetime(1, 1, 1)]
    lists = pa.array([[time] for time in times], pa.list_(pa.timestamp("us")))
    table = pa.table({"t": pa.array(times, pa.timestamp("us")), "more": lists})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    assert drained(path) == table.to_pylist()
    assert FileSource(path).schema == pa.schema({"t": pa.timestamp("us"), "more": pa.list_(pa.timestamp("us"))})
    with pytest.raises(
        SourceError, match=r"has 9999-12-31 02:00:00.000000 in the column .t., which is outside of 1677"
    ):
        drained(path, pa.schema({"t": pa.timestamp("ns")}))
    for column in (pa.array([0, 1_500], pa.timestamp("ns")), pa.array([[0], [1_500]], pa.list_(pa.timestamp("ns")))):
        pq.write_table(pa.table({"t": column}), path, use_deprecated_int96_timestamps=True)
        with pytest.raises(
            SourceError, match=r"has 1970-01-01 00:00:00.000001500 in the column 't', which is no whole mic"
        ):
            drained(path)
    pq.write_table(
        pa.table({"t": pa.array([0, 1_500], pa.timestamp("ns"))}), path, use_deprecated_int96_timestamps=True
    )
    columns = pa.schema({"t": pa.timestamp("ns")})
    reader = FileSource(path, columns).create()
    reader.open(OperatorContext(uid="files", subtask=0))
    polled = reader.poll(5)
    assert isinstance(polled, Fetched)
    assert polled.records.batch.column("t").cast(pa.int64()).to_pylist() == [0, 1_500]
    reader.close()


def stream_of(*numbers: int, ended: bool = True) -> bytes:
    """A batch for each number."""
    buffer = pa.BufferOutputStream()
    writer = pa.ipc.new_stream(buffer, pa.schema({"n": pa.int64()}))
    for number in numbers:
        writer.write_batch(pa.record_batch({"n": [number]}))
    if ended:
        writer.close()
    return bytes(buffer.getvalue())


def test_arrow_messages_that_were_cut() -> None:
    columns, form = pa.schema({"n": pa.int64()}), ArrowMessages()
    whole = stream_of(1, 2, 3)
    assert form.decode([whole + stream_of(4), whole], columns)["n"].to_pylist() == [1, 2, 3, 4, 1, 2, 3]
    two = stream_of(1, 2, ended=False)  # as `whole` after a cut between two batches
    assert whole.startswith(two)
    for message in (two, whole + two):
        with pytest.raises(ValueError, match="it has no end of the stream: it was cut"):
            form.decode([message], columns)
    for size in range(len(whole)):
        with pytest.raises(ValueError, match=r"."):
            form.decode([whole[:size]], columns)


def test_arrow_messages_with_other_columns() -> None:
    def message(values: list[Any], kind: pa.DataType) -> bytes:
        buffer = pa.BufferOutputStream()
        table = pa.Table.from_arrays([pa.array(values, kind)] * 2, names=["n", "m"])
        with pa.ipc.new_stream(buffer, table.schema) as writer:
            writer.write_table(table)
        return bytes(buffer.getvalue())

    for values, kind, wanted in (
        ([1.5], pa.float64(), pa.int64()),
        ([2**63], pa.uint64(), pa.int64()),
        ([Decimal("12345678901234567.89")], pa.decimal128(20, 2), pa.float64()),
        ([1_500], pa.timestamp("us"), pa.date32()),
        ([1e300], pa.float64(), pa.float32()),
    ):
        with pytest.raises(ValueError, match=rf"the column 'n' is {re.escape(str(kind))}"):
            ArrowMessages().decode([message(values, kind)], pa.schema({"n": wanted}))
    twice = pa.Table.from_arrays([pa.array([1])] * 2, names=["n", "n"])
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, twice.schema) as writer:
        writer.write_table(twice)
    with pytest.raises(ValueError, match="it has 2 columns 'n'"):
        ArrowMessages().decode([bytes(buffer.getvalue())], pa.schema({"n": pa.int64()}))
    assert ArrowMessages().decode([message([Decimal("0.10")], pa.decimal128(5, 2))], pa.schema({"n": pa.float64()}))[
        "n"
    ].to_pylist() == [0.1]


def test_integers_that_no_double_equals(tmp_path: Path) -> None:
    for name, text, value in (
        ("a.csv", "id,v\n18446744073709551615,1\n", 2**64 - 1),
        ("a.csv", "id,v\n1,1\n-9223372036854775809,2\n", -(2**63) - 1),
        ("a.csv", "v,id\n1,9007199254740993\n1,0.5\n", 2**53 + 1),
        ("a.jsonl", '{"id": 18446744073709551615}\n', 2**64 - 1),
        ("a.jsonl", '{"id": 0.5}\n{"id": 9007199254740993}\n', 2**53 + 1),
        ("a.jsonl", '{"id": {"x": [1, 18446744073709551615]}}\n', 2**64 - 1),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(SourceError, match=rf"{name} has {value} in the column 'id', .* declare the column with"):
            FileSource(tmp_path / name)
    (tmp_path / "a.csv").write_text("id\n18446744073709551615\n")
    assert drained(tmp_path / "a.csv", pa.schema({"id": pa.uint64()})) == [{"id": 2**64 - 1}]
    (tmp_path / "a.csv").write_text("id\n9007199254740992\n0.5\n1e30\n\n")
    assert drained(tmp_path / "a.csv") == [{"id": 2.0**53}, {"id": 0.5}, {"id": 1e30}]


def test_times_with_nine_digits_are_guessed_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,u\n2024-01-01 00:00:00.123456789,2024-01-01 00:00:00.5\n")
    assert FileSource(tmp_path / "a.csv").schema == pa.schema({"t": pa.timestamp("ns"), "u": pa.timestamp("us")})


def test_dates_times_and_durations_of_json(tmp_path: Path) -> None:
    table = pa.table(
        {
            "day": pa.array([5, None], pa.date32()),
            "second": pa.array([5, None], pa.time32("s")),
            "micro": pa.array([1_500_000, None], pa.time64("us")),
            "lasted": pa.array([5, None], pa.duration("us")),
            "n": [1, 2],
        }
    )
    (tmp_path / "a.jsonl").write_bytes(encode_json(table))
    assert drained(tmp_path / "a.jsonl", table.schema) == table.to_pylist()
    (tmp_path / "a.jsonl").write_text('{"day": 5, "second": 5}\n')  # counted in the unit of the column
    found = drained(tmp_path / "a.jsonl", pa.schema({"day": pa.date32(), "second": pa.time32("s")}))
    assert found == [{"day": dt.date(1970, 1, 6), "second": dt.time(0, 0, 5)}]
    for name, text in (("day", "2024-02-30"), ("second", "24:00:00"), ("second", "00:00:00.5"), ("micro", "x")):
        (tmp_path / "a.jsonl").write_text(f'{{"{name}": "{text}"}}\n')
        with pytest.raises(SourceError, match=r"a\.jsonl, line 1, is not a record"):
            drained(tmp_path / "a.jsonl", pa.schema([table.schema.field(name)]))
