"""The columns by which a row replaces an earlier one, for every sink that upserts."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from workbench.arguments import as_given
from workbench.errors import PlanError, SettingError, SinkError
from workbench.expressions import ColumnName, column_names
from workbench.expressions.tree.expression import Expression
from workbench.state.key_columns import check_keys


def upsert_key_of(given: ColumnName | Sequence[ColumnName]) -> tuple[str, ...]:
    """The names of the columns that a user wrote: one or several, as text or ``col(...)``.

    Raises:
        SettingError: any other value.
        ExpressionError: an expression that is not a column.

    Example:
        >>> upsert_key_of("origin"), upsert_key_of(["origin", "day"])
        (('origin',), ('origin', 'day'))
    """
    several = given if isinstance(given, str | Expression | list | tuple) else None
    names = None if several is None else column_names(several, "upsert_key")
    if names is None or not all(isinstance(name, str) for name in names):
        raise SettingError(f"upsert_key is {as_given(given)}: write columns, such as 'origin' or ['origin', 'day']")
    return names


def check_upsert_key(key: Sequence[str], schema: pa.Schema, table: str) -> None:
    """Reject key columns that do not exist or cannot be compared.

    Raises:
        PlanError: names the table and the column.
    """
    try:
        check_keys(key, schema)
    except PlanError as error:
        raise PlanError(f"the table {table!r} cannot have this key: {error}") from error


def changes_key(given: Sequence[str], key: Sequence[str] | None, table: str) -> tuple[str, ...]:
    """The key by which a sink replaces the rows of a changelog.

    Args:
        given: the columns that the user wrote; empty: none.
        key: those that identify a row of the changelog; None: no columns do.
        table: for errors.

    Raises:
        PlanError: rows of the changelog with the same given key may be different ones.

    Example:
        >>> changes_key((), ("origin",), "delays"), changes_key(("origin", "day"), ("origin",), "delays")
        (('origin',), ('origin', 'day'))
    """
    if not given:
        return tuple(key or ())
    if key is not None and set(key) <= set(given):
        return tuple(given)
    what = f"is identified by {', '.join(key)}" if key else "has no columns that identify a row"
    raise PlanError(
        f"the table {table!r} has the upsert key {', '.join(given)}, but the changelog {what}: "
        f"{'leave the key out' if key is None else 'use that key'}"
    )


def check_no_nulls(batch: pa.RecordBatch, key: Sequence[str], table: str) -> None:
    """Reject rows with nulls in their key, as databases do: no later row could replace them.

    Raises:
        SinkError: names the column and the table.
    """
    for name in key:
        if batch.column(name).null_count:
            raise no_key(name, table, "null")


def no_key(name: str, table: str, what: str) -> SinkError:
    """The error for a value that cannot be a key."""
    return SinkError(
        f"the key {name!r} of a row for the table {table!r} is {what}, which never matches an earlier row: filter such "
        "rows out, or fill them in (coalesce)"
    )
