"""Tumbling windows: in one pass over a batch, the entry of each record's key in the window of its time.

Three hash tables laid out as in ``key_table`` take part: of keys, of windows by their start, and of entries by the
codes of both. Two shortcuts avoid most look-ups: times that follow each other mostly fall into one window, and a key's
records mostly into the same window as its last one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from workbench.compiled.keys.key_table import code_of
from workbench.compiled.machinery.codes import (
    ENTRIES,
    FIRST_START,
    FULL,
    KEYS,
    LATE,
    LATE_COUNT,
    ROW,
    TIMELESS,
    TIMELESS_COUNT,
    WINDOWS,
)
from workbench.compiled.machinery.compiled import BYTES, I64, INT_ROWS, INTS, INTS_IN, compiled
from workbench.durations import NO_TIME

if TYPE_CHECKING:
    from workbench.elements import Int64s

Bytes = npt.NDArray[np.uint8]


@compiled(
    INTS_IN,
    INTS_IN,
    I64,
    I64,
    I64,
    INTS,
    INT_ROWS,
    INTS,
    I64,
    INT_ROWS,
    INTS,
    I64,
    INT_ROWS,
    INTS,
    I64,
    INT_ROWS,
    BYTES,
    INTS,
    INTS,
)
def place_in_tumbling(
    times: Int64s,
    keys: Int64s,
    size_us: int,
    offset_us: int,
    closed_start: int,
    progress: Int64s,
    key_slots: Int64s,
    key_of_code: Int64s,
    key_shift: int,
    window_slots: Int64s,
    start_of_code: Int64s,
    window_shift: int,
    entry_slots: Int64s,
    both_of_entry: Int64s,
    entry_shift: int,
    recent: Int64s,
    fired: Bytes,
    counts: Int64s,
    entries: Int64s,
) -> None:
    """Find or add the entry of each record, until a table is full.

    Args:
        times, keys: shape (n,), event times and key numbers.
        size_us, offset_us: the windows are [offset + k * size, offset + (k + 1) * size).
        closed_start: records of windows that start here or earlier are late.
        progress: shape (8,), read and updated: the next row to process, the numbers of keys, windows and entries, the
            numbers of late records and of records without a time, the smallest start among the others, and the full
            table: KEYS, WINDOWS or ENTRIES, 0 if all rows were processed.
        key_slots, key_of_code, key_shift: the table of keys; `key_slots` of length 0: `keys` are already codes.
        window_slots, start_of_code, window_shift: the table of windows.
        entry_slots, both_of_entry, entry_shift: the table of entries, by window code << 32 | key code.
        recent: shape (maximum number of keys or more, 2): by key code, the start of the window of its last record
            and the entry, or -1 if there is none.
        fired: shape (maximum number of entries or more,), set to 0 for every entry that gets a record.
        counts: of the same shape, incremented for every record of an entry; of length 0: not counted.
        entries: shape (n,), filled with entries, LATE or TIMELESS.
    """
    known = len(key_slots) == 0
    counting = len(counts) > 0
    key_count = progress[KEYS]
    window_count = progress[WINDOWS]
    entry_count = progress[ENTRIES]
    late = progress[LATE_COUNT]
    timeless = progress[TIMELESS_COUNT]
    first = progress[FIRST_START]
    progress[FULL] = 0
    start = 0  # of the current window, [start, end): none yet
    end = 0
    closed = False
    window = -1
    row = progress[ROW]
    while row < len(times):
        time = times[row]
        if time < start or time >= end:
            if time == NO_TIME:
                entries[row] = TIMELESS
                timeless += 1
                row += 1
                continue
            start = time - (time - offset_us) % size_us
            end = start + size_us
            closed = start <= closed_start
            window = -1
            if not closed:
                first = min(first, start)
        if closed:
            entries[row] = LATE
            late += 1
            row += 1
            continue
        key = keys[row]
        if not known:
            key = code_of(key, key_slots, key_of_code, key_count, key_shift)
            if key < 0:
                progress[FULL] = KEYS
                break
            if key == key_count:
                key_count += 1
        if recent[key, 0] == start and recent[key, 1] >= 0:
            entry = recent[key, 1]
        else:
            if window < 0:
                window = code_of(start, window_slots, start_of_code, window_count, window_shift)
                if window < 0:
                    progress[FULL] = WINDOWS
                    break
                if window == window_count:
                    window_count += 1
            entry = code_of(window << 32 | key, entry_slots, both_of_entry, entry_count, entry_shift)
            if entry < 0:
                progress[FULL] = ENTRIES
                break
            if entry == entry_count:
                entry_count += 1
            recent[key, 0] = start
            recent[key, 1] = entry
        fired[entry] = 0
        if counting:
            counts[entry] += 1
        entries[row] = entry
        row += 1
    progress[ROW] = row
    progress[KEYS] = key_count
    progress[WINDOWS] = window_count
    progress[ENTRIES] = entry_count
    progress[LATE_COUNT] = late
    progress[TIMELESS_COUNT] = timeless
    progress[FIRST_START] = first
