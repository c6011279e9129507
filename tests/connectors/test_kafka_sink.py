"""KafkaSink with a real broker: at least once, exactly once by headers, and in transactions, under crashes."""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import kafka_full_disk
import pyarrow as pa
import pytest
import transaction_kill_job
from kafka_server import KafkaProcess, running
from outages import wait_until_lost
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.connectors.contract.base import Fetched
from workbench.connectors.epochs.message_id import MessageId
from workbench.connectors.kafka.tail import identity_in
from workbench.errors import CommittedRowsError, PlanError, SettingError, SinkError
from workbench.lab.connectors import check_sink
from workbench.lab.connectors.sink_run import SinkRun

TABLE = pa.table({"key": [n % 7 for n in range(600)], "value": list(range(600))})


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaProcess]:
    with running() as server:
        yield server


def rows_of(broker: KafkaProcess, topic: str, partitions: int = 4) -> list[Any]:
    return [json.loads(message.value()) for message in broker.messages(topic, partitions)]


def values_of(broker: KafkaProcess, topic: str, partitions: int = 4) -> list[int]:
    return sorted(row["value"] for row in rows_of(broker, topic, partitions))


@pytest.mark.slow
def test_a_crash_at_any_moment_keeps_the_guarantee(broker: KafkaProcess) -> None:
    topics: dict[int, str] = {}

    def make(number: int) -> wb.KafkaSink:
        return wb.KafkaSink(broker.servers, topics.setdefault(number, broker.topic(2)), delivery="exactly-once")

    def read(sink: Any) -> Iterable[object]:
        return rows_of(broker, sink.topic, 2)

    assert check_sink(make, read, rows=0, parallelism=[(1, 2)]) == 36


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once", "transactions"])
def test_what_a_crash_in_the_middle_of_the_commits_leaves_is_completed(broker: KafkaProcess, delivery: Any) -> None:
    topic = broker.topic(2)
    sink = wb.KafkaSink(broker.servers, topic, delivery=delivery)
    run = SinkRun(sink, 2, lambda: rows_of(broker, topic, 2))
    run.process(3)
    run.checkpoint()
    run.process(4)
    taken = run.trigger()
    run.write(taken)
    run.notify(taken, first=1)  # the first subtask does not send its rows any more
    for killed in (True, False):
        for subtask in run.crash(3, killed=killed):
            subtask.close()
        run.audit("after a crash", restored=True)
    run.close()


AVRO_FIELDS = [{"name": "n", "type": ["null", "long"]}, {"name": "s", "type": "string"}]
AVRO = json.dumps({"type": "record", "name": "r", "fields": AVRO_FIELDS})


@pytest.mark.parametrize(
    ("form", "columns"),
    [
        ("json", ["n", "s", "at"]),
        *(  # a producer takes half a second to start
            pytest.param(form, columns, marks=pytest.mark.slow)
            for form, columns in (
                ("arrow", ["n", "s", "at"]),
                ("csv", ["n", "s"]),
                ("raw", ["s"]),
                ("avro", ["n", "s"]),
            )
        ),
    ],
)
def test_rows_are_read_again_as_they_were_written(broker: KafkaProcess, form: Any, columns: list[str]) -> None:
    instant = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)
    table = pa.table(
        {"n": [1, None, 3], "s": ['a,"b"', "", "é"], "at": pa.array([instant] * 3, pa.timestamp("us", "UTC"))}
    ).select(columns)
    topic, avro = broker.topic(1), AVRO if form == "avro" else None
    sink = wb.KafkaSink(broker.servers, topic, format=form, avro_schema=avro)
    assert wb.Stream.from_table(table).sink_to(sink).run("writes").wait("60s") == "FINISHED"
    source = wb.KafkaSource(broker.servers, topic, table.schema, format=form, avro_schema=avro)
    assert read(source, 3) == table.to_pylist()


def read(source: wb.KafkaSource, count: int) -> list[Any]:
    """So many rows of a topic."""
    (reader,) = readers(source, 1)
    found: list[Any] = []

    def complete() -> bool:
        if isinstance(polled := reader.poll(count), Fetched):
            found.extend(polled.records.batch.to_pylist())
        return len(found) >= count

    until(complete)
    reader.close()
    return found


def test_keys_and_timestamps(broker: KafkaProcess) -> None:
    topic = broker.topic(2)
    table = pa.table({"k": ["x", "y", "x"], "d": [1, 2, 1], "t": pa.array([1, 2, 3], pa.timestamp("s"))})
    pipeline = wb.Stream.from_table(table).sink_to(wb.KafkaSink(broker.servers, topic, key=["k", "d"], timestamp="t"))
    assert pipeline.run("keyed").wait("60s") == "FINISHED"
    messages = broker.messages(topic, 2)
    assert sorted((message.key(), message.timestamp()[1]) for message in messages) == [
        *((b'{"k": "x", "d": "1"}', 1_000), (b'{"k": "x", "d": "1"}', 3_000), (b'{"k": "y", "d": "2"}', 2_000)),
    ]
    of_x = {message.partition() for message in messages if b'"x"' in message.key()}
    assert len(of_x) == 1


@pytest.mark.slow
def test_a_connection_that_is_lost_for_a_while_loses_and_doubles_nothing(broker: KafkaProcess) -> None:
    topic = broker.topic()
    sink = wb.KafkaSink(broker.servers, topic, delivery="exactly-once")
    job = wb.Stream.from_table(TABLE, rate=100).sink_to(sink).run("survives", checkpoint_interval="100ms")
    for seen in (20, 40):
        until(lambda seen=seen: len(values_of(broker, topic)) > seen)
        broker.relay.cut()
        wait_until_lost(job, broker.servers)
        broker.relay.mend()
    job.tune(rate=100_000)
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 0
    assert values_of(broker, topic) == list(range(600))


def test_a_message_whose_acknowledgement_is_lost_is_stored_once(broker: KafkaProcess) -> None:
    topic = broker.topic(1)
    sender = wb.KafkaSink(broker.servers, topic, delivery="exactly-once").target.of_subtask().sender()
    sender.send(TABLE.slice(0, 10).to_batches()[0])
    sender.flush()
    broker.relay.ambush(0, broker.relay.forget, to_server=False)
    sender.send(TABLE.slice(10, 10).to_batches()[0])
    sender.flush()  # the broker says that it has these messages, and not where
    assert broker.relay.disarm()
    assert sender.reached == {0: 10}
    sender.send(TABLE.slice(20, 10).to_batches()[0])
    sender.flush()
    assert sender.reached == {0: 30}
    sender.close()
    assert values_of(broker, topic, 1) == list(range(30))


def test_the_end_of_a_topic_is_read_although_connections_are_lost(broker: KafkaProcess) -> None:
    topic = broker.topic(2)
    log = wb.KafkaSink(broker.servers, topic, delivery="exactly-once").target.of_subtask()
    sender = log.sender()
    sent = [MessageId("job/sink", "run", 1, 0, at) for at in range(20)]
    sender.send(TABLE.slice(0, 20).to_batches()[0], sent)
    sender.flush()
    sender.close()
    for after in range(0, 2_000, 200):
        broker.relay.ambush(after, broker.relay.forget, to_server=False)
        assert log.messages({}) == set(sent), after
        broker.relay.disarm()


@pytest.mark.slow
def test_a_full_disk_is_waited_for(broker: KafkaProcess) -> None:
    """With the broker's own error; while it lasts the client sends messages again, and none is lost or doubled."""
    topic = broker.topic()
    sink = wb.KafkaSink(broker.servers, topic, delivery="exactly-once")
    job = wb.Stream.from_table(TABLE, rate=300).sink_to(sink).run("full", checkpoint_interval="100ms")
    until(lambda: len(values_of(broker, topic)) > 50)
    answers: list[bytes] = []

    def full(request: bytes) -> bytes | None:
        if (answer := kafka_full_disk.refused(request)) is not None:
            answers.append(answer)
        return answer

    broker.relay.cut()
    broker.relay.answer = full
    broker.relay.mend()
    try:
        until(lambda: len(answers) > 3)
    finally:
        broker.relay.cut()
        broker.relay.answer = None
        broker.relay.mend()
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 0
    assert values_of(broker, topic) == list(range(600))
    kinds = pytest.importorskip("confluent_kafka").KafkaError
    told = sink.target.cluster.error(kinds(kinds._MSG_TIMED_OUT), f"write to {topic!r}", SinkError)
    assert re.match(
        rf"{broker.servers} did not store messages in time \(.*\): start the broker, or free space", str(told)
    )


def test_a_topic_that_does_not_exist_is_named(broker: KafkaProcess) -> None:
    stream = wb.Stream.from_table(TABLE)
    with pytest.raises(SinkError, match=r"there is no topic 'nowhere' at 127\."):
        stream.sink_to(wb.KafkaSink(broker.servers, "nowhere", delivery="exactly-once")).run("fails")


def test_a_second_start_is_refused(broker: KafkaProcess) -> None:
    topic = broker.topic(1)
    pipeline = wb.Stream.from_table(TABLE.slice(0, 5)).sink_to(
        wb.KafkaSink(broker.servers, topic, delivery="exactly-once")
    )
    assert pipeline.run("once").wait("60s") == "FINISHED"
    with pytest.raises(CommittedRowsError, match=r"already holds rows of 'once/.*' up to epoch"):
        pipeline.run("once")
    assert pipeline.run("twice").wait("60s") == "FINISHED"  # another writer may add to the topic
    assert len(values_of(broker, topic, 1)) == 10


def test_a_transaction_of_a_former_subtask_hides_nothing(broker: KafkaProcess, tmp_path: Path) -> None:
    """A process dies in the transaction of the last of four subtasks, and the job goes on with two."""
    topic = broker.topic(4)
    command = [sys.executable, transaction_kill_job.__file__, broker.servers, topic, str(tmp_path), "4"]
    assert subprocess.run(command, timeout=120).returncode == -signal.SIGKILL
    assert len(values_of(broker, topic)) < 4_000  # its rows are missing, and what the open transaction hides
    assert transaction_kill_job.job(broker.servers, topic, str(tmp_path), 2).wait("60s") == "FINISHED"
    assert values_of(broker, topic) == list(range(4_000))  # also: none twice


def test_a_header_of_another_program_is_no_identity() -> None:
    assert identity_in([("workbench", b"x 1 2 r w"), ("other", b"1"), ("workbench", None)]) is None
    assert identity_in(None) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"topic": ""}, "topic is '': write the name"),
        ({"delivery": "once"}, "unknown delivery 'once'"),
        ({"format": "arrow", "key": "key"}, "a message in Arrow format has many rows, so it cannot have a key"),
        ({"servers": ""}, "servers is ''"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(arguments: dict[str, Any], message: str) -> None:
    pytest.importorskip("confluent_kafka")
    with pytest.raises(SettingError, match=message):
        wb.KafkaSink(**{"servers": "localhost:9092", "topic": "a"} | arguments)


def test_columns_that_messages_cannot_hold() -> None:
    pytest.importorskip("confluent_kafka")
    stream = wb.Stream.from_table(TABLE)
    with pytest.raises(PlanError, match="unknown column 'm'"):
        stream.sink_to(wb.KafkaSink("localhost:9092", "a", timestamp="m"))
    with pytest.raises(PlanError, match="raw messages have one column"):
        stream.sink_to(wb.KafkaSink("localhost:9092", "a", format="raw"))
    binary = wb.Stream.from_table(pa.table({"b": pa.array([b"x"])}))
    with pytest.raises(SinkError, match="messages of json cannot hold these rows: column 'b' is binary"):
        binary.sink_to(wb.KafkaSink("localhost:9092", "a"))
