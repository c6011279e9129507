"""One record for each element of a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.elements import Int64s, Records
from workbench.errors import PlanError
from workbench.expressions import Compiled, Expression, compile_expression
from workbench.expressions.tree.types import type_name
from workbench.operators.contract.base import Operator, Output
from workbench.operators.contract.narrowing import kept_positions, kept_schema
from workbench.origin import Origin

_INT = pa.int32()


@dataclass(frozen=True, eq=False)
class Explode:
    """Emits a record for each element of a list: its columns, and the element; event times stay with their records.

    The elements of a list of structs become a column for each field, and those of a map two, for key and value.

    Source: Flink's ``UNNEST`` and Spark's ``explode``.

    Args:
        elements: a list or a map.
        names: of the columns of an element, none of which the input has.
        position: the name of a column for the place of the element in its list; None: there is none.
        first: the place of the first element.
        outer: whether a record without elements is kept, with nulls.
        origin: the user's line, for errors.
        kept: the columns that are read downstream, None for all; the planner leaves the others out.

    Example:
        >>> Explode(col("tags"), ("tag",)).output_schema([pa.schema({"tags": pa.list_(pa.int64())})]).names
        ['tags', 'tag']
    """

    elements: Expression
    names: tuple[str, ...]
    position: str | None = None
    first: int = 1
    outer: bool = False
    origin: Origin | None = field(default=None, repr=False)
    kept: tuple[str, ...] | None = field(default=None, repr=False)
    kind: ClassVar[str] = "explode"
    takes_changes: ClassVar[bool] = True

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return kept_schema(self._whole(inputs[0]), self.kept)

    def describe(self) -> str:
        return f"{self.elements.sql} AS {', '.join(self.names)}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        whole = self._whole(inputs[0])
        return ExplodeLogic(self, compile_expression(self.elements, inputs[0], self.origin), whole)

    def narrowed(self, used: tuple[str, ...]) -> Explode:
        """The same with only these output columns."""
        return replace(self, kept=used)

    def columns_needed(self, used: tuple[str, ...]) -> frozenset[str]:
        """The columns that it reads to emit these columns."""
        made = {*self.names, self.position}
        return frozenset((*(name for name in used if name not in made), *self.elements.columns))

    def _whole(self, schema: pa.Schema) -> pa.Schema:
        made = element_fields(compile_expression(self.elements, schema, self.origin).type)
        if not made:
            kind = type_name(compile_expression(self.elements, schema, self.origin).type)
            raise PlanError(f"{self.elements.sql} is {kind}, not a list: name a column of lists", origin=self.origin)
        if len(made) != len(self.names):
            raise PlanError(
                f"an element of {self.elements.sql} has {len(made)} columns, and {len(self.names)} names are given",
                origin=self.origin,
            )
        added = [pa.field(name, one.type) for name, one in zip(self.names, made, strict=True)]
        added += [] if self.position is None else [pa.field(self.position, _INT)]
        return pa.schema([*schema, *added])


class ExplodeLogic(Operator):
    """Repeats the rows of a batch by the lengths of their lists."""

    def __init__(self, spec: Explode, elements: Compiled, whole: pa.Schema) -> None:
        self._spec, self._elements = spec, elements
        self._positions = kept_positions(whole, spec.kept)
        self._schema = pa.schema([whole.field(at) for at in self._positions])
        self._parents: Int64s = np.empty(0, np.int64)

    def process(self, records: Records, port: int, out: Output) -> None:
        batch, spec = records.batch, self._spec
        lists = _plain_list(self._elements(batch))
        lengths = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        counts = np.maximum(lengths, 1) if spec.outer else lengths
        self._parents = parents = np.repeat(np.arange(len(batch), dtype=np.int64), counts)
        places = np.arange(len(parents), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        absent = places >= lengths[parents]
        rows = np.repeat(np.cumsum(lengths) - lengths, counts) + places
        found = lists.flatten().take(pa.array(rows, mask=absent))
        made = [found.field(at) for at in range(found.type.num_fields)] if pa.types.is_struct(found.type) else [found]
        if pa.types.is_struct(found.type):
            made = [pc.if_else(found.is_valid(), one, pa.scalar(None, one.type)) for one in made]
        if spec.position is not None:
            made.append(pa.array(places + spec.first, _INT, mask=absent))
        rows_of = pa.array(parents)
        given = batch.num_columns
        columns = [batch.column(at).take(rows_of) if at < given else made[at - given] for at in self._positions]
        times = None if records.timestamps is None else records.timestamps[parents]
        if len(parents):
            out.emit(Records(pa.RecordBatch.from_arrays(columns, schema=self._schema), times))

    def parent_of(self, row: int) -> int | None:
        return int(self._parents[row]) if row < len(self._parents) else None


def element_fields(kind: pa.DataType) -> list[pa.Field]:
    """The columns of an element of a list or a map; none for other types.

    Example:
        >>> element_fields(pa.map_(pa.string(), pa.int64()))[1]
        pyarrow.Field<value: int64>
    """
    if pa.types.is_map(kind):
        return [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return []
    element = kind.value_type
    return list(element) if pa.types.is_struct(element) else [pa.field("element", element)]


def _plain_list(lists: pa.Array) -> pa.Array:
    """A map as a list of structs, and any other list as it is."""
    if not pa.types.is_map(lists.type):
        return lists
    entry = pa.struct([pa.field("key", lists.type.key_type, nullable=False), pa.field("value", lists.type.item_type)])
    return lists.cast(pa.list_(pa.field("entries", entry, nullable=False)))
