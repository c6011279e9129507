"""Dense codes for the keys of batches, so that keyed state can be arrays indexed by code."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.state.key_columns import check_keys, from_ints, is_text, plain, to_ints
from workbench.state.key_table import KeyTable

_NO_CODE = -1
_LOOKED_UP = 16  # texts are copied in the time in which one is looked up
_FEW = 64  # texts that are looked up one by one in the time that a table of distinct ones takes


class KeyIndex:
    """Maps each distinct key, of one or several columns, to a code: 0, 1, ... in order of first appearance.

    Without key columns every row has the one code 0.

    Args:
        keys: names of the key columns.
        schema: of the batches.

    Raises:
        PlanError: a column that cannot be a key.

    Example:
        >>> schema = pa.schema({"origin": pa.string(), "delay": pa.int64()})
        >>> index = KeyIndex(["origin"], schema)
        >>> index.codes(pa.record_batch([["JFK", "LGA", "JFK"], [5, 7, 9]], schema=schema))
        array([0, 1, 0])
        >>> index.keys_table()["origin"].to_pylist()
        ['JFK', 'LGA']
    """

    __slots__ = ("_columns", "_pairs", "_schema", "_seen")

    def __init__(self, keys: Sequence[str], schema: pa.Schema) -> None:
        check_keys(keys, schema)
        self._schema = pa.schema([schema.field(name) for name in keys])
        self._clear()

    def _clear(self) -> None:
        self._columns: list[_TextColumn | _NumberColumn] = [
            _TextColumn() if is_text(field.type) else _NumberColumn(field.type) for field in self._schema
        ]
        self._pairs = [KeyTable() for _ in self._columns[1:]]
        self._seen = False

    def kind_of(self, key: str) -> pa.DataType:
        """The type of a key column."""
        kind: pa.DataType = self._schema.field(key).type
        return kind

    def __len__(self) -> int:
        if self._pairs:
            return len(self._pairs[-1])
        return len(self._columns[0]) if self._columns else int(self._seen)

    def codes(self, batch: pa.RecordBatch) -> Int64s:
        """Shape (n,): the code of each row's key; new keys are added."""
        if not self._columns:
            self._seen = self._seen or batch.num_rows > 0
            return np.zeros(batch.num_rows, np.int64)
        names = self._schema.names
        codes = self._columns[0].codes(batch.column(names[0]))
        for name, column, pairs in zip(names[1:], self._columns[1:], self._pairs, strict=True):
            codes = pairs.codes(codes << 32 | column.codes(batch.column(name)))
        return codes

    def find(self, batch: pa.RecordBatch) -> Int64s:
        """Shape (n,): the code of each row's key, -1 if it has none; nothing is added."""
        if not self._columns:
            return np.full(batch.num_rows, 0 if self._seen else _NO_CODE, np.int64)
        names = self._schema.names
        codes = self._columns[0].find(batch.column(names[0]))
        for name, column, pairs in zip(names[1:], self._columns[1:], self._pairs, strict=True):
            others = column.find(batch.column(name))
            known = (codes >= 0) & (others >= 0)
            codes = np.where(known, pairs.find(np.where(known, codes << 32 | others, 0)), _NO_CODE)
        return codes

    def plain_numbers(self, keys: Sequence[pa.Array]) -> tuple[KeyTable, Int64s] | None:
        """The table and the numbers of a batch's key columns if a key is one number and no null was seen; otherwise
        None."""
        if len(keys) != 1 or keys[0].null_count:
            return None
        column = self._columns[0]
        table = column.plain_table() if isinstance(column, _NumberColumn) else None
        return None if table is None else (table, to_ints(keys[0]))

    def keys_table(self, codes: Int64s | None = None) -> pa.RecordBatch:
        """The key columns of these codes (by default all), in their own types."""
        if codes is None and len(self._columns) == 1 and isinstance(self._columns[0], _NumberColumn):
            column = self._columns[0].all_values(self._schema.field(0).type)
            return pa.RecordBatch.from_arrays([column], schema=self._schema)
        if codes is None:
            codes = np.arange(len(self))
        if not self._columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * len(codes), pa.struct([])))
        parts: list[Int64s] = []
        for pairs in reversed(self._pairs):
            both = pairs.keys()[codes]
            parts.append(both & 0xFFFFFFFF)
            codes = both >> 32
        parts.append(codes)
        arrays = [
            column.values(part, field.type)
            for column, part, field in zip(self._columns, reversed(parts), self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def retain(self, codes: Int64s) -> Int64s:
        """Forget all other keys; ``codes[i]`` becomes code i.

        Args:
            codes: distinct codes to keep.

        Returns:
            Shape (former length,): the new code of each old one, -1 if it was forgotten.
        """
        mapping = np.full(len(self), _NO_CODE, np.int64)
        kept = self.keys_table(codes)
        self._clear()
        mapping[codes] = self.codes(kept)
        return mapping


class _NumberColumn:
    """Codes for the values of one column that ``to_ints`` can convert to numbers."""

    __slots__ = ("_kind", "_null", "_table")

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._table = KeyTable()
        self._null = _NO_CODE  # the code of null: a gap in the table's codes

    def __len__(self) -> int:
        return len(self._table) + (self._null != _NO_CODE)

    def plain_table(self) -> KeyTable | None:
        """The table, if its codes are those of this column: no null was seen."""
        return self._table if self._null == _NO_CODE else None

    def codes(self, column: pa.Array) -> Int64s:
        if column.null_count == 0:
            return self._shift(self._table.codes(to_ints(column)))
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        numbers = to_ints(column.drop_null())
        codes = np.empty(len(column), np.int64)
        if self._null == _NO_CODE:  # rows before the first null precede it in the order of appearance
            before = int(np.argmin(valid))
            self._table.codes(numbers[:before])
            self._null = len(self._table)
        codes[~valid] = self._null
        codes[valid] = self._shift(self._table.codes(numbers))
        return codes

    def find(self, column: pa.Array) -> Int64s:
        if column.null_count == 0:
            return self._shift(self._table.find(to_ints(column)))
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        codes = np.full(len(column), self._null, np.int64)
        codes[valid] = self._shift(self._table.find(to_ints(column.drop_null())))
        return codes

    def _shift(self, codes: Int64s) -> Int64s:
        return codes if self._null == _NO_CODE else codes + (codes >= self._null)

    def all_values(self, kind: pa.DataType) -> pa.Array:
        """The values of all codes; without a copy where possible, because the value of a code never changes."""
        if self._null == _NO_CODE:
            return from_ints(self._table.keys(), kind)
        return self.values(np.arange(len(self)), kind)

    def values(self, codes: Int64s, kind: pa.DataType) -> pa.Array:
        if self._null == _NO_CODE:
            return from_ints(self._table.keys()[codes], kind)
        null = codes == self._null
        numbers = np.zeros(len(codes), np.int64)
        known = codes[~null]
        numbers[~null] = self._table.keys()[known - (known > self._null)]
        return from_ints(numbers, kind, null)


class _TextColumn:
    """Codes for the values of one column of strings; only the distinct values of a batch are looked up."""

    __slots__ = ("_code_of", "_packed", "_values")

    def __init__(self) -> None:
        self._code_of: dict[str | None, int] = {}
        self._values: list[str | None] = []
        self._packed = pa.array([], pa.large_string())  # the first of the values

    def __len__(self) -> int:
        return len(self._values)

    def codes(self, column: pa.Array) -> Int64s:
        if len(column) <= _FEW:
            return self._codes_of(column.to_pylist())
        encoded = plain(column).dictionary_encode(null_encoding="encode")
        codes: Int64s = self._codes_of(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()]
        return codes

    def _codes_of(self, values: list[str | None]) -> Int64s:
        code_of = self._code_of
        found = np.empty(len(values), np.int64)
        for at, value in enumerate(values):
            code = code_of.get(value)
            if code is None:
                code = code_of[value] = len(code_of)
                self._values.append(value)
            found[at] = code
        return found

    def find(self, column: pa.Array) -> Int64s:
        encoded = plain(column).dictionary_encode(null_encoding="encode")
        code_of = self._code_of
        found = np.array([code_of.get(value, _NO_CODE) for value in encoded.dictionary.to_pylist()], np.int64)
        codes: Int64s = found[encoded.indices.to_numpy()]
        return codes

    def values(self, codes: Int64s, kind: pa.DataType) -> pa.Array:
        text = kind.value_type if pa.types.is_dictionary(kind) else kind
        values = self._texts(codes)
        if values.type != text:
            values = values.cast(text)
        return values.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else values

    def _texts(self, codes: Int64s) -> pa.Array:
        """The values of codes; they are packed again when new ones are as often asked for as there are others."""
        held = len(self._packed)
        if len(codes) * _LOOKED_UP >= held and len(self._values) > held:
            self._packed = pa.concat_arrays([self._packed, pa.array(self._values[held:], pa.large_string())])
        if len(self._packed) < len(self._values) and int(codes.max(initial=-1)) >= held:
            return pa.array([self._values[code] for code in codes.tolist()], pa.large_string())
        return self._packed.take(pa.array(codes))
