"""A store in memory: it outlives tasks, as a store on other machines would, but not the process."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from threading import Lock

from workbench.runtime.transactions.store import Origin, Row, Write, fenced


class MemoryStore:
    """Rows in memory (see `Store`).

    Example:
        >>> store = MemoryStore()
        >>> store.begin([Write("counts[0]", 0)], Origin("counts[0]"))
        >>> old, new = store.claim("counts[0]"), store.claim("counts[0]")
        >>> store.write(Write("counts[0]", new, taken=[("a", 0, 2)]))
        >>> store.taken("counts[0]", "a")
        [(0, 2)]
        >>> store.write(Write("counts[0]", old))
        Traceback (most recent call last):
        ...
        workbench.runtime.transactions.store.FencedWriteError: counts[0] wrote with the sequencer 1, but 2 owns ...
    """

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._claims = 0
        self._origin: Origin | None = None
        self._lock = Lock()

    def open(self, rows: str, owner: str, forget: str = "") -> None:
        """Do nothing: no other process has this store."""

    @property
    def origin(self) -> Origin | None:
        """What the rows began from."""
        return self._origin

    def begin(self, writes: Iterable[Write], origin: Origin) -> None:
        """Replace everything by these first writes of all ranges."""
        rows = {}
        for write in writes:
            row = rows[write.range] = Row(token=write.token)
            row.apply(write)
        with self._lock:
            self._rows, self._origin = rows, origin

    def knows(self, checkpoint_id: int) -> bool:
        """Whether it is among those of the sinks."""
        with self._lock:
            rows = list(self._rows.values())
        return any(checkpoint_id in marks for row in rows for marks in row.flushed.values())

    def claim(self, range: str) -> int:
        """The next token of a range."""
        with self._lock:
            row = self._rows.setdefault(range, Row())
            self._claims += 1  # over all ranges: one that is gone and comes back gets no token again
            row.token = self._claims
            return row.token

    def write(self, write: Write) -> None:
        """Apply a transaction."""
        with self._lock:
            row = self._rows.get(write.range)
            if row is None or row.token != write.token:
                raise fenced(write, 0 if row is None else row.token)
            row.apply(write)

    def row(self, range: str) -> Row:
        """A copy of the row of a range; elements are immutable, and shared."""
        with self._lock:
            row = self._rows[range]
            return replace(
                row,
                states=dict(row.states),
                taken=copy.deepcopy(row.taken),
                productions=list(row.productions),
                rows=list(row.rows),
                flushed=copy.deepcopy(row.flushed),
            )

    def taken(self, range: str, channel: str) -> list[tuple[int, int]]:
        """The ids that a range has processed of a channel."""
        with self._lock:
            return list(self._rows[range].taken.get(channel, ()))

    def close(self) -> None:
        """Has nothing to release."""

    def end(self) -> None:
        """The rows go with the job."""
