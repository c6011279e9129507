"""The hash exchange: where each row goes, and moving fixed-width columns there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from workbench.elements import Int64s
from workbench.kernels.compiled import FEW, HASHES_IN, I64, INTS, INTS_IN, compiled
from workbench.kernels.hashing import Hashes
from workbench.kernels.memory import load_8, load_16, load_32, load_64, store_8, store_16, store_32, store_64

_BLOCK = 512
"""Rows whose targets are kept in the cache while their columns are moved."""
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled(HASHES_IN, INTS_IN, INTS, INTS)
def route(hashes: Hashes, target_of_group: Int64s, starts: Int64s, positions: Int64s) -> None:
    """The position of each row when the rows are ordered by target, rows of one target keeping their order.

    Args:
        hashes: shape (n,), of the keys.
        target_of_group: shape (max_parallelism,), the target of each key group.
        starts: shape (parallelism + 1,), filled: rows of target t are at [starts[t], starts[t + 1]).
        positions: shape (n,), filled.
    """
    groups = np.uint64(len(target_of_group))
    mask = groups - np.uint64(1)
    if groups & mask == np.uint64(0):
        for i in range(len(hashes)):
            positions[i] = target_of_group[np.int64(hashes[i] & mask)]
    else:
        for i in range(len(hashes)):
            positions[i] = target_of_group[np.int64(hashes[i] % groups)]
    if len(starts) == 3:  # two targets: the cursors stay in registers
        ones = 0
        for i in range(len(positions)):
            ones += positions[i]
        zeros = len(positions) - ones
        starts[0] = 0
        starts[1] = zeros
        starts[2] = len(positions)
        seen = 0
        for i in range(len(positions)):
            one = positions[i]
            positions[i] = zeros + seen if one else i - seen
            seen += one
        return
    starts[:] = 0
    for i in range(len(positions)):
        starts[positions[i] + 1] += 1
    for target in range(1, len(starts)):
        starts[target] += starts[target - 1]
    cursors = starts[:-1].copy()
    for i in range(len(positions)):
        target = positions[i]
        positions[i] = cursors[target]
        cursors[target] += 1


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(context: Any, address: Any) -> Any:
    """An address as a pointer, so that one kernel can move columns of any number and type."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@compiled(INTS_IN, INTS_IN, INTS_IN, INTS_IN)
def scatter(positions: Int64s, sources: Int64s, destinations: Int64s, widths: Int64s) -> None:
    """For each column c and row i: ``destination[c][positions[i]] = source[c][i]``.

    Args:
        positions: shape (n,), a permutation of the rows.
        sources, destinations: shape (columns,), addresses of buffers that hold n values each.
        widths: shape (columns,), bytes per value: 1, 2, 4 or 8.
    """
    n = len(positions)
    for c in range(len(sources)):
        if widths[c] == 8:
            source8 = carray(_pointer(sources[c]), n, np.uint64)
            target8 = carray(_pointer(destinations[c]), n, np.uint64)
            for i in range(n):
                target8[positions[i]] = source8[i]
        elif widths[c] == 4:
            source4 = carray(_pointer(sources[c]), n, np.uint32)
            target4 = carray(_pointer(destinations[c]), n, np.uint32)
            for i in range(n):
                target4[positions[i]] = source4[i]
        elif widths[c] == 2:
            source2 = carray(_pointer(sources[c]), n, np.uint16)
            target2 = carray(_pointer(destinations[c]), n, np.uint16)
            for i in range(n):
                target2[positions[i]] = source2[i]
        else:
            source1 = carray(_pointer(sources[c]), n, np.uint8)
            target1 = carray(_pointer(destinations[c]), n, np.uint8)
            for i in range(n):
                target1[positions[i]] = source1[i]


@compiled(INTS_IN, I64, I64, I64, INTS, INTS_IN, INTS_IN, INTS_IN, INTS_IN, few=FEW)
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
) -> int:
    """Write each row behind the rows that its target has already, until a target has no more room.

    Where each row goes is worked out for a few hundred rows at a time and stays in the cache for all columns.

    Args:
        keys: shape (n,), integer keys, or with `hashed` not 0 the hashes of keys, as int64.
        hashed: whether `keys` are hashes.
        start: the first row to handle.
        groups: number of key groups, a power of two.
        ends: shape (targets,), where each target's next row goes; moved on.
        limits: shape (targets,), where each target's room ends.
        sources: shape (columns,), addresses of n values each.
        destinations: shape (columns * targets,), for each column the address of each target's memory.
        widths: shape (columns,), bytes per value: 1, 2, 4 or 8.

    Returns:
        The first row that was not handled; n when all were.
    """
    n = len(keys)
    targets = len(ends)
    mask = np.uint64(groups - 1)
    bits = np.uint64(0)
    while (1 << np.int64(bits)) < groups:
        bits += np.uint64(1)
    width_of_targets = np.uint64(targets)
    target_of = np.empty(_BLOCK, np.int64)
    place_of = np.empty(_BLOCK, np.int64)
    row = start
    while row < n:
        block = min(_BLOCK, n - row)
        for target in range(targets):
            block = min(block, limits[target] - ends[target])
        if block == 0:
            break
        if hashed:
            for i in range(block):
                target_of[i] = np.int64(((np.uint64(keys[row + i]) & mask) * width_of_targets) >> bits)
        else:
            for i in range(block):
                h = np.uint64(keys[row + i]) + _GAMMA  # as in hash_ints
                h = (h ^ (h >> _S30)) * _M1
                h = (h ^ (h >> _S27)) * _M2
                target_of[i] = np.int64((((h ^ (h >> _S31)) & mask) * width_of_targets) >> bits)
        if targets == 2:  # both cursors stay in registers
            zeros, ones = ends[0], ends[1]
            for i in range(block):
                one = target_of[i]
                place_of[i] = ones if one else zeros
                ones += one
                zeros += 1 - one
            ends[0] = zeros
            ends[1] = ones
        else:
            for i in range(block):
                target = target_of[i]
                place_of[i] = ends[target]
                ends[target] += 1
        for c in range(len(sources)):
            source = sources[c]
            first = c * targets
            if widths[c] == 8:
                source += 8 * row
                if targets == 2:
                    zero, step = destinations[first], destinations[first + 1] - destinations[first]
                    for i in range(block):
                        store_64(zero + (step if target_of[i] else 0) + 8 * place_of[i], load_64(source + 8 * i))
                else:
                    for i in range(block):
                        store_64(destinations[first + target_of[i]] + 8 * place_of[i], load_64(source + 8 * i))
            elif widths[c] == 4:
                source += 4 * row
                for i in range(block):
                    store_32(destinations[first + target_of[i]] + 4 * place_of[i], load_32(source + 4 * i))
            elif widths[c] == 2:
                source += 2 * row
                for i in range(block):
                    store_16(destinations[first + target_of[i]] + 2 * place_of[i], load_16(source + 2 * i))
            else:
                source += row
                for i in range(block):
                    store_8(destinations[first + target_of[i]] + place_of[i], load_8(source + i))
        row += block
    return row
