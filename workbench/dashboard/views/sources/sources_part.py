"""Where sources are in each split, how fast they read, and connections that are lost, also of sinks and look-ups, with
the attempt that is due."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from workbench.dashboard.charts import wording
from workbench.dashboard.charts.html import CLASS_NUMBER, none, scrolled, table
from workbench.dashboard.contract.part import Easel, Part
from workbench.telemetry.frames import Frame, OutageFrame, SplitFrame, TaskFrame

HEADS = ("source", "split", "connection", "position", "lag", "records/s", "watermark", "nothing to read for")
_RIGHT = ("position", "lag", "records/s")
_RATED_US = 2_000_000
"""Rates are means of this long."""
_POSITION_LETTERS = 40
_FRESH_MS = 5_000
"""A lag that was told longer ago says so; while a connection is lost, each does."""
_KEPT = "What comes meanwhile waits at the server, and is read from the position on."
_GONE = "What comes meanwhile is lost, unless the server sends it again."
_HELD = "Meanwhile it takes no records, and the tasks before it wait."

Counts = Mapping[tuple[str, str, int], int]
"""Records that were read, by task, split and attempt."""


def html(frame: Frame, rates: Mapping[tuple[str, str, int], float]) -> str:
    """The lost connections, and a row for each split.

    Args:
        frame: of the job.
        rates: records per second of each split, as far as they are known.
    """
    tasks = [task for task in frame.tasks if task.progress or task.outage is not None]
    if not tasks:
        return none("No source has told its place, and no connection is lost.")
    lost = "".join(_lost(task.name, task.outage) for task in tasks if task.outage is not None)
    rows = [row for task in tasks for row in _rows(task, rates)]
    return lost + (table(HEADS, rows, _RIGHT) if rows else "")


def counts_of(frame: Frame) -> Counts:
    """The records that each split has given."""
    return {
        (task.name, split, task.attempt): each.records for task in frame.tasks for split, each in task.progress.items()
    }


def _lost(task: str, outage: OutageFrame) -> str:
    lasts, error, to = wording.milliseconds(outage.lasts_ms), outage.error.rstrip("."), outage.server and " to "
    text = (
        f"{task} has had no connection{to}{outage.server} for {lasts}: {error}. It tries again {_due(outage)}, attempt "
        f"{outage.attempts + 1}{_ending(outage)} "
    )
    meanwhile = _HELD if outage.ends_ms is not None else _KEPT if outage.keeps else _GONE
    return f"<p class='bad'><b>✗</b> {wording.html_text(text + meanwhile)}</p>"


def _ending(outage: OutageFrame) -> str:
    most = outage.attempts_max
    if outage.ends_ms is not None:
        return f"; after {wording.milliseconds(outage.ends_ms)} the task fails, and the job restarts or ends."
    return "." if most is None else f" of {most + 1}; after the last the task fails, and the job restarts or ends."


def _due(outage: OutageFrame) -> str:
    return f"in {wording.milliseconds(outage.retry_ms)}" if outage.retry_ms else "now"


def _connection(outage: OutageFrame | None) -> str:
    return "connected" if outage is None else f"✗ lost, tries again {_due(outage)}"


def _lag(split: SplitFrame, *, is_lost: bool) -> str:
    """The lag, and how old it is where it may have changed since."""
    if split.lag is None:
        return "not known"
    old = split.lag_ms >= _FRESH_MS or (is_lost and split.lag_ms)
    return f"{split.lag:,}{f' ({wording.milliseconds(split.lag_ms)} ago)' if old else ''}"


def _rows(task: TaskFrame, rates: Mapping[tuple[str, str, int], float]) -> Iterator[str]:
    for split, each in task.progress.items():
        rate = rates.get((task.name, split, task.attempt))
        quiet_ms = task.quiet_ms.get(split)
        cells = (
            *(task.name, split, _connection(task.outage), wording.plain(each.position, _POSITION_LETTERS)),
            _lag(each, is_lost=task.outage is not None),
            "–" if rate is None else wording.short(rate),
            wording.instant(task.splits.get(split)),
            "–" if quiet_ms is None else wording.milliseconds(quiet_ms),
        )
        yield f"<tr>{''.join(map(_cell, HEADS, cells))}</tr>"


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
