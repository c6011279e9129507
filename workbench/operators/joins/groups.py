"""Joins whole groups: used by windowed joins when windows end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.compiled import order_by_code
from workbench.durations import NO_TIME
from workbench.elements import Int64s, Records
from workbench.operators.contract.base import Counters, Output
from workbench.operators.joins.columns import JoinColumns, JoinRows, pairs_of, without_null_keys

ROWS_AT_ONCE = 65_536
"""A limit, so that a hot key does not produce one huge batch."""


@dataclass(frozen=True, slots=True)
class Grouped:
    """Records of one side.

    Attributes:
        batch: n rows.
        groups: shape (n,), the number of each record's group; a group is one key in one window.
        times: shape (n,), the event time of the results of the record's window.
    """

    batch: pa.RecordBatch
    groups: Int64s
    times: Int64s


def with_times(records: Records, counters: Counters) -> tuple[pa.RecordBatch, Int64s]:
    """The records that have event times, and these times; the others are counted."""
    batch, times = records.batch, records.timestamps
    assert times is not None
    timed = times != NO_TIME
    if timed.all():
        return batch, times
    counters.numRecordsWithoutTimestamp += len(times) - int(np.count_nonzero(timed))
    return batch.filter(pa.array(timed)), times[timed]


def emit_joined(columns: JoinColumns, rows: JoinRows, left: Grouped, right: Grouped, groups: int, out: Output) -> None:
    """Emit each left record with each right record of its group, and those without a partner as the join requires.

    Args:
        columns, rows: of the join.
        left, right: all records of the groups.
        groups: their number.
        out: receives the results.
    """
    of_right = right.groups
    complete = without_null_keys(right.batch, columns.right_keys)
    if complete is not None:  # a null key equals nothing
        of_right = np.where(complete, of_right, groups)
    firsts_of = np.empty(groups + 2, np.int64)
    order = np.empty(len(of_right), np.int64)
    order_by_code(of_right, firsts_of, order)
    firsts = firsts_of[left.groups]
    counts = firsts_of[left.groups + 1] - firsts
    lefts, places = pairs_of(firsts, counts)
    for at in range(0, len(lefts), ROWS_AT_ONCE):
        some = lefts[at : at + ROWS_AT_ONCE]
        rights = order[places[at : at + ROWS_AT_ONCE]]
        pairs = rows.assemble(left.batch.take(pa.array(some)), right.batch.take(pa.array(rights)))
        out.emit(Records(pairs, left.times[some]))
    if columns.keeps_left:
        alone = np.flatnonzero(counts == 0)
        out.emit(Records(rows.assemble(left.batch.take(pa.array(alone)), None), left.times[alone]))
    if columns.keeps_right:
        matched = np.zeros(groups + 1, np.bool_)
        matched[left.groups] = True
        alone = np.flatnonzero(~matched[of_right])
        out.emit(Records(rows.assemble(None, right.batch.take(pa.array(alone))), right.times[alone]))
