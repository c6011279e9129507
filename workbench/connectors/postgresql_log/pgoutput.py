"""The messages of pgoutput, PostgreSQL's own plug-in for logical decoding, in version 1 of its protocol.

The bytes come from outside: lengths, names and kinds are checked, and anything else is a ValueError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

Cell = str | None | bytes
"""A value in PostgreSQL's notation; None: null; UNCHANGED."""
Cells = tuple[Cell, ...]
UNCHANGED: Final = b"unchanged"
"""A large value that an update has not touched: it is not in the log."""
_COLUMNS_MAX = 1664
_TEXT, _NULL, _SAME = ord("t"), ord("n"), ord("u")
_LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins that commits at `commit` in the log; `xid` has the lower 32 bits of its id."""

    commit: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The transaction is over; the next one that is read begins at `end` or later."""

    end: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, the id of its type, and the modifier of that."""

    name: str
    type: int
    modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """The columns of a table, as they are for the changes that follow.

    Attributes:
        oid: the id of the table.
        schema, name: of the table.
        identity: what old rows hold: ``d`` the primary key, ``i`` the columns of an index, ``f`` all, ``n`` nothing.
        columns: in the order of the values.
    """

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A row was inserted, updated or deleted.

    Attributes:
        oid: the id of the table.
        old: the old row, or only its key; None: a new row, or an update that has not changed the key.
        new: the new row; None: it was deleted.
        whole: whether `old` has all columns.
    """

    oid: int
    old: Cells | None
    new: Cells | None
    whole: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """All rows of some tables, by their ids, were removed."""

    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Change | Truncate


def message_of(data: bytes) -> Message | None:
    """What a message says; None: nothing that concerns rows.

    Raises:
        ValueError: not a message of this protocol.

    Example:
        >>> message_of(b"I" + bytes([0, 0, 0, 9]) + b"N" + bytes([0, 2]) + b"n" + b"t" + bytes([0, 0, 0, 1]) + b"7")
        Change(oid=9, old=None, new=(None, '7'), whole=False)
    """
    try:
        return _message(data)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ValueError(f"a message {data[:1]!r} of {len(data)} bytes is cut or damaged") from error


def _message(data: bytes) -> Message | None:
    match data[0:1]:
        case b"I":
            return _inserted(data)
        case b"U" | b"D":
            return _replaced(data)
        case b"B":
            commit, _, xid = struct.unpack(">QqI", data[1:])
            return Begin(commit, xid)
        case b"C":
            _, _, end, _ = struct.unpack(">BQQq", data[1:])
            return Commit(end)
        case b"R":
            return _relation(data)
        case b"T":
            count, _ = struct.unpack_from(">IB", data, 1)
            if len(data) != 6 + 4 * count:
                raise ValueError(f"a message says {count} tables in {len(data)} bytes")
            return Truncate(struct.unpack_from(f">{count}I", data, 6))
        case kind if kind in (b"O", b"Y", b"M"):
            return None
        case kind:
            raise ValueError(f"a message has the unknown kind {kind!r}")


def _inserted(data: bytes) -> Change:
    (oid,) = _LENGTH.unpack_from(data, 1)
    if data[5:6] != b"N":
        raise ValueError(f"an inserted row begins with {data[5:6]!r}")
    new, at = _cells(data, 6)
    _check_end(data, at)
    return Change(oid, None, new, False)


def _replaced(data: bytes) -> Change:
    (oid,) = _LENGTH.unpack_from(data, 1)
    at, old, new, whole = 5, None, None, False
    kind = data[at : at + 1]
    if kind in (b"K", b"O"):
        whole = kind == b"O"
        old, at = _cells(data, at + 1)
        kind = data[at : at + 1]
    if data[0:1] == b"U":
        if kind != b"N":
            raise ValueError(f"the new row of an update begins with {kind!r}")
        new, at = _cells(data, at + 1)
    elif old is None:
        raise ValueError(f"a deleted row begins with {kind!r}")
    _check_end(data, at)
    return Change(oid, old, new, whole)


def _cells(data: bytes, at: int) -> tuple[Cells, int]:
    """The values of a row, and where they end."""
    count = data[at] << 8 | data[at + 1]
    at += 2
    cells: list[Cell] = []
    add, length_at = cells.append, _LENGTH.unpack_from
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == _TEXT:
            begin = at + 4
            at = begin + length_at(data, at)[0]
            add(data[begin:at].decode())
        elif kind == _NULL:
            add(None)
        elif kind == _SAME:
            add(UNCHANGED)
        else:
            raise ValueError(f"a value has the unknown kind {bytes([kind])!r}")
    if at > len(data):
        raise ValueError(f"a row ends at byte {at} of a message of {len(data)} bytes")
    return tuple(cells), at


def _relation(data: bytes) -> Relation:
    (oid,) = _LENGTH.unpack_from(data, 1)
    schema, at = _name(data, 5)
    name, at = _name(data, at)
    identity, count = chr(data[at]), data[at + 1] << 8 | data[at + 2]
    if identity not in "dinf" or count > _COLUMNS_MAX:
        raise ValueError(f"a table has the identity {identity!r} and {count} columns")
    at += 3
    columns = []
    for _ in range(count):
        column, at = _name(data, at + 1)
        kind, modifier = struct.unpack_from(">Ii", data, at)
        columns.append(Column(column, kind, modifier))
        at += 8
    _check_end(data, at)
    return Relation(oid, schema, name, identity, tuple(columns))


def _name(data: bytes, at: int) -> tuple[str, int]:
    """A text that ends with a zero byte, and the place behind that."""
    if (end := data.find(b"\0", at)) < 0:
        raise ValueError("a name has no end")
    return data[at:end].decode(), end + 1


def _check_end(data: bytes, at: int) -> None:
    if at != len(data):
        raise ValueError(f"a message of {len(data)} bytes ends at byte {at}")
