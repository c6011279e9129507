"""Records with ids on their way between tasks: each row has its root and an id of its own, as two more columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.elements import Records
from workbench.operators.acking.acker import UNTRACKED
from workbench.runtime.acking.ids import Ids
from workbench.runtime.exchange.output import EdgeOutput, Route


class Anchors:
    """The root of the records that a task processes now, and what was sent for it.

    Args:
        ids: of this task.

    Attributes:
        root: `UNTRACKED` while none is processed.
        value: XOR of the ids that the outputs have given since it began.
    """

    __slots__ = ("ids", "root", "value")

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.root = UNTRACKED
        self.value = 0

    def begin(self, root: int) -> None:
        """What is sent from now on belongs to this root."""
        self.root = root
        self.value = 0


class TrackedOutput(EdgeOutput):
    """An output that stamps each row with the present root and a new id.

    Args:
        anchors: of the task.
        schema: of what travels, with the two columns of ids at the end.
        channels, strategy, splitter, rest: as for `EdgeOutput`.
    """

    __slots__ = ("_anchors", "_inner", "_payload", "_schema")

    def __init__(
        self, anchors: Anchors, schema: pa.Schema, channels: Sequence[Any], strategy: str, splitter: Any, *rest: Any
    ) -> None:
        super().__init__(channels, strategy, splitter, None, *rest)
        self._anchors = anchors
        self._schema = schema
        self._payload = schema.names[:-2]
        self._inner: Route | None = self.route
        self.route: Route = self._to_each if strategy == "broadcast" else self._on

    def close(self) -> None:
        super().close()
        self._inner = None

    def send_to(self, target: int, records: Records) -> None:
        super().send_to(target, self._stamped(records))

    def _on(self, records: Records) -> None:
        if self._inner is not None:
            self._inner(self._stamped(records))

    def _to_each(self, records: Records) -> None:
        for target in range(len(self.pending)):  # each copy is processed once, so it needs an id of its own
            self.send_to(target, records)

    def _stamped(self, records: Records) -> Records:
        batch, anchors = records.batch, self._anchors
        rows = batch.num_rows
        if anchors.root == UNTRACKED:
            ids = np.zeros(rows, np.int64)
        else:
            ids = anchors.ids.take(rows)
            anchors.value ^= int(np.bitwise_xor.reduce(ids))
        if batch.num_columns > len(self._payload):
            batch = batch.select(self._payload)
        columns = [*batch.columns, pa.array(np.full(rows, anchors.root, np.int64)), pa.array(ids)]
        return Records(pa.RecordBatch.from_arrays(columns, schema=self._schema), records.timestamps)


Each = Callable[[int, Records], int]
"""Processes records of one root; returns the XOR of the ids of what was sent for it."""


def process_by_root(records: Records, each: Each) -> tuple[list[int], list[int]]:
    """Process stamped records one root after another.

    Returns:
        The roots, and for each the XOR of the ids of its records and of what was made of them; a root may occur several
        times.
    """
    batch, times = records.batch, records.timestamps
    width = batch.num_columns - 2
    roots, ids = batch.column(width).to_numpy(), batch.column(width + 1).to_numpy()
    payload = Records(batch.select(list(range(width))), times)
    starts = np.flatnonzero(np.diff(roots, prepend=~roots[:1]))
    values = np.bitwise_xor.reduceat(ids, starts).tolist()
    begins = starts.tolist()
    keys = roots[starts].tolist()
    if len(begins) == 1:
        values[0] ^= each(keys[0], payload)
    else:
        for at, (begin, end) in enumerate(zip(begins, [*begins[1:], len(roots)], strict=True)):
            values[at] ^= each(keys[at], payload.slice(begin, end - begin))
    if UNTRACKED in keys:
        kept = [at for at, key in enumerate(keys) if key != UNTRACKED]
        keys, values = [keys[at] for at in kept], [values[at] for at in kept]
    return keys, values
