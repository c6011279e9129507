"""Updates Bokeh data sources with as few bytes as possible."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bokeh.models import ColumnDataSource, Range1d

Columns = Mapping[str, Sequence[Any]]


def refresh(source: ColumnDataSource, columns: Columns) -> int:
    """Set the data of `source` to `columns`: cells that differ are patched, a different length replaces all.

    Returns:
        The number of cells that changed.
    """
    old = source.data
    if set(old) != set(columns) or any(len(old[name]) != len(cells) for name, cells in columns.items()):
        source.data = {name: list(cells) for name, cells in columns.items()}
        return sum(len(cells) for cells in columns.values())
    patches = {}
    for name, cells in columns.items():
        changed = [
            (index, new) for index, (was, new) in enumerate(zip(old[name], cells, strict=True)) if not same(was, new)
        ]
        if changed:
            patches[name] = changed
    if patches:
        source.patch(patches)
    return sum(len(changed) for changed in patches.values())


def by_column(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> dict[str, list[Any]]:
    """Rows as columns of these names, which exist even without rows."""
    listed = list(rows)
    return {name: [row[name] for row in listed] for name in names}


def number_of(metrics: Mapping[str, Any], name: str) -> float | None:
    """A metric as a number; None if it is unknown."""
    value = metrics.get(name)
    return None if value is None else float(value)


def whole_of(metrics: Mapping[str, Any], name: str) -> int | None:
    """A metric as a whole number, such as a watermark; None if it is unknown."""
    value = metrics.get(name)
    return None if value is None else int(value)


def same(was: object, new: object) -> bool:
    """Equal, or both NaN."""
    if was == new:
        return True
    return isinstance(was, float) and isinstance(new, float) and math.isnan(was) and math.isnan(new)


def ceiling(value: float) -> float:
    """The end of an axis that shows `value`: the next of 1, 2, 5 times a power of ten, so that axes change rarely."""
    if not math.isfinite(value) or value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if value <= step * power * 0.96 or step == 10.0)


def ceiling_s(value: float) -> float:
    """Like `ceiling`, for seconds: the next round number of seconds, minutes, hours or days."""
    return next((float(step) for step in _ROUND_S if value <= step * 0.96), ceiling(value / 86_400) * 86_400)


_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_ROUND_S = (
    *(1, 2, 4, 8, 20, 40),
    *(minutes * _MINUTE for minutes in (1, 2, 4, 8, 20, 40)),
    *(hours * _HOUR for hours in (1, 2, 4, 8, 12)),
    *(days * _DAY for days in (1, 2, 4, 8)),
)


def stretch(axis_range: Range1d, end: float) -> bool:
    """Let an axis run from 0 to `end`; returns whether that changed it."""
    if axis_range.end == end:
        return False
    axis_range.end = end
    return True
