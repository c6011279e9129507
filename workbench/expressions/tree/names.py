"""Columns where only a name is accepted: as text, or as `col`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from sqlglot import exp

from workbench.arguments import as_given
from workbench.errors import ExpressionError
from workbench.expressions.tree.expression import Expression
from workbench.origin import caller

ColumnName: TypeAlias = str | Expression
"""``"origin"`` or ``col("origin")``."""


def column_name(column: ColumnName, what: str) -> str:
    """The name of a column.

    Args:
        column: as given by the user; anything but an expression is returned unchanged, for the caller to check.
        what: the method or argument that takes the name, for errors.

    Raises:
        ExpressionError: the expression computes something, or it is a function.

    Example:
        >>> from workbench.expressions import col
        >>> column_name(col("origin"), "key_by"), column_name("origin", "key_by")
        ('origin', 'origin')
    """
    refuse_function(column, what)
    if not isinstance(column, Expression):
        return column
    if (name := plain_name(column)) is None:
        raise ExpressionError(
            f"{what} takes columns, and {column.sql!r} computes one: give it a name first, as in "
            f"with_columns(computed={column.sql!r})",
            origin=caller(),
        )
    return name


def refuse_function(column: object, what: str) -> None:
    """Reject a Python function where a column is expected.

    Args:
        column: as given by the user.
        what: takes the column, for the error.

    Raises:
        ExpressionError: says what to write instead.
    """
    if callable(column):
        raise ExpressionError(
            f"{what} got a function, and it takes columns: name one, such as 'origin', or compute it first, as in "
            "with_columns(computed='upper(origin)')",
            origin=caller(),
        )


def plain_name(expression: Expression) -> str | None:
    """The name of the column if an expression is one; None if it computes something or has an alias.

    Example:
        >>> from workbench.expressions import col
        >>> plain_name(col("n")), plain_name(col("n") + 1)
        ('n', None)
    """
    return expression.name if isinstance(expression.tree, exp.Column) else None


def column_names(columns: ColumnName | Sequence[ColumnName], what: str) -> tuple[str, ...]:
    """The names of one column or several.

    Raises:
        ExpressionError: an expression that computes something, or a value that is not a name.

    Example:
        >>> column_names(["origin", "day"], "key_by")
        ('origin', 'day')
    """
    refuse_function(columns, what)
    if not isinstance(columns, Expression | Sequence):
        raise ExpressionError(
            f"{what} is {as_given(columns)}: name columns, such as {what}=['origin']", origin=caller()
        )
    several = (columns,) if isinstance(columns, str | Expression) else columns
    return tuple(column_name(column, what) for column in several)
