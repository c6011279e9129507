"""Roots that sources wait for, and the tables of the ackers, by age."""

from __future__ import annotations

from html import escape

from workbench.dashboard.charts.html import bar, none, table
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.acking.roots import AcksFrame
from workbench.telemetry.frames import Frame

_SOURCES = ("source", "youngest", "middle", "oldest", "pending", "acknowledged", "failed", "replayed", "late")
_ACKERS = ("acker", "youngest", "middle", "oldest", "in its table", "complete", "forgotten")
_BUCKETS = 3


def html(frame: Frame) -> str:
    """The pending roots of each source subtask and of each acker, with a bar for each bucket of the ring.

    `late` roots were acknowledged after they had failed, so their replays were needless.
    """
    acks = frame.acks
    if acks is None:
        return none("Records are not acknowledged: start the job with fault_tolerance=wb.acks().")
    if not acks.sources:
        return none("No source has sent a record.")
    return _sources(acks) + _ackers(acks)


def _sources(acks: AcksFrame) -> str:
    most = max((age for each in acks.sources for age in each.ages), default=0)
    rows = []
    for each in acks.sources:
        counts = (each.pending, each.acked, each.failed, each.replayed, each.late)
        rows.append(_row(each.task, each.ages, most, counts))
    return table(_SOURCES, rows)


def _ackers(acks: AcksFrame) -> str:
    if not acks.ackers:
        return ""
    most = max(age for each in acks.ackers for age in each.ages)
    rows = [_row(each.task, each.ages, most, (sum(each.ages), each.completed, each.forgotten)) for each in acks.ackers]
    return table(_ACKERS, rows)


def _row(task: str, ages: tuple[int, ...], most: int, counts: tuple[int, ...]) -> str:
    filled = (*ages, *[0] * _BUCKETS)[:_BUCKETS]
    colours = ("accent", "warn", "bad")
    buckets = "".join(
        f"<td>{bar(age / most if most else 0.0, colour)} {age:,}</td>"
        for age, colour in zip(filled, colours, strict=True)
    )
    figures = "".join(f"<td>{count:,}</td>" for count in counts)
    return f"<tr><td>{escape(task)}</td>{buckets}{figures}</tr>"


class RootsPart(Part):
    """Two tables: of the sources, and of the ackers."""

    hint = "by age; the oldest fail next"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._piece = easel.texts.piece("Pending roots")
        self.models = [self._piece.div]

    def update(self, frame: Frame) -> None:
        self._piece.write(html(frame))
