"""How rows are stored in a table of PostgreSQL that has other types than they: as they are, or not at all.

An assignment of PostgreSQL rounds numbers to the scale of the column, cuts a timestamp to a date, and has no conversion
from text to most types; COPY converts nothing, and takes a number as cents. So text is cast to the column's type, and a
value that the column would change is looked for before the rows are inserted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_COPIED = {
    "TEXT": ("text", "character varying"),
    "TIMESTAMP": ("timestamp without time zone",),
    "TIMESTAMPTZ": ("timestamp with time zone",),
    "TIME": ("time without time zone",),
}
"""The declared types that COPY fills as they are, where the name is not the same."""
_TEXTS = ("text", "character varying", "character", "name", '"char"')
_NUMBERS = ("smallint", "integer", "bigint", "real", "double precision", "numeric")
_TIMES = ("date", "timestamp without time zone", "timestamp with time zone")
_CLOCKS = ("time without time zone",)
_GROUPS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE PRECISION", "NUMERIC"), _NUMBERS),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMPTZ"), _TIMES),
    "TIME": _CLOCKS,
}
"""By type of the rows: the types that a value can be converted to and back."""
_ROUNDED = (*_NUMBERS, *_TIMES, *_CLOCKS, "time with time zone", "interval", "bit", "bit varying")


@dataclass(frozen=True)
class StoredColumn:
    """A column of a table, and the rows for it.

    Attributes:
        name: in SQL.
        given: the type of the rows, as in a definition.
        type: that of the column, below a domain and without its length or scale.
        declared: that of the column, as it is declared.
    """

    name: str
    given: str
    type: str
    declared: str

    @property
    def is_copied(self) -> bool:
        """Whether COPY stores the values as they are."""
        return self.declared in _COPIED.get(self.given, (self.given.lower(),))

    @property
    def value(self) -> str:
        """The expression that is inserted.

        Example:
            >>> StoredColumn('"mark"', "TEXT", "uuid", "uuid").value
            '"mark"::uuid'
        """
        return f"{self.name}::{self.type}" if self.given == "TEXT" and self.type not in _TEXTS else self.name

    @property
    def change(self) -> str:
        """The condition under which the column would hold another value; empty: it never does, or PostgreSQL refuses.

        Example:
            >>> StoredColumn('"price"', "NUMERIC(10, 4)", "numeric", "numeric(5,2)").change
            '("price"::numeric(5,2))::NUMERIC(10, 4) IS DISTINCT FROM "price"'
        """
        stored = f"({self.name}::{self.declared})"
        if self.is_copied:
            return ""
        if self.given == "TEXT":
            if self.type in _TEXTS:
                return f"{stored}::text IS DISTINCT FROM {self.name}"
            return f"{stored} IS DISTINCT FROM {self.value}" if self.type in _ROUNDED else ""
        group = _GROUPS.get(self.given.partition("(")[0], ())
        return f"{stored}::{self.given} IS DISTINCT FROM {self.name}" if self.type in group else ""
