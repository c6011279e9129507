"""Small inputs that claim much memory, each read in a process of its own; prints a line of JSON for each.

The limit of a record is that of the environment. A line has the name of the attack, the peak of memory in megabytes
beyond that of a process that reads nothing, and what became of the record: the text of the error or dead letter, or
``decoded``.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import websockets.server

from workbench.connectors.contract.base import Exhausted, Fetched, WaitUntil
from workbench.connectors.feeds.event_stream import EventParser
from workbench.connectors.feeds.web_socket import WebSocketWire
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.live.socket_source import SocketSource
from workbench.connectors.messages.choosing import message_format
from workbench.connectors.messages.sorting import letters_of, sorted_out
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext

MB = 1 << 20
TIMES = 160
ADDRESS_SPACE = 6 << 30
SCHEMA = pa.schema([("id", pa.int64())])
WIDE = pa.schema([("id", pa.list_(pa.struct({f"c{n}": pa.int64() for n in range(100)})))])
FOLDER, NAMES = Path(sys.argv[1]), sys.argv[3:]
ON_ERROR: Any = sys.argv[2]


def read(form: str, value: bytes, schema: pa.Schema = SCHEMA, avro_schema: str | None = None) -> str:
    """What becomes of a message."""
    messages = message_format(form, avro_schema)
    source: Any = SimpleNamespace(schema=schema, event_time=None, on_error=ON_ERROR, format=form)
    values = [value]
    letter = letters_of(values, lambda at: "here", source)
    found = sorted_out(1, lambda begin, end: messages.decode(values[begin:end], schema), letter, source)
    return found.letters[0].error if found.letters else "decoded"


def avro(kind: Any, value: bytes) -> str:
    fields = [{"name": "id", "type": "long"}, {"name": "x", "type": kind}]
    return read("avro", b"\2" + value, avro_schema=json.dumps({"type": "record", "name": "R", "fields": fields}))


def number(value: int) -> bytes:
    """As Avro writes it."""
    value, made = value << 1, b""
    while value >= 128:
        made += bytes([value & 127 | 128])
        value >>= 7
    return made + bytes([value])


def arrow(table: pa.Table, **how: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**how)) as writer:
        writer.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def file(name: str, compress: Callable[[bytes], bytes], begin: bytes, middle: bytes, end: bytes) -> str:
    """What becomes of a record of a file that is longer than all limits, and of the one behind it."""
    path = FOLDER / name
    with path.open("wb") as written:
        written.writelines([compress(begin), *[compress(middle * MB)] * TIMES, compress(end)])
    reader = FileSource(path, SCHEMA, on_error=ON_ERROR).create()
    return drained(reader)


def drained(reader: Any) -> str:
    reader.open(OperatorContext())
    letters: list[str] = []
    rows = 0
    while not isinstance(polled := reader.poll(1_000), Exhausted):
        if isinstance(polled, Fetched):
            letters += polled.dead_letters.batch["error"].to_pylist() if polled.dead_letters else []
            rows += polled.records.batch.num_rows
        elif isinstance(polled, WaitUntil):
            threading.Event().wait(0.001)
    reader.close()
    assert rows == 1, f"{rows} rows, {letters}"
    return "; ".join(letters) or "decoded"


def line_of_a_socket(delimiter: str) -> str:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, contextlib.suppress(OSError), server.accept()[0] as peer:
            for _ in range(TIMES):
                peer.sendall(b"x" * MB)
            peer.sendall(delimiter[:2].encode())
            peer.sendall(f'{delimiter[2:]}{{"id": 1}}{delimiter}'.encode())

    threading.Thread(target=serve, daemon=True).start()
    port = server.getsockname()[1]
    return drained(SocketSource("127.0.0.1", port, delimiter, "json", columns=SCHEMA, on_error=ON_ERROR).create())


def event(line: bytes) -> str:
    parser = EventParser()
    for _ in range(TIMES):
        assert not parser.take(line * (MB // len(line)))
    (found,) = parser.take(b"\n\n")
    return read("json", found.value)


def frames(content: Iterator[bytes]) -> str:
    wire = WebSocketWire("ws://localhost/", {}, ())
    wire.opened("")
    server = websockets.server.ServerProtocol()
    server.receive_data(wire.to_send())
    (request,) = server.events_received()
    server.send_response(server.accept(request))  # type: ignore[arg-type]
    wire.take(b"".join(server.data_to_send()))
    for piece in content:
        assert not wire.take(piece)
    return "decoded"


def header(size: int, code: int) -> bytes:
    return bytes([code, 127]) + size.to_bytes(8, "big")


LONG = {"type": "record", "name": "L", "fields": [{"name": f"n{n}", "type": "null"} for n in range(50)]}
LONG["fields"] += [{"name": "b", "type": "boolean"}]  # type: ignore[operator]
RECURSIVE = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}
DEEP = 2_500_000


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def lz4(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="lz4", asbytes=True))


JSON, CSV = (b'{"id": 1, "s": "', b"x", b'"}\n{"id": 2}\n'), (b'id,s\n1,"', b"x", b'"\n2,y\n')

ATTACKS: dict[str, Callable[[], str]] = {
    "avro: records of a byte": lambda: avro({"type": "array", "items": LONG}, number(MB) + b"\0" * MB + b"\0"),
    "avro: records of a byte in a map": lambda: avro(
        {"type": "map", "values": LONG}, number(MB) + b"\0\0" * MB + b"\0"
    ),
    "avro: records within themselves": lambda: avro(RECURSIVE, b"\2" * DEEP + b"\0"),
    "avro: items without bytes": lambda: avro({"type": "array", "items": "null"}, number(2**40) + b"\0"),
    "avro: an array of a claimed length": lambda: avro({"type": "array", "items": "long"}, number(2**40)),
    "avro: text of a claimed length": lambda: avro("string", number(2**40) + b"abc"),
    "avro: many longs": lambda: avro({"type": "array", "items": "long"}, number(MB) + b"\2" * MB + b"\0"),
    "avro: one long text": lambda: avro(
        {"type": "array", "items": "string"}, b"\2" + number(MB // 2) + b"x" * (MB // 2) + b"\0"
    ),
    "json: deep in no column": lambda: read("json", b'{"id": 1, "a": ' + b"[" * DEEP + b"]" * DEEP + b"}"),
    "json: deep and open": lambda: read("json", b'{"id": 1, "a": ' + b'{"a":' * (DEEP // 5) + b"}"),
    "json: deep in a column": lambda: read("json", b'{"id": ' + b"[" * DEEP + b"]" * DEEP + b"}"),
    "json: digits": lambda: read("json", b'{"id": ' + b"9" * MB + b"}"),
    "json: an exponent": lambda: read("json", b'{"id": 1e999999}', pa.schema([("id", pa.float64())])),
    "json: objects that lack all": lambda: read("json", b'{"id": [' + b"{}," * MB + b"{}]}", WIDE),
    "json: a large message": lambda: read("json", b'{"id": 1, "s": "' + b"x" * (8 * MB) + b'"}'),
    "csv: values without columns": lambda: read("csv", b"," * (3 * MB)),
    "raw: a large message": lambda: read("raw", b"x" * (8 * MB), pa.schema([("id", pa.binary())])),
    "arrow: compressed": lambda: read(
        "arrow", arrow(pa.table({"id": pa.nulls(MB, pa.int64())}), compression="zstd"), SCHEMA
    ),
    "arrow: one text many times": lambda: read(
        "arrow",
        arrow(pa.table({"id": pa.DictionaryArray.from_arrays(pa.array([0] * MB, pa.int8()), pa.array(["x" * 200]))})),
        pa.schema([("id", pa.string())]),
    ),
    "arrow: values without bytes": lambda: read("arrow", arrow(pa.table({"id": pa.nulls(30 * MB)}))),
    "file: json.gz": lambda: file("a.json.gz", gzip.compress, *JSON),
    "file: json.zst": lambda: file("a.json.zst", zstd, *JSON),
    "file: json.lz4": lambda: file("a.json.lz4", lz4, *JSON),
    "file: json.bz2": lambda: file("a.json.bz2", bz2.compress, *JSON),
    "file: csv.gz": lambda: file("a.csv.gz", gzip.compress, *CSV),
    "file: a quote": lambda: file("a.csv", bytes, b'id,s\n1,"', b"x", b"\n2,y\n"),
    "socket: a line": lambda: line_of_a_socket("\n"),
    "socket: a line with a long end": lambda: line_of_a_socket("<end>"),
    "events: a line": lambda: event(b"data: " + b"x" * 58),
    "events: empty lines": lambda: event(b"data:\n"),
    "websocket: a claimed length": lambda: frames(iter([header(2**40, 0x82)])),
    "websocket: fragments": lambda: frames(header(MB, 0x02 if n == 0 else 0x00) + b"x" * MB for n in range(TIMES)),
}


NOTHING = ""


def attack(name: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        told = ATTACKS[name]() if name else "decoded"
    except Exception as error:  # noqa: BLE001  the test looks at it
        told = f"{type(error).__name__}: {error}"
    (FOLDER / "told").write_text(told)


def main() -> None:
    for value in (b'{"id": 1}', b"{"):  # imports what reading needs, before its memory counts
        with contextlib.suppress(SourceError):
            read("json", value)
    base = 0
    for name in (NOTHING, *(NAMES or ATTACKS)):
        (FOLDER / "told").unlink(missing_ok=True)
        if not (child := os.fork()):
            attack(name)
            os._exit(0)
        _, status, used = os.wait4(child, 0)
        told = (FOLDER / "told").read_text() if status == 0 else f"ended with {status}"
        base = base or used.ru_maxrss
        sys.stdout.write(json.dumps({"name": name, "peak": (used.ru_maxrss - base) // 1024, "told": told[:400]}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
