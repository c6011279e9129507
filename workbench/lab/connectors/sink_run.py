"""A small job around one sink: numbered rows, checkpoints, crashes and restores, each on demand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Held, Sink, SinkContext
from workbench.elements import Records
from workbench.lab.connectors.contract_error import ContractError, compare
from workbench.lab.connectors.stored import Stored
from workbench.operators.contract.base import Operator, OperatorContext, Output

SINK_SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64())])
"""The rows that sinks are tested with: ``value`` counts from 0, and ``key`` is ``value % 7``."""

_KEYS = 7
_JOB, _UID = "contract", "sink"


class _NoOutput(Output):
    def emit(self, records: Records) -> None:
        raise ContractError("a sink emits records, and nothing is behind it")

    def emit_side(self, tag: str, records: Records) -> None:
        raise ContractError(f"a sink emits records to {tag!r}, and nothing is behind it")


@dataclass(frozen=True, slots=True)
class Taken:
    """A checkpoint that was triggered: its number, the rows before it, and the subtasks' snapshots."""

    number: int
    rows: int
    stored: Stored


class SinkRun:
    """Rows go to the sink's subtasks by key, as behind an exchange.

    Args:
        sink: writes to an empty place.
        parallelism: number of subtasks.
        read: returns what a reader of the sink's place sees, each row as (key, value), a dict or JSON text.

    Attributes:
        offset: the number of rows processed.
        complete: the latest complete checkpoint, if any.

    Example:
        >>> import tempfile, workbench as wb
        >>> from pathlib import Path
        >>> sink = wb.SqlSink(f"sqlite:///{tempfile.mkdtemp()}/a.db", "rows")
        >>> run = SinkRun(sink, 2, sink.committed)
        >>> run.process(3)
        >>> run.seen()
        []
        >>> run.checkpoint()
        >>> run.seen()
        [(0, 0), (1, 1), (2, 2)]
        >>> run.close()
    """

    def __init__(self, sink: Sink, parallelism: int, read: Callable[[], Iterable[object]]) -> None:
        self.sink = sink
        self._read = read
        self._clock = VirtualClock(1)
        self._attempt = 0
        self._number = 1
        self._run = "first"
        self._furthest = 0
        self.offset = 0
        self.complete: Taken | None = None
        self._held: Held | None = None
        sink.check(SINK_SCHEMA)
        self._hold()
        sink.check_fresh(self.context)
        self._start(parallelism)

    @property
    def context(self) -> SinkContext:
        """The context that the sink receives from the job."""
        return SinkContext(_JOB, _UID, SINK_SCHEMA, self._run, checkpoint="the checkpoint")

    @property
    def completed(self) -> int:
        """The number of rows before the latest complete checkpoint."""
        return 0 if self.complete is None else self.complete.rows

    def process(self, count: int) -> None:
        """Process the next rows."""
        values = range(self.offset, self.offset + count)
        width = len(self._subtasks)
        for index, subtask in enumerate(self._subtasks):
            own = [value for value in values if value % _KEYS % width == index]
            if own:
                batch = pa.record_batch([[value % _KEYS for value in own], own], schema=SINK_SCHEMA)
                subtask.process(Records(batch, None), 0, _NoOutput())
        self.offset += count
        self._furthest = max(self._furthest, self.offset)

    def trigger(self) -> Taken:
        """The synchronous part of a checkpoint."""
        number, self._number = self._number, self._number + 1
        return Taken(number, self.offset, Stored([subtask.snapshot(number) for subtask in self._subtasks]))

    def write(self, taken: Taken) -> None:
        """The rest of it, which completes it."""
        taken.stored.write()
        self.complete = taken

    def notify(self, taken: Taken, first: int = 0) -> None:
        """Notify the subtasks from `first` on of its completion."""
        for subtask in self._subtasks[first:]:
            subtask.notify_complete(taken.number)

    def checkpoint(self) -> None:
        """All of it."""
        taken = self.trigger()
        self.write(taken)
        self.notify(taken)

    def crash(self, parallelism: int, *, killed: bool) -> list[Operator]:
        """Lose the subtasks, and with the process the job's place, and restore the latest complete checkpoint.

        Returns:
            The lost subtasks; one that was not closed acts as a process that has only stalled.
        """
        lost = self._subtasks
        self._attempt += 1
        if killed:
            self._release()
            self._attempt, self._run = 0, f"{self._run} again"
            self._number = 1 if self.complete is None else self.complete.number + 1
            self._hold()
        self._start(parallelism)
        self.offset = self.completed
        try:
            self._restore()
        except BaseException:
            for subtask in lost:  # the caller does not get them
                subtask.close()
            raise
        return lost

    def _restore(self) -> None:
        if self.complete is None:
            return
        restored = self.complete.stored.restored()
        if any(restored):
            self.sink.check_restore(self.context, restored)
        for subtask in self._subtasks:
            subtask.restore(self.complete.stored.restored())

    def close(self) -> None:
        """End the job."""
        for subtask in self._subtasks:
            subtask.close()
        self._release()

    def seen(self) -> list[tuple[int, int]]:
        """The rows that a reader of the place sees, sorted.

        Raises:
            ContractError: something else than (key, value) of rows.
        """
        found = [json.loads(row) if isinstance(row, str) else row for row in self._read()]
        rows = [tuple(row.values()) if isinstance(row, Mapping) else row for row in found]
        for row in rows:
            if not isinstance(row, tuple) or [type(value) for value in row] != [int, int]:
                raise ContractError(f"the reader of {self.sink.describe()!r} returns {row!r}, not a key and a value")
        return sorted(cast("list[tuple[int, int]]", rows))

    def audit(self, moment: str, *, restored: bool = False) -> None:
        """Check what a reader sees against the sink's guarantee.

        Args:
            moment: for the error.
            restored: the latest complete checkpoint has just been committed or restored.

        Raises:
            ContractError: it is not kept.
        """
        seen, sure = self.seen(), [(value % _KEYS, value) for value in range(self.completed)]
        possible = {(value % _KEYS, value) for value in range(self._furthest)}
        if strange := [row for row in seen if row not in possible]:
            raise ContractError(f"{moment} a reader sees {strange[0]}, which was never written")
        if self.sink.upsert_key:
            self._audit_keys(seen, moment)
        elif self.sink.guarantee == "exactly-once":
            if restored:
                compare(seen, sure, moment)
            elif more := sorted(set(seen) - set(sure)):
                raise ContractError(f"{moment} a reader sees {more[0]}, before its checkpoint is complete")
        elif restored and self.sink.guarantee == "at-least-once":
            compare(set(seen) & set(sure), sure, moment)
        if not self.sink.upsert_key and self.sink.guarantee == "at-most-once":
            compare(seen, set(seen), moment)

    def _audit_keys(self, seen: list[tuple[int, int]], moment: str) -> None:
        keys = [key for key, _ in seen]
        compare(keys, set(keys), f"{moment}, of the keys,")
        found = dict(seen)
        for key, last in {value % _KEYS: value for value in range(self.completed)}.items():
            if found.get(key, -1) < last:
                raise ContractError(
                    f"{moment} a reader sees {found.get(key)} for the key {key}, and not at least {last}"
                )

    def audit_end(self, moment: str) -> None:
        """After a checkpoint of all rows: a reader sees each row once, or of each key its last row.

        Raises:
            ContractError: anything else.
        """
        if not self.sink.upsert_key:
            return self.audit(moment, restored=True)
        return compare(
            self.seen(), {value % _KEYS: (value % _KEYS, value) for value in range(self.offset)}.values(), moment
        )

    def _start(self, parallelism: int) -> None:
        self._subtasks = [self.sink.create(SINK_SCHEMA) for _ in range(parallelism)]
        for index, subtask in enumerate(self._subtasks):
            subtask.open(
                OperatorContext(
                    job=_JOB,
                    uid=_UID,
                    subtask=index,
                    parallelism=parallelism,
                    attempt=self._attempt,
                    run=self._run,
                    clock=self._clock,
                )
            )

    def _hold(self) -> None:
        self._held = self.sink.hold(self.context)

    def _release(self) -> None:
        if self._held is not None:
            self._held.release()
            self._held = None
