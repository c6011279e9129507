"""The snapshot of pattern matching: rows, nodes that refer to rows, and partial matches that refer to nodes.

Rows contain their keys, so they are assigned by key group like any keyed state. Nodes belong with their rows, and
partial matches with their first row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from workbench.elements import Int64s
from workbench.errors import CheckpointError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.matching.kept_rows import KeptRows
from workbench.operators.matching.partials import NODE, START, START_TIME, STATE, IntRows, Partials
from workbench.operators.matching.waiting_rows import Timed, WaitingRows
from workbench.operators.snapshots.keyed_snapshot import key_rows, owned_table
from workbench.operators.snapshots.pieces import codes_in, numbers_in, table_in, value_in
from workbench.operators.snapshots.saved_rows import restored_rows, saved_rows
from workbench.state.key_groups import key_groups_of, subtask_of_group
from workbench.state.key_index import KeyIndex
from workbench.state.keyed_states import with_keys

if TYPE_CHECKING:
    from workbench.operators.matching.match import MatchRows

_NONE = np.empty(0, np.int64)


def saved(
    text: str,
    index: KeyIndex,
    waiting: WaitingRows,
    kept: KeptRows,
    partials: Partials,
    latest: Int64s,
    numbers: Int64s | None,
) -> Snapshot:
    """The pieces of a snapshot.

    Args:
        text: the pattern.
        index: of the keys.
        waiting, kept, partials: the state, without unneeded rows and nodes.
        latest: by code, the number of the last row, plus 1; 0: none is needed.
        numbers: by code, the number of matches so far; None: they are not counted.
    """
    rows = waiting.all()
    batch = kept.take(np.arange(len(kept)))
    whole = pa.concat_batches([batch, rows.batch]) if len(rows) else batch
    is_latest = np.zeros(len(kept) + len(rows), np.int64)
    is_latest[latest[latest > 0] - 1] = 1
    unlinked = np.full(len(rows), -1, np.int64)
    details = {
        "time": pa.array(np.concatenate([kept.times, rows.times])),
        "kept": pa.array(np.repeat([1, 0], [len(kept), len(rows)])),
        "before": pa.array(np.concatenate([kept.before, unlinked])),
        "after": pa.array(np.concatenate([kept.after, unlinked])),
        "latest": pa.array(is_latest),
    }
    codes = partials.codes()
    places, _ = partials.of(codes)
    entries = partials.entries[places]
    nodes = partials.nodes[: partials.nodes_used()]
    pieces: Snapshot = {
        "pattern": text,
        "rows": saved_rows(whole, details),
        "nodes": pa.table({"row": nodes[:, 0], "variable": nodes[:, 1], "before": nodes[:, 2]}),
        "partials": pa.table(
            {
                "state": entries[:, STATE],
                "node": entries[:, NODE],
                "first_row": entries[:, START],
                "first_time": entries[:, START_TIME],
            }
        ),
    }
    if numbers is not None:
        counted = np.flatnonzero(numbers)
        pieces["numbers"] = with_keys(index.keys_table(counted), [pa.array(numbers[counted])], ["matches"])
    return pieces


@dataclass(slots=True)
class Restored:
    """The restored state that belongs to this subtask.

    Attributes:
        waiting: rows that the watermark has not passed.
        kept: rows that partial matches or terms need.
        before, after: shape (n,), see `KeptRows`.
        nodes: shape (m, 3).
        codes, entries: shape (e,) and (e, 5), ascending by code.
        latest_codes, latest_rows: the last row of each key.
        numbered_codes, numbers: keys, and their numbers of matches so far.
    """

    waiting: Timed
    kept: Timed
    before: Int64s
    after: Int64s
    nodes: IntRows
    codes: Int64s
    entries: IntRows
    latest_codes: Int64s
    latest_rows: Int64s
    numbered_codes: Int64s
    numbers: Int64s

    def into(self, kept: KeptRows, partials: Partials) -> None:
        """Put rows and partial matches into an empty operator."""
        if len(self.kept):
            kept.add(self.kept, np.full(len(self.kept), -1, np.int64))
        kept.before, kept.after = self.before, self.after
        partials.load(self.codes, self.entries, self.nodes)


def restored(
    snapshots: Sequence[Snapshot], spec: MatchRows, schema: pa.Schema, index: KeyIndex, context: OperatorContext
) -> Restored:
    """The part of the state of all former subtasks whose keys this subtask owns.

    Raises:
        CheckpointError: the state belongs to another pattern, or to rows with other columns.
        ValueError: it is damaged.
    """
    parts = [_restored(snapshot, spec, schema, index, context) for snapshot in snapshots]
    numbered = owned_table(snapshots, "numbers", spec.keys, context) if _counted(snapshots) else None
    numbered_codes = numbers = _NONE
    if numbered is not None:
        numbered_codes = codes_in(index, key_rows(numbered, spec.keys))
        numbers = numbers_in(numbered, "matches", 0)
    rows = np.cumsum([0, *(len(part.kept) for part in parts)])
    nodes = np.cumsum([0, *(len(part.nodes) for part in parts)])
    for part, row, node in zip(parts, rows.tolist(), nodes.tolist(), strict=False):
        part.before += row * (part.before >= 0)
        part.after += row * (part.after >= 0)
        part.latest_rows += row
        part.nodes[:, 0] += row
        part.nodes[:, 2] += node * (part.nodes[:, 2] >= 0)
        part.entries[:, START] += row
        part.entries[:, NODE] += node * (part.entries[:, NODE] >= 0)
    codes = np.concatenate([_NONE, *(part.codes for part in parts)])
    order = np.argsort(codes, kind="stable")
    return Restored(
        _together([part.waiting for part in parts], schema),
        _together([part.kept for part in parts], schema),
        np.concatenate([_NONE, *(part.before for part in parts)]),
        np.concatenate([_NONE, *(part.after for part in parts)]),
        np.concatenate([np.empty((0, 3), np.int64), *(part.nodes for part in parts)]),
        codes[order],
        np.concatenate([np.empty((0, 5), np.int64), *(part.entries for part in parts)])[order],
        np.concatenate([_NONE, *(part.latest_codes for part in parts)]),
        np.concatenate([_NONE, *(part.latest_rows for part in parts)]),
        numbered_codes,
        numbers,
    )


def _counted(snapshots: Sequence[Snapshot]) -> bool:
    return any("numbers" in snapshot for snapshot in snapshots)


def _together(parts: Sequence[Timed], schema: pa.Schema) -> Timed:
    return Timed(
        pa.concat_batches([pa.RecordBatch.from_pylist([], schema=schema), *(part.batch for part in parts)]),
        np.concatenate([_NONE, *(part.codes for part in parts)]),
        np.concatenate([_NONE, *(part.times for part in parts)]),
    )


def _restored(
    snapshot: Snapshot, spec: MatchRows, schema: pa.Schema, index: KeyIndex, context: OperatorContext
) -> Restored:
    text = value_in(snapshot, "pattern", str)
    if text != spec.text:
        raise CheckpointError(
            f"the state of operator {context.uid!r} belongs to the pattern {text}, but the pattern is now "
            f"{spec.text}: change the operator's uid to start with empty state"
        )
    table, nodes, partials = (table_in(snapshot, name) for name in ("rows", "nodes", "partials"))
    batch = restored_rows(table, schema, "kept", context)
    n, m, states = table.num_rows, nodes.num_rows, len(spec.automaton.waits)
    times = numbers_in(table, "time")
    is_kept = numbers_in(table, "kept", 0, 2) == 1
    links = [numbers_in(table, name, -1, max(n, 1)) for name in ("before", "after")]
    is_latest = numbers_in(table, "latest", 0, 2) == 1
    node_rows = numbers_in(nodes, "row", 0, max(n, 1))
    variables = numbers_in(nodes, "variable", 0, len(spec.automaton.variables))
    node_before = numbers_in(nodes, "before", -1, max(m, 1))
    if (node_before >= np.arange(m)).any():
        raise ValueError("nodes refer to later ones")
    state = numbers_in(partials, "state", -1, states)
    node = numbers_in(partials, "node", -1, max(m, 1))
    first_row = numbers_in(partials, "first_row", 0, max(n, 1))
    first_time = numbers_in(partials, "first_time")
    if (len(partials) and not n) or (m and not n) or (node >= m).any() or not is_kept[node_rows].all():
        raise ValueError("partial matches refer to missing rows")
    owners = subtask_of_group(context.parallelism, context.max_parallelism)
    own = owners[key_groups_of(batch, spec.keys, context.max_parallelism)] == context.subtask
    mine = own & is_kept
    new_rows = np.full(n + 1, -1, np.int64)
    new_rows[np.flatnonzero(mine)] = np.arange(np.count_nonzero(mine))
    node_mine = mine[node_rows]
    new_nodes = np.full(m + 1, -1, np.int64)
    new_nodes[np.flatnonzero(node_mine)] = np.arange(np.count_nonzero(node_mine))
    entry_mine = mine[first_row]
    codes = np.full(n, -1, np.int64)
    codes[own] = index.codes(batch.filter(pa.array(own)).select(list(spec.keys)) if spec.keys else batch)
    waits = own & ~is_kept
    entries = np.zeros((int(np.count_nonzero(entry_mine)), 5), np.int64)
    entries[:, STATE], entries[:, NODE] = state[entry_mine], new_nodes[node[entry_mine]]
    entries[:, START], entries[:, START_TIME] = new_rows[first_row[entry_mine]], first_time[entry_mine]
    return Restored(
        Timed(batch.filter(pa.array(waits)), codes[waits], times[waits]),
        Timed(batch.filter(pa.array(mine)), codes[mine], times[mine]),
        new_rows[links[0][mine]],
        new_rows[links[1][mine]],
        np.stack([new_rows[node_rows], variables, new_nodes[node_before]], axis=1)[node_mine],
        codes[first_row[entry_mine]],
        entries,
        codes[mine & is_latest],
        new_rows[np.flatnonzero(mine & is_latest)],
        _NONE,
        _NONE,
    )
