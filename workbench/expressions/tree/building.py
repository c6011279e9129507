"""Starting points of expressions: columns, constants, SQL text and choices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp

from workbench.errors import ExpressionError
from workbench.expressions.tree.expression import Expression, identifier, tree_of
from workbench.expressions.tree.sql import parse_sql
from workbench.origin import Origin, caller


@dataclass(frozen=True, slots=True)
class When:
    """A condition that still lacks its value: ``when(condition).then(value)``.

    Source: Spark's ``when``.
    """

    condition: Expression
    before: tuple[tuple[Expression, object], ...] = ()

    def then(self, value: object) -> Case:
        """The value if the condition is true.

        Args:
            value: an expression or a constant.

        Raises:
            ExpressionError: a constant of a type that an expression cannot contain.
        """
        return Case((*self.before, (self.condition, value)))


class Case(Expression):
    """``CASE WHEN ...``; without `otherwise` it is null if no condition is true."""

    __slots__ = ("_branches",)

    def __init__(self, branches: tuple[tuple[Expression, object], ...]) -> None:
        self._branches = branches
        super().__init__(exp.Case(ifs=[exp.If(this=tree_of(test), true=tree_of(value)) for test, value in branches]))

    def when(self, condition: Expression | str) -> When:
        """Another condition, evaluated if no earlier one is true."""
        return When(_condition(condition), self._branches)

    def otherwise(self, value: object) -> Expression:
        """The value if no condition is true."""
        tree = self._tree.copy()
        tree.set("default", tree_of(value))
        return Expression(tree)


def col(name: str) -> Expression:
    """The column `name`, exactly as the schema writes it.

    Source: Spark's ``col``.

    Args:
        name: of the column; whether it exists is checked where the expression is used.

    Raises:
        ExpressionError: not a name.

    Example:
        >>> (col("dep_delay") > 15).sql
        'dep_delay > 15'
    """
    if not isinstance(name, str) or not name:
        raise ExpressionError(f"col takes a column's name, not {name!r}", origin=caller())
    return _column(name)


@lru_cache(maxsize=1_024)
def _column(name: str) -> Expression:
    """One per name: expressions are immutable, and the text is computed once."""
    return Expression(exp.Column(this=identifier(name)))


def lit(value: object) -> Expression:
    """A constant: None, bool, int, float, str, date or datetime (UTC if it has no zone).

    Source: Spark's ``lit``.

    Args:
        value: the constant; numpy scalars are accepted.

    Raises:
        ExpressionError: a value of another type.

    Example:
        >>> (col("n") * lit(2)).sql
        'n * 2'
    """
    return Expression(tree_of(value))


def expr(text: str, origin: Origin | None = None) -> Expression:
    """An expression from Spark SQL text.

    Source: Spark's ``expr``.

    Args:
        text: such as ``"dep_delay > 15 AND carrier <> 'AA'"``.
        origin: the line to name in an error; None: the caller's.

    Raises:
        ExpressionError: the text is not one SQL expression.

    Example:
        >>> expr("dep_delay IS NOT NULL AND carrier <> 'AA'").columns
        ('dep_delay', 'carrier')
    """
    return Expression(parse_sql(text, origin or caller()))


def when(condition: Expression | str) -> When:
    """Begin a choice.

    Source: Spark's ``when``.

    Args:
        condition: an expression or SQL text.

    Raises:
        ExpressionError: text that is not a SQL expression.

    Example:
        >>> when(col("delay") > 60).then("bad").when(col("delay") > 15).then("late").otherwise("good").sql
        "CASE WHEN delay > 60 THEN 'bad' WHEN delay > 15 THEN 'late' ELSE 'good' END"
    """
    return When(_condition(condition))


def coalesce(first: Expression, *others: object) -> Expression:
    """The first value that is not null.

    Source: Spark's ``coalesce``.

    Args:
        first: evaluated first.
        others: expressions or constants, evaluated in this order.

    Raises:
        ExpressionError: a constant of a type that an expression cannot contain.

    Example:
        >>> coalesce(col("delay"), 0).sql
        'COALESCE(delay, 0)'
    """
    return Expression(exp.Coalesce(this=tree_of(first), expressions=[tree_of(other) for other in others]))


def _condition(value: Expression | str) -> Expression:
    return value if isinstance(value, Expression) else expr(value)
