"""NatsSource with a real server: exactly once by sequence numbers, under outages, removed messages and refusals."""

from __future__ import annotations

import datetime as dt
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from certificates import Authority
from nats_server import NatsProcess, running
from polled import read
from source_readers import readers
from waiting import until

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted
from workbench.connectors.feeds.link import LinkError
from workbench.connectors.nats import stream_wire
from workbench.connectors.nats.protocol import Delivered, NatsProtocol
from workbench.connectors.nats.server import Login
from workbench.connectors.nats.stream_wire import StreamWire, Wanted
from workbench.errors import PlanError, SettingError, SourceError
from workbench.lab.connectors import check_source

SCHEMA = {"n": pa.int64()}


@pytest.fixture(scope="module")
def server() -> Iterator[NatsProcess]:
    with running() as started:
        yield started


def numbers(first: int, last: int) -> list[bytes]:
    return [b'{"n": %d}' % n for n in range(first, last)]


def test_it_loses_and_repeats_nothing_at_any_record(server: NatsProcess) -> None:
    for stream, first, last in (("kit-a", 0, 7), ("kit-b", 7, 12)):
        server.stream(stream)
        server.send(stream, numbers(first, last))
    source = wb.NatsSource(server.url, ["kit-a", "kit-b"], SCHEMA, bounded=True)
    assert check_source(source, pa.table({"n": list(range(12))})) == 3 * 13 + 12


def test_a_part_of_a_stream_and_what_surrounds_its_values(server: NatsProcess) -> None:
    server.stream("parts")
    server.send("parts", numbers(0, 2), "warm.a")
    server.send("parts", numbers(2, 4), "cold.b")
    server.send("parts", numbers(4, 6), "warm.c")
    server.send("parts", numbers(6, 7), "cold.b")  # behind the last one that is wanted
    schema = {**SCHEMA, "at": pa.timestamp("us", "UTC"), "subject": pa.string(), "seq": pa.int64()}
    surround = {"at": "timestamp", "subject": "subject", "seq": "sequence"}
    source = wb.NatsSource(
        server.url, "parts", schema, subject="parts.warm.>", metadata=surround, event_time="at", bounded=True
    )
    rows = wb.Stream.from_source(source).collect().to_pylist()
    assert [(row["n"], row["subject"], row["seq"]) for row in rows] == [
        *((0, "parts.warm.a", 1), (1, "parts.warm.a", 2), (4, "parts.warm.c", 5), (5, "parts.warm.c", 6)),
    ]
    assert all(abs(row["at"] - dt.datetime.now(dt.UTC)) < dt.timedelta(hours=1) for row in rows)
    nothing = wb.NatsSource(server.url, "parts", SCHEMA, subject="parts.hot", bounded=True)
    assert wb.Stream.from_source(nothing).collect().num_rows == 0


def test_where_it_begins(server: NatsProcess) -> None:
    server.stream("begins")
    server.send("begins", numbers(0, 2))
    between = dt.datetime.now(dt.UTC)
    server.send("begins", numbers(2, 4))
    for start, expected in ((3, [2, 3]), (between, [2, 3]), (between.isoformat(), [2, 3]), ("earliest", [0, 1, 2, 3])):
        source = wb.NatsSource(server.url, "begins", SCHEMA, start=start, bounded=True)
        (reader,) = readers(source, 1)
        assert read(reader, 5) == expected
        reader.close()
    (reader,) = readers(wb.NatsSource(server.url, "begins", SCHEMA, start="latest"), 1)
    until(lambda: reader.poll(1) and reader.progress())
    saved = json.loads(json.dumps(reader.snapshot()))
    assert saved["positions"] == {"begins": 4}  # what comes while the job is away belongs to it
    reader.close()
    server.send("begins", numbers(4, 5))
    (again,) = readers(wb.NatsSource(server.url, "begins", SCHEMA, start="latest"), 1)
    again.restore([saved])
    assert read(again, 1) == [4]
    assert again.progress()["begins"].lag == 0
    again.close()


def test_a_server_that_restarts_loses_and_repeats_nothing(server: NatsProcess) -> None:
    server.stream("restarts")
    server.send("restarts", numbers(0, 3))
    (reader,) = readers(wb.NatsSource(server.url, "restarts", SCHEMA), 1)
    assert read(reader, 3) == [0, 1, 2]
    server.kill()
    until(lambda: advanced(reader) and reader.outage is not None)
    assert "refused" in reader.outage.error or "closed" in reader.outage.error or "reset" in reader.outage.error
    server.start()
    server.send("restarts", numbers(3, 5))
    assert read(reader, 2) == [3, 4]
    assert reader.outage is None
    reader.close()


def advanced(reader: Any) -> bool:
    polled = reader.poll(1)
    reader._clock.advance_to(polled.time_us)
    return True


def test_messages_that_the_stream_has_removed_are_an_error(server: NatsProcess) -> None:
    server.stream("removes")
    server.send("removes", numbers(0, 5))
    (reader,) = readers(wb.NatsSource(server.url, "removes", SCHEMA), 1)
    read(reader, 5)
    for position, message in (
        (1, r"the stream 'removes' no longer has the message 2: it begins at 4, because its limits removed older"),
        (9, r"the stream 'removes' no longer has the message 10: it ends at 5, because it was recreated"),
    ):
        server.purge("removes", 4)
        (late,) = readers(wb.NatsSource(server.url, "removes", SCHEMA), 1)
        late.restore([{"positions": {"removes": position}, "ends": {}}])
        with pytest.raises(SourceError, match=message):
            read(late, 1)
        late.close()
    reader.close()


@pytest.mark.parametrize("how", ["limited", "replaced", "deleted"])
def test_messages_removed_while_they_are_read_are_an_error_and_deleted_ones_are_not(
    server: NatsProcess, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(stream_wire, "_AT_ONCE", 5)
    stream = f"slow-{how}"
    server.stream(stream, **({"max_msgs_per_subject": 30} if how == "replaced" else {}))
    server.send(stream, numbers(0, 3))
    (reader,) = readers(wb.NatsSource(server.url, stream, SCHEMA), 1)
    assert read(reader, 3) == [0, 1, 2]
    server.send(stream, numbers(3, 20))  # the server has sent two of them, and waits until it is asked for more
    if how != "deleted":
        server.purge(stream, 15)
    if how == "limited":
        with pytest.raises(SourceError, match=f"'{stream}' no longer has the message 6: it begins at 15"):
            read(reader, 17)
    elif how == "replaced":
        assert read(reader, 8) == [3, 4, 14, 15, 16, 17, 18, 19]
    else:
        for sequence in (7, 8, 12):
            server.delete_message(stream, sequence)
        assert read(reader, 14) == [3, 4, 5, 8, 9, 10, 12, 13, 14, 15, 16, 17, 18, 19]
    reader.close()


@pytest.mark.parametrize(("bounded", "read_before"), [(False, 3), (True, 5), (True, 3)])
@pytest.mark.parametrize("count", [2, 50])
def test_a_stream_that_was_created_again_is_refused(
    server: NatsProcess, count: int, bounded: bool, read_before: int
) -> None:
    """Whether the new one is shorter or longer, in the running reader and in a restored one, also if it has ended."""
    stream = f"again-{count}-{bounded}-{read_before}"
    server.stream(stream)
    server.send(stream, numbers(0, 5))
    source = wb.NatsSource(server.url, stream, SCHEMA, bounded=bounded)
    (running,) = readers(source, 1)
    assert read(running, read_before, at_once=read_before) == list(range(read_before))
    saved = json.loads(json.dumps(running.snapshot()))
    server.delete(stream)
    server.stream(stream)
    server.send(stream, numbers(100, 100 + count))
    (restored,) = readers(source, 1)
    restored.restore([saved])
    for reader in (restored, *(() if bounded else (running,))):
        message = rf"'{stream}' no longer has the message \d: it was created at \S+, and the one that was read at \d"
        with pytest.raises(SourceError, match=message):
            read(reader, 100)
        reader.close()
    running.close()


def test_what_is_no_record(server: NatsProcess) -> None:
    server.stream("poison")
    server.send("poison", [b'{"n": 1}', b"nonsense", b'{"n": 2}'])
    (strict,) = readers(wb.NatsSource(server.url, "poison", SCHEMA), 1)
    with pytest.raises(
        SourceError, match=r"poison of nats://127\S*, message 2 is not a record of these columns: .*nonse"
    ):
        read(strict, 3)
    strict.close()
    source = wb.NatsSource(server.url, "poison", SCHEMA, on_error="dead_letter", bounded=True)
    stream = wb.Stream.from_source(source)
    assert stream.collect()["n"].to_pylist() == [1, 2]
    assert "message 2" in str(stream.dead_letters().collect().to_pylist())


def test_a_stream_or_a_server_that_is_not_there(server: NatsProcess) -> None:
    (reader,) = readers(wb.NatsSource(server.url, "NOWHERE", SCHEMA), 1)
    with pytest.raises(SourceError, match=r"cannot read 'NOWHERE' of nats://127\S*: there is no stream 'NOWHERE'"):
        read(reader, 1)
    reader.close()
    (away,) = readers(wb.NatsSource("nats://127.0.0.1:1", "S", SCHEMA, retries=2), 1)
    with pytest.raises(SourceError, match=r"cannot read 'S' of nats://127\.0\.0\.1:1 3 times in a row: .*refused"):
        read(away, 1)
    away.close()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        place = f"nats://127.0.0.1:{silent.getsockname()[1]}"
        waiting: Any = readers(wb.NatsSource(place, "S", SCHEMA, retries=0), 1)[0]
        for _ in range(2):
            waiting.poll(1)
            waiting._clock.advance_to(waiting._clock.now_us() + 6_000_000)
        with pytest.raises(SourceError, match="it does not answer"):
            waiting.poll(1)
        waiting.close()


def test_logins_and_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running("--user", "ann", "--pass", "pa/55@word") as own:
        monkeypatch.setenv("WB_NATS_PASSWORD", "pa/55@word")
        source = wb.NatsSource(f"nats://ann:${{WB_NATS_PASSWORD}}@{own.place}", "S", SCHEMA)
        (reader,) = readers(source, 1)
        with pytest.raises(SourceError, match="there is no stream 'S'"):  # it was let in
            read(reader, 1)
        monkeypatch.setenv("WB_NATS_PASSWORD", "guessed")
        (refused,) = readers(source, 1)
        with pytest.raises(SourceError, match=r"it says: Authorization Violation") as raised:
            read(refused, 1)
        assert "guessed" not in str(raised.value)
        (plain,) = readers(wb.NatsSource(f"tls://{own.place}", "S", SCHEMA), 1)
        with pytest.raises(SourceError, match="it has no TLS: write nats://"):
            read(plain, 1)
    authority = Authority(tmp_path / "authority")
    certificate = authority.certificate("localhost")
    options = ("--tls", "--tlscert", str(certificate.chain), "--tlskey", str(certificate.key))
    with running(*options, "--auth", "t0ken") as own:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
        (secure,) = readers(wb.NatsSource(f"tls://t0ken@localhost:{own.port}", "S", SCHEMA), 1)
        with pytest.raises(SourceError, match="there is no stream 'S'"):
            read(secure, 1)
        (plain,) = readers(wb.NatsSource(own.url, "S", SCHEMA), 1)
        with pytest.raises(SourceError, match="it requires TLS: write tls://"):
            read(plain, 1)
        monkeypatch.delenv("SSL_CERT_FILE")
        (doubtful,) = readers(wb.NatsSource(f"tls://localhost:{own.port}", "S", SCHEMA), 1)
        with pytest.raises(SourceError, match="its certificate is not valid"):
            read(doubtful, 1)


def test_messages_in_pieces() -> None:
    data = b'INFO {"max_payload": 9}\r\nMSG a 1 5\r\nhe\r\no\r\nPING\r\nHMSG a 2 back 12 14\r\nNATS/1.0\r\n\r\nhi\r\n'
    data += b"HMSG a 3 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n"
    for size in (1, 2, 7, len(data)):
        protocol = NatsProtocol(Login())
        found = [each for at in range(0, len(data), size) for each in protocol.take(data[at : at + size])]
        assert found[:2] == [Delivered(1, "a", "", 0, b"he\r\no"), Delivered(2, "a", "back", 0, b"hi")]
        assert found[2:] == [Delivered(3, "a", "", 404, b"No Messages")]
        assert protocol.max_payload == 9
        assert protocol.to_send().endswith(b"PONG\r\n")


@pytest.mark.parametrize(
    "data",
    [b"HTTP/1.1 400 Bad\r\n", b"INFO {}\r\nMSG a\r\n", b"INFO []\r\n", b"MSG a 1 -5\r\n", b"INFO {\r\n", b"x" * 2**21],
)
def test_what_is_not_nats(data: bytes) -> None:
    with pytest.raises(LinkError, match="it does not speak the protocol of NATS") as raised:
        NatsProtocol(Login()).take(data)
    assert raised.value.fatal


def test_a_message_that_was_skipped_is_asked_for_again() -> None:
    wire = StreamWire(Login(), Wanted("S", "", {"deliver_policy": "all"}), "_INBOX.x")
    wire.opened("")
    state, told = b'{"state": {"first_seq": 1, "last_seq": 9}}', b'{"name": "c", "delivered": {"stream_seq": 0}}'
    wire.take(b"INFO {}\r\nMSG i 1 %d\r\n%s\r\nMSG i 2 %d\r\n%s\r\n" % (len(state), state, len(told), told))
    good = b"MSG s 3 $JS.ACK.S.c.1.1.1.0.8 1\r\na\r\n"
    assert [message.position for message in wire.take(good)] == ["1"]
    with pytest.raises(LinkError, match="it has skipped 1 messages"):
        wire.take(b"MSG s 3 $JS.ACK.S.c.1.3.3.0.6 1\r\na\r\n")
    with pytest.raises(LinkError, match="a message has no position"):
        wire.take(b"MSG s 3 elsewhere 1\r\na\r\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"url": "redis://h"}, r"url is 'redis://h': write nats://host:port"),
        ({"url": "nats://:9"}, "write nats://host:port"),
        ({"url": "nats://${WB_NO_SUCH}@h"}, "WB_NO_SUCH is not set"),
        ({"streams": []}, "write one or several different names"),
        ({"streams": "a.b"}, "'a.b' is not the name of a stream"),
        ({"subject": "a b"}, "write one without spaces"),
        ({"format": "arrow"}, "write 'json', 'csv' or 'raw'"),
        ({"start": 0}, "start is 0"),
        ({"start": "soon"}, "or write 'earliest', 'latest', a time"),
        ({"start": 1.5}, "start is 1.5: write"),
        ({"retries": -1}, "retries"),
        ({"metadata": "x"}, "metadata is 'x'"),
        ({"metadata": {"n": "headers"}}, "unknown part of a NATS message 'headers'"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(arguments: dict[str, Any], message: str) -> None:
    given = {"url": "nats://h", "streams": "S", "schema": SCHEMA, **arguments}
    with pytest.raises(SettingError, match=message):
        wb.NatsSource(given.pop("url"), given.pop("streams"), given.pop("schema"), **given)


def test_columns_that_do_not_fit() -> None:
    with pytest.raises(PlanError, match="unknown column 'at'"):
        wb.NatsSource("nats://h", "S", SCHEMA, event_time="at")
    with pytest.raises(PlanError, match="unknown column 'm'"):
        wb.NatsSource("nats://h", "S", SCHEMA, metadata={"m": "subject"})
    with pytest.raises(
        PlanError, match=r"the column 'n' is struct.*, and the subject of a message is string: declare th"
    ):
        wb.NatsSource("nats://h", "S", {"n": pa.struct({"a": pa.int64()})}, metadata={"n": "subject"})


def test_other_subtasks_read_nothing() -> None:
    made = readers(wb.NatsSource("nats://127.0.0.1:1", "S", SCHEMA), 2, VirtualClock())
    assert made[1].poll(1) == Exhausted()
    assert list(made[1].splits()) == []
