"""A socket as a source: lines as they arrive, in three formats, with a policy for connections that fail or end."""

from __future__ import annotations

import select
import socket
from collections.abc import Iterator

import pyarrow as pa
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.connectors.live.socket_source import SocketSource
from workbench.errors import PlanError, SettingError, SourceError
from workbench.operators.contract.base import OperatorContext

FIELDS = pa.schema([("n", pa.int64()), ("name", pa.string())])


class Server:
    """Listens on the loopback; sends what it is told to."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.peer: socket.socket | None = None

    def accept(self) -> None:
        if self.peer is not None:
            self.peer.close()
        assert select.select([self.listener], [], [], 5)[0]
        self.peer, _ = self.listener.accept()

    def send(self, data: bytes) -> None:
        assert self.peer is not None
        self.peer.sendall(data)

    def hang_up(self) -> None:
        assert self.peer is not None
        self.peer.close()
        self.peer = None

    def close(self) -> None:
        self.listener.close()
        if self.peer is not None:
            self.peer.close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def opened(source: SocketSource, clock: VirtualClock, subtask: int = 0) -> SourceReader:
    reader = source.create()
    reader.open(OperatorContext(clock=clock, subtask=subtask, parallelism=2))
    return reader


def connected(reader: SourceReader, server: Server, clock: VirtualClock) -> None:
    """On the loopback a connection is there at once, and what was sent can be read at once."""
    assert isinstance(reader.poll(1), WaitUntil)
    server.accept()


def rows(reader: SourceReader, clock: VirtualClock, max_records: int = 100) -> list[dict[str, object]]:
    """What comes until the reader has nothing more to say."""
    found: list[dict[str, object]] = []
    for _ in range(50):
        fetched = reader.poll(max_records)
        if isinstance(fetched, Fetched):
            assert 0 < len(fetched.records) <= max_records
            assert fetched.split in reader.splits() or reader.splits() == []
            found += fetched.records.batch.to_pylist()
        elif found or isinstance(fetched, Exhausted):
            break
        else:
            assert fetched.time_us is not None
            assert clock.now_us() < fetched.time_us
            clock.advance_to(fetched.time_us)
    return found


def test_lines_of_text_come_whole_and_the_last_may_lack_its_end(server: Server) -> None:
    clock = VirtualClock()
    reader = opened(SocketSource("127.0.0.1", server.port), clock)
    connected(reader, server, clock)
    server.send(b"first\nsecond\r\nhalf a ")
    assert rows(reader, clock) == [{"line": "first"}, {"line": "second"}]
    server.send("l\u00edne\n\nrest".encode())
    assert rows(reader, clock, max_records=1) == [{"line": "half a l\u00edne"}, {"line": ""}]
    server.hang_up()
    assert rows(reader, clock) == [{"line": "rest"}]
    assert reader.poll(1) == Exhausted()
    assert reader.splits() == []


def test_records_of_json_and_of_values(server: Server) -> None:
    clock = VirtualClock()
    reader = opened(SocketSource("127.0.0.1", server.port, format="json", columns=FIELDS), clock)
    connected(reader, server, clock)
    server.send(b'{"n": 1, "name": "a"}\n\n{"name": "b", "more": 5}\n')
    assert rows(reader, clock) == [{"n": 1, "name": "a"}, {"n": None, "name": "b"}]
    reader.close()
    source = SocketSource("127.0.0.1", server.port, delimiter=";", format="csv", columns=FIELDS, event_time="n")
    reader = opened(source, clock)
    connected(reader, server, clock)
    server.send(b'1,a;,"b, c";')
    fetched = reader.poll(10)
    assert isinstance(fetched, Fetched)
    assert fetched.records.batch.to_pylist() == [{"n": 1, "name": "a"}, {"n": None, "name": "b, c"}]
    assert fetched.records.timestamps is not None
    assert fetched.records.timestamps.tolist()[0] == 1
    reader.close()


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        (
            "json",
            b'{"n": "x"}',
            r"sent the line '{\"n\": \"x\"}', which is not a record of these columns: JSON parse error",
        ),
        ("csv", b"1,2,3", r"sent the line '1,2,3', which is not a record of these columns: CSV parse error"),
        ("text", b"\xff\xfe", r"sent the line '..', which is not a record of these columns: 'utf-8' codec"),
    ],
)
def test_a_line_that_cannot_be_read_is_shown(server: Server, form: str, line: bytes, message: str) -> None:
    clock = VirtualClock()
    columns = None if form == "text" else FIELDS
    source = SocketSource("127.0.0.1", server.port, format=form, columns=columns)  # type: ignore[arg-type]
    reader = opened(source, clock)
    connected(reader, server, clock)
    good = {"json": b'{"n": 1}', "csv": b"1,a", "text": b"fine"}[form]
    server.send(good + b"\n" + line + b"\n")
    with pytest.raises(SourceError, match=message):
        rows(reader, clock)
    reader.close()


def test_a_silent_connection_is_looked_at_less_and_less_often(server: Server) -> None:
    clock = VirtualClock()
    reader = opened(SocketSource("127.0.0.1", server.port), clock)
    connected(reader, server, clock)
    waits = []
    for _ in range(6):
        fetched = reader.poll(1)
        assert isinstance(fetched, WaitUntil)
        assert fetched.time_us is not None
        waits.append(fetched.time_us - clock.now_us())
        clock.advance_to(fetched.time_us)
    assert waits == [2_000, 4_000, 8_000, 16_000, 16_000, 16_000]
    server.send(b"x\n")
    assert rows(reader, clock) == [{"line": "x"}]
    assert reader.splits() == [f"127.0.0.1:{server.port}"]
    reader.close()


def test_nobody_there_is_an_error_unless_the_source_may_wait(server: Server) -> None:
    clock = VirtualClock()
    port = server.port
    server.close()
    with pytest.raises(SourceError, match=rf"no connection to 127\.0\.0\.1:{port}: Connection refused"):
        rows(opened(SocketSource("127.0.0.1", port), clock), clock)
    tries = opened(SocketSource("127.0.0.1", port, retries=2, retry_delay_us=700_000), clock)
    start = clock.now_us()
    with pytest.raises(SourceError, match="3 times in a row"):
        rows(tries, clock)
    assert clock.now_us() - start >= 1_400_000


def test_a_connection_that_ended_is_made_again(server: Server) -> None:
    clock = VirtualClock()
    reader = opened(SocketSource("127.0.0.1", server.port, retries=None), clock)
    for count, word in enumerate(("one", "two", "three")):
        assert [each.position for each in reader.progress().values()] == [f"{count} lines"]
        wait = reader.poll(1)
        assert isinstance(wait, WaitUntil)
        assert wait.time_us is not None
        clock.advance_to(wait.time_us + 500_000)
        assert isinstance(reader.poll(1), WaitUntil)
        server.accept()
        server.send(word.encode())
        server.hang_up()
        assert rows(reader, clock) == [{"line": word}]
        assert reader.outage is not None
        assert (reader.outage.error, reader.outage.attempts_max) == ("the server has closed the connection", None)
    reader.close()


def test_one_subtask_reads(server: Server) -> None:
    other = opened(SocketSource("127.0.0.1", server.port), VirtualClock(), subtask=1)
    assert (other.splits(), other.poll(1)) == ([], Exhausted())


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"port": 0}, SettingError, "port is 0"),
        ({"format": "xml"}, SettingError, "unknown line format 'xml'"),
        ({"delimiter": ""}, SettingError, "delimiter is empty"),
        ({"retries": -1}, SettingError, "retries is -1"),
        ({"format": "json"}, PlanError, "a json socket does not declare its columns"),
        ({"columns": FIELDS}, PlanError, "lines of text have one column"),
        ({"event_time": "t"}, PlanError, "unknown column 't'"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        SocketSource(**{"host": "127.0.0.1", "port": 9, **settings})  # type: ignore[arg-type]


def test_a_job_over_a_socket_ends_when_the_server_hangs_up(server: Server) -> None:
    stream = wb.Stream.from_socket(
        "127.0.0.1", server.port, {"n": pa.int64()}, format="json", event_time=wb.watermarks.INGESTION
    )
    job = stream.filter("n % 2 = 0").sink_to(wb.TableSink("even")).run("socket", parallelism=2, buffer_timeout="0ms")
    server.accept()
    server.send(b"".join(b'{"n": %d}\n' % n for n in range(1000)))
    server.hang_up()
    assert job.wait("120s") == "FINISHED"
    assert sorted(job.table("even")["n"].to_pylist()) == list(range(0, 1000, 2))


def test_a_server_that_does_not_accept_the_connection_is_lost() -> None:
    clock = VirtualClock()
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        place = listener.getsockname()
        waiting = [socket.socket() for _ in range(3)]  # the queue of the server, which accepts none, is full
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(place)
        reader = opened(SocketSource(*place, retries=None), clock)
        for _ in range(3):
            polled = reader.poll(1)
            assert isinstance(polled, WaitUntil)
            clock.advance_to(polled.time_us or 0)
        assert reader.outage is None
        clock.advance_to(clock.now_us() + 10_000_000)
        reader.poll(1)
        assert reader.outage is not None
        assert reader.outage.error == "it does not answer"
        reader.close()
        for each in waiting:
            each.close()
