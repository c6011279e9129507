"""The acker: knows for each record of a source whether everything that was made of it has been processed.

Each record that is sent to another task gets a random 64-bit id, an edge of the tree below its root. A task that has
processed a record sends the acker one number: the XOR of the record's id and of the ids of all records that it made of
it. Each id thus enters the root's value twice, when it is made and when it is processed, and the value is zero exactly
when the whole tree is processed, in whatever order the messages come. So a root needs one number, however large its
tree is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s, Records
from workbench.operators.acking.rotating import RotatingBuckets
from workbench.operators.contract.base import Operator, OperatorContext, Output

UNTRACKED = 0
"""The root of records that belong to no tree, such as those of a timer."""
FROM_OPERATOR = -1
"""The value for the source in messages of tasks that are not sources."""
ACK_SCHEMA = pa.schema({"root": pa.int64(), "value": pa.int64(), "source": pa.int64()})
"""What tasks send to the acker: `value` is the XOR of ids; sources add their number, which announces the root."""
DONE_SCHEMA = pa.schema({"root": pa.int64(), "subtask": pa.int64()})
"""What the acker sends back to the subtasks of a source."""
SUBTASKS = 1 << 20
"""A source's number in a message is that of its vertex times this, plus its subtask."""


def done_tag(source: int) -> str:
    """The side output for the source of that number, among the sources of the graph.

    Example:
        >>> done_tag(0)
        '$done 0'
    """
    return f"$done {source}"


@dataclass(frozen=True)
class Ackers:
    """The operator of the acker tasks.

    Args:
        sources: the number of sources in the graph.
    """

    sources: int
    kind: ClassVar[str] = "acker"

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        return DONE_SCHEMA

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {done_tag(source): DONE_SCHEMA for source in range(self.sources)}

    def describe(self) -> str:
        return "XOR of ids, by root"

    def create(self, inputs: Sequence[pa.Schema]) -> Acker:
        return Acker()


class Root:
    """A root that is not acknowledged: the XOR of all ids so far, and its source, once that has announced it."""

    __slots__ = ("source", "value")

    def __init__(self) -> None:
        self.value = 0
        self.source = FROM_OPERATOR


class Acker(Operator):
    """Folds messages by root, and tells the source of each root whose value has become zero.

    It saves nothing: what it forgets in a failure, the sources send again.

    Attributes:
        pending: the roots that are not acknowledged.
        completed, forgotten: roots whose value became zero, and those that timed out here.

    Example:
        >>> acker = Acker()
        >>> acker.open(OperatorContext())
        >>> acker.fold(np.array([5, 5]), np.array([0b0110, 0b0100]), np.array([0, FROM_OPERATOR]))
        []
        >>> acker.fold(np.array([5]), np.array([0b0010]), np.array([FROM_OPERATOR]))
        [(5, 0)]
    """

    def __init__(self) -> None:
        self.pending = RotatingBuckets[Root](30_000_000)
        self.completed = self.forgotten = 0

    def open(self, context: OperatorContext) -> None:
        self._now_us = context.clock.now_us

    def process(self, records: Records, port: int, out: Output) -> None:
        root, value, source = (column.to_numpy() for column in records.batch.columns)
        done = self.fold(root, value, source)
        by_source: dict[int, list[tuple[int, int]]] = {}
        for key, number in done:
            by_source.setdefault(number // SUBTASKS, []).append((key, number % SUBTASKS))
        for vertex, rows in by_source.items():
            columns = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
            out.emit_side(done_tag(vertex), Records(pa.RecordBatch.from_arrays(columns, schema=DONE_SCHEMA)))

    def fold(self, roots: Int64s, values: Int64s, sources: Int64s) -> list[tuple[int, int]]:
        """Take in n messages; returns the roots that are complete now, each with the number of its source.

        Args:
            roots, values, sources: shape (n,), the columns of `ACK_SCHEMA`.
        """
        order = np.argsort(roots, kind="stable")
        sorted_roots = roots[order]
        starts = np.flatnonzero(np.diff(sorted_roots, prepend=~sorted_roots[:1]))
        folded = np.bitwise_xor.reduceat(values[order], starts)
        told = np.maximum.reduceat(sources[order], starts)
        done: list[tuple[int, int]] = []
        now_us = self._now_us()
        for key, value, source in zip(sorted_roots[starts].tolist(), folded.tolist(), told.tolist(), strict=True):
            root = self.pending.get(key)
            if root is None:
                if value == 0 and source != FROM_OPERATOR:
                    done.append((key, source))
                    continue
                root = Root()
                self.pending.put(key, root, now_us)
            root.value ^= value
            if source != FROM_OPERATOR:
                root.source = source
            if root.value == 0 and root.source != FROM_OPERATOR:
                self.pending.pop(key)
                done.append((key, root.source))
        self.completed += len(done)
        return done

    def next_time_us(self) -> int | None:
        return self.pending.due_us

    def on_time(self, now_us: int, out: Output) -> None:
        self.forgotten += len(self.pending.expelled(now_us))
