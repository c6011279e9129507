"""The hash exchange: writes each row of a batch to the next position of its target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from workbench.compiled.keys.hashing import GAMMA, mixed
from workbench.compiled.keys.packing import AT_ONCE, count_bits, equal, pack_8, pack_16, pack_32, pack_64
from workbench.compiled.machinery.codes import MOST_PACKED
from workbench.compiled.machinery.compiled import FEW, I64, INTS, INTS_IN, compiled
from workbench.compiled.machinery.memory import load_8, load_16, load_32, load_64, store_8, store_16, store_32, store_64

if TYPE_CHECKING:
    from workbench.elements import Int64s

_BLOCK = 512
"""Rows whose targets stay in the processor's cache while their columns are moved."""


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _find_targets(keys: Int64s, hashed: int, groups: int, targets: int, target_of: Int64s) -> None:
    """Fill `target_of` with the target of each key; a division, if needed, takes most of the time."""
    if groups & (groups - 1):
        for i in range(len(keys)):
            h = np.uint64(keys[i])
            if not hashed:
                h = mixed(h + GAMMA)
            target_of[i] = np.int64(h % np.uint64(groups)) * targets // groups
        return
    mask = np.uint64(groups - 1)
    bits = np.uint64(0)
    while (1 << np.int64(bits)) < groups:
        bits += np.uint64(1)
    width_of_targets = np.uint64(targets)
    if hashed:
        for i in range(len(keys)):
            target_of[i] = np.int64(((np.uint64(keys[i]) & mask) * width_of_targets) >> bits)
    else:
        for i in range(len(keys)):
            h = mixed(np.uint64(keys[i]) + GAMMA)  # as in hash_ints
            target_of[i] = np.int64(((h & mask) * width_of_targets) >> bits)


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _choose(target: int, eights: int, target_of: int, chosen: int) -> int:
    """Write to `chosen` which rows go to a target, a byte for eight rows; returns their number. Both are given by
    address."""
    rows = 0
    for g in range(eights):
        which = equal(target_of + 8 * AT_ONCE * g, target)
        store_8(chosen + g, which)
        rows += count_bits(which)
    return rows


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _pack_column(width: int, eights: int, chosen: int, source: int, place: int) -> None:
    """Write the chosen values at `source` to `place`, one after the other.

    Eight places are written each time, most of them to be overwritten by later values. They are within the target's
    memory, because that has room for all rows of the block.
    """
    if width == 8:
        for g in range(eights):
            which = load_8(chosen + g)
            pack_64(source + 8 * AT_ONCE * g, which, place)
            place += 8 * count_bits(which)
    elif width == 4:
        for g in range(eights):
            which = load_8(chosen + g)
            pack_32(source + 4 * AT_ONCE * g, which, place)
            place += 4 * count_bits(which)
    elif width == 2:
        for g in range(eights):
            which = load_8(chosen + g)
            pack_16(source + 2 * AT_ONCE * g, which, place)
            place += 2 * count_bits(which)
    else:
        for g in range(eights):
            which = load_8(chosen + g)
            pack_8(source + AT_ONCE * g, which, place)
            place += count_bits(which)


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _move_singly(
    row: int,
    target_of: Int64s,
    place_of: Int64s,
    ends: Int64s,
    sources: Int64s,
    destinations: Int64s,
    widths: Int64s,
) -> None:
    """Move the rows from `row` on whose targets are given."""
    targets = len(ends)
    if targets == 2:  # both cursors stay in registers
        zeros, ones = ends[0], ends[1]
        for i in range(len(target_of)):
            one = target_of[i]
            place_of[i] = ones if one else zeros
            ones += one
            zeros += 1 - one
        ends[0] = zeros
        ends[1] = ones
    else:
        for i in range(len(target_of)):
            target = target_of[i]
            place_of[i] = ends[target]
            ends[target] += 1
    for c in range(len(sources)):
        source = sources[c] + widths[c] * row
        first = c * targets
        if widths[c] == 8:
            if targets == 2:
                zero, step = destinations[first], destinations[first + 1] - destinations[first]
                for i in range(len(target_of)):
                    store_64(zero + (step if target_of[i] else 0) + 8 * place_of[i], load_64(source + 8 * i))
            else:
                for i in range(len(target_of)):
                    store_64(destinations[first + target_of[i]] + 8 * place_of[i], load_64(source + 8 * i))
        elif widths[c] == 4:
            for i in range(len(target_of)):
                store_32(destinations[first + target_of[i]] + 4 * place_of[i], load_32(source + 4 * i))
        elif widths[c] == 2:
            for i in range(len(target_of)):
                store_16(destinations[first + target_of[i]] + 2 * place_of[i], load_16(source + 2 * i))
        else:
            for i in range(len(target_of)):
                store_8(destinations[first + target_of[i]] + place_of[i], load_8(source + i))


@compiled(INTS_IN, I64, I64, I64, INTS, INTS_IN, INTS_IN, INTS_IN, INTS_IN, I64, few=FEW)
def spread(
    keys: Int64s,
    hashed: int,
    start: int,
    groups: int,
    ends: Int64s,
    limits: Int64s,
    sources: Int64s,
    destinations: Int64s,
    widths: Int64s,
    packed: int,
) -> int:
    """Write each row after the rows that its target already has, until a target is full.

    The positions are computed for a few hundred rows at a time and stay in the processor's cache for all columns.

    Args:
        keys: shape (n,), integer keys, or with `hashed` not 0 the hashes of keys, as int64.
        hashed: whether `keys` are hashes.
        start: the first row to handle.
        groups: number of key groups; a power of two is faster.
        ends: shape (targets,), the position of each target's next row; updated.
        limits: shape (targets,), the end of each target's memory; all of it may be written to.
        sources: shape (columns,), addresses of n values each.
        destinations: shape (columns * targets,), for each column the address of each target's memory.
        widths: shape (columns,), bytes per value: 1, 2, 4 or 8.
        packed: whether to move eight rows at a time if there are few targets, which is faster if the processor
            ``packs_at_once``; the result is the same.

    Returns:
        The first row that was not processed; n if all were.
    """
    n = len(keys)
    targets = len(ends)
    target_of = np.empty(_BLOCK, np.int64)
    place_of = np.empty(_BLOCK, np.int64)
    chosen = np.empty(_BLOCK // AT_ONCE, np.uint8)
    row = start
    while row < n:
        block = min(_BLOCK, n - row)
        for target in range(targets):
            block = min(block, limits[target] - ends[target])
        if block == 0:
            break
        _find_targets(keys[row : row + block], hashed, groups, targets, target_of)
        eights = block // AT_ONCE if packed and targets <= MOST_PACKED else 0
        if eights:
            for target in range(targets):
                end = ends[target]
                ends[target] += _choose(target, eights, target_of.ctypes.data, chosen.ctypes.data)
                for c in range(len(sources)):
                    place = destinations[c * targets + target] + widths[c] * end
                    _pack_column(widths[c], eights, chosen.ctypes.data, sources[c] + widths[c] * row, place)
        done = eights * AT_ONCE
        if done < block:
            _move_singly(row + done, target_of[done:block], place_of, ends, sources, destinations, widths)
        row += block
    return row
