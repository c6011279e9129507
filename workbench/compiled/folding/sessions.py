"""Assigns records to session windows, one after the other: each record sees the sessions as the previous one left them.

The sessions of a key that are not closed form a list from the latest to the earliest. No two of them overlap or touch,
so a record that arrives in order examines one of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.codes import NOWHERE
from workbench.compiled.machinery.compiled import I64, INT_ROWS, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.elements import Int64s


@compiled(INTS_IN, INTS_IN, INTS_IN, I64, INTS, INTS, INTS, INTS, INTS, I64, INTS, INTS, INTS, INT_ROWS)
def place_in_sessions(
    keys: Int64s,
    times: Int64s,
    gaps: Int64s,
    closed_end: int,
    latest: Int64s,
    earlier: Int64s,
    owners: Int64s,
    starts: Int64s,
    ends: Int64s,
    count: int,
    entries: Int64s,
    pair_starts: Int64s,
    pair_ends: Int64s,
    moves: Int64s,
) -> tuple[int, int]:
    """Find or create the session of each record, and merge the sessions that a record connects.

    Args:
        keys, times, gaps: shape (n,): key codes, times and how long after it a record's own window ends.
        closed_end: sessions that end here or earlier are closed: no record reaches them.
        latest: by key code, the key's latest session, or NOWHERE.
        earlier: by session, the next earlier one of its key, or NOWHERE.
        owners, starts, ends: by session, its key, start and end; these four arrays have room for n more sessions.
        count: the number of sessions; new ones get the next numbers.
        entries: shape (n,), filled with the session of each record, NOWHERE for a late one.
        pair_starts, pair_ends: shape (n,), filled with the session's bounds after each record.
        moves: shape (maximum number of moves, 3), filled: a record's row, the session that remains, the one that was
            merged into it. The older one remains.

    Returns:
        The new count of sessions and the number of moves.
    """
    moved = 0
    for i in range(len(keys)):
        key = keys[i]
        start = times[i]
        end = start + gaps[i]
        above = NOWHERE  # the one before `at` in the list
        at = latest[key]
        while at != NOWHERE and starts[at] > end:
            above = at
            at = earlier[at]
        if at != NOWHERE and ends[at] <= closed_end:  # and so are all later ones
            if above == NOWHERE:
                latest[key] = NOWHERE
            else:
                earlier[above] = NOWHERE
            at = NOWHERE
        if at == NOWHERE or ends[at] < start:
            if end <= closed_end:
                entries[i] = NOWHERE
                continue
            owners[count] = key
            starts[count] = start
            ends[count] = end
            earlier[count] = at
            entry = count
            count += 1
        else:
            entry = at
            low = min(start, starts[at])
            high = max(end, ends[at])
            below = earlier[at]
            while below != NOWHERE and ends[below] >= start and ends[below] > closed_end:
                kept = min(entry, below)
                moves[moved, 0] = i
                moves[moved, 1] = kept
                moves[moved, 2] = max(entry, below)
                moved += 1
                entry = kept
                low = min(low, starts[below])
                below = earlier[below]
            starts[entry] = low
            ends[entry] = high
            earlier[entry] = below
        if above == NOWHERE:
            latest[key] = entry
        else:
            earlier[above] = entry
        entries[i] = entry
        pair_starts[i] = starts[entry]
        pair_ends[i] = ends[entry]
    return count, moved
