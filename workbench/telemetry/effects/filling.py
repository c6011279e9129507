"""The time after which buffers are full, measured from the buffers of the last seconds."""

from __future__ import annotations

from collections import deque

from workbench.runtime.tasks.execution import Execution

RECENT_US = 2_500_000
"""The age up to which buffers count: as with latency markers."""
DUE = 0.05
"""If more than this share of an edge's records leaves at the end of the buffer timeout, the timeout has an effect."""

_Counts = tuple[int, int, int, int]
"""Of one edge: full buffers, the time that they took to fill, records that left at a timeout, all records."""


class Filling:
    """Samples the outputs of one job.

    Example:
        >>> filling = Filling()
        >>> filling.add({"a->b": (0, 0, 0, 0), "b->c": (0, 0, 0, 0)}, 0, 0)
        >>> filling.add({"a->b": (40, 200_000, 0, 400), "b->c": (50, 750_000, 3, 500)}, 1_000_000, 0)
        >>> filling.fill_ms  # of the slowest edge
        15.0
        >>> filling.add({"a->b": (40, 200_000, 0, 400), "b->c": (50, 750_000, 53, 550)}, 2_000_000, 0)
        >>> filling.fill_ms is None
        True
    """

    def __init__(self) -> None:
        self._past: deque[tuple[int, dict[str, _Counts]]] = deque()

    def sample(self, execution: Execution | None, now_us: int, since_us: int) -> float | None:
        """The mean time after which a buffer of the slowest edge is full, milliseconds.

        Args:
            execution: its tasks count.
            now_us: processing time.
            since_us: when a setting was last changed: earlier buffers do not count.

        Returns:
            None where no buffer was full, and where records of an edge left because the timeout ended.
        """
        self.add({} if execution is None else _counts(execution), now_us, since_us)
        return self.fill_ms

    def add(self, counts: dict[str, _Counts], now_us: int, since_us: int) -> None:
        """Counts by edge; those of a new attempt begin at zero."""
        past = self._past
        if past and any(counts.get(edge, (0,))[0] < before[0] for edge, before in past[-1][1].items()):
            past.clear()
        past.append((now_us, counts))
        while len(past) > 1 and (past[0][0] < since_us or now_us - past[0][0] > RECENT_US):
            past.popleft()

    @property
    def fill_ms(self) -> float | None:
        """See `sample`."""
        (_, first), (_, last) = self._past[0], self._past[-1]
        slowest: float | None = None
        for edge, counts in last.items():
            zero = first.get(edge, (0, 0, 0, 0))
            buffers, waited_us, due, records = (now - then for now, then in zip(counts, zero, strict=True))
            if due > DUE * records:
                return None
            if buffers:
                slowest = max(slowest or 0.0, waited_us / buffers / 1_000)
        return slowest


def _counts(execution: Execution) -> dict[str, _Counts]:
    found: dict[str, _Counts] = {}
    for task in execution.tasks:
        for output in task.outputs:
            edge, fills = output.channels[0].edge, output.fills
            buffers, waited_us, due, records = found.get(edge, (0, 0, 0, 0))
            sent = sum(channel.records_sent for channel in output.channels)
            found[edge] = (
                buffers + fills.buffers, waited_us + fills.waited_us, due + fills.due_rows, records + sent
            )  # fmt: skip
    return found
