"""The first records of each key, or of all records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from workbench.api.streams.building import operator_node
from workbench.api.streams.joining import by_keys
from workbench.operators.changelogs.sortable import Order
from workbench.operators.changelogs.top_rows import TopRows
from workbench.origin import caller

if TYPE_CHECKING:
    from workbench.api.streams.stream import Stream


def ranked(
    stream: Stream,
    keys: Sequence[str],
    orders: Sequence[Order],
    limit: int,
    rank: str | None = None,
    last_wins: bool = False,
) -> Stream:
    """See `TopRows`; without keys one subtask compares all records."""
    origin, spec = caller(), TopRows(tuple(keys), tuple(orders), limit, rank, last_wins)
    if keys:
        return stream._made(operator_node(spec, (by_keys(stream._end, spec.keys),), origin))
    node = operator_node(spec, (replace(stream._end, exchange="rebalance", partitioner=None),), origin)
    return stream._made(replace(node, parallelism=1))
