"""Loops that call a user's function once per record, generated as source text for given columns.

A loop builds each record, calls the function, checks its result and appends it to one list per column. Because the
columns' names are literals in its text, and no other operator runs the same code, the interpreter specialises every
instruction of it: a record costs a third of what it costs with lists of dicts. In Python 3.11 and later entering a
``try`` block costs nothing; the error and its record are determined only when a call has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from functools import lru_cache
from operator import length_hint
from types import CodeType
from typing import Any

import pyarrow as pa

from workbench.elements import Records
from workbench.raised import PASSING

Columns = Sequence[list[Any]]
"""The values of a batch as Python objects, one list per column."""

CHUNK = 2_048
"""The number of records at once: their Python objects then stay in the processor's cache, and with them the state."""

NOT_ROWS = frozenset({dict, str, bytes})
"""Types that can be iterated, but are not an iterable of rows."""


def chunks(records: Records) -> range:
    """The start indices of a batch's chunks."""
    return range(0, len(records), CHUNK)


class RowError(Exception):
    """A function returned something other than a dict of exactly the declared columns."""

    def __init__(self, row: object) -> None:
        super().__init__(row)
        self.row = row


class ValuesError(RowError):
    """A function of values returned something other than a tuple with a value for each declared column."""


class ResultError(Exception):
    """A function returned something other than the rows that it may return."""

    def __init__(self, result: object) -> None:
        super().__init__(result)
        self.result = result


class LoopError(Exception):
    """A loop stopped at a record; the cause is the error.

    Attributes:
        record: as the function received it.
        at: its index among the records passed to the loop.
        code: of its key, in loops over keyed records.
    """

    @property
    def cause(self) -> BaseException:
        """The error."""
        return self if self.__cause__ is None else self.__cause__

    def __init__(self, record: dict[str, Any], at: int, code: int | None = None) -> None:
        super().__init__(record)
        self.record = record
        self.at = at
        self.code = code


def call_loop(
    inputs: pa.Schema, outputs: pa.Schema, *, of_values: bool = False, values: bool = False, several: bool = False
) -> Callable[..., None]:
    """``loop(function, columns, out, ends)``: appends a function's result for each record to the lists in `out`.

    Args:
        inputs: schema of the columns.
        outputs: the declared schema.
        of_values: the function takes values as arguments, and not a record.
        values: it returns one value, or a tuple if there are several `outputs`, and not a record.
        several: it returns any number of these; `ends` receives the number of rows after each record.
    """
    arguments = ", ".join(f"v{at}" for at in range(len(inputs))) if of_values else _record(inputs)
    take = _take_values if values else _take
    body = take(outputs, 12)
    if several:
        body = f"""\
            if type(row) in NOT_ROWS:
                raise ResultError(row)
            try:
                rows = iter(row)
            except TypeError:
                raise ResultError(row) from None
            for row in rows:
{take(outputs, 16)}
            ends.append(len(out0))"""
    return _compile(f"""
def loop(function, columns, out, ends):
    {_names("out", outputs)} = out
    *columns, last = columns
    last_left = iter(last)
    try:
        for {_names("v", inputs)} in zip(*columns, last_left):
            row = function({arguments})
{body}
    except PASSING:
        raise
    except BaseException as error:
        raise LoopError({_record(inputs)}, len(last) - length_hint(last_left) - 1) from error
""")


def add_rows(outputs: pa.Schema) -> Callable[..., None]:
    """``add(result, out)``: appends the rows that a process function returned: None, a dict or an iterable of dicts."""
    return _compile(f"""
def loop(result, out):
    if result is None:
        return
    if type(result) is dict:
        result = (result,)
    elif type(result) in NOT_ROWS:
        raise ResultError(result)
    {_names("out", outputs)} = out
    try:
        rows = iter(result)
    except TypeError:
        raise ResultError(result) from None
    for row in rows:
{_take(outputs, 8, copies=True)}
""")


def process_loop(inputs: pa.Schema, outputs: pa.Schema, *, with_context: bool) -> Callable[..., None]:
    """``loop(function, columns, codes, states, out, add, odd, context, times)``: processes records with their keys'
    state.

    `odd` receives (rows before, rows) for each record that yields other than one row; `add` is ``add_rows``. With a
    context the function receives it too, set to the record's key and event time; otherwise `context` and `times` are
    ignored.
    """
    also = ", context" if with_context else ""
    loop = f"""
        for {_names("v", inputs)}code{", time" if with_context else ""} in zip(*columns, codes_left{
        ", times" if with_context else ""
    }):"""
    setting = (
        """
            context._code = code
            context.timestamp = time"""
        if with_context
        else ""
    )
    return _compile(f"""
def loop(function, columns, codes, states, out, add, odd, context, times):
    {_names("out", outputs)} = out
    codes_left = iter(codes)
    try:{loop}{setting}
            row = function({_record(inputs)}, states[code]{also})
            if type(row) is dict:
{_take(outputs, 16, copies=True)}
            else:
                before = len(out0)
                add(row, out)
                odd.append((before, len(out0) - before))
    except PASSING:
        raise
    except BaseException as error:
        raise LoopError({_record(inputs)}, len(codes) - length_hint(codes_left) - 1, code) from error
""")


def reduce_loop(schema: pa.Schema) -> Callable[..., None]:
    """``loop(function, columns, codes, held, out)``: folds each record into the record held for its key."""
    return _compile(f"""
def loop(function, columns, codes, held, out):
    {_names("out", schema)} = out
    codes_left = iter(codes)
    try:
        for {_names("v", schema)}code in zip(*columns, codes_left):
            row = {_record(schema)}
            before = held[code]
            if before is not None:
                row = function(before, row)
{_take(schema, 12, copies=True)}
            held[code] = row
    except PASSING:
        raise
    except BaseException as error:
        raise LoopError({_record(schema)}, len(codes) - length_hint(codes_left) - 1, code) from error
""")


def _compile(text: str) -> Callable[..., None]:
    names: dict[str, Any] = {
        "LoopError": LoopError,
        "RowError": RowError,
        "ValuesError": ValuesError,
        "ResultError": ResultError,
        "NOT_ROWS": NOT_ROWS,
        "copy": copy,
        "deepcopy": deepcopy,
        "length_hint": length_hint,
        "PASSING": PASSING,
    }
    exec(_parsed(text), names)
    loop: Callable[..., None] = names["loop"]
    loop.__code__ = loop.__code__.replace()  # its own instructions, to be specialised for its function
    return loop


@lru_cache(maxsize=256)
def _parsed(text: str) -> CodeType:
    return compile(text, "<workbench record loop>", "exec")


def _names(prefix: str, schema: pa.Schema) -> str:
    return "".join(f"{prefix}{at}, " for at in range(len(schema)))


def _record(schema: pa.Schema) -> str:
    return "{" + ", ".join(f"{name!r}: v{at}" for at, name in enumerate(schema.names)) + "}"


def _take(schema: pa.Schema, indent: int, *, copies: bool = False) -> str:
    """The text that checks `row` and appends its values.

    Args:
        schema: of the row.
        indent: of the text.
        copies: whether mutable values are copied, because they may be state that changes later.
    """
    lines = ["try:", f"    if len(row) != {len(set(schema.names))}:", "        raise RowError(row)"]
    for at, field in enumerate(schema):
        value = f"row[{field.name!r}]"
        lines.append(f"    out{at}.append({_copied(value, field.type) if copies else value})")
    lines += ["except (TypeError, KeyError, IndexError):", "    raise RowError(row) from None"]
    return "\n".join(" " * indent + line for line in lines)


def _take_values(schema: pa.Schema, indent: int) -> str:
    """The text that appends `row` as the only value, or the values of a tuple."""
    lines = ["out0.append(row)"]
    if len(schema) > 1:
        lines = [f"if not isinstance(row, tuple) or len(row) != {len(schema)}:", "    raise ValuesError(row)"]
        lines += [f"out{at}.append(row[{at}])" for at in range(len(schema))]
    return "\n".join(" " * indent + line for line in lines)


def _copied(value: str, kind: pa.DataType) -> str:
    if not pa.types.is_nested(kind):
        return value
    parts = [kind.field(at).type for at in range(kind.num_fields)]
    return f"deepcopy({value})" if any(map(pa.types.is_nested, parts)) else f"copy({value})"
