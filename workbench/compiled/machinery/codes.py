"""Numbers that kernels and their callers agree on.

The cache on disk does not track this file: if you change it, also change the kernels that use it.
"""

COUNT, SUM, MIN, MAX = 0, 1, 2, 3
"""The operations of ``fold_ints`` and similar kernels."""

DIVISOR_MAX = 2**51
"""With larger numbers, a quotient of ``divide_by`` in floating point may be wrong by more than one."""

NOWHERE = -1
"""Of ``place_in_sessions``: the end of a list; the entry of a record that is late."""

LATE, TIMELESS = -1, -2
"""Of ``place_in_tumbling``, instead of an entry: the record's window is closed; the record has no time."""

ROW, KEYS, WINDOWS, ENTRIES, LATE_COUNT, TIMELESS_COUNT, FIRST_START, FULL = 0, 1, 2, 3, 4, 5, 6, 7
"""Places in the `progress` of ``place_in_tumbling``."""

BITS, ROWS = 0, -1
"""Forms in which ``choose_rows`` receives chosen rows: a bitmap, their numbers. Any other form is the width of
dictionary codes."""

MOST_PACKED = 4
"""The number of targets up to which ``spread`` is faster with packing, which scans all values for each target."""

OP_WIDTH = 8
"""Numbers of one instruction of a condition of ``step_matches``: the operation and its operands, see there."""
(
    LEAF,
    FOLD,
    CONSTANT,
    EQUAL,
    LESS,
    LESS_EQUAL,
    AND,
    OR,
    NOT,
    IS_NULL,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    NEGATE,
    TO_REAL,
    RANK,
) = range(17)
"""Its operations."""
