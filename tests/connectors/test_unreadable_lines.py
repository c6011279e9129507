"""Malformed lines: each becomes one dead letter of its source, with its position."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

import workbench as wb
from workbench.connectors.contract.base import Exhausted, Fetched
from workbench.connectors.files import lenient_files
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.messages import sorting
from workbench.operators.contract.base import OperatorContext
from workbench.operators.functions.dead_letters import SCHEMA

COLUMNS = pa.schema([("n", pa.int64()), ("t", pa.string())])
BAD_JSON = ("nonsense", '{"n": "text"}', '{"n": 1} {"n": 2}', '{"n": 1', "null")
BAD_CSV = ("x,a", "1,2,3", "1")


def write(path: Path, form: str, lines: Sequence[int | str | None]) -> Path:
    """A line for each number, a blank one for None, any text as it is."""
    shown = {
        "json": lambda n: json.dumps({"n": n, "t": f"t{n}", "more": 0}),
        "csv": lambda n: f"t{n},{n}",
    }[form]
    head = ["t,n"] if form == "csv" else []
    text = [line if isinstance(line, str) else "" if line is None else shown(line) for line in lines]
    path.write_text("\n".join(head + text) + "\n")
    return path


def read(source: FileSource, chance: Random) -> tuple[list[Any], list[Any], Any]:
    """Rows, (position, text) of dead letters, and the reader's snapshots after each poll."""
    rows, letters, snapshots = [], [], []
    reader = source.create()
    reader.open(OperatorContext(uid="files", subtask=0))
    while not isinstance(polled := reader.poll(chance.randint(1, 7)), Exhausted):
        assert isinstance(polled, Fetched)
        rows += polled.records.batch.to_pylist()
        assert polled.records.batch.schema == COLUMNS
        if polled.dead_letters is not None:
            assert polled.dead_letters.batch.schema == SCHEMA
            letters += [(row["position"], row["record"]) for row in polled.dead_letters.batch.to_pylist()]
        snapshots.append((len(rows), len(letters), json.loads(json.dumps(reader.snapshot()))))
    reader.close()
    return rows, letters, snapshots


def expected(path: Path, form: str, lines: Sequence[int | str | None]) -> tuple[list[Any], list[Any]]:
    first = 2 if form == "csv" else 1
    rows = [{"n": line, "t": f"t{line}"} for line in lines if isinstance(line, int)]
    letters = [(f"{path}, line {first + at}", line) for at, line in enumerate(lines) if isinstance(line, str)]
    return rows, letters


def lines_of(form: str) -> st.SearchStrategy[list[int | str | None]]:
    bad = BAD_JSON if form == "json" else BAD_CSV
    return st.lists(st.one_of(st.integers(0, 99), st.none(), st.sampled_from(bad)), max_size=30)


@pytest.mark.parametrize("form", ["json", "csv"])
@settings(max_examples=60)
@given(data=st.data())
def test_every_line_is_a_record_or_a_dead_letter(
    tmp_path_factory: pytest.TempPathFactory, form: str, data: st.DataObject
) -> None:
    lines = data.draw(lines_of(form))
    path = write(tmp_path_factory.mktemp("lines") / f"a.{form}", form, lines)
    source = FileSource(path, COLUMNS, on_error="dead_letter")
    chance = Random(data.draw(st.integers(0, 9)))
    rows, letters, snapshots = read(source, chance)
    assert (rows, letters) == expected(path, form, lines)
    for seen, dead, snapshot in snapshots:  # a recovery gives the rest, and nothing twice
        reader = source.create()
        reader.open(OperatorContext())
        reader.restore([snapshot])
        more, again = [], []
        while not isinstance(polled := reader.poll(5), Exhausted):
            assert isinstance(polled, Fetched)
            more += polled.records.batch.to_pylist()
            again += [] if polled.dead_letters is None else polled.dead_letters.batch["record"].to_pylist()
        assert rows[seen:] == more
        assert [record for _, record in letters[dead:]] == again


def test_a_quote_that_is_not_closed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "csv", [1, '"open,2', 3, 4, "b,x", 5])
    rows, letters, _ = read(FileSource(path, COLUMNS, on_error="dead_letter"), Random(1))
    assert [row["n"] for row in rows] == [1, 3, 4, 5]
    assert letters == [(f"{path}, line 3", '"open,2'), (f"{path}, line 6", "b,x")]


def test_a_header_behind_an_empty_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\nn,t\n1,x\n2,y,z\n")
    rows, letters, _ = read(FileSource(path, COLUMNS, on_error="dead_letter"), Random(1))
    assert [row["n"] for row in rows] == [1]
    assert letters == [(f"{path}, line 2", "n,t"), (f"{path}, line 4", "2,y,z")]


def test_tabs_and_compressed_files(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv.gz"
    with pa.output_stream(str(path), compression="gzip") as stream:
        stream.write(b"n\tt\n1\tt1\nx\tt\n2\tt2")  # the last line has no end
    rows, letters, _ = read(FileSource(path, COLUMNS, on_error="dead_letter"), Random(1))
    assert [row["n"] for row in rows] == [1, 2]
    assert letters == [(f"{path}, line 3", "x\tt")]


def test_an_empty_file(tmp_path: Path) -> None:
    for form in ("json", "csv"):
        path = tmp_path / f"empty.{form}"
        path.write_text("")
        assert read(FileSource(path, COLUMNS, on_error="dead_letter"), Random(1))[:2] == ([], [])


def test_positions_of_lines_are_not_positions_of_rows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", "json", [1, 2])
    _, _, snapshots = read(FileSource(path, COLUMNS, on_error="dead_letter"), Random(1))
    reader = FileSource(path, COLUMNS).create()
    reader.open(OperatorContext())
    with pytest.raises(wb.errors.CheckpointError, match="counts lines of the files and this source counts rows"):
        reader.restore([snapshots[0][2]])


def test_what_is_refused(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": [1]}), tmp_path / "a.parquet")
    with pytest.raises(wb.errors.PlanError, match="parquet files have no lines that could be dead letters"):
        wb.Stream.from_files(tmp_path / "a.parquet", on_error="dead_letter")
    path = write(tmp_path / "a.json", "json", [1])
    with pytest.raises(wb.errors.PlanError, match="unknown on_error 'skip'"):
        wb.Stream.from_files(path, on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(wb.errors.PlanError, match="unknown on_error 'skip'"):
        wb.Stream.from_socket("localhost", 9, on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(wb.errors.PlanError, match="give it on_error='dead_letter'"):
        wb.Stream.from_files(path).dead_letters()


def test_a_job_over_files_that_fails_on_the_way(tmp_path: Path) -> None:
    lines = [n if n % 10 else BAD_JSON[n // 10 % 4] for n in range(2_000)]
    for part in range(2):
        write(tmp_path / f"{part}.json", "json", lines[part * 1000 : (part + 1) * 1000])
    stream = wb.Stream.from_files(tmp_path / "*.json", COLUMNS, on_error="dead_letter", rate=50)
    pipeline = stream.sink_to(wb.TableSink("good")) + stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("lines", parallelism=2, checkpoint_interval="50ms")
    for _ in range(3):
        job.checkpoint()
        job.fail(task="files[1]")
    job.tune(rate="max")  # until here it was too slow to end meanwhile
    assert job.wait("120s") == "FINISHED"
    assert sorted(job.table("good")["n"].to_pylist()) == [n for n in range(2_000) if n % 10]
    bad = job.table("bad").to_pylist()
    assert sorted(row["position"] for row in bad) == sorted(
        f"{tmp_path}/{part}.json, line {n + 1}" for part in range(2) for n in range(0, 1000, 10)
    )
    assert {row["operator"] for row in bad} == {"files"}
    first = next(row for row in bad if row["position"] == f"{tmp_path}/0.json, line 1")
    assert first["error"].startswith(f"{tmp_path}/0.json, line 1 is not a record: JSON parse error: Invalid value")


def test_lines_of_a_socket() -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b'{"n": 1}\nnonsense\n{"n": 2}\n{"n": "x"}\n')

    thread = threading.Thread(target=serve)
    thread.start()
    port = server.getsockname()[1]
    stream = wb.Stream.from_socket("127.0.0.1", port, {"n": pa.int64()}, format="json", on_error="dead_letter")
    pipeline = stream.sink_to(wb.TableSink("good")) + stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("socket-lines")
    assert job.wait("120s") == "FINISHED"
    thread.join()
    server.close()
    assert job.table("good")["n"].to_pylist() == [1, 2]
    assert job.table("bad")["record"].to_pylist() == ["nonsense", '{"n": "x"}']
    assert job.table("bad")["error"][0].as_py() == (
        f"127.0.0.1:{port} sent the line 'nonsense', which is not a record "
        "of these columns: JSON parse error: Invalid value. in row 0; fix the sender, or declare other types with "
        "schema=..."
    )
    assert set(job.table("bad")["position"].to_pylist()) == {f"127.0.0.1:{port}"}
    assert sum(int(str(row["numRecordsInErrors"])) for row in job.metrics()) == 2


@pytest.mark.parametrize("error", [KeyError("uuid"), OSError("cut off"), pa.ArrowKeyError("no"), RecursionError()])
def test_whatever_a_decoder_raises_is_that_records_dead_letter(error: Exception) -> None:
    batch = pa.RecordBatch.from_pydict({"n": list(range(8))})

    def decode(begin: int, end: int) -> pa.RecordBatch:
        if begin <= 5 < end:
            raise error
        return batch.slice(begin, end - begin)

    source = wb.KafkaSource("localhost:9092", "numbers", {"n": pa.int64()}, on_error="dead_letter")
    letters = sorting.letters_of([b"%d" % n for n in range(8)], "numbers, offset {}".format, source)
    found = sorting.sorted_out(8, decode, letters, source)
    assert found.batch.column("n").to_pylist() == [0, 1, 2, 3, 4, 6, 7]
    assert [(letter.record, letter.position) for letter in found.letters] == [("5", "numbers, offset 5")]
    assert found.letters[0].error
    lines = [b"%d" % n for n in range(8)]
    kept, bad = lenient_files.sorted_out(
        lines, lambda part: decode(int(part[0]), int(part[-1]) + 1), batch.schema, None
    )
    assert (kept.num_rows, bad) == (7, [(5, found.letters[0].error)])
