"""What users subclass and get in keyed process functions (F1-10)."""

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
"""What a process function gives: nothing, one record, or several (a generator will do)."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class ProcessFunction:
    """A function on keyed records with state and timers: subclass it and declare the state as class attributes.

    One copy of the object serves each subtask, so what is to survive a failure, or belongs to a key, goes into declared
    state and not into attributes of ``self``.

    Source: F1-10, F2-7 for its state; Flink's ``KeyedProcessFunction``.

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
        """Handle a record; what comes out has the record's event time. May be written without `ctx`.

        Args:
            record: a dict of its columns.
            state: of the record's key; what is changed in it is kept.
            ctx: the record's time, timers and side outputs.

        Returns:
            None, one record (a dict), or several (a list, or a generator).
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def on_timer(self, time: int, state: State, ctx: ProcessContext) -> Rows:
        """Handle a timer of ``ctx.key``; what comes out has the timer's time if it is one of event time.

        Args:
            time: in microseconds since 1970, as it was registered; what comes out has 2**61 at most.
            state: of the timer's key.
            ctx: ``ctx.domain`` is ``"event"`` or ``"processing"``, ``ctx.key`` the timer's key.

        Returns:
            As ``process`` does.
        """
        raise NotImplementedError(type(self).__name__)  # abstract

    def close(self) -> None:
        """Called once for each subtask at its end, also after a failure."""


class ProcessContext:
    """What a process function may ask and do besides its record and state.

    Source: Flink's ``KeyedProcessFunction.Context`` with its ``TimerService``.

    Attributes:
        timestamp: event time of the record in microseconds since 1970, None where it has none; in ``on_timer`` the
            timer's time.
        watermark: event time has come so far, in microseconds; below all times before the first watermark.
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
        """The key: the value of the key column, a tuple where there are several."""
        known = len(self._keys)
        if self._code >= known:
            self._keys += keys_as_python(self._index, known)
        return self._keys[self._code]

    @property
    def processing_time(self) -> int:
        """The clock's time in microseconds since 1970."""
        return self._clock.now_us()

    def register_event_timer(self, time: int | datetime) -> None:
        """Have ``on_timer`` called for this key when the watermark reaches `time`; once, however often it is said.

        Source: Flink's ``registerEventTimeTimer``.

        Args:
            time: microseconds since 1970 or a datetime (without a zone UTC is meant). One that the watermark has
                reached already fires at the next watermark. One later than all event times (2**61) fires when the
                input ends; 2**63 - 1 is the last that there is, and stands for all that are later.

        Raises:
            TypeError: no whole number and no datetime, or a function without ``on_timer``.
        """
        self._check_timers()
        self._event_timers.add(_microseconds(time), self._code)

    def register_processing_timer(self, time: int | datetime) -> None:
        """Have ``on_timer`` called for this key when the clock reaches `time`, unless the input has ended before: a job
        does not go on for it.

        Source: Flink's ``registerProcessingTimeTimer``.

        Args:
            time: microseconds since 1970 or a datetime (without a zone UTC is meant); no clock reaches 2**61.

        Raises:
            TypeError: no whole number and no datetime, or a function without ``on_timer``.
        """
        self._check_timers()
        self._processing_timers.add(_microseconds(time), self._code)

    def delete_event_timer(self, time: int | datetime) -> None:
        """Take back a timer of this key; nothing happens when there is none.

        Args:
            time: as it was registered.

        Raises:
            TypeError: no whole number and no datetime.
        """
        self._event_timers.remove(_microseconds(time), self._code)

    def delete_processing_timer(self, time: int | datetime) -> None:
        """Take back a timer of this key; nothing happens when there is none.

        Args:
            time: as it was registered.

        Raises:
            TypeError: no whole number and no datetime.
        """
        self._processing_timers.remove(_microseconds(time), self._code)

    def output(self, tag: str, record: Record) -> None:
        """Send a record to the side output `tag`, with the event time of what is being handled.

        Source: Flink's side outputs.

        Args:
            tag: one of those declared in ``side_outputs``.
            record: a dict of the columns declared for it.

        Raises:
            TypeError: no such side output, or a record that is not a dict of exactly its columns.
            RecordError: at the end of the batch, a value that does not fit its column.
        """
        self._side(tag, record)

    def _check_timers(self) -> None:
        if not self._has_timers:
            raise TypeError("a timer needs on_timer: subclass ProcessFunction and define it")

    def _recoded(self) -> None:
        """Keys have other codes now."""
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
    """The keys of these codes, by default of all from `begin` on: values, or tuples where a key has several columns."""
    table = index.keys_table(codes)
    columns = [column.to_pylist() for column in table.slice(begin).columns]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def class_attributes(function: object) -> dict[str, Any]:
    """What its class and the base classes define, by name; base classes come first."""
    attributes: dict[str, Any] = {}
    for base in reversed(type(function).__mro__):
        attributes |= vars(base)
    return attributes


def declared_state(
    function: object, state: Mapping[str, Descriptor | pa.DataType] | None, origin: Origin | None
) -> dict[str, Descriptor]:
    """The state that a function declares: class attributes of a `ProcessFunction`, `state` for any other.

    Raises:
        PlanError: both, or what is no state.
        SettingError: a name that cannot be used.
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
    """Whether a function wants (record, state, ctx) and not only (record, state).

    Raises:
        PlanError: it wants something else.
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
