"""The row of a range as cells, as a wide-column store holds it: each write changes few of them.

A cell has a kind, a name, a number and a content. State is a cell for each operator, a production one under the id
behind its last record, and a row for a sink one under its number. So acknowledged productions and committed rows are
ranges of numbers, which are deleted without being read.

What is read may come from anyone who can write to the database: it is decoded by type, and checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from workbench.elements import Element, Records, Watermark, WatermarkStatus
from workbench.errors import CorruptCheckpointError
from workbench.from_arrow import tables_in
from workbench.from_json import Json, made, parsed
from workbench.runtime.exchange.in_flight import as_buffers, as_table
from workbench.runtime.storage.encoding import written
from workbench.runtime.transactions.store import Production, Row, Write, ends

Kind = Literal["facts", "flushed", "production", "row", "state", "taken"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a range's row.

    Attributes:
        kind: which part of the row it is.
        name: of an operator or a channel; empty: there is one.
        number: of a production, a sink's row or a checkpoint; 0: there is one.
        content: its bytes.
    """

    kind: Kind
    name: str
    number: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Below:
    """Cells to delete: those of a kind and name with a number of at most `number`."""

    kind: Kind
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class _Facts:
    links: dict[str, int]
    ids: dict[str, int]
    channels: dict[str, tuple[int, bool]] | None = None
    valve: tuple[int, bool] | None = None
    told: int | None = None
    idle: bool | None = None


def changes(write: Write, taken: Iterable[Cell] = ()) -> tuple[list[Below], list[Cell]]:
    """What a write deletes, and what it then inserts or replaces.

    Args:
        write: the transaction.
        taken: the cells of the range that hold the ids of processed records.

    Example:
        >>> changes(Write("counts[0]", 1, states={"counts": b"state"}, taken=[("a", 0, 2)]))[1]
        [Cell(kind='state', name='counts', number=0, content=b'state'), Cell(kind='taken', ..., content=b'[[0, 2]]')]
    """
    deleted = [Below("production", channel, below) for channel, below in write.acknowledged.items()]
    deleted += [Below("row", uid, number) for uid, number in write.written.items()]
    cells = [Cell("state", uid, 0, content) for uid, content in write.states.items()]
    if write.facts is not None:
        cells.append(Cell("facts", "", 0, json.dumps(write.facts).encode()))
    if write.taken or write.past:
        ids = row_of(taken)
        ids.apply(Write(write.range, write.token, taken=write.taken, past=write.past))
        cells += [Cell("taken", channel, 0, json.dumps(runs).encode()) for channel, runs in ids.taken.items()]
    cells += [Cell("production", each.channel, ends(each), _bytes_of(each.element)) for each in write.productions]
    cells += [Cell("row", uid, number, _bytes_of(records)) for uid, number, records in write.rows]
    cells += [Cell("flushed", uid, checkpoint, str(number).encode()) for uid, checkpoint, number in write.flushed]
    return deleted, cells


def row_of(cells: Iterable[Cell], token: int = 0) -> Row:
    """The row of a range.

    Raises:
        CorruptCheckpointError: a cell holds something else.
    """
    row = Row(token=token)
    for cell in sorted(cells, key=lambda each: each.number):
        try:
            _add(row, cell)
        except ValueError as error:
            raise CorruptCheckpointError(
                f"the store holds a {cell.kind} of {cell.name or 'a task'} that cannot be read ({error}): restore from "
                "a savepoint, which begins the rows anew"
            ) from error
    return row


def _add(row: Row, cell: Cell) -> None:
    if cell.kind == "state":
        row.states[cell.name] = cell.content
    elif cell.kind == "facts":
        found = parsed(cell.content)
        made(_Facts, found, "its facts")
        row.facts = cast(dict[str, Json], found)
    elif cell.kind == "taken":
        row.taken[cell.name] = list(made(tuple[tuple[int, int], ...], parsed(cell.content), "its ids"))
    elif cell.kind == "production":
        element = _element_of(cell.content)
        first = cell.number - (len(element) if isinstance(element, Records) else 1)
        row.productions.append(Production(cell.name, first, element))
    elif cell.kind == "row":
        records = _element_of(cell.content)
        if not isinstance(records, Records):
            raise ValueError("it is not a row")
        row.rows.append((cell.name, cell.number, records))
    elif cell.kind == "flushed":
        row.flushed.setdefault(cell.name, {})[cell.number] = made(int, parsed(cell.content), "its number")


def _bytes_of(element: Element) -> bytes:
    if isinstance(element, Records):
        return b"".join(written([as_table((element,))]))
    if isinstance(element, Watermark):
        return json.dumps({"watermark": element.timestamp_us}).encode()
    assert isinstance(element, WatermarkStatus)
    return json.dumps({"idle": element.idle}).encode()


def _element_of(content: bytes) -> Element:
    if not content.startswith(b"{"):
        records = [buffer for table in tables_in(content) for buffer in as_buffers(table)]
        if len(records) != 1:
            raise ValueError(f"it has {len(records)} batches")
        return records[0]
    found = made(dict[str, int | bool], parsed(content))
    if found.keys() == {"watermark"}:
        return Watermark(made(int, found["watermark"]))
    if found.keys() == {"idle"}:
        return WatermarkStatus(made(bool, found["idle"]))
    raise ValueError("it is neither records nor a watermark")


def cells_of(rows: Sequence[tuple[str, str, int, bytes]]) -> list[Cell]:
    """Cells as a database returns them.

    Raises:
        CorruptCheckpointError: of an unknown kind.
    """
    found = []
    for kind, name, number, content in rows:
        if kind not in _KINDS:
            raise CorruptCheckpointError(
                f"the store holds a cell of the unknown kind {kind!r}: restore from a savepoint"
            )
        found.append(Cell(cast(Kind, kind), name, number, bytes(content)))
    return found


_KINDS = ("facts", "flushed", "production", "row", "state", "taken")
