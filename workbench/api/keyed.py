"""Streams partitioned by key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.api.building import named_aggregates, operator_node
from workbench.api.windowed import WindowedStream
from workbench.durations import parse_duration
from workbench.operators.aggregate import RollingAggregate
from workbench.operators.aggregations import Aggregation
from workbench.origin import caller
from workbench.windows import Tumbling

if TYPE_CHECKING:
    from workbench.api.stream import Stream


class KeyedStream:
    """A stream partitioned by key; what follows keeps its state per key."""

    def __init__(self, stream: Stream, keys: tuple[str, ...]) -> None:
        self._stream = stream
        self._keys = keys

    def __repr__(self) -> str:
        return f"KeyedStream by {', '.join(self._keys)} of {self._stream!r}"

    def window(self, window: Tumbling, *, allowed_lateness: str = "0s") -> WindowedStream:
        """Group the records of each key by event-time windows.

        Args:
            window: for example ``wb.tumbling("1h")``.
            allowed_lateness: how long after it fired a window takes further records; each makes it fire again with
                the corrected result. Records that come later still go to the side output ``"late"``.
        """
        return WindowedStream(self._stream, self._keys, window, parse_duration(allowed_lateness, "allowed_lateness"))

    def aggregate(self, **aggregates: Aggregation) -> Stream:
        """Rolling aggregates: for every record one record out, with the keys and the aggregates so far (F1-5)."""
        origin = caller()
        spec = RollingAggregate(self._keys, named_aggregates(aggregates, origin))
        return self._stream._derived(operator_node(spec, (self._stream._input("hash", self._keys),), origin))
