"""Rows of each key as linked lists: added, followed and removed without moving any row.

``heads[code]`` is the latest row of a key and ``nexts[row]`` the one before it; -1 ends a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.compiled import I64, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(INTS_IN, INTS, I64, INTS)
def distinct_codes(codes: Int64s, seen: Int64s, stamp: int, found: Int64s) -> int:
    """The distinct codes of a batch, in the order of their first rows.

    Args:
        codes: shape (n,).
        seen: by code, the stamp of the last batch that had it; updated.
        stamp: of this batch, unlike all before.
        found: shape (n,), filled.

    Returns:
        How many there are.
    """
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        if seen[code] != stamp:
            seen[code] = stamp
            found[count] = code
            count += 1
    return count


@compiled(INTS_IN, I64, INTS, INTS)
def link_rows(codes: Int64s, first_row: int, heads: Int64s, nexts: Int64s) -> None:
    """Put rows at the heads of the lists of their keys.

    Args:
        codes: shape (n,), of the rows ``first_row`` to ``first_row + n - 1``.
        first_row: number of the first of these rows.
        heads: by code; updated.
        nexts: by row; updated.
    """
    for i in range(len(codes)):
        code = codes[i]
        nexts[first_row + i] = heads[code]
        heads[code] = first_row + i


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS)
def count_links(codes: Int64s, heads: Int64s, nexts: Int64s, counts: Int64s) -> int:
    """The length of each code's list, 0 for the code -1; returns their sum.

    Args:
        codes: shape (n,).
        heads, nexts: the lists.
        counts: shape (n,), filled.
    """
    total = 0
    for i in range(len(codes)):
        count = 0
        row = heads[codes[i]] if codes[i] >= 0 else -1
        while row >= 0:
            count += 1
            row = nexts[row]
        counts[i] = count
        total += count
    return total


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS, INTS)
def follow_links(codes: Int64s, heads: Int64s, nexts: Int64s, wanted: Int64s, rows: Int64s) -> None:
    """Pair each code with all rows of its list, those added first in front.

    Args:
        codes: shape (n,); the code -1 has no list.
        heads, nexts: the lists.
        wanted: shape (total,), filled with positions in `codes`; for the total see ``count_links``.
        rows: shape (total,), filled with the rows.
    """
    begin = 0
    for i in range(len(codes)):
        end = begin
        row = heads[codes[i]] if codes[i] >= 0 else -1
        while row >= 0:
            wanted[end] = i
            rows[end] = row
            end += 1
            row = nexts[row]
        low, high = begin, end - 1
        while low < high:
            rows[low], rows[high] = rows[high], rows[low]
            low += 1
            high -= 1
        begin = end


@compiled(INTS_IN, INTS_IN, INTS, INTS)
def unlink_rows(codes: Int64s, rows: Int64s, heads: Int64s, nexts: Int64s) -> None:
    """Take rows out of the lists of their keys.

    Args:
        codes, rows: shape (n,); each row is in the list of its code.
        heads, nexts: the lists; updated.
    """
    for i in range(len(codes)):
        code = codes[i]
        row = heads[code]
        if row == rows[i]:
            heads[code] = nexts[row]
            continue
        while row >= 0 and nexts[row] != rows[i]:
            row = nexts[row]
        if row >= 0:
            nexts[row] = nexts[rows[i]]


@compiled(INTS_IN, INTS_IN, INTS, INTS, INTS_IN, INTS)
def take_equal(codes: Int64s, hashes: Int64s, heads: Int64s, nexts: Int64s, hash_of: Int64s, found: Int64s) -> int:
    """Take one row with each key and hash out of its list.

    Args:
        codes, hashes: shape (n,), what is looked for.
        heads, nexts: the lists; updated.
        hash_of: by row, its hash.
        found: shape (n,), filled with the rows, -1 where there was none.

    Returns:
        How many were found.
    """
    count = 0
    for i in range(len(codes)):
        code = codes[i]
        before = -1
        row = heads[code]
        while row >= 0 and hash_of[row] != hashes[i]:
            before = row
            row = nexts[row]
        found[i] = row
        if row >= 0:
            count += 1
            if before < 0:
                heads[code] = nexts[row]
            else:
                nexts[before] = nexts[row]
    return count
