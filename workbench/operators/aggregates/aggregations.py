"""Aggregate functions as data: their names, and the type of the result for each type of input.

Nulls are treated as in SQL: ``count()`` counts rows, every other function skips nulls, and without values the count is
0 and the other results are null. Integers aggregate as int64 (a sum beyond its range is an error, never a wrong
number), floats as float64. NaN is treated as in Spark: it is larger than any number, and a sum or mean with a NaN is
NaN.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa

from workbench.errors import ExpressionError, PlanError, unknown
from workbench.expressions import ColumnName, Expression, col, expr, lit, plain_name, refuse_function, when

Function = Literal["count", "sum", "min", "max", "mean"]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """A function over the values of a column.

    Attributes:
        function: the function.
        column: the column of the values; None only for a count of rows.
        computed: the expression computed into the column for this aggregate, if any.
        values: the expression of the values before `where`, if there is one.
    """

    function: Function
    column: str | None = None
    computed: Expression | None = field(default=None, compare=False)
    values: str | None = field(default=None, compare=False)

    def describe(self) -> str:
        """Such as ``mean(dep_delay)``."""
        return f"{self.function}({self.column or ''})"

    def where(self, condition: str | Expression) -> Aggregation:
        """The same over the records for which a condition is true.

        Source: SQL's ``FILTER (WHERE ...)``.

        Args:
            condition: an expression, as text or ``col(...)``.

        Raises:
            ExpressionError: text that is no expression.

        Example:
            >>> sum("price").where("price < 100").describe()
            'sum(CASE WHEN price < 100 THEN price END)'
        """
        value = self.computed if self.computed is not None else self.column
        column, computed = values_where(1 if value is None else value, condition)
        values = self.values if value is None else self.values or expression_of(value)
        return replace(self, column=column, computed=computed, values=values)

    def output_type(self, schema: pa.Schema) -> pa.DataType:
        """The type of the result.

        Raises:
            ExpressionError: the column does not exist.
            PlanError: the function is not defined for the column's type.
        """
        if self.column is None:
            return pa.int64()
        if self.column not in schema.names:
            raise ExpressionError(f"{self.describe()}: {unknown('column', self.column, schema.names)}")
        kind = schema.field(self.column).type
        if self.function == "count":
            return pa.int64()
        if pa.types.is_integer(kind):
            return pa.float64() if self.function == "mean" else pa.int64()
        if pa.types.is_floating(kind):
            return pa.float64()
        if is_time(kind) and self.function in ("min", "max"):
            return kind
        possible = "integers, floats" + (", dates and timestamps" if self.function in ("min", "max") else "")
        hint = "; cast it to int64 or float64 first" if pa.types.is_boolean(kind) or pa.types.is_decimal(kind) else ""
        raise PlanError(f"{self.describe()}: column {self.column!r} has type {kind}, but must contain {possible}{hint}")


def count(column: ColumnName | None = None) -> Aggregation:
    """The number of rows, or of non-null values of `column`.

    Source: SQL's ``COUNT``; as a rolling count, E2.

    Args:
        column: the column whose non-null values are counted: its name, or an expression; None: rows are counted.

    Example:
        >>> wb.count().describe()
        'count()'
    """
    return Aggregation("count") if column is None else Aggregation("count", *values_of(column))


def sum(column: ColumnName) -> Aggregation:
    """The sum: int64 of integers, float64 of floats; null without values.

    Source: SQL's ``SUM``; NaN as in Spark's.

    Args:
        column: of integers or floats: its name, or an expression such as ``col("n") * 2``.

    Example:
        >>> wb.sum("n").describe()
        'sum(n)'
    """
    return Aggregation("sum", *values_of(column))


def min(column: ColumnName) -> Aggregation:
    """The smallest number, date or timestamp; null without values.

    Source: SQL's ``MIN``; F1-5 shows the rolling minimum.

    Args:
        column: of integers or floats, dates or timestamps: its name, or an expression such as ``col("n") * 2``.

    Example:
        >>> wb.min("n").describe()
        'min(n)'
    """
    return Aggregation("min", *values_of(column))


def max(column: ColumnName) -> Aggregation:
    """The largest number, date or timestamp (NaN is larger than any number); null without values.

    Source: SQL's ``MAX``; NaN as in Spark's.

    Args:
        column: of integers or floats, dates or timestamps: its name, or an expression such as ``col("n") * 2``.

    Example:
        >>> wb.max("n").describe()
        'max(n)'
    """
    return Aggregation("max", *values_of(column))


def mean(column: ColumnName) -> Aggregation:
    """The arithmetic mean as float64, for integers from their exact sum; null without values.

    Source: SQL's ``AVG``; NaN as in Spark's.

    Args:
        column: of integers or floats: its name, or an expression such as ``col("n") * 2``.

    Example:
        >>> wb.mean("n").describe()
        'mean(n)'
    """
    return Aggregation("mean", *values_of(column))


def values_of(column: ColumnName) -> tuple[str, Expression | None]:
    """The column that an aggregate reads, and the expression to compute into it first, if any.

    Example:
        >>> from workbench.expressions import col
        >>> values_of("n"), values_of(col("n"))
        (('n', None), ('n', None))
        >>> values_of(col("n") * 2)
        ('n * 2', expr('n * 2'))
    """
    refuse_function(column, "an aggregate")
    if not isinstance(column, Expression):
        return column, None
    if (name := plain_name(column)) is not None:
        return name, None
    return column.sql, column


def values_where(value: ColumnName | int, condition: str | Expression) -> tuple[str, Expression]:
    """The column for the values of the records for which a condition is true, and the expression to compute into it.

    Example:
        >>> values_where(1, "a > 2")[0]
        'CASE WHEN a > 2 THEN 1 END'
    """
    chosen = expr(condition) if isinstance(condition, str) else condition
    given = lit(value) if isinstance(value, int) else col(value) if isinstance(value, str) else value
    made = when(chosen).then(given)
    return made.sql, made


def expression_of(values: ColumnName) -> str:
    """The text of an expression, also of a column, whatever its name.

    Example:
        >>> expression_of("a + b"), expression_of(col("a") + col("b"))
        ('`a + b`', 'a + b')
    """
    return (col(values) if isinstance(values, str) else values).sql


def is_time(kind: pa.DataType) -> bool:
    """Whether values of this type are instants or days."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))
