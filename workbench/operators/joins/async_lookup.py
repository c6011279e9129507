"""Call a function for each record's key without waiting for the answers: enrichment from a service or database.

At most `concurrency` calls are pending at a time, one for each distinct key of a batch. While further calls have to
wait, the operator is not ``ready``, so its task takes no input: a slow service causes backpressure. Answers are polled
for at certain times (``next_time_us``); the operator never blocks.

Watermarks keep their place among the records (the operator emits them itself): *ordered* results come in the order
of the records; otherwise as answers arrive, but never across a watermark. Records without an answer are part of the
snapshot; after a recovery the function is called for their keys again, so a repeated call should be harmless.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.arguments import true_or_false, whole_number
from workbench.durations import MAX_TIME, format_duration
from workbench.elements import Int64s, Mask, Records
from workbench.errors import PlanError, RecordError, SettingError, WorkbenchError, sentence_of
from workbench.operators.contract.base import EventTimeOutput, Operator, OperatorContext, Output, Snapshot
from workbench.operators.contract.executor import Answer, Inline
from workbench.operators.contract.outage import Outage
from workbench.operators.functions.lookup_table import LookupTable, OpenTable
from workbench.operators.functions.user_function import SchemaLike, UserFunction, declared_schema, function_name
from workbench.operators.joins.lookup_batch import LookupBatch
from workbench.operators.snapshots.pieces import table_in
from workbench.operators.snapshots.saved_rows import restored_rows, saved_rows, together
from workbench.origin import Origin
from workbench.raised import PASSING, kind_of, shown
from workbench.state.key_columns import check_keys

_LOOKS = 8  # polls between a call and its answer, about; polling adds an eighth to the time that an answer takes
_CACHED_KEYS_MAX = 100_000
_PAUSE_US_MIN, _PAUSE_US_MAX = 100, 5_000  # between two polls


@dataclass(frozen=True)
class AsyncLookup:
    """Adds a function's answer about its key to each record (see the module).

    Attributes:
        function: called with the values of the key columns; a function or coroutine function. It returns a dict of
            exactly the columns of `schema`, or None if it has no answer. Or a table that rows are looked up in.
        keys: the columns whose values it receives; it is not called for records with a null among them.
        schema: the columns that the answers add.
        concurrency: how many calls may be pending at a time, in each subtask.
        timeout_us: a call that takes longer fails the task; not while a table repeats calls to a server that is away.
        ordered: whether results keep the order of the records, or come as answers arrive.
        drop_unknown: drop records without an answer; otherwise they get nulls.
        cache_us: how long an answer holds for later records with the same key; 0: for those of its batch alone.
        origin: the user's line, for errors.

    Raises:
        SettingError: a concurrency or timeout that is not above zero.
        RecordError: while running: the function raised, took too long, or returned something else.
    """

    kind: ClassVar[str] = "lookup"
    function: Callable[..., Any] | LookupTable
    keys: tuple[str, ...]
    schema: SchemaLike
    concurrency: int = 16
    timeout_us: int = 5_000_000
    ordered: bool = True
    drop_unknown: bool = False
    cache_us: int = 0
    origin: Origin | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        true_or_false(self.ordered, "ordered")
        if whole_number(self.concurrency, "concurrency", -(2**63)) < 1:
            raise SettingError(f"concurrency is {self.concurrency}: at least one call must be allowed at a time")
        if self.timeout_us <= 0:
            raise SettingError("timeout is 0: a call needs some time, for example '5s'")

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The input's columns, then those of the answers.

        Raises:
            PlanError: no key, a column that cannot be a key, or an answer's column whose name is taken.
        """
        if not self.keys:
            raise PlanError("lookup_async needs at least one key column: write for example key='origin'")
        check_keys(self.keys, inputs[0])
        if isinstance(self.function, LookupTable):
            self.function.check_keys(len(self.keys))
        added = declared_schema(self.schema, "lookup_async", self.origin)
        for name in added.names:
            if name in inputs[0].names:
                raise PlanError(
                    f"lookup_async adds a column {name!r}, which the stream already has: give it another name"
                )
        return pa.schema([*inputs[0], *(pa.field(item.name, item.type) for item in added)])

    def describe(self) -> str:
        keys = ", ".join(self.keys)
        if isinstance(self.function, LookupTable):
            return f"{keys} in {self.function.describe()}, {self.concurrency} at a time"
        return f"{function_name(self.function)}({keys}), {self.concurrency} at a time"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _AsyncLookup(self, inputs[0])


@dataclass(slots=True)
class _Call:
    """A pending call."""

    batch: LookupBatch
    code: int
    answer: Answer
    since_us: int


class _AsyncLookup(Operator):
    """State: the records that have not been emitted, with the watermarks between them."""

    tells_event_time = True

    def __init__(self, spec: AsyncLookup, schema: pa.Schema) -> None:
        self._spec = spec
        self._input_schema = schema
        self._output_schema = spec.output_schema([schema])
        self._added = pa.schema(list(self._output_schema)[len(schema) :])
        self._user = UserFunction("lookup_async", spec.function, spec.origin)
        self._table: OpenTable | None = None
        self._find: Callable[..., Any]
        self._queue: deque[LookupBatch | int] = deque()  # batches, and watermarks behind them
        self._unasked: deque[tuple[LookupBatch, int]] = deque()
        self._calls: list[_Call] = []
        self._ended = False
        self._idle = False
        self._told_idle = False
        self._looked_us = 0
        self._cache: dict[tuple[Any, ...], tuple[int, Mapping[str, Any] | None]] = {}  # the oldest answer first

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._executor = context.executor or Inline()
        if isinstance(self._spec.function, LookupTable):
            self._table = self._spec.function.open()
            self._find = self._table.find
        else:
            self._find = self._spec.function

    def close(self) -> None:
        if self._table is not None:
            self._table.close()
            self._table = None

    @property
    def outage(self) -> Outage | None:
        return None if (table := self._table) is None else table.outage

    def hurry(self) -> None:
        if (table := self._table) is not None:
            table.hurry()

    def give_up(self) -> None:
        if (table := self._table) is not None:
            table.give_up()

    def ready(self) -> bool:
        """Whether it accepts further records; at the end of the input no result passes those that still wait."""
        if self._ended:
            return not self._queue
        concurrency = self._spec.concurrency
        return not self._unasked and len(self._calls) < concurrency and len(self._queue) < 2 * concurrency

    def process(self, records: Records, port: int, out: Output) -> None:
        self._take(records)
        self._work(out)

    def _take(self, records: Records) -> None:
        batch = LookupBatch(records, self._spec.keys)
        self._queue.append(batch)
        asked = range(len(batch.keys)) if not self._cache else self._answer_from_cache(batch)
        self._unasked.extend((batch, code) for code in asked)

    def _answer_from_cache(self, batch: LookupBatch) -> list[int]:
        """The codes of the keys without a cached answer."""
        oldest_us = self._context.clock.now_us() - self._spec.cache_us
        unknown = []
        for code, key in enumerate(batch.keys):
            since_us, answer = self._cache.get(key, (oldest_us, None))
            if since_us > oldest_us:
                batch.answers[code] = answer
                batch.answered[code] = True
            else:
                unknown.append(code)
        return unknown

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        self._ended = watermark_us == MAX_TIME
        if self._queue and isinstance(self._queue[-1], int):
            self._queue.pop()
        self._queue.append(watermark_us)
        self._work(out)

    def on_idle(self, idle: bool, out: EventTimeOutput) -> None:
        """Idleness is announced when no lookup is pending: their results must not be late downstream."""
        self._idle = idle
        self._tell_idle(out)

    def _tell_idle(self, out: EventTimeOutput) -> None:
        if self._idle != self._told_idle and not (self._idle and self._queue):
            self._told_idle = self._idle
            out.emit_idle(self._idle)

    def next_time_us(self) -> int | None:
        if not self._queue:
            return None
        waited_us = self._looked_us - self._calls[0].since_us if self._calls else 0
        return self._looked_us + min(max(waited_us // _LOOKS, _PAUSE_US_MIN), _PAUSE_US_MAX)

    def on_time(self, now_us: int, out: Output) -> None:
        self._work(out)

    def _work(self, out: Output) -> None:
        """Collect the available answers, make the next calls, and emit what is complete."""
        self._looked_us = self._context.clock.now_us()
        self._collect()
        while self._ask():
            self._collect()
        self._send_on(out)
        if self._idle:
            self._tell_idle(out)  # type: ignore[arg-type]

    def _ask(self) -> bool:
        room = self._spec.concurrency - len(self._calls)
        for _ in range(min(room, len(self._unasked))):
            batch, code = self._unasked.popleft()
            answer = self._executor.submit(self._find, *batch.keys[code])
            self._calls.append(_Call(batch, code, answer, self._looked_us))
        return bool(self._calls) and self._calls[-1].answer.done()

    def _collect(self) -> None:
        waiting = []
        for call in self._calls:
            if call.answer.done():
                self._accept(call)
            elif self._looked_us - call.since_us > self._spec.timeout_us and self.outage is None:
                raise self._user.error(
                    f"has not answered within {format_duration(self._spec.timeout_us)} {self._about(call)}: raise the "
                    "timeout, or find out why it is slow"
                )
            else:
                waiting.append(call)
        self._calls = waiting

    def _accept(self, call: _Call) -> None:
        try:
            answer = call.answer.result()
        except PASSING:
            raise
        except BaseException as error:
            if self._table is not None and isinstance(error, WorkbenchError):
                text = f"lookup_async {self._about(call)}: {sentence_of(error)}"
                raise RecordError(text, origin=self._spec.origin) from error
            raise self._user.raised(error, f"when called with the key {self._key_of(call.batch, call.code)}") from error
        names = self._added.names
        if answer is not None and not (isinstance(answer, Mapping) and answer.keys() == set(names)):
            raise self._user.error(
                f"returned {shown(answer)} ({kind_of(answer)}), expected a dict with the columns "
                f"{', '.join(names)} or None, {self._about(call)}"
            )
        call.batch.answers[call.code] = answer
        call.batch.answered[call.code] = True
        if self._spec.cache_us:
            key = call.batch.keys[call.code]
            self._cache.pop(key, None)
            if len(self._cache) >= _CACHED_KEYS_MAX:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = (call.since_us, answer)

    def _about(self, call: _Call) -> str:
        return f"for {self._key_of(call.batch, call.code)}"

    def _key_of(self, batch: LookupBatch, code: int) -> str:
        pairs = zip(self._spec.keys, batch.keys[code], strict=True)
        return ", ".join(f"{name} = {shown(value)}" for name, value in pairs)

    def _send_on(self, out: Output) -> None:
        """Emit results up to the first watermark that still has unanswered records before it."""
        kept: list[LookupBatch] = []
        while self._queue:
            item = self._queue[0]
            if isinstance(item, int):
                if kept:
                    break
                out.emit_watermark(item)  # type: ignore[attr-defined]
            else:
                self._emit(item, item.answerable(self._spec.ordered), out)
                if item.waiting.any():
                    if self._spec.ordered:
                        break
                    kept.append(item)
            self._queue.popleft()
        self._queue.extendleft(reversed(kept))

    def _emit(self, batch: LookupBatch, rows: Int64s, out: Output) -> None:
        if not len(rows):
            return
        batch.waiting[rows] = False
        codes, which = np.unique(batch.codes[rows], return_inverse=True)
        found: Mask = np.array([batch.answers[code] is not None for code in codes.tolist()])
        if self._spec.drop_unknown and not found.all():
            rows, which = rows[found[which]], which[found[which]]
        added = self._columns(batch, codes, found)
        records = batch.records
        taken = records.batch if len(rows) == len(records) else records.batch.take(pa.array(rows))
        columns = [*taken.columns, *(column.take(pa.array(which)) for column in added)]
        times = None if records.timestamps is None else records.timestamps[rows]
        out.emit(Records(pa.RecordBatch.from_arrays(columns, schema=self._output_schema), times))

    def _columns(self, batch: LookupBatch, codes: Int64s, found: Mask) -> list[pa.Array]:
        """The answers for these keys as columns, null if there is none."""
        answers = [batch.answers[code] for code in codes.tolist()]
        known = [answer for answer in answers if answer is not None]
        asked = codes[found].tolist()
        values = [[answer[name] for answer in known] for name in self._added.names]
        made = self._user.batch(values, self._added, lambda at: f"for {self._key_of(batch, asked[at])}")
        place = np.cumsum(found) - 1
        return [column.take(pa.array(place, mask=~found)) for column in made.columns]

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        waiting = [item for item in self._queue if isinstance(item, LookupBatch)]
        rows = [np.flatnonzero(item.waiting) for item in waiting]
        batches = [item.records.batch.take(pa.array(at)) for item, at in zip(waiting, rows, strict=True)]
        times = [
            pa.nulls(len(at), pa.int64()) if item.records.timestamps is None else pa.array(item.records.timestamps[at])
            for item, at in zip(waiting, rows, strict=True)
        ]
        column = pa.concat_arrays(times) if times else pa.array([], pa.int64())
        return {"waiting": saved_rows(together(batches, self._input_schema), {"time": column})}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for at, snapshot in enumerate(snapshots):
            table = table_in(snapshot, "waiting")
            if table.num_rows and at % self._context.parallelism == self._context.subtask:
                times = table.column("time").combine_chunks().cast(pa.int64())
                batch = restored_rows(table, self._input_schema, "waiting", self._context)
                self._take(Records(batch, None if times.null_count else times.to_numpy()))
