"""How long the buffers of an output took to fill, and how many records left because the buffer timeout ended."""

from __future__ import annotations


class Fills:
    """Counts of one output, written by its task's thread only.

    Attributes:
        buffers: that were full and left at once.
        waited_us: the time from the first record of each of them until it was full, together.
        due_rows: records of partial buffers whose timeout ended.
    """

    __slots__ = ("buffers", "due_rows", "waited_us")

    def __init__(self) -> None:
        self.buffers = self.waited_us = self.due_rows = 0

    def full(self, since_us: int, now_us: int) -> None:
        """A buffer whose first record came at `since_us` is full."""
        self.buffers += 1
        self.waited_us += now_us - since_us
