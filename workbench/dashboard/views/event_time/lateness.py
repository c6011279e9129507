"""Lateness and disorder in words and bars: how many records came too late, and which bound would have kept them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import bar, none, table
from workbench.dashboard.views.event_time.seen import Seen, observed
from workbench.dashboard.views.event_time.seen import watermark as lowest
from workbench.durations import MAX_TIME
from workbench.operators.contract.event_times import BOUNDS
from workbench.telemetry.diagnosis import held_by
from workbench.telemetry.frames import Frame

ENOUGH = 0.9
"""The share of late records that the bound in the caption would have kept, where one does."""


@dataclass(frozen=True, slots=True)
class Totals:
    """The counts of all operators of a frame, added up.

    Attributes:
        read, examined: records that came to where event time is told, and those whose disorder was measured.
        at_windows: records that came to windows.
        disorder, shortfalls: see `workbench.operators.contract.event_times.EventTimes`.
        bounds: the out-of-orderness bounds of the watermarks.
    """

    read: int
    examined: int
    at_windows: int
    disorder: tuple[int, ...]
    shortfalls: tuple[int, ...]
    dropped: int
    aside: int
    updated: int
    bounds: tuple[int, ...]

    @property
    def late(self) -> int:
        """Records that came too late for every window of theirs."""
        return self.dropped + self.aside


def totals(frame: Frame) -> Totals:
    """What all operators have counted since their attempt began."""
    seen = observed(frame)
    telling, windows = [item for item in seen if item.examined], [item for item in seen if not item.examined]
    return Totals(
        sum(item.records for item in telling),
        sum(item.examined for item in telling),
        sum(item.records for item in windows),
        _sums([item.disorder for item in telling]),
        _sums([item.shortfalls for item in windows]),
        sum(item.dropped for item in windows),
        sum(item.aside for item in windows),
        sum(item.updated for item in windows),
        tuple(sorted({item.bound_us for item in telling if item.bound_us is not None})),
    )


def _sums(columns: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(sum(cells) for cells in zip(*(column for column in columns if column), strict=True))


def saving(shortfalls: Sequence[int]) -> tuple[int, int] | None:
    """The least of ``BOUNDS`` that keeps `ENOUGH` of the late records, else the least that keeps as many as any, and
    how many it keeps; None where none keeps one.

    Example:
        >>> saving((0, 3, 7, 1) + (0,) * (len(BOUNDS) - 3))
        (5000, 10)
    """
    late, kept, best = sum(shortfalls), 0, None
    for bound, count in zip(BOUNDS, shortfalls, strict=False):
        kept += count
        if count:
            best = (bound, kept)
            if kept >= ENOUGH * late:
                break
    return best


def captions(frame: Frame, seen: Seen) -> list[str]:
    """What the picture shows now, a sentence each."""
    counts = totals(frame)
    return [text for text in (_watermark(frame, seen, counts), _late(counts), kept(counts)) if text]


def _watermark(frame: Frame, seen: Seen, counts: Totals) -> str:
    mark = lowest(frame)
    if mark is None:
        return "There is no watermark, so no window has fired."
    if mark == MAX_TIME:
        return "The input has ended: the watermark has passed the last record, and every window has fired."
    if seen.newest_us is None:
        return f"The watermark is at {wording.instant(mark)}."
    behind = seen.newest_us - mark - 1
    if behind <= 0:
        return f"The watermark has reached the newest record, at {wording.instant(seen.newest_us)}."
    text = f"The watermark is {wording.span(behind)} behind the newest record"
    bound = counts.bounds[-1] if counts.bounds else 0
    holders = held_by(frame)
    if bound and behind <= bound + max(1_000, bound // 10):
        return f"{text} because the out-of-orderness bound is {wording.span(bound)}: it waits that long for stragglers."
    of_it = (
        f"{wording.span(bound)} of that is the out-of-orderness bound; the rest is in flight or " if bound else "it is "
    )
    held = f"held back by {wording.html_text(holders[-1])}" if holders else "not told"
    return f"{text}: {of_it}{held}."


def _late(counts: Totals) -> str:
    if not counts.at_windows:
        return ""
    share = f"{wording.count(counts.late)} of {wording.count(counts.at_windows)} records"
    updated = f" {wording.count(counts.updated)} came within the allowed lateness, and their windows fired again."
    more = updated if counts.updated else ""
    if not counts.late:
        return f"No record came too late for its windows.{more}"
    went = [f"{wording.count(counts.dropped)} dropped"] if counts.dropped else []
    went += [f"{wording.count(counts.aside)} sent to the side output"] if counts.aside else []
    return f"{share} ({_percent(counts.late / max(1, counts.at_windows))}) came too late: {', '.join(went)}.{more}"


def kept(counts: Totals) -> str:
    """Which bound would have kept most of the late records, and how many; empty where none was late."""
    found = saving(counts.shortfalls)
    if found is None:
        return ""
    more, many = found
    of = f"at least {wording.count(many)}" if many < counts.late else "all"
    of += f" of {'them' if many == counts.late else f'the {wording.count(counts.late)} late records'}"
    if len(counts.bounds) == 1:
        own = counts.bounds[0]
        now = f" instead of {wording.span(own)}" if own else ""
        return f"An out-of-orderness bound of {wording.span(own + more)}{now} would have kept {of}."
    return f"Watermarks {wording.span(more)} further behind would have kept {of}."


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else wording.percent(share)


def shares(frame: Frame, seen: Seen) -> str:
    """How many of the records are drawn."""
    counts = totals(frame)
    drawn = sum(point.fate == "in time" for point in seen.points)
    return f"{wording.count(drawn)} sampled points stand for {wording.count(counts.read)} records read"


def html(frame: Frame) -> str:
    """How far behind the largest event time so far records came, as a table of bars with the bound drawn into it."""
    counts = totals(frame)
    if not counts.examined:
        return none("No record has been measured.")
    last = max(index for index, count in enumerate(counts.disorder) if count)
    reach = max([last, *(_place(bound) for bound in counts.bounds if bound)])
    most = max(counts.disorder)
    lines = []
    for index, count in enumerate(counts.disorder[: reach + 1]):
        if not count and index not in (0, reach) and index not in map(_place, counts.bounds):
            continue
        bounds = [bound for bound in counts.bounds if _place(bound) == index]
        drawn = "".join(f"<b class='holds'>◀ bound {wording.span(bound)}</b> " for bound in bounds)
        lines.append(
            f"<tr><th>{_range(index)}</th><td class='n'>{wording.count(count)}</td>"
            f"<td class='n'>{_percent(count / counts.examined)}</td>"
            f"<td class='w'>{bar(count / most, 'accent')} {drawn}</td></tr>"
        )
    note = (
        f"<p class='muted'>{wording.count(counts.examined)} of {wording.count(counts.read)} records "
        f"({_percent(counts.examined / max(1, counts.read))}) were measured.</p>"
    )
    return table(("behind the newest so far", "records", "share", ""), lines, ("records", "share")) + note


def _place(bound_us: int) -> int:
    """The row of the histogram that a bound ends in."""
    return 0 if not bound_us else next((i for i, bound in enumerate(BOUNDS, 1) if bound_us <= bound), len(BOUNDS) + 1)


def _range(index: int) -> str:
    if not index:
        return "in order"
    if index > len(BOUNDS):
        return f"more than {wording.span(BOUNDS[-1])}"
    return f"up to {wording.span(BOUNDS[index - 1])}"
