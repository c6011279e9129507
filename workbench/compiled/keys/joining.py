"""Finds the rows of one side of a join that match each row of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.compiled import I64, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(INTS_IN, INTS, INTS)
def order_by_code(codes: Int64s, starts: Int64s, order: Int64s) -> None:
    """A stable counting sort.

    Args:
        codes: shape (n,), from 0 to groups - 1.
        starts: shape (groups + 1,), filled: the rows of code c are ``order[starts[c]:starts[c + 1]]``.
        order: shape (n,), filled with the rows by code, in the original order within a code.
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


@compiled(INTS_IN, INTS_IN, INTS, I64)
def order_by_time(times: Int64s, starts: Int64s, order: Int64s, moves_max: int) -> bool:
    """Order the rows of each group by time, with an insertion sort: fast if they are nearly in order.

    Args:
        times: shape (n,).
        starts: shape (groups + 1,), the rows of group g are ``order[starts[g]:starts[g + 1]]``.
        order: shape (n,), changed in place.
        moves_max: the maximum number of moved rows.

    Returns:
        Whether that was enough; otherwise `order` still has every row, in some order within its group.
    """
    moves = 0
    for group in range(len(starts) - 1):
        for i in range(starts[group] + 1, starts[group + 1]):
            row = order[i]
            time = times[row]
            j = i
            while j > starts[group] and times[order[j - 1]] > time:
                order[j] = order[j - 1]
                j -= 1
            order[j] = row
            moves += i - j
            if moves > moves_max:
                return False
    return True


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS_IN, I64, INTS)
def merge_rows(
    codes: Int64s, times: Int64s, other_codes: Int64s, other_times: Int64s, after_us: int, order: Int64s
) -> int:
    """Merge two sequences of rows, each ordered by code and time, and drop rows that are too old.

    Args:
        codes, times: shape (n,).
        other_codes, other_times: shape (m,).
        after_us: rows at this time or earlier are dropped.
        order: shape (n + m,), filled: the rows in order; those of the other sequence are numbered from n on.

    Returns:
        How many rows there are.
    """
    n = len(codes)
    m = len(other_codes)
    i = 0
    j = 0
    count = 0
    while i < n or j < m:
        first = j == m
        if i < n and j < m:
            first = codes[i] < other_codes[j] or (codes[i] == other_codes[j] and times[i] <= other_times[j])
        if first:
            if times[i] > after_us:
                order[count] = i
                count += 1
            i += 1
        else:
            if other_times[j] > after_us:
                order[count] = n + j
                count += 1
            j += 1
    return count


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS_IN, INTS_IN, I64, I64, INTS, INTS)
def find_ranges(
    starts: Int64s,
    codes: Int64s,
    times: Int64s,
    wanted: Int64s,
    at: Int64s,
    before_us: int,
    after_us: int,
    firsts: Int64s,
    counts: Int64s,
) -> int:
    """For each wanted key and time, find the rows of that key whose times are close.

    Args:
        starts: shape (groups + 1,), where the rows of each code begin; empty: codes are searched for among all rows.
        codes, times: shape (n,), ordered by code, then by time.
        wanted, at: shape (m,), the keys and times that are looked up.
        before_us, after_us: a row at time t is found if ``at + before_us <= t <= at + after_us``.
        firsts, counts: shape (m,), filled: the rows found are [first, first + count).

    Returns:
        The total number of rows found.
    """
    groups = len(starts) - 1
    total = 0
    for i in range(len(wanted)):
        code = wanted[i]
        lowest = at[i] + before_us
        highest = at[i] + after_us
        low = 0
        high = len(codes)
        if groups >= 0:
            low = starts[code] if code < groups else 0
            high = starts[code + 1] if code < groups else 0
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
