"""One function for the records of two streams, with shared state: keyed, or broadcast by one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from workbench.durations import NO_TIME
from workbench.elements import Records
from workbench.errors import PlanError, RecordError
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.functions.record_loop import LoopError, process_loop
from workbench.operators.functions.user_function import Record, SchemaLike, declared_schema, function_name
from workbench.operators.joins.columns import common_types, key_batch
from workbench.operators.process.broadcast_state import BroadcastView, SharedState, declared_broadcast
from workbench.operators.process.process import Process
from workbench.operators.process.process_function import ProcessContext, ProcessFunction, Rows, takes_context
from workbench.operators.process.process_logic import ProcessLogic, lowest_watermark
from workbench.operators.snapshots.pieces import table_in
from workbench.operators.stateless.map import Map
from workbench.origin import Origin
from workbench.raised import shown
from workbench.state.key_columns import check_keys
from workbench.state.layout import State, StateTypeError

FIRST, SECOND = 0, 1


class CoProcessFunction(ProcessFunction):
    """A function on the records of two streams: subclass it and declare its state as class attributes.

    Keyed state (`ValueState`, ...) belongs to the key of the current record, from either stream. Broadcast state
    (`BroadcastState`) belongs to no key and is the same on every subtask: only ``process2`` may change it.

    Source: Flink's ``KeyedCoProcessFunction`` and ``KeyedBroadcastProcessFunction``.

    Example:
        >>> import workbench as wb
        >>> class Alarms(wb.functions.CoProcessFunction):
        ...     limits = wb.state.BroadcastState(pa.string(), pa.float64())
        ...
        ...     def process1(self, reading, state, ctx):
        ...         if reading["value"] > ctx.broadcast.limits.get(reading["sensor"], 100.0):
        ...             return reading
        ...
        ...     def process2(self, rule, state, ctx):
        ...         state.limits[rule["sensor"]] = rule["limit"]
        >>> readings = wb.Stream.from_table(pa.table({"sensor": ["a"], "value": [7.0]}))
        >>> rules = wb.Stream.from_table(pa.table({"sensor": ["a"], "limit": [5.0]}))
        >>> readings.connect(rules.broadcast()).process(Alarms(), readings.schema).columns
        ['sensor', 'value']
    """

    def process1(self, record: Record, state: State, ctx: ConnectedContext) -> Rows:
        """Process a record of the first stream; may be defined without `ctx`.

        Args:
            record: a dict of its columns.
            state: of the record's key; without keys it is empty.
            ctx: time, timers, side outputs, and read access to the broadcast state.

        Returns:
            None, one record (a dict), or several (a list, or a generator).
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def process2(self, record: Record, state: State, ctx: ConnectedContext) -> Rows:
        """Process a record of the second stream; if that is broadcast, `state` is the broadcast state.

        Args:
            record: a dict of its columns.
            state: of the record's key, or the broadcast state, which it may change.
            ctx: time, timers and side outputs.

        Returns:
            Like ``process1``.
        """
        raise NotImplementedError(type(self).__name__)  # abstract


class ConnectedContext(ProcessContext):
    """The services for a `CoProcessFunction` in addition to its record and state.

    Source: Flink's ``KeyedCoProcessFunction.Context``.

    Attributes:
        broadcast: the broadcast state, read-only: ``ctx.broadcast.limits["a"]``.
    """

    __slots__ = ("_keyed", "broadcast")

    broadcast: BroadcastView
    _keyed: bool

    @property
    def key(self) -> Any:
        """The key: the value of the key column, a tuple of several; None if the streams are not keyed."""
        return super().key if self._keyed else None

    def _check_timers(self) -> None:
        if not self._keyed:
            raise TypeError("a timer belongs to a key, and this record has none: connect the streams with on=")
        super()._check_timers()


@dataclass(frozen=True)
class ConnectedProcess(Process):
    """Calls ``process1`` and ``process2`` of one `CoProcessFunction` for the records of two streams.

    Attributes:
        keys: the key columns of the first stream; empty when the streams are not keyed.
        other_keys: those of the second, in the same order; empty when it is broadcast.
        broadcasts: whether the second stream is broadcast.
    """

    other_keys: tuple[str, ...] = ()
    broadcasts: bool = False

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The declared schema.

        Raises:
            PlanError: keys, function, schema or state are not valid.
            SettingError: a name of state is not valid.
        """
        if not isinstance(self.function, CoProcessFunction):
            raise PlanError(
                f"process of connected streams got {self.function!r}: pass an object of a subclass of "
                "CoProcessFunction, such as Alarms()",
                origin=self.origin,
            )
        if self.broadcasts:
            check_keys(self.keys, inputs[FIRST])
        else:
            common_types(self.keys, self.other_keys, inputs[FIRST], inputs[SECOND])
        name = function_name(self.function)
        shared = declared_broadcast(self.function)
        SharedState(shared)
        if shared and not self.broadcasts:
            raise PlanError(
                f"{name} declares the broadcast state {', '.join(shared)}, but its second stream is not broadcast: "
                "connect it with connect(other.broadcast())",
                origin=self.origin,
            )
        own = self.declared_state()
        timers = type(self.function).on_timer is not ProcessFunction.on_timer
        if not self.keys and (own or timers):
            what = f"the state {', '.join(own)}" if own else "on_timer"
            raise PlanError(
                f"{name} declares {what}, which belongs to keys: name them with connect(other, on=...)",
                origin=self.origin,
            )
        self.takes_context()
        return declared_schema(self.schema, self.kind, self.origin)

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _ConnectedLogic(self, inputs)

    def sees_watermarks(self) -> bool:
        """It does if timers fire, or if a function can read event time."""
        assert isinstance(self.function, CoProcessFunction)
        return type(self.function).on_timer is not ProcessFunction.on_timer or any(self.takes_context())

    def wants_context(self) -> bool:
        """Event times are always read: one of the functions may use them."""
        return True

    def takes_context(self) -> tuple[bool, bool]:
        """Whether ``process1`` and ``process2`` take a context."""
        function = self.function
        assert isinstance(function, CoProcessFunction)
        return takes_context(function.process1, self.origin), takes_context(function.process2, self.origin)


class _ConnectedLogic(ProcessLogic):
    """State: that of a keyed process function, and the broadcast state."""

    _context_type = ConnectedContext
    _context: ConnectedContext

    def __init__(self, spec: ConnectedProcess, inputs: Sequence[pa.Schema]) -> None:
        super().__init__(spec, inputs[FIRST])
        self._port_keys = (spec.keys, spec.other_keys)
        self._broadcasts = spec.broadcasts
        self._shared = SharedState(declared_broadcast(spec.function))
        self._loops = [
            process_loop(schema, self._output_schema, with_context=wanted)
            for schema, wanted in zip(inputs, spec.takes_context(), strict=True)
        ]
        self._functions: tuple[Callable[..., Any], Callable[..., Any]]

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._context.broadcast = BroadcastView(self._shared)
        self._context._keyed = bool(self._spec.keys)

    def _bound(self, function: ProcessFunction) -> Callable[..., Any]:
        assert isinstance(function, CoProcessFunction)
        self._functions = (function.process1, function.process2)
        return function.process1

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:  # the other stream may have event times, and the output is one stream
            records = Records(records.batch, np.full(len(records), NO_TIME))
        self._moment.us = self._operator.clock.now_us()
        shared = port == SECOND and self._broadcasts
        keyed = bool(self._spec.keys) and not shared
        if keyed:
            codes = self._states.codes(key_batch(records.batch, self._port_keys[port], self._spec.keys))
        else:
            codes = np.zeros(len(records), np.int64)
        states = self._shared.states if shared else self._states.objects if keyed else [State()]
        self._context._keyed = keyed
        self._handle(records, codes, states, self._loops[port], self._functions[port], self._context, out)
        self._context._keyed = bool(self._spec.keys)

    def _explained(self, failure: LoopError) -> RecordError:
        if self._context._keyed:
            return super()._explained(failure)
        return self._failure(failure.cause, f"on record {shown(failure.record)}")

    def snapshot(self, checkpoint_id: int) -> Snapshot:
        snapshot: Snapshot = {"watermark": self._context.watermark}
        if self._spec.keys:
            snapshot = super().snapshot(checkpoint_id)
        if self._broadcasts:
            try:
                snapshot["broadcast"] = self._shared.table(self._operator.subtask)
            except StateTypeError as error:
                raise self._user.error(
                    f"left {shown(error.value)} in the broadcast state {error.name!r}, which is declared as "
                    f"{error.kind}"
                ) from None
        return snapshot

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        if self._spec.keys:
            super().restore(snapshots)
        else:
            self._context.watermark = lowest_watermark(snapshots)
        shared = [table_in(snapshot, "broadcast") for snapshot in snapshots if "broadcast" in snapshot]
        own = self._operator
        self._shared.load(shared, own.subtask, own.parallelism, own.uid)


@dataclass(frozen=True)
class ConnectedMap:
    """Converts the records of two streams to one schema, each stream with its own function.

    Attributes:
        first, second: take a record (a dict) of their stream; see `Map`.
        schema: of the results of both.
        origin: the user's line, for errors.
    """

    kind: ClassVar[str] = "map"
    first: Callable[[Record], Record]
    second: Callable[[Record], Record]
    schema: SchemaLike
    origin: Origin | None = field(default=None, repr=False, compare=False)

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The declared schema."""
        first, _ = [spec.output_schema([item]) for spec, item in zip(self._maps(), inputs, strict=True)]
        return first

    def describe(self) -> str:
        return f"{function_name(self.first)}, {function_name(self.second)}"

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return _ConnectedMap([spec.create([item]) for spec, item in zip(self._maps(), inputs, strict=True)])

    def _maps(self) -> list[Map]:
        return [Map(function, self.schema, origin=self.origin) for function in (self.first, self.second)]


class _ConnectedMap(Operator):
    """A map for each input."""

    def __init__(self, maps: Sequence[Operator]) -> None:
        self._maps = maps

    def process(self, records: Records, port: int, out: Output) -> None:
        if records.timestamps is None:
            records = Records(records.batch, np.full(len(records), NO_TIME))
        self._maps[port].process(records, 0, out)
