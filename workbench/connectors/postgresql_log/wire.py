"""A replication connection: a thread reads the log as the server sends it, and reports what is confirmed.

The server ends a connection whose client is silent for ``wal_sender_timeout``, and keeps its log until a client
confirms. So the thread reports regularly, also while the job takes nothing from it and while nothing changes.
"""

from __future__ import annotations

import select
import struct
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from workbench.clock import SystemClock
from workbench.connectors.postgresql_log.positions import lsn_text
from workbench.packages import needed

_HELD_BYTES_MAX = 32 * 2**20
_WAIT_S = 0.2
_REPORT_US_MAX = 10_000_000
_CLOSE_S = 0.5
_CLOCK_BEGINS_US = 946_684_800_000_000
"""PostgreSQL counts microseconds from the year 2000."""
_STATUS = struct.Struct(">cQQQqB")
_KEEPALIVE = struct.Struct(">QQB")
_DATA_HEAD = 25
IN_USE = "is active for PID"
"""How the server says that another connection reads a slot."""
Frame = bytes | int
"""A message of the plug-in, or the place in the log up to which there is nothing more to read now."""


class WireError(Exception):
    """The server refused a command, or the connection is lost."""


class Wire:
    """Reads the log from a place on.

    Args:
        conninfo: of libpq, with ``replication=database``.
        slot: its name; lower-case letters, digits and underscores.
        publication: its name.
        begin: where to begin.
        report_us: how often to report at least.

    Attributes:
        end: how far the server has sent or has said that nothing follows; only grows.
    """

    def __init__(self, conninfo: str, slot: str, publication: str, begin: int, report_us: int) -> None:
        self._pq: Any = needed("psycopg", "reading PostgreSQL's log").pq
        self._conninfo, self._slot, self._publication = conninfo, slot, publication
        self.end = self._begins = begin
        self._confirmed = 0  # nothing: what is before `begin` may be in no checkpoint yet
        self._report_us = min(report_us, _REPORT_US_MAX)
        self._clock = SystemClock()
        self._frames: deque[Frame] = deque()
        self._held_bytes = 0
        self._failure: str | None = None
        self._over = threading.Event()
        self._reported_us, self._reported = 0, 0
        self._thread = threading.Thread(target=self._work, name="workbench-postgresql-log", daemon=True)
        self._thread.start()

    def take(self) -> Frame | None:
        """The next frame; None: there is none now.

        Raises:
            WireError: everything that came before the connection was lost has been taken.
        """
        frame = self.take_ready()
        if frame is None and self._failure is not None and not self._frames:
            raise WireError(self._failure)
        return frame

    def take_ready(self) -> Frame | None:
        """As `take`, and None also after the end."""
        try:
            frame = self._frames.popleft()
        except IndexError:
            return None
        if isinstance(frame, bytes):
            self._held_bytes -= len(frame)
        return frame

    def confirm(self, lsn: int) -> None:
        """The server needs nothing before this place any more; it is reported soon."""
        self._confirmed = max(self._confirmed, lsn)

    def close(self) -> None:
        """End the connection; never waits for a server that hangs, and never raises."""
        self._over.set()
        self._thread.join(_CLOSE_S)

    def _work(self) -> None:
        connection: Any = None
        try:
            connection = self._pq.PGconn.connect(self._conninfo.encode())
            self._begin(connection)
            while not self._over.is_set():
                self._read(connection)
                self._report(connection)
        except Exception as error:  # noqa: BLE001  raised where frames are taken
            self._failure = str(error) or type(error).__name__
        finally:
            if connection is not None:
                with suppress(Exception):
                    if self._over.is_set() and self._failure is None:
                        self._report(connection, at_once=True)
                    connection.finish()

    def _begin(self, connection: Any) -> None:
        if connection.status != self._pq.ConnStatus.OK:
            raise WireError(_said(connection))
        name = self._publication.replace('"', '""').replace("'", "''")
        words = (
            f"START_REPLICATION SLOT {self._slot} LOGICAL {lsn_text(self._begins)} "
            f"(proto_version '1', publication_names '\"{name}\"')"
        )
        if connection.exec_(words.encode()).status != self._pq.ExecStatus.COPY_BOTH:
            raise WireError(_said(connection))
        connection.nonblocking = 1

    def _read(self, connection: Any) -> None:
        """Take what has arrived, or wait a little for it."""
        if self._held_bytes > _HELD_BYTES_MAX:
            self._over.wait(_WAIT_S / 10)
            return
        size, data = connection.get_copy_data(1)
        while size > 0:
            self._keep(connection, bytes(data))
            if self._held_bytes > _HELD_BYTES_MAX:
                return
            size, data = connection.get_copy_data(1)
        if size < 0:
            result = connection.get_result()
            raise WireError(_said(connection if result is None else result) or "the server ended the stream")
        if select.select([connection.socket], [], [], _WAIT_S)[0]:
            connection.consume_input()

    def _keep(self, connection: Any, data: bytes) -> None:
        if data[:1] == b"w" and len(data) > _DATA_HEAD:
            self._held_bytes += len(data) - _DATA_HEAD
            self._frames.append(data[_DATA_HEAD:])
        elif data[:1] == b"k" and len(data) == 1 + _KEEPALIVE.size:
            end, _, asks = _KEEPALIVE.unpack_from(data, 1)
            if end > self.end or not self._frames:
                self.end = max(self.end, end)
                self._note_end()
            if asks:
                self._report(connection, at_once=True)
        else:
            raise WireError(f"the server sent {data[:1]!r} of {len(data)} bytes, which is no message of a replication")

    def _note_end(self) -> None:
        """Let the reader know how far there is nothing; of several such notes in a row the last is enough."""
        with suppress(IndexError):
            if isinstance(self._frames[-1], int):
                self._frames[-1] = self.end
                return
        self._frames.append(self.end)

    def _report(self, connection: Any, *, at_once: bool = False) -> None:
        """Send what is confirmed, and ask how far the log goes."""
        now_us = self._clock.now_us()
        is_due = not self._reported_us <= now_us < self._reported_us + self._report_us  # a clock may jump back
        if not (at_once or is_due or self._confirmed > self._reported):
            connection.flush()
            return
        confirmed, asks = self._confirmed, 0 if at_once else 1
        now = now_us - _CLOCK_BEGINS_US
        connection.put_copy_data(_STATUS.pack(b"r", confirmed, confirmed, confirmed, now, asks))
        connection.flush()
        self._reported_us, self._reported = now_us, confirmed


def _said(source: Any) -> str:
    """The first line of an error message of libpq."""
    lines: list[str] = source.error_message.decode(errors="replace").strip().splitlines()
    return " ".join(line.strip() for line in lines)
