"""State larger than memory: keys in use are objects in memory, all others are rows in RocksDB.

RocksDB is only a working copy: it is in a temporary folder and starts empty, and a checkpoint stores all state as any
other checkpoint does. So a job can switch between memory and disk from one run to the next.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import islice, repeat
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.durable.delayed_encoding import GONE
from workbench.elements import Int64s
from workbench.errors import JobError, PlanError
from workbench.raised import first_line_of
from workbench.state.key_columns import from_ints, is_text, plain, to_ints
from workbench.state.key_index import KeyIndex
from workbench.state.keyed_states import with_keys
from workbench.state.layout import State, StateLayout, StateTypeError
from workbench.state.packing import Packing
from workbench.state.rows_on_disk import ChangedKeys, RowsOnDisk

RESIDENT_MAX = 65_536
"""The number of keys with an object in memory at which all except those with timers are moved to disk."""
_AT_ONCE = 4_096  # rows that a snapshot reads at once


def load_packages() -> tuple[Any, Any]:
    """The modules of RocksDB and msgpack, which only this kind of state needs.

    Raises:
        PlanError: they are not installed.
    """
    try:
        return import_module("rocksdict"), import_module("msgpack")
    except ImportError as error:
        raise PlanError(
            f"state on disk needs the package {error.name}: run 'pip install \"streaming-workbench[rocksdb]\"', "
            "or keep the state in memory"
        ) from None


@contextmanager
def _written(folder: str) -> Iterator[None]:
    """Converts an error of RocksDB, which has no class of its own, or of the system.

    Raises:
        JobError: the folder cannot be written.
    """
    try:
        yield
    except Exception as error:
        raise JobError(
            f"state on disk cannot be written to {folder}: {first_line_of(error)}; free some space, or choose another "
            "folder with the environment variable TMPDIR"
        ) from error


class StatesOnDisk:
    """Objects for the keys used last, rows on disk for the others.

    Args:
        index: of the keys in memory, empty.
        layout: of the state.
        schema: of the key columns.

    Raises:
        PlanError: a package is not installed.
        JobError: here and in all methods: the disk is full, or refuses to write.
    """

    def __init__(self, index: KeyIndex, layout: StateLayout, schema: pa.Schema) -> None:
        rocks, msgpack = load_packages()
        self.index = index
        self.objects: list[State] = []
        self._layout = layout
        self._schema = schema
        self._pack, self._unpack = msgpack.packb, msgpack.unpackb
        self._packings = {field.name: Packing(field.type) for field in layout.schema()}
        with _written(tempfile.gettempdir()):
            self._folder = tempfile.mkdtemp(prefix="workbench-state-")
        try:
            with _written(self._folder):
                self._rows = rocks.Rdict(self._folder, rocks.Options(raw_mode=True))
        except JobError:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._new_writes: Callable[[], Any] = lambda: rocks.WriteBatch(raw_mode=True)
        self._resident_max = RESIDENT_MAX
        self._expired: deque[bytes] = deque()
        self._changed = ChangedKeys()

    def codes(self, batch: pa.RecordBatch) -> Int64s:
        codes = self.index.codes(batch)
        if len(self.index) > len(self.objects):
            keys = self._key_bytes(self.index.keys_table(np.arange(len(self.objects), len(self.index))))
            self.objects += self._read(keys)
        return codes

    def _read(self, keys: Sequence[bytes]) -> list[State]:
        """The state of these keys, fresh if there is none."""
        return self._states_of(self._rows[list(keys)])

    def _states_of(self, rows: Sequence[bytes | None]) -> list[State]:
        states = [self._layout.make() for _ in rows]
        found = [(at, row) for at, row in enumerate(rows) if row is not None]
        for (at, _), state in zip(found, self._objects(row for _, row in found), strict=True):
            states[at] = state
        return states

    def _objects(self, rows: Iterable[bytes]) -> list[State]:
        unpacked = [self._unpack(row, strict_map_key=False) for row in rows]
        columns = {
            name: packing.unpack([row[at] for row in unpacked])
            for at, (name, packing) in enumerate(self._packings.items())
        }
        return self._layout.objects(columns, len(unpacked))

    def settle(self, pinned: Callable[[], Int64s]) -> Int64s | None:
        if self._expired:
            self._delete_expired()
        if len(self.objects) <= self._resident_max:
            return None
        self._write_back()
        kept = np.unique(pinned())
        self._resident_max = max(RESIDENT_MAX, 2 * len(kept))
        mapping = self.index.retain(kept)
        self.objects = [self.objects[code] for code in kept.tolist()]
        return mapping

    def _write_back(self, *, compare: bool = False) -> None:
        """Write the objects in memory to their keys' rows.

        Args:
            compare: skip unchanged rows: each checkpoint would save them again.
        """
        for begin in range(0, len(self.objects), _AT_ONCE):
            states = self.objects[begin : begin + _AT_ONCE]
            keys = self._key_bytes(self.index.keys_table(np.arange(begin, begin + len(states))))
            try:
                rows = self._packed(self._layout.columns(states), len(states))
            except StateTypeError as error:
                error.at += begin
                raise
            wanted = [None if self._layout.is_fresh(state) else row for state, row in zip(states, rows, strict=True)]
            items = list(zip(keys, wanted, strict=True))
            if compare:
                held = self._rows[keys]
                items = [item for item, row in zip(items, held, strict=True) if item[1] != row]
            self._changed.note([key for key, _ in items])
            self._write(items)

    def _write(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write rows, and delete those that are None."""
        writes = self._new_writes()
        for key, row in items:
            if row is None:
                writes.delete(key)
            else:
                writes.put(key, row)
        with _written(self._folder):
            self._rows.write(writes)

    def _packed(self, columns: Sequence[pa.Array], count: int) -> Iterator[bytes]:
        """The row of each key."""
        packed = [packing.pack(column) for packing, column in zip(self._packings.values(), columns, strict=True)]
        return map(self._pack, zip(*packed, strict=True) if packed else repeat((), count))

    def _delete_expired(self) -> None:
        """Delete rows that a snapshot found expired, unless they were written again."""
        while self._expired:
            key = self._expired.popleft()
            row = self._rows.get(key)
            if row is not None and self._layout.is_fresh(self._objects([row])[0]):
                self._changed.note((key,))
                with _written(self._folder):
                    self._rows.delete(key)

    def find(self, batch: pa.RecordBatch) -> State | None:
        code = int(self.index.find(batch)[0])
        state = self._read(self._key_bytes(batch))[0] if code < 0 else self.objects[code]
        return None if self._layout.is_fresh(state) else state

    def keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        self._write_back()
        count = 0
        some: list[bytes] = []
        for keys, states in self._chunks(_walk(self._rows.iter())):
            live = [key for key, state in zip(keys, states, strict=True) if not self._layout.is_fresh(state)]
            count += len(live)
            some += live[: limit - len(some)]
        return count, self._key_batch(some).to_pylist()

    def table(self) -> RowsOnDisk:
        """A reader of the present rows, usable at any later time, which holds few of them in memory at once."""
        self._write_back(compare=True)
        rows = self._rows.iter()  # an iterator sees the rows at its creation, however often it is restarted
        moment, changes = self._changed.moment()
        schema = self._table_of([], []).schema
        return RowsOnDisk(
            moment, schema, lambda: self._batches(rows), lambda keys: self._changed_batches(rows, keys), changes
        )

    def _changed_batches(self, rows: Any, keys: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        """The rows of these keys, fresh if they have none."""
        for begin in range(0, len(keys), _AT_ONCE):
            chunk = keys[begin : begin + _AT_ONCE]
            states = self._states_of([_value(rows, key) for key in chunk])
            gone = pa.array([self._layout.is_fresh(state) for state in states])
            yield from self._table_of(chunk, states).append_column(GONE, gone).to_batches()

    def _batches(self, rows: Any) -> Iterator[pa.RecordBatch]:
        layout = self._layout
        for keys, states in self._chunks(_walk(rows)):
            live = [at for at, state in enumerate(states) if not layout.is_fresh(state)]
            if len(live) < len(states):
                self._expired.extend(set(keys).difference(keys[at] for at in live))
            yield from self._table_of([keys[at] for at in live], [states[at] for at in live]).to_batches()

    def _table_of(self, keys: Sequence[bytes], states: Sequence[State]) -> pa.Table:
        return with_keys(self._key_batch(keys), self._layout.columns(states), self._layout.schema().names)

    def _chunks(self, items: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[list[bytes], list[State]]]:
        rest = iter(items)
        while chunk := list(islice(rest, _AT_ONCE)):
            yield [key for key, _ in chunk], self._objects(row for _, row in chunk)

    def load(self, table: pa.Table, keys: pa.RecordBatch) -> None:
        """Writes the rows directly to disk, without creating objects."""
        fresh = dict(zip(self._packings, self._layout.columns([self._layout.make()]), strict=True))
        for begin in range(0, table.num_rows, _AT_ONCE):
            rows = table.slice(begin, _AT_ONCE)
            same = pa.array(np.zeros(rows.num_rows, np.int64))
            columns = [
                rows.column(name).combine_chunks() if name in rows.schema.names else value.take(same)
                for name, value in fresh.items()
            ]
            packed = self._packed(columns, rows.num_rows)
            gone = (
                rows.column(GONE.name).to_pylist() if GONE.name in rows.schema.names else repeat(False, rows.num_rows)
            )
            left = (None if is_gone else row for row, is_gone in zip(packed, gone, strict=True))
            self._write(zip(self._key_bytes(keys.slice(begin, _AT_ONCE)), left, strict=True))

    def close(self) -> None:
        self.objects.clear()
        with suppress(Exception):  # RocksDB writes once more, also to a full disk; nothing of it is needed any more
            self._rows.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # keys as bytes -----------------------------------------------------------------------------------------------

    def _key_bytes(self, keys: pa.RecordBatch) -> list[bytes]:
        """Equal keys as equal bytes: the numbers and strings of ``key_columns``."""
        columns = []
        for column in keys.columns:
            if is_text(column.type):
                columns.append(plain(column).to_pylist())
            elif column.null_count:
                known = iter(to_ints(column.drop_null()).tolist())
                columns.append([next(known) if valid else None for valid in column.is_valid().to_pylist()])
            else:
                columns.append(to_ints(column).tolist())
        return [self._pack(parts) for parts in zip(*columns, strict=True)]

    def _key_batch(self, keys: Sequence[bytes]) -> pa.RecordBatch:
        """The inverse of ``_key_bytes``."""
        parts = [self._unpack(key) for key in keys]
        arrays = []
        for at, field in enumerate(self._schema):
            values = [part[at] for part in parts]
            if is_text(field.type):
                kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
                column = pa.array(values, kind)
                arrays.append(column if kind == field.type else column.dictionary_encode().cast(field.type))
            else:
                null = np.array([value is None for value in values], np.bool_)
                numbers = np.array([value or 0 for value in values], np.int64)
                arrays.append(from_ints(numbers, field.type, null if null.any() else None))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _value(rows: Any, key: bytes) -> bytes | None:
    """The row of a key in one of RocksDB's iterators."""
    rows.seek(key)
    return bytes(rows.value()) if rows.valid() and rows.key() == key else None


def _walk(rows: Any) -> Iterator[tuple[bytes, bytes]]:
    """All rows of one of RocksDB's iterators, from the first."""
    rows.seek_to_first()
    while rows.valid():
        yield rows.key(), rows.value()
        rows.next()
