"""Joins with a table of another system, ``FOR SYSTEM_TIME AS OF`` the processing time of a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from workbench.api.streams.joining import AnyHow
from workbench.errors import WorkbenchError
from workbench.expressions import plain_name
from workbench.expressions.tree.sql import Tree
from workbench.operators.changelogs.row_kinds import is_changelog
from workbench.operators.contract.outage import Outage
from workbench.operators.functions.lookup_table import LookupTable, OpenTable
from workbench.queries.reading.binding import bound, bound_condition
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Relation
from workbench.queries.reading.table_functions import free_name

Keys = Sequence[tuple[Tree, Tree, Tree]]
"""The left value, the right column and the condition of each equality."""


def looked_up(
    left: Relation, right: Relation, how: AnyHow, keys: Keys, rest: Sequence[Tree], join: Tree, text: Text
) -> Relation:
    """Join each left record with the current row of its key in the table.

    Args:
        left: the stream.
        right: the table.
        how: the join.
        keys: the equalities of ON.
        rest: its other conditions.
        join: the clause.
        text: the query, for errors.

    Raises:
        QueryError: no ``FOR SYSTEM_TIME AS OF``, no key, a computed column of the table, or an unsupported join.
    """
    lookup = right.lookup
    assert lookup is not None
    if how != "inner" and how != "left":
        raise text.error(join, "this join would need all rows of the table: write JOIN or LEFT JOIN")
    if is_changelog(left.records.schema):
        raise text.error(
            join, "the left rows replace earlier ones, and a look-up could return a different row each time: join first"
        )
    if not keys:
        raise text.error(join, "a look-up needs a key: add a condition such as o.customer = c.id to ON")
    if rest and how == "left":
        raise text.error(
            rest[0],
            f"a look-up with LEFT JOIN supports only equalities in ON, and {rest[0].sql('spark')} is none: a row that "
            "fails it would be kept with nulls, so a filter after the join gives another result",
        )
    stream = left.records
    there = stream.columns
    own, theirs = [], []
    for value, column, _ in keys:
        if not isinstance(column, exp.Column):
            raise text.error(column, "a look-up compares columns of the table: compute the value on the other side")
        theirs.append(right.of(column, text).name)
        key = bound(value, left, text)
        name = plain_name(key)
        if name is None or name in own:
            name = free_name(f"${key.sql}", stream.columns)
            stream = stream.with_columns(**{name: key})
        own.append(name)
    made: list[str] = []
    for column in right.columns:
        made.append(column.name if column.name not in there else free_name(column.name, [*there, *made]))
    try:
        table = Renamed(lookup.table(theirs), tuple(made))
        stream = stream.lookup_async(table, key=own, how=how, cache=lookup.cache)
    except WorkbenchError as error:
        raise text.error(join, error.message) from None
    added = tuple(replace(column, stored=name) for column, name in zip(right.columns, made, strict=True))
    pairs = Relation(stream, (*left.columns, *added))
    for one in rest:
        pairs = replace(pairs, stream=pairs.records.filter(bound_condition(one, pairs, text)))
    return pairs


@dataclass(frozen=True)
class Renamed(LookupTable):
    """A table with renamed columns.

    Attributes:
        table: the table.
        names: the new column names, in order.
    """

    table: LookupTable
    names: tuple[str, ...]
    schema: pa.Schema = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kinds = zip(self.names, self.table.schema.types, strict=True)
        object.__setattr__(self, "schema", pa.schema(list(kinds)))

    def describe(self) -> str:
        return self.table.describe()

    def check_keys(self, count: int) -> None:
        self.table.check_keys(count)

    def open(self) -> OpenTable:
        return _RenamedRows(self.table.open(), dict(zip(self.table.schema.names, self.names, strict=True)))


@dataclass(frozen=True)
class _RenamedRows(OpenTable):
    rows: OpenTable
    names: Mapping[str, str]

    @property
    def outage(self) -> Outage | None:
        return self.rows.outage

    def hurry(self) -> None:
        self.rows.hurry()

    def give_up(self) -> None:
        self.rows.give_up()

    def find(self, *key: Any) -> Mapping[str, Any] | None:
        row = self.rows.find(*key)
        return None if row is None else {self.names[name]: value for name, value in row.items()}

    def close(self) -> None:
        self.rows.close()
