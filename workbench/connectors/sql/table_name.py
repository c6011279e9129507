"""Names of tables, with or without a schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from workbench.arguments import is_utf8
from workbench.errors import SettingError

_PART = re.compile(r'(?P<plain>[A-Za-z_][A-Za-z0-9_]*)|"(?P<quoted>(?:[^"]|"")+)"')
_BYTES_MAX = 63
"""Of a name; PostgreSQL cuts longer ones."""


@dataclass(frozen=True)
class TableName:
    """The name of a table.

    Attributes:
        name: of the table, with any characters.
        schema: its schema; empty: that of the connection.

    Example:
        >>> TableName.parsed('app."late orders"')
        TableName(name='late orders', schema='app')
        >>> print(TableName.parsed('app."late orders"').sql)
        "app"."late orders"
    """

    name: str
    schema: str = ""

    @classmethod
    def parsed(cls, text: str) -> TableName:
        """The name that a user has written: ``orders``, ``app.orders`` or ``"late orders"``.

        Raises:
            SettingError: it is no name.
        """
        parts, at = [], 0
        while (match := _PART.match(text, at)) is not None:
            parts.append(match["plain"] or match["quoted"].replace('""', '"'))
            at = match.end()
            if text[at : at + 1] != ".":
                break
            at += 1
        if match is None or at != len(text) or len(parts) > 2 or not all(map(_is_usable, parts)):
            raise SettingError(
                f"the table name {text!r} cannot be used: write letters, digits and '_', not starting with a digit, at "
                f"most {_BYTES_MAX}, with a schema as in app.orders; put other names in double quotes, as in "
                '"late orders"'
            )
        return cls(*reversed(parts))

    @property
    def sql(self) -> str:
        """The name in SQL, whatever characters it has."""
        return ".".join(quoted(part) for part in (self.schema, self.name) if part)

    def identity(self, usual: str) -> str:
        """The same for all names of one table.

        Args:
            usual: the schema of tables that are named without one.

        Example:
            >>> TableName("Orders", "main").identity("main"), TableName("a.b", "app").identity("main")
            ('Orders', 'app."a.b"')
        """
        parts = [] if self.schema in ("", usual) else [self.schema]
        return ".".join(part if _is_plain(part) else quoted(part) for part in (*parts, self.name))


def places_of(table: str) -> list[TableName]:
    """What the name of a table to read can mean: itself, or with a schema before its first dot, or in quotes.

    Example:
        >>> [place.sql for place in places_of("app.orders")]
        ['"app.orders"', '"app"."orders"']
    """
    schema, _, name = table.partition(".")
    places = [TableName(table), *([TableName(name, schema)] if schema and name else [])]
    with suppress(SettingError):
        places.append(TableName.parsed(table))
    return list(dict.fromkeys(places))


def quoted(name: str) -> str:
    """A name as an SQL identifier, whatever characters it has.

    Example:
        >>> print(quoted('the "late" ones'))
        "the ""late"" ones"
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_list(names: Sequence[str]) -> str:
    """Names as a list of SQL identifiers: ``"a", "b"``."""
    return ", ".join(map(quoted, names))


def _is_plain(part: str) -> bool:
    match = _PART.fullmatch(part)
    return match is not None and match["plain"] is not None


def _is_usable(part: str) -> bool:
    return is_utf8(part) and "\0" not in part and len(part.encode()) <= _BYTES_MAX
