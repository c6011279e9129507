"""Incremental checkpoints: large tables of state are written once, and after that only their changes.

A large table is a chain of files, its base and its changes, shared by all checkpoints that need them. The table as of
the latest complete checkpoint stays in memory for comparison. The checkpoint's writer compares, so the data path is not
affected. A new chain begins when the changes amount to half of the base, or are too many.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from workbench.errors import CorruptCheckpointError
from workbench.from_arrow import Unfolding, tables_in
from workbench.raised import first_line_of
from workbench.runtime.storage.encoding import Encoded, Piece, written
from workbench.runtime.storage.manifest import StatePart
from workbench.runtime.storage.table_changes import Changes, apply_changes, can_change, changes_between

CHANGES_MAX = 10
"""The maximum number of change files; more would slow down a restore by more than they speed up a checkpoint."""

_Key = tuple[str, str, str]
"""Identifies a table of state: task, operator, name."""


@dataclass(frozen=True, slots=True)
class _Version:
    """A table as of a checkpoint, and the files that it is written in.

    For state on disk `content` is the version from which it tracks changes, for other state the table itself.
    """

    content: object
    parts: tuple[StatePart, ...]


@dataclass(slots=True)
class _Written:
    """What was written for one checkpoint."""

    versions: dict[_Key, _Version] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)


class StateParts:
    """The large tables of a job's checkpoints; used only by the checkpoints' writer.

    Args:
        write: writes buffers durably to a path within the storage, and returns the written part.
        above_bytes: smaller tables are written whole each time, into the task's file.
    """

    def __init__(self, write: Callable[[str, Iterable[Any]], StatePart], above_bytes: int) -> None:
        self._write = write
        self._above_bytes = above_bytes
        self._latest: dict[_Key, _Version] = {}
        self._pending: dict[str, _Written] = {}

    def take_out(self, place: str, task: str, name: str, state: Encoded) -> tuple[Encoded, tuple[StatePart, ...], int]:
        """Write the large tables of a task's state; returns the rest, their files, and the number of bytes newly
        written.

        Args:
            place: of the checkpoint.
            task: its name.
            name: that its files begin with.
            state: of the task.
        """
        parts: dict[str, StatePart] = {}
        mine = self._pending.setdefault(place, _Written())
        new = 0

        def parts_of(piece: Piece) -> tuple[str, ...] | None:
            nonlocal new
            key = (task, piece.operator, piece.name)
            latest = self._latest.get(key)
            now: object
            if piece.changing is not None:
                now = piece.changing.moment
                chain, content = _rows_chain(latest, piece)
            elif isinstance(piece.table, pa.Table) and self._is_large(piece.table):
                now = piece.table
                chain, content = _table_chain(latest, piece.table)
            else:
                return None
            part = self._write(f"{name}-{len(mine.versions)}.arrow", written(content))
            new += part.size
            mine.files.add(part.path)
            mine.versions[key] = version = _Version(now, (*chain, part))
            parts.update((each.path, each) for each in version.parts)
            return tuple(each.path for each in version.parts)

        rest = state.with_parts(parts_of)
        return rest, tuple(parts.values()), new

    def _is_large(self, table: pa.Table) -> bool:
        return bool(table.nbytes >= self._above_bytes and can_change(table))

    def complete(self, place: str) -> None:
        """The checkpoint is complete: the next ones are compared with it."""
        if place in self._pending:
            self._latest = self._pending.pop(place).versions

    def give_up(self, place: str) -> set[str]:
        """The checkpoint was aborted; returns the files that were written for it alone."""
        found = self._pending.pop(place, None)
        return set() if found is None else found.files

    def forget(self, files: Set[str]) -> None:
        """These files are deleted: tables that include them are no longer used for comparison."""
        self._latest = {
            key: version
            for key, version in self._latest.items()
            if files.isdisjoint(part.path for part in version.parts)
        }


_Chain = tuple[tuple[StatePart, ...], "Sequence[pa.Table | pa.RecordBatchReader]"]
"""The files so far, and the content of the next one."""


def _table_chain(latest: _Version | None, table: pa.Table) -> _Chain:
    """The chain of a table in memory, found by comparison."""
    if latest is not None and len(latest.parts) <= CHANGES_MAX and isinstance(latest.content, pa.Table):
        changes = changes_between(latest.content, table)
        if changes is not None and 2 * (_changed_bytes(latest) + changes.nbytes) <= latest.parts[0].size:
            return latest.parts, (changes.runs, changes.rows)
    return (), (table,)


def _rows_chain(latest: _Version | None, piece: Piece) -> _Chain:
    """The chain of state on disk, which tracks its changes."""
    assert piece.changing is not None
    if latest is not None and len(latest.parts) <= CHANGES_MAX and 2 * _changed_bytes(latest) <= latest.parts[0].size:
        changes = piece.changing.since(latest.content)
        if changes is not None:
            return latest.parts, (changes,)
    return (), (piece.table,)


def _changed_bytes(version: _Version) -> int:
    return sum(part.size for part in version.parts[1:])


def read_parts(buffers: Sequence[Any], path: str, unfolding: Unfolding) -> pa.Table:
    """The table in the bytes of its files, the base first.

    Args:
        buffers: the bytes.
        path: names the last file in errors.
        unfolding: the limit on expanded memory for all state that these files belong to.

    Raises:
        CorruptCheckpointError: they do not belong together.
    """
    try:
        (base,), *others = (tuple(tables_in(buffer)) for buffer in buffers)
        if others and len(others[0]) == 1:  # state on disk: of several rows of a key the last one counts
            return pa.concat_tables([base, *(rows for (rows,) in others)], promote_options="default")
        return apply_changes(base, [Changes(runs, rows) for runs, rows in others], unfolding)
    except (pa.ArrowException, ValueError, KeyError, TypeError, OSError, struct.error) as error:
        raise CorruptCheckpointError(
            f"the state in {path} and the files before it cannot be read: {first_line_of(error)}"
        ) from error
