"""Runs a pattern without a job: rows and watermarks in, matches out, with restores in the middle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.durations import MAX_TIME
from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext, OperatorSpec
from workbench.state.key_groups import KeyPartitioner


@dataclass
class Collected:
    """What an operator has emitted, by side output; "" is the main one."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)

    def emit(self, records: Records) -> None:
        self.emit_side("", records)
        assert records.timestamps is not None
        self.times += records.timestamps.tolist()

    def emit_side(self, tag: str, records: Records) -> None:
        self.rows.setdefault(tag, []).extend(records.batch.to_pylist())


class PatternRun:
    """The subtasks of one operator.

    Args:
        spec: the operator.
        schema: of its input.
        keys: the key columns.
        parallelism: the number of subtasks.
    """

    def __init__(self, spec: OperatorSpec, schema: pa.Schema, keys: Sequence[str], parallelism: int = 1) -> None:
        self._spec, self._schema, self._keys = spec, schema, tuple(keys)
        self.out = Collected()
        self._open(parallelism)

    def _open(self, parallelism: int) -> None:
        self.subtasks: list[Operator] = []
        for subtask in range(parallelism):
            one = self._spec.create([self._schema])
            one.open(OperatorContext(subtask=subtask, parallelism=parallelism))
            self.subtasks.append(one)

    def feed(self, batch: pa.RecordBatch, times: Sequence[int]) -> None:
        """Rows arrive."""
        records = Records(batch, np.array(times, np.int64))
        parts: list[Records | None] = [records]
        if self._keys:
            parts = KeyPartitioner(self._keys, self._schema, len(self.subtasks)).split(records)
        for subtask, part in zip(self.subtasks, parts, strict=True):
            if part is not None:
                subtask.process(part, 0, self.out)

    def watermark(self, us: int = MAX_TIME) -> None:
        """Event time advances; by default to the end of the input."""
        for subtask in self.subtasks:
            subtask.on_watermark(us, self.out)

    def restore(self, parallelism: int) -> None:
        """Take a snapshot of all subtasks, and begin anew from it."""
        snapshots = [subtask.snapshot(1) for subtask in self.subtasks]
        self._open(parallelism)
        for subtask in self.subtasks:
            subtask.restore(snapshots)
