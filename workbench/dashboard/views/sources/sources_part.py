"""Where sources are in each split, how fast they read, and connections that are lost, also of sinks and look-ups, with
the attempt that is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import CLASS_NUMBER, none, scrolled, table
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.diagnosis import told_of_connection, told_of_kept
from workbench.telemetry.frames import Frame, OutageFrame, SplitFrame, TaskFrame

HEADS = ("source", "split", "connection", "position", "lag", "records/s", "watermark", "nothing to read for")
KEPT = "the server keeps"
"""A further column, if a server keeps its log for a source."""
_RIGHT = ("position", "lag", "records/s", KEPT)
_RATED_US = 2_000_000
"""Rates are means of this long."""
_POSITION_LETTERS = 40
_FRESH_MS = 5_000
"""A lag that was told longer ago says so; while a connection is lost, each does."""

Counts = Mapping[tuple[str, str, int], int]
"""Records that were read, by task, split and attempt."""


def html(frame: Frame, rates: Mapping[tuple[str, str, int], float]) -> str:
    """The lost connections, and a row for each split.

    Args:
        frame: of the job.
        rates: records per second of each split, as far as they are known.
    """
    lost = "".join(_lost(task, outage) for task, outage in frame.lost.items())
    is_kept = any(split.kept_bytes is not None for task in frame.tasks for split in task.progress.values())
    heads = (*HEADS, KEPT) if is_kept else HEADS
    rows = [row for task in frame.tasks for row in _rows(task, rates, heads)]
    if not lost and not rows:
        return none("No source has told its place, and no connection is lost.")
    return lost + (table(heads, rows, _RIGHT) if rows else "")


def counts_of(frame: Frame) -> Counts:
    """The records that each split has given."""
    return {
        (task.name, split, task.attempt): each.records for task in frame.tasks for split, each in task.progress.items()
    }


def _lost(task: str, outage: OutageFrame) -> str:
    return f"<p class='bad'><b>✗</b> {wording.html_text(told_of_connection(task, outage))}</p>"


def _connection(outage: OutageFrame | None) -> str:
    if outage is None:
        return "connected"
    return f"✗ lost, tries again {f'in {wording.milliseconds(outage.retry_ms)}' if outage.retry_ms else 'now'}"


def _lag(split: SplitFrame, *, is_lost: bool) -> str:
    """The lag, and how old it is where it may have changed since."""
    if split.lag is None:
        return "not known"
    old = split.lag_ms >= _FRESH_MS or (is_lost and split.lag_ms)
    return f"{split.lag:,}{f' ({wording.milliseconds(split.lag_ms)} ago)' if old else ''}"


def _rows(task: TaskFrame, rates: Mapping[tuple[str, str, int], float], heads: Sequence[str]) -> Iterator[str]:
    outage = task.outage
    if outage is not None and outage.ends_ms is not None:  # of a sink or a look-up behind the source
        outage = None
    for split, each in task.progress.items():
        rate = rates.get((task.name, split, task.attempt))
        quiet_ms = task.quiet_ms.get(split)
        cells = (
            *(task.name, split, _connection(outage), wording.plain(each.position, _POSITION_LETTERS)),
            _lag(each, is_lost=outage is not None),
            "–" if rate is None else wording.short(rate),
            wording.instant(task.splits.get(split)),
            "–" if quiet_ms is None else wording.milliseconds(quiet_ms),
            told_of_kept(each) or "–",
        )
        yield f"<tr>{''.join(map(_cell, heads, cells))}</tr>"


def _cell(head: str, text: str) -> str:
    return f"<td{CLASS_NUMBER if head in _RIGHT else ''}>{wording.html_text(text)}</td>"


class SourcesPart(Part):
    """A line for each lost connection, and a table of splits."""

    hint = "lag: records that are there and not read; records/s over two seconds"

    def __init__(self, easel: Easel) -> None:
        super().__init__(easel)
        self._piece = easel.texts.piece("Sources")
        self._past: deque[tuple[int, Counts]] = deque()
        self.models = [scrolled(self._piece.div, 600 if easel.alone else 280, html_attributes={"tabindex": "0"})]

    def remember(self, frame: Frame) -> None:
        self._note(frame.time_us, counts_of(frame))

    def update(self, frame: Frame) -> None:
        self._piece.write(html(frame, self._rates(frame.time_us, counts_of(frame))))

    def _note(self, now_us: int, counts: Counts) -> None:
        if self._past and now_us <= self._past[-1][0]:  # a recording was wound back
            self._past.clear()
        self._past.append((now_us, counts))
        while len(self._past) > 2 and self._past[1][0] <= now_us - _RATED_US:
            self._past.popleft()

    def _rates(self, now_us: int, counts: Counts) -> dict[tuple[str, str, int], float]:
        if not self._past or now_us != self._past[-1][0]:
            self._note(now_us, counts)
        since_us, before = self._past[0]
        if since_us == now_us:
            return {}
        return {
            key: (count - before[key]) * 1e6 / (now_us - since_us) for key, count in counts.items() if key in before
        }
