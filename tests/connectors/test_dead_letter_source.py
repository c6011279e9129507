"""Dead letters that are put back: the bytes of the records that failed, decoded again, each once."""

from __future__ import annotations

import datetime as dt
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kafka_server import running
from waiting import until

import workbench as wb
from workbench.connectors.letters.source import DeadLetterSource
from workbench.connectors.messages.message_format import ArrowMessages, CsvMessages, JsonMessages
from workbench.connectors.redis.entries import letter_of
from workbench.elements import Records
from workbench.errors import JobError, PlanError, SettingError, SourceError
from workbench.lab.connectors import check_source
from workbench.operators.contract.base import OperatorContext
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.functions.dead_letters import RAW_BYTES_MAX, SCHEMA, as_records, of_bytes
from workbench.operators.functions.letter_log import KEPT_BYTES_MAX, KEPT_MAX, LetterLog

N = {"n": pa.int64()}
BYTES = [b'{"n": 1}', b"\xff\x00\xfe", b"", b'{"n": "\xc3\xa9\r\n"}', b"x" * 20_000]


def letters(raws: list[bytes], form: str = "json", operator: str = "kafka") -> pa.Table:
    made = [
        of_bytes("bad", raw, form, Position(f"a, offset {at}", Parts("kafka", "a", 0, at)))
        for at, raw in enumerate(raws)
    ]
    batch = as_records(made, OperatorContext(uid=operator), with_times=False).batch
    return pa.Table.from_batches([batch])


def written(table: pa.Table, folder: Path, form: Any) -> Path:
    job = wb.Stream.from_table(table).sink_to(wb.FileSink(folder, form)).run(f"letters-{form}")
    assert job.wait("60s") == "FINISHED"
    return folder


def rows(stream: wb.Stream) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = stream.collect().to_pylist()
    return found


# the bytes, and rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["parquet", "json", "csv"])
def test_the_bytes_are_exact_in_every_format_of_a_sink(form: str, tmp_path: Path) -> None:
    folder = written(letters(BYTES), tmp_path / "letters", form)
    metadata = {"topic": "topic", "at": "offset"}
    columns = {"raw": pa.binary(), "topic": pa.string(), "at": pa.int64()}
    found = rows(wb.Stream.from_dead_letters(folder, columns, format="raw", metadata=metadata))
    assert found == [{"raw": raw, "topic": "a", "at": at} for at, raw in enumerate(BYTES)]


def test_a_row_comes_back_exactly_as_it_was() -> None:
    table = pa.table(
        {
            "x": [float("nan"), float("-inf")],
            "d": pa.array([Decimal("1.10"), None], pa.decimal128(38, 2)),
            "t": pa.array([2**60, None], pa.timestamp("ns", "Europe/Berlin")),
            "far": pa.array([2**59, -(2**59)], pa.timestamp("us")),  # Python has no such years
            "b": [b"\xff\0", None],
            "l": [[{"a": 1}], []],
            "c": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    failing = wb.Stream.from_table(table).map_batches(lambda batch: 1 // 0, on_error="dead_letter")
    job = failing.sink_to(wb.DiscardSink()).run("rows")
    assert job.wait("60s") == "FINISHED"
    again = wb.Stream.from_dead_letters(job.dead_letters())
    plain = table.set_column(6, "c", table["c"].cast(pa.string()))
    assert again.schema == plain.schema
    found = again.collect().combine_chunks()
    assert found.drop(["x"]).equals(plain.drop(["x"]))
    assert repr(found["x"].to_pylist()) == "[nan, -inf]"
    some = wb.Stream.from_dead_letters(job.dead_letters(), {"d": pa.decimal128(10, 2)})
    assert some.collect()["d"].to_pylist() == table["d"].to_pylist()


def test_messages_of_all_formats() -> None:
    def of(form: str, raw: bytes, columns: Any = N, **rest: Any) -> list[dict[str, Any]]:
        return rows(wb.Stream.from_dead_letters(letters([raw], form), columns, **rest))

    both = {"n": pa.int64(), "s": pa.string()}
    assert of("csv", b'7,"a ""b"""', both) == [{"n": 7, "s": 'a "b"'}]
    assert of("tsv", b"7\ta,b", both) == [{"n": 7, "s": "a,b"}]
    at = of("json", b'{"at": 5}', {"at": pa.timestamp("ms")}, unit="s")
    assert at == [{"at": dt.datetime(1970, 1, 1, 0, 0, 5)}]
    three = ArrowMessages().encode(pa.record_batch({"n": [1, 2, 3]}))[0]
    assert of("arrow", three, {**N, "at": pa.int64()}, metadata={"at": "offset"}) == [
        {"n": n, "at": 0} for n in (1, 2, 3)
    ]
    entry = letter_of((b"1-0", {b"n": b"7", b"\xff": b""}), "clicks, entry 1-0", ValueError("bad"))
    table = pa.Table.from_batches([as_records([entry], OperatorContext(), with_times=False).batch])
    assert rows(wb.Stream.from_dead_letters(table, N)) == [{"n": 7}]


def test_a_letter_that_fails_again_is_the_same_letter() -> None:
    table = letters([b'{"n": 1}', b'{"n": "x"}', b"\xff"])
    stream = wb.Stream.from_dead_letters(table, N, on_error="dead_letter")
    job = stream.sink_to(wb.TableSink("good")).run("again")
    assert job.wait("60s") == "FINISHED"
    assert job.table().to_pylist() == [{"n": 1}]
    again = job.dead_letters()
    same = [name for name in SCHEMA.names if name not in ("operator", "error")]
    assert again.select(same).to_pylist() == table.select(same).to_pylist()[1:]
    assert set(again["operator"].to_pylist()) == {"dead letters"}
    with pytest.raises(JobError, match=r"a, offset 1 is not a record of these columns: .*on_error='dead_letter'"):
        rows(wb.Stream.from_dead_letters(table, N))


def test_a_row_that_fails_behind_the_source_has_the_first_position() -> None:
    failing = wb.Stream.from_dead_letters(letters([b'{"n": 1}', b'{"n": 0}']), N)
    job = (
        failing.map(lambda row: {"n": 1 // row["n"]}, N, on_error="dead_letter").sink_to(wb.DiscardSink()).run("behind")
    )
    assert job.wait("60s") == "FINISHED"
    [letter] = job.dead_letters().to_pylist()
    assert (letter["position"], letter["topic"], letter["offset"], letter["format"]) == ("a, offset 1", "a", 1, "row")


@pytest.mark.parametrize("form", ["parquet", "json", "table"])
def test_a_crash_at_any_letter_loses_and_repeats_nothing(form: str, tmp_path: Path) -> None:
    table = letters([b'{"n": %d}' % n for n in range(7)])
    given = table if form == "table" else written(table, tmp_path / "letters", form)
    source = DeadLetterSource(given, pa.schema(N))
    assert check_source(source, pa.table({"n": range(7)}), parallelism=[(2, 3)]) == 8 + 7


# untrusted letters ----------------------------------------------------------------------------------------------------


def damaged(**columns: Any) -> pa.Table:
    table = letters([b'{"n": 1}'])
    for name, value in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array([value], table.schema.field(at).type))
    return table


@pytest.mark.parametrize(
    ("table", "rest", "message"),
    [
        (
            damaged(raw_bytes=5_000_000),
            {},
            r"it has 8 bytes of its record's 5,000,000: .* read this record from",
        ),
        (damaged(raw=None), {}, "it has no bytes: its column raw is null"),
        (damaged(format="xml"), {}, "its format is 'xml', which is none of json, csv"),
        (damaged(format=None), {}, "its format is None"),
        (damaged(format="row"), {}, "offset 0 is not a record"),
        (damaged(format="fields"), {}, "offset 0 is not a record"),
        (damaged(format="avro"), {}, "pass the writer's schema as avro_schema"),
        (damaged(format="row"), {"format": "json"}, "it is a row of the operator 'kafka', not a message of json"),
        (damaged(), {"format": "row"}, "offset 0 is not a record"),
    ],
)
def test_damaged_letters_are_sentences(table: pa.Table, rest: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        rows(wb.Stream.from_dead_letters(table, N, **rest))
    kept = wb.Stream.from_dead_letters(table, N, on_error="dead_letter", **rest)
    job = kept.sink_to(wb.DiscardSink()).run("damaged")
    assert job.wait("60s") == "FINISHED"
    assert job.dead_letters()["raw_bytes"].to_pylist() == table["raw_bytes"].to_pylist()


def test_files_that_are_no_dead_letters_are_refused_before_the_start(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [1]}), tmp_path / "other.parquet")
    pq.write_table(damaged().set_column(0, "raw_bytes", pa.array(["x"])), tmp_path / "text.parquet")
    line = {**damaged().drop(["event_time"]).to_pylist()[0], "raw": "no base64!"}
    (tmp_path / "bad.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(SourceError, match=r"other.parquet has no column 'operator' \(it has n\), so these are no dead"):
        wb.Stream.from_dead_letters(tmp_path / "other.parquet", N)
    with pytest.raises(PlanError, match="the table has no column 'operator'"):
        wb.Stream.from_dead_letters(pa.table({"n": [1]}), N)
    with pytest.raises(PlanError, match="the columns of the table are not those of dead letters"):
        wb.Stream.from_dead_letters(damaged().drop(["raw"]).append_column("raw", pa.array([[1]])), N)
    with pytest.raises(JobError, match="its column raw is 'no base64!', which is no base64"):
        rows(wb.Stream.from_dead_letters(tmp_path / "bad.jsonl", N))
    with pytest.raises(SourceError, match="the dead letters of 'kafka' are messages of json, not rows: declare their"):
        wb.Stream.from_dead_letters(damaged())
    with pytest.raises(SourceError, match="the first dead letter of 'kafka' is not a row"):
        wb.Stream.from_dead_letters(damaged(format="row"))
    with pytest.raises(SourceError, match="there are no dead letters whose columns could be taken"):
        wb.Stream.from_dead_letters(damaged(), operator="map")
    with pytest.raises(SettingError, match="unknown format 'xml'"):
        wb.Stream.from_dead_letters(damaged(), N, format="xml")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="unknown part of a dead-letter message 'ofset'"):
        wb.Stream.from_dead_letters(damaged(), N, metadata={"n": "ofset"})


def test_what_was_cut_is_said() -> None:
    [letter] = letters([b"x" * (RAW_BYTES_MAX + 5)], "raw").to_pylist()
    assert (len(letter["raw"]), letter["raw_bytes"], len(letter["record"])) == (
        RAW_BYTES_MAX,
        RAW_BYTES_MAX + 5,
        10_000,
    )


def test_sinks_of_text_can_hold_letters() -> None:
    """PostgreSQL has no NUL in texts, and messages of JSON and CSV have no bytes."""
    [batch] = letters([b"a\0\xff"]).to_batches()
    assert batch["record"].to_pylist() == ["a\ufffd\ufffd"]
    assert json.loads(JsonMessages().encode(batch)[0])["raw"] == "YQD/"
    assert CsvMessages().encode(batch)[0].endswith(b",json,YQD/,3")


# the last letters of a job --------------------------------------------------------------------------------------------


def failing(row: dict[str, Any]) -> dict[str, Any]:
    if row["n"] % 7 == 3:
        raise ValueError("no")
    return row


def test_the_letters_of_a_job_are_there_once_after_it_has_gone_back() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(4_000)}), rate=1_000)
    stream = numbers.map(failing, N, on_error="dead_letter")
    pipeline = stream.sink_to(wb.DiscardSink()) + stream.dead_letters().sink_to(wb.TableSink("bad"))
    job = pipeline.run("once", checkpoint_interval="20ms", parallelism=2, restart="fixed-delay:attempts=9,delay=1ms")
    for count in (10, 25):
        until(lambda count=count: job.dead_letters().num_rows >= count)
        job.fail("table[0]")
    job.tune(rate="max")  # until here it was too slow to end meanwhile
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 2
    positions = job.dead_letters()["position"].to_pylist()
    assert sorted(positions) == sorted(job.table("bad")["position"].to_pylist())
    assert len(positions) == len(set(positions)) == 571


def test_a_job_that_has_failed_still_has_its_letters() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(10)})).with_parallelism(1)
    stream = numbers.map(failing, N, on_error="dead_letter").map(lambda row: {"n": 1 // (9 - row["n"])}, N)
    job = stream.sink_to(wb.DiscardSink()).run("failed", restart="none")
    with pytest.raises(JobError, match="ZeroDivisionError"):
        job.wait("60s")
    [letter] = job.dead_letters().to_pylist()
    assert json.loads(letter["record"]) == {"n": 3}


def test_the_letters_of_a_job_are_bounded() -> None:
    log = LetterLog()
    keep = log.listener("map[0]", lambda: 0)
    for first in range(0, 3 * KEPT_MAX, 300):
        batch = letters([b"%d" % n for n in range(first, first + 300)]).to_batches()[0]
        keep(Records(batch, None))
    assert [int(raw) for raw in log.table()["raw"].to_pylist()] == list(range(2 * KEPT_MAX, 3 * KEPT_MAX))
    for _ in range(20):
        keep(Records(letters([b"x" * RAW_BYTES_MAX]).to_batches()[0], None))
    assert log.table().nbytes <= KEPT_BYTES_MAX + 2 * RAW_BYTES_MAX


# end to end -----------------------------------------------------------------------------------------------------------

OLD = {"type": "record", "name": "trip", "fields": [{"name": "n", "type": "long"}, {"name": "fare", "type": "long"}]}
NEW = {"type": "record", "name": "trip", "fields": [{"name": "n", "type": "long"}, {"name": "fare", "type": "double"}]}


def datum(schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    fastavro = pytest.importorskip("fastavro")
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, schema, row)
    return buffer.getvalue()


@pytest.mark.slow
def test_messages_that_failed_are_read_with_a_mended_schema(tmp_path: Path) -> None:
    """Every third message has another writer's schema; the jobs that write the letters and read them back fail."""
    every = [datum(NEW if n % 3 == 0 else OLD, {"n": n, "fare": n + 0.5 if n % 3 == 0 else n}) for n in range(90)]
    restart: Any = {"restart": "fixed-delay:attempts=9,delay=1ms", "checkpoint_interval": "20ms"}
    columns = {"n": pa.int64(), "fare": pa.float64()}
    with running() as broker:
        topic = broker.topic(2)
        broker.send(topic, every[:45], 2)
        source = wb.KafkaSource(
            broker.servers, topic, {"n": pa.int64(), "fare": pa.int64()}, format="avro", avro_schema=json.dumps(OLD),
            on_error="dead_letter", options={"fetch.wait.max.ms": "10"},
        )  # fmt: skip
        trips = wb.Stream.from_source(source)
        bad = trips.dead_letters().sink_to(wb.ParquetSink(tmp_path / "letters"))
        job = (trips.sink_to(wb.TableSink("good")) + bad).run("trips", **restart)
        until(lambda: job.dead_letters().num_rows >= 15)
        job.fail("kafka[0]")
        broker.send(topic, every[45:], 2)
        until(lambda: job.table("good").num_rows + job.dead_letters().num_rows == 90)
        job.fail("kafka[0]")
        until(lambda: job.table("good").num_rows + job.dead_letters().num_rows == 90)
        job.stop()
    good = job.table("good")["n"].to_pylist()
    again = wb.Stream.from_dead_letters(tmp_path / "letters", columns, avro_schema=json.dumps(NEW))
    crashes = [10, 20]

    def crash(n: int) -> bool:
        if crashes and n > crashes[0]:
            raise RuntimeError(f"crash {crashes.pop(0)}")
        return True

    stream = again.rebalance().filter(crash, columns="n")
    mended = stream.sink_to(wb.TableSink("mended")).run("mended", parallelism=2, **restart)
    assert mended.wait("60s") == "FINISHED"
    assert crashes == []
    assert sorted(mended.table()["n"].to_pylist()) == [n for n in range(90) if n % 3 == 0]
    assert all(row["fare"] == row["n"] + 0.5 for row in mended.table().to_pylist())
    assert sorted(good + mended.table()["n"].to_pylist()) == list(range(90))
