"""Finds the durations in a learner's program, so that a hint can name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from workbench.plan.logical import LogicalGraph

_MINUTE_US = 60_000_000


def durations_of(graph: LogicalGraph) -> tuple[int, ...]:
    """The durations of all operators, such as sizes of windows and bounds of joins, in microseconds."""
    found: dict[int, None] = {}
    for node in graph.nodes:
        if node.role == "operator":
            _collect(node.spec, found, 0)
    return tuple(found)


def told(duration_us: int) -> str:
    """A duration as a hint says it.

    Example:
        >>> told(601_000_000), told(1_200_000_000), told(-500_000), told(600_001_000)
        ('601 s', '20 minutes', '-500 ms', '600.001 s')
    """
    if abs(duration_us) < 1_000_000:
        return f"{duration_us / 1e3:g} ms"
    if duration_us % _MINUTE_US == 0 and abs(duration_us) > _MINUTE_US:
        return f"{duration_us // _MINUTE_US} minutes"
    return f"{duration_us / 1e6:.10g} s"


def _collect(spec: Any, found: dict[int, None], depth: int) -> None:
    if isinstance(spec, Mapping):
        for each in spec.values():
            _collect(each, found, depth + 1)
    if depth > 4 or not is_dataclass(spec):
        return
    if isinstance(ttl_us := getattr(spec, "ttl_us", None), int):
        found[ttl_us] = None
    for field in fields(spec):
        value = getattr(spec, field.name, None)
        if field.name.endswith("_us") and isinstance(value, int) and not isinstance(value, bool):
            found[value] = None
        else:
            _collect(value, found, depth + 1)
