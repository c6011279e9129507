"""Streams grouped by windows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.api.building import named_aggregates, operator_node
from workbench.operators.aggregations import Aggregation
from workbench.operators.window_aggregate import WindowAggregate
from workbench.origin import caller
from workbench.windows import Tumbling

if TYPE_CHECKING:
    from workbench.api.stream import Stream

LATE = "late"
"""The side output of a window for records that come too late."""


class WindowedStream:
    """A stream grouped by windows, to be aggregated."""

    def __init__(self, stream: Stream, keys: tuple[str, ...], window: Tumbling, allowed_lateness_us: int) -> None:
        self._stream = stream
        self._keys = keys
        self._window = window
        self._allowed_lateness_us = allowed_lateness_us

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return f"WindowedStream{by}, {self._window.describe()}; aggregate(...) comes next"

    def aggregate(self, **aggregates: Aggregation) -> Stream:
        """One record per key and window when it fires: the keys, ``window_start``, ``window_end``, the aggregates."""
        origin = caller()
        spec = WindowAggregate(
            self._keys, self._window, named_aggregates(aggregates, origin), self._allowed_lateness_us, late_tag=LATE
        )
        item = self._stream._input("hash", self._keys) if self._keys else self._stream._input("rebalance")
        node = operator_node(spec, (item,), origin)
        return self._stream._derived(node if self._keys else replace(node, parallelism=1))
