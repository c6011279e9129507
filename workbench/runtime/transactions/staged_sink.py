"""A sink under transactions: its rows wait in the store until a checkpoint takes them over.

A sink writes in two phases at checkpoints. Between two of them its rows are part of the transactions that produced
them. A checkpoint hands the rows before its barrier to the sink, which pre-commits them in its snapshot; once the
checkpoint is complete, the store forgets them. A sink that is restored gets the rows that its checkpoint lacks again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from workbench.elements import Records
from workbench.operators.contract.base import EventTimeOutput, Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.outage import Outage


class StagedSink(Operator):
    """Passes rows to a sink at its snapshots.

    Args:
        uid: of the sink.
        sink: its operator.

    Attributes:
        fresh: rows that are in no transaction yet, with their numbers.
        mark: writes that rows up to a number belong to a checkpoint; set by the task.
        written: rows up to this number are committed.
    """

    def __init__(self, uid: str, sink: Operator) -> None:
        self.uid = uid
        self._sink = sink
        self.fresh: list[tuple[str, int, Records]] = []
        self.mark: Callable[[str, int, int], None] = lambda uid, checkpoint_id, number: None
        self.written = 0
        self._waiting: deque[Records] = deque()
        self._last = 0
        self._flushed: dict[int, int] = {}

    @property
    def outage(self) -> Outage | None:
        return self._sink.outage

    def hurry(self) -> None:
        self._sink.hurry()

    def give_up(self) -> None:
        self._sink.give_up()

    def take_over(self, rows: Sequence[tuple[str, int, Records]], flushed: Mapping[int, int], latest: int) -> None:
        """Continue with the rows in the store; the sink was restored from checkpoint `latest`, 0 if from none."""
        self.written = max((number for checkpoint, number in flushed.items() if checkpoint <= latest), default=0)
        own = [(number, records) for uid, number, records in rows if uid == self.uid]
        self._last = max([number for number, _ in own] + [self.written, *flushed.values()])
        self._waiting.extend(records for number, records in own if number > self.written)

    def open(self, context: OperatorContext) -> None:
        self._sink.open(context)

    def process(self, records: Records, port: int, out: Output) -> None:
        self._last += 1
        self.fresh.append((self.uid, self._last, records))
        self._waiting.append(records)

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        while self._waiting:
            self._sink.process(self._waiting.popleft(), 0, _NOWHERE)
        self._flushed[checkpoint_id] = self._last
        self.mark(self.uid, checkpoint_id, self._last)
        return self._sink.snapshot(checkpoint_id)

    def notify_complete(self, checkpoint_id: int) -> None:
        self._sink.notify_complete(checkpoint_id)
        for earlier in [each for each in self._flushed if each <= checkpoint_id]:
            self.written = max(self.written, self._flushed.pop(earlier))

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._sink.restore(snapshots)

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        self._sink.on_watermark(watermark_us, out)

    def on_idle(self, idle: bool, out: EventTimeOutput) -> None:
        self._sink.on_idle(idle, out)

    def ready(self) -> bool:
        return self._sink.ready()

    def next_time_us(self) -> int | None:
        return self._sink.next_time_us()

    def on_time(self, now_us: int, out: Output) -> None:
        self._sink.on_time(now_us, out)

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        return self._sink.query(key)

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        return self._sink.query_keys(limit)

    def close(self) -> None:
        self.mark = lambda uid, checkpoint_id, number: None
        self._sink.close()


class _Nowhere:
    """The output of a sink, which emits nothing."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a sink has no output, and called {name}")


_NOWHERE: Any = _Nowhere()
