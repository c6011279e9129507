"""Keyed state as users declare it: kinds of state with Arrow types, which make it portable and verifiable (F2-7)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from workbench.durations import parse_duration
from workbench.errors import SettingError
from workbench.state.values import UnfitError, to_array

Ttl = str | timedelta | None
"""How long state lives after it was last written, by processing time: ``"1h"``; None: without a limit."""


class _Lasting:
    """The common part of all descriptors: the time to live of their values."""

    ttl: Ttl

    def __post_init__(self) -> None:
        _check_types(self)
        _ = self.ttl_us

    @property
    def ttl_us(self) -> int | None:
        """The time to live in microseconds of processing time; None: without a limit."""
        if self.ttl is None:
            return None
        us = parse_duration(self.ttl, "ttl")
        if us == 0:
            raise SettingError("ttl is 0: it must be above zero; leave out ttl to keep state forever")
        return us


@dataclass(frozen=True)
class ValueState(_Lasting):
    """One value per key: ``state.n`` is the value, ``state.n += 1`` changes it.

    Source: Flink's ``ValueState``; F2-7 holds running sums in it.

    Args:
        type: Arrow type of the value.
        default: the value before the first write; None is null.
        ttl: time after the last write, such as ``"1h"``, after which `default` is read again; None: never.

    Raises:
        SettingError: not an Arrow type, a default that does not fit it, or an invalid time.

    Example:
        >>> ValueState(pa.int64(), default=0, ttl="1h").ttl_us
        3600000000
    """

    type: pa.DataType
    default: Any = None
    ttl: Ttl = None

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            to_array([self.default], self.type)
        except UnfitError:
            raise SettingError(
                f"the default {self.default!r} of a ValueState does not fit its type {self.type}: change one of them"
            ) from None


@dataclass(frozen=True)
class ListState(_Lasting):
    """A list per key: ``state.items.append(x)``.

    Source: Flink's ``ListState``.

    Args:
        type: Arrow type of an element.
        ttl: time, such as ``"1h"``, after which an element expires; None: never.

    Raises:
        SettingError: not an Arrow type, or an invalid time.

    Example:
        >>> ListState(pa.string(), ttl="10min").ttl_us
        600000000
    """

    type: pa.DataType
    ttl: Ttl = None


@dataclass(frozen=True)
class MapState(_Lasting):
    """A dict per key: ``state.seen[x] = y``.

    Source: Flink's ``MapState``.

    Args:
        key_type, type: Arrow types of a key and of a value of the dict.
        ttl: time after its last write, such as ``"1h"``, after which an entry expires; None: never.

    Raises:
        SettingError: not an Arrow type, or an invalid time.

    Example:
        >>> MapState(pa.string(), pa.int64()).key_type
        DataType(string)
    """

    key_type: pa.DataType
    type: pa.DataType
    ttl: Ttl = None


@dataclass(frozen=True)
class ReducingState(_Lasting):
    """Values folded into one per key: ``state.highest.add(x)``, ``state.highest.get()`` (None before the first).

    Source: Flink's ``ReducingState``.

    Args:
        type: Arrow type of the values.
        function: takes the held value and a new one and returns the value to hold, such as ``max``.
        ttl: time after the last ``add``, such as ``"1h"``, after which the value expires; None: never.

    Raises:
        SettingError: not an Arrow type, or an invalid time.

    Example:
        >>> ReducingState(pa.int64(), max).function(3, 5)
        5
    """

    type: pa.DataType
    function: Callable[[Any, Any], Any]
    ttl: Ttl = None


@dataclass(frozen=True)
class AggregatingState(_Lasting):
    """Values folded into an accumulator of another type: ``state.mean.add(x)``, ``state.mean.get()``.

    Source: Flink's ``AggregatingState``.

    Args:
        type: Arrow type of the accumulator, which checkpoints store.
        create: returns an empty accumulator.
        add: takes an accumulator and a value and returns the new accumulator.
        result: takes an accumulator and returns the result of ``get``; before the first ``add``, ``get`` returns None.
        ttl: time after the last ``add``, such as ``"1h"``, after which the accumulator expires; None: never.

    Raises:
        SettingError: not an Arrow type, or an invalid time.

    Example:
        >>> mean = AggregatingState(
        ...     pa.list_(pa.float64()),
        ...     create=lambda: [0, 0.0],
        ...     add=lambda a, x: [a[0] + 1, a[1] + x],
        ...     result=lambda a: a[1] / a[0],
        ... )
    """

    type: pa.DataType
    create: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    result: Callable[[Any], Any]
    ttl: Ttl = None


Descriptor: TypeAlias = ValueState | ListState | MapState | ReducingState | AggregatingState


@dataclass(frozen=True)
class BroadcastState:
    """A dict that is the same on every subtask, declared as a class attribute of a `CoProcessFunction`.

    ``process2`` receives it as an attribute of its state and changes it; ``process1`` reads it from ``ctx.broadcast``.

    Source: F1-3; Flink's broadcast state.

    Args:
        key_type, type: Arrow types of a key and of a value of the dict.

    Raises:
        SettingError: not an Arrow type.

    Example:
        >>> class Limits(wb.functions.CoProcessFunction):
        ...     limits = wb.state.BroadcastState(pa.string(), pa.int64())
        ...
        ...     def process1(self, record, state, ctx):
        ...         if record["n"] > ctx.broadcast.limits.get(record["who"], 10):
        ...             return record
        ...
        ...     def process2(self, rule, state):
        ...         state.limits[rule["who"]] = rule["limit"]
        >>> values = wb.Stream.from_table(pa.table({"who": ["a"], "n": [11]}))
        >>> rules = wb.Stream.from_table(pa.table({"who": ["a"], "limit": [20]}))
        >>> values.connect(rules.broadcast()).process(Limits(), values.schema).columns
        ['who', 'n']
    """

    key_type: pa.DataType
    type: pa.DataType

    def __post_init__(self) -> None:
        _check_types(self)


def _check_types(descriptor: object) -> None:
    for name, kind in vars(descriptor).items():
        if name in ("key_type", "type") and not isinstance(kind, pa.DataType):
            raise SettingError(
                f"{type(descriptor).__name__} got the type {kind!r}: pass an Arrow type such as pyarrow.int64()"
            )
