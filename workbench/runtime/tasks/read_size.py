"""How many records a source reads at once."""

from __future__ import annotations

from workbench.runtime.exchange.output_pool import OutputPool

FIRST, SMALLEST, LARGE, LARGEST = 8_192, 64, 262_144, 1_048_576
"""Records: to begin with, at least, at most where they all travel, and where few do."""
LONGEST_STEP_US = 20_000
"""A step that takes longer makes the source read less at once."""
QUICK_STEP_US = 4_000
"""A large read grows further only if it takes less."""
SHRINKS = 2
"""Few records travel where at most one row for so many leaves the source's task."""


class ReadSize:
    """Grows while steps are short, and shrinks when they become long, whatever the chain does with a record.

    Between two steps a task takes commands and barriers; so a slow user function must not get many records at once.
    Every step also costs some hundred microseconds of Python, during which no other slot has the interpreter. So a read
    may be larger than a buffer where filters, or aggregates before the exchange, leave at most half of it.

    Attributes:
        records: how many are to be read at once, if buffers and their pool have room for so many.

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
        """Whether it matters how much of what is read is sent."""
        return self.records >= LARGE

    def at_most(self, buffer_size: int, pool: OutputPool) -> int:
        """How much may be read now: no more than the pool takes, and one buffer where these are small.

        Args:
            buffer_size: records in a full buffer; small buffers make single records visible.
            pool: where it goes.
        """
        if self.records <= LARGE or buffer_size < LARGE:
            return min(self.records, buffer_size)
        return min(self.records, buffer_size * max(1, pool.free))

    def note(self, rows: int, elapsed_us: int, sent: int) -> None:
        """Learn from a step.

        Args:
            rows: records that were read.
            elapsed_us: what reading and handling them took.
            sent: rows that have left the task; looked at only if `is_large`.
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
