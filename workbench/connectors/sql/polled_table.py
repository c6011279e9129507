"""What the catalogue of a PostgreSQL server says about a table that is read in the order of a key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from workbench.connectors.sql.table_name import places_of
from workbench.errors import SourceError
from workbench.operators.contract.base import Snapshot
from workbench.operators.snapshots.pieces import value_in

Query = Callable[..., pa.Table]
_INTEGERS = ("smallint", "integer", "bigint")
_OTHERS = {
    "v": "a view, whose rows show neither a unique key nor when they were committed: read the table below it",
    "m": "a materialized view, which is replaced as a whole: read the tables below it",
    "f": "a foreign table, which has no keys: read it from its own server",
    "S": "a sequence: name a table",
    "i": "an index: name a table",
    "I": "an index: name a table",
    "c": "a type: name a table",
}
_FACTS = """
SELECT c.oid::bigint AS number, c.relkind::text AS kind, pg_relation_filenode(c.oid)::bigint AS storage,
    EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid) AS has_children,
    format_type(a.atttypid, NULL) AS key_type, a.attnotnull AS is_never_null,
    EXISTS (
        SELECT 1 FROM pg_index AS i
        WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
            AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
    ) AS is_unique,
    s.seqincrement AS step, s.seqmin AS lowest,
    CASE WHEN has_sequence_privilege(s.seqrelid, 'USAGE, SELECT') THEN pg_sequence_last_value(s.seqrelid) END AS drawn
FROM pg_class AS c
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = $2 AND NOT a.attisdropped
LEFT JOIN pg_sequence AS s ON s.seqrelid = pg_get_serial_sequence(c.oid::regclass::text, a.attname)::regclass
WHERE c.oid = $1::regclass
"""


def place_of(query: Query, table: str) -> str | None:
    """The table as an SQL name, see `places_of`; None: there is none."""
    for place in (each.sql for each in places_of(table)):
        if query("SELECT to_regclass($1)::text AS found", (place,))["found"][0].as_py() is not None:
            return place
    return None


@dataclass(frozen=True)
class PolledTable:
    """A table, as it was when it was looked at.

    Attributes:
        number: its number in the catalogue, which a table that is made again does not have.
        storage: the number of its file, which changes when the table is emptied (TRUNCATE) or rewritten; None: it has
            none.
        drawn: the last key that its own sequence has drawn; None: no key, or unknown.
        lowest: the first key that its own sequence draws; None: it has no sequence.
    """

    number: int
    storage: int | None
    drawn: int | None
    lowest: int | None = None

    @classmethod
    def found(cls, query: Query, place: str, table: str, key: str) -> PolledTable:
        """Look at a table.

        Args:
            query: gives the rows of a statement.
            place: its SQL name.
            table: its name, for messages.
            key: the column.

        Raises:
            SourceError: it is no table, or its rows cannot be read in the order of the key without skipping rows.
        """
        [facts] = query(_FACTS, (place, key)).to_pylist()
        if fault := _fault(facts, table, key):
            raise SourceError(fault)
        lowest = facts["lowest"] if facts["step"] == 1 else None
        return cls(facts["number"], facts["storage"], facts["drawn"], lowest)

    @classmethod
    def restored(cls, snapshot: Snapshot) -> PolledTable | None:
        """As of `snapshot`; None: of a version that did not note it."""
        if "table" not in snapshot:
            return None
        number, storage, drawn = value_in(snapshot, "table", tuple[int, int | None, int | None])
        return cls(number, storage, drawn)

    @property
    def noted(self) -> list[int | None]:
        """For `restored`."""
        return [self.number, self.storage, self.drawn]

    def check_is_that(self, earlier: PolledTable | None, last: int | None, greatest: int | None, names: str) -> None:
        """Reject a table that cannot be the one that was read up to `last`.

        Args:
            earlier: as it was when it was read.
            last: the position.
            greatest: the greatest key of the table; None: it is empty.
            names: of the table and its key, for the message.

        Raises:
            SourceError: it was made again, or emptied, and has keys that would not be read.
        """
        if earlier is None or last is None:
            return
        again = f"give the job a new name, or start_after=, to read its rows; the position is {last}"
        if self.number != earlier.number:
            raise SourceError(f"{names} was dropped and created again since it was read: {again}")
        if earlier.drawn is not None and self.lowest is not None:
            drawn = self.lowest - 1 if self.drawn is None else self.drawn
            if drawn < min(earlier.drawn, last):
                raise SourceError(
                    f"{names} gets its keys from a sequence that was restarted since (it had drawn {earlier.drawn}, "
                    f"and is at {drawn}), so that new rows would not be read: {again}"
                )
        if self.storage != earlier.storage and greatest is not None and greatest < last:
            raise SourceError(
                f"{names} was emptied or rewritten since it was read, and its greatest key is {greatest}: {again}"
            )


def _fault(facts: Mapping[str, Any], table: str, key: str) -> str:
    """Why rows could be skipped, with the likely fix; empty: nothing is known."""
    name = f"the key {key!r} of {table!r}"
    if facts["kind"] not in ("r", "p"):
        return f"{table!r} is {_OTHERS.get(facts['kind'], 'no table: name a table')}"
    if facts["key_type"] is None:
        return f"{table!r} has no column {key!r}: check key="
    if facts["key_type"] not in _INTEGERS:
        return f"{name} is {facts['key_type']}: choose a column that is {', '.join(_INTEGERS[:2])} or {_INTEGERS[2]}"
    if not facts["is_never_null"]:
        return (
            f"{name} can be null, and rows without a key are never read: declare it NOT NULL (ALTER TABLE ... ALTER "
            "COLUMN ... SET NOT NULL), or choose another key"
        )
    if not facts["is_unique"]:
        return (
            f"{name} has no unique index of its own, and of rows that share a key some can be skipped: make it the "
            "primary key, add a unique index, or choose another key"
        )
    if facts["kind"] == "r" and facts["has_children"]:
        return (
            f"{table!r} has tables that inherit from it, and the unique index of {key!r} does not cover their rows: "
            "read each table on its own"
        )
    if facts["step"] is not None and facts["step"] < 0:
        return f"{name} is drawn from a sequence that counts down, and rows are read upwards: choose another key"
    return ""
