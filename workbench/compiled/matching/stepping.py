"""Steps the partial matches of keys over the next rows of the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from workbench.compiled.machinery.codes import (
    ADD,
    AND,
    CONSTANT,
    COUNT,
    DIVIDE,
    EQUAL,
    FOLD,
    IS_NULL,
    LEAF,
    LESS,
    LESS_EQUAL,
    MIN,
    MULTIPLY,
    NEGATE,
    NOT,
    OP_WIDTH,
    OR,
    RANK,
    SUBTRACT,
    SUM,
)
from workbench.compiled.machinery.compiled import FLOAT_ROWS, FLOATS, FLOATS_IN, INT_ROWS, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from workbench.elements import Int64s

    Float64s = npt.NDArray[np.float64]
    IntRows = npt.NDArray[np.int64]
    FloatRows = npt.NDArray[np.float64]


@njit(nogil=True)  # type: ignore[untyped-decorator]
def bound_row(nodes: IntRows, last: int, row: int, label: int, mask: int, from_first: int, offset: int) -> int:
    """A row of some variables, counted from the first or from the last one; -1: there is none. ``find_bound`` does the
    same for many chains."""
    skipped = offset
    candidate = (mask >> label) & 1
    if from_first == 1:
        total = candidate
        at = last
        while at >= 0:
            total += (mask >> nodes[at, 1]) & 1
            at = nodes[at, 2]
        skipped = total - 1 - offset
        if skipped < 0:
            return -1
    if candidate == 1:
        if skipped == 0:
            return row
        skipped -= 1
    at = last
    while at >= 0:
        if (mask >> nodes[at, 1]) & 1 == 1:
            if skipped == 0:
                return int(nodes[at, 0])
            skipped -= 1
        at = nodes[at, 2]
    return -1


@njit(nogil=True)  # type: ignore[untyped-decorator]
def folded(
    nodes: IntRows,
    last: int,
    row: int,
    label: int,
    program: Int64s,
    op: int,
    ints: IntRows,
    floats: FloatRows,
    path: Int64s,
    stack: Int64s,
    reals: Float64s,
    top: int,
) -> bool:
    """Fold the rows of some variables, in their order, and push the result onto the stack.

    Returns:
        Whether a sum of integers is too large.
    """
    column = program[op + 1]
    mask = program[op + 2]
    function = program[op + 3]
    real = program[op + 4] == 1
    width = ints.shape[1] - 1
    length = 0
    if (mask >> label) & 1 == 1:
        path[0] = row
        length = 1
    at = last
    while at >= 0:
        if (mask >> nodes[at, 1]) & 1 == 1:
            path[length] = nodes[at, 0]
            length += 1
        at = nodes[at, 2]
    count = 0
    whole = 0
    number = 0.0
    for i in range(length - 1, -1, -1):
        at = path[i]
        if column >= 0 and (ints[at, width] >> column) & 1 == 0:
            continue
        count += 1
        if function == COUNT:
            continue
        if real:
            one = floats[at, column]
            if count == 1:
                number = one if function != SUM else 0.0 + one
            elif function == SUM:
                number += one
            elif function == MIN:
                if one < number or (number != number and one == one):
                    number = one
            elif one > number or one != one:
                number = one
        else:
            value = ints[at, column]
            if count == 1:
                whole = value
            elif function == SUM:
                after = whole + value
                if (whole ^ after) & (value ^ after) < 0:
                    return True
                whole = after
            elif function == MIN:
                whole = min(whole, value)
            else:
                whole = max(whole, value)
    stack[2 * top] = count if function == COUNT else whole
    stack[2 * top + 1] = 1 if function == COUNT or count > 0 else 0
    reals[top] = number
    if program[op + 5] == 1:
        reals[top] = (number if real else float(whole)) / max(count, 1)
    return False


@njit(nogil=True)  # type: ignore[untyped-decorator]
def condition_holds(
    begin: int,
    end: int,
    start: int,
    last: int,
    row: int,
    label: int,
    program: Int64s,
    constants: Float64s,
    ranks: Int64s,
    nodes: IntRows,
    before: Int64s,
    after: Int64s,
    ints: IntRows,
    floats: FloatRows,
    path: Int64s,
    stack: Int64s,
    reals: Float64s,
) -> int:
    """Run the instructions of a condition for one partial match and row.

    Each value on the stack is an integer and whether it is known (not null); a second stack has floating-point numbers.

    Returns:
        1: true, 0: false or null, -1: a sum of integers is too large.
    """
    width = ints.shape[1] - 1
    top = -1
    for at in range(begin, end):
        op = OP_WIDTH * at
        kind = program[op]
        if kind == LEAF:
            top += 1
            found = start
            if program[op + 3] < 2:
                found = bound_row(nodes, last, row, label, program[op + 2], program[op + 3], program[op + 4])
            shift = program[op + 5]
            while shift > 0 and found >= 0:
                found = after[found]
                shift -= 1
            while shift < 0 and found >= 0:
                found = before[found]
                shift += 1
            if found < 0:
                stack[2 * top] = program[op + 6]
                stack[2 * top + 1] = program[op + 7]
                reals[top] = constants[at]
            else:
                column = program[op + 1]
                stack[2 * top] = ints[found, column]
                stack[2 * top + 1] = (ints[found, width] >> column) & 1
                reals[top] = floats[found, column]
            continue
        if kind == FOLD:
            top += 1
            if folded(nodes, last, row, label, program, op, ints, floats, path, stack, reals, top):
                return -1
            continue
        if kind == CONSTANT:
            top += 1
            stack[2 * top] = program[op + 6]
            stack[2 * top + 1] = program[op + 7]
            reals[top] = constants[at]
            continue
        if kind == NOT:
            stack[2 * top] = 1 - stack[2 * top]
            continue
        if kind == IS_NULL:
            stack[2 * top] = 1 - stack[2 * top + 1]
            stack[2 * top + 1] = 1
            continue
        if kind == RANK:
            stack[2 * top] = ranks[stack[2 * top]]
            continue
        real = program[op + 1] == 1
        if kind == NEGATE:
            if real:
                reals[top] = -reals[top]
            else:
                if stack[2 * top] == program[op + 2]:
                    stack[2 * top + 1] = 0
                stack[2 * top] = -stack[2 * top]
            continue
        if kind > NEGATE:  # TO_REAL
            reals[top] = float(stack[2 * top])
            continue
        top -= 1
        x = stack[2 * top]
        y = stack[2 * top + 2]
        known = stack[2 * top + 1] & stack[2 * top + 3]
        u = reals[top]
        v = reals[top + 1]
        if kind in (AND, OR):
            decides = 1 if kind == OR else 0  # whatever the value of the other side
            if (stack[2 * top + 1] == 1 and x == decides) or (stack[2 * top + 3] == 1 and y == decides):
                x = decides
                known = 1
            else:
                x = 1 - decides
        elif kind == EQUAL:
            same = (u == v or (u != u and v != v)) if real else x == y
            x = 1 if same else 0
        elif kind == LESS:
            less = (u == u and (v != v or u < v)) if real else x < y
            x = 1 if less else 0
        elif kind == LESS_EQUAL:
            at_most = (v != v or u <= v) if real else x <= y
            x = 1 if at_most else 0
        elif real:
            if kind == ADD:
                u = u + v
            elif kind == SUBTRACT:
                u = u - v
            elif kind == MULTIPLY:
                u = u * v
            elif kind == DIVIDE:
                if v == 0.0:
                    known = 0
                else:
                    u = u / v
        else:
            least = program[op + 2]
            most = program[op + 3]
            if kind == ADD:
                z = x + y
                if (x ^ z) & (y ^ z) < 0:
                    known = 0
            elif kind == SUBTRACT:
                z = x - y
                if (x ^ y) & (x ^ z) < 0:
                    known = 0
            else:
                z = x * y
                about = abs(float(x) * float(y))  # at 2^63, only the quotient shows whether it fits
                fits = about < 9.3e18
                if fits and about > 9.2e18:
                    fits = x != z if y == -1 else z // y == x
                if not fits:
                    known = 0
            x = z
            if z < least or z > most:
                known = 0
        stack[2 * top] = x
        stack[2 * top + 1] = known
        reals[top] = u
    return int(stack[0] & stack[1])


@compiled(
    *(INTS_IN, INTS_IN, INTS_IN, INTS_IN, INTS_IN, INTS_IN, INTS_IN),
    *(INT_ROWS, INT_ROWS, INT_ROWS, INT_ROWS, INT_ROWS, INTS, INTS),
    *(INTS_IN, INTS_IN, INTS_IN, FLOATS_IN, INTS_IN, INTS_IN, INTS_IN, INT_ROWS, FLOAT_ROWS, INTS, INTS, FLOATS),
)
def step_matches(
    codes: Int64s,
    rows: Int64s,
    times: Int64s,
    bits: Int64s,
    first: Int64s,
    edges: Int64s,
    settings: Int64s,
    heads: IntRows,
    entries: IntRows,
    nodes: IntRows,
    found: IntRows,
    scratch: IntRows,
    seen: Int64s,
    counts: Int64s,
    needs: Int64s,
    conditions: Int64s,
    program: Int64s,
    constants: Float64s,
    ranks: Int64s,
    row_before: Int64s,
    row_behind: Int64s,
    ints: IntRows,
    floats: FloatRows,
    path: Int64s,
    stack: Int64s,
    reals: Float64s,
) -> int:
    """Step rows, grouped by key and in the order in which they match, until the end or until an array is full.

    An entry is a partial match: its state, its last node, its first row, the time of that row, and the conditions that
    hold for it, if they were evaluated. An entry with the state -1 is a match that waits for others. The entries of a
    key are sorted by their first row and, for the same first row, by preference. A node is a bound row: the row, the
    variable, and the previous node, or -1.

    Args:
        codes, rows, times: shape (n,), the key, the number and the time of each row; for one key, numbers only grow.
        bits: shape (n,), the conditions that hold for each row; -1: no row, but time has passed up to this; -2: there
            are no further rows.
        first, edges: see `Automaton`.
        settings: every match (1) or the preferred one for each first row (0); where matching continues after a match
            (0: nowhere, 1: after its first row, 2: after its last row, 3 and 4: at the first or last row of some
            variables); the bits of these variables; the time that a match must stay below, or 0; whether conditions are
            evaluated for single entries; whether a match may have no rows; the largest number of edges of a state; the
            maximum number of entries of a key; whether it is an error if the row at which matching continues is
            missing; whether there are edges that stop.
        heads: shape (keys, 2), the first entry and the number of entries of each key, changed in place.
        entries: shape (e, 5).
        nodes: shape (m, 3).
        found: shape (f, 5), filled with code, node, first row, time and kind (0: a match, 1: its time has run out).
        scratch: shape (2 * s, 5).
        seen: shape (2 * states,), numbers of moments, not larger than ``counts[4]``.
        counts: the numbers of entries, nodes and results, the next row, and the last moment; changed in place.
        needs: shape (states,), the bits of the conditions that edges of a state read.
        conditions: shape (4 * k,), bit, variable, and begin and end in `program` of each condition that is computed
            here for single entries; empty: the conditions in `entries` are used.
        program: shape (8 * p,), instructions: an operation and its operands. The operands of LEAF are the column, the
            bits of the variables, whether to count from the first row (2: the first row of the match), the distance in
            the chain, the distance among the rows of the key, and, for a missing row, an integer and whether it is
            known. Those of FOLD are the column (-1: none), the variables, the operation of ``fold_ints``, whether its
            values are floating-point, and whether the result is a mean. RANK has none. All others have whether their
            operands are floating-point, and the bounds of the result.
        constants: shape (p,), the floating-point number of a constant, or for a missing row.
        ranks: shape (t,), the rank of each text, by its code; empty if RANK does not occur.
        row_before, row_behind: shape (r,), the key's previous and next row for each row, or -1.
        ints: shape (r, columns + 1), values of the rows; in the last column, the bits of the values that are known.
        floats: the same memory as floating-point numbers.
        path: shape (m + 1,), scratch space for the rows of one chain.
        stack, reals: shape (2 * d,) and (d,), scratch space for the values of instructions.

    Returns:
        0: done; 1, 2, 3, 4: `entries`, `nodes`, `found` or `scratch` is full; 5: the key of the next row has too many
        entries; 6, 7: its match lacks the row at which matching continues, or begins at it; 8: a sum is too large.
    """
    every = settings[0] == 1
    skip = settings[1]
    mask = settings[2]
    within = settings[3]
    asked = settings[4] == 1
    empty = settings[5] == 1
    most = settings[6]
    entries_max = settings[7]
    strict = settings[8] == 1
    stops = settings[9] == 1
    states = len(first) - 1
    merges = not every and not asked
    merges_starts = merges and within == 0 and skip == 2
    half = len(scratch) >> 1
    old = 0
    new = half
    live = 0
    key = -1
    status = 0
    i = counts[3]
    n = len(codes)
    while True:
        if i == n or codes[i] != key or status != 0:
            if key >= 0:
                at = counts[0]
                for j in range(live):
                    for part in range(5):
                        entries[at + j, part] = scratch[old + j, part]
                heads[key, 0] = at
                heads[key, 1] = live
                counts[0] = at + live
            counts[3] = i
            if i == n or status != 0:
                return status
            if len(entries) - counts[0] < half:
                return 1
            key = codes[i]
            live = heads[key, 1]
            if live + 2 > half:
                return 4
            at = heads[key, 0]
            for j in range(live):
                for part in range(5):
                    scratch[old + j, part] = entries[at + j, part]
        if (live + 2) * (most + 1) > half:
            status = 4
            continue
        if counts[1] + (live + 1) * most > len(nodes):
            status = 2
            continue
        if counts[2] + (live + 2) * (most + 2) > len(found):
            status = 3
            continue
        now = times[i]
        tick = bits[i] < 0
        ends = bits[i] == -2
        advance = True
        if within > 0:  # each partial match ends at its own time, even if rows and watermarks are far apart
            for j in range(old, old + live):
                if scratch[j, 0] >= 0 and scratch[j, 1] >= 0:
                    if scratch[j, 3] + within <= now:
                        now = scratch[j, 3] + within
                        tick = True
                        ends = False
                        advance = False
                    break
        if tick and advance and not ends:
            i += 1
            continue
        if not tick and len(conditions) > 0:
            for j in range(old, old + live):
                if scratch[j, 0] < 0 or scratch[j, 1] < 0:
                    continue
                word = bits[i]
                for k in range(0, len(conditions), 4):
                    mark = 1 << conditions[k]
                    if needs[scratch[j, 0]] & mark == 0:
                        continue
                    holds = condition_holds(
                        conditions[k + 2],
                        conditions[k + 3],
                        scratch[j, 2],
                        scratch[j, 1],
                        rows[i],
                        conditions[k + 1],
                        program,
                        constants,
                        ranks,
                        nodes,
                        row_before,
                        row_behind,
                        ints,
                        floats,
                        path,
                        stack,
                        reals,
                    )
                    if holds < 0:
                        status = 8
                    word = word | mark if holds == 1 else word & ~mark
                scratch[j, 4] = word
            if status != 0:
                continue
        if not tick:
            if first[1] > first[0]:
                scratch[old + live, 0] = 0
                scratch[old + live, 1] = -1
                scratch[old + live, 2] = rows[i]
                scratch[old + live, 3] = now
                live += 1
            if empty and not every:
                scratch[old + live, 0] = -1
                scratch[old + live, 1] = -1
                scratch[old + live, 2] = rows[i]
                scratch[old + live, 3] = now
                live += 1
        count = 0
        cut = -1
        head = scratch[old, 2] if live > 0 else -1
        counts[4] += 1
        moment = counts[4]
        head_moment = moment
        former = head
        for j in range(old, old + live):
            state = scratch[j, 0]
            node = scratch[j, 1]
            start = scratch[j, 2]
            start_time = scratch[j, 3]
            if start == cut:
                continue
            if state >= 0 and within > 0 and node >= 0 and now - start_time >= within:
                ripe = False
                for edge in range(first[state], first[state + 1]):
                    if edges[6 * edge] == 3:
                        ripe = True
                if ripe and not (every and skip == 0):
                    for part in range(5):
                        scratch[new + count, part] = scratch[j, part]
                    scratch[new + count, 0] = -1
                    count += 1
                else:
                    place = counts[2]
                    found[place, 0] = key
                    found[place, 1] = node
                    found[place, 2] = start
                    found[place, 3] = start_time + within
                    found[place, 4] = 0 if ripe else 1
                    counts[2] = place + 1
                continue
            if state >= 0 and ends:
                continue
            if state < 0 or tick:
                for part in range(5):
                    scratch[new + count, part] = scratch[j, part]
                count += 1
                continue
            if start != former:
                former = start
                counts[4] += 1
                moment = counts[4]
            word = scratch[j, 4] if asked and node >= 0 else bits[i]
            stopped = False
            if stops:
                for edge in range(first[state], first[state + 1]):
                    e = 6 * edge
                    if edges[e] == 2 and (word & edges[e + 2]) == edges[e + 2] and (word & edges[e + 3]) == 0:
                        stopped = True
            for edge in range(first[state], first[state + 1]):
                e = 6 * edge
                kind = edges[e]
                if kind >= 2 or (word & edges[e + 2]) != edges[e + 2] or (word & edges[e + 3]) != 0:
                    continue
                if kind != 0 and node < 0:
                    continue
                last = node
                if kind == 0:
                    last = counts[1]
                    nodes[last, 0] = rows[i]
                    nodes[last, 1] = edges[e + 4]
                    nodes[last, 2] = node
                    counts[1] = last + 1
                to = edges[e + 1]
                if not stopped and first[to + 1] > first[to]:
                    known = False
                    if merges:
                        known = seen[to] == moment
                        seen[to] = moment
                        if merges_starts:
                            if start == head:
                                seen[states + to] = head_moment
                            elif seen[states + to] == head_moment:
                                known = True
                    if not known:
                        scratch[new + count, 0] = to
                        scratch[new + count, 1] = last
                        scratch[new + count, 2] = start
                        scratch[new + count, 3] = start_time
                        scratch[new + count, 4] = 0
                        count += 1
                if edges[e + 5] == 1:
                    if every and skip == 0:
                        place = counts[2]
                        found[place, 0] = key
                        found[place, 1] = last
                        found[place, 2] = start
                        found[place, 3] = now
                        found[place, 4] = 0
                        counts[2] = place + 1
                    else:
                        scratch[new + count, 0] = -1
                        scratch[new + count, 1] = last
                        scratch[new + count, 2] = start
                        scratch[new + count, 3] = start_time
                        scratch[new + count, 4] = 0
                        count += 1
                    if not every:
                        cut = start
                        break
        while True:
            chosen = -1
            for j in range(new, new + count):
                if scratch[j, 0] < 0:
                    # Entries are sorted by their first rows: only earlier entries can hold this one back.
                    if j == new or (every and scratch[new, 2] == scratch[j, 2]):
                        chosen = j
                    else:
                        waits = False
                        for before in range(new, j):
                            other = scratch[before, 2]
                            if scratch[before, 0] >= 0 and (other < scratch[j, 2] or not every):
                                waits = True
                        if not waits:
                            chosen = j
                    break
            if chosen < 0:
                break
            node = scratch[chosen, 1]
            start = scratch[chosen, 2]
            place = counts[2]
            found[place, 0] = key
            found[place, 1] = node
            found[place, 2] = start
            found[place, 3] = now
            found[place, 4] = 0
            counts[2] = place + 1
            target = start + 1
            if skip == 2 and node >= 0:
                target = nodes[node, 0] + 1
            elif skip == 0:
                target = start
            elif skip >= 3:
                target = -1
                at = node
                while at >= 0:
                    if (mask >> nodes[at, 1]) & 1 == 1 and (skip == 3 or target < 0):
                        target = nodes[at, 0]
                    at = nodes[at, 2]
                if target < 0 and strict:
                    status = 6
                if target == start and not every:
                    status = 7
                    target = start + 1
            kept = new
            for j in range(new, new + count):
                if j != chosen and scratch[j, 2] >= target:
                    if kept != j:
                        for part in range(5):
                            scratch[kept, part] = scratch[j, part]
                    kept += 1
            count = kept - new
        live = count
        old, new = new, old
        if status != 0:
            continue
        if live > entries_max:
            status = 5
            continue
        if advance:
            i += 1
