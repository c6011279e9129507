"""Aggregates in windows: the specification, and the choice of the operator logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from workbench.operators.aggregates.aggregations import Aggregation
from workbench.operators.aggregates.grouping import output_fields
from workbench.operators.aggregates.local_aggregate import LocalAggregation
from workbench.operators.aggregates.window_functions import AnyAggregation, aggregate_types
from workbench.operators.contract.base import Operator
from workbench.operators.windows.contents import Contents, PaneFolder, RunningAggregates
from workbench.operators.windows.operator import WindowOperator
from workbench.operators.windows.rows import KeptRecords, WholeAggregates
from workbench.operators.windows.settings import WindowSettings
from workbench.operators.windows.tumbling import TumblingAggregate
from workbench.windows import Evictor, WindowAssigner
from workbench.windows.schedule import AT_END, Schedule, TimeKind, on_event_time
from workbench.windows.sliding import Sliding
from workbench.windows.trigger import Trigger
from workbench.windows.tumbling import Tumbling


@dataclass(frozen=True)
class WindowAggregate:
    """Aggregates per key and window; a result has the event time ``window_end`` - 1 microsecond.

    Results of count windows and of the global window have the latest event time of their window's records instead, or
    the event time at which the trigger fires. If the watermark has already passed that time, as it has for the global
    window at the end of the input, they have the first time that is not late; so have those of windows in processing
    time.

    Attributes:
        keys: the key columns; none means one group.
        window: the windows.
        aggregates: (name, function) of each output column after ``window_start`` and ``window_end``.
        allowed_lateness_us: how long after its end a window accepts records.
        late_tag: the side output for late records, or None: they are counted in ``numLateRecordsDropped`` and dropped.
        time, trigger, evictor: see `WindowSettings`.
    """

    kind: ClassVar[str] = "aggregate"
    keys: tuple[str, ...]
    window: WindowAssigner
    aggregates: tuple[tuple[str, AnyAggregation], ...]
    allowed_lateness_us: int = 0
    late_tag: str | None = None
    time: TimeKind = "event"
    trigger: Schedule | Trigger = AT_END
    evictor: Evictor | None = None

    _settings: WindowSettings = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        settings = WindowSettings(self.window, self.time, self.allowed_lateness_us, self.trigger, self.evictor)
        object.__setattr__(self, "_settings", settings)

    def output_schema(self, inputs: Sequence[pa.Schema]) -> pa.Schema:
        """The key columns, ``window_start`` and ``window_end`` (the global window has none), then the aggregates.

        Raises:
            PlanError: a column that cannot be a key or be aggregated, or duplicate output columns.
            ExpressionError: an aggregate over an unknown column.
        """
        settings = self._settings
        settings.check(inputs[0])
        added = settings.bounds() + aggregate_types(self.aggregates, inputs[0])
        return pa.schema(output_fields(self.keys, inputs[0], added))

    def side_schemas(self, inputs: Sequence[pa.Schema]) -> Mapping[str, pa.Schema]:
        return {} if self.late_tag is None else {self.late_tag: inputs[0]}

    def columns_read(self) -> frozenset[str]:
        """The keys, the aggregated columns, and those that windows and evictor read."""
        aggregated = {item.column for _, item in self.aggregates if item.column is not None}
        return frozenset(self.keys) | aggregated | self._settings.columns_read()

    def sees_watermarks(self) -> bool:
        """It does if the windows do."""
        return self._settings.sees_watermarks()

    def windows_kept(self) -> str:
        """The layout of the windows."""
        return self._settings.layout()

    def describe(self) -> str:
        aggregates = ", ".join(aggregation.describe() for _, aggregation in self.aggregates)
        return f"{self._settings.describe()}: {aggregates}"

    @property
    def _is_plain(self) -> bool:
        """Whether windows are in event time and fire when the watermark passes their end."""
        return self.time == "event" and self.trigger in (AT_END, on_event_time())

    def local_aggregation(self) -> LocalAggregation | None:
        running = tuple(item for _, item in self.aggregates if isinstance(item, Aggregation))
        single = len(running) < len(self.aggregates) or self.evictor is not None or not self._is_plain
        if single or not isinstance(self.window, Tumbling):
            return None
        return LocalAggregation(self.keys, self.window, running, self.allowed_lateness_us)

    def growing(self) -> str | None:
        """The windows of counts, which only more records end."""
        return f"a window of each {', '.join(self.keys)}" if self.window.bounds == "position" and self.keys else None

    def create(self, inputs: Sequence[pa.Schema]) -> Operator:
        return self.logic(inputs[0], self.output_schema(inputs), lambda contents: contents)

    def logic(self, schema: pa.Schema, output: pa.Schema, around: Callable[[Contents], Contents]) -> Operator:
        """New logic for one subtask.

        Args:
            schema: of the records.
            output: of the results.
            around: what holds the contents of windows, given these contents.
        """
        settings = self._settings
        named = [(name, item) for name, item in self.aggregates if isinstance(item, Aggregation)]
        running = [item for _, item in named]
        panes: PaneFolder | None = None
        if len(running) < len(self.aggregates) or self.evictor is not None:
            whole = WholeAggregates([item for _, item in self.aggregates], schema)
            columns = sorted({item.column for _, item in self.aggregates if item.column is not None})
            if self.evictor is not None:
                columns = sorted({*columns, *self.evictor.columns})
            contents: Contents = KeptRecords(columns, schema, whole, self.evictor)
        elif self._is_plain and isinstance(self.window, Tumbling):
            lateness = self.allowed_lateness_us
            return TumblingAggregate(self.window, self.keys, running, lateness, self.late_tag, schema, output)
        else:
            contents = RunningAggregates(named, schema)
            if isinstance(self.window, Sliding) and settings.takes_panes:
                panes = PaneFolder(self.window, running, schema)
        return WindowOperator(settings, self.keys, schema, output, around(contents), self.late_tag, panes)
