"""Rows of a table from the log or from a copy, as a batch of upserts and deletions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from workbench.connectors.postgresql_log.checks import type_problem
from workbench.connectors.postgresql_log.pgoutput import UNCHANGED, Cell, Cells, Relation
from workbench.connectors.postgresql_log.server import TableFacts
from workbench.connectors.postgresql_log.texts import column_of, fits
from workbench.errors import SourceError
from workbench.operators.changelogs.keyed_upserts import CLEAR, unchanged_bits, upserts_schema
from workbench.operators.changelogs.row_kinds import AFTER, DELETE

_TEXTS = {25, 1043}
_WIDER = {(21, 23), (21, 20), (23, 20), (1043, 25)}
"""Pairs of types, by their ids, of which the second has all values of the first in the same notation."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the declared columns are in the values of a row, and their types.

    Attributes:
        places: of the columns, in the order of the schema.
        types: by column, the id and the modifier of its type.
    """

    places: tuple[int, ...]
    types: tuple[tuple[int, int], ...]

    @staticmethod
    def of(relation: Relation, schema: pa.Schema, name: str) -> Layout:
        """The layout of rows that the log sends.

        Raises:
            SourceError: a declared column is missing, or its type does not fit.
        """
        known = {column.name: (place, column) for place, column in enumerate(relation.columns)}
        places, types = [], []
        for field in schema:
            if field.name not in known:
                raise SourceError(
                    f"{name!r} has no column {field.name!r} in the log, which was renamed, dropped or added meanwhile: "
                    "declare other columns, and start the job anew"
                )
            place, column = known[field.name]
            if not fits(column.type, field.type):
                raise SourceError(type_problem(name, field, f"of the type {column.type}"))
            places.append(place)
            types.append((column.type, column.modifier))
        return Layout(tuple(places), tuple(types))

    @staticmethod
    def of_table(table: TableFacts, schema: pa.Schema) -> Layout:
        """The layout of rows of a query for the declared columns."""
        types = tuple(table.columns[name][:2] for name in schema.names)
        return Layout(tuple(range(len(schema))), types)

    def check_kept(self, earlier: Sequence[tuple[int, int]], schema: pa.Schema, name: str) -> None:
        """Reject a change of types that rewrites values, for which the server sends no changes.

        Raises:
            SourceError: names the column.
        """
        for field, before, now in zip(schema, earlier, self.types, strict=True):
            if not _keeps(before, now):
                raise SourceError(
                    f"the type of the column {field.name!r} of {name!r} was changed from {_shown(before)} to "
                    f"{_shown(now)}, and the log does not have the values that this changes: start the job anew"
                )


def _keeps(before: tuple[int, int], now: tuple[int, int]) -> bool:
    """Whether all values of a type are the same in another one."""
    if before == now:
        return True
    if before[0] != now[0]:
        return (before[0], now[0]) in _WIDER and now[1] == -1
    return now[1] == -1 or (before[0] in _TEXTS and before[1] != -1 and now[1] > before[1])


def _shown(kind: tuple[int, int]) -> str:
    return f"type {kind[0]}" + ("" if kind[1] == -1 else f" ({kind[1]})")


class Rows:
    """Collects changes of one layout.

    Args:
        schema: the declared columns.
        keys: their places of the key.
        layout: of the rows.
    """

    def __init__(self, schema: pa.Schema, keys: Sequence[int], layout: Layout) -> None:
        self._schema, self._keys, self._layout = schema, tuple(keys), layout
        self._rows: list[Sequence[Cell]] = []
        self._kinds: list[int] = []
        self._marks: list[bytes | None] = []
        self._nothing: tuple[None, ...] = (None,) * len(schema)

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, cells: Sequence[Cell], *, moved: bool = False) -> None:
        """A row is inserted or replaced.

        Args:
            cells: the declared columns.
            moved: it had the key that the change before has deleted.
        """
        mark = None
        if UNCHANGED in cells:
            places = [place for place, cell in enumerate(cells) if cell is UNCHANGED]
            mark = unchanged_bits(places, len(cells), moved=moved)
            cells = [None if cell is UNCHANGED else cell for cell in cells]
        self._rows.append(cells)
        self._kinds.append(AFTER)
        self._marks.append(mark)

    def delete(self, key: Sequence[Cell]) -> None:
        """The row of a key is deleted."""
        cells: list[Cell] = list(self._nothing)
        for place, cell in zip(self._keys, key, strict=True):
            cells[place] = cell
        self._rows.append(cells)
        self._kinds.append(DELETE)
        self._marks.append(None)

    def clear(self) -> None:
        """All rows are deleted."""
        self._rows.append(self._nothing)
        self._kinds.append(CLEAR)
        self._marks.append(None)

    def batch(self) -> pa.RecordBatch:
        """All of them.

        Raises:
            SourceError: a value does not fit its column.
        """
        columns = zip(*self._rows, strict=True)
        arrays = [
            column_of(texts, kind, field)
            for texts, (kind, _), field in zip(columns, self._layout.types, self._schema, strict=True)
        ]
        arrays += [pa.array(self._kinds, pa.int8()), pa.array(self._marks, pa.binary())]
        return pa.RecordBatch.from_arrays(arrays, schema=upserts_schema(self._schema))


def declared(cells: Cells, layout: Layout) -> list[Cell]:
    """The declared columns of a row.

    Raises:
        ValueError: the row has fewer columns.
    """
    try:
        return [cells[place] for place in layout.places]
    except IndexError:
        raise ValueError(f"a row has {len(cells)} columns, fewer than its table") from None
