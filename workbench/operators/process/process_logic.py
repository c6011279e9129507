"""The operator logic of keyed process functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from workbench.durations import LATEST_TIME, MAX_TIME, NO_TIME, format_instant
from workbench.elements import Int64s, Records
from workbench.errors import JobError, RecordError, unknown
from workbench.operators.aggregates.grouping import one_key
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.functions.dead_letters import TAG, PoisonRecords
from workbench.operators.functions.record_loop import CHUNK, LoopError, add_rows, chunks, process_loop
from workbench.operators.functions.user_function import UserFunction, declared_schema
from workbench.operators.process.process_function import ProcessContext, ProcessFunction, keys_as_python
from workbench.operators.process.process_side import SideOutputs
from workbench.operators.snapshots.keyed_snapshot import key_rows, owned_parts, owned_table
from workbench.operators.snapshots.pieces import fitting_keys, numbers_in, table_in, value_in
from workbench.raised import PASSING, message_of, shown
from workbench.state.expiring import Moment
from workbench.state.key_index import KeyIndex
from workbench.state.keyed_states import KeyedStates, StatesInMemory, with_keys
from workbench.state.layout import State, StateLayout, StateTypeError
from workbench.state.states_on_disk import StatesOnDisk
from workbench.state.timers import Timers

if TYPE_CHECKING:
    from workbench.operators.process.process import Process

_NOT_DECLARED = re.compile(r"'State' object has no attribute '(\w+)'( and no __dict__ .*)?")  # from Python 3.13 on
_EXPECTED = "None, a dict or an iterable of dicts"
_AT_THE_END = 1_000_000  # timers set by timers after the last record, until it looks like a mistake


class ProcessLogic(Operator):
    """State: that of each key, its timers, and the watermark, which functions can read."""

    _context_type: type[ProcessContext] = ProcessContext

    def __init__(self, spec: Process, schema: pa.Schema) -> None:
        self._spec = spec
        self._input_schema = schema
        self._output_schema = declared_schema(spec.schema, spec.kind, spec.origin)
        self._user = UserFunction(spec.kind, spec.function, spec.origin)
        self._moment = Moment()
        self._layout = StateLayout(spec.declared_state(), self._moment)
        self._event_timers = Timers()
        self._processing_timers = Timers()
        self._wants_context = spec.wants_context()
        self._loop = process_loop(schema, self._output_schema, with_context=self._wants_context)
        self._add = add_rows(self._output_schema)
        self._side = SideOutputs({tag: item for tag, item in spec.side_schemas([schema]).items() if tag != TAG})
        self._poison = PoisonRecords(spec.on_error, self._user)
        self._has_event_times: bool | None = None  # of the stream; None before the first record

    def open(self, context: OperatorContext) -> None:
        self._operator = context
        self._poison.open(context)
        self._moment.us = context.clock.now_us()
        self._states: KeyedStates = self._open_states()
        function = copy(self._spec.function)  # for this subtask alone
        self._on_timer: Callable[..., Any] | None = None
        self._close: Callable[[], None] | None = None
        self._function: Callable[..., Any]
        if isinstance(function, ProcessFunction):
            self._call(function.open, "in open()")
            self._function, self._close = self._bound(function), function.close
            if type(function).on_timer is not ProcessFunction.on_timer:
                self._on_timer = function.on_timer
        else:
            self._function = function
        self._context = self._context_type(
            context.clock,
            self._states.index,
            self._event_timers,
            self._processing_timers,
            self._output,
            has_timers=self._on_timer is not None,
        )

    def _bound(self, function: ProcessFunction) -> Callable[..., Any]:
        """The callable for each record."""
        return function.process

    def _open_states(self) -> KeyedStates:
        keys, schema = self._spec.keys, self._input_schema
        if self._spec.state_backend == "disk":
            columns = pa.schema([schema.field(name) for name in keys])
            return StatesOnDisk(KeyIndex(keys, schema), self._layout, columns)
        return StatesInMemory(KeyIndex(keys, schema), self._layout)

    def close(self) -> None:
        if hasattr(self, "_states"):
            self._states.close()
        if getattr(self, "_close", None) is not None:
            close, self._close = self._close, None
            assert close is not None
            self._call(close, "in close()")

    def _call(self, method: Callable[[], None], where: str) -> None:
        try:
            method()
        except PASSING:
            raise
        except BaseException as error:
            failed = self._user.raised(error, where)
            if isinstance(error, Exception):
                raise failed from error
            raise JobError(failed.message, origin=failed.origin) from error  # as `as_error` does

    # records -----------------------------------------------------------------------------------------------------

    def process(self, records: Records, port: int, out: Output) -> None:
        self._moment.us = self._operator.clock.now_us()
        codes = self._states.codes(records.batch)
        self._handle(records, codes, self._states.objects, self._loop, self._function, self._context, out)

    def _handle(
        self,
        records: Records,
        codes: Int64s,
        states: Sequence[State],
        loop: Callable[..., None],
        function: Callable[..., Any],
        context: ProcessContext,
        out: Output,
    ) -> None:
        """Call a function for each record with ``states[code]``, and emit the results."""
        self._has_event_times = records.timestamps is not None
        context.domain = None
        add = self._add

        def processed(part: Records, codes: Int64s, first: int) -> Records:
            times = part.timestamps
            made: list[list[Any]] = [[] for _ in self._output_schema]
            odd: list[tuple[int, int]] = []

            def call(values: Sequence[list[Any]]) -> None:
                *columns, codes, moments = values
                loop(function, columns, codes, states, made, add, odd, context, moments)

            def rows_before(at: int, failures: int) -> int:
                before = at - len(odd) + sum(rows for _, rows in odd)
                odd.append((before, 0))
                return before

            def key_of(at: int) -> Any:
                return self._key(int(codes[at]))

            columns = self._user.values(part.batch)
            values = [*columns, codes.tolist(), _as_python(times, len(part))]
            self._poison.loop(part, values, call, made, rows_before, self._explained, first, key_of)
            parents = np.repeat(np.arange(len(part)), _rows_per_record(len(part), odd)) if odd else None
            rows, parents = self._poison.batch(part, made, self._output_schema, parents, first, key_of)
            return Records(rows, times if times is None or parents is None else times[parents])

        if records:
            parts = [processed(records.slice(at, CHUNK), codes[at : at + CHUNK], at) for at in chunks(records)]
            out.emit(Records.concat(parts))
            self._poison.send(out, with_times=self._has_event_times)
        self._settle(out)

    def _explained(self, failure: LoopError) -> RecordError:
        assert failure.code is not None
        error = failure.cause
        where = f"for key {shown(self._key(failure.code))} on record {shown(failure.record)}"
        return self._failure(error, where)

    def _failure(self, error: BaseException, where: str) -> RecordError:
        if type(error) is AttributeError and (found := _NOT_DECLARED.fullmatch(message_of(error))):
            return self._user.error(f"uses {unknown('state', found[1], self._layout.fields)}, {where}")
        return self._user.explained(error, where, self._output_schema, _EXPECTED)

    def _key(self, code: int) -> Any:
        return keys_as_python(self._states.index, 0, np.array([code]))[0]

    def _output(self, tag: str, record: Any) -> None:
        context = self._context
        time = context.timestamp if context.domain != "processing" else None
        self._side.add(tag, record, NO_TIME if time is None else min(time, LATEST_TIME), context.key)

    def _settle(self, out: Output) -> None:
        """Emit what was sent to side outputs, and release memory."""
        for tag, records in self._side.take(self._user, bool(self._has_event_times)):
            out.emit_side(tag, records)
        mapping = self._states.settle(self._keys_with_timers)
        if mapping is not None:
            self._event_timers.recode(mapping)
            self._processing_timers.recode(mapping)
            self._context._recoded()

    def _keys_with_timers(self) -> Int64s:
        return np.concatenate([self._event_timers.arrays()[1], self._processing_timers.arrays()[1]])

    # timers ------------------------------------------------------------------------------------------------------

    def on_watermark(self, watermark_us: int, out: Output) -> None:
        self._context.watermark = watermark_us
        if len(self._event_timers) and self._event_timers.next_us <= watermark_us:
            self._fire(self._event_timers, watermark_us, "event", out)

    def next_time_us(self) -> int | None:
        due = self._processing_timers.next_us
        return None if due > LATEST_TIME else due

    def on_time(self, now_us: int, out: Output) -> None:
        self._fire(self._processing_timers, now_us, "processing", out)

    def _fire(self, timers: Timers, until_us: int, domain: Literal["event", "processing"], out: Output) -> None:
        """Call ``on_timer`` for all timers up to a time, in order, including those that are set meanwhile."""
        on_timer = self._on_timer
        assert on_timer is not None
        self._moment.us = self._operator.clock.now_us()
        context, objects = self._context, self._states.objects
        context.domain = domain
        made: list[list[Any]] = [[] for _ in self._output_schema]
        times: list[int] = []
        parents: list[tuple[int, int]] = []
        fired, allowed = 0, len(timers) + _AT_THE_END if until_us == MAX_TIME else None
        while (timer := timers.pop(until_us)) is not None:
            time_us, code = timer
            context.timestamp, context._code = time_us, code
            before = len(made[0])
            try:
                self._add(on_timer(time_us, objects[code], context), made)
            except PASSING:
                raise
            except BaseException as error:
                raise self._failure(error, self._on_timer_of(timer)) from error
            rows = len(made[0]) - before
            if rows:
                times += repeat(min(time_us, LATEST_TIME) if domain == "event" else NO_TIME, rows)
                parents += repeat(timer, rows)
            fired += 1
            if fired == allowed:
                raise self._user.error(
                    f"set {_AT_THE_END:,} timers in on_timer after the last record and would continue forever: set "
                    "none when ctx.watermark has reached the end of time, 2**63 - 1"
                )
        self._operator.counters.numFiredTimers += fired
        if times:
            batch = self._user.batch(made, self._output_schema, lambda at: self._on_timer_of(parents[at]))
            out.emit(Records(batch, np.array(times, np.int64) if self._has_event_times else None))
        self._settle(out)

    def _on_timer_of(self, timer: tuple[int, int]) -> str:
        time_us, code = timer
        return f"in on_timer at {format_instant(time_us)} for key {shown(self._key(code))}"

    # snapshots ---------------------------------------------------------------------------------------------------

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        self._moment.us = self._operator.clock.now_us()
        try:
            states = self._states.table()
        except StateTypeError as error:
            raise self._user.error(
                f"left {shown(error.value)} in state.{error.name}, which is declared as {error.kind}, "
                f"for key {shown(self._key(error.at))}"
            ) from None
        return {
            "states": states,
            "event_timers": self._timers_table(self._event_timers),
            "processing_timers": self._timers_table(self._processing_timers),
            "watermark": self._context.watermark,
            "has_event_times": self._has_event_times,
        }

    def _timers_table(self, timers: Timers) -> pa.Table:
        times, codes = timers.arrays()
        return with_keys(self._states.index.keys_table(codes), [pa.array(times)], ["time"])

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        keys = self._spec.keys
        self._context.watermark = lowest_watermark(snapshots)
        told = {
            value_in(each, "has_event_times", bool) for each in snapshots if each.get("has_event_times") is not None
        }
        self._has_event_times = True in told if told else None
        for snapshot in snapshots:
            if "states" in snapshot:
                self._layout.check(table_in(snapshot, "states").schema, self._operator.uid)
                self._layout.check_times(table_in(snapshot, "states"))
        for rows in owned_parts(snapshots, "states", keys, self._operator):
            self._states.load(rows, fitting_keys(self._states.index, key_rows(rows, keys)))
        for name, timers in (("event_timers", self._event_timers), ("processing_timers", self._processing_timers)):
            rows = owned_table(snapshots, name, keys, self._operator)
            if rows is not None:
                codes: Int64s = self._states.codes(fitting_keys(self._states.index, key_rows(rows, keys)))
                for time_us, code in zip(numbers_in(rows, "time").tolist(), codes.tolist(), strict=True):
                    timers.add(time_us, code)
        if self._on_timer is None and (len(self._event_timers) or len(self._processing_timers)):
            raise self._user.error("has timers in the checkpoint but no on_timer: define it as before")

    def query(self, key: Mapping[str, object]) -> Mapping[str, object] | None:
        self._moment.us = self._operator.clock.now_us()
        state = self._states.find(one_key(self._spec.keys, self._input_schema, key))
        return None if state is None else self._layout.shown(state)

    def query_keys(self, limit: int) -> tuple[int, Sequence[Mapping[str, object]]]:
        self._moment.us = self._operator.clock.now_us()
        return self._states.keys(limit)


def lowest_watermark(snapshots: Sequence[Snapshot]) -> int:
    """The lowest watermark of all former subtasks."""
    marks = [value_in(snapshot, "watermark", int) for snapshot in snapshots if "watermark" in snapshot]
    return min(marks, default=NO_TIME)


def _as_python(times: Int64s | None, records: int) -> list[int | None]:
    """Event times for this many records, None if there is none."""
    if times is None:
        return [None] * records
    values = times.tolist()
    return [None if time == NO_TIME else time for time in values] if (times == NO_TIME).any() else values


def _rows_per_record(records: int, odd: Sequence[tuple[int, int]]) -> Int64s:
    """Shape (records,): the number of rows of each record: 1, except where `odd` has (rows before it, rows)."""
    counts = np.ones(records, np.int64)
    before, rows = np.array(odd, np.int64).T
    # Between two odd records there are as many records as rows.
    at = before - np.cumsum(rows) + rows + np.arange(len(odd))
    counts[at] = rows
    return counts
