"""Records that are late: dropped, sent aside, or used to correct results that have been told.

Which records are late depends on when watermarks come. Here they stand among the records (punctuated), and one subtask
reads them, so it is known; a loop over the records says what must come out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

import workbench as wb

from .draft import Draft
from .drawn import SECOND, Drawn
from .expected import Between, Exactly

NEVER = -(2**62)

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
    punctuated = wb.watermarks.punctuated("mark")
    if draft.sometimes(0.5):
        stream = wb.Stream.from_table(table, event_time="t", watermarks=punctuated).with_parallelism(1)
    else:
        stream = wb.Stream.from_table(table).with_parallelism(1)
        stream = stream.assign_timestamps("t", watermarks=punctuated).with_parallelism(1)
    size, lateness = chance.choice((2, 5)) * SECOND, chance.choice((0, 0, 3 * SECOND))
    kind = chance.choice(("tumbling", "sliding", "session"))
    slide = size if kind == "tumbling" else size // 2
    window: wb.windows.WindowAssigner = wb.session(f"{size}us")
    if kind != "session":
        window = wb.sliding(f"{size}us", f"{slide}us") if kind == "sliding" else wb.tumbling(f"{size}us")
    windowed = stream.key_by("k").window(window, allowed_lateness=f"{lateness}us")
    counted = windowed.aggregate(count=wb.count(), total=wb.sum("n"), most=wb.max("n"))
    assign = _session(size) if kind == "session" else _windows(size, slide)
    found, late = _model(rows, assign, lateness, 1 if kind == "session" else 0)
    draft.story.append(f"late = {len(rows)} rows, {windowed!r}".partition(";")[0] + f", {len(late)} late")
    told, possible = ([one for one in found if one.told], [one for one in found if one.told or one.possible])
    if kind == "session" and lateness:  # a changelog, whose table has no session that became part of another
        draft.keep("late", counted)
        draft.expected.append(Exactly("late", _results([one for one in found if not one.absorbed])))
    else:
        sink = draft.sink(counted, "late")
        draft.expected.append(Between(sink, _results(told), _results(possible)))
    if draft.sometimes(0.7):
        aside = draft.sink(counted.side_output("late").select("k", "n"), "late records")
        ks, ns = [row[0] for row in late], [row[1] for row in late]
        wanted = pa.table({"k": pa.array(ks, pa.string()), "n": pa.array(ns, pa.int64())})
        draft.expected.append(Exactly(aside, wanted))


def late_alone(draft: Draft, drawn: Drawn) -> list[Drawn]:
    """The same, beside a stream that goes on as it is."""
    late_records(draft)
    return [drawn]


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


@dataclass
class _Content:
    """What a window holds, from one record to the next.

    Attributes:
        told: whether it must come out: it was there when a watermark told that the window is over.
        possible: whether it may come out: it corrects a result, unless a record of the same batch changes it again.
        absorbed: whether it became part of another.
    """

    key: str | None
    start: int
    end: int
    numbers: list[int]
    told: bool = False
    possible: bool = False
    absorbed: bool = False


Assign = Callable[[Row, list[_Content]], list[tuple[int, int, list[_Content]]]]
"""The windows of a record, among the contents that still take records of its key: start, end, what becomes part."""


def _windows(size: int, slide: int) -> Assign:
    def assign(row: Row, held: list[_Content]) -> list[tuple[int, int, list[_Content]]]:
        starts = range(row[2] - row[2] % slide, row[2] - size, -slide)
        return [(start, start + size, [one for one in held if one.start == start]) for start in starts]

    return assign


def _session(gap: int) -> Assign:
    def assign(row: Row, held: list[_Content]) -> list[tuple[int, int, list[_Content]]]:
        met = [one for one in held if one.start <= row[2] + gap and row[2] <= one.end]
        start, end = min([row[2], *(one.start for one in met)]), max([row[2] + gap, *(one.end for one in met)])
        return [(start, end, met)]

    return assign


def _model(rows: list[Row], assign: Assign, lateness: int, slack: int) -> tuple[list[_Content], list[Row]]:
    """Every content that a window had, one record after the other; and the records that are late.

    Args:
        slack: how far behind the watermark windows are: a session still takes a record at its end.
    """
    ever: list[_Content] = []
    held: list[_Content] = []
    late, watermark = [], NEVER
    for row in rows:
        key, n, _, mark = row
        held = [one for one in held if one.end - 1 + lateness > watermark - slack]
        taken = False
        for start, end, parts in assign(row, [one for one in held if one.key == key]):
            if not parts and end - 1 + lateness <= watermark - slack:
                continue
            taken = True
            numbers = [n, *(number for one in parts for number in one.numbers)]
            for one in parts:
                one.absorbed = True
            held = [one for one in held if one not in parts]
            held.append(_Content(key, start, end, numbers, possible=end - 1 <= watermark - slack))
            ever.append(held[-1])
        if not taken:
            late.append(row)
        if mark is not None and mark > watermark:
            watermark = mark
            for one in held:
                one.told |= one.end - 1 <= watermark - slack
    for one in held:
        one.told = True
    return ever, late


def _results(found: list[_Content]) -> pa.Table:
    stamp = pa.timestamp("us", "UTC")
    return pa.table(
        {
            "k": pa.array([one.key for one in found], pa.string()),
            "window_start": pa.array([one.start for one in found], pa.int64()).cast(stamp),
            "window_end": pa.array([one.end for one in found], pa.int64()).cast(stamp),
            "count": pa.array([len(one.numbers) for one in found], pa.int64()),
            "total": pa.array([sum(one.numbers) for one in found], pa.int64()),
            "most": pa.array([max(one.numbers) for one in found], pa.int64()),
        }
    )
