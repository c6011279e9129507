"""The public classes for keyed process functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from operator import index
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from workbench.clock import Clock
from workbench.durations import NO_TIME, time_of_timer
from workbench.elements import Int64s
from workbench.errors import PlanError
from workbench.operators.functions.user_function import Record, function_name
from workbench.origin import Origin
from workbench.state.descriptors import Descriptor, ValueState
from workbench.state.key_index import KeyIndex
from workbench.state.layout import State, check_names
from workbench.state.timers import Timers

Rows: TypeAlias = "Record | Iterable[Record] | None"
"""The result of a process function: None, one record, or several (also from a generator)."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class ProcessFunction:
    """A function on keyed records with state and timers: subclass it and declare the state as class attributes.

    Each subtask uses one copy of the object, so everything that must survive a failure, or belongs to a key, goes into
    declared state and not into attributes of ``self``.

    Source: F2-7 for its state; Flink's ``KeyedProcessFunction``.

    Example:
        >>> import workbench as wb
        >>> class Sessions(wb.functions.ProcessFunction):
        ...     clicks = wb.state.ValueState(pa.int64(), default=0)
        ...
        ...     def process(self, record, state, ctx):
        ...         state.clicks += 1
        ...         ctx.register_event_timer(ctx.timestamp + 30_000_000)  # half a minute later
        ...
        ...     def on_timer(self, time, state, ctx):
        ...         yield {"user": ctx.key, "clicks": state.clicks}
        ...         state.clear()
        >>> clicks = pa.table({"user": ["a", "b", "a"], "t": pa.array([0, 1, 2], pa.timestamp("s"))})
        >>> stream = wb.Stream.from_table(clicks, event_time="t").key_by("user")
        >>> stream.process(Sessions(), {"user": pa.string(), "clicks": pa.int64()}).columns
        ['user', 'clicks']
    """

    def open(self) -> None:
        """Called once for each subtask, before the first record."""

    def process(self, record: Record, state: State, ctx: ProcessContext) -> Rows:
        """Process a record; results have the record's event time. May be defined without `ctx`.

        Args:
            record: a dict of its columns.
            state: of the record's key; changes to it are kept.
            ctx: the record's time, timers and side outputs.

        Returns:
            None, one record (a dict), or several (a list, or a generator).
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def on_timer(self, time: int, state: State, ctx: ProcessContext) -> Rows:
        """Handle a timer of ``ctx.key``; results of an event timer have the timer's time.

        Args:
            time: in microseconds since 1970, as registered; the event time of results is at most 2**61.
            state: of the timer's key.
            ctx: ``ctx.domain`` is ``"event"`` or ``"processing"``, ``ctx.key`` the timer's key.

        Returns:
            Like ``process``.
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def close(self) -> None:
        """Called once for each subtask at its end, even after a failure."""


class ProcessContext:
    """The services for a process function in addition to its record and state.

    Source: Flink's ``KeyedProcessFunction.Context`` with its ``TimerService``.

    Attributes:
        timestamp: event time of the record in microseconds since 1970, None if it has none; in ``on_timer`` the timer's
            time.
        watermark: the current watermark, in microseconds; below all times before the first one.
        domain: of the timer that fires, ``"event"`` or ``"processing"``; None for a record.
    """

    __slots__ = (
        "_clock",
        "_code",
        "_event_timers",
        "_has_timers",
        "_index",
        "_keys",
        "_processing_timers",
        "_side",
        "domain",
        "timestamp",
        "watermark",
    )

    def __init__(
        self,
        clock: Clock,
        index: KeyIndex,
        event_timers: Timers,
        processing_timers: Timers,
        side: Callable[[str, Record], None],
        *,
        has_timers: bool,
    ) -> None:
        self._clock = clock
        self._index = index
        self._event_timers = event_timers
        self._processing_timers = processing_timers
        self._side = side
        self._has_timers = has_timers
        self._code = 0
        self._keys: list[Any] = []
        self.timestamp: int | None = None
        self.watermark = NO_TIME
        self.domain: Literal["event", "processing"] | None = None

    @property
    def key(self) -> Any:
        """The key: the value of the key column, a tuple of several."""
        known = len(self._keys)
        if self._code >= known:
            self._keys += keys_as_python(self._index, known)
        return self._keys[self._code]

    @property
    def processing_time(self) -> int:
        """The clock's time in microseconds since 1970."""
        return self._clock.now_us()

    def register_event_timer(self, time: int | datetime) -> None:
        """Call ``on_timer`` for this key when the watermark reaches `time`; once, even if registered repeatedly.

        Source: Flink's ``registerEventTimeTimer``.

        Args:
            time: microseconds since 1970 or a datetime (without a zone it is taken as UTC). A time that the watermark
                has already reached fires at the next watermark. A time later than all event times (2**61) fires when
                the input ends; 2**63 - 1 is the latest time, and is used for all later ones.

        Raises:
            TypeError: neither an integer nor a datetime, or a function without ``on_timer``.
        """
        self._check_timers()
        self._event_timers.add(_microseconds(time), self._code)

    def register_processing_timer(self, time: int | datetime) -> None:
        """Call ``on_timer`` for this key when the clock reaches `time`, unless the input ends before: a job does not
        keep running for it.

        Source: Flink's ``registerProcessingTimeTimer``.

        Args:
            time: microseconds since 1970 or a datetime (without a zone it is taken as UTC); no clock reaches 2**61.

        Raises:
            TypeError: neither an integer nor a datetime, or a function without ``on_timer``.
        """
        self._check_timers()
        self._processing_timers.add(_microseconds(time), self._code)

    def delete_event_timer(self, time: int | datetime) -> None:
        """Delete a timer of this key; does nothing if there is none.

        Args:
            time: as registered.

        Raises:
            TypeError: neither an integer nor a datetime.
        """
        self._event_timers.remove(_microseconds(time), self._code)

    def delete_processing_timer(self, time: int | datetime) -> None:
        """Delete a timer of this key; does nothing if there is none.

        Args:
            time: as registered.

        Raises:
            TypeError: neither an integer nor a datetime.
        """
        self._processing_timers.remove(_microseconds(time), self._code)

    def output(self, tag: str, record: Record) -> None:
        """Send a record to the side output `tag`, with the event time of the current record or timer.

        Source: Flink's side outputs.

        Args:
            tag: one of those declared in ``side_outputs``.
            record: a dict of the columns declared for it.

        Raises:
            TypeError: no such side output, or not a dict of exactly its columns.
            RecordError: at the end of the batch, if a value does not fit its column.
        """
        self._side(tag, record)

    def _check_timers(self) -> None:
        if not self._has_timers:
            raise TypeError("a timer needs on_timer: subclass ProcessFunction and define it")

    def _recoded(self) -> None:
        """The keys have new codes."""
        self._keys.clear()


def _microseconds(time: int | datetime) -> int:
    if isinstance(time, datetime):
        return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
    try:
        return time_of_timer(index(time))
    except TypeError:
        raise TypeError(
            f"a timer's time is {time!r} ({type(time).__name__}): pass whole microseconds or a datetime"
        ) from None


def keys_as_python(index: KeyIndex, begin: int = 0, codes: Int64s | None = None) -> list[Any]:
    """The keys of these codes, by default of all from `begin` on: values, or tuples if a key has several columns."""
    table = index.keys_table(codes)
    columns = [column.to_pylist() for column in table.slice(begin).columns]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def class_attributes(function: object) -> dict[str, Any]:
    """The attributes of its class and the base classes, by name; base classes come first."""
    attributes: dict[str, Any] = {}
    for base in reversed(type(function).__mro__):
        attributes |= vars(base)
    return attributes


def declared_state(
    function: object, state: Mapping[str, Descriptor | pa.DataType] | None, origin: Origin | None
) -> dict[str, Descriptor]:
    """The state that a function declares: class attributes of a `ProcessFunction`, `state` for any other.

    Raises:
        PlanError: both, or something that is not state.
        SettingError: a name that is not valid.
    """
    if isinstance(function, ProcessFunction):
        if state is not None:
            raise PlanError(
                f"{function_name(function)} is a ProcessFunction: declare its state as class attributes instead of "
                "passing state=",
                origin=origin,
            )
        declared = {name: value for name, value in class_attributes(function).items() if isinstance(value, Descriptor)}
    else:
        declared = {}
        for name, value in (state or {}).items():
            if not isinstance(value, Descriptor | pa.DataType):
                raise PlanError(
                    f"the state {name!r} is {value!r}: declare it with an Arrow type or for example "
                    "wb.state.ValueState(pyarrow.int64(), default=0)",
                    origin=origin,
                )
            declared[name] = ValueState(value) if isinstance(value, pa.DataType) else value
    check_names(list(declared))
    return declared


def takes_context(function: Callable[..., object], origin: Origin | None) -> bool:
    """Whether a function takes (record, state, ctx) and not only (record, state).

    Raises:
        PlanError: it takes other arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return False
    for count in (3, 2):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count == 3
    raise PlanError(
        f"process function {function_name(function)!r} takes {signature}: it is called with (record, state) or "
        "(record, state, ctx)",
        origin=origin,
    )
