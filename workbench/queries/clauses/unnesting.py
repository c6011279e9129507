"""UNNEST, LATERAL TABLE and LATERAL VIEW: a row for each element of a list."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from workbench.api.streams.building import operator_node
from workbench.errors import WorkbenchError
from workbench.expressions import compile_expression
from workbench.expressions.tree.sql import Tree
from workbench.operators.stateless.explode import Explode, element_fields
from workbench.queries.reading.binding import bound, bound_condition
from workbench.queries.reading.places import Text
from workbench.queries.reading.relation import Column, Relation
from workbench.queries.reading.table_functions import free_name, materialized

_CALLS = (exp.Unnest, exp.Explode, exp.Posexplode, exp.Inline)
_USAGE = "write CROSS JOIN UNNEST(tags) AS t (tag)"


@dataclass(frozen=True)
class Unnesting:
    """A list whose elements become rows.

    Attributes:
        elements: the list.
        table: the alias of the rows, or None.
        names: the column names; empty: the names of the fields.
        position: the name of the column for the position in the list, or None.
        first: the position of the first element.
        outer: whether rows without elements are kept.
        call: its SQL text, for errors.
    """

    elements: Tree
    table: str | None
    names: tuple[str, ...]
    position: str | None
    first: int
    outer: bool
    call: Tree

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns whose names are given; their stored names are not known yet."""
        names = (*self.names, *([] if self.position is None else [self.position]))
        return tuple(Column(self.table, name, None) for name in names)


def unnesting_of(tree: Tree, text: Text) -> Unnesting | None:
    """The unnesting in a part of FROM, or None.

    Raises:
        QueryError: LATERAL of something else, several lists, or names that do not fit.
    """
    call, alias = tree, tree.args.get("alias")
    if isinstance(tree, exp.Lateral):
        call = tree.this
        if isinstance(call, exp.Anonymous) and str(call.this).upper() == "TABLE" and len(call.expressions) == 1:
            [call] = call.expressions
        if not isinstance(call, _CALLS):
            raise text.error(
                tree,
                f"LATERAL takes UNNEST or EXPLODE of a list, not {call.sql('spark')}: join with a subquery instead",
            )
    elif not isinstance(call, exp.Unnest):
        return None
    lists = call.expressions if isinstance(call, exp.Unnest) else [call.this]
    if len(lists) != 1:
        raise text.error(call, f"UNNEST takes one list, not {len(lists)}: {_USAGE}")
    names = [] if alias is None else [column.name for column in alias.columns]
    position, first = _position(tree, call), 1
    if isinstance(call, exp.Posexplode):
        position, first = (names or ["pos"])[0], 0
        names = names[1:]
    table = None if alias is None or not alias.name else alias.name
    return Unnesting(lists[0], table, tuple(names), position, first, bool(tree.args.get("outer")), call)


def _position(tree: Tree, call: Tree) -> str | None:
    """The name of the column of WITH ORDINALITY."""
    told = call.args.get("offset") or tree.args.get("ordinality")
    if not told:
        return None
    return str(told.name) if isinstance(told, exp.Identifier) else "ordinality"


def unnested(rows: Relation, what: Unnesting, join: Tree | None, text: Text) -> Relation:
    """Emit each row once per element, with the columns of the element.

    Args:
        rows: the relation before it in FROM.
        what: the list.
        join: the clause; None: LATERAL VIEW.
        text: the query, for errors.

    Raises:
        QueryError: not a list, a wrong number of names, or an unsupported kind of join.
    """
    outer, condition = (what.outer, None) if join is None else _joins(join, text)
    rows = materialized(rows, text)
    if rows.stream is None:
        raise text.error(what.call, "this is a table, not a stream: convert it with wb.Stream.from_table")
    elements = bound(what.elements, rows, text)
    fields = element_fields(compile_expression(elements, rows.records.schema).type)
    names = what.names or tuple(field.name for field in fields)
    if fields and len(names) != len(fields):
        raise text.error(what.call, f"an element has {len(fields)} columns, and {len(names)} names are given")
    taken = list(rows.records.columns)
    stored = [free_name(name, [*taken, *names[:at]]) for at, name in enumerate(names)]
    place = None if what.position is None else free_name(what.position, [*taken, *stored])
    spec = Explode(elements, tuple(stored), place, what.first, outer)
    try:
        node = operator_node(spec, (rows.records._end,), text.origin)
    except WorkbenchError as error:
        raise text.error(what.elements, error.message) from None
    made = [Column(what.table, name, own) for name, own in zip(names, stored, strict=True)]
    if place is not None and what.position is not None:
        position = Column(what.table, what.position, place)
        made = [position, *made] if isinstance(what.call, exp.Posexplode) else [*made, position]
    result = replace(rows, stream=rows.records._made(node), columns=(*rows.columns, *made))
    if condition is not None:
        result = replace(result, stream=result.records.filter(bound_condition(condition, result, text)))
    return result


def _joins(join: Tree, text: Text) -> tuple[bool, Tree | None]:
    """Whether rows without elements are kept, and a condition for the others."""
    kind, side = (str(join.args.get(name) or "").upper() for name in ("kind", "side"))
    condition = join.args.get("on")
    always = condition is None or (isinstance(condition, exp.Boolean) and condition.this)
    if side not in ("", "LEFT") or kind not in ("", "CROSS", "INNER", "OUTER"):
        raise text.error(join, f"{side or kind} JOIN with UNNEST is not supported: write CROSS JOIN or LEFT JOIN")
    if side == "LEFT" and not always:
        raise text.error(
            condition,
            "LEFT JOIN with UNNEST needs ON TRUE: a filter "
            "after it gives another result, as rows that fail the condition would be kept with nulls",
        )
    return side == "LEFT", None if always else condition
