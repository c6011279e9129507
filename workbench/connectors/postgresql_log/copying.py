"""A copy of a table in parts by key, each with the transactions that it has seen, so that it can go on after a failure.

Changes from the log that a part has seen already are left out afterwards: that of one row by the part in which its key
lies. Debezium and Flink CDC copy in parts too, and mark the places of the parts in the log instead.

A row whose key changes may be in no part: its new key lies in a part that was copied before, its old one in a part that
was copied afterwards. If the log leaves out a large value of such a row, the row is copied again, by its new key. That
is a part of a single key: its snapshot is later than those of all parts, and takes the place of theirs for this key.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.connectors.postgresql_log.positions import Seen
from workbench.connectors.postgresql_log.server import Copied, Server, TableFacts
from workbench.connectors.sql.table_name import quoted, quoted_list
from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.pieces import value_in

Key = tuple[str, ...]
_INTEGERS, _UUID = (20, 21, 23, 26), 2950
_Order = Callable[[str], Any]
_ORDERS: dict[int, _Order] = {**dict.fromkeys(_INTEGERS, int), _UUID: str}
"""By the id of a type: what compares its values here as the server does."""


@dataclass(slots=True)
class CopyState:
    """What a checkpoint has of a copy.

    Attributes:
        parts: the last key of each part, and the snapshot of its query.
        again: by the key of each row that was copied again, the snapshot of that query.
        missing: by the key of each row that has to be copied again, the last transaction that changed it.
        until: all transactions of these snapshots commit before this place in the log.
        is_whole: whether all rows were copied once.
    """

    parts: list[tuple[Key, Seen]] = field(default_factory=list)
    again: dict[Key, Seen] = field(default_factory=dict)
    missing: dict[Key, int] = field(default_factory=dict)
    until: int = 0
    is_whole: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the rows are those of one place in the log."""
        return self.is_whole and not (self.parts or self.again or self.missing)

    def pass_by(self, place: int) -> None:
        """The log was read up to this place: snapshots that have seen nothing behind it are of no use any more."""
        if place >= self.until:
            self.parts, self.again = [], {}

    def saved(self) -> dict[str, Any]:
        """As JSON values."""
        by_snapshot: dict[str, list[list[str]]] = {}
        for key, seen in self.again.items():
            by_snapshot.setdefault(str(seen), []).append(list(key))
        return {
            "copied": self.is_whole,
            "until": self.until,
            "parts": [[list(end), str(seen)] for end, seen in self.parts],
            "again": [[seen, keys] for seen, keys in by_snapshot.items()],
            "missing": [[list(key), xid] for key, xid in self.missing.items()],
        }

    @staticmethod
    def restored(snapshot: Snapshot) -> CopyState:
        """From what `saved` returned.

        Raises:
            KeyError, ValueError: it has another form.
        """
        parts = value_in(snapshot, "parts", tuple[tuple[tuple[str, ...], str], ...])
        again = value_in(snapshot, "again", tuple[tuple[str, tuple[tuple[str, ...], ...]], ...])
        missing = value_in(snapshot, "missing", tuple[tuple[tuple[str, ...], int], ...])
        return CopyState(
            [(end, Seen.parsed(text)) for end, text in parts],
            {key: seen for text, keys in again for seen in (Seen.parsed(text),) for key in keys},
            dict(missing),
            value_in(snapshot, "until", int),
            value_in(snapshot, "copied", bool),
        )


class Copy:
    """The parts that were copied, and what is left.

    Args:
        table: the table.
        columns: that are copied.
        key: their key.
        rows: the largest number of rows of a part.
        state: how far it is; changed by the methods.
    """

    def __init__(
        self, table: TableFacts, columns: Sequence[str], key: Sequence[str], rows: int, state: CopyState
    ) -> None:
        self._name = f"{quoted(table.schema)}.{quoted(table.name)}"
        self._columns, self._key, self._limit = tuple(columns), tuple(key), rows
        self._labels = [table.columns[name][2] for name in key]
        self._orders = [_ORDERS.get(table.columns[name][0]) for name in key]
        self.state = state

    def next_part(self, server: Server) -> Copied:
        """Query the rows behind those that were copied."""
        names, keys = quoted_list(self._columns), quoted_list(self._key)
        rest = f"ORDER BY {keys} LIMIT {self._limit}"
        if not self.state.parts:
            return server.copied(self._name, f"SELECT {names} FROM {self._name} {rest}")
        casts = ", ".join(f"%s::{label}" for label in self._labels)
        where = f"WHERE ({keys.replace('%', '%%')}) > ({casts})"
        escaped = f"SELECT {names} FROM {self._name} ".replace("%", "%%")
        return server.copied(self._name, f"{escaped}{where} {rest.replace('%', '%%')}", self.state.parts[-1][0])

    def deliver(self, copied: Copied, key: Key | None, *, is_last: bool) -> None:
        """Note that rows of a part were delivered, or wait to be.

        Args:
            copied: the part.
            key: of the last of these rows; None: the part has no rows.
            is_last: these were the last rows of the part.
        """
        parts = self.state.parts
        end = key if key is not None else parts[-1][0] if parts else ()
        if parts and parts[-1][1] is copied.seen:
            parts.pop()
        parts.append((end, copied.seen))
        self.state.until = max(self.state.until, copied.until)
        self.state.is_whole = is_last and len(copied.rows) < self._limit

    def missing_rows(self, server: Server) -> Copied:
        """Query the rows that have to be copied again."""
        names, keys = quoted_list(self._columns), quoted_list(self._key)
        casts = ", ".join(f"%s::{label}[]" for label in self._labels)
        escaped = f"SELECT {names} FROM {self._name} WHERE ({keys}) IN ".replace("%", "%%")
        columns = [*map(list, zip(*self.state.missing, strict=True))]
        return server.copied(self._name, f"{escaped}(SELECT * FROM unnest({casts}))", columns)

    def deliver_again(self, copied: Copied) -> list[Key]:
        """Note that what `missing_rows` returned was delivered; returns the keys that were asked for.

        None were delivered if the query has not seen a transaction that the log has already: the server shows it to
        others a little later, and with synchronous replication when its standby has it.
        """
        state = self.state
        if not all(copied.seen.has(xid) for xid in state.missing.values()):
            return []
        keys, state.missing = list(state.missing), {}
        state.again.update(dict.fromkeys(keys, copied.seen))
        state.until = max(state.until, copied.until)
        return keys

    def seen_by(self, keys: Sequence[Key], server: Server) -> list[Seen]:
        """The snapshot of the part in which each key lies."""
        parts = self.state.parts
        last = len(parts) - 1
        return [parts[min(place, last)][1] for place in self._places(keys, server)]

    def _places(self, keys: Sequence[Key], server: Server) -> list[int]:
        """The number of ends of parts before each key."""
        ends = [end for end, _ in self.state.parts[:-1]]
        if not ends:
            return [0] * len(keys)
        orders = [order for order in self._orders if order is not None]
        if len(orders) == len(self._orders):
            known = [_ordered(end, orders) for end in ends]
            return [bisect_left(known, _ordered(key, orders)) for key in keys]
        casts = ", ".join(f"%s::{label}[]" for label in self._labels)
        names = ", ".join(f"c{at}" for at in range(len(self._labels)))
        sql = (
            f"SELECT (SELECT count(*) FROM unnest({casts}) AS e({names})"
            f" WHERE ({_of('e', names)}) < ({_of('k', names)}))"
            f" FROM unnest({casts}) WITH ORDINALITY AS k({names}, place) ORDER BY place"
        )
        columns = [*map(list, zip(*ends, strict=True)), *map(list, zip(*keys, strict=True))]
        return [int(count) for (count,) in server.rows(sql, columns)]


def _ordered(key: Key, orders: Sequence[_Order]) -> tuple[Any, ...]:
    return tuple(order(text) for order, text in zip(orders, key, strict=True))


def _of(table: str, names: str) -> str:
    return ", ".join(f"{table}.{name}" for name in names.split(", "))
