"""Window table functions: TUMBLE, HOP, CUMULATE and SESSION assign the rows of a table to windows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
from sqlglot import exp

from workbench.api.streams.changelogs import ENGINE_NAMES
from workbench.durations import NO_TIME
from workbench.elements import event_times
from workbench.errors import WorkbenchError, unknown
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.row_kinds import is_changelog
from workbench.operators.windows.columns import TIME
from workbench.queries.reading.binding import constant_us
from workbench.queries.reading.dialect import WINDOWS
from workbench.queries.reading.event_time import window_times
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Bound, Column, Relation, Windows
from workbench.windows import WindowAssigner, cumulative, session, sliding, tumbling
from workbench.windows.session import Session

INSTANT = tumbling("1us")
"""Rows with equal event times form a group that is complete when the watermark passes this time."""

BOUNDS: tuple[Bound, ...] = ("window_start", "window_end", "window_time")

_SIGNATURES: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
"""The intervals of each function in order; OFFSET is optional."""

_MAKERS: Mapping[str, Callable[..., WindowAssigner]] = {
    "TUMBLE": lambda size, offset: tumbling(size, offset),
    "HOP": lambda slide, size, offset: sliding(size, slide, offset),
    "CUMULATE": lambda step, size, offset: cumulative(size, step, offset),
    "SESSION": lambda gap, offset: session(gap),
}


def window_call(tree: Tree) -> Tree | None:
    """The call of a window table function in FROM, with or without TABLE( ) around it, or None."""
    call = tree.this if isinstance(tree, exp.Table | exp.TableFromRows) else tree
    if isinstance(call, exp.Anonymous) and call.name.upper() == "TABLE" and len(call.expressions) == 1:
        call = call.expressions[0]
    return call if isinstance(call, exp.Anonymous) and call.name.upper() in WINDOWS else None


def assigned(call: Tree, source: Callable[[Tree], Relation], text: Text) -> Relation:
    """The relation of a call: the table's rows, their windows, and columns for the bounds.

    Args:
        call: the function, see `window_call`.
        source: returns the relation of the operand.
        text: the query, for errors.

    Raises:
        QueryError: unsuitable arguments, or a column that is not the event time.
    """
    name = call.name.upper()
    given = _arguments(call, name, text)
    operand = given["DATA"]
    partition = operand.expressions[1:] if isinstance(operand, exp.Tuple) else []
    rows = source(operand.expressions[0] if isinstance(operand, exp.Tuple) else operand)
    if rows.stream is None:
        raise text.error(operand, "a window needs a stream, and this is a table: convert it with wb.Stream.from_table")
    if rows.windows is not None:
        raise text.error(call, "its rows already have windows: GROUP BY window_start, window_end first")
    if is_changelog(rows.records.schema):
        raise text.error(
            operand, "its rows replace earlier ones, and a window needs append-only rows: use GROUP BY alone"
        )
    if partition and name != "SESSION":
        raise text.error(partition[0], "only SESSION has PARTITION BY: remove it, and name the keys in GROUP BY")
    intervals = {key: value for key, value in given.items() if key not in _ROWS}
    return with_windows(rows, call, given["TIMECOL"], intervals, partition, text)


_ROWS = ("DATA", "TIMECOL")


def with_windows(
    rows: Relation, call: Tree, time: Tree, intervals: Mapping[str, Tree], partition: list[Tree], text: Text
) -> Relation:
    """Add the window bounds of a call as columns of the rows.

    Raises:
        QueryError: the column is not the event time, or an interval does not fit.
    """
    name = call.name.upper()
    column = _time_column(rows, time, text)
    lengths = {key.lower(): timedelta(microseconds=constant_us(value, text)) for key, value in intervals.items()}
    lengths.setdefault("offset", timedelta())
    try:
        assigner = _MAKERS[name](**lengths)
    except WorkbenchError as error:
        raise text.error(call, error.message) from None
    if name == "HOP" and lengths["slide"] > lengths["size"]:
        raise text.error(
            call, "the slide is longer than the size, so rows between the windows would be lost: the slide comes first"
        )
    keys = [
        rows.of(part, text).stored or "" if isinstance(part, exp.Column) else part.sql("spark") for part in partition
    ]
    table = rows.columns[0].table
    bounds = tuple(Column(table, bound, None, None, bound) for bound in BOUNDS)
    clash = next((item.name for item in rows.columns if item.name in BOUNDS), None)
    if clash is not None:
        raise text.error(call, f"the table has a column {clash!r} already: rename it in a subquery in FROM")
    return replace(rows, columns=rows.columns + bounds, windows=Windows(assigner, tuple(keys), column, call))


def intervals_of(call: Tree, text: Text) -> tuple[Tree, dict[str, Tree]]:
    """The column and the intervals of a window in GROUP BY: ``TUMBLE(ts, INTERVAL '1' HOUR)``.

    Raises:
        QueryError: other arguments.
    """
    name = call.name.upper()
    column, *rest = call.expressions or [call]
    names = _SIGNATURES[name]
    if not len(names) - (len(names) > 1) <= len(rest) <= len(names):
        raise text.error(call, f"{_usage(name, in_from=False)} is expected")
    return column, dict(zip(names, rest, strict=False))


def _arguments(call: Tree, name: str, text: Text) -> dict[str, Tree]:
    order = (*_ROWS, *_SIGNATURES[name])
    given: dict[str, Tree] = {}
    for at, argument in enumerate(call.expressions):
        placed = order[at] if at < len(order) else ""
        key = str(argument.this.name).upper() if isinstance(argument, exp.Kwarg) else placed
        if key not in order:
            what = unknown("argument", key, order) if key else f"{name} has too many arguments"
            raise text.error(argument, f"{what}; write {_usage(name)}")
        if key in given:
            raise text.error(argument, f"{key} is given twice")
        given[key] = argument.expression if isinstance(argument, exp.Kwarg) else argument
    if missing := [key for key in order if key not in given and key != "OFFSET"]:
        raise text.error(call, f"{name} lacks {missing[0]}: write {_usage(name)}")
    return given


def _usage(name: str, in_from: bool = True) -> str:
    intervals = ", ".join("INTERVAL '10' SECOND" for key in _SIGNATURES[name] if key != "OFFSET")
    return f"{name}(TABLE clicks, DESCRIPTOR(ts), {intervals})" if in_from else f"{name}(ts, {intervals})"


def is_clock(tree: Tree) -> bool:
    """Whether a part of a query is PROCTIME()."""
    return isinstance(tree, exp.Anonymous) and str(tree.this).upper() == "PROCTIME"


def _time_column(rows: Relation, tree: Tree, text: Text) -> str | None:
    named = tree.expressions if isinstance(tree, exp.Anonymous) and tree.name.upper() == "DESCRIPTOR" else [tree]
    if len(named) != 1 or not isinstance(named[0], exp.Column):
        raise text.error(tree, "windows need the event-time column: write DESCRIPTOR(ts)")
    column = rows.of(named[0], text)
    if column.bound == "proctime":
        return None
    if column.ahead_us == 0 and column.stored is not None:
        return column.stored
    known = [item.name for item in rows.columns if item.ahead_us == 0]
    if known:
        fix = f"use {known[0]}, or assign event time anew with assign_timestamps({column.name!r})"
    else:
        fix = (
            f"give the source event_time={column.name!r}, or the stream .assign_timestamps({column.name!r}, "
            "out_of_orderness=...)"
        )
    raise text.error(tree, f"the column {column.name!r} is not the event time of these rows: {fix}")


def materialized(rows: Relation, text: Text) -> Relation:
    """Emit each row once per window, with the bounds as columns; the event time is the last microsecond of the window.

    Raises:
        QueryError: sessions, which are not known before all rows have been merged.
    """
    windows = rows.windows
    if windows is None:
        return rows
    if isinstance(windows.assigner, Session):
        raise text.error(windows.call, "single rows have no session: GROUP BY window_start, window_end")
    stream, assigner, time = rows.records, windows.assigner, windows.time
    if time is None:
        raise text.error(windows.call, "single rows have no processing-time window: GROUP BY window_start, window_end")
    names = {bound: free_name(bound, stream.columns) for bound in BOUNDS}
    schema = pa.schema([*stream.schema, *(pa.field(name, TIME) for name in names.values())])

    def windows_of(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Emit each row once per window."""
        times = event_times(batch.column(time), time)
        known = np.flatnonzero(times != NO_TIME)
        at, starts, ends = assigner.assign(times[known])
        chosen = batch.take(pa.array(known[at]))
        added = [pa.array(values).cast(TIME) for values in (starts, ends, ends - 1)]
        return pa.RecordBatch.from_arrays([*chosen.columns, *added], schema=schema)

    spread = stream.map_batches(windows_of, schema, event_time=names["window_time"])
    ahead = {**window_times(assigner), "window_time": 0}
    columns = tuple(
        replace(column, ahead_us=None)
        if column.bound not in names
        else replace(column, stored=names[column.bound], ahead_us=ahead.get(column.bound), bound=None)
        for column in rows.columns
    )
    return Relation(spread, columns)


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with a prefix if it is already taken, or is one that the engine uses itself.

    Example:
        >>> free_name("$id", ()), free_name("day", ["day"])
        ('$$id', '$day')
    """
    while name in taken or name in ENGINE_NAMES:
        name = f"${name}"
    return name
