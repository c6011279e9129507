"""Sinks without state: one that calls a function with every batch, and one that discards all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import pyarrow as pa

from workbench.arguments import true_or_false
from workbench.connectors.contract.base import Guarantee, Sink
from workbench.elements import Records
from workbench.errors import RecordError, SettingError
from workbench.operators.contract.base import Operator, Output
from workbench.raised import PASSING, described


@dataclass(frozen=True, slots=True)
class CallbackSink(Sink):
    """Calls ``function(batch)`` with every record batch; after a recovery rows may be delivered again.

    Source: D1: at least once, in Flink's terms; with idempotent calls the effect is exactly once, but not for a
    changelog: the repeated run may combine a group's first and last row into nothing, and what the function was given
    before the failure is then not taken back. `SqlSink` and `RedisSink` take it back.

    Args:
        function: takes a `pyarrow.RecordBatch`; each subtask calls it from one of the job's threads.
        name: of the sink in graphs.
        event_times: call ``function(batch, times)`` instead, with the event times of the rows in microseconds since
            1970, shape (n,), or None if the stream has none.

    Raises:
        SettingError: not a function, or `event_times` is neither True nor False.

    Example:
        >>> CallbackSink(print).describe()
        'print'
    """

    function: Callable[..., object]
    name: str = "callback"
    event_times: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SettingError(f"CallbackSink got {self.function!r}: pass a function of a batch, such as print")
        true_or_false(self.event_times, "event_times")

    def describe(self) -> str:
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    def for_changes(self, key: tuple[str, ...] | None, schema: pa.Schema) -> Self:
        """Itself: it passes changes on as they are, with the column ``$kind``."""
        return self

    def create(self, schema: pa.Schema) -> Operator:
        return _CallbackSinkLogic(self)


class _CallbackSinkLogic(Operator):
    def __init__(self, spec: CallbackSink) -> None:
        self._spec = spec

    def process(self, records: Records, port: int, out: Output) -> None:
        try:
            if self._spec.event_times:
                self._spec.function(records.batch, records.timestamps)
            else:
                self._spec.function(records.batch)
        except PASSING:
            raise
        except BaseException as error:
            raise RecordError(
                f"the function {self._spec.describe()!r} of the sink {self._spec.name!r} failed on a batch of"
                f" {len(records)} rows: {described(error)}"
            ) from error


@dataclass(frozen=True, slots=True)
class DiscardSink(Sink):
    """Discards every record: for measuring the job before it.

    Source: E1, E2: the sink for throughput measurements; Flink's ``DiscardingSink``.

    Args:
        name: of the sink in graphs.

    Example:
        >>> DiscardSink().describe()
        'discards all rows'
    """

    name: str = "discard"
    guarantee: ClassVar[Guarantee] = "exactly-once"
    writes_outside: ClassVar[bool] = False

    def describe(self) -> str:
        return "discards all rows"

    def for_changes(self, key: tuple[str, ...] | None, schema: pa.Schema) -> Self:
        """Itself: it passes changes on as they are, with the column ``$kind``."""
        return self

    def create(self, schema: pa.Schema) -> Operator:
        return _DiscardSinkLogic()


class _DiscardSinkLogic(Operator):
    def process(self, records: Records, port: int, out: Output) -> None:
        pass
