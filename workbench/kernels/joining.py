"""Finding the rows of one side of a join that go with each row of the other."""

from __future__ import annotations

from workbench.elements import Int64s
from workbench.kernels.compiled import I64, INTS, INTS_IN, compiled


@compiled(INTS_IN, INTS, INTS)
def order_by_code(codes: Int64s, starts: Int64s, order: Int64s) -> None:
    """A stable counting sort.

    Args:
        codes: shape (n,), from 0 to groups - 1.
        starts: shape (groups + 1,), filled: the rows of code c are ``order[starts[c]:starts[c + 1]]``.
        order: shape (n,), filled with the rows by code, those of one code in their order.
    """
    starts[:] = 0
    for i in range(len(codes)):
        starts[codes[i] + 1] += 1
    for code in range(1, len(starts)):
        starts[code] += starts[code - 1]
    cursors = starts[:-1].copy()
    for i in range(len(codes)):
        code = codes[i]
        order[cursors[code]] = i
        cursors[code] += 1


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS_IN, I64, I64, INTS, INTS)
def find_ranges(
    codes: Int64s,
    times: Int64s,
    wanted: Int64s,
    at: Int64s,
    before_us: int,
    after_us: int,
    firsts: Int64s,
    counts: Int64s,
) -> int:
    """For each wanted key and time, the rows of that key whose times are near.

    Args:
        codes, times: shape (n,), ordered by code, then by time.
        wanted, at: shape (m,), the keys and times that are looked up.
        before_us, after_us: a row at time t is found when ``at + before_us <= t <= at + after_us``.
        firsts, counts: shape (m,), filled: the rows found are [first, first + count).

    Returns:
        How many rows were found in all.
    """
    total = 0
    for i in range(len(wanted)):
        code = wanted[i]
        lowest = at[i] + before_us
        highest = at[i] + after_us
        low = 0
        high = len(codes)
        while low < high:
            middle = (low + high) >> 1
            if codes[middle] < code or (codes[middle] == code and times[middle] < lowest):
                low = middle + 1
            else:
                high = middle
        end = low
        while end < len(codes) and codes[end] == code and times[end] <= highest:
            end += 1
        firsts[i] = low
        counts[i] = end - low
        total += end - low
    return total
