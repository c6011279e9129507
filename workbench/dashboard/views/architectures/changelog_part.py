"""The positions of sources and the log of the state: what a failure would apply twice."""

from __future__ import annotations

from html import escape

from workbench.dashboard.charts.html import bar, none, table
from workbench.dashboard.contract.part import Easel, Part
from workbench.durations import format_duration
from workbench.telemetry.architectures.changelog import ChangelogFrame, EntryFrame, PositionFrame
from workbench.telemetry.frames import Frame

_POSITIONS = ("source", "read", "position saved", "read since")
_ENTRIES = ("entry", "a failure behind it applies twice", "written", "a restore reads")


def html(frame: Frame) -> str:
    """A line, the position of each source, and a row for each entry of the log, the newest first.

    The records that a failure applies twice grow with each entry, until the sources save new positions.
    """
    log = frame.changelog
    if log is None:
        return none("There is no changelog: start the job with fault_tolerance=wb.changelog().")
    since = max((each.read - each.saved for each in log.positions if each.saved is not None), default=0)
    most = max((_twice(entry) for entry in log.entries), default=0)
    positions = table(_POSITIONS, [_position(each, since) for each in log.positions])
    entries = table(_ENTRIES, [_entry(each, most) for each in reversed(log.entries)])
    return f"<p>{summary(log)}</p>{positions}" + (entries if log.entries else none("No entry is complete."))


def summary(log: ChangelogFrame) -> str:
    """Such as ``log complete to entry 7; a failure now applies 1,203 records twice; ...``."""
    to = f"the log is complete to entry {log.entries[-1].checkpoint_id}" if log.entries else "the log is empty"
    often = "" if log.interval_us is None else f"an entry every {format_duration(log.interval_us)}, "
    return (
        f"{to}; a failure now applies {log.twice:,} records twice; {often}positions every "
        f"{format_duration(log.offset_interval_us)}"
    )


def _position(each: PositionFrame, most: int) -> str:
    saved, shown = "none", ""
    if each.saved is not None:
        since = each.read - each.saved
        saved, shown = f"{each.saved:,}", f"{bar(since / most if most else 0.0, 'warn')} {since:,}"
    return f"<tr><td>{escape(each.task)}</td><td>{each.read:,}</td><td>{saved}</td><td>{shown}</td></tr>"


def _entry(entry: EntryFrame, most: int) -> str:
    twice = _twice(entry)
    by_task = escape(", ".join(f"{task}: {count:,}" for task, count in entry.twice))
    shown = f"{bar(twice / most if most else 0.0, 'warn' if twice else 'accent')} {twice:,}"
    return (
        f"<tr><td>{entry.checkpoint_id}</td><td title='{by_task}'>{shown}</td><td>{entry.size_bytes:,} B</td>"
        f"<td>{entry.full_bytes:,} B</td></tr>"
    )


def _twice(entry: EntryFrame) -> int:
    return max((count for _, count in entry.twice), default=0)


class ChangelogPart(Part):
    """A line and two tables."""

    hint = "a bar in full: most of what is shown"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._piece = easel.texts.piece("Changelog")
        self.models = [self._piece.div]

    def update(self, frame: Frame) -> None:
        self._piece.write(html(frame))
