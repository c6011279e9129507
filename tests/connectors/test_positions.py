"""The positions of dead letters and failing records, compared with the source itself."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from source_readers import read_in_runs

import workbench as wb
from workbench import col
from workbench.connectors.contract.base import Fetched, Source
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.live.generator_source import GeneratorSource
from workbench.connectors.live.hybrid_source import HybridSource
from workbench.connectors.replay.log import ReplayLog, write_log
from workbench.connectors.replay.source import ReplaySource
from workbench.connectors.tables.table_source import TableSource
from workbench.datasets.access_log import AccessLog
from workbench.operators.contract.base import OperatorContext
from workbench.plan.logical import Input, Node

SCHEMA = pa.schema([("n", pa.int64()), ("t", pa.int64())])


def table(rows: int) -> pa.Table:
    """In two chunks; event times go back now and then."""
    numbers = list(range(rows))
    whole = pa.table([numbers, [10 * n - 25 * (n % 3 == 0) for n in numbers]], schema=SCHEMA)
    return pa.concat_tables([whole.slice(0, rows // 3), whole.slice(rows // 3)])


def fails_at(bad: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def function(record: dict[str, Any]) -> dict[str, Any]:
        if record["n"] % bad == bad - 1:
            raise ValueError("bad")
        return record

    return function


def letters(stream: wb.Stream, **settings: Any) -> list[tuple[int, str | None]]:
    """The number in each dead letter, and its position."""
    job = stream.dead_letters().sink_to(wb.TableSink("bad")).run("letters", **settings)
    assert job.wait("60s") == "FINISHED"
    rows = job.table("bad").to_pylist()
    return sorted((json.loads(row["record"])["n"], row["position"]) for row in rows)


# chains --------------------------------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[wb.Stream], wb.Stream]] = {
    "filter": lambda s: s.filter(col("n") % 3 != 1),
    "filter by its codes": lambda s: s.filter("n NOT IN (2, 30)"),
    "filter by a function": lambda s: s.filter(lambda n: n % 5 != 2, columns="n"),
    "a filter with dead letters": lambda s: s.filter(
        lambda n: n % 4 != 10 // (n % 7), columns="n", on_error="dead_letter"
    ),
    "with_columns": lambda s: s.with_columns(twice=col("n") * 2),
    "select": lambda s: s.select("n", "t"),
    "map": lambda s: s.map(lambda record: {"n": record["n"], "t": record["t"]}, SCHEMA),
    "a map with dead letters": lambda s: s.map(
        lambda record: {"n": record["n"] if record["n"] % 5 else "five", "t": 1 // (record["n"] % 6)},
        SCHEMA,
        on_error="dead_letter",
    ),
    "map of columns": lambda s: s.map(lambda n: n + 1, {"more": pa.int64()}, columns="n", keep=["n", "t"]),
    "a map of columns with dead letters": lambda s: s.map(
        lambda n: 7 // (n % 4), {"t": pa.int64()}, columns="n", keep=["n"], on_error="dead_letter"
    ),
    "flat_map": lambda s: s.flat_map(lambda r: [{"n": r["n"], "t": r["t"]}] * (r["n"] % 4), SCHEMA),
    "flat_map of columns": lambda s: s.flat_map(
        lambda n: [n] * (n % 3), {"t": pa.int64()}, columns="n", keep="n", on_error="dead_letter"
    ),
    "filter by a record": lambda s: s.filter(lambda r: r["n"] % 4 != 10 // (r["n"] % 7), on_error="dead_letter"),
    "a flat_map with dead letters": lambda s: s.flat_map(
        lambda r: [{"n": r["n"], "t": r["t"] if row < 2 else "two"} for row in range(r["n"] % 4)],
        SCHEMA,
        on_error="dead_letter",
    ),
    "assign_timestamps": lambda s: s.assign_timestamps("t", watermarks=wb.watermarks.punctuated("t")),
}
ENDS: dict[str, Callable[[wb.Stream], wb.Stream]] = {
    "map": lambda s: s.map(fails_at(4), s.schema, on_error="dead_letter"),
    "unfit values": lambda s: s.map(
        lambda record: {"n": "four" if record["n"] % 4 == 3 else 0}, {"n": pa.int64()}, on_error="dead_letter"
    ),
    "flat_map": lambda s: s.flat_map(
        lambda r: [{"n": 1}, {"n": 1 // (r["n"] % 3)}], {"n": pa.int64()}, on_error="dead_letter"
    ),
    "filter": lambda s: s.filter(lambda n: 3 % (n % 4) == 0, columns="n", on_error="dead_letter"),
    "columns": lambda s: s.map(lambda n: 1 // (n % 5), {"n": pa.int64()}, columns="n", on_error="dead_letter"),
    "batches": lambda s: s.map_batches(lambda batch: [][batch["n"][0].as_py() % 2 :][0], on_error="dead_letter"),
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@settings(max_examples=12, deadline=None)
@given(
    steps=st.lists(st.sampled_from(sorted(STEPS)), max_size=4),
    rows=st.sampled_from([1, 7, 40, 5_000]),
    buffer_size=st.sampled_from([1, 3, 1000, 8000]),
    splits=st.sampled_from([1, 2]),
    marked=st.booleans(),
)
def test_behind_every_chain(end: str, steps: list[str], rows: int, buffer_size: int, splits: int, marked: bool) -> None:
    rows = rows if buffer_size > 3 else min(rows, 40)
    marks = (
        wb.watermarks.punctuated("n % 2 = 0") if marked else None
    )  # with marks a batch goes through the chain in pieces
    stream = wb.Stream.from_table(table(rows), event_time="t", watermarks=marks)
    for step in steps:
        stream = STEPS[step](stream)
    found = letters(ENDS[end](stream), buffer_size=buffer_size, parallelism=splits)
    assert [position for _, position in found] == [f"table, row {n}" for n, _ in found]


@settings(max_examples=12, deadline=None)
@given(
    steps=st.lists(st.sampled_from([name for name in sorted(STEPS) if "dead" in name]), min_size=1, max_size=4),
    buffer_size=st.sampled_from([1, 3, 1000]),
)
def test_of_dead_letters_on_the_way(steps: list[str], buffer_size: int) -> None:
    stream = wb.Stream.from_table(table(40), event_time="t")
    streams = []
    for step in steps:
        stream = STEPS[step](stream)
        streams.append(stream)
    sinks = [each.dead_letters().sink_to(wb.TableSink(f"bad{at}")) for at, each in enumerate(streams)]
    pipeline = stream.sink_to(wb.DiscardSink())
    for sink in sinks:
        pipeline = pipeline + sink
    job = pipeline.run("on-the-way", buffer_size=buffer_size)
    assert job.wait("60s") == "FINISHED"
    found = [row for at in range(len(steps)) for row in job.table(f"bad{at}").to_pylist()]
    assert found
    assert [row["position"] for row in found] == [f"table, row {json.loads(row['record'])['n']}" for row in found]


UNKNOWN: dict[str, Callable[[wb.Stream], wb.Stream]] = {
    "an exchange": lambda s: s.rebalance(),
    "keys": lambda s: s.key_by("n").process(lambda record, state: record, SCHEMA),
    "a union": lambda s: s.union(wb.Stream.from_table(table(3), event_time="t")),
    "a function of batches": lambda s: s.map_batches(lambda batch: batch.take(list(reversed(range(len(batch)))))),
    "a side output": lambda s: s.split({"few": "n < 100"})["few"],
    "dead letters": lambda s: (
        s.map(lambda r: 1 // 0, SCHEMA, on_error="dead_letter")
        .dead_letters()
        .map(lambda r: {"n": json.loads(r["record"])["n"], "t": 0}, SCHEMA)
    ),
}


@pytest.mark.parametrize("what", UNKNOWN)
def test_unknown_behind(what: str) -> None:
    stream = UNKNOWN[what](wb.Stream.from_table(table(20), event_time="t"))
    stream = stream.filter("n > 0").map(fails_at(4), SCHEMA, on_error="dead_letter")
    found = letters(stream)
    assert len(found) >= 5
    assert {position for _, position in found} == {None}


def test_of_keyed_operators_and_two_chains_of_a_source() -> None:
    source = wb.Stream.from_table(table(20))
    first = source.filter("n > 9").map(fails_at(4), SCHEMA, on_error="dead_letter")
    second = source.flat_map(lambda r: [r, r], SCHEMA).map(fails_at(5), SCHEMA, on_error="dead_letter")
    keyed = source.key_by("n").process(lambda record, state: fails_at(6)(record), SCHEMA, on_error="dead_letter")
    pipeline = (
        first.dead_letters().sink_to(wb.TableSink("first"))
        + second.dead_letters().sink_to(wb.TableSink("second"))
        + keyed.dead_letters().sink_to(wb.TableSink("keyed"))
    )
    job = pipeline.run("two-chains")
    assert job.wait("60s") == "FINISHED"
    found = {sink: sorted(map(str, job.table(sink)["position"].to_pylist())) for sink in ("first", "second", "keyed")}
    assert found == {
        "first": ["table, row 11", "table, row 15", "table, row 19"],
        "second": sorted(["table, row 14", "table, row 19", "table, row 4", "table, row 9"] * 2),
        "keyed": ["None"] * 3,
    }


# sources -------------------------------------------------------------------------------------------------------------


def numbers(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch([range(first, first + count), range(first, first + count)], schema=SCHEMA)


def a_table(folder: Path) -> tuple[Source, Callable[[str], int]]:
    rows = table(300).take(list(reversed(range(300))))
    return TableSource(rows), lambda place: rows["n"][int(place.removeprefix("table, row "))].as_py()


def a_generator(folder: Path) -> tuple[Source, Callable[[str], int]]:
    source = GeneratorSource(numbers, SCHEMA, limit=300)
    return source, lambda place: numbers(int(place.removeprefix("generator, row ")), 1)["n"][0].as_py()


def csv_files(folder: Path) -> tuple[Source, Callable[[str], int]]:
    """Rows are no lines: some lines are empty, and some values have a line end."""
    rows: dict[str, list[int]] = {}
    for file in range(3):
        path = folder / f"{file}.csv"
        rows[str(path)] = [1000 * file + n for n in range(60)]
        lines = [f'{n},"a\nb"\n\n' if n % 7 == 0 else f"{n},c\n" for n in rows[str(path)]]
        path.write_text("n,s\n" + "".join(lines))

    def number(place: str) -> int:
        path, _, row = place.partition(", row ")
        return rows[path][int(row)]

    return FileSource(folder, pa.schema([("n", pa.int64()), ("s", pa.string())])), number


def at_a_line(place: str) -> str:
    path, _, line = place.partition(", line ")
    return Path(path).read_text().split("\n")[int(line) - 1]


def csv_lines(folder: Path) -> tuple[Source, Callable[[str], int]]:
    for file in range(3):
        lines = ["" if n % 11 == 0 else "nonsense" if n % 5 == 0 else str(1000 * file + n) + ",x" for n in range(60)]
        (folder / f"{file}.csv").write_text("\n".join(["n,s", *lines]))
    source = FileSource(folder, pa.schema([("n", pa.int64()), ("s", pa.string())]), on_error="dead_letter")
    return source, lambda place: int(at_a_line(place).split(",")[0])


def json_lines(folder: Path) -> tuple[Source, Callable[[str], int]]:
    for file in range(3):
        lines = ["  " if n % 11 == 0 else "{" if n % 5 == 0 else json.dumps({"n": 1000 * file + n}) for n in range(60)]
        (folder / f"{file}.json").write_text("\n".join(lines))
    source = FileSource(folder, pa.schema([("n", pa.int64())]), on_error="dead_letter")
    return source, lambda place: int(json.loads(at_a_line(place))["n"])


def parquet_files(folder: Path) -> tuple[Source, Callable[[str], int]]:
    for file in range(2):
        pq.write_table(
            pa.table({"n": range(1000 * file, 1000 * file + 100)}), folder / f"{file}.parquet", row_group_size=30
        )

    def number(place: str) -> int:
        part, _, row = place.partition(", row ")
        path, _, group = part.rpartition("#")
        return int(pq.ParquetFile(path).read_row_group(int(group))["n"][int(row)].as_py())

    return FileSource(folder), number


def history(folder: Path) -> ReplayLog:
    times = pa.array([n * 1_000_000 for n in range(200)], pa.timestamp("us", "UTC"))
    rows = pa.table({"n": range(200), "t": times, "landed": times})
    return write_log(rows, folder / "past.log", event_time="t", arrival_time="landed", channels=3)


def in_a_log(folder: Path) -> Callable[[str], int]:
    def number(place: str) -> int:
        path, channel, offset = place.split(", ")
        cursor = ReplayLog.open(path).cursor(int(channel.removeprefix("channel ")))
        cursor.seek(int(offset.removeprefix("offset ")))
        batch = cursor.read(1)
        assert batch is not None
        return int(batch["n"][0].as_py())

    return number


def a_replay(folder: Path) -> tuple[Source, Callable[[str], int]]:
    return ReplaySource(history(folder)), in_a_log(folder)


def a_hybrid(folder: Path) -> tuple[Source, Callable[[str], int]]:
    log = history(folder)
    times = pa.array([n * 1_000_000 for n in range(200, 300)], pa.timestamp("us", "UTC"))
    present = pa.table([range(200, 300), times, times], schema=log.schema)

    def number(place: str) -> int:
        if place.startswith("table, row "):
            return int(present["n"][int(place.removeprefix("table, row "))].as_py())
        return in_a_log(folder)(place)

    return HybridSource(ReplaySource(log), TableSource(present, event_time="t")), number


def of(source: Source) -> wb.Stream:
    return wb.Stream(Input(Node(source, (), source.schema, {})))


SOURCES = [a_table, a_generator, csv_files, csv_lines, json_lines, parquet_files, a_replay, a_hybrid]


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("buffer_size", [1, 7, 1000])
def test_of_every_source(make: Any, parallelism: int, buffer_size: int, tmp_path: Path) -> None:
    source, number = make(tmp_path)
    stream = of(source).filter("n % 2 = 1").map(fails_at(3), source.schema, on_error="dead_letter")
    found = letters(stream, parallelism=parallelism, buffer_size=buffer_size)
    assert len(found) > 10
    assert [number(str(position)) for _, position in found] == [n for n, _ in found]


@pytest.mark.slow
@pytest.mark.parametrize("make", SOURCES[:-2])  # the others need a snapshot; see the next test but two
@settings(max_examples=15, deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.integers(1, 4), st.lists(st.sampled_from([1, 7, 50]), max_size=12).map(tuple)), max_size=4
    )
)
def test_after_restores_at_other_parallelisms(
    make: Any, runs: list[tuple[int, tuple[int, ...]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, number = make(tmp_path_factory.mktemp("source"))

    def values(fetched: Fetched) -> list[int]:
        found: list[int] = fetched.records.batch["n"].to_pylist()
        assert fetched.where is not None
        assert [number(fetched.where(row)) for row in range(len(found))] == found
        return found

    assert len(read_in_runs(source, runs, values)) > 50


def test_of_a_log_of_events() -> None:
    log = AccessLog(rate=1000, limit=400, begin_us=0, entities=40)
    reader = log.create()
    reader.open(OperatorContext())
    for _ in range(12):
        fetched = reader.poll(7)
        assert isinstance(fetched, Fetched)
        assert fetched.where is not None
        for row, event in enumerate(fetched.records.batch.to_pylist()):
            partition, offset = fetched.where(row).removeprefix("partition ").split(", offset ")
            assert log.events(int(partition), int(offset), 1).to_pylist() == [event]


def test_of_a_socket_it_is_the_place() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]

    def serve() -> None:
        peer, _ = listening.accept()
        with peer:
            peer.sendall(b"one\ntwo\nthree\n")

    serving = threading.Thread(target=serve)
    serving.start()
    stream = wb.Stream.from_socket("127.0.0.1", port).map(
        lambda record: {"line": record["line"].index("t")}, {"line": pa.int64()}, on_error="dead_letter"
    )
    job = stream.dead_letters().sink_to(wb.TableSink("bad")).run("socket-letters")
    assert job.wait("60s") == "FINISHED"
    serving.join()
    listening.close()
    assert job.table("bad").select(["record", "position"]).to_pylist() == [
        {"record": '{"line": "one"}', "position": f"127.0.0.1:{port}"}
    ]


@pytest.mark.parametrize("make", SOURCES)
def test_they_go_on_after_a_failure(make: Any, tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    source, number = make(tmp_path / "input")
    passed = 0

    def fails_once(record: dict[str, Any], state: wb.state.State) -> dict[str, Any]:
        nonlocal passed
        passed += 1
        if passed == 60:
            raise ValueError("bad luck, not a bad record")
        return record

    good = of(source).map(fails_at(3), source.schema, on_error="dead_letter")
    behind = good.key_by("n").process(fails_once, source.schema)
    pipeline = behind.sink_to(wb.TableSink("good")) + good.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("again", buffer_size=5, checkpoint_interval="1ms", checkpoint_dir=tmp_path / "checkpoints")
    assert job.wait("60s") == "FINISHED"
    assert passed >= 60
    found = [(json.loads(row["record"])["n"], row["position"]) for row in job.table("bad").to_pylist()]
    assert len({n for n, _ in found}) == len(found) > 10
    assert [number(position) for _, position in found] == [n for n, _ in found]


def test_in_a_job_that_is_stepped() -> None:
    stream = wb.Stream.from_table(table(9)).filter("n <> 2").map(fails_at(4), SCHEMA, on_error="dead_letter")
    pipeline = stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("stepped-letters", driver="stepping", buffer_size=3)
    while job.state != "FINISHED":
        job.stepper.step()
    assert job.table("bad")["position"].to_pylist() == ["table, row 3", "table, row 7"]


# errors --------------------------------------------------------------------------------------------------------------

FAILING: dict[str, Callable[[wb.Stream], wb.Stream]] = {
    "map": lambda s: s.map(lambda record: {"n": 1 // (record["n"] - 13)}, {"n": pa.int64()}),
    "unfit": lambda s: s.map(lambda record: {"n": record["n"] if record["n"] != 13 else "13"}, {"n": pa.int64()}),
    "flat_map": lambda s: s.flat_map(lambda record: [{"n": 1 // (record["n"] - 13)}], {"n": pa.int64()}),
    "filter": lambda s: s.filter(lambda n: 1 // (n - 13) == 0, columns="n"),
    "columns": lambda s: s.map(lambda n: 1 // (n - 13), {"n": pa.int64()}, columns="n"),
    "unfit columns": lambda s: s.map(lambda n: n if n != 13 else "13", {"n": pa.int64()}, columns="n"),
    "too few columns": lambda s: s.map(
        lambda n: (n, n) if n != 13 else n, {"a": pa.int64(), "b": pa.int64()}, columns="n"
    ),
    "compiled": lambda s: s.map(lambda n: 1 // (n - 13), {"n": pa.int64()}, columns="n", compiled=True),
    "too large": lambda s: s.map(lambda n: 300 if n == 13 else n, {"n": pa.int8()}, columns="n", compiled=True),
}


@pytest.mark.parametrize("how", FAILING)
@pytest.mark.parametrize("buffer_size", [1, 6, 100])
def test_a_job_that_fails_names_the_position(how: str, buffer_size: int, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n" + "\n".join(map(str, range(20))))
    stream = wb.Stream.from_files(tmp_path / "a.csv", {"n": pa.int64()}).filter("n > 9")
    job = FAILING[how](stream).sink_to(wb.DiscardSink()).run("poisoned-file", restart="none", buffer_size=buffer_size)
    with pytest.raises(wb.errors.JobError) as caught:
        job.wait("60s")
    text = str(caught.value)
    assert f"on record {{'n': 13}}, at {tmp_path}/a.csv, row 13 (test_positions.py, line " in text


def test_of_a_batch_the_position_is_its_first_record_s() -> None:
    def failing(batch: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("bad")

    stream = wb.Stream.from_table(table(20)).filter("n > 7").map_batches(failing)
    job = stream.sink_to(wb.DiscardSink()).run("poisoned-batch", restart="none")
    with pytest.raises(
        wb.errors.JobError, match=r"the first of which is \[{'n': 8, 't': 80}\], at table, row 8 \(test_pos"
    ):
        job.wait("60s")


def test_a_job_that_fails_behind_an_exchange_names_none() -> None:
    job = (
        FAILING["map"](wb.Stream.from_table(table(20)).rebalance())
        .sink_to(wb.DiscardSink())
        .run("poisoned-behind", restart="none")
    )
    with pytest.raises(wb.errors.JobError, match=r"on record {'n': 13, 't': 130} \(test_positions"):
        job.wait("60s")
