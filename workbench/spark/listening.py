"""Readers that listen between two batches, for sources that cannot be read again.

Spark asks for records once per batch. What a feed sends meanwhile would be lost: its server ends the connection of a
client that does not answer its pings, and keeps only so many messages for one that does not take them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, WaitUntil
from workbench.operators.contract.base import OperatorContext, Snapshot

ROWS_MAX = 200_000
"""That wait to be read; then the server waits, or loses them."""
_CHUNK_ROWS = 8_192
_REST_S_MIN, _REST_S_MAX = 0.001, 0.05


@dataclass(frozen=True, slots=True)
class _Heard:
    """What one poll gave, and the reader after it."""

    result: Fetched | WaitUntil | Exhausted
    splits: tuple[str, ...]
    shares_event_time: bool
    position: Snapshot


class ListeningReader(SourceReader):
    """Polls another reader on a thread of its own, from the first poll to `close`.

    Its position is that of what it has delivered, not of what it has heard.

    Args:
        reader: that is polled.
    """

    def __init__(self, reader: SourceReader) -> None:
        self._reader = reader
        self._waiting: deque[_Heard] = deque()
        self._heard = self._delivered = 0  # rows; each is counted by one thread
        self._error: Exception | None = None
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self._reader.open(context)
        self._at = self._now(WaitUntil(None))

    @property
    def shares_event_time(self) -> bool:  # type: ignore[override]
        """That of the reader when it read what was delivered last."""
        return self._at.shares_event_time

    def splits(self) -> Sequence[str]:
        return self._at.splits

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, name="listening", daemon=True)
            self._thread.start()
        if self._waiting:
            self._at = self._waiting.popleft()
            self._delivered += _rows(self._at.result)
            return self._at.result
        if self._error is not None:
            raise self._error
        return WaitUntil(None)

    def snapshot(self) -> Snapshot:
        return self._at.position

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._reader.restore(snapshots)
        self._at = self._now(WaitUntil(None))

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self._reader.close()

    def _listen(self) -> None:
        try:
            last = self._at
            while not (self._closed.is_set() or isinstance(last.result, Exhausted)):
                if self._heard - self._delivered >= ROWS_MAX:
                    self._closed.wait(_REST_S_MAX)
                    continue
                now = self._now(self._reader.poll(_CHUNK_ROWS))
                if not isinstance(now.result, WaitUntil) or now.splits != last.splits:
                    self._heard += _rows(now.result)
                    self._waiting.append(now)
                    last = now
                if isinstance(now.result, WaitUntil):
                    self._closed.wait(self._rest_s(now.result))
        except Exception as error:  # noqa: BLE001  of the reader, which the next poll raises
            self._error = error

    def _now(self, result: Fetched | WaitUntil | Exhausted) -> _Heard:
        reader = self._reader
        return _Heard(result, tuple(reader.splits()), reader.shares_event_time, reader.snapshot())

    def _rest_s(self, told: WaitUntil) -> float:
        if told.time_us is None:
            return _REST_S_MAX
        return min(max((told.time_us - self._clock.now_us()) / 1e6, _REST_S_MIN), _REST_S_MAX)


def _rows(result: Fetched | WaitUntil | Exhausted) -> int:
    return len(result.records) if isinstance(result, Fetched) else 0
