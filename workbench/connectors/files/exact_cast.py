"""Casts of columns that were read to the types that the user declared: exact, or refused."""

from __future__ import annotations

from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from workbench.raised import first_line_of

Column = TypeVar("Column", pa.Array, pa.ChunkedArray)


def exact_cast(column: Column, field: pa.Field) -> Column:
    """Cast a column; a float may be rounded to a shorter one, and no other value may change.

    Args:
        column: as it was read.
        field: the declared column.

    Raises:
        pa.ArrowInvalid: names the column, its value and the type.
        pa.ArrowNotImplementedError: there is no such cast.

    Example:
        >>> exact_cast(pa.array([0, 86_400], pa.timestamp("s")), pa.field("day", pa.date32()))[1]
        <pyarrow.Date32Scalar: datetime.date(1970, 1, 2)>
    """
    kind = column.type
    if kind == field.type:
        return column
    try:
        if pa.types.is_time(field.type) and pa.types.is_string(kind):  # a cast that Arrow lacks
            column = pc.binary_join_element_wise("1970-01-01 ", column, "").cast(pa.timestamp(field.type.unit))
        made = column.cast(field.type)
        changed = _changed(column, made)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"the column {field.name!r} is {kind}: {first_line_of(error)}") from None
    if changed is not None and (found := column.filter(pc.fill_null(changed, False))) and len(found):
        raise pa.ArrowInvalid(
            f"the column {field.name!r} is {kind}, and its value {found[0]} is not exact as {field.type}"
        )
    return made


def _changed(column: Column, made: Column) -> Column | None:
    """Which values differ after a cast that Arrow does not check; None: it checks all."""
    was, now = column.type, made.type
    if pa.types.is_floating(was) and pa.types.is_floating(now):
        return pc.and_(pc.is_inf(made), pc.invert(pc.is_inf(column))) if now.bit_width < was.bit_width else None
    if (pa.types.is_timestamp(was) and pa.types.is_date(now)) or (
        pa.types.is_decimal(was) and pa.types.is_floating(now)
    ):
        return pc.not_equal(made.cast(was, safe=False), column)
    return None
