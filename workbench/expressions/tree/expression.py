"""The expression as a Python value: operators and methods that build the tree."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark

from workbench.errors import ExpressionError
from workbench.expressions.tree.sql import Tree, parse_sql, render
from workbench.origin import caller

_SIMPLE_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_ATOMS = (exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Func, exp.Paren, exp.Cast)


class Expression:
    """An immutable computation on the columns of a row; build it with `col`, `lit`, `expr` and Python operators.

    ``& | ~`` are AND, OR and NOT with SQL's three-valued logic; ``==`` and ``!=`` build comparisons, so two
    expressions are compared as text (``a.sql == b.sql``).

    Source: Spark's ``Column``; nulls, NaN, division and casts are as in Spark's SQL.

    Example:
        >>> late = (col("dep_delay") > 15) & col("carrier").is_in(["AA", "UA"])
        >>> late.sql
        "(dep_delay > 15) AND (carrier IN ('AA', 'UA'))"
    """

    __slots__ = ("_sql", "_tree")

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._sql: str | None = None

    @property
    def tree(self) -> Tree:
        """The sqlglot syntax tree (Spark's dialect); not to be changed."""
        return self._tree

    @property
    def sql(self) -> str:
        """The expression as Spark SQL text."""
        if self._sql is None:
            self._sql = render(self._tree)
        return self._sql

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns used, each once, in order of first use."""
        return tuple(dict.fromkeys(column.name for column in self._tree.find_all(exp.Column, bfs=False)))

    @property
    def name(self) -> str:
        """The name of a column with this expression: its alias, its column, or its SQL text."""
        return str(self._tree.alias_or_name) if isinstance(self._tree, exp.Alias | exp.Column) else self.sql

    def __repr__(self) -> str:
        return f"expr({self.sql!r})"

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            f"expression {self.sql!r} has no truth value: use & | ~ instead of and or not, "
            "is_in instead of in, between instead of a < b < c",
            origin=caller(),
        )

    def __iter__(self) -> NoReturn:
        raise ExpressionError(
            f"expression {self.sql!r} cannot be iterated: it describes one value per row", origin=caller()
        )

    def __hash__(self) -> int:
        return hash(self.sql)

    # Arithmetic

    def __add__(self, other: object) -> Expression:
        return _binary(exp.Add, self, other)

    def __radd__(self, other: object) -> Expression:
        return _binary(exp.Add, other, self)

    def __sub__(self, other: object) -> Expression:
        return _binary(exp.Sub, self, other)

    def __rsub__(self, other: object) -> Expression:
        return _binary(exp.Sub, other, self)

    def __mul__(self, other: object) -> Expression:
        return _binary(exp.Mul, self, other)

    def __rmul__(self, other: object) -> Expression:
        return _binary(exp.Mul, other, self)

    def __truediv__(self, other: object) -> Expression:
        return _binary(exp.Div, self, other)

    def __rtruediv__(self, other: object) -> Expression:
        return _binary(exp.Div, other, self)

    def __mod__(self, other: object) -> Expression:
        return _binary(exp.Mod, self, other)

    def __rmod__(self, other: object) -> Expression:
        return _binary(exp.Mod, other, self)

    def __neg__(self) -> Expression:
        return Expression(exp.Neg(this=_operand(self)))

    def abs(self) -> Expression:
        """The absolute value."""
        return Expression(exp.Abs(this=tree_of(self)))

    def __abs__(self) -> Expression:
        return self.abs()

    def round(self, decimals: int = 0) -> Expression:
        """Rounded half away from zero, as SQL does.

        Args:
            decimals: digits after the decimal point; a negative number rounds to tens, hundreds, ...
        """
        return Expression(exp.Round(this=tree_of(self), decimals=tree_of(decimals)))

    # Comparison

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return _binary(exp.EQ, self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return _binary(exp.NEQ, self, other)

    def __lt__(self, other: object) -> Expression:
        return _binary(exp.LT, self, other)

    def __le__(self, other: object) -> Expression:
        return _binary(exp.LTE, self, other)

    def __gt__(self, other: object) -> Expression:
        return _binary(exp.GT, self, other)

    def __ge__(self, other: object) -> Expression:
        return _binary(exp.GTE, self, other)

    def eq_null_safe(self, other: object) -> Expression:
        """``<=>``: like ``==``, but null equals null and the result is never null.

        Args:
            other: an expression or a constant.

        Raises:
            ExpressionError: a constant of a type that an expression cannot contain.
        """
        return _binary(exp.NullSafeEQ, self, other)

    def between(self, low: object, high: object) -> Expression:
        """Whether the value lies in [low, high].

        Args:
            low: an expression or a constant.
            high: an expression or a constant; both ends belong to the range.

        Raises:
            ExpressionError: a constant of a type that an expression cannot contain.
        """
        return Expression(exp.Between(this=_operand(self), low=_operand(low), high=_operand(high)))

    def is_in(self, values: Iterable[object]) -> Expression:
        """Whether the value is one of `values`.

        Args:
            values: expressions or constants.

        Raises:
            ExpressionError: text instead of a list, or a constant of a type that an expression cannot contain.
        """
        if isinstance(values, str):
            raise ExpressionError(
                f"is_in takes a list of values, not the text {values!r}: write is_in([{values!r}])", origin=caller()
            )
        if not isinstance(values, Iterable):
            raise ExpressionError(
                f"is_in takes a list of values, not {values!r}: write is_in([{values!r}])", origin=caller()
            )
        return Expression(exp.In(this=_operand(self), expressions=[tree_of(value) for value in values]))

    def is_null(self) -> Expression:
        """Whether the value is null; the result is never null."""
        return Expression(exp.Is(this=_operand(self), expression=exp.Null()))

    def is_not_null(self) -> Expression:
        """Whether the value is not null; the result is never null."""
        return Expression(exp.Not(this=self.is_null().tree))

    # Logic

    def __and__(self, other: object) -> Expression:
        return _binary(exp.And, self, other)

    def __rand__(self, other: object) -> Expression:
        return _binary(exp.And, other, self)

    def __or__(self, other: object) -> Expression:
        return _binary(exp.Or, self, other)

    def __ror__(self, other: object) -> Expression:
        return _binary(exp.Or, other, self)

    def __invert__(self) -> Expression:
        return Expression(exp.Not(this=_operand(self)))

    # Text

    def lower(self) -> Expression:
        """The text in lower case."""
        return Expression(exp.Lower(this=tree_of(self)))

    def upper(self) -> Expression:
        """The text in upper case."""
        return Expression(exp.Upper(this=tree_of(self)))

    def length(self) -> Expression:
        """The number of characters."""
        return Expression(exp.Length(this=tree_of(self)))

    def contains(self, text: object) -> Expression:
        """Whether the value contains `text`.

        Args:
            text: an expression or a constant; case-sensitive.

        Raises:
            ExpressionError: a constant of a type that an expression cannot contain.
        """
        return Expression(exp.Contains(this=tree_of(self), expression=tree_of(text)))

    def startswith(self, text: object) -> Expression:
        """Whether the value starts with `text`.

        Args:
            text: an expression or a constant; case-sensitive.

        Raises:
            ExpressionError: a constant of a type that an expression cannot contain.
        """
        return Expression(exp.StartsWith(this=tree_of(self), expression=tree_of(text)))

    def endswith(self, text: object) -> Expression:
        """Whether the value ends with `text`.

        Args:
            text: an expression or a constant; case-sensitive.

        Raises:
            ExpressionError: a constant of a type that an expression cannot contain.
        """
        return Expression(exp.EndsWith(this=tree_of(self), expression=tree_of(text)))

    def rlike(self, pattern: str) -> Expression:
        """Whether the regular expression `pattern` is found anywhere in the text.

        Args:
            pattern: in RE2's syntax, without look-around.

        Raises:
            ExpressionError: an invalid pattern, when the expression is used.
        """
        return Expression(exp.RegexpLike(this=_operand(self), expression=tree_of(pattern)))

    def like(self, pattern: str) -> Expression:
        """Whether the whole text matches `pattern`, in which ``%`` matches any text and ``_`` any character.

        Args:
            pattern: with ``\\%`` and ``\\_`` for the characters themselves.
        """
        return Expression(exp.Like(this=_operand(self), expression=tree_of(pattern)))

    # Types and names

    def cast(self, type_name: str) -> Expression:
        """Converted to a Spark SQL type: int, bigint, float, double, string, boolean, timestamp, date and others.

        Text that is not a value of the type becomes null, as in Spark without ANSI mode.

        Args:
            type_name: such as ``"bigint"``.

        Raises:
            ExpressionError: not a type of Spark SQL.
        """
        tree = parse_sql(f"CAST(NULL AS {type_name})", caller())
        tree.set("this", tree_of(self))
        return Expression(tree)

    def alias(self, name: str) -> Expression:
        """The same value under the name `name` in ``select``.

        Args:
            name: of the column.

        Raises:
            ExpressionError: not a name.
        """
        if not isinstance(name, str) or not name:
            raise ExpressionError(f"alias takes a column's name, not {name!r}", origin=caller())
        return Expression(exp.Alias(this=tree_of(self), alias=identifier(name)))


def identifier(name: str) -> Tree:
    """A name, in backticks if it needs them."""
    simple = _SIMPLE_NAME.fullmatch(name) and name.upper() not in Spark.Tokenizer.KEYWORDS
    return exp.Identifier(this=name, quoted=not simple)


def _binary(node: Tree, left: object, right: object) -> Expression:
    return Expression(node(this=_operand(left), expression=_operand(right)))


def _operand(value: object) -> Tree:
    """The tree of an operand, in parentheses if precedence could change its meaning."""
    tree = tree_of(value)
    return tree if isinstance(tree, _ATOMS) and not isinstance(tree, exp.Connector) else exp.Paren(this=tree)


def tree_of(value: object) -> Tree:
    """A fresh tree of an expression or constant (sqlglot nodes know their parent, so they are never shared)."""
    if isinstance(value, Expression):
        tree = value.tree
        return (tree.this if isinstance(tree, exp.Alias) else tree).copy()
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return exp.Literal.number(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return exp.Literal.number(repr(value))
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return exp.cast(exp.Literal.string(name), "double", dialect="spark")
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, datetime):
        naive = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return exp.cast(exp.Literal.string(naive.isoformat(" ")), "timestamp", dialect="spark")
    if isinstance(value, date):
        return exp.cast(exp.Literal.string(value.isoformat()), "date", dialect="spark")
    item = getattr(value, "item", None)  # a numpy scalar
    if callable(item):
        return tree_of(item())
    raise ExpressionError(
        f"{value!r} ({type(value).__name__}) cannot be part of an expression: use None, bool, int, float, str, date or "
        "datetime",
        origin=caller(),
    )
