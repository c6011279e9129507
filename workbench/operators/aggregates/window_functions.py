"""Aggregates that need all records of a window at once: the median, the largest values, all values.

They are computed from a window's records when it fires; between firings the window keeps its records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.arguments import whole_number
from workbench.elements import Int64s
from workbench.errors import ExpressionError, PlanError, unknown
from workbench.expressions import ColumnName, Expression
from workbench.operators.aggregates.aggregations import Aggregation, expression_of, values_of, values_where
from workbench.state.key_columns import POSSIBLE, can_be_key, is_text

_NARROW = 2**15

Holistic = Literal["median", "top_k", "collect_list", "count_distinct", "min", "max"]


@dataclass(frozen=True, slots=True)
class HolisticAggregation:
    """A function over all values of a column in a window.

    Attributes:
        function: the function.
        column: the column of the values.
        k: the maximum number of values for ``top_k``; 0 for the others.
        computed: the expression computed into the column for this aggregate, if any.
        values: the expression of the values before `where`, if there is one.
    """

    function: Holistic
    column: str
    k: int = 0
    computed: Expression | None = field(default=None, compare=False)
    values: str | None = field(default=None, compare=False)

    def describe(self) -> str:
        """Such as ``median(dep_delay)``."""
        return f"{self.function}({self.column}{f', {self.k}' if self.k else ''})"

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        """The type of the result.

        Raises:
            ExpressionError: the column does not exist.
            PlanError: the function is not defined for the column's type.
        """
        if self.column not in schema.names:
            raise ExpressionError(f"{self.describe()}: {unknown('column', self.column, schema.names)}")
        kind = schema.field(self.column).type
        if self.function == "count_distinct":
            if can_be_key(kind):
                return pa.int64()
            raise PlanError(f"{self.describe()}: column {self.column!r} has type {kind}: {POSSIBLE}, and be counted")
        if self.function in ("min", "max"):
            return kind
        if self.function == "median":
            if pa.types.is_integer(kind) or pa.types.is_floating(kind):
                return pa.float64()
            raise PlanError(
                f"{self.describe()}: column {self.column!r} has type {kind}, but must be an integer or a float: cast it"
            )
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if self.function == "top_k" and pa.types.is_nested(kind):
            raise PlanError(f"{self.describe()}: column {self.column!r} has type {kind}, whose values have no order")
        return pa.list_(kind)

    def results(self, column: pa.Array, groups: Int64s, bounds: Int64s) -> pa.Array:
        """The value for each group.

        Args:
            column: shape (n,), the values, group after group.
            groups: shape (n,), the group of each row, ascending from 0.
            bounds: shape (groups + 1,): group g has the rows [bounds[g], bounds[g + 1]).
        """
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if self.function == "collect_list":
            return pa.ListArray.from_arrays(pa.array(bounds, pa.int32()), column)
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        column, groups = column.drop_null(), groups[valid]
        if self.function == "count_distinct":
            codes = column.dictionary_encode().indices.to_numpy().astype(np.int64)
            pairs = np.unique(groups * (len(column) + 1) + codes)
            return pa.array(np.bincount(pairs // (len(column) + 1), minlength=len(bounds) - 1))
        counts = np.bincount(groups, minlength=len(bounds) - 1)
        firsts = np.cumsum(counts) - counts
        order = np.argsort(_sortable(column))
        order = order[by_group(groups[order], len(bounds) - 1)]
        if self.function == "median":
            return _medians(column, order, firsts, counts)
        if self.function in ("min", "max"):
            places = np.minimum(firsts if self.function == "min" else firsts + counts - 1, max(len(order) - 1, 0))
            return column.take(pa.array(order[places] if len(order) else places, mask=counts == 0))
        taken = np.minimum(counts, self.k)
        ends = np.cumsum(taken)
        within = np.arange(int(taken.sum())) - np.repeat(ends - taken, taken)
        largest = order[np.repeat(firsts + counts - 1, taken) - within]
        offsets = pa.array(np.concatenate([[0], ends]), pa.int32())
        return pa.ListArray.from_arrays(offsets, column.take(pa.array(largest)))

    def where(self, condition: str | Expression) -> HolisticAggregation:
        """The same over the records for which a condition is true; see `Aggregation.where`."""
        column, computed = values_where(self.computed if self.computed is not None else self.column, condition)
        return replace(self, column=column, computed=computed, values=expression_of_values(self))


def by_group(groups: Int64s, count: int) -> Int64s:
    """The order of rows by group; within a group the order is kept."""
    narrow = groups.astype(np.int16) if count <= _NARROW else groups  # numpy sorts 16 bits in linear time
    return np.argsort(narrow, kind="stable")


def _sortable(column: pa.Array) -> npt.NDArray[Any]:
    """Shape (n,): numbers in the order of the values; NaN is larger than any number."""
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return numbers
    ranks = np.empty(len(column), np.int64)
    ranks[pc.sort_indices(column).to_numpy()] = np.arange(len(column))
    return ranks


def _medians(column: pa.Array, order: Int64s, firsts: Int64s, counts: Int64s) -> pa.Array:
    """The middle value of each group, or the mean of the two in the middle; null for a group without values."""
    empty = counts == 0
    if empty.all():
        return pa.nulls(len(counts), pa.float64())
    values = column.cast(pa.float64(), safe=False).to_numpy()[order]
    lower = np.minimum(firsts + (counts - 1) // 2, len(values) - 1)
    upper = np.minimum(firsts + counts // 2, len(values) - 1)
    middle = values[lower] / 2 + values[upper] / 2
    middle = np.where(lower == upper, values[lower], middle)
    return pa.array(middle, mask=empty)


AnyAggregation: TypeAlias = Aggregation | HolisticAggregation
"""Any aggregate that a window can compute."""


def aggregate_types(aggregates: Sequence[tuple[str, AnyAggregation]], schema: pa.Schema) -> list[pa.Field]:
    """The fields that the named aggregates add to a result."""
    return [pa.field(name, aggregation.output_type(schema)) for name, aggregation in aggregates]


def median(column: ColumnName) -> HolisticAggregation:
    """The median as float64; for an even number of values, the mean of the two in the middle; null without values.

    It needs all records of a window at once, so the window keeps them until it ends.

    Source: SQL's ``MEDIAN``; a holistic aggregate (Gray et al., 1997).

    Args:
        column: of integers or floats: its name, or an expression.

    Example:
        >>> median("dep_delay").describe()
        'median(dep_delay)'
    """
    name, computed = values_of(column)
    return HolisticAggregation("median", name, computed=computed)


def top_k(column: ColumnName, k: int) -> HolisticAggregation:
    """A list of the `k` largest values, the largest first; nulls are skipped, NaN is larger than any number.

    It needs all records of a window at once, so the window keeps them until it ends.

    Source: a holistic aggregate (Gray et al., 1997).

    Args:
        column: of values that have an order: its name, or an expression.
        k: the maximum number of values.

    Raises:
        SettingError: `k` is not a whole number above zero.

    Example:
        >>> top_k("dep_delay", 3).describe()
        'top_k(dep_delay, 3)'
    """
    name, computed = values_of(column)
    return HolisticAggregation("top_k", name, whole_number(k, f"the k of top_k({column!r}, k)"), computed)


def collect_list(column: ColumnName) -> HolisticAggregation:
    """A list of all values in the order of their arrival, nulls included.

    It needs all records of a window at once, so the window keeps them until it ends.

    Source: Spark's ``collect_list``.

    Args:
        column: of any type: its name, or an expression.

    Example:
        >>> collect_list("flight").describe()
        'collect_list(flight)'
    """
    name, computed = values_of(column)
    return HolisticAggregation("collect_list", name, computed=computed)


def count_distinct(column: ColumnName) -> HolisticAggregation:
    """The number of different values; nulls are skipped, and NaN is one value.

    A window keeps its records until it ends for it; a group without a window keeps the different values.

    Source: SQL's ``COUNT(DISTINCT ...)``; a holistic aggregate (Gray et al., 1997).

    Args:
        column: of a type that can be a key: its name, or an expression.

    Raises:
        PlanError: when it is used: a column whose values cannot be compared.

    Example:
        >>> count_distinct("user").describe()
        'count_distinct(user)'
    """
    name, computed = values_of(column)
    return HolisticAggregation("count_distinct", name, computed=computed)


def for_schema(aggregation: AnyAggregation, schema: pa.Schema) -> AnyAggregation:
    """The same aggregate in the form for the type of its column: the least and largest text need all values.

    Example:
        >>> from workbench.operators.aggregates.aggregations import max
        >>> type(for_schema(max("name"), pa.schema({"name": pa.string()}))).__name__
        'HolisticAggregation'
    """
    column = aggregation.column
    if not isinstance(aggregation, Aggregation) or aggregation.function not in ("min", "max") or column is None:
        return aggregation
    if column not in schema.names or not is_text(schema.field(column).type):
        return aggregation
    return HolisticAggregation(aggregation.function, column, 0, aggregation.computed, aggregation.values)


def expression_of_values(aggregation: AnyAggregation) -> str:
    """The expression of the values that an aggregate looks at, without the condition of `where`.

    Example:
        >>> expression_of_values(count_distinct("user").where("price > 5"))
        'user'
    """
    if aggregation.values is not None:
        return aggregation.values
    return expression_of(aggregation.computed if aggregation.computed is not None else aggregation.column or "")
