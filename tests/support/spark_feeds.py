"""Feeds that a job on Spark reads, and the sinks of that job: what servers send once and cannot send again.

The servers belong to the test. The job finds their addresses in a file, and the password in the environment.
"""

from __future__ import annotations

import json
import socketserver
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import feed_servers
import mqtt_server
import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.live.hybrid_source import HybridSource
from workbench.connectors.live.socket_source import SocketSource

ROWS = 50
"""That each feed sends to each of two processes, one after the other."""
FEEDS = ("mqtt", "events", "web socket", "socket")
BOUNDED = ("past", "generator")
PROBE = -1
"""The number in messages that tell only that the job is connected to the broker."""
PLACES = "feeds.json"
CALLED = "called of feeds.jsonl"
PASSWORDS = {"WB_MQTT_PASSWORD": mqtt_server.PASSWORD}
COLUMNS = {"source": pa.string(), "n": pa.int64()}
PATIENCE_S = 500.0
"""Of who waits for Spark, which starts many processes, on a busy machine."""
RETRIES = 1_000
"""In a row: each feed but MQTT ends its connection when it has sent everything."""


class Feeds:
    """The servers, each of which sends its messages to one process.

    Args:
        folder: of the job.
        until_end: stops the servers.
    """

    def __init__(self, folder: Path, until_end: ExitStack) -> None:
        self.folder = folder
        self.mqtt = until_end.enter_context(mqtt_server.running())
        self._events = until_end.enter_context(feed_servers.event_server())
        self._messages, self._lines = _SentOnce(), _SentOnce()
        web_socket = until_end.enter_context(feed_servers.web_socket_server(self._messages))
        port = until_end.enter_context(_lines_server(self._lines))
        places = {
            "mqtt": self.mqtt.url.replace(mqtt_server.PASSWORD, "${WB_MQTT_PASSWORD}"),
            "events": self._events.url,
            "web socket": web_socket,
            "socket": port,
        }
        (folder / PLACES).write_text(json.dumps(places))
        (folder / "past.csv").write_text("source,n\n" + "".join(f"past,{n}\n" for n in range(ROWS)))

    def send(self, first: int, process: subprocess.Popen[str]) -> None:
        """Send everything once the process, which must not end before, reads: it may start Spark's query several times
        on a busy machine, and what the first one has received is lost."""
        before = self.called()["mqtt", PROBE]
        while self.called()["mqtt", PROBE] == before:
            self.mqtt.send("rooms/a", [_message("mqtt", PROBE).encode()])
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"the process has ended: {process.wait(0.5)}")
        numbers = range(first, first + ROWS)
        self.mqtt.send("rooms/b", [_message("mqtt", n).encode() for n in numbers])
        self._events.events += [_message("events", n) for n in numbers]
        self._messages += [_message("web socket", n) for n in numbers]
        self._lines += [f"socket,{n}\n" for n in numbers]

    def called(self) -> Counter[tuple[str, int]]:
        """The rows that the function of a CallbackSink has received."""
        return called(self.folder)

    def written(self) -> Counter[tuple[str, int]]:
        """The rows in a table of SQLite, without probes."""
        with closing(sqlite3.connect(self.folder / "feeds.sqlite")) as database:
            return Counter(row for row in database.execute("SELECT source, n FROM rows") if row[1] != PROBE)


@contextmanager
def feeds(folder: Path) -> Iterator[Feeds]:
    """All of them; skips the test where one is missing."""
    with ExitStack() as until_end:
        yield Feeds(folder, until_end)


def expected(phases: int) -> Counter[tuple[str, int]]:
    """The rows that were sent to the first process, or to both."""
    sent = Counter((source, n) for source in FEEDS for n in range(phases * ROWS))
    return sent + Counter((source, n) for source in BOUNDED for n in range(ROWS))


def called(folder: Path) -> Counter[tuple[str, int]]:
    """The rows in the file that the job's function writes."""
    file = folder / CALLED
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter((row["source"], row["n"]) for row in map(json.loads, lines))


def of_feeds(folder: Path) -> Pipeline:
    """Each row of each feed, of a file that a feed continues, and of a generator."""
    places = json.loads((folder / PLACES).read_text())
    past = FileSource(str(folder / "past.csv"), pa.schema(COLUMNS))
    lines = SocketSource("127.0.0.1", places["socket"], format="csv", columns=pa.schema(COLUMNS), retries=None)
    subscribe = [_message("web socket", PROBE)]  # the server echoes it
    read = [
        wb.Stream.from_source(wb.MqttSource(places["mqtt"], COLUMNS, topic="rooms/#")),
        wb.Stream.from_source(wb.ServerEventSource(places["events"], COLUMNS, retries=RETRIES)),
        wb.Stream.from_source(wb.WebSocketSource(places["web socket"], COLUMNS, subscribe=subscribe, retries=RETRIES)),
        wb.Stream.from_source(HybridSource(past, lines)),
        wb.Stream.from_generator(_generated, COLUMNS, limit=ROWS),
    ]
    rows = read[0].union(*read[1:])

    def noted(batch: pa.RecordBatch) -> None:
        with (folder / CALLED).open("a") as file:
            file.write("".join(f"{json.dumps(row)}\n" for row in batch.to_pylist()))

    stored = rows.sink_to(wb.SqlSink(f"sqlite:///{folder}/feeds.sqlite", "rows"))
    return stored + rows.sink_to(wb.CallbackSink(noted))


def _generated(first: int, n: int) -> pa.RecordBatch:
    return pa.record_batch({"source": ["generator"] * n, "n": range(first, first + n)})


def _message(source: str, n: int) -> str:
    return json.dumps({"source": source, "n": n})


class _SentOnce(list[str]):
    """Messages that are gone when they have been sent; a connection waits for some, and then ends."""

    def __iter__(self) -> Iterator[str]:
        end_s = time.monotonic() + 1
        while time.monotonic() < end_s:
            while self:
                yield self.pop(0)
            time.sleep(0.02)


@contextmanager
def _lines_server(lines: _SentOnce) -> Iterator[int]:
    """Sends the lines to whoever connects, and ends the connection; yields its port."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            send: Callable[[bytes], None] = self.request.sendall
            for line in lines:
                send(line.encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()
