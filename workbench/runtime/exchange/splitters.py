"""Exchanges that send a record to one subtask: by key, at random, or by a user's function (F1-3)."""

from __future__ import annotations

import zlib
from itertools import pairwise
from typing import Protocol

import numpy as np
import pyarrow as pa

from workbench.compiled import hash_ints, warm_up
from workbench.elements import Int64s, Records
from workbench.plan.partitioner import Target
from workbench.plan.physical import Edge
from workbench.state.key_groups import KeyPartitioner


class Splitter(Protocol):
    """Splits a batch by the subtask that each row goes to."""

    def split(self, records: Records) -> list[Records | None]:
        """The rows for each target, in their order; None where there are none."""


class ShuffleSplitter:
    """Sends every row to a random subtask.

    Args:
        targets: number of receiving subtasks.
        seed: of the random numbers; the same seed sends the same row numbers to the same targets.

    Example:
        >>> rows = Records(pa.record_batch({"n": range(1_000)}))
        >>> [len(part) for part in ShuffleSplitter(2, seed=1).split(rows)]
        [505, 495]
    """

    __slots__ = ("_drawn", "_seed", "_targets")

    def __init__(self, targets: int, seed: int) -> None:
        warm_up(hash_ints)
        self._targets = targets
        self._seed = seed % 2**62
        self._drawn = 0

    def split(self, records: Records) -> list[Records | None]:
        """The rows for each target, in their order; None where there are none."""
        n = len(records)
        first = self._seed + self._drawn
        self._drawn += n
        numbers = np.empty(n, np.uint64)
        hash_ints(np.arange(first, first + n, dtype=np.int64), numbers)
        return split_by(records, (numbers % np.uint64(self._targets)).astype(np.int64), self._targets)


class CustomSplitter:
    """Sends every row to the subtask that the user's partitioner names, modulo their number."""

    __slots__ = ("_target", "_targets")

    def __init__(self, target: Target, targets: int) -> None:
        self._target = target
        self._targets = targets

    def split(self, records: Records) -> list[Records | None]:
        """The rows for each target, in their order; None where there are none."""
        return split_by(records, self._target(records.batch) % self._targets, self._targets)


def split_by(records: Records, targets: Int64s, count: int) -> list[Records | None]:
    """The rows for each of `count` targets, given the target of each row."""
    if len(records) == 0:
        return [None] * count
    small = targets.astype(np.min_scalar_type(count - 1))  # numpy sorts numbers of one or two bytes by counting
    rows = np.bincount(small, minlength=count)
    bounds = [0, *np.cumsum(rows).tolist()]
    if len(records) in rows:
        return [records if some else None for some in rows.tolist()]
    order = np.argsort(small, kind="stable")
    times = records.timestamps
    ordered = Records(records.batch.take(pa.array(order)), None if times is None else times[order])
    return [ordered.slice(begin, end - begin) if end > begin else None for begin, end in pairwise(bounds)]


def splitter(edge: Edge, subtask: int, attempt: int, seed: int, max_parallelism: int) -> Splitter | None:
    """The splitter for the batches that a sending subtask has for an edge; None where whole batches are passed on.

    Args:
        seed: of the job's random exchanges.
        max_parallelism: number of key groups.
    """
    targets = edge.target.parallelism
    if edge.exchange == "hash":
        return KeyPartitioner(edge.keys, edge.schema, targets, max_parallelism)
    if edge.exchange == "shuffle":
        return ShuffleSplitter(targets, seed + (zlib.crc32(f"{edge.id} {subtask} {attempt}".encode()) << 29))
    if edge.exchange == "custom":
        assert edge.partitioner is not None, "a custom exchange has a partitioner"
        return CustomSplitter(edge.partitioner.compiled(edge.schema), targets)
    return None
