"""Walks along the rows that partial matches have bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.compiled.machinery.compiled import I64, INT_ROWS, INTS, INTS_IN, compiled

if TYPE_CHECKING:
    from workbench.compiled.matching.stepping import IntRows
    from workbench.elements import Int64s


@compiled(INT_ROWS, INTS_IN, INTS_IN, INTS_IN, I64, I64, I64, INTS)
def find_bound(
    nodes: IntRows, last: Int64s, rows: Int64s, labels: Int64s, mask: int, offset: int, from_first: int, places: Int64s
) -> None:
    """In each chain of bound rows, find a row of some variables, counted from the first or from the last one.

    Args:
        nodes: shape (m, 3): row, variable, and the previous node, or -1.
        last: shape (n,), the last node of each chain, or -1.
        rows, labels: shape (n,), one more row after the chain and its variable; -1: none.
        mask: the bits of the variables.
        offset: the distance, from 0.
        from_first: 1: count from the first row onwards; 0: from the last row backwards.
        places: shape (n, 2), flattened; filled with the row and its variable, -1 if there is none.
    """
    for i in range(len(last)):
        places[2 * i] = -1
        places[2 * i + 1] = -1
        skipped = offset
        if from_first == 1:
            total = 0
            if rows[i] >= 0 and (mask >> labels[i]) & 1 == 1:
                total += 1
            at = last[i]
            while at >= 0:
                if (mask >> nodes[at, 1]) & 1 == 1:
                    total += 1
                at = nodes[at, 2]
            skipped = total - 1 - offset
            if skipped < 0:
                continue
        if rows[i] >= 0 and (mask >> labels[i]) & 1 == 1:
            if skipped == 0:
                places[2 * i] = rows[i]
                places[2 * i + 1] = labels[i]
                continue
            skipped -= 1
        at = last[i]
        while at >= 0:
            if (mask >> nodes[at, 1]) & 1 == 1:
                if skipped == 0:
                    places[2 * i] = nodes[at, 0]
                    places[2 * i + 1] = nodes[at, 1]
                    break
                skipped -= 1
            at = nodes[at, 2]


@compiled(INT_ROWS, INTS_IN, INTS_IN, INTS_IN, I64, INTS, INTS, INTS, INTS)
def list_bound(
    nodes: IntRows,
    last: Int64s,
    rows: Int64s,
    labels: Int64s,
    mask: int,
    chains: Int64s,
    bound: Int64s,
    variables: Int64s,
    places: Int64s,
) -> int:
    """List all rows of some variables in each chain, in the order of the rows.

    Args:
        nodes, last, rows, labels, mask: see ``find_bound``.
        chains, bound, variables, places: shape (r,), filled as far as there is room: for each row that is found, its
            chain, the row, its variable, and its node (-1: the row after the chain).

    Returns:
        The number of rows.
    """
    total = 0
    for i in range(len(last)):
        begin = total
        if rows[i] >= 0 and (mask >> labels[i]) & 1 == 1:
            if total < len(chains):
                chains[total] = i
                bound[total] = rows[i]
                variables[total] = labels[i]
                places[total] = -1
            total += 1
        at = last[i]
        while at >= 0:
            if (mask >> nodes[at, 1]) & 1 == 1:
                if total < len(chains):
                    chains[total] = i
                    bound[total] = nodes[at, 0]
                    variables[total] = nodes[at, 1]
                    places[total] = at
                total += 1
            at = nodes[at, 2]
        if total <= len(chains):
            low = begin
            high = total - 1
            while low < high:
                bound[low], bound[high] = bound[high], bound[low]
                variables[low], variables[high] = variables[high], variables[low]
                places[low], places[high] = places[high], places[low]
                low += 1
                high -= 1
    return total


@compiled(INT_ROWS, INTS_IN, INTS, INTS)
def mark_bound(nodes: IntRows, last: Int64s, nodes_used: Int64s, rows_used: Int64s) -> None:
    """Mark the nodes and rows of chains.

    Args:
        nodes: see ``find_bound``.
        last: shape (n,), the last node of each chain, or -1.
        nodes_used: shape (m,), set to 1 for the nodes.
        rows_used: shape (rows,), set to 1 for their rows.
    """
    for i in range(len(last)):
        at = last[i]
        while at >= 0 and nodes_used[at] == 0:
            nodes_used[at] = 1
            rows_used[nodes[at, 0]] = 1
            at = nodes[at, 2]
