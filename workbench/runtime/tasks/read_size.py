"""The number of records that a source reads at once."""

from __future__ import annotations

from workbench.runtime.exchange.output_pool import OutputPool

FIRST, SMALLEST, LARGE, LARGEST = 8_192, 64, 262_144, 1_048_576
"""Records: the initial, smallest, and largest number, and the largest where few of them are sent."""
LONGEST_STEP_US = 20_000
"""After a longer step the source reads less at once."""
QUICK_STEP_US = 4_000
"""A large read grows further only if the step is shorter."""
SHRINKS = 2
"""The number of records read for each row sent from which few records count as sent."""


class ReadSize:
    """Grows while steps are short, and shrinks when they become long, whatever the chain does with a record.

    A task receives commands and barriers between two steps; so a slow user function must not get many records at once.
    But every step costs some hundred microseconds of Python, during which no other slot has the interpreter. So a read
    may be larger than a buffer where filters, or aggregations before the exchange, keep at most half of it.

    Attributes:
        records: how many to read at once, if buffers and their pool have room for them.

    Example:
        >>> size, pool = ReadSize(), OutputPool([], 4)
        >>> size.note(8_192, 100, sent=8_192)
        >>> size.at_most(262_144, pool), size.at_most(500, pool)
        (16384, 500)
        >>> size.note(16_384, 80_000, sent=16_384)
        >>> size.records
        2048
    """

    __slots__ = ("records",)

    def __init__(self) -> None:
        self.records = FIRST

    @property
    def is_large(self) -> bool:
        """Whether the share of rows that is sent matters."""
        return self.records >= LARGE

    def at_most(self, buffer_size: int, pool: OutputPool) -> int:
        """How much may be read now: no more than the pool can hold, and one buffer where buffers are small.

        Args:
            buffer_size: records in a full buffer; small buffers make single records visible.
            pool: the pool that takes the records.
        """
        if self.records <= LARGE or buffer_size < LARGE:
            return min(self.records, buffer_size)
        return min(self.records, buffer_size * max(1, pool.free))

    def note(self, rows: int, elapsed_us: int, sent: int) -> None:
        """Adjust to a step.

        Args:
            rows: records that were read.
            elapsed_us: time for reading and processing them.
            sent: rows that the task has sent; used only if `is_large`.
        """
        if elapsed_us > LONGEST_STEP_US:
            self.records = max(SMALLEST, rows * LONGEST_STEP_US // (2 * elapsed_us))
        elif rows >= self.records and elapsed_us < LONGEST_STEP_US // 2:
            if not self.is_large:
                self.records = min(2 * self.records, LARGE)
            elif sent * SHRINKS > rows:
                self.records = LARGE
            elif elapsed_us < QUICK_STEP_US:
                self.records = min(2 * self.records, LARGEST)
