"""KafkaSource with a real broker: every message once, under crashes, outages, expired offsets and invalid messages."""

from __future__ import annotations

import datetime as dt
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import deleted_topic_job
import kafka_deleted
import pyarrow as pa
import pytest
from kafka_server import KafkaProcess, running
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, SplitProgress, WaitUntil
from workbench.connectors.kafka.cluster import KafkaCluster
from workbench.connectors.messages.message_format import ArrowMessages
from workbench.errors import HistoryError, PlanError, SettingError, SourceError
from workbench.lab.connectors import check_source

SCHEMA = pa.schema({"n": pa.int64(), "at": pa.timestamp("us")})
QUICK = {"fetch.wait.max.ms": "10"}


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaProcess]:
    with running() as server:
        yield server


def values(count: int, first: int = 0) -> list[bytes | None]:
    return [b'{"n": %d, "at": "2026-03-29T01:30:%02d"}' % (n, n) for n in range(first, first + count)]


def source(broker: KafkaProcess, topic: str | list[str], schema: Any = SCHEMA, **rest: Any) -> wb.KafkaSource:
    return wb.KafkaSource(broker.servers, topic, schema, options=QUICK, **rest)


def rows_of(fetched: object) -> list[int]:
    assert isinstance(fetched, Fetched)
    found: list[int] = fetched.records.batch.column("n").to_pylist()
    return found


def next_of(reader: Any, count: int = 100) -> Any:
    """What the reader delivers next; its clock advances while it waits."""
    found: list[Any] = []

    def arrived() -> bool:
        polled = reader.poll(count)
        if isinstance(polled, WaitUntil):
            reader._clock.advance_to(max(reader._clock.now_us(), polled.time_us or 0))
            return False
        found.append(polled)
        return True

    until(arrived)
    return found[0]


def test_a_crash_at_any_message_loses_and_repeats_nothing(broker: KafkaProcess) -> None:
    topic = broker.topic()
    broker.send(topic, values(10))
    table = pa.table({"n": range(10), "at": [dt.datetime(2026, 3, 29, 1, 30, n) for n in range(10)]})
    made = source(broker, topic, event_time="at", bounded=True)
    assert check_source(made, table, parallelism=[(2, 3)]) == 11 + 10


def test_a_job_reads_to_the_messages_that_were_there(broker: KafkaProcess) -> None:
    topics = [broker.topic(), broker.topic(2)]
    broker.send(topics[0], values(20))
    broker.send(topics[1], values(20, 20), 2)
    stream = wb.Stream.from_source(source(broker, topics, event_time="at", bounded=True))
    job = stream.sink_to(wb.TableSink("rows")).run("kafka", parallelism=3)
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table()["n"].to_pylist()) == list(range(40))


def test_a_message_with_many_rows_is_restored_in_its_middle(broker: KafkaProcess) -> None:
    topic = broker.topic(2)
    table = pa.table({"n": range(12), "at": [dt.datetime(2026, 1, 1, 0, 0, n) for n in range(12)]})
    parts = [table.slice(0, 5), table.slice(5, 0), table.slice(5, 7)]
    broker.send(
        topic,
        [
            ArrowMessages().encode(part.combine_chunks().to_batches()[0])[0]
            if part.num_rows
            else ArrowMessages().encode(pa.RecordBatch.from_pylist([], schema=table.schema))[0]
            for part in parts
        ],
        2,
    )
    made = source(broker, topic, table.schema, format="arrow", event_time="at", bounded=True)
    assert check_source(made, table, parallelism=[(2, 1)]) == 13 + 12


def test_the_starts(broker: KafkaProcess) -> None:
    topic = broker.topic(1)
    broker.send(topic, values(3), 1)

    def first_of(**rest: Any) -> list[int]:
        (reader,) = readers(source(broker, topic, **rest), 1)
        reader.poll(1)  # determines where to begin
        broker.send(topic, values(1, 50), 1)
        try:
            return rows_of(next_of(reader, 1))
        finally:
            reader.close()

    assert first_of() == [0]
    assert first_of(start={f"{topic}/0": 2}) == [2]
    assert first_of(start="latest") == [50]


class Standing:
    """A consumer in front of what neither Tansu nor the mock cluster does: partitions that are added, which it hides
    until then, and offsets of times."""

    shown = 9
    end: int | None = None
    times: tuple[int, ...] = ()

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def list_topics(self, topic: str, timeout: float) -> Any:
        found = self._consumer.list_topics(topic, timeout=timeout)
        told = found.topics[topic]
        told.partitions = {number: each for number, each in told.partitions.items() if number < type(self).shown}
        return found

    def get_watermark_offsets(self, place: Any, **rest: Any) -> Any:
        """The ends of a partition; if `end` is set, that of a shorter one."""
        found = self._consumer.get_watermark_offsets(place, **rest)
        return found if type(self).end is None else (0, type(self).end)

    def consume(self, count: int, timeout: float) -> Any:
        return [] if type(self).end is not None else self._consumer.consume(count, timeout)

    def offsets_for_times(self, wanted: list[Any], timeout: float) -> list[Any]:
        for place in wanted:  # the broker answers with the first message of this time or later, or with -1
            place.offset = next((at for at, ms in enumerate(type(self).times) if ms >= place.offset), -1)
        return wanted


@pytest.fixture
def standing(monkeypatch: pytest.MonkeyPatch) -> type[Standing]:
    class Own(Standing): ...

    whole = KafkaCluster.consumer
    monkeypatch.setattr(KafkaCluster, "consumer", lambda self, *rest, **more: Own(whole(self, *rest, **more)))
    return Own


def test_partitions_that_are_added_are_read_from_their_beginning(
    broker: KafkaProcess, standing: type[Standing]
) -> None:
    """By the subtask that they belong to, also after a restore from before they were there."""
    topic, standing.shown = broker.topic(3), 1
    broker.send(topic, values(1), 1)
    made = source(broker, topic, start="latest", discover="1s")
    (reader,) = readers(made, 1)
    reader.poll(9)
    assert reader.splits() == (f"{topic}/0",)
    saved = json.loads(json.dumps(reader.snapshot()))
    broker.send(topic, values(6, 1), 3)  # two in each partition
    standing.shown = 3

    def read(several: list[Any]) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}

        def complete() -> bool:
            for each in several:
                if isinstance(polled := each.poll(9), Fetched):
                    found.setdefault(polled.split.rpartition("/")[2], []).extend(rows_of(polled))
                elif isinstance(polled, WaitUntil):
                    each._clock.advance_to(max(each._clock.now_us(), polled.time_us or 0))
            return sum(map(len, found.values())) == 6

        until(complete)
        for each in several:
            each.close()
        return found

    expected = {"0": [1, 4], "1": [2, 5], "2": [3, 6]}
    assert read([reader]) == expected
    again = readers(made, 2)
    for each in again:
        each.restore([saved])
    assert read(again) == expected


def test_a_start_at_a_time(broker: KafkaProcess, standing: type[Standing]) -> None:
    topic, standing.times = broker.topic(1), (1_000, 5_000, 9_000)
    broker.send(topic, values(3), 1)
    for start, first in (("1970-01-01T00:00:05Z", 1), (dt.datetime(1970, 1, 1, 0, 0, 6, tzinfo=dt.UTC), 2)):
        (reader,) = readers(source(broker, topic, start=start), 1)
        assert rows_of(next_of(reader, 1)) == [first]
        reader.close()
    (late,) = readers(source(broker, topic, start="1970-01-01T00:01:00Z"), 1)
    late.poll(1)
    broker.send(topic, values(1, 7), 1)
    assert rows_of(next_of(late)) == [7]  # none was as late: it begins at the end
    late.close()


def test_the_parts_of_a_message_are_columns(broker: KafkaProcess) -> None:
    topic = broker.topic(1)
    broker.send(topic, [b'{"n": 7}', None], 1, key=b"k", timestamp=1_000)
    schema = {
        "who": pa.string(),
        "n": pa.int64(),
        "sent": pa.timestamp("us"),
        "at": pa.int64(),
        "p": pa.int32(),
        "t": pa.string(),
    }
    parts = {"who": "key", "sent": "timestamp", "at": "offset", "p": "partition", "t": "topic"}
    table = wb.Stream.from_source(source(broker, topic, schema, metadata=parts, bounded=True)).collect()
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("k", 7, dt.datetime(1970, 1, 1, 0, 0, 1), 0, 0, topic),
        ("k", None, dt.datetime(1970, 1, 1, 0, 0, 1), 1, 0, topic),
    ]


def test_the_other_formats(broker: KafkaProcess) -> None:
    def read(messages: list[bytes | None], schema: Any, **rest: Any) -> list[Any]:
        topic = broker.topic(1)
        broker.send(topic, messages, 1)
        rows = wb.Stream.from_source(source(broker, topic, schema, bounded=True, **rest)).collect().to_pylist()
        return [tuple(row.values()) for row in rows]

    two = {"n": pa.int64(), "s": pa.string()}
    assert read([b'7,"a,b"', b"8,"], two, format="csv") == [(7, "a,b"), (8, "")]
    assert read([b"\xff", b"x"], {"v": pa.binary()}, format="raw") == [(b"\xff",), (b"x",)]
    avro = pytest.importorskip("fastavro")
    text = '{"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, {"name": "s", "type": "string"}]}'
    message = io.BytesIO()
    avro.schemaless_writer(message, avro.parse_schema(json.loads(text)), {"n": 7, "s": "é"})
    assert read([message.getvalue()], two, format="avro", avro_schema=text) == [(7, "é")]


def test_a_message_that_is_no_record(broker: KafkaProcess) -> None:
    topic = broker.topic(1)
    bad = [b"nonsense", b'{"n": "many"}', b'{"n": 1}{"n": 2}', b'{"n":', b'{"n": 3, "at": "9999"}', b'{\n "n": 4}']
    broker.send(topic, [*values(1), *bad, *values(1, 9)], 1)
    (strict,) = readers(source(broker, topic, bounded=True), 1)
    with pytest.raises(SourceError, match=rf"^{topic} of 127\.\S*, partition 0, offset 1 is not a record .*nonsense"):
        next_of(strict)
    strict.close()
    (reader,) = readers(source(broker, topic, bounded=True, on_error="dead_letter"), 1)
    fetched = next_of(reader)
    assert rows_of(fetched) == [0, 4, 9]
    letters = fetched.dead_letters.batch.to_pylist()
    assert [letter["position"].rpartition(" ")[2] for letter in letters] == ["1", "2", "3", "4", "5"]
    assert letters[1]["record"] == '{"n": "many"}'
    assert fetched.where(1).endswith("partition 0, offset 6")
    assert reader.poll(1) == Exhausted()
    reader.close()


def test_a_topic_becomes_a_history(broker: KafkaProcess, tmp_path: Path) -> None:
    topic = broker.topic(2)
    broker.send(topic, values(6), 2, timestamp=7_000)
    schema = {"n": pa.int64(), "sent": pa.timestamp("us", "UTC")}
    made = source(broker, topic, schema, metadata={"sent": "timestamp"}, bounded=True)
    history = wb.History.from_kafka(made, tmp_path / "log", arrival_time="sent", progress=False)
    assert sorted(wb.Stream.replay(history).collect()["n"].to_pylist()) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(HistoryError, match="has no end: create the source with bounded=True"):
        wb.History.from_kafka(source(broker, topic), tmp_path / "log", arrival_time="at")


def test_how_far_it_has_come_is_told(broker: KafkaProcess) -> None:
    topic = broker.topic(1)
    broker.send(topic, values(5), 1)
    (reader,) = readers(source(broker, topic, group="shown"), 1)
    assert rows_of(next_of(reader, 2)) == [0, 1]
    assert reader.progress() == {f"{topic}/0": SplitProgress("2", 3, reader._clock.now_us())}
    reader.snapshot()
    from confluent_kafka import TopicPartition

    until(lambda: reader._consumer.committed([TopicPartition(topic, 0)])[0].offset == 2)
    reader.close()


def test_a_connection_that_is_lost_for_a_while_loses_nothing(broker: KafkaProcess) -> None:
    topic = broker.topic(2)
    broker.send(topic, values(4), 2)
    clock = VirtualClock(1)
    (reader,) = readers(source(broker, topic, retries=1_000), 1, clock)
    seen = rows_of(next_of(reader)) + rows_of(next_of(reader))
    broker.relay.cut()
    try:

        def told() -> bool:
            polled = reader.poll(9)
            assert isinstance(polled, WaitUntil)
            clock.advance_to(max(clock.now_us(), polled.time_us or 0))
            return reader.outage is not None and reader.outage.attempts > 1

        until(told)
        outage = reader.outage
        assert outage is not None
        assert outage.attempts_max == 1_000
        assert outage.error.startswith("it does not answer (")
        assert outage.server == broker.servers
        told = reader.progress().values()  # the last that is known, and when
        assert all(each.lag == 0 and each.told_us is not None and each.told_us < outage.since_us + 1 for each in told)
        assert reader.poll(9) is not None
    finally:
        broker.relay.mend()
    broker.send(topic, values(2, 4), 2)
    seen += rows_of(next_of(reader)) + rows_of(next_of(reader))
    assert sorted(seen) == list(range(6))
    assert reader.outage is None
    reader.close()


def test_a_broker_that_stays_away_is_named() -> None:
    pytest.importorskip("confluent_kafka")
    (reader,) = readers(wb.KafkaSource("127.0.0.1:1", "orders", SCHEMA, retries=0), 1)
    with pytest.raises(SourceError, match=r"no connection to 127\.0\.0\.1:1: .*; start the broker"):
        next_of(reader)
    reader.close()


def test_a_topic_that_does_not_exist_is_named(broker: KafkaProcess) -> None:
    (reader,) = readers(source(broker, "nowhere"), 1)
    with pytest.raises(SourceError, match=r"there is no topic 'nowhere' at 127"):
        reader.poll(1)
    reader.close()


@pytest.mark.parametrize("knows", [True, False])
@pytest.mark.parametrize(
    ("count", "bounded", "read_before"), [(4, False, 10), (4, True, 10), (4, True, 6), (40, True, 6)]
)
def test_a_topic_that_was_created_again_is_refused(
    broker: KafkaProcess, count: int, bounded: bool, read_before: int, knows: bool
) -> None:
    """Also by brokers that give topics no ID, if the new one ends before the position or the end to read to."""
    topic = broker.topic(1)
    broker.send(topic, values(10), 1)
    made = source(broker, topic, bounded=bounded)
    (reader,) = readers(made, 1)
    read = rows_of(next_of(reader, read_before))
    while len(read) < read_before:
        read += rows_of(next_of(reader, read_before - len(read)))
    assert read == list(range(read_before))
    saved = json.loads(json.dumps(reader.snapshot()))
    reader.close()
    broker.delete(topic)
    broker.topic(1, topic)
    broker.send(topic, values(count, 15), 1)
    fact = rf"the topic '{topic}' of .* was deleted and created again since it was read: its ID is \S+, and was \S+,"
    if not knows:
        saved |= {"topics": {}}
        fact = (
            rf"{topic}/0 of .* no longer has the offsets? {read_before} .*\(it now ends at 4: the topic was recreated"
        )
    (restored,) = readers(made, 1)
    restored.restore([saved])
    if knows or count < 10:
        with pytest.raises(SourceError, match=fact):
            next_of(restored)
    else:  # longer, and without an ID: it cannot be told from the former one
        assert rows_of(next_of(restored, 4)) == [21, 22, 23, 24]
    restored.close()


def test_a_topic_that_was_created_again_with_fewer_partitions_is_refused(
    broker: KafkaProcess, standing: type[Standing]
) -> None:
    topic = broker.topic(2)
    made = source(broker, topic)
    (reader,) = readers(made, 1)
    reader.poll(1)
    saved = reader.snapshot()
    reader.close()
    standing.shown = 1
    (restored,) = readers(made, 1)
    restored.restore([saved])
    with pytest.raises(SourceError, match=rf"{topic}/1 of .* \(the partition no longer exists, because the topic was"):
        next_of(restored)
    restored.close()


def test_a_topic_is_compared_while_it_is_read(broker: KafkaProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ID, which another topic's stands for, and its end: the clients of Tansu do not outlive a deleted topic."""
    topic, other = broker.topic(1), broker.topic(1)
    broker.send(topic, values(3), 1)
    admin = KafkaCluster.admin
    told = topic

    class Renamed:
        def __init__(self, client: Any) -> None:
            self._client = client

        def describe_topics(self, topics: Any, **rest: Any) -> Any:
            from confluent_kafka import TopicCollection

            return {topic: self._client.describe_topics(TopicCollection([told]), **rest)[told]}

    monkeypatch.setattr(KafkaCluster, "admin", lambda self: Renamed(admin(self)))
    (reader,) = readers(source(broker, topic), 1)
    assert rows_of(next_of(reader)) == [0, 1, 2]
    told = other
    with pytest.raises(SourceError, match=rf"the topic '{topic}' of .* was deleted and created again"):
        next_of(reader)
    reader.close()


@pytest.mark.slow
def test_a_topic_that_is_deleted_while_it_is_read_is_named(broker: KafkaProcess) -> None:
    topic = broker.topic(1)
    broker.send(topic, [b'{"n": 1}'], 1)
    deleting, answered = threading.Event(), threading.Event()

    def answer(request: bytes) -> bytes | None:
        if not deleting.is_set() or (found := kafka_deleted.unknown(request)) is None:
            return None
        answered.set()
        return found

    broker.relay.answer = answer
    command = [sys.executable, deleted_topic_job.__file__, broker.servers, topic]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.readline() == "read\n"
            deleting.set()
            assert answered.wait(30)
            broker.delete(topic)
            told, _ = program.communicate(timeout=60)
    finally:
        broker.relay.answer = None
        broker.relay.forget()
    assert program.returncode == 0
    assert f"the topic '{topic}' of {broker.servers} was deleted while it was read" in told


@pytest.mark.parametrize("bounded", [False, True])
def test_an_end_before_the_position_is_refused_while_a_topic_is_read(
    broker: KafkaProcess, standing: type[Standing], bounded: bool
) -> None:
    topic = broker.topic(1)
    broker.send(topic, values(5), 1)
    (reader,) = readers(source(broker, topic, bounded=bounded), 1)
    assert rows_of(next_of(reader, 3)) == [0, 1, 2]
    standing.end = 2
    with pytest.raises(SourceError, match=rf"{topic}/0 of .* no longer has .* \(it now ends at 2: the topic was recr"):
        until(lambda: not rows_of(next_of(reader, 2)))  # it gives those that it has
    reader.close()


@pytest.fixture
def mocked() -> Callable[..., Any]:
    """Messages in the mock cluster of librdkafka, whose partitions keep 100,000 messages; returns a source."""
    kafka = pytest.importorskip("confluent_kafka")
    host = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none", "log_level": 0})
    servers = f"127.0.0.1:{_port_of(host)}"

    def made(count: int, **rest: Any) -> wb.KafkaSource:
        for n in range(count):
            host.produce("mock", b'{"n": %d}' % n, partition=0, timestamp=1_000 * (n + 1))
            host.poll(0)
        assert host.flush(30) == 0
        return wb.KafkaSource(servers, "mock", {"n": pa.int64()}, options=QUICK, **rest)

    return made


def _port_of(host: Any) -> int:
    (broker,) = host.list_topics(timeout=5).brokers.values()
    port: int = broker.port
    return port


def test_an_offset_that_has_expired_is_named(mocked: Callable[..., Any]) -> None:
    made = mocked(30)
    (reader,) = readers(made, 1)
    reader.restore([{"positions": {"mock/0": [1_000, 0]}, "ends": {}, "located": True}])
    with pytest.raises(
        SourceError, match=r"mock/0 of 127\.\S* no longer has the offset 1000 .*recreated.*retention\.ms"
    ):
        next_of(reader)
    reader.close()


def test_the_end_is_an_offset_and_not_a_message(mocked: Callable[..., Any]) -> None:
    """A batch of many messages, of which Tansu tells a wrong end."""
    table = wb.Stream.from_source(mocked(30, bounded=True)).collect()
    assert table["n"].to_pylist() == list(range(30))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"servers": ""}, "servers is '': write host:port"),
        ({"topics": []}, "write one or several different names"),
        ({"format": "xml"}, "unknown message format 'xml'"),
        ({"format": "avro"}, "avro messages do not name their columns: pass the writer's schema"),
        ({"format": "avro", "avro_schema": "{}"}, "avro_schema is not an Avro schema"),
        ({"avro_schema": "{}"}, "avro_schema is given, but the format is 'json'"),
        ({"start": "now"}, "write 'earliest', 'latest', a time"),
        ({"start": {"orders": 1}}, "'orders' is not a partition"),
        ({"start": {"orders/0": -1}}, "an offset is -1"),
        ({"metadata": {"n": "size"}}, "unknown part of a Kafka message 'size'"),
        ({"options": {"group.id": "x"}}, "'group.id' is set by the connector"),
        ({"options": "x"}, "options is 'x': write a dictionary"),
        ({"retries": -1}, "retries"),
    ],
)
def test_settings_that_cannot_be_used(arguments: dict[str, Any], message: str) -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(SettingError, match=message):
        wb.KafkaSource(**{"servers": "localhost:9092", "topics": "orders", "schema": SCHEMA} | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"event_time": "att"}, "unknown column 'att': did you mean 'at'"),
        ({"metadata": {"nn": "key"}}, "unknown column 'nn'"),
        ({"format": "raw"}, "raw messages have one column of text or bytes"),
        (
            {"metadata": {"n": "topic", "at": "partition"}},
            "'at' is timestamp.*, and the partition of a message is int32",
        ),
        ({"on_error": "ignore"}, "unknown on_error 'ignore'"),
    ],
)
def test_columns_that_messages_cannot_have(arguments: dict[str, Any], message: str) -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(PlanError, match=message):
        wb.KafkaSource("localhost:9092", "orders", SCHEMA, **arguments)


def test_an_option_of_the_client_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.setenv("WB_KAFKA_PASSWORD", "pa55word")
    made = wb.KafkaSource("localhost:1", "a", SCHEMA, options={"sasl.pasword": "${WB_KAFKA_PASSWORD}"})
    assert "pa55word" not in f"{made!r} {made.describe()}"
    with pytest.raises(SettingError, match=r"cannot be used with these options: No such configuration") as raised:
        readers(made, 1)
    assert "pa55word" not in str(raised.value)
