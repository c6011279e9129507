"""Turns the messages of the log into rows, from a position on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from workbench.connectors.postgresql_log.copying import Copy, Key
from workbench.connectors.postgresql_log.pgoutput import (
    UNCHANGED,
    Begin,
    Cell,
    Change,
    Commit,
    Message,
    Relation,
    Truncate,
    message_of,
)
from workbench.connectors.postgresql_log.positions import Position, Seen
from workbench.connectors.postgresql_log.rows import Layout, Rows, declared
from workbench.connectors.postgresql_log.server import TableFacts
from workbench.connectors.postgresql_log.wire import Wire
from workbench.errors import SourceError

if TYPE_CHECKING:
    from workbench.connectors.postgresql_log.source import PostgresLogSource


class Changes:
    """The changes of one table.

    Args:
        source: the description.
        table: in the catalog.
        position: where reading goes on.
        types: of the columns when they were read last; empty: not yet.
        copy: the copy of the table.
        seen_by: returns the snapshot that the copy of each key has.

    Attributes:
        position: behind what was taken.
        types: of the columns, by id and modifier.
    """

    def __init__(
        self,
        source: PostgresLogSource,
        table: TableFacts,
        position: Position,
        types: tuple[tuple[int, int], ...],
        copy: Copy,
        seen_by: Callable[[Sequence[Key]], list[Seen]],
    ) -> None:
        self._schema, self._name, self._server = source.columns, source.table, source.server
        self._oid, self._copy, self._seen_by = table.oid, copy, seen_by
        self._keys = [source.columns.names.index(name) for name in source.key]
        self._skipped = position  # of its transaction, the first changes were delivered
        self.position = replace(position, commit=0, index=0)
        self.types = types
        self._xid = 0
        self._layout: Layout | None = None
        self._rows: Rows | None = None
        self._next: Message | None = None

    def take(self, wire: Wire, most: int) -> pa.RecordBatch | None:
        """The next changes, about as many as this; None: there is none now, or only rows that have to be copied again.

        Raises:
            SourceError: a message or a value that cannot be read.
            WireError: the connection is lost.
        """
        while max(len(self._copy.state.missing), 0 if self._rows is None else len(self._rows)) < most:
            message = self._next
            if message is None:
                frame = self._frame(wire)
                if frame is None:
                    break
                if isinstance(frame, int):
                    self._pass(frame)
                    continue
                try:
                    message = message_of(frame)
                except ValueError as error:
                    raise self._unreadable(error) from error
            self._next = None
            if isinstance(message, Relation) and message.oid == self._oid and self._rows:
                self._next = message  # the rows before it have another layout
                break
            if message is not None:
                self._handle(message)
        rows, self._rows = self._rows, None
        return rows.batch() if rows else None

    def _frame(self, wire: Wire) -> bytes | int | None:
        """The next frame; a lost connection is reported when all rows before it were delivered."""
        return wire.take() if not self._rows else wire.take_ready()

    def _pass(self, end: int) -> None:
        """The server has nothing up to this place."""
        if not self.position.commit and end > self.position.done:
            self.position = Position(end)

    def _handle(self, message: Message) -> None:
        match message:
            case Change(oid):
                if oid == self._oid:
                    self._change(message)
            case Truncate(oids):
                if self._oid in oids:
                    self._change(message)
            case Begin(commit, xid):
                self.position = Position(self.position.done, commit, 0)
                self._xid = xid
            case Commit(end):
                self.position = Position(end)
            case Relation() if message.oid == self._oid:
                layout = Layout.of(message, self._schema, self._name)
                if self.types:
                    layout.check_kept(self.types, self._schema, self._name)
                self._layout, self.types = layout, layout.types

    def _change(self, message: Change | Truncate) -> None:
        place = self.position
        if not place.commit:
            raise self._unreadable("a change stands outside of a transaction")
        self.position = replace(place, index=place.index + 1)
        if place.commit == self._skipped.commit and place.index < self._skipped.index:
            return
        if isinstance(message, Truncate):
            self._truncate()
            return
        if self._layout is None:
            raise self._unreadable("a change came before the columns of its table")
        rows = self._rows
        if rows is None:
            rows = self._rows = Rows(self._schema, self._keys, self._layout)
        try:
            self._put(message, self._layout, rows)
        except ValueError as error:
            raise self._unreadable(error) from error

    def _put(self, change: Change, layout: Layout, rows: Rows) -> None:
        old = None if change.old is None else declared(change.old, layout)
        new = None if change.new is None else declared(change.new, layout)
        if old is not None and new is not None:
            new = [
                before if after is UNCHANGED and (change.whole or place in self._keys) else after
                for place, (before, after) in enumerate(zip(old, new, strict=True))
            ]
        old_key = None if old is None else self._key(old)
        new_key = None if new is None else self._key(new)
        moved = old_key is not None and new_key is not None and old_key != new_key
        had = False
        if old_key is not None and (moved or new is None) and not self._is_copied(old_key):
            rows.delete(old_key)
            had = True
        if new is None or new_key is None or self._is_copied(new_key):
            return
        if moved and not had and UNCHANGED in new:  # no part has the row
            self._copy.state.missing[new_key] = self._xid
        else:
            rows.put(new, moved=moved)

    def _key(self, cells: Sequence[Cell]) -> Key:
        key = tuple(cell for place in self._keys if isinstance(cell := cells[place], str))
        if len(key) < len(self._keys):
            raise ValueError("a row comes without its key")
        return key

    def _is_copied(self, key: Key) -> bool:
        """Whether the copy has the transaction's changes of a key already, or will have them."""
        state = self._copy.state
        if key in state.missing:
            state.missing[key] = self._xid
            return True
        if (seen := state.again.get(key)) is not None:
            return seen.has(self._xid)
        return bool(state.parts) and self._seen_by([key])[0].has(self._xid)

    def _truncate(self) -> None:
        state = self._copy.state
        has = {seen.has(self._xid) for _, seen in state.parts}
        if has == {True, False}:
            raise SourceError(
                f"{self._name!r} was truncated while it was copied: start the job anew, which copies the table again"
            )
        if True in has:
            return
        later = [key for key, seen in state.again.items() if seen.has(self._xid)]  # they are cleared with the others
        state.missing = dict.fromkeys([*state.missing, *later], self._xid)
        if self._rows is None:
            layout = self._layout or Layout((), ((25, -1),) * len(self._schema))
            self._rows = Rows(self._schema, self._keys, layout)
        self._rows.clear()

    def _unreadable(self, error: object) -> SourceError:
        return SourceError(f"cannot read the log of {self._server} at {self.position}: {error}")
