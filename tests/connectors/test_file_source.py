"""Files as a source: every row once, in every format, from every position, and clear errors about broken files."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from source_readers import read_in_runs, readers

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.connectors.contract.text_check import check_text
from workbench.connectors.files import file_format
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.files.json_lines import parse_json
from workbench.errors import CheckpointError, PlanError, SettingError, SourceError

SCHEMA = pa.schema([("n", pa.int64()), ("name", pa.string()), ("t", pa.timestamp("us"))])


def rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    times = [datetime(2024, 1, 1 + n // 1440, n // 60 % 24, n % 60) for n in numbers]
    return pa.table([list(numbers), [f"name {n}, quoted" for n in numbers], times], schema=SCHEMA)


def write_parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=7)
    return path.with_suffix(".parquet")


def write_csv(table: pa.Table, path: Path) -> Path:
    pc.write_csv(table, path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def write_json(table: pa.Table, path: Path) -> Path:
    lines = [json.dumps({**row, "t": row["t"].isoformat(" ")}) for row in table.to_pylist()]
    path.with_suffix(".jsonl").write_text("".join(f"{line}\n" for line in lines))
    return path.with_suffix(".jsonl")


def zipped(write: Callable[[pa.Table, Path], Path]) -> Callable[[pa.Table, Path], Path]:
    def write_zipped(table: pa.Table, path: Path) -> Path:
        plain = write(table, path)
        packed = plain.with_name(plain.name + ".gz")
        packed.write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
        return packed

    return write_zipped


WRITERS = {
    "parquet": write_parquet,
    "csv": write_csv,
    "json": write_json,
    "csv.gz": zipped(write_csv),
    "json.gz": zipped(write_json),
}


def folder_of(folder: Path, kind: str, sizes: list[int]) -> Path:
    first = 0
    for number, count in enumerate(sizes):
        WRITERS[kind](rows(first, count), folder / f"part-{number:02}")
        first += count
    return folder


def numbers_of(fetched: Fetched) -> list[int]:
    numbers: list[int] = fetched.records.batch.column("n").to_pylist()
    return numbers


def drain(reader: SourceReader, max_records: int = 5) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while isinstance(fetched := reader.poll(max_records), Fetched):
        assert 0 < len(fetched.records) <= max_records
        assert fetched.split in reader.splits()
        found += fetched.records.batch.to_pylist()
    assert fetched == Exhausted()
    assert reader.splits() == []
    reader.close()
    return found


@pytest.mark.parametrize("kind", WRITERS)
def test_rows_come_in_the_order_of_the_names(kind: str, tmp_path: Path) -> None:
    source = FileSource(folder_of(tmp_path, kind, [9, 1, 30]), event_time="t")
    assert source.schema == SCHEMA
    (reader,) = readers(source, 1)
    assert drain(reader) == rows(0, 40).to_pylist()
    (reader,) = readers(source, 1)
    fetched = reader.poll(2)
    assert isinstance(fetched, Fetched)
    assert fetched.records.timestamps is not None
    minute = 60_000_000
    start = 1_704_067_200_000_000  # 2024-01-01
    assert fetched.records.timestamps.tolist() == [start, start + minute]


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("parallelism", [2, 5])
def test_subtasks_share_the_rows(kind: str, parallelism: int, tmp_path: Path) -> None:
    source = FileSource(folder_of(tmp_path, kind, [9, 1, 30]))
    shares = [drain(reader, 100) for reader in readers(source, parallelism)]
    assert sorted(row["n"] for share in shares for row in share) == list(range(40))
    if kind == "parquet":  # row groups of 7: 2 + 1 + 5 of them
        assert [len(share) for share in shares] == (
            [7 + 1 + 7 + 7, 2 + 7 + 7 + 2] if parallelism == 2 else [14, 9, 3, 7, 7]
        )


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["parquet", "csv", "json"]),
    sizes=st.lists(st.integers(0, 25), min_size=1, max_size=4),
    runs=st.lists(st.tuples(st.integers(1, 4), st.lists(st.integers(1, 12), max_size=8)), min_size=1, max_size=4),
)
def test_every_row_once_however_often_the_job_is_stopped_and_rescaled(
    kind: str, sizes: list[int], runs: list[tuple[int, list[int]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = folder_of(tmp_path_factory.mktemp("files"), kind, sizes)
    source = FileSource(folder, SCHEMA)
    seen = read_in_runs(source, runs, numbers_of)
    assert Counter(seen) == Counter(range(sum(sizes)))


def test_parts_are_read_in_order_and_those_that_were_begun_hold_event_time(tmp_path: Path) -> None:
    source = FileSource(folder_of(tmp_path, "csv", [10, 10, 10, 10]))
    before = readers(source, 2)
    for _ in range(2):  # the first subtask is in the third file, the other has not read anything
        before[0].poll(10)
    (after,) = readers(source, 1)
    after.restore([reader.snapshot() for reader in before])
    names = [str(path) for path in source.files]
    assert after.splits() == [names[1], names[2]]
    found = []
    while isinstance(fetched := after.poll(4), Fetched):
        found.append((fetched.split, len(fetched.records), list(after.splits())))
    assert found == [
        *((names[1], rows, [names[1], names[2]]) for rows in (4, 4, 2)),
        *((names[3], rows, [names[3]]) for rows in (4, 4, 2)),
    ]
    after.close()


def test_what_is_left_to_read_is_known_of_parquet(tmp_path: Path) -> None:
    (reader,) = readers(FileSource(folder_of(tmp_path, "parquet", [9, 1, 30])), 1)
    assert reader.pending_records() == 40  # type: ignore[attr-defined]
    reader.poll(5)
    assert reader.pending_records() == 35  # type: ignore[attr-defined]
    assert [split.rpartition("/")[2] for split in reader.splits()] == ["part-00.parquet#0"]
    reader.close()
    (tmp_path / "text").mkdir()
    (reader,) = readers(FileSource(folder_of(tmp_path / "text", "csv", [9])), 1)
    assert reader.pending_records() is None  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_file_of_many_blocks(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("csv_format", "json_lines"):
        monkeypatch.setattr(f"workbench.connectors.files.{module}.BLOCK_BYTES", 200)
    assert file_format.BLOCK_BYTES > 200
    source = FileSource(folder_of(tmp_path, kind, [300]), SCHEMA)
    (reader,) = readers(source, 1)
    first: list[int] = []
    while len(first) < 100:
        fetched = reader.poll(7)
        assert isinstance(fetched, Fetched)
        first += fetched.records.batch.column("n").to_pylist()
    state = reader.snapshot()
    reader.close()
    (after,) = readers(source, 1)
    after.restore([state])
    assert first + [row["n"] for row in drain(after)] == list(range(300))


@pytest.mark.parametrize("kind", ["csv", "json", "csv.gz"])
def test_rows_that_are_longer_than_a_block(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("csv_format", "json_lines"):
        monkeypatch.setattr(f"workbench.connectors.files.{module}.BLOCK_BYTES", 200)
    long = {0: "x" * 2_500_000, 4: "y" * 5_000, 30: "z" * 70_000}
    names = pa.array([long.get(n, f"name {n}") for n in range(60)])
    table = rows(0, 60).set_column(1, "name", names)
    WRITERS[kind](table, tmp_path / f"long.{kind.partition('.')[0]}")
    source = FileSource(tmp_path)
    assert source.schema == table.schema
    (reader,) = readers(source, 1)
    first: list[dict[str, Any]] = []
    while len(first) < 20:
        fetched = reader.poll(7)
        assert isinstance(fetched, Fetched)
        first += fetched.records.batch.to_pylist()
    state = reader.snapshot()
    reader.close()
    (after,) = readers(source, 1)
    after.restore([state])
    assert first + drain(after) == table.to_pylist()


def test_a_row_without_end_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.connectors.files.csv_format.BLOCK_BYTES", 200)
    monkeypatch.setattr("workbench.connectors.files.csv_format.record_bytes", lambda: 1_000)
    (tmp_path / "a.csv").write_text('n\n1\n"' + "2\n" * 1_000)
    source = FileSource(tmp_path / "a.csv", pa.schema([("n", pa.int64())]))
    with pytest.raises(SourceError, match=r"a\.csv cannot be read: a row takes more than .*close the quote"):
        drain(readers(source, 1)[0])


def test_a_name_of_a_column_may_have_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'\xef\xbb\xbf"n\nm",name\r\n1,a\r\n')
    (reader,) = readers(FileSource(tmp_path / "a.csv"), 1)
    assert drain(reader) == [{"n\nm": 1, "name": "a"}]


def test_a_bad_line_is_found_without_reading_each_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ['{"n": 1}'] * 30_000
    lines[20_123] = lines[25_000] = '{"n": "x"}'
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    source = FileSource(tmp_path / "a.jsonl", pa.schema([("n", pa.int64())]))
    calls: list[int] = []

    def counted(block: bytes, schema: pa.Schema, unit: None = None) -> pa.RecordBatch:
        calls.append(len(block))
        return parse_json(block, schema, unit)

    monkeypatch.setattr("workbench.connectors.files.json_lines.parse_json", counted)
    with pytest.raises(SourceError, match=r"a\.jsonl, line 20124, is not a record"):
        drain(readers(source, 1)[0])
    assert len(calls) < 30


def test_the_rate_is_that_of_the_whole_source(tmp_path: Path) -> None:
    clock = VirtualClock()
    made = readers(FileSource(folder_of(tmp_path, "parquet", [200, 200]), rate=100), 2, clock)
    read = 0
    for now_us in range(0, 2_000_001, 10_000):
        clock.advance_to(now_us)
        for reader in made:
            while isinstance(fetched := reader.poll(100), Fetched):
                read += len(fetched.records)
            assert isinstance(fetched, WaitUntil)
    assert abs(read - 200) <= 2


def test_a_declared_schema_chooses_and_converts_columns(tmp_path: Path) -> None:
    for kind in ("parquet", "csv", "json"):
        (tmp_path / kind).mkdir()
        columns = pa.schema([("t", pa.timestamp("us")), ("n", pa.int32())])
        (reader,) = readers(FileSource(folder_of(tmp_path / kind, kind, [2]), columns), 1)
        found = drain(reader)
        assert [(row["n"], row["t"].isoformat()) for row in found] == [
            (0, "2024-01-01T00:00:00"),
            (1, "2024-01-01T00:01:00"),
        ]
        assert list(found[0]) == ["t", "n"]


def test_absent_values_are_null(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,name\n,\n2,b\n")
    (reader,) = readers(FileSource(tmp_path / "a.csv", pa.schema([("n", pa.int64()), ("name", pa.string())])), 1)
    assert drain(reader) == [{"n": None, "name": ""}, {"n": 2, "name": "b"}]
    (tmp_path / "a.jsonl").write_text('{"n": null}\n\n{"name": "b", "more": [1]}\n')
    (reader,) = readers(FileSource(tmp_path / "a.jsonl", pa.schema([("n", pa.int64()), ("name", pa.string())])), 1)
    assert drain(reader) == [{"n": None, "name": None}, {"n": None, "name": "b"}]


@pytest.mark.parametrize("text", ["", "\n", "\ufeff"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_an_empty_file_has_no_rows(name: str, text: str, tmp_path: Path) -> None:
    if text == "\ufeff" and name == "a.jsonl":
        pytest.skip("JSON has no mark of the order of bytes")
    (tmp_path / name).write_text(text)
    (reader,) = readers(FileSource(tmp_path / name, SCHEMA), 1)
    assert drain(reader) == []


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "n\n1\n2,3\n", r"a\.csv cannot be read: .*Row #3: Expected 1 columns, got 2: 2,3; fix"),
        ("a.csv", "n\n1\nx\n", r"a\.csv cannot be read: .*Row #3: .*invalid value 'x'"),
        ("a.csv", "m\n1\n", r"a\.csv has no column 'n' \(its first line names m\)"),
        ("a.jsonl", '{"n": 1}\n\n{"n": 2\n', r"a\.jsonl, line 3, is not a record of these columns: .* in '{\"n\": 2'"),
        ("a.jsonl", '{"n": 1}\n{"n": "x"}\n', r"a\.jsonl, line 2, is not a record .* in '{\"n\": \"x\"}'"),
        ("a.json", "[1, 2]\n", r"a\.json, line 1, is not a record"),
        ("a.json", "null\n", r"a\.json, line 1, is not a record of these columns: null is not a JSON object in 'null'"),
        ("a.json", '{"n": 1}\n{}\nnull\n', r"a\.json, line 3, is not a record .*: null is not a JSON object in 'null'"),
        ("a.json", 'null\n{"n": 1}\n{}\n', r"a\.json, line 1, is not a record .*: null is not a JSON object in 'null'"),
        ("a.csv", "n,n\n1,2\n", r"a\.csv has 2 columns 'n': give each a different name"),
        ("a.parquet", "n\n1\n", r"a\.parquet cannot be read: .*smaller than the minimum file footer"),
    ],
)
def test_a_broken_file_is_named_with_the_place(name: str, text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    source = FileSource(tmp_path / name, pa.schema([("n", pa.int64())]))
    with pytest.raises(SourceError, match=message):
        drain(readers(source, 1)[0])


def test_a_parquet_file_of_other_columns_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"m": [1]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=r"b\.parquet has no column 'n' \(it has m\)"):
        readers(FileSource(tmp_path), 1)
    pq.write_table(pa.table({"n": [[1]]}), tmp_path / "b.parquet")
    with pytest.raises(
        SourceError, match=r"b\.parquet has the column 'n' of type list<.*>, which cannot be read as int64"
    ):
        readers(FileSource(tmp_path), 1)


@pytest.mark.parametrize("name", ["a.csv", "a.json", "a.parquet"])
@pytest.mark.parametrize("on_error", ["fail", "dead_letter"])
def test_text_that_is_none_is_not_passed_on(name: str, on_error: Any, tmp_path: Path) -> None:
    """User code would stumble over it, far from the file."""
    bad = b"x\xff"
    if name == "a.parquet":
        offsets = pa.array([0, 2], pa.int32()).buffers()[1]
        text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(bad)])
        pq.write_table(pa.table({"s": text}), tmp_path / name)
    else:
        (tmp_path / name).write_bytes(b's\n"x\xff"\n' if name == "a.csv" else b'{"s": "x\xff"}\n')
    on_error = "fail" if name == "a.parquet" else on_error
    reader = readers(FileSource(tmp_path / name, pa.schema([("s", pa.string())]), on_error=on_error), 1)[0]
    if on_error == "fail":
        with pytest.raises(SourceError, match=rf"{name}(, line 1,)? (cannot be read|is not a record)"):
            drain(reader)
        return
    fetched = reader.poll(10)
    assert isinstance(fetched, Fetched)
    assert fetched.dead_letters is not None
    assert (fetched.records.batch.num_rows, fetched.dead_letters.batch.num_rows) == (0, 1)


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
@pytest.mark.parametrize("on_error", ["fail", "dead_letter"])
def test_a_type_that_the_format_does_not_have_is_told_before_anything_is_read(
    name: str, on_error: Any, tmp_path: Path
) -> None:
    (tmp_path / name).write_text("n\n1\n" if name == "a.csv" else '{"n": 1}\n')
    source = FileSource(tmp_path / name, pa.schema([("n", pa.list_(pa.int64(), 2))]), on_error=on_error)
    with pytest.raises(SourceError, match=rf"{name} cannot be read: .* conversion to fixed_size_list"):
        readers(source, 1)


def test_columns_are_not_guessed_of_what_has_no_end_of_levels(tmp_path: Path) -> None:
    """Arrow's reader calls itself for each level of a column, and has no bound for that."""
    path = tmp_path / "a.json"
    path.write_text('{"x":' * 100 + "1" + "}" * 100)
    assert FileSource(path).schema.names == ["x"]
    path.write_text('{"s": "]}]}]}\\"", "x":' * 20_000 + "1" + "}" * 20_000)
    with pytest.raises(SourceError, match=r"nested 20,000 levels deep, and columns can be inferred up to 100 levels"):
        FileSource(path)
    (row,) = drain(readers(FileSource(path, pa.schema([("s", pa.string())])), 1)[0])
    assert row == {"s": ']}]}]}"'}
    path.write_text("null\n")
    with pytest.raises(SourceError, match="null is not a JSON object"):
        FileSource(path)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(SourceError, match="it is a pipe or a device, not a file"):
        FileSource(tmp_path / "a.csv")


def test_two_columns_of_one_name_in_a_parquet_file_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([[1], [2]], names=["n", "n"]), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"a\.parquet has 2 columns 'n': write it again with a unique name for each"):
        readers(FileSource(tmp_path), 1)


def test_which_files_are_meant(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv.gz", "_SUCCESS", ".hidden.csv"):
        (tmp_path / name).write_bytes(gzip.compress(b"n\n1\n") if name.endswith(".gz") else b"n\n1\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.csv").write_text("n\n1\n")

    def names(paths: Any) -> list[str]:
        return [path.name for path in FileSource(paths).files]

    assert names(tmp_path) == ["a.csv.gz", "b.csv"]
    assert names(str(tmp_path / "*.csv")) == ["b.csv"]
    assert names(str(tmp_path / "**" / "*.csv")) == ["b.csv", "c.csv"]
    assert names([tmp_path / "more", tmp_path / "b.csv", tmp_path / "b.csv"]) == ["b.csv", "c.csv"]
    assert FileSource(tmp_path).describe() == "2 csv files"
    with pytest.raises(SourceError, match=r"there is no file .*nothing\*"):
        FileSource(tmp_path / "nothing*")
    (tmp_path / "more" / "d.json").write_text("{}\n")
    with pytest.raises(SourceError, match=r"different formats \(.*c\.csv and .*d\.json\)"):
        FileSource(tmp_path / "more")
    (tmp_path / "more" / "data").write_text("n\n1\n")
    with pytest.raises(SourceError, match="has no suffix that names a format"):
        FileSource(tmp_path / "more" / "data")
    assert FileSource(tmp_path / "more" / "data", format="csv").schema.names == ["n"]
    with pytest.raises(SettingError, match="unknown file format 'xml'"):
        FileSource(tmp_path / "more" / "data", format="xml")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="unknown column 'when'"):
        FileSource(tmp_path / "b.csv", event_time="when")


@pytest.mark.parametrize("pattern", ["*/*.csv", "**/*.csv", "**/c*/../*.csv", "*/c/e.csv", "closed/*", "**"])
def test_a_folder_that_cannot_be_looked_into_is_not_passed_over(
    pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("open", "closed"):
        (tmp_path / name / "c").mkdir(parents=True)
        (tmp_path / name / "d.csv").write_text("n\n1\n")
        (tmp_path / name / "c" / "e.csv").write_text("n\n1\n")
    assert FileSource(tmp_path / pattern).files
    scandir, stat = os.scandir, os.stat

    def refused(path: Any) -> bool:
        return not isinstance(path, int) and f"{os.sep}closed" in os.fspath(path)

    def no_listing(path: Any = ".") -> Any:
        if refused(path):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    def no_entering(path: Any, **options: Any) -> os.stat_result:
        if refused(path) and not os.fspath(path).rstrip(os.sep).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return stat(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", no_listing)
        patch.setattr(os, "stat", no_entering)
        with pytest.raises(SourceError, match=r"cannot be listed: .*closed.*: Permission denied; change its perm"):
            FileSource(tmp_path / pattern)


def test_a_file_that_changed_meanwhile_is_not_read_on(tmp_path: Path) -> None:
    source = FileSource(folder_of(tmp_path, "csv", [10, 10]))
    (reader,) = readers(source, 1)
    reader.poll(15)
    reader.poll(15)
    state = reader.snapshot()  # the first file is read, the second has been begun
    reader.close()
    source.files[0].unlink()
    again = FileSource(tmp_path)
    (reader,) = readers(again, 1)
    reader.restore([state])
    assert drain(reader) == []  # 10 were read of each
    with source.files[1].open("a") as file:
        file.write("1,x,2024-01-01\n")
    (reader,) = readers(again, 1)
    with pytest.raises(CheckpointError, match=r"part-01\.csv was being read .* deleted or changed"):
        reader.restore([state])


def test_a_job_over_files(tmp_path: Path) -> None:
    stream = wb.Stream.from_files(folder_of(tmp_path, "parquet", [90, 50]), event_time="t")
    hours = stream.window(wb.tumbling("1h")).aggregate(n=wb.count(), last=wb.max("n"))
    job = hours.sink_to(wb.TableSink("hours")).run("hours", driver="stepping", parallelism=2, buffer_size=10)
    assert job.wait() == "FINISHED"
    found = job.table("hours").select(["n", "last"]).to_pylist()
    assert sorted((row["n"], row["last"]) for row in found) == [(20, 139), (60, 59), (60, 119)]


def test_files_are_closed(tmp_path: Path) -> None:
    source = FileSource(folder_of(tmp_path, "parquet", [90]))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    (reader,) = readers(source, 1)
    reader.poll(3)
    reader.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def test_an_event_time_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    times = pa.array([1, 2], pa.timestamp("us", "UTC"))
    pq.write_table(pa.Table.from_arrays([times, times], names=["t", "t"]), tmp_path / "twice.parquet")
    with pytest.raises(wb.errors.PlanError, match="there are 2 columns 't': give each a different name"):
        wb.Stream.from_files(tmp_path / "twice.parquet", event_time="t")


def test_keys_that_lead_out_of_their_dictionary_are_refused() -> None:
    keys = pa.array([0, 1], pa.int32())
    broken = pa.DictionaryArray.from_arrays(keys, pa.array(["a"]), safe=False)
    with pytest.raises(pa.ArrowInvalid, match="the column 'kind' has keys that are not in its dictionary"):
        check_text(pa.record_batch({"kind": broken}))
    check_text(pa.record_batch({"kind": pa.array(["a", None, "b"]).dictionary_encode()}))
