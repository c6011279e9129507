"""The common part of all joins: the columns compared, the output columns, and the assembly of an output batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from workbench.arguments import as_given
from workbench.compiled import order_by_code, warm_up
from workbench.elements import Int64s, Mask
from workbench.errors import PlanError, SettingError, unknown
from workbench.expressions import ColumnName, Expression, column_names
from workbench.state.key_columns import check_keys, is_text

How = Literal["inner", "left", "outer"]
"""Which records without a partner are emitted, with nulls in the other side's columns: none, the left ones, all."""

On: TypeAlias = ColumnName | Sequence[ColumnName] | Mapping[str, ColumnName] | Mapping[Expression, ColumnName]
"""The columns that must be equal: ``"origin"``, ``["origin", "day"]`` or ``{"left name": "right name"}``."""


def parse_on(on: On) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The key columns of both sides.

    Raises:
        PlanError: no column.

    Example:
        >>> parse_on({"origin": "airport"})
        (('origin',), ('airport',))
    """
    if isinstance(on, Mapping):
        left, right = column_names(tuple(on), "on"), column_names(tuple(on.values()), "on")
    elif isinstance(on, str | Expression | Sequence):
        left = right = column_names(on, "on")
    else:
        raise PlanError(f"on is {as_given(on)}: name the columns that must be equal, for example on='origin'")
    if not left:
        raise PlanError("join needs at least one key column: write for example on='origin'")
    return left, right


@dataclass(frozen=True)
class JoinColumns:
    """The columns of a join: those of the left side, then those of the right side without its keys.

    A key column appears once, under its left name. A null key equals nothing, as in SQL. A right column gets `suffix`
    if its name is taken.

    Attributes:
        left_keys, right_keys: the columns that must be equal, pair by pair.
        how: which records without a partner are emitted.
        suffix: for right columns.

    Raises:
        SettingError: an unknown `how`.

    Example:
        >>> delays = pa.schema({"origin": pa.string(), "delay": pa.int64()})
        >>> weather = pa.schema({"airport": pa.string(), "delay": pa.int64()})
        >>> JoinColumns(("origin",), ("airport",)).output_schema(delays, weather).names
        ['origin', 'delay', 'delay_right']
    """

    left_keys: tuple[str, ...]
    right_keys: tuple[str, ...]
    how: How = "inner"
    suffix: str = "_right"

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise SettingError(unknown("how", self.how, get_args(How)))

    @property
    def keeps_left(self) -> bool:
        """Whether left records without a partner are emitted."""
        return self.how != "inner"

    @property
    def keeps_right(self) -> bool:
        """Whether right records without a partner are emitted."""
        return self.how == "outer"

    def describe(self) -> str:
        """Such as ``left join on origin = airport``."""
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        return f"{self.how} join on {', '.join(a if a == b else f'{a} = {b}' for a, b in pairs)}"

    def right_name(self, name: str, left: pa.Schema) -> str:
        """The output's name of a column of the right side that is no key."""
        return name + self.suffix if name in left.names else name

    def output_schema(self, left: pa.Schema, right: pa.Schema) -> pa.Schema:
        """The output columns.

        Raises:
            PlanError: a key does not exist, cannot be a key or is not comparable with its partner, or the name of a
            right column is taken even with the suffix.
        """
        keys = common_types(self.left_keys, self.right_keys, left, right)
        fields = []
        for field in left:
            kind = keys.get(field.name, field.type) if self.keeps_right else field.type
            fields.append(pa.field(field.name, kind, field.nullable or self.keeps_right, field.metadata))
        taken = set(left.names)
        for field in right:
            if field.name in self.right_keys:
                continue
            name = self.right_name(field.name, left)
            if name in taken:
                raise PlanError(
                    f"both sides of the join have a column {field.name!r}, and {name!r} is taken as well: choose "
                    "another suffix, or rename a column with select"
                )
            taken.add(name)
            fields.append(pa.field(name, field.type, field.nullable or self.keeps_left, field.metadata))
        return pa.schema(fields)


def common_types(
    left_keys: Sequence[str], right_keys: Sequence[str], left: pa.Schema, right: pa.Schema
) -> dict[str, pa.DataType]:
    """By left key: the common type of its values and its partner's.

    Raises:
        PlanError: a key does not exist, cannot be a key or is not comparable with its partner.
    """
    _check_side("left", left_keys, left)
    _check_side("right", right_keys, right)
    pairs = zip(left_keys, right_keys, strict=True)
    return {a: _common_type(left.field(a), right.field(b)) for a, b in pairs}


def _check_side(side: str, keys: Sequence[str], schema: pa.Schema) -> None:
    try:
        check_keys(keys, schema)
    except PlanError as error:
        raise PlanError(f"on the {side} side: {error.message}") from None


def _common_type(left: pa.Field, right: pa.Field) -> pa.DataType:
    """The common type of both key columns; they are compared by value, whatever their width."""
    a, b = left.type, right.type
    if a == b:
        return a
    if is_text(a) and is_text(b):
        return pa.large_string() if pa.large_string() in (a, b) else pa.string()
    if pa.types.is_floating(a) and pa.types.is_floating(b):
        return pa.float64()
    if all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in (a, b)):
        return pa.int64()
    raise PlanError(
        f"{left.name!r} ({a}) on the left side cannot equal {right.name!r} ({b}) on the right: cast one of them with "
        "with_columns"
    )


class JoinRows:
    """Assembles output batches from rows of both sides.

    Args:
        columns: of the join.
        left, right: schemas of the inputs.
    """

    def __init__(self, columns: JoinColumns, left: pa.Schema, right: pa.Schema) -> None:
        warm_up(order_by_code)
        self.schema = columns.output_schema(left, right)
        self._left_width = len(left)
        self._partner = {
            left.get_field_index(a): right.get_field_index(b)
            for a, b in zip(columns.left_keys, columns.right_keys, strict=True)
        }
        self._rest = [at for at, field in enumerate(right) if field.name not in columns.right_keys]

    def assemble(self, left: pa.RecordBatch | None, right: pa.RecordBatch | None) -> pa.RecordBatch:
        """Row i of one side next to row i of the other; nulls for a side that is None."""
        if left is None:
            assert right is not None
            arrays = [
                right.column(self._partner[at]) if at in self._partner else pa.nulls(len(right), field.type)
                for at, field in enumerate(self.schema)
                if at < self._left_width
            ]
        else:
            arrays = list(left.columns)
        for at, (array, field) in enumerate(zip(arrays, self.schema, strict=False)):
            if array.type != field.type:
                arrays[at] = array.cast(field.type)
        if right is None:
            arrays += [pa.nulls(len(arrays[0]), field.type) for field in list(self.schema)[self._left_width :]]
        else:
            arrays += [right.column(at) for at in self._rest]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def key_batch(batch: pa.RecordBatch, keys: Sequence[str], names: Sequence[str]) -> pa.RecordBatch:
    """The key columns of a batch under other names, so that one `KeyIndex` encodes the keys of both sides."""
    return pa.RecordBatch.from_arrays([batch.column(key) for key in keys], names=list(names))


def without_null_keys(batch: pa.RecordBatch, keys: Sequence[str]) -> Mask | None:
    """Shape (n,): the rows without nulls in their keys; None if all rows are."""
    complete = None
    for key in keys:
        column = batch.column(key)
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            complete = valid if complete is None else complete & valid
    return complete


def pairs_of(firsts: Int64s, counts: Int64s) -> tuple[Int64s, Int64s]:
    """Pair row i with each of [firsts[i], firsts[i] + counts[i]); returns the rows of both sides, pair by pair.

    Example:
        >>> pairs_of(np.array([4, 0]), np.array([2, 1]))
        (array([0, 0, 1]), array([4, 5, 0]))
    """
    ends = np.cumsum(counts)
    rows = np.repeat(np.arange(len(counts)), counts)
    others = np.arange(len(rows)) + np.repeat(firsts - ends + counts, counts)
    return rows, others
