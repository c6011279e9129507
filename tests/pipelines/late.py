"""Records that are late: dropped, sent aside, or used to correct results that have been told.

Which records are late depends on when watermarks come. Here they stand among the records (punctuated), and one subtask
reads them, so it is known; a loop over the records says what must come out.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import workbench as wb

from .draft import Draft
from .drawn import SECOND
from .expected import AtLast, Contains, Exactly

Row = tuple[str | None, int, int, int | None]
"""Key, number, time and the watermark behind it."""


def late_records(draft: Draft) -> None:
    """A source whose records are late, and windows over it."""
    chance = draft.chance
    rows = _rows(draft)
    table = pa.table(
        {
            "k": pa.array([row[0] for row in rows], pa.string()),
            "n": pa.array([row[1] for row in rows], pa.int64()),
            "t": pa.array([row[2] for row in rows], pa.int64()),
            "mark": pa.array([row[3] for row in rows], pa.int64()),
        }
    )
    punctuated = wb.punctuated("mark")
    if draft.sometimes(0.5):
        stream = wb.Stream.from_table(table, event_time="t", watermarks=punctuated).with_parallelism(1)
    else:
        stream = wb.Stream.from_table(table).with_parallelism(1)
        stream = stream.assign_timestamps("t", watermarks=punctuated).with_parallelism(1)
    size, lateness = chance.choice((2, 5)) * SECOND, chance.choice((0, 0, 3 * SECOND))
    kind = chance.choice(("tumbling", "sliding", "session"))
    slide = size if kind == "tumbling" else size // 2
    window: wb.WindowAssigner = wb.session(f"{size}us")
    if kind != "session":
        window = wb.sliding(f"{size}us", f"{slide}us") if kind == "sliding" else wb.tumbling(f"{size}us")
    windowed = stream.key_by("k").window(window, allowed_lateness=f"{lateness}us")
    counted = windowed.aggregate(count=wb.count(), total=wb.sum("n"), most=wb.max("n"))
    model = _sessions(rows, size, lateness) if kind == "session" else _windows(rows, size, slide, lateness)
    found, late = model
    draft.story.append(f"late = {len(rows)} rows, {windowed!r}".partition(";")[0] + f", {len(late)} late")
    results = _results(found)
    sink = draft.sink(counted, "late")
    if kind == "session" and lateness:
        draft.expected.append(Contains(sink, results))
    elif lateness:
        draft.expected.append(AtLast(sink, results, ("k", "window_start", "window_end"), "count"))
    else:
        draft.expected.append(Exactly(sink, results))
    if draft.sometimes(0.7):
        aside = draft.sink(counted.side_output("late").select("k", "n"), "late records")
        ks, ns = [row[0] for row in late], [row[1] for row in late]
        wanted = pa.table({"k": pa.array(ks, pa.string()), "n": pa.array(ns, pa.int64())})
        draft.expected.append(Exactly(aside, wanted))


def _rows(draft: Draft) -> list[Row]:
    """Records, most of them in order, some far behind; every few a watermark near the latest."""
    chance, rows, latest = draft.chance, [], 0
    nulls = chance.choice((0.0, 0.1))
    for n in range(chance.choice((0, 30, 120))):
        time = latest + chance.randint(-8, 2) * SECOND // chance.choice((1, 2))
        latest = max(latest, time)
        mark = latest - chance.randint(0, 6) * SECOND - 1 if draft.sometimes(0.2) else None
        rows.append((None if draft.sometimes(nulls) else chance.choice("abü"), n, time, mark))
    return rows


Found = list[tuple[Any, int, int, list[int]]]
"""Key, start, end and the numbers of the records of each window."""


def _windows(rows: list[Row], size: int, slide: int, lateness: int) -> tuple[Found, list[Row]]:
    windows: dict[tuple[Any, int], list[int]] = {}
    late, watermark = [], -(2**62)
    for row in rows:
        key, n, time, mark = row
        last = time - time % slide
        open_ones = [start for start in range(last, time - size, -slide) if start + size - 1 + lateness > watermark]
        for start in open_ones:
            windows.setdefault((key, start), []).append(n)
        if not open_ones:
            late.append(row)
        watermark = watermark if mark is None else max(watermark, mark)
    return [(key, start, start + size, ns) for (key, start), ns in windows.items()], late


def _sessions(rows: list[Row], gap: int, lateness: int) -> tuple[Found, list[Row]]:
    held: Found = []
    late, watermark = [], -(2**62)
    for row in rows:
        key, n, time, mark = row
        start, end = time, time + gap
        met = [
            one for one in held if one[0] == key and one[1] <= end and start <= one[2] and one[2] + lateness > watermark
        ]
        if not met and end + lateness <= watermark:
            late.append(row)
        else:
            numbers = [n, *(number for one in met for number in one[3])]
            held = [one for one in held if one not in met]
            held.append((key, min([start, *(one[1] for one in met)]), max([end, *(one[2] for one in met)]), numbers))
        watermark = watermark if mark is None else max(watermark, mark)
    return held, late


def _results(found: Found) -> pa.Table:
    stamp = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "k": pa.array([one[0] for one in found], pa.string()),
            "window_start": pa.array([one[1] for one in found], pa.int64()).cast(stamp),
            "window_end": pa.array([one[2] for one in found], pa.int64()).cast(stamp),
            "count": pa.array([len(one[3]) for one in found], pa.int64()),
            "total": pa.array([sum(one[3]) for one in found], pa.int64()),
            "most": pa.array([max(one[3]) for one in found], pa.int64()),
        }
    )
