"""From an expression and a schema to Arrow kernels: everything is checked here, and nothing is looked up per batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from workbench.errors import ExpressionError
from workbench.expressions.evaluation import (
    arithmetic,
    comparing,
    conditional,
    functions,
    json_parts,
    text_parts,
    times,
)
from workbench.expressions.evaluation.casts import cast
from workbench.expressions.evaluation.choice import Choice, Codes, accepted_codes
from workbench.expressions.tree.expression import Expression
from workbench.expressions.tree.node import Coded, Node, constant
from workbench.expressions.tree.scope import Scope, column_node
from workbench.expressions.tree.sql import TOO_DEEP, Tree, parse_sql, refuse_half_pairs, render
from workbench.expressions.tree.strict import NotValidError
from workbench.expressions.tree.types import CAST_TYPES, cast_type, type_name
from workbench.origin import Origin


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression that is ready to run on batches of one schema.

    Attributes:
        type: of the result.
        sql: the expression as Spark SQL text.
        column: the index of the column if the expression is a bare column; None: it is computed.
    """

    type: pa.DataType
    sql: str
    _node: Node
    _accepted: Coded | None = None
    column: int | None = None

    def __call__(self, batch: pa.RecordBatch) -> pa.Array:
        """The value of every row of `batch`, whose schema is the compiled one; the kernels release the GIL."""
        value = self._node.evaluate(batch)
        return pa.repeat(value, batch.num_rows) if isinstance(value, pa.Scalar) else value

    def choose(self, batch: pa.RecordBatch) -> Choice:
        """The rows of `batch` for which this condition is true, in the form that is available first.

        Example:
            >>> late = compile_expression("delay > 15", pa.schema({"delay": pa.int64()}))
            >>> late.choose(pa.RecordBatch.from_pydict({"delay": [3, None, 20]})).to_pylist()
            [False, None, True]
        """
        if self._node.rows is not None:
            return self._node.rows(batch)
        if self._accepted is not None:
            column = batch.column(self._accepted.column)
            accepted = self._accepted.values(column)
            if accepted is not None:
                return Codes(column, accepted)
        return self(batch)


def compile_expression(expression: Expression | str, schema: pa.Schema, origin: Origin | None = None) -> Compiled:
    """Check an expression against a schema and compile it.

    Results are those of Spark SQL, with two rules. An undefined result (of a division by zero, an overflow, or a cast
    of text that is not a number) is null, as in Spark's ``try_`` functions, so that one bad record never stops a
    stream; Spark 4 in ANSI mode fails instead. A literal with a point is a double (``1.0 / 3``), but counts as it is
    written where it meets a decimal (``price = 0.35``). Decimals are exact, with the types of Spark's results;
    unsigned numbers of 64 bits are decimals. An instant's parts (hour, day) are those of UTC. NaN equals NaN and is
    larger than any number.

    Args:
        expression: built with `col`, or Spark SQL text.
        schema: of the batches; names are case-sensitive.
        origin: the user's line, for errors.

    Raises:
        ExpressionError: unknown column, unsupported function, or types that do not fit.

    Example:
        >>> late = compile_expression("delay > 15", pa.schema({"delay": pa.int64()}))
        >>> late(pa.RecordBatch.from_pydict({"delay": [3, None, 20]})).to_pylist()
        [False, None, True]
    """
    try:
        text = expression if isinstance(expression, str) else expression.sql
        compiled = _COMPILED.get((text, None if isinstance(expression, str) else expression.tree, schema))
        return _compile(expression, text, schema, origin) if compiled is None else compiled
    except RecursionError:
        raise ExpressionError(TOO_DEEP, origin=origin) from None


_COMPILED: dict[tuple[str, Tree, pa.Schema], Compiled] = {}
"""Recently compiled expressions: a plan compiles the same expression when it is built, narrowed and run in each
subtask. Expressions that read dictionaries are not cached, because they remember the last dictionary, and each subtask
reads different ones."""
_COMPILED_MAX = 512


def _compile(expression: Expression | str, text: str, schema: pa.Schema, origin: Origin | None) -> Compiled:
    refuse_half_pairs(text, origin)
    tree = parse_sql(expression, origin) if isinstance(expression, str) else expression.tree
    while isinstance(tree, exp.Alias | exp.Paren):
        tree = tree.this
    scope = Scope(schema, text, _BUILDERS, _SUPPORTED, origin)
    if isinstance(tree, exp.Column) and not tree.table:
        # A bare column keeps its stored type (a dictionary, for example) and is not copied.
        index, type_ = scope.column(tree.name)
        bare = Compiled(type_, text, Node(type_, lambda batch: batch.column(index), text), column=index)
        return _keep(bare, expression, schema)
    try:
        node = scope.node(tree)
        # Arrow selects kernels at run time, so a missing one shows on a batch without rows.
        node.evaluate(pa.RecordBatch.from_arrays([pa.nulls(0, item.type) for item in schema], schema=schema))
    except NotValidError as error:
        raise scope.error(error.message) from None
    except pa.ArrowNotImplementedError:
        kinds = {name: type_name(scope.column(name)[1]) for name in Expression(tree).columns}
        listed = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        raise scope.error(
            f"it cannot be computed for {listed or 'these types'}: use map to extract simple values first"
        ) from None
    accepted = accepted_codes(node.coded) if node.coded is not None and pa.types.is_boolean(node.type) else None
    return _keep(Compiled(node.type, text, node, accepted), expression, schema)


def _keep(compiled: Compiled, expression: Expression | str, schema: pa.Schema) -> Compiled:
    if not any(pa.types.is_dictionary(item.type) for item in schema):
        while len(_COMPILED) >= _COMPILED_MAX:
            _COMPILED.pop(next(iter(_COMPILED)), None)
        # The tree as well: different trees can have one text, which leaves out what Spark's dialect lacks.
        _COMPILED[compiled.sql, None if isinstance(expression, str) else expression.tree, schema] = compiled
    return compiled


def _cast(scope: Scope, tree: Tree) -> Node:
    node, name = scope.node(tree.this), render(tree.args["to"]).lower()
    kind = cast_type(name)
    if kind is None:
        raise scope.error(
            f"{render(tree)} converts to the unsupported type {name}: valid are {', '.join(CAST_TYPES)}, and "
            "decimal(p, s) of at most 38 digits"
        )
    result = cast(node, kind, render(tree))
    if result is None:
        raise scope.error(f"{node.text} ({type_name(node.type)}) cannot be converted to {name}")
    return result if result.exact is None else replace(result, exact=None)


def _inner(scope: Scope, tree: Tree) -> Node:
    return replace(scope.node(tree.this), text=render(tree))


_BUILDERS: dict[type, Callable[[Scope, Tree], Node]] = {
    exp.Column: column_node,
    exp.Paren: _inner,
    exp.Boolean: lambda scope, tree: constant(pa.scalar(bool(tree.this)), render(tree)),
    exp.Null: lambda scope, tree: constant(pa.scalar(None), "NULL"),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    **arithmetic.BUILDERS,
    **comparing.BUILDERS,
    **conditional.BUILDERS,
    **functions.BUILDERS,
    **text_parts.BUILDERS,
    **json_parts.BUILDERS,
    **times.BUILDERS,
}

FUNCTIONS = tuple(
    sorted(
        (
            *("abs", "ceil", "coalesce", "concat", "contains", "date_trunc", "day", "dayofmonth", "dayofweek"),
            *("dayofyear", "endswith", "exp", "extract", "floor", "greatest", "hour", "if", "ifnull", "isnan"),
            *("isnotnull", "isnull", "least", "length", "ln", "lower", "ltrim", "minute", "mod", "month", "nullif"),
            *("nvl", "power", "quarter", "replace", "round", "rtrim", "second", "sqrt", "startswith", "substring"),
            *("to_date", "trim", "try_divide", "unix_timestamp", "upper", "year"),
            *text_parts.FUNCTIONS,
            *json_parts.FUNCTIONS,
        )
    )
)
"""The names of the functions."""

_SUPPORTED = (
    "arithmetic (+ - * / % DIV, INTERVAL), comparisons (= <> < <= > >= <=>, IS NULL, IN, BETWEEN, LIKE, ILIKE, RLIKE), "
    f"AND, OR, NOT, CASE, CAST and the functions {', '.join(FUNCTIONS)}"
)
