"""Checks committed rows: each row once, with the right values, permanently, and none missing at the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import workbench as wb
from workbench.elements import Int64s
from workbench.lab.soak.work import (
    BASE_US,
    DISORDER,
    GROUPS,
    KEYS,
    MILESTONE,
    STEP_US,
    TOTALS,
    WINDOW_ROWS,
    WINDOW_US,
    WINDOWS,
    Work,
    exact_counts,
    exact_window,
)

LAG_ROWS = 1_000_000 // STEP_US
"""The maximum distance of the watermark from the records read, once everything has settled."""


class Ledger:
    """Checks committed rows repeatedly, and compares them with the expectation from the records' numbers.

    Args:
        work: the job's.
        records: the approximate number of records to be read; space for them is allocated at the start, because growth
            would look like a leak.

    Attributes:
        violations: the errors, each once, in the order in which they were found.
    """

    def __init__(self, work: Work, records: int = 0) -> None:
        self.violations: list[str] = []
        self._work = work
        self._windows = _held((records // WINDOW_ROWS + 1, 2, GROUPS), np.int64)  # expected values of the first windows
        self._windows_known = 0
        self._window_shown: Int64s = np.zeros(0, np.int64)
        self._totals: Int64s = np.zeros(KEYS, np.int64)
        self._parts: dict[str, tuple[int, int, int]] = {}
        self._milestones = _held((records // KEYS // MILESTONE + 16, KEYS), np.int16)  # millions in half an hour

    def say(self, violation: str) -> None:
        """Record an error, unless it is known."""
        if violation not in self.violations:
            self.violations.append(violation)

    def look(self, job: wb.types.Job) -> None:
        """Check everything that is committed at this moment."""
        self._look_at_windows(job.table(WINDOWS))
        self._look_at_totals(job.table(TOTALS))
        self._look_at_milestones()

    def close(self, job: wb.types.Job) -> None:
        """Check the last state of an ended job: all that was read has been committed."""
        self.look(job)
        counts = exact_counts(self._work.read)
        self._compare("total of key", np.arange(KEYS), self._totals, counts)
        due = np.arange(len(self._milestones))[:, None] <= counts // MILESTONE
        due[0] = False
        right = ((self._milestones == 1) & due).sum(axis=0)
        self._compare("number of right milestones of key", np.arange(KEYS), right, counts // MILESTONE)
        self._compare("number of milestones of key", np.arange(KEYS), self._milestones.sum(axis=0), counts // MILESTONE)
        complete = (self._work.read.unbroken - DISORDER - LAG_ROWS) // WINDOW_ROWS
        shown = self._window_shown.reshape(-1, GROUPS).sum(axis=1)
        for window in range(complete):
            if window >= len(shown) or shown[window] < GROUPS:
                rows = int(shown[window]) if window < len(shown) else 0
                self.say(f"window {window} has {rows} rows and should have {GROUPS}")

    def _look_at_windows(self, table: pa.Table) -> None:
        group, start_us, end_us, n, s = (
            table.column(name).cast(pa.int64()).to_numpy() for name in ("group", "window_start", "window_end", "n", "s")
        )
        window = (start_us - BASE_US) // WINDOW_US
        if len(window) and (window.min() < 0 or (end_us - start_us != WINDOW_US).any()):
            self.say("a window has bounds that no window has")
            return
        while self._windows_known <= int(window.max(initial=-1)):
            self._windows = _with_room(self._windows, self._windows_known)
            self._windows[self._windows_known] = exact_window(self._windows_known)
            self._windows_known += 1
        place = window * GROUPS + group
        shown = np.bincount(place, minlength=self._windows_known * GROUPS)
        for twice in np.flatnonzero(shown > 1)[:3].tolist():
            self.say(f"window {twice // GROUPS} of group {twice % GROUPS} is committed {shown[twice]} times")
        for gone in np.flatnonzero(self._window_shown > shown[: len(self._window_shown)])[:3].tolist():
            self.say(f"window {gone // GROUPS} of group {gone % GROUPS} was committed and has disappeared")
        self._window_shown = shown
        if len(window):
            self._compare("records of window and group", place, n, self._windows[window, 0, group])
            self._compare("sum of window and group", place, s, self._windows[window, 1, group])

    def _look_at_totals(self, table: pa.Table) -> None:
        key, n, s = (table.column(name).to_numpy() for name in ("key", "n", "s"))
        self._compare("sum of key", key, s, n * (key + 1))
        if len(np.unique(key)) != len(key):
            self.say("a key has two totals")
        totals = np.zeros(KEYS, np.int64)
        totals[key] = n
        if (counted := int(totals.sum())) > self._work.read.count:
            self.say(f"the committed totals count {counted} records, of which {self._work.read.count} were read")
        for back in np.flatnonzero(totals < self._totals)[:3].tolist():
            self.say(f"the committed total of key {back} decreased from {self._totals[back]} to {totals[back]}")
        self._totals = np.maximum(totals, self._totals)

    def _look_at_milestones(self) -> None:
        found = {}
        for path in self._work.parts.glob("part-*.parquet"):
            stat = path.stat()
            found[path.name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        for name, known in sorted(self._parts.items()):
            if found.get(name) != known:
                self.say(f"the committed file {name} {'is gone' if name not in found else 'has changed'}")
        for name in sorted(found.keys() - self._parts.keys()):
            self._count(pq.read_table(self._work.parts / name))
        self._parts = found

    def _count(self, rows: pa.Table) -> None:
        key, n, s = (rows.column(name).to_numpy() for name in ("key", "n", "s"))
        if (n % MILESTONE).any() or (n <= 0).any():
            self.say("a committed milestone is not a milestone")
            return
        self._compare("sum at a milestone of key", key, s, n * (key + 1))
        number = n // MILESTONE
        self._milestones = _with_room(self._milestones, int(number.max(initial=0)))
        np.add.at(self._milestones, (number, key), 1)
        for row in np.flatnonzero(self._milestones[number, key] > 1)[:3].tolist():
            self.say(
                f"milestone {n[row]} of key {key[row]} is committed {self._milestones[number[row], key[row]]} times"
            )

    def _compare(self, what: str, names: Int64s, found: Int64s, exact: Int64s) -> None:
        for place in np.flatnonzero(found != exact)[:3].tolist():
            self.say(f"the {what} {names[place]} is {found[place]} and should be {exact[place]}")


def _held(shape: tuple[int, ...], kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Zeros that are resident already: those of ``np.zeros`` become resident on the first write."""
    return np.full(shape, 0, kind)


def _with_room(notes: npt.NDArray[Any], place: int) -> npt.NDArray[Any]:
    """The array with space for this row, twice as long if necessary."""
    while place >= len(notes):
        notes = np.concatenate([notes, np.zeros_like(notes)])
    return notes
