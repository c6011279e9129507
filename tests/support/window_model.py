"""What windows promise, said record by record with dictionaries and lists; shares no code with the operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from workbench.clock import VirtualClock
from workbench.durations import MAX_TIME, NO_TIME
from workbench.elements import Records
from workbench.operators.contract.base import OperatorContext
from workbench.state.key_groups import KeyPartitioner

SCHEMA = pa.schema({"k": pa.string(), "v": pa.int64()})


class Collected:
    """An output that keeps what is emitted."""

    def __init__(self) -> None:
        self.rows: list[tuple] = []
        self.late: list[tuple] = []
        self.times: list[int | None] = []
        self.watermarks: list[int] = []

    def emit(self, records: Records) -> None:
        self.rows += rows_of(records.batch)
        self.times += [None] * len(records) if records.timestamps is None else records.timestamps.tolist()

    def emit_watermark(self, watermark_us: int) -> None:
        self.watermarks.append(watermark_us)

    def emit_side(self, tag: str, records: Records) -> None:
        assert tag == "late"
        self.late += zip(*(c.to_pylist() for c in records.batch.columns), records.timestamps.tolist(), strict=True)


def rows_of(batch: pa.RecordBatch) -> list[tuple]:
    """Rows as tuples, times as microseconds, lists as tuples."""
    columns = [c.view(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in batch.columns]
    values = ([tuple(v) if isinstance(v, list) else v for v in c.to_pylist()] for c in columns)
    return list(zip(*values, strict=True))


def records(rows: list[tuple], timed: bool = True) -> Records:
    """Rows are (key, value, event time)."""
    keys, values, times = zip(*rows, strict=True) if rows else ([], [], [])
    batch = pa.RecordBatch.from_arrays([pa.array(keys, pa.string()), pa.array(values, pa.int64())], schema=SCHEMA)
    return Records(batch, np.array(times, np.int64) if timed else None)


class Running:
    """One or several subtasks of an operator, driven by hand."""

    def __init__(self, spec) -> None:
        self.spec = spec
        self.clock = VirtualClock()
        self.operators = [self._opened(0, 1)]

    def _opened(self, subtask: int, parallelism: int):
        operator = self.spec.create([SCHEMA])
        operator.open(OperatorContext(subtask=subtask, parallelism=parallelism, clock=self.clock))
        return operator

    def process(self, rows: list[tuple], out: Collected, timed: bool = True) -> None:
        everything = records(rows, timed)
        parts = [everything] + [None] * (len(self.operators) - 1)
        if self.spec.keys:
            parts = KeyPartitioner(["k"], SCHEMA, len(self.operators)).split(everything)
        for operator, part in zip(self.operators, parts, strict=True):
            if part is not None:
                operator.process(part, 0, out)

    def watermark(self, watermark_us: int, out: Collected) -> None:
        for operator in self.operators:
            operator.on_watermark(watermark_us, out)

    def advance(self, now_us: int, out: Collected) -> None:
        """Let the clock go on as a task does: stop wherever an operator wants to be called."""
        while True:
            due = [at for op in self.operators if (at := op.next_time_us()) is not None and at <= now_us]
            self.clock.advance_to(min(due, default=now_us))
            if not due:
                return
            for operator in self.operators:
                at = operator.next_time_us()
                if at is not None and at <= self.clock.now_us():
                    operator.on_time(self.clock.now_us(), out)

    def restore(self, parallelism: int) -> None:
        """Take snapshots, go on with the old operators to see that snapshots are copies, then start from them."""
        snapshots = [operator.snapshot(1) for operator in self.operators]
        for operator in self.operators:
            operator.process(records([("a", 1, 10**6), ("e", 2, 10**6)]), 0, Collected())
            operator.on_watermark(10**6, Collected())
        self.operators = [self._opened(subtask, parallelism) for subtask in range(parallelism)]
        for operator in self.operators:
            operator.restore(snapshots)


@dataclass
class State:
    """One window of one key."""

    key: object
    start: int
    end: int
    number: int
    rows: list[tuple] = field(default_factory=list)  # (value, time, arrival)
    pending: bool = False
    seen: int = 0
    early: int | None = None


@dataclass
class Model:
    """Windows of time, fired at their end, early, or by count.

    Attributes:
        windows: of a time; None: sessions.
        gap: of sessions.
        clock: whether windows are in processing time.
        on_processing: whether the end is told by the clock.
    """

    windows: Callable[[int], list[tuple[int, int]]] | None
    result: Callable[[list[tuple]], tuple]
    keyed: bool = True
    gap: int = 0
    lateness: int = 0
    by_clock: bool = False
    end: str = "window"
    count: int | None = None
    every: int | None = None
    every_in: str = "processing"
    purge: bool = False
    evict: Callable[[list[tuple]], list[tuple]] | None = None
    watermark: int = NO_TIME
    now: int = 0
    states: list[State] = field(default_factory=list)
    made: int = 0
    arrived: int = 0

    def _passed(self, by_clock: bool, time: int) -> bool:
        """Whether `time` - 1 has been reached."""
        return time <= self.now if by_clock else time - 1 <= self.watermark

    def _closed(self, end: int) -> bool:
        return self._passed(self.by_clock, end + self.lateness)

    def _over(self, state: State) -> bool:
        if self.end == "never":
            return False
        by_clock = self.by_clock if self.end == "window" else self.end == "processing"
        return self._passed(by_clock, state.end)

    def _row(self, state: State) -> tuple:
        if self.evict is not None:
            state.rows = self.evict(state.rows)
        row = (*([state.key] if self.keyed else []), state.start, state.end, *self.result(state.rows))
        if self.purge:
            state.rows, state.pending, state.early = [], False, None
        return row

    def process(self, rows: list[tuple]) -> tuple[list[tuple], list[tuple]]:
        """What is emitted and what is late."""
        fired = self._due()
        late = []
        for key, value, time in rows:
            if self.by_clock:
                time = self.now
            elif time == NO_TIME:
                continue
            group = key if self.keyed else None
            found = self._sessions(group, time) if self.windows is None else self._fixed(group, time)
            if found is None:
                late.append((key, value, time))
                continue
            for state in found:
                self.arrived += 1
                state.rows.append((value, time, self.arrived))
                state.pending = True
                if self.every is not None:
                    since = self.now if self.every_in == "processing" else max(time, self.watermark)
                    moment = since - since % self.every + self.every
                    state.early = moment if state.early is None else min(state.early, moment)
                state.seen += 1
                if self.count is not None and state.seen >= self.count:
                    state.seen = 0
                    fired.append(self._row(state))
        return fired + self._due(), late

    def _find(self, group: object, start: int, end: int) -> State:
        for state in self.states:
            if (state.key, state.start, state.end) == (group, start, end):
                return state
        self.made += 1
        self.states.append(State(group, start, end, self.made))
        return self.states[-1]

    def _fixed(self, group: object, time: int) -> list[State] | None:
        windows = self.windows(time)
        live = [window for window in windows if not self._closed(window[1])]
        if windows and not live:
            return None
        return [self._find(group, *window) for window in live]

    def _sessions(self, group: object, time: int) -> list[State] | None:
        start, end = time, time + self.gap
        met = [
            s for s in self.states if s.key == group and not self._closed(s.end) and s.start <= end and start <= s.end
        ]
        if not met:
            return None if self._closed(end) else [self._find(group, start, end)]
        kept = min(met, key=lambda s: s.number)
        for other in met:
            if other is not kept:
                kept.rows = sorted(kept.rows + other.rows, key=lambda row: row[2])
                kept.seen += other.seen
                kept.early = min((e for e in (kept.early, other.early) if e is not None), default=None)
                self.states.remove(other)
        kept.start = min([start, *(s.start for s in met)])
        kept.end = max([end, *(s.end for s in met)])
        return [kept]

    def _due(self) -> list[tuple]:
        due = []
        for state in self.states:
            at_end = state.pending and self._over(state)
            early = state.early is not None and self._passed(self.every_in == "processing", state.early)
            if at_end:
                state.pending = False
            if at_end or early:
                state.early = None
                due.append(state)
        fired = [self._row(state) for state in sorted(due, key=lambda s: (s.end, s.number))]
        self.states = [state for state in self.states if not self._closed(state.end)]
        return fired

    def advance_watermark(self, watermark: int) -> list[tuple]:
        """What fires when the watermark comes; a session in event time waits for a record at its very end."""
        if self.windows is None and not self.by_clock and watermark != MAX_TIME:
            watermark -= 1
        self.watermark = max(self.watermark, watermark)
        if watermark == MAX_TIME:
            self.now = MAX_TIME
        return self._due()

    def advance_clock(self, now: int) -> list[tuple]:
        """What fires until the clock shows `now`, moment by moment."""
        fired = []
        while self.now < now:
            self.now += 1
            fired += self._due()
        return fired
