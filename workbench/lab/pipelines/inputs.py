"""The random input of simulated pipelines."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from workbench.api.streams.stream import Stream

STEP_US = 10
"""From one record's event time to the next one's."""

_ROWS = (0, 1, 1, 2, 3, 3, 4, 6)
"""Few: violations nearly always show with a handful of records, and many runs find more than long ones."""
_MANY_ROWS = (20, 40)
_MANY = 0.03
"""The share of long inputs: some violations show only there."""

SCHEMA = pa.schema([("n", pa.int64()), ("key", pa.string()), ("t", pa.int64()), ("v", pa.int64())])


class Chance(Random):
    """The random source of an input.

    Args:
        seed: of everything that is drawn.
        rows_max: the maximum number of records of an input; None: no limit.
        long: whether every input is a long one.
    """

    def __new__(cls, seed: str, rows_max: int | None = None, *, long: bool = False) -> Chance:
        return super().__new__(cls)

    def __init__(self, seed: str, rows_max: int | None = None, *, long: bool = False) -> None:
        super().__init__(seed)
        self.rows_max = rows_max
        self.long = long


class Row(NamedTuple):
    """One record of the input: its number, key, event time (None: it has none) and value."""

    n: int
    key: str | None
    t: int | None
    v: int | None


def source(
    chance: Random, *, disorder: int | None = None, bound: int | None = None, idle_after: str | None = None
) -> tuple[Stream, list[Row]]:
    """A stream of records, and the records.

    Args:
        chance: the random source.
        disorder: by how many microseconds records may be out of order; None: drawn.
        bound: the source's out-of-orderness setting, if it differs from the truth.
        idle_after: of the source.
    """
    on_time = disorder is None
    disorder = chance.choice((0, 5, 200)) if disorder is None else disorder
    rows = draw_rows(chance, disorder)
    table = pa.table([column for _, column in input_columns(rows)], schema=SCHEMA)
    rate = chance.choice((None, None, 2_000.0))
    if idle_after is None and on_time and rate is None:
        idle_after = chance.choice((None, "200us"))  # it is never silent, only back-pressured
    settings: dict[str, Any] = {
        "event_time": "t",
        "out_of_orderness": f"{disorder if bound is None else bound}us",
        "rate": rate,
        "idle_after": idle_after,
    }
    if not rows or chance.random() < 0.7:
        return Stream.from_table(table, **settings), rows
    # A generator deals all rows to its first split, so that further subtasks have nothing to read.
    batch = table.combine_chunks().to_batches()[0]
    return Stream.from_generator(batch.slice, SCHEMA, limit=len(rows), **settings), rows


def draw_rows(chance: Random, disorder: int) -> list[Row]:
    """A few records; some have no event time, no key or no value."""
    keys = [None, *"abcdefgh"][chance.choice((0, 1)) : chance.choice((2, 4, 9))]
    return [
        Row(
            n,
            chance.choice(keys),
            None if chance.random() < 0.03 else n * STEP_US - chance.randint(0, disorder),
            None if chance.random() < 0.1 else chance.randrange(-9, 10),
        )
        for n in range(_count(chance))
    ]


def _count(chance: Random) -> int:
    long, most = (chance.long, chance.rows_max) if isinstance(chance, Chance) else (False, None)
    rows = chance.choice(_MANY_ROWS if long or chance.random() < _MANY else _ROWS)
    return rows if most is None else min(rows, most)


def input_columns(rows: list[Row]) -> list[tuple[str, pa.Array]]:
    """The records as columns with their names."""
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    return [(field.name, pa.array(column, field.type)) for field, column in zip(SCHEMA, columns, strict=True)]
