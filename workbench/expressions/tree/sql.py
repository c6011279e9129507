"""SQL text to syntax tree and back, in Spark's dialect."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError, TokenError

from workbench.errors import ExpressionError
from workbench.expressions.tree.limits import TOO_DEEP as LIMITS
from workbench.expressions.tree.limits import balanced, check_nesting, without_warnings
from workbench.expressions.tree.strict import NotValidError, StrictParser, check_types
from workbench.origin import Origin

Tree = Any
"""A sqlglot expression node; sqlglot is untyped here, so the name documents what is meant."""

TOO_DEEP = f"the expression is nested too deeply: the maximum is {LIMITS} (is_in), or several with_columns"
_PREFIX = "SELECT "
_TEXT_MAX = 100_000
"""In characters; sqlglot takes some seconds to parse this many."""
_SHOWN = 300
"""Characters of an expression shown in an error."""

# What sqlglot's own code raises on some malformed texts, such as "floor(" or ten thousand parentheses.
_PARSER_FAULTS = (AttributeError, IndexError, KeyError, TypeError, ValueError)


STRING_ESCAPES = ["\\", "'", '"']
"""A doubled quote in a text is a quote of the text, as in Spark 4 and later."""


class _Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
    STRING_ESCAPES: ClassVar[list[str]] = STRING_ESCAPES


class SparkSql(Spark):  # type: ignore[misc]
    """The dialect of expressions."""

    Tokenizer = _Tokenizer
    Parser = StrictParser


class _Generator(Spark.Generator):  # type: ignore[misc]
    """Spark SQL as people write it: ``a IS NOT NULL`` rather than ``NOT a IS NULL``."""

    def not_sql(self, expression: Tree) -> str:
        inner = expression.this
        if isinstance(inner, exp.Is):
            return f"{self.sql(inner, 'this')} IS NOT {self.sql(inner, 'expression')}"
        if isinstance(inner, exp.In):
            return f"{self.sql(inner, 'this')} NOT IN ({self.expressions(inner, flat=True)})"
        if isinstance(inner, exp.Like | exp.ILike | exp.RegexpLike):
            word = {exp.Like: "LIKE", exp.ILike: "ILIKE"}.get(type(inner), "RLIKE")
            return f"{self.sql(inner, 'this')} NOT {word} {self.sql(inner, 'expression')}"
        return str(super().not_sql(expression))

    def nullsafeeq_sql(self, expression: Tree) -> str:
        return str(self.binary(expression, "<=>"))


def render(tree: Tree) -> str:
    """The Spark SQL text of a tree.

    Raises:
        ExpressionError: it is nested too deeply.
    """
    try:
        return str(_Generator(dialect=Spark, unsupported_level=ErrorLevel.IGNORE).generate(tree))
    except RecursionError:
        raise ExpressionError(TOO_DEEP) from None


def parse_sql(text: str, origin: Origin | None = None) -> Tree:
    """The tree of one SQL expression.

    Raises:
        ExpressionError: not exactly one expression; the message quotes the text and the position (from 1).
    """
    if not isinstance(text, str):
        raise ExpressionError(f"an expression is SQL text or built from col(...), not {text!r}", origin=origin)
    if not text.strip():
        raise ExpressionError(
            'the expression is empty: write a condition or value such as "dep_delay > 15"', origin=origin
        )
    if len(text) > _TEXT_MAX:
        raise ExpressionError(
            f"the expression {shown(text)} has {len(text):,} characters, more than the maximum of {_TEXT_MAX:,}: use "
            "col(...).is_in for many values, or join",
            origin=origin,
        )
    try:
        statements = _parsed(_PREFIX + text)
    except NotValidError as error:
        raise ExpressionError(f"expression {shown(text)}: {error.message}", origin=origin) from None
    except ParseError as error:
        raise ExpressionError(_describe(text, error), origin=origin) from None
    except RecursionError:
        raise ExpressionError(f"expression {shown(text)}: {TOO_DEEP}", origin=origin) from None
    except _PARSER_FAULTS:
        raise ExpressionError(
            f"expression {shown(text)} cannot be read: check for a missing operand, quote or parenthesis", origin=origin
        ) from None
    except TokenError:
        raise ExpressionError(f"expression {shown(text)} has a quote that is not closed", origin=origin) from None
    if not isinstance(select := statements[0], exp.Select):
        raise ExpressionError(
            f"expression {shown(text)} is not a single condition or value: leave out UNION and other clauses",
            origin=origin,
        )
    clauses = [key for key, value in select.args.items() if value and key != "expressions"]
    if len(statements) != 1 or clauses or len(select.expressions) != 1:
        raise ExpressionError(
            f"expression {shown(text)} is not a single condition or value: leave out SELECT, FROM, WHERE and commas",
            origin=origin,
        )
    return select.expressions[0]


def _parsed(text: str) -> list[Tree]:
    """The statements of a text.

    Raises:
        NotValidError: something that Spark refuses, or that exceeds a limit.
    """
    dialect = SparkSql()
    with without_warnings():
        tokens = dialect.tokenize(text)
        check_nesting(tokens)
        found: list[Tree] = dialect.parser().parse(tokens, text)
        for tree in found:
            if tree is not None:
                check_types(tree)
                balanced(tree)
    return found


def shown(text: str) -> str:
    """An expression's text in quotation marks, shortened if it is long.

    Example:
        >>> shown("a > 1")
        "'a > 1'"
    """
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def refuse_half_pairs(text: str, origin: Origin | None) -> None:
    """Reject text that cannot be encoded: Arrow has no such text.

    Raises:
        ExpressionError: it has an unpaired surrogate.
    """
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise ExpressionError(
            f"the expression {shown(text)} has an unpaired surrogate, which is not a character: remove it",
            origin=origin,
        )


def _describe(text: str, error: ParseError) -> str:
    detail = error.errors[0]
    word = (detail["highlight"] or "")[:_SHOWN]
    end = detail["col"] - len(_PREFIX) if detail["line"] == 1 else detail["col"]
    position = max(1, end - len(word) + 1)
    line = f"line {detail['line']}, " if detail["line"] > 1 else ""
    problem = str(detail["description"])
    if "missing for" in problem:
        return (
            f"expression {shown(text)} is incomplete after {word!r} at {line}position {position}: "
            "something is missing here"
        )
    if problem.startswith("Expecting"):
        return f"expression {shown(text)} lacks {problem.split()[1]!r} after {word!r} at {line}position {position}"
    return (
        f"expression {shown(text)} cannot be read at {word!r}, {line}position {position}: "
        "check for a missing operator, quote or parenthesis"
    )
