"""The format of a task's state: consecutive Arrow IPC streams, without code and without pickle.

The first stream is the index, with a row for each piece of state: ``operator`` (uid), ``name`` (of the piece), ``json``
(its value, null for a table) and ``parts`` (the files that hold a large table, null for a table in this file). The
tables follow, each as a separate stream, in the order of their rows. So any Arrow library can read the file. A column
that repeats an earlier one of its table is left out; the metadata ``workbench.repeats`` of the table's schema names
both.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import pyarrow as pa

from workbench.durable.delayed_encoding import FILES, ChangingRows
from workbench.errors import CorruptCheckpointError
from workbench.from_arrow import Unfolding, tables_in
from workbench.from_json import made, parsed
from workbench.operators.contract.base import Json, Snapshot
from workbench.raised import first_line_of

_LARGE = 65_536
_SHOWN = 200
_FORMAT = pa.ipc.IpcWriteOptions()  # independent of what the environment configures for other writers
_encode_json = json.JSONEncoder(sort_keys=True).encode
_EMPTY: dict[type, str] = {dict: "{}", list: "[]"}
_REPEATS = b"workbench.repeats"
_INDEX = pa.schema(
    [("operator", pa.string()), ("name", pa.string()), ("json", pa.large_string()), ("parts", pa.list_(pa.string()))]
)
_INDEX_BEGINS = _INDEX.serialize().to_pybytes()
_STREAM_ENDS = b"\xff\xff\xff\xff\x00\x00\x00\x00"


@dataclass(frozen=True, slots=True)
class Piece:
    """One named piece of an operator's state: a value as JSON, a table, or the files that hold a table.

    Attributes:
        operator: uid.
        name: of the piece; empty where the operator has no state.
        json: the value, unless it is a table.
        table: without columns that repeat others; or a reader of it.
        parts: paths of the files that hold the table, its base first, then its changes.
        changing: a source that can also read only the changed rows.
    """

    operator: str
    name: str
    json: str | None = None
    table: pa.Table | pa.RecordBatchReader | None = None
    parts: tuple[str, ...] | None = None
    changing: ChangingRows | None = None


@dataclass(frozen=True, slots=True)
class Encoded:
    """A task's state, encoded.

    Attributes:
        content: all pieces.
        files: files outside of these bytes that the state refers to: paths relative to the checkpoint directory. They
            are kept as long as a checkpoint lists them.
    """

    content: tuple[Piece, ...]
    files: tuple[str, ...] = ()

    @property
    def operators(self) -> tuple[str, ...]:
        """Uids of the operators that have state; state of the task itself has a name that begins with ``$``."""
        uids = (piece.operator for piece in self.content if piece.name and not piece.operator.startswith("$"))
        return tuple(dict.fromkeys(uids))

    def pieces(self) -> Iterator[Any]:
        """The bytes as consecutive buffers; the large ones are the state's own columns, which are not copied.

        They can be iterated once, because those of state that is larger than memory are produced on demand.
        """
        return written([piece.table for piece in self.content if piece.table is not None], _index(self.content))

    def join(self) -> bytes:
        """All bytes in one object."""
        return b"".join(self.pieces())

    def with_parts(self, parts_of: Callable[[Piece], tuple[str, ...] | None]) -> Encoded:
        """The same state, with the tables for which `parts_of` returns files replaced by these."""
        if all(piece.table is None for piece in self.content):
            return self

        def outside(piece: Piece) -> Piece:
            parts = None if piece.table is None else parts_of(piece)
            return piece if parts is None else replace(piece, table=None, parts=parts)

        return Encoded(tuple(map(outside, self.content)), self.files)


def _index(content: Sequence[Piece]) -> bytes:
    """A stream with a row for each piece; assembled here, because Arrow's writer takes twice as long."""
    operators, names, no_parts = _named(tuple((piece.operator, piece.name) for piece in content))
    parts = [piece.parts for piece in content]
    columns = [
        operators,
        names,
        pa.array([piece.json for piece in content], pa.large_string()),
        pa.array(parts, no_parts.type) if any(own is not None for own in parts) else no_parts,
    ]
    return b"".join((_INDEX_BEGINS, pa.RecordBatch.from_arrays(columns, schema=_INDEX).serialize(), _STREAM_ENDS))


@lru_cache(maxsize=512)
def _named(pieces: tuple[tuple[str, str], ...]) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The operator and name columns, and an all-null parts column; a task's pieces are always the same."""
    operators, names = pa.array([own for own, _ in pieces], pa.string()), pa.array([n for _, n in pieces], pa.string())
    return operators, names, pa.nulls(len(pieces), _INDEX.field("parts").type)


def _as_json(value: Json) -> str:
    """The value as JSON; numbers and empty values, the most frequent ones, skip the encoder's setup."""
    if type(value) is int:
        return str(value)
    return _encode_json(value) if value or type(value) not in _EMPTY else _EMPTY[type(value)]


def encode(states: dict[str, Snapshot]) -> Encoded:
    """Encode a task's state, by operator uid and name.

    DelayedEncoding values (callables) are called here; a reader that one returns is read when its bytes are iterated.
    """
    content: list[Piece] = []
    files: list[str] = []
    for uid, snapshot in states.items():
        for name, value in snapshot.items():
            piece = value() if callable(value) else value
            if name == FILES:
                files += cast(list[str], piece)
            elif isinstance(piece, pa.Table):
                content.append(Piece(uid, name, table=_without_repeats(piece)))
            elif isinstance(piece, pa.RecordBatchReader):
                content.append(
                    Piece(uid, name, table=piece, changing=value if isinstance(value, ChangingRows) else None)
                )
            else:
                content.append(Piece(uid, name, _as_json(piece)))
        if not snapshot:
            content.append(Piece(uid, "", "null"))
    return Encoded(tuple(content), tuple(files))


def written(tables: Sequence[pa.Table | pa.RecordBatchReader], begin: bytes = b"") -> Iterator[Any]:
    """Yield `begin`, then the bytes of each table as a stream; each batch is released before the next is read."""
    if len(begin) >= _LARGE or not tables:
        yield begin
        begin = b""
    small = pa.BufferOutputStream()
    small.write(begin)
    for table in tables:
        if isinstance(table, pa.Table) and table.get_total_buffer_size() < _LARGE:  # too small to avoid a copy
            writer = pa.RecordBatchStreamWriter(small, table.schema, options=_FORMAT)
            writer.write_table(table)
            writer.close()
            continue
        if small.tell():
            yield small.getvalue().to_pybytes()
            small = pa.BufferOutputStream()
        yield from _written_large(table)
    if small.tell():
        yield small.getvalue().to_pybytes()


def _written_large(table: pa.Table | pa.RecordBatchReader) -> Iterator[Any]:
    pieces = _Pieces()
    with pa.PythonFile(pieces, "w") as sink, pa.ipc.new_stream(sink, table.schema, options=_FORMAT) as writer:
        for batch in table.to_reader() if isinstance(table, pa.Table) else table:
            writer.write_batch(batch)
            yield from pieces.taken()
    yield from pieces.taken(last=True)


def _without_repeats(table: pa.Table) -> pa.Table:
    """The table without columns that share the memory of an earlier one; the metadata records which.

    Nested columns stay: their offset into their memory is not visible from outside.
    """
    first: dict[object, str] = {}
    repeats: dict[str, str] = {}
    if table.get_total_buffer_size() < _LARGE or len(set(table.column_names)) < table.num_columns:
        return table
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.storage_type if isinstance(column.type, pa.BaseExtensionType) else column.type
        if column.num_chunks == 1 and kind.num_fields == 0:
            chunk = column.chunk(0)
            places = tuple(None if each is None else (each.address, each.size) for each in chunk.buffers())
            earlier = first.setdefault((str(chunk.type), chunk.offset, places), name)
            if earlier != name and not pa.types.is_dictionary(chunk.type):
                repeats[name] = earlier
    if not repeats:
        return table
    content = {"columns": table.column_names, "repeats": repeats}
    metadata = {**(table.schema.metadata or {}), _REPEATS: json.dumps(content).encode()}
    return table.drop_columns(list(repeats)).replace_schema_metadata(metadata)


@dataclass(frozen=True, slots=True)
class _Repeats:
    columns: tuple[str, ...]
    repeats: Mapping[str, str]


def with_repeats(table: pa.Table, unfolding: Unfolding) -> pa.Table:
    """The table with the columns restored that were left out when it was written.

    Raises:
        ValueError: not such a table; a KeyError if a repeated column does not exist.
    """
    metadata = dict(table.schema.metadata or {})
    if _REPEATS not in metadata:
        return table
    content = made(_Repeats, parsed(metadata.pop(_REPEATS)), _REPEATS.decode())
    columns = [table.column(content.repeats.get(name, name)) for name in content.columns]
    unfolding.add(max(0, sum(column.nbytes for column in columns) - table.nbytes))
    return pa.table(columns, names=content.columns).replace_schema_metadata(metadata or None)


class _Pieces:
    """A file object for Arrow's writer that keeps large buffers as they are and joins small ones."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        self._small = bytearray()

    def write(self, data: Any) -> int:
        if len(data) < _LARGE:
            self._small += data
        else:
            self._flush_small()
            self._pieces.append(data)
        return len(data)

    def _flush_small(self) -> None:
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small.clear()

    def taken(self, *, last: bool = False) -> Iterator[Any]:
        """What was written since the last call, except small buffers that more will be added to."""
        if last:
            self._flush_small()
        pieces, self._pieces = self._pieces, []
        yield from pieces

    def flush(self) -> None:
        """Arrow calls it; there is nothing to do."""

    def close(self) -> None:
        """Arrow calls it; there is nothing to do."""


def decode(
    data: Any, name: str, parts: Callable[[Sequence[str], Unfolding], pa.Table] | None = None
) -> dict[str, Snapshot]:
    """Decode the states from such bytes (any buffer).

    Args:
        data: the bytes.
        name: of the file, for errors.
        parts: reads a table that is in separate files; None: there is none.

    Raises:
        CorruptCheckpointError: the bytes are not in this format; names the file.
    """
    try:
        unfolding = Unfolding(len(memoryview(data)))
        streams = tables_in(data, unfolding)
        index = next(streams)
        if not index.schema.equals(_INDEX):
            raise ValueError(f"its index has the columns {', '.join(index.schema.names)[:_SHOWN]!r}")
        states: dict[str, Snapshot] = {}
        for row in index.to_pylist():
            operator, piece = made(str, row["operator"], "an operator"), made(str, row["name"], "a name")
            snapshot = states.setdefault(operator, {})
            if not piece:
                continue
            if piece in snapshot:
                raise ValueError(f"operator {operator!r} has {piece!r} twice")
            if row["json"] is not None:
                snapshot[piece] = cast(Json, parsed(row["json"]))
            elif row["parts"] is None:
                snapshot[piece] = with_repeats(next(streams), unfolding)
            elif parts is not None:
                paths = made(tuple[str, ...], row["parts"], "its parts")
                snapshot[piece] = with_repeats(parts(paths, unfolding), unfolding)
            else:
                raise ValueError(f"{piece!r} is in separate files, which this checkpoint does not have")
        return states
    except StopIteration:
        raise CorruptCheckpointError(f"the checkpoint file {name} cannot be read: it lacks a table") from None
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError, struct.error) as error:
        raise CorruptCheckpointError(f"the checkpoint file {name} cannot be read: {first_line_of(error)}") from error
