"""Expressions that refer to the rows of a match: conditions (DEFINE) and results (MEASURES).

``A.price`` is the price of the last row that was bound to A. A plain ``price`` is the price of the last row of the
match, which in a condition is the current row. A term is an ordinary expression on columns ``$0``, ``$1``, ..., each of
which holds one such reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import pyarrow as pa
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType

from workbench.errors import ExpressionError, PlanError, unknown
from workbench.expressions import Expression, compile_expression
from workbench.expressions.tree.expression import identifier
from workbench.expressions.tree.sql import Tree, render

Kind = Literal["row", "aggregate", "classifier", "number", "time"]

_NAVIGATION = ("FIRST", "LAST", "PREV", "NEXT")
_PREFIXES = ("FINAL", "RUNNING")
_FUNCTIONS = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "mean", exp.Min: "min", exp.Max: "max"}
_OFFSET_MAX = 10_000


class TermError(Exception):
    """A part of an expression is not valid in a pattern.

    Attributes:
        tree: the part.
        message: one sentence.
    """

    def __init__(self, tree: Tree, message: str) -> None:
        super().__init__(message)
        self.tree, self.message = tree, message


class _Parser(Spark.Parser):  # type: ignore[misc]
    """FIRST and LAST take an offset; FINAL and RUNNING may precede a call."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: made for name, made in Spark.Parser.FUNCTIONS.items() if name not in _NAVIGATION
    }

    def _parse_unary(self) -> Tree:
        behind = self._tokens[self._index + 1 : self._index + 3]
        called = self._curr and self._curr.text.upper() in _PREFIXES and len(behind) == 2
        if called and behind[0].token_type != TokenType.L_PAREN and behind[1].token_type == TokenType.L_PAREN:
            prefix = self._curr
            self._advance()
            inner = self.expression(exp.Anonymous(this=prefix.text.upper(), expressions=[super()._parse_unary()]))
            return inner.update_positions(prefix)
        return super()._parse_unary()


class PatternSql(Spark):  # type: ignore[misc]
    """Spark's dialect with the functions that refer to rows of a match."""

    Parser = _Parser


@dataclass(frozen=True, slots=True)
class Reference:
    """A value of bound rows.

    Attributes:
        kind: the value of one row; an aggregate of several rows; the variable of one row; the number of the match; or
            its event time.
        type: the type of the value.
        mask: the bits of the variables whose rows count.
        argument: the expression on each row; None for a count of rows.
        from_first: whether `offset` counts from the first of these rows.
        offset: the number of rows after the first, or before the last.
        shift: the number of rows of the key after that row; negative: before it.
        function: the function of an aggregate.
        final: whether it covers all rows of the match, at each of its rows.
    """

    kind: Kind
    type: pa.DataType
    mask: int = 0
    argument: Expression | None = None
    from_first: bool = False
    offset: int = 0
    shift: int = 0
    function: str = ""
    final: bool = False

    def key(self) -> tuple[object, ...]:
        """A key that is equal for equal references."""
        text = None if self.argument is None else self.argument.sql
        return (self.kind, self.mask, text, self.from_first, self.offset, self.shift, self.function, self.final)


@dataclass(frozen=True, slots=True)
class Term:
    """An expression of references.

    Attributes:
        text: the text of the expression.
        expression: the expression on the columns ``$0``, ``$1``, ...
        references: the values of these columns.
        type: the type of the result.
    """

    text: str
    expression: Expression
    references: tuple[Reference, ...]
    type: pa.DataType

    @property
    def schema(self) -> pa.Schema:
        """The schema of the references."""
        return pa.schema([pa.field(f"${at}", one.type) for at, one in enumerate(self.references)])

    def depends_on_row(self, variable: int) -> bool:
        """Whether, as the condition of a variable, it depends only on the candidate row and its neighbours, not on rows
        bound earlier."""
        return all(
            one.kind == "row" and not one.from_first and not one.offset and one.mask >> variable & 1
            for one in self.references
        )

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads."""
        return frozenset(name for one in self.references if one.argument is not None for name in one.argument.columns)


def parse_term(text: str, padding: int = 0) -> Tree:
    """Parse one expression in a pattern.

    Args:
        text: the expression.
        padding: added to the positions of its parts.

    Raises:
        TermError: the text cannot be parsed.

    Example:
        >>> parse_term("A.price > LAST(A.price, 1)").sql("spark")
        'A.price > LAST(A.price, 1)'
    """
    dialect = PatternSql()
    try:
        tokens = dialect.tokenize(" " * padding + text)
        select = Token(TokenType.SELECT, "SELECT", 1, 1, 0, 0)
        [tree] = dialect.parser().parse([select, *tokens], " " * padding + text)
        [item] = tree.expressions
        clauses = [key for key, value in tree.args.items() if value and key != "expressions"]
        if clauses:
            raise ValueError(clauses)
    except (ParseError, TokenError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError):
        whole = exp.Var(this=text)
        whole.meta.update(start=padding, end=padding + max(len(text.rstrip()) - 1, 0))
        raise TermError(
            whole, f"{text.strip()[:80]!r} cannot be read: check for a missing operand, comma or parenthesis"
        ) from None
    return item.this if isinstance(item, exp.Alias) and not item.alias else item


@dataclass(frozen=True)
class Terms:
    """Builds terms from trees.

    Attributes:
        masks: the bits of each variable and of each union of variables, by name.
        schema: the schema of the rows.
        functions: compiles the parts that are not references; None: the workbench's expressions.
    """

    masks: dict[str, int]
    schema: pa.Schema

    def condition(self, tree: Tree, what: str) -> Term:
        """Build a boolean term.

        Raises:
            TermError: the term is not boolean, or contains an unknown name.
        """
        term = self.term(tree)
        if not pa.types.is_boolean(term.type):
            raise TermError(tree, f"the condition of {what} has the type {term.type}: compare it with a value")
        if any(one.final for one in term.references):
            raise TermError(tree, f"FINAL is not valid in the condition of {what}, because the match has not ended yet")
        if any(one.kind in ("number", "time") for one in term.references):
            name = "MATCH_NUMBER()" if any(one.kind == "number" for one in term.references) else "MATCH_ROWTIME()"
            raise TermError(tree, f"{name} is not valid in the condition of {what}: use it in a measure")
        return term

    def term(self, tree: Tree) -> Term:
        """Build the term of an expression.

        Raises:
            TermError: the expression contains an unknown name, or its types do not fit.
        """
        found: dict[tuple[object, ...], tuple[int, Reference]] = {}
        whole = exp.Paren(this=tree.copy())

        def visit(node: Tree) -> None:
            one = self._reference(node)
            if one is None:
                for child in list(node.iter_expressions()):
                    visit(child)
                return
            at, _ = found.setdefault(one.key(), (len(found), one))
            node.replace(exp.Column(this=identifier(f"${at}")))

        visit(whole.this)
        references = tuple(one for _, one in found.values())
        expression = Expression(whole.this)
        schema = pa.schema([pa.field(f"${at}", one.type) for at, one in enumerate(references)])
        try:
            kind = compile_expression(expression, schema).type
        except ExpressionError as error:
            reason = error.message.partition(f"{expression.sql!r}: ")[2] or error.message
            for at, one in enumerate(references):
                reason = reason.replace(f"`${at}`", "?" if one.argument is None else one.argument.sql)
            raise TermError(tree, reason) from None
        return Term(render(tree), expression, references, kind)

    # references ---------------------------------------------------------------------------------------------------

    def _reference(self, node: Tree) -> Reference | None:
        """The reference of a part, or None if it is not a reference."""
        if isinstance(node, exp.Column):
            return self._row(node, node)
        if isinstance(node, exp.AggFunc):
            return self._aggregate(node)
        if not isinstance(node, exp.Anonymous):
            return None
        name = str(node.name).upper()
        if name in _NAVIGATION:
            return self._navigation(node, name)
        if name in _PREFIXES:
            inner = self._reference(node.expressions[0])
            if inner is None or inner.shift:
                raise TermError(
                    node, f"{name} is valid only before FIRST(...), LAST(...) or an aggregate: remove it here"
                )
            return replace(inner, final=name == "FINAL")
        if name == "CLASSIFIER":
            return self._classifier(node)
        if name == "MATCH_NUMBER":
            return Reference("number", pa.int64())
        if name == "MATCH_ROWTIME":
            return Reference("time", pa.timestamp("us"))
        raise TermError(node, unknown("function", name, (*_NAVIGATION, "CLASSIFIER", "MATCH_NUMBER", "MATCH_ROWTIME")))

    def _navigation(self, node: Tree, name: str) -> Reference:
        if not 1 <= len(node.expressions) <= 2:
            raise TermError(node, f"{name} takes a value and a number of rows: write {name}(A.price, 1)")
        argument, *rest = node.expressions
        offset = self._offset(rest[0], name) if rest else int(name in ("PREV", "NEXT"))
        inner_name = argument.name.upper() if isinstance(argument, exp.Anonymous) else ""
        if name in ("PREV", "NEXT"):
            inner = self._reference(argument) if inner_name in ("FIRST", "LAST") else self._row(argument, node)
            assert inner is not None
            if inner.kind != "row":
                raise TermError(node, f"{name} of CLASSIFIER is not supported: use LAST(CLASSIFIER(), 1)")
            return replace(inner, shift=-offset if name == "PREV" else offset)
        if inner_name == "CLASSIFIER":
            return replace(self._classifier(argument), from_first=name == "FIRST", offset=offset)
        if inner_name in _NAVIGATION:
            raise TermError(
                node, f"{inner_name} is not valid inside {name}: write {inner_name} outside, as in PREV(LAST(A.n))"
            )
        return replace(self._row(argument, node), from_first=name == "FIRST", offset=offset)

    @staticmethod
    def _offset(tree: Tree, name: str) -> int:
        if not isinstance(tree, exp.Literal) or tree.is_string or not str(tree.name).isdecimal():
            raise TermError(tree, f"how many rows {name} counts is a whole number, not {render(tree)}")
        if int(tree.name) > _OFFSET_MAX:
            raise TermError(tree, f"{name} counts up to {_OFFSET_MAX:,} rows, not {tree.name}")
        return int(tree.name)

    def _classifier(self, node: Tree) -> Reference:
        if not node.expressions:
            return Reference("classifier", pa.string(), self._every())
        [named] = node.expressions if len(node.expressions) == 1 else [node]
        if not isinstance(named, exp.Column) or named.table:
            raise TermError(node, "CLASSIFIER takes the name of a variable, or no argument")
        return Reference("classifier", pa.string(), self._mask(named.name, named))

    def _aggregate(self, node: Tree) -> Reference:
        function = _FUNCTIONS.get(type(node))
        if function is None:
            raise TermError(node, f"{render(node)} is not supported: the aggregates are COUNT, SUM, AVG, MIN and MAX")
        argument = node.this
        if isinstance(argument, exp.Distinct) or node.expressions:
            raise TermError(node, f"{render(node)} is not supported: aggregate all rows, without DISTINCT")
        if isinstance(argument, exp.Star):
            return Reference("aggregate", pa.int64(), self._every(), function=function)
        if isinstance(argument, exp.Column) and isinstance(argument.this, exp.Star):
            return Reference("aggregate", pa.int64(), self._mask(argument.table, argument), function=function)
        row = self._row(argument, node)
        return replace(row, kind="aggregate", type=self._aggregated(function, row, node), function=function)

    @staticmethod
    def _aggregated(function: str, row: Reference, node: Tree) -> pa.DataType:
        kind = row.type
        if function == "count":
            return pa.int64()
        if pa.types.is_integer(kind):
            return pa.float64() if function == "mean" else pa.int64()
        if pa.types.is_floating(kind):
            return pa.float64()
        if (pa.types.is_timestamp(kind) or pa.types.is_date(kind)) and function in ("min", "max"):
            return kind
        raise TermError(node, f"{render(node)} does not support values of type {kind}")

    def _row(self, argument: Tree, whole: Tree) -> Reference:
        """The reference to an expression's value on one row."""
        tables = {}
        for column in argument.find_all(exp.Column):
            if isinstance(column.this, exp.Star):
                raise TermError(column, "* is valid only in COUNT(*) and COUNT(A.*): name a column")
            tables[column.table] = column
        for part in argument.find_all(exp.AggFunc, exp.Anonymous):
            raise TermError(part, f"{render(part)} is not valid inside {render(whole)}, which takes columns of one row")
        if len(tables) > 1:
            named = " and ".join(table or "no variable" for table in tables)
            raise TermError(whole, f"{render(whole)} refers to rows of {named}: name one variable in it")
        mask = self._every()
        for table, column in tables.items():
            mask = self._mask(table, column) if table else mask
        plain = exp.Paren(this=argument.copy())
        for column in list(plain.find_all(exp.Column)):
            column.replace(exp.Column(this=identifier(self._column(column))))
        try:
            expression = Expression(plain.this)
            kind = compile_expression(expression, self.schema).type
        except (ExpressionError, PlanError) as error:
            raise TermError(argument, error.message) from None
        return Reference("row", kind, mask, expression)

    def _column(self, column: Tree) -> str:
        names = self.schema.names
        if column.name in names:
            return str(column.name)
        near = [name for name in names if name.lower() == column.name.lower()]
        if len(near) != 1:
            raise TermError(column, unknown("column", column.name, names))
        return str(near[0])

    def _every(self) -> int:
        mask = 0
        for one in self.masks.values():
            mask |= one
        return mask

    def _mask(self, name: str, tree: Tree) -> int:
        """The bits of a variable."""
        if name in self.masks:
            return self.masks[name]
        near = [known for known in self.masks if known.lower() == name.lower()]
        if len(near) != 1:
            raise TermError(tree, unknown("variable", name, self.masks))
        return self.masks[near[0]]
