"""I6: a restored attempt has exactly the state of its checkpoint, including timers and source positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from workbench.drivers.contract.probes import unprobed
from workbench.durable.delayed_encoding import GONE
from workbench.lab.invariants.invariant import Invariant
from workbench.lab.invariants.model import Model
from workbench.operators.contract.base import Snapshot
from workbench.runtime.tasks.execution import Execution
from workbench.runtime.tasks.source_task import WATERMARKS, SourceTask

_POSITIONS = "positions"
_BROADCAST, _SUBTASK = "broadcast", "subtask"


class RestoredState(Invariant):
    """Copies the state of each operator immediately after its restore, and compares it with what was read.

    Where nothing is replayed after a failure, no state is promised, and sources must not go back.

    Rows of keyed state are compared over all subtasks: they may belong to others now. Sinks are left out; their state
    is committed, and the invariants of commits check that.
    """

    def __init__(self, model: Model, report: Callable[[str], None]) -> None:
        super().__init__(model, report)
        self._read: dict[str, dict[str, Snapshot]] = {}  # by task

    def process_begins(self) -> None:
        self._read = {}

    def state_read(self, task: str, states: dict[str, Snapshot]) -> None:
        self._read[task] = states  # again if the attempt before could not start

    def attached(self, execution: Execution) -> None:
        read: dict[str, list[Snapshot]] = {}
        for states in self._read.values():
            for uid, snapshot in states.items():
                read.setdefault(uid, []).append(snapshot)
        self._read = {}
        held: dict[str, list[Snapshot]] = {}
        sources: set[str] = set()
        for task in execution.tasks if read else ():
            if task.name in self.model.stays:
                continue
            for link in task.links:
                if link.children or link.edges or link.side_edges:
                    held.setdefault(link.uid, []).append(unprobed(link.operator).snapshot(0))
            if isinstance(task, SourceTask):
                sources.add(task.root.uid)
                state = held[task.root.uid][-1] = task.source_state()
                told = state[WATERMARKS]
                assert isinstance(told, dict)
                state[WATERMARKS] = {split: told.get(split) for split in task.event_time.splits}
        lossy = not self.model.master.settings.policy.replays
        for uid, snapshots in held.items():
            before = _as_many(read.get(uid, []), len(snapshots))
            if lossy:
                self._check_never_back(uid, before, snapshots)
            elif uid in sources:
                self._compare_sources(uid, before, snapshots)
            elif (rows := _rows(before)) != (found := _rows(snapshots)):
                lost, extra = rows - found, found - rows
                self.violated(
                    "I6",
                    f"{uid} was restored with {lost.total()} rows of its state missing and {extra.total()} too many,"
                    f" such as {min(lost or extra, key=repr)}",
                )

    def _check_never_back(self, uid: str, before: Sequence[Snapshot], now: Sequence[Snapshot]) -> None:
        read, found = _merged(before, _POSITIONS), _merged(now, _POSITIONS)
        for split, position in read.items():
            if split in found and found[split] < position:
                self.violated("I6", f"{uid} goes back to {found[split]} in {split}, it had read {position}")

    def _compare_sources(self, uid: str, before: Sequence[Snapshot], now: Sequence[Snapshot]) -> None:
        read, found = _merged(before, _POSITIONS), _merged(now, _POSITIONS)
        if any(found.get(split, position) != position for split, position in read.items()):
            self.violated("I6", f"{uid} continues from the positions {found}, but its checkpoint has {read}")
        if len(before) == len(now):  # splits that share event time may meet others at another parallelism
            told, tells = _merged(before, WATERMARKS), _merged(now, WATERMARKS)
            if any(tells.get(split, state) != state for split, state in told.items()):
                self.violated("I6", f"{uid} generates watermarks from {tells}, but its checkpoint has {told}")


def _as_many(snapshots: list[Snapshot], subtasks: int) -> list[Snapshot]:
    """The state from which this many subtasks resume: broadcast state, which each of them has, is the first one's if
    the parallelism has changed."""
    tables = [table for snapshot in snapshots if isinstance(table := snapshot.get(_BROADCAST), pa.Table)]
    if len(tables) in (0, subtasks):
        return snapshots
    first = min(tables, key=lambda table: int(table.column(_SUBTASK)[0].as_py()))
    place, field = first.schema.get_field_index(_SUBTASK), first.schema.field(_SUBTASK)
    others: list[Snapshot] = [{k: v for k, v in snapshot.items() if k != _BROADCAST} for snapshot in snapshots]
    copies = (first.set_column(place, field, pa.array([subtask], field.type)) for subtask in range(subtasks))
    return [*others, *({_BROADCAST: copy} for copy in copies)]


def _merged(snapshots: Sequence[Snapshot], name: str) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for snapshot in snapshots:
        piece = snapshot.get(name)
        merged.update(piece if isinstance(piece, dict) else {})
    return merged


def _rows(snapshots: Sequence[Snapshot]) -> Counter[Any]:
    """The rows of all tables in the snapshots, each with the name of its table."""
    rows: Counter[Any] = Counter()
    for snapshot in snapshots:
        for name, table in _by_meaning(_tables(snapshot)).items():
            rows.update((name, *values) for values in _values(table))
    return rows


def _tables(snapshot: Snapshot) -> dict[str, pa.Table]:
    tables = {}
    for name, value in snapshot.items():
        piece: Any = value() if callable(value) else value
        if isinstance(piece, pa.RecordBatchReader):
            piece = piece.read_all()
        if isinstance(piece, pa.Table):
            tables[name] = _last_of_each(piece) if GONE.name in piece.schema.names else piece
    return tables


def _last_of_each(table: pa.Table) -> pa.Table:
    """The valid rows of state that was saved as changes."""
    keys = [name for name in table.schema.names if name.startswith("key:")]
    last = {key: at for at, key in enumerate(_values(table.select(keys)))}
    kept = [at for at in last.values() if not table.column(GONE.name)[at].as_py()]
    return table.take(pa.array(kept, pa.int64())).drop_columns([GONE.name])


def _by_meaning(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Without the numbers of windows, which are assigned anew at each restore, and with the records in windows beside
    their windows; records that are in no window are left out."""
    windows = tables.get("windows")
    if windows is None or "place" not in windows.schema.names:
        return tables
    places = windows.column("place").to_pylist()
    windows = windows.drop_columns(["place"])
    if "members" not in tables:
        return {**tables, "windows": windows}
    records, members = tables["records"], tables["members"]
    at = {place: row for row, place in enumerate(places)}
    inside = windows.take(pa.array([at[entry] for entry in members.column("entry").to_pylist()], pa.int64()))
    for name, column in zip(records.column_names, records.take(members.column("row")).columns, strict=True):
        inside = inside.append_column(f"in {name}", column)
    others = {name: table for name, table in tables.items() if table is not records}
    return {**others, "windows": windows, "members": inside}


def _values(table: pa.Table) -> Iterator[tuple[str, ...]]:
    """Each row as texts, with its columns in the order of their names."""
    columns = [map(repr, table.column(name).to_pylist()) for name in sorted(table.column_names)]
    return zip(*columns, strict=True)
