"""A source over a TCP connection: one record per line, as `nc -lk 9999` sends them."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

import pyarrow as pa

from workbench.arguments import text_of, whole_number
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.feeds.keep_alive import keep_alive
from workbench.connectors.files.json_times import TimeUnit, check_unit
from workbench.connectors.files.lenient_files import Parse, one_to_a_line, sorted_out
from workbench.connectors.files.line_parser import LineFormat, parse_lines
from workbench.connectors.files.record_limit import record_bytes, too_large
from workbench.durations import format_duration
from workbench.elements import Records, event_times
from workbench.errors import PlanError, SettingError, SourceError, told_by, unknown
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.functions.dead_letters import DeadLetter, OnError, as_records, check_on_error, of_bytes

TEXT_SCHEMA = pa.schema([("line", pa.string())])
"""The schema of a socket whose lines are not parsed."""

_RECEIVED_BYTES_MAX = 1 << 20
_REST_US_MIN = 1_000
_REST_US_MAX = 16_000
_CONNECT_US = 10_000_000
"""How long a server may take to accept the connection."""

State = Literal["closed", "connecting", "connected", "ended"]


@dataclass(frozen=True)
class SocketSource(Source):
    """Records from a TCP server, one per line.

    Data that a connection has delivered cannot be requested again: the source is *not resettable*. After a failure the
    state resumes from the last checkpoint, and the records between it and the failure are lost.

    A server that refuses, does not accept the connection within 10 s, or whose machine has vanished for 25 s is lost,
    and the source connects again. A server that keeps the connection and sends nothing looks like one without news:
    the view ``sources`` shows for how long.

    Args:
        host, port: of the server; this side connects.
        delimiter: ends a record; the last one may lack it.
        format: ``"text"`` yields one column, ``line``; ``"json"`` parses objects and ``"csv"`` values (without a
            header).
        columns: names and types, for ``"json"`` and ``"csv"``.
        event_time: column that carries event time, or None.
        retries: how often in a row to reconnect when the server refuses or ends the connection; None: no limit.
            With 0 the stream ends when the server closes the connection, and a refused connection is an error.
        retry_delay_us: time before each retry.
        on_error: what happens to a line that is not a record.
        unit: what numbers in columns of timestamps count, in JSON.

    Raises:
        PlanError: columns are required but missing, or no such event-time column.
        SettingError: an invalid port or number of retries.
    """

    host: str
    port: int
    delimiter: str = "\n"
    format: LineFormat = "text"
    columns: pa.Schema | None = field(default=None, repr=False)
    event_time: str | None = None
    retries: int | None = 0
    retry_delay_us: int = 500_000
    on_error: OnError = "fail"
    unit: TimeUnit | None = None
    kind: ClassVar[str] = "socket"
    bounded: ClassVar[bool] = False
    resettable: ClassVar[bool] = False

    def __post_init__(self) -> None:
        text_of(self.host, "host", "localhost")
        if whole_number(self.port, "port", 0) == 0 or self.port > 65_535:
            raise SettingError(f"port is {self.port}: it must be between 1 and 65535")
        if self.format not in ("text", "json", "csv"):
            raise SettingError(unknown("line format", self.format, ("text", "json", "csv")))
        check_unit(self.unit, self.format)
        if not text_of(self.delimiter, "delimiter", "\n"):
            raise SettingError("delimiter is empty: write the text that ends a record, for example '\\n'")
        if self.retries is not None and whole_number(self.retries, "retries", -1) < 0:
            raise SettingError(f"retries is {self.retries}: it is 0 or more; None retries forever")
        if self.format == "text" and self.columns is not None and self.columns != TEXT_SCHEMA:
            raise PlanError("lines of text have one column, line: leave out schema, or pass format='json' or 'csv'")
        if self.format != "text" and self.columns is None:
            raise PlanError(
                f"a {self.format} socket does not declare its columns: name them with schema={{'a': pa.int64(), ...}}"
            )
        check_on_error(self.on_error, None)
        check_event_time(self.schema, self.event_time)

    @property
    def schema(self) -> pa.Schema:
        """The declared columns, or ``line``."""
        return TEXT_SCHEMA if self.columns is None else self.columns

    def describe(self) -> str:
        return f"{self.host}:{self.port}, {self.format}"

    def create(self) -> SourceReader:
        return SocketReader(self)


class SocketReader(SourceReader):
    """Reads the data that has arrived whenever it is polled, and never waits for more.

    There is one connection, that of subtask 0. While it is silent the reader rests, for increasing times up to 16 ms.
    """

    shares_event_time = False

    def __init__(self, source: SocketSource) -> None:
        self._source = source
        self._delimiter = source.delimiter.encode()
        self._state: State = "closed"
        self._socket: socket.socket | None = None
        self._rest = bytearray()
        self._ready: pa.RecordBatch | None = None
        self._failures = 0
        self._retry_us: int | None = None
        self._lost: Outage | None = None
        self._count = self._told_us = self._connect_us = 0
        self._silence_us = _REST_US_MIN
        self._letters: list[DeadLetter] = []

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._context = context
        if context.subtask:
            self._state = "ended"
            return
        try:
            found = socket.getaddrinfo(self._source.host, self._source.port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise SourceError(
                f"the host {self._source.host!r} is unknown ({error.strerror}): check its name"
            ) from error
        self._address = found[0]

    def splits(self) -> Sequence[str]:
        return [] if self._state == "ended" and self._ready is None else [f"{self._source.host}:{self._source.port}"]

    @property
    def outage(self) -> Outage | None:
        return None if self._state == "connected" else self._lost

    def progress(self) -> Mapping[str, SplitProgress]:
        ready = self._ready  # another thread asks
        lag = None if not self._told_us else 0 if ready is None else ready.num_rows
        return {split: SplitProgress(f"{self._count:,} lines", lag, self._told_us) for split in self.splits()}

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        now_us = self._clock.now_us()
        if self._ready is None:
            self._receive(now_us)
        batch = self._ready
        if batch is None and self._letters:
            batch = pa.RecordBatch.from_pylist([], schema=self._source.schema)
        if batch is None:
            if self._state == "ended":
                return Exhausted()
            if self._state == "closed" and self._retry_us is not None:
                return WaitUntil(self._retry_us)
            rest_us = self._silence_us
            self._silence_us = min(2 * rest_us, _REST_US_MAX)
            return WaitUntil(now_us + rest_us)
        self._silence_us = _REST_US_MIN
        rows = batch.slice(0, max_records)
        self._count += rows.num_rows
        self._ready = batch.slice(max_records) if batch.num_rows > max_records else None
        column = self._source.event_time
        times = None if column is None else event_times(rows.column(column), column)
        letters, self._letters = self._letters, []
        dead = as_records(letters, self._context, with_times=column is not None) if letters else None
        place = self._place  # data from a network cannot be found again by a number
        return Fetched(Records(rows, times), place, dead, where=lambda row: place)

    def snapshot(self) -> Snapshot:
        return {}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        """Does nothing: there is no position to restore."""

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _receive(self, now_us: int) -> None:
        """Make one step of progress: connect, or read what has arrived."""
        if self._state == "closed" and (self._retry_us is None or now_us >= self._retry_us):
            self._connect(now_us)
        if self._state == "connecting":
            self._look_whether_connected(now_us)
        if self._state == "connected":
            self._told_us = now_us
            self._take(now_us)

    def _connect(self, now_us: int) -> None:
        self._retry_us, self._connect_us = None, now_us
        family, kind, protocol, _, address = self._address
        self._socket = socket.socket(family, kind, protocol)
        keep_alive(self._socket)
        self._socket.setblocking(False)
        self._socket.connect_ex(address)  # select reports the outcome
        self._state = "connecting"

    def _look_whether_connected(self, now_us: int) -> None:
        assert self._socket is not None
        _, writable, broken = select.select([], [self._socket], [self._socket], 0)
        if not writable and not broken:
            if now_us - self._connect_us >= _CONNECT_US:
                self._failed(now_us, "it does not answer")
            return
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._failed(now_us, os.strerror(code))
        else:
            self._state = "connected"

    def _take(self, now_us: int) -> None:
        assert self._socket is not None
        try:
            data = self._socket.recv(_RECEIVED_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError as error:
            self._failed(now_us, told_by(error))
            return
        if data:
            self._failures = 0
            begin = max(0, len(self._rest) - len(self._delimiter) + 1)
            self._rest += data
            end = self._rest.rfind(self._delimiter, begin)
            whole = bytes(self._rest[: max(0, end)])
            if end >= 0:
                del self._rest[: end + len(self._delimiter)]
            if len(self._rest) > (most := record_bytes()):
                if self._source.on_error == "fail":
                    raise SourceError(
                        f"{self._place} sent {len(self._rest):,} bytes without {self._source.delimiter!r}: is that the "
                        f"delimiter between its records? If so, {too_large('this one')}"
                    )
                self._rest[most + 1 : 1 - len(self._delimiter) or None] = b""  # in what stays, a delimiter may begin
            if end >= 0:
                self._parse(whole)
            return
        last, self._rest = bytes(self._rest), bytearray()
        if last:
            self._parse(last)
        self._peer_closed(now_us)

    def _parse(self, data: bytes) -> None:
        lines = data.split(self._delimiter)
        form, schema, place, unit = self._source.format, self._source.schema, self._place, self._source.unit
        if self._source.on_error == "fail":
            batch = parse_lines(lines, form, schema, place, unit)
        else:
            parse: Parse = partial(parse_lines, form=form, schema=schema, place=place, unit=unit)
            parse = parse if form == "text" else one_to_a_line(parse)
            batch, bad = sorted_out(lines, parse, schema, self._source.event_time)
            position, kept = Position(place, Parts("socket", place)), "raw" if form == "text" else form
            self._letters += [of_bytes(reason, lines[at], kept, position) for at, reason in bad]
        self._ready = batch if batch.num_rows else None

    def _peer_closed(self, now_us: int) -> None:
        self.close()
        if self._source.retries is not None and self._failures >= self._source.retries:
            self._state = "ended"
        else:
            self._try_again(now_us, "the server has closed the connection")

    def _failed(self, now_us: int, reason: str) -> None:
        self.close()
        retries = self._source.retries
        if retries is not None and self._failures >= retries:
            tries = f" {self._failures + 1} times in a row" if self._failures else ""
            raise SourceError(
                f"no connection to {self._place}{tries}: {reason}; start the server first, or let the source wait for"
                f" it with retries=None (it would try again every {format_duration(self._source.retry_delay_us)})"
            )
        self._try_again(now_us, reason)

    def _try_again(self, now_us: int, reason: str) -> None:
        since_us = now_us if self._lost is None or self._state == "connected" else self._lost.since_us
        self._failures += 1
        self._state = "closed"
        self._retry_us = now_us + self._source.retry_delay_us
        self._lost = Outage(reason, self._failures, self._source.retries, self._retry_us, since_us, keeps=False)

    @property
    def _place(self) -> str:
        return f"{self._source.host}:{self._source.port}"
