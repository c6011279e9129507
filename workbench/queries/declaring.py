"""CREATE TABLE and INSERT INTO: tables of connectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
from sqlglot import exp

from workbench.api.running.pipeline import Pipeline
from workbench.api.streams.stream import Stream
from workbench.connectors.contract.base import Sink
from workbench.connectors.named.connector import Declared
from workbench.connectors.named.names import named_lookup, named_sink, named_source
from workbench.errors import PlanError, WorkbenchError, unknown
from workbench.expressions import Expression, col
from workbench.expressions.tree.sql import Tree
from workbench.expressions.tree.strict import KINDS
from workbench.expressions.tree.types import CAST_TYPES, cast_type, type_name
from workbench.queries.reading.binding import bound, constant_us
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import is_clock

_TYPES = {"varchar": "string", "char": "string", "integer": "int", "timestamp_ltz": "timestamp"}
"""The closest type for each type name of other systems."""
_TIME = pa.timestamp("us")
_CHANGELOG = "changelog."
_OP = "changelog.op"
_FLAGS = {
    "changelog.insert": "+I",
    "changelog.update-before": "-U",
    "changelog.update": "+U",
    "changelog.delete": "-D",
}
"""The options that list flags, and the kind of change that each of them means."""


@dataclass(frozen=True)
class Table:
    """What CREATE TABLE declares.

    Attributes:
        declared: its name, columns, column of event time and key.
        options: of its connector.
        flags: its other options: the column of the flags of changes, and the flags that are not the usual ones.
        columns: the names of all columns, in their order.
        computed: the expressions of computed columns, such as ``p AS PROCTIME()``, by name.
        event_time: the event-time column, which may be computed, or None.
        disorder_us: the out-of-orderness, in microseconds.
        tree: the statement, for errors.
    """

    declared: Declared
    options: dict[str, str]
    flags: dict[str, str]
    columns: tuple[str, ...]
    computed: dict[str, Tree]
    event_time: str | None
    disorder_us: int
    tree: Tree


def table_of(tree: Tree, text: Text) -> Table:
    """Read ``CREATE TABLE name (...) WITH ('connector' = '...')``.

    Raises:
        QueryError: a type, a constraint or a watermark that is not supported.
    """
    schema = tree.this
    if (schema.this if isinstance(schema, exp.Schema) else schema).args.get("db") is not None:
        raise text.error(schema, "a table has one name here: leave out the part before the dot")
    if not isinstance(schema, exp.Schema):
        raise text.error(tree, "the table has no columns: write CREATE TABLE name (column BIGINT, ...) WITH (...)")
    fields: list[pa.Field] = []
    key: tuple[str, ...] = ()
    computed: dict[str, Tree] = {}
    names: list[str] = []
    time, disorder_us = None, 0
    for part in schema.expressions:
        if isinstance(part, exp.ColumnDef):
            if part.name in names:
                raise text.error(part, f"two columns are named {part.name!r}: give one another name")
            names.append(part.name)
        if isinstance(part, exp.ColumnDef) and (value := _computed(part)) is not None:
            computed[part.name] = value
        elif isinstance(part, exp.ColumnDef) and part.args.get("kind") is not None:
            fields.append(pa.field(part.name, _type(part, text)))
            if any(isinstance(item.args.get("kind"), exp.PrimaryKeyColumnConstraint) for item in part.constraints):
                key = (part.name,)
        elif isinstance(part, exp.PrimaryKey):
            key = tuple(item.name for item in part.expressions)
        elif isinstance(part, exp.WatermarkColumnConstraint):
            time, disorder_us = part.this.name, _disorder(part, text)
        else:
            raise text.error(part, f"{part.sql('spark')} is not supported: a table has columns, a key and a WATERMARK")
    for name in (*key, *([] if time is None else [time])):
        if name not in names:
            raise text.error(tree, f"the table {schema.this.name!r} has no column {name!r}: it has {', '.join(names)}")
    declared = Declared(schema.this.name, pa.schema(fields), None if time in computed else time, key)
    options = _options(tree, text)
    flags = {name: options.pop(name) for name in list(options) if name.startswith(_CHANGELOG)}
    return Table(declared, options, flags, tuple(names), computed, time, disorder_us, tree)


def _computed(column: Tree) -> Tree | None:
    """The expression of a column that is declared with AS."""
    kinds = [item.args.get("kind") for item in column.constraints]
    return next((kind.this for kind in kinds if isinstance(kind, exp.ComputedColumnConstraint)), None)


def _type(column: Tree, text: Text) -> pa.DataType:
    if column.args["kind"].this not in KINDS:
        unfit = str(getattr(column.args["kind"].this, "value", column.args["kind"].this))
        raise text.error(column, f"the column {column.name!r} has the type {unfit}: valid are {', '.join(CAST_TYPES)}")
    whole = column.args["kind"].sql("spark").lower()
    name = whole.partition("(")[0]
    if name.startswith("timestamp"):
        return _TIME
    kind = cast_type(whole if name == "decimal" else _TYPES.get(name, name))
    if kind is None:
        valid = f"{', '.join(CAST_TYPES)}, and decimal(p, s) of at most 38 digits"
        raise text.error(column, f"the column {column.name!r} has the type {whole}: valid are {valid}")
    return kind


def _disorder(part: Tree, text: Text) -> int:
    """The interval of ``WATERMARK FOR ts AS ts - INTERVAL '4' SECOND``."""
    value = part.expression
    if isinstance(value, exp.Column) and value.name == part.this.name:
        return 0
    if isinstance(value, exp.Sub) and isinstance(value.this, exp.Column) and value.this.name == part.this.name:
        return constant_us(value.expression, text)
    raise text.error(part, f"write WATERMARK FOR {part.this.name} AS {part.this.name} - INTERVAL '4' SECOND")


def _options(tree: Tree, text: Text) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in (tree.args.get("properties") or exp.Properties(expressions=[])).expressions:
        if isinstance(item, exp.TemporaryProperty | exp.SchemaCommentProperty):
            continue
        if type(item) is not exp.Property:
            raise text.error(item, f"{item.sql('spark')} is not supported: remove it; options belong in WITH (...)")
        if item.this.name in options:
            raise text.error(item, f"the option {item.this.name!r} is given twice: remove one")
        options[item.this.name] = item.args["value"].name
    return options


def source_of(table: Table, text: Text) -> Relation:
    """The rows of a declared table.

    Raises:
        QueryError: the connector cannot be read, or refuses its options.
    """
    declared = table.declared
    disorder = timedelta(microseconds=table.disorder_us)
    try:
        source = named_source(table.options, declared)
        stream = Stream.from_source(source, out_of_orderness=disorder if declared.event_time else timedelta())
    except WorkbenchError as error:
        raise text.error(table.tree, error.message) from None
    known = {
        name: Column(declared.name, name, name, 0 if name == declared.event_time else None)
        for name in declared.schema.names
    }
    for name, value in table.computed.items():
        rows = Relation(stream, tuple(known.values()))
        if is_clock(value):
            known[name] = Column(declared.name, name, None, None, "proctime")
            continue
        stream = stream.with_columns(**{name: bound(value, rows, text)})
        known[name] = Column(declared.name, name, name)
        if name == table.event_time:
            try:
                stream = stream.assign_timestamps(name, out_of_orderness=disorder)
            except WorkbenchError as error:
                raise text.error(value, error.message) from None
            known[name] = replace(known[name], ahead_us=0)
    if table.flags:
        return _changes(table, Relation(stream, tuple(known[name] for name in table.columns)), text)
    return Relation(stream, tuple(known[name] for name in table.columns))


def _changes(table: Table, rows: Relation, text: Text) -> Relation:
    """The changelog of a table whose rows have flags: ``'changelog.op' = 'op'``."""
    declared, flags = table.declared, table.flags
    for name in flags:
        if name not in _FLAGS and name != _OP:
            raise text.error(table.tree, unknown("option", name, [_OP, *_FLAGS]))
    if _OP not in flags:
        raise text.error(table.tree, f"the table {declared.name!r} lacks the option {_OP!r}: name the column of flags")
    op = flags[_OP]
    if not declared.key:
        raise text.error(
            table.tree,
            f"the table {declared.name!r} has flags of changes, but no key: add PRIMARY KEY (id) NOT ENFORCED",
        )
    if op not in declared.schema.names:
        raise text.error(table.tree, unknown(f"column of flags ({_OP})", op, declared.schema.names))
    kinds: dict[object, Any] = {}
    for name, kind in _FLAGS.items():
        words = [word.strip() for word in flags[name].split(",")] if name in flags else []
        try:
            values = pa.array(words, pa.string()).cast(declared.schema.field(op).type).to_pylist()
        except pa.ArrowInvalid:
            of = type_name(declared.schema.field(op).type)
            raise text.error(table.tree, f"{name} is {flags[name]!r}, and the column {op} is {of}") from None
        kinds |= dict.fromkeys(values, kind)
    try:
        stream = rows.records.as_changelog(declared.key, op=op, kinds=kinds or None)
    except WorkbenchError as error:
        raise text.error(table.tree, error.message) from None
    return Relation(stream, tuple(replace(column, ahead_us=None) for column in rows.columns if column.name != op))


def lookup_of(table: Table, text: Text) -> Relation | None:
    """The look-up of a declared table; None if it has versions (a WATERMARK) or its connector has no look-ups.

    Raises:
        QueryError: the connector refuses its options.
    """
    declared = table.declared
    if table.event_time is not None or table.computed or table.flags:
        return None
    try:
        lookup = named_lookup(table.options, declared)
    except WorkbenchError as error:
        raise text.error(table.tree, error.message) from None
    if lookup is None:
        return None
    columns = tuple(Column(declared.name, name, name) for name in declared.schema.names)
    return Relation(None, columns, lookup=lookup)


def fitted(tree: Tree, rows: Relation, target: Table | Sink, text: Text) -> Relation:
    """The rows of INSERT INTO, converted to the columns of its table.

    Raises:
        QueryError: other columns than those of the table.
    """
    return _fitting(tree, rows, target.declared, text) if isinstance(target, Table) else rows


def inserted(tree: Tree, rows: Relation, target: Table | Sink, text: Text) -> Pipeline:
    """Write rows to a table.

    Raises:
        QueryError: the sink refuses them.
    """
    if isinstance(target, Table) and target.flags:
        raise text.error(
            tree.this,
            f"the table {target.declared.name!r} reads flags of changes ({', '.join(target.flags)}), which INSERT INTO "
            "does not write: declare the table to be written without these options",
        )
    try:
        sink = named_sink(target.options, target.declared) if isinstance(target, Table) else target
        return rows.records.sink_to(sink)
    except WorkbenchError as error:
        raise text.error(tree.this, error.message) from None


def _fitting(tree: Tree, rows: Relation, declared: Declared, text: Text) -> Relation:
    """The rows with the names and the types of the table, in the order of the statement."""
    named = [part.name for part in tree.this.expressions] if isinstance(tree.this, exp.Schema) else []
    names = named or list(declared.schema.names)
    if len(names) != len(rows.columns):
        raise text.error(
            tree.this,
            f"the query has {len(rows.columns)} columns, but INSERT INTO takes {len(names)}: select the same number",
        )
    chosen: dict[str, Expression] = {}
    for name, column in zip(names, rows.columns, strict=True):
        if name not in declared.schema.names:
            raise text.error(tree.this, f"the table {declared.name!r} has no column {name!r}")
        value, kind = col(column.stored or ""), declared.schema.field(name).type
        had = rows.records.schema.field(column.stored).type
        if had != kind and not (pa.types.is_timestamp(had) and pa.types.is_timestamp(kind)):
            if not _fits(had, kind):
                raise text.error(
                    tree.this,
                    f"the column {name!r} of the table is {type_name(kind)}, and the query gives {type_name(had)}: "
                    f"write CAST({column.name} AS {type_name(kind)}), which is null where a value cannot be converted",
                )
            value = value.cast(type_name(kind))
        chosen[name] = value
    if missing := [name for name in declared.schema.names if name not in chosen]:
        raise text.error(tree.this, f"INSERT INTO lacks the column {missing[0]}: add it, and select a value for it")
    columns = tuple(Column(None, name, name) for name in declared.schema.names)
    try:
        stream = rows.records.select(**{name: chosen[name] for name in declared.schema.names})
    except (PlanError, WorkbenchError) as error:
        raise text.error(tree.this, error.message) from None
    return replace(rows, stream=stream, columns=columns)


def _fits(had: pa.DataType, kind: pa.DataType) -> bool:
    """Whether INSERT INTO converts a type implicitly: a number to another number, a time to another time, and anything
    to text."""

    def family(one: pa.DataType) -> str:
        if pa.types.is_integer(one) or pa.types.is_floating(one) or pa.types.is_decimal(one):
            return "number"
        return "time" if pa.types.is_temporal(one) else str(one)

    return pa.types.is_null(had) or pa.types.is_string(kind) or family(had) == family(kind)
