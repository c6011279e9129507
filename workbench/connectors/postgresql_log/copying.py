"""A copy of a table in parts by key, each with the transactions that it has seen, so that it can go on after a failure.

Changes from the log that a part has seen already are left out afterwards: that of one row by the part in which its key
lies. Debezium and Flink CDC copy in parts too, and mark the places of the parts in the log instead.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from workbench.connectors.postgresql_log.positions import Seen
from workbench.connectors.postgresql_log.server import Copied, Server, TableFacts
from workbench.connectors.sql.table_name import quoted, quoted_list

Key = tuple[str, ...]
_INTEGERS, _UUID = (20, 21, 23, 26), 2950
_Order = Callable[[str], Any]
_ORDERS: dict[int, _Order] = {**dict.fromkeys(_INTEGERS, int), _UUID: str}
"""By the id of a type: what compares its values here as the server does."""


class Copy:
    """The parts that were copied, and what is left.

    Args:
        table: the table.
        columns: that are copied.
        key: their key.
        rows: the largest number of rows of a part.

    Attributes:
        parts: the last key of each part, the snapshot of its query, and where in the log that ends.
        is_whole: whether nothing is left.
    """

    def __init__(self, table: TableFacts, columns: Sequence[str], key: Sequence[str], rows: int) -> None:
        self._name = f"{quoted(table.schema)}.{quoted(table.name)}"
        self._columns, self._key, self._limit = tuple(columns), tuple(key), rows
        self._labels = [table.columns[name][2] for name in key]
        self._orders = [_ORDERS.get(table.columns[name][0]) for name in key]
        self.parts: list[tuple[Key, Seen, int]] = []
        self.is_whole = False

    def next_part(self, server: Server) -> Copied:
        """Query the rows behind those that were copied."""
        names, keys = quoted_list(self._columns), quoted_list(self._key)
        rest = f"ORDER BY {keys} LIMIT {self._limit}"
        if not self.parts:
            return server.copied(self._name, f"SELECT {names} FROM {self._name} {rest}")
        casts = ", ".join(f"%s::{label}" for label in self._labels)
        where = f"WHERE ({keys.replace('%', '%%')}) > ({casts})"
        escaped = f"SELECT {names} FROM {self._name} ".replace("%", "%%")
        return server.copied(self._name, f"{escaped}{where} {rest.replace('%', '%%')}", self.parts[-1][0])

    def deliver(self, copied: Copied, key: Key | None, *, is_last: bool) -> None:
        """Note that rows of a part were delivered.

        Args:
            copied: the part.
            key: of the last of these rows; None: the part has no rows.
            is_last: these were the last rows of the part.
        """
        end = key if key is not None else self.parts[-1][0] if self.parts else ()
        if self.parts and self.parts[-1][1] is copied.seen:
            self.parts.pop()
        self.parts.append((end, copied.seen, copied.until))
        self.is_whole = is_last and len(copied.rows) < self._limit

    @property
    def until(self) -> int:
        """From this place in the log on, no part has seen anything."""
        return max((until for _, _, until in self.parts), default=0)

    def seen_by(self, keys: Sequence[Key], server: Server) -> list[Seen]:
        """The snapshot of the part in which each key lies."""
        places = self._places(keys, server)
        last = len(self.parts) - 1
        return [self.parts[min(place, last)][1] for place in places]

    def _places(self, keys: Sequence[Key], server: Server) -> list[int]:
        """The number of ends of parts before each key."""
        ends = [end for end, _, _ in self.parts[:-1]]
        if len(self.parts) == 1:
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
