"""Reads Arrow IPC streams from untrusted sources, and accepts only what is consistent.

A few bytes of Arrow IPC can claim any amount of memory: bodies that are compressed, columns that share their bytes,
names and metadata that share theirs, and types whose values take no bytes at all. So each message is checked before
Arrow reads it, the memory of its values is limited by the size of the file, and every offset, index and text is
checked, because the loops that read them later do not check them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_UNFOLDED_MIN = 1 << 28
"""Bytes that the values of any file may take in memory, however small the file."""
_UNFOLDED_PER_BYTE = 1_000
"""Bytes that values may take for each byte of a larger file: for example, a long text for an index of one byte."""
_POINTER = 8
_EXTENSION_MAX = 4_096
"""Maximum bytes of the description of an extension type, which Arrow parses recursively."""
_DEPTH_MAX = 64
_SCHEMA, _DICTIONARY, _RECORDS = "schema", "dictionary", "record batch"
_TIMESTAMP, _UNION = 10, 14  # in Arrow's Schema.fbs


class Unfolding:
    """How much memory the values of one file may still take.

    Args:
        size: of the file, in bytes.
        most: bytes that they may take; None: in proportion to the size, but not too few.
        told: the error when they take more; empty: one with both numbers.

    Example:
        >>> unfolding = Unfolding(1_000)
        >>> unfolding.add(1 << 20)
        >>> try:
        ...     unfolding.add(1 << 40)
        ... except ValueError as error:
        ...     print(error)
        its values take more than 268,435,456 bytes of memory, which is too much for a file of 1,000 bytes
    """

    __slots__ = ("_left", "_told")

    def __init__(self, size: int, most: int | None = None, told: str = "") -> None:
        self._left = most = max(_UNFOLDED_MIN, _UNFOLDED_PER_BYTE * size) if most is None else most
        self._told = told or (
            f"its values take more than {most:,} bytes of memory, which is too much for a file of {size:,} bytes"
        )

    def add(self, size: int) -> None:
        """Count further bytes, which the file itself does not contain.

        Raises:
            ValueError: that is too much.
        """
        self._left -= size
        if size < 0 or self._left < 0:
            raise ValueError(self._told)


def tables_in(data: Any, unfolding: Unfolding | None = None) -> Iterator[pa.Table]:
    """The tables of the consecutive Arrow streams in a buffer, without copying.

    Args:
        data: any buffer.
        unfolding: of the file; None: the buffer is all of it.

    Raises:
        ValueError: the buffer contains something else, or a stream that this program never writes. ``ArrowInvalid`` is
            such an error, too.

    Example:
        >>> table = pa.table({"n": [1, 2]})
        >>> sink = pa.BufferOutputStream()
        >>> with pa.ipc.new_stream(sink, table.schema) as writer:
        ...     writer.write_table(table)
        >>> [found.to_pydict() for found in tables_in(sink.getvalue())]
        [{'n': [1, 2]}]
    """
    source = pa.BufferReader(pa.py_buffer(data))
    unfolding = unfolding or Unfolding(source.size())
    while source.tell() < source.size():
        begin = source.tell()
        _check_messages(source)
        end = source.tell()
        source.seek(begin)
        table = pa.ipc.open_stream(source).read_all()
        source.seek(end)
        table.validate(full=True)
        unfolding.add(_POINTER * table.num_rows if not table.num_columns else 0)
        for column in table.columns:
            for chunk in column.chunks:
                unfolding.add(_unfolded(chunk))
        yield table


# messages ------------------------------------------------------------------------------------------------------------


def _check_messages(source: pa.BufferReader) -> None:
    """Check every message of the next stream, and that it ends; Arrow has verified that they are well-formed."""
    reader = pa.ipc.MessageReader.open_stream(source)
    while True:
        end = source.tell()
        try:
            message = reader.read_next_message()
        except StopIteration:
            if source.tell() == end:
                raise ValueError("it has no end of the stream: it was cut, or its writer was not closed") from None
            return
        metadata = message.metadata
        root = _Table(memoryview(metadata), _u32(metadata, 0))
        if root.get(4):
            raise ValueError("one of its messages has metadata")
        content = root.table(2)
        if message.type == _SCHEMA:
            _check_schema(content, metadata.size)
        elif message.type == _RECORDS:
            _check_batch(content, message.body)
        elif message.type == _DICTIONARY:
            if content.get(2) and content.data[content.get(2)]:
                raise ValueError("it has a dictionary in pieces")
            _check_batch(content.table(1), message.body)
        else:
            raise ValueError(f"it has a message of kind {message.type!r}")


def _check_batch(batch: _Table, body: pa.Buffer | None) -> None:
    if batch.get(3):
        raise ValueError("it is compressed")
    lengths = batch.structs(2, 2)[:, 1]
    if len(lengths) and (int(lengths.min()) < 0 or int(lengths.max()) > (body.size if body else 0)):
        raise ValueError("one of its buffers is longer than its message")
    if int(lengths.sum()) > (body.size if body else 0):
        raise ValueError("its columns share bytes")
    nodes = batch.structs(1, 2)
    if len(nodes) and int(nodes.min()) < 0:
        raise ValueError("one of its columns has a negative length")


def _check_schema(schema: _Table, size: int) -> None:
    """Check that a schema's names, types and metadata take no more memory than a multiple of their message's bytes."""
    left = size

    def taken(count: int) -> None:
        nonlocal left
        left -= count
        if left < 0:
            raise ValueError("parts of its schema share bytes")

    def pairs(table: _Table, slot: int) -> None:
        for pair in table.tables(slot, taken):
            key, value = pair.bytes(0), pair.bytes(1)
            taken(len(key) + len(value))
            if key == b"ARROW:extension:metadata" and len(value) > _EXTENSION_MAX:
                raise ValueError(f"the description of an extension type has {len(value):,} bytes")

    def fields(table: _Table, slot: int, depth: int) -> None:
        if depth > _DEPTH_MAX:
            raise ValueError(f"its columns are nested more than {_DEPTH_MAX} deep")
        for field in table.tables(slot, taken):
            kind = field.data[field.get(2)] if field.get(2) else 0
            taken(len(field.bytes(0)))
            if kind == _TIMESTAMP:
                taken(len(field.table(3).bytes(1)))
            if kind == _UNION:
                taken(4 * field.table(3).count(1))
            fields(field, 5, depth + 1)
            pairs(field, 6)

    taken(8 * schema.count(3))
    fields(schema, 1, 0)
    pairs(schema, 2)


class _Table:
    """A table of a flatbuffer; a missing field has position 0.

    Source: the internals of FlatBuffers, ``https://flatbuffers.dev/internals``.
    """

    __slots__ = ("at", "data")

    def __init__(self, data: memoryview, at: int) -> None:
        self.data = data
        self.at = at

    def get(self, slot: int) -> int:
        """The position of a field."""
        table = self.at - _i32(self.data, self.at)
        here = 4 + 2 * slot
        offset = _u16(self.data, table + here) if here < _u16(self.data, table) else 0
        return self.at + offset if offset else 0

    def table(self, slot: int) -> _Table:
        """The table in a field."""
        return _Table(self.data, self._follow(self._needed(slot)))

    def tables(self, slot: int, taken: Callable[[int], None]) -> Iterator[_Table]:
        """The tables of a vector; `taken` receives the number of bytes of each."""
        at = self.get(slot)
        if at:
            begin = self._follow(at)
            for number in range(_u32(self.data, begin)):
                found = _Table(self.data, self._follow(begin + 4 + 4 * number))
                taken(4 + _u16(self.data, found.at - _i32(self.data, found.at) + 2))
                yield found

    def bytes(self, slot: int) -> bytes:
        """A string."""
        at = self.get(slot)
        if not at:
            return b""
        begin = self._follow(at)
        return bytes(self.data[begin + 4 : begin + 4 + _u32(self.data, begin)])

    def count(self, slot: int) -> int:
        """The number of items of a vector."""
        at = self.get(slot)
        return _u32(self.data, self._follow(at)) if at else 0

    def structs(self, slot: int, numbers: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Shape (items, numbers): a vector of structs of int64."""
        count = self.count(slot)
        begin = self._follow(self.get(slot)) + 4 if count else 0
        return np.frombuffer(self.data, np.int64, numbers * count, begin).reshape(count, numbers)

    def _needed(self, slot: int) -> int:
        at = self.get(slot)
        if not at:
            raise ValueError("one of its messages is incomplete")
        return at

    def _follow(self, at: int) -> int:
        return at + _u32(self.data, at)


def _reader(code: str) -> Callable[[Any, int], int]:
    unpack = struct.Struct(f"<{code}").unpack_from

    def read(data: Any, at: int) -> int:
        if at < 0:
            raise ValueError("one of its messages points outside itself")
        found: int = unpack(data, at)[0]
        return found

    return read


_u16, _u32, _i32 = _reader("H"), _reader("I"), _reader("i")


# values --------------------------------------------------------------------------------------------------------------


def _unfolded(array: pa.Array) -> int:
    """Bytes that the values of a valid array take in memory one by one, beyond those in the file."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return _unfolded(array.storage)
    types = pa.types
    if types.is_null(kind):
        return _POINTER * len(array)
    if types.is_dictionary(kind):
        sizes = _sizes(array.dictionary)
        return _unfolded(array.dictionary) + _taken(sizes, array.indices)
    if types.is_run_end_encoded(kind):
        ends = array.run_ends.to_numpy().astype(np.int64)
        return _unfolded(array.values) + int((np.diff(ends, prepend=0) * (_sizes(array.values) + _POINTER)).sum())
    if kind in (pa.string_view(), pa.binary_view()):
        return int(_sizes(array).sum())
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        items = pc.sum(pc.list_value_length(array)).as_py() or 0
        return _unfolded(array.values) + int(items) * (largest_value(array.values) + _POINTER)
    if types.is_union(kind):
        parts = [array.field(at) for at in range(kind.num_fields)]
        largest = max(map(largest_value, parts), default=0)
        return sum(map(_unfolded, parts)) + len(array) * (largest + _POINTER)
    if types.is_struct(kind):
        return _POINTER * len(array) + sum(_unfolded(array.field(at)) for at in range(kind.num_fields))
    if types.is_fixed_size_list(kind):
        return _POINTER * len(array) + _unfolded(array.values)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _unfolded(array.values)
    return _POINTER * len(array) if types.is_fixed_size_binary(kind) and not kind.byte_width else 0


def largest_value(array: pa.Array) -> int:
    """An upper bound on the bytes of its largest value.

    Example:
        >>> largest_value(pa.array(["a", "abc", None]))
        3
    """
    return int(_sizes(array).max(initial=0))


def _sizes(array: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Shape (len(array),): the bytes of each value; for nested types, those of all values."""
    kind = array.type
    if kind in (pa.string_view(), pa.binary_view()):
        views = np.frombuffer(array.buffers()[1] or b"", np.int32).reshape(-1, 4)
        return np.abs(views[array.offset : array.offset + len(array), 0].astype(np.int64))
    if kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy()
        return np.asarray(lengths, np.int64)
    width = -(-int(kind.bit_width) // 8) if pa.types.is_primitive(kind) else int(array.nbytes) + _unfolded(array)
    return np.full(len(array), width, np.int64)


def _taken(sizes: np.ndarray[Any, np.dtype[np.int64]], indices: pa.Array) -> int:
    """The sum of the sizes of all values at the indices."""
    counts = np.bincount(indices.drop_null().to_numpy().astype(np.int64), minlength=len(sizes))
    return int(np.dot(counts[: len(sizes)], sizes))
