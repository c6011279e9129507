"""Changelogs: records that say how a table changes, in one more column.

A changelog has the column ``$kind``: a row is added (``+I``), taken back (``-D``), or replaced: first the old row
(``-U``), then the new one (``+U``). An operator that only adds and takes back rows reads the kinds as weights, +1 and
-1 (a Z-set), and a sink with a key reads them as upserts and deletions. A stream without the column only adds rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from workbench.elements import Int64s, Mask

KIND = "$kind"
"""The column of a changelog that holds the kinds of its rows."""
FIELD = pa.field(KIND, pa.int8())
INSERT, BEFORE, AFTER, DELETE = 0, 1, 2, 3
"""Flink's ``RowKind``: a row is added, was replaced, replaces one, is removed."""
NAMES = ("+I", "-U", "+U", "-D")

Kinds = npt.NDArray[np.int8]


@runtime_checkable
class TakesChanges(Protocol):
    """A spec of an operator that reads changelogs; all others are refused behind one.

    Attributes:
        takes_changes: true.
    """

    takes_changes: bool


@runtime_checkable
class Grows(Protocol):
    """A spec of an operator whose state can grow for ever."""

    def growing(self) -> str | None:
        """What the state keeps for ever; None: nothing."""


@runtime_checkable
class GivesChanges(Protocol):
    """A spec of an operator that keeps a table of results and emits how it changes."""

    def upsert_key(self, keys: Sequence[tuple[str, ...] | None], inputs: Sequence[pa.Schema]) -> tuple[str, ...] | None:
        """The columns that identify one row of the result, all of whose changes come from one subtask.

        Args:
            keys: those of the inputs.
            inputs: their schemas.

        Returns:
            None: equal rows can occur several times.
        """


@runtime_checkable
class MakesChanges(TakesChanges, Grows, GivesChanges, Protocol):
    """One that reads changelogs, too, and whose state can grow for ever."""


def is_changelog(schema: pa.Schema) -> bool:
    """Whether rows of this schema are changes.

    Example:
        >>> is_changelog(pa.schema({"n": pa.int64()})), is_changelog(pa.schema([FIELD]))
        (False, True)
    """
    return KIND in schema.names


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The columns without that of the kinds."""
    return pa.schema([field for field in schema if field.name != KIND], schema.metadata)


def plain_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without their kinds."""
    return batch.drop_columns([KIND]) if KIND in batch.schema.names else batch


def kinds_of(batch: pa.RecordBatch) -> Kinds:
    """Shape (n,): the kind of each row."""
    if KIND not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int8)
    kinds: Kinds = batch.column(KIND).to_numpy()
    return kinds


def weights_of(batch: pa.RecordBatch) -> Int64s | None:
    """Shape (n,): 1 for rows that are added, -1 for those taken back; None if all are added.

    Example:
        >>> weights_of(pa.record_batch([pa.array([0, 1, 2, 3], pa.int8())], schema=pa.schema([FIELD])))
        array([ 1, -1,  1, -1])
    """
    if KIND not in batch.schema.names:
        return None
    back = kinds_of(batch) & 1
    return 1 - 2 * back.astype(np.int64) if back.any() else None


def with_kinds(batch: pa.RecordBatch, kinds: Kinds) -> pa.RecordBatch:
    """Rows and their kinds."""
    return batch.append_column(FIELD, pa.array(kinds))


def replaced(
    before: pa.RecordBatch, after: pa.RecordBatch, had: Mask, has: Mask, same: Mask | None = None
) -> tuple[pa.RecordBatch, Int64s]:
    """How a table of m places changes.

    Args:
        before: the rows of the places that had one.
        after: the rows of the places that have one now.
        had, has: shape (m,), whether there was and is a row.
        same: shape (m,), places whose row stays equal, which are left out; None: none.

    Returns:
        The changes, first all rows that are taken back and then all new ones, and the place of each.

    Example:
        >>> old, new = pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3, 4]})
        >>> changes, _ = replaced(old, new, np.array([True, True, False]), np.array([False, True, True]))
        >>> [(NAMES[row["$kind"]], row["n"]) for row in changes.to_pylist()]
        [('-D', 1), ('-U', 2), ('+U', 3), ('+I', 4)]
    """
    back, new = (had, has) if same is None else (had & ~same, has & ~same)
    if same is not None:
        before = before if not (had & same).any() else before.filter(pa.array(back[had]))
        after = after if not (has & same).any() else after.filter(pa.array(new[has]))
    gone, come = np.flatnonzero(back), np.flatnonzero(new)
    kinds = np.concatenate([np.where(has[gone], BEFORE, DELETE), np.where(had[come], AFTER, INSERT)]).astype(np.int8)
    both = pa.concat_batches([before, after]) if len(gone) and len(come) else after if len(come) else before
    return with_kinds(both, kinds), np.concatenate([gone, come])


def equal_rows(one: pa.RecordBatch, other: pa.RecordBatch) -> Mask:
    """Shape (n,): whether row i is equal in both; nulls are equal."""
    same = np.ones(one.num_rows, np.bool_)
    for a, b in zip(one.columns, other.columns, strict=True):
        if pa.types.is_nested(a.type):
            same &= [x == y for x, y in zip(a.to_pylist(), b.to_pylist(), strict=True)]
            continue
        equal = pc.fill_null(pc.equal(a, b), False)
        if a.null_count and b.null_count:
            equal = pc.or_(equal, pc.and_(a.is_null(), b.is_null()))
        same &= equal.to_numpy(zero_copy_only=False)
    return same


def together(parts: Iterable[tuple[pa.RecordBatch, Int64s, Kinds]]) -> pa.RecordBatch:
    """The rows of several batches ordered by their positions, each with its kinds.

    Args:
        parts: rows, shape (n,) their positions, shape (n,) their kinds; of equal positions, earlier parts come first.
    """
    found = [part for part in parts if part[0].num_rows]
    batches, places, kinds = zip(*found, strict=True)
    batch, place = pa.concat_batches(batches), np.concatenate(places)
    made = with_kinds(batch, np.concatenate(kinds))
    if np.all(place[:-1] <= place[1:]):
        return made
    return made.take(pa.array(np.argsort(place, kind="stable")))


def net(rows: pa.RecordBatch, hashes: Int64s) -> pa.RecordBatch:
    """The changes that remain when equal rows that were added and taken back cancel each other.

    Args:
        rows: n changes.
        hashes: shape (n,), equal for equal rows.

    Returns:
        Rows of the kinds INSERT and DELETE, in the order in which they came first.
    """
    weights = 1 - 2 * (kinds_of(rows) & 1).astype(np.int64)
    _, firsts, places = np.unique(hashes, return_index=True, return_inverse=True)
    counts = np.bincount(places, weights, minlength=len(firsts)).astype(np.int64)
    order = np.argsort(firsts)
    firsts, counts = firsts[order], counts[order]
    repeated = np.repeat(firsts, np.abs(counts))
    kinds = np.repeat(np.where(counts > 0, INSERT, DELETE), np.abs(counts)).astype(np.int8)
    return with_kinds(plain_rows(rows).take(pa.array(repeated)), kinds)


def present_rows(changes: pa.Table) -> pa.Table:
    """The rows that were not taken back, without their kinds; a table without kinds as it is."""
    return changes.filter(_added(changes)).drop_columns([KIND]) if KIND in changes.schema.names else changes


def removed_rows(changes: pa.Table) -> pa.Table:
    """The rows that were taken back, without their kinds; none of a table without kinds."""
    if KIND not in changes.schema.names:
        return changes.slice(0, 0)
    return changes.filter(pc.invert(_added(changes))).drop_columns([KIND])


def _added(changes: pa.Table) -> pa.ChunkedArray:
    return pc.equal(pc.bit_wise_and(changes.column(KIND), pa.scalar(1, pa.int8())), pa.scalar(0, pa.int8()))
