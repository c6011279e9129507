"""The parser's own checks: literals that are no values, surplus arguments, and types that it would replace."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

from workbench.expressions.tree.text_times import days_of_text, micros_of_text

_INTEGERS = {"Y": ("tinyint", 8), "S": ("smallint", 16), "L": ("bigint", 64)}
_SUFFIXES = (*_INTEGERS, "F", "D", "BD")
_FLOAT_MAX = 3.4028235677973366e38
"""From here on, a number is too large for a float."""
_DIGITS_MAX = 38
_OPENED = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSED = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)

_ARGUMENTS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date"), (1, 1)),
    **dict.fromkeys(
        ("timestamp", "decimal", "binary", "abs", "ceiling", "exp", "ln", "sqrt", "isnan", "reverse"), (1, 1)
    ),
    **dict.fromkeys(("length", "len", "char_length", "character_length", "lower", "lcase", "upper", "ucase"), (1, 1)),
    **dict.fromkeys(("year", "quarter", "month", "day", "dayofmonth", "dayofweek", "dayofyear"), (1, 1)),
    **dict.fromkeys(("hour", "minute", "second", "isnull", "isnotnull"), (1, 1)),
    **dict.fromkeys(("avg", "mean", "max", "min", "sum"), (1, 1)),
    **dict.fromkeys(("nvl", "ifnull", "nullif", "mod", "pow", "power", "try_divide", "contains", "startswith"), (2, 2)),
    **dict.fromkeys(
        ("endswith", "date_format", "date_trunc", "regexp_count", "regexp_like", "rlike", "regexp"), (2, 2)
    ),
    **dict.fromkeys(("left", "right", "repeat", "instr", "get_json_object"), (2, 2)),
    **dict.fromkeys(("ceil", "floor", "round", "log", "ltrim", "rtrim", "to_date", "to_timestamp"), (1, 2)),
    **dict.fromkeys(
        ("locate", "charindex", "lpad", "rpad", "replace", "split", "regexp_extract", "like", "ilike"), (2, 3)
    ),
    **dict.fromkeys(("substring", "substr", "position"), (1, 3)),
    **{"coalesce": (1, None), "greatest": (2, None), "least": (2, None), "if": (3, 3), "split_part": (3, 3)},
    **{"regexp_replace": (3, 4), "unix_timestamp": (0, 2), "to_unix_timestamp": (1, 2)},
}
"""How many arguments Spark's functions take: the parser would drop the others."""

KINDS = {
    *(exp.DType.BOOLEAN, exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.FLOAT),
    *(exp.DType.DOUBLE, exp.DType.DECIMAL, exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR, exp.DType.DATE),
    *(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ, exp.DType.BINARY),
    *(exp.DType.ARRAY, exp.DType.MAP, exp.DType.STRUCT, exp.DType.VARBINARY),
}
"""Types that the parser writes as what they are; it would write a time as a timestamp, and a uuid as text."""


_KEPT = ("DATE_FORMAT", "TO_CHAR", "TO_VARCHAR", "TO_NUMBER", "TRY_TO_NUMBER")
"""Functions whose patterns the parser would translate or leave out."""


def _by_name(name: str, arguments: list[Any]) -> Any:
    return exp.Anonymous(this=name, expressions=arguments)


class NotValidError(Exception):
    """A part of the text that Spark refuses, or that would be computed as something else.

    Attributes:
        message: the fact.
        start, end: positions of the part in the text, from 0; -1 if they are not known.
    """

    def __init__(self, message: str, start: int = -1, end: int = -1) -> None:
        super().__init__(message)
        self.message, self.start, self.end = message, start, end


class StrictParser(Spark.Parser):  # type: ignore[misc]
    """Spark's parser with these checks."""

    def _typed(self, literal: Any, kind: Any) -> Any:
        """A literal such as ``DATE '2024-01-31'``."""
        written, token = f"{kind.sql('spark')} '{literal.name}'", self._prev
        if kind.this in (exp.DType.TIME, exp.DType.TIMETZ):
            raise NotValidError(
                f"TIME '{literal.name}' is not supported: use text, or a TIMESTAMP", token.start, token.end
            )
        text = literal.name.strip()
        if kind.this == exp.DType.DATE:
            value, example = days_of_text(text), "2013-01-31"
        else:
            value, example = micros_of_text(text, zoned=True), "2013-01-31 06:00:00"
        if value is None:
            word = written.partition(" ")[0]
            raise NotValidError(f"{written} is never a value: write it as {word} '{example}'", token.start, token.end)
        return self.expression(exp.Cast(this=literal, to=kind))

    TYPE_LITERAL_PARSERS: ClassVar[dict[Any, Any]] = {
        **Spark.Parser.TYPE_LITERAL_PARSERS,
        **dict.fromkeys(
            (
                *(exp.DType.DATE, exp.DType.TIME, exp.DType.TIMETZ, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ),
                *(exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ),
            ),
            lambda self, literal, kind: self._typed(literal, kind),
        ),
    }

    def _parse_unary(self) -> Any:
        """A negative literal with a suffix, such as ``-128Y``, is one literal."""
        following = self._tokens[self._index : self._index + 4]
        kinds = [token.token_type for token in following[:3]]
        if kinds == [TokenType.DASH, TokenType.NUMBER, TokenType.DCOLON] and following[3].text.upper() in _SUFFIXES:
            self._advance(4)
            return self._suffixed(f"-{following[1].text}", following[3].text.upper())
        return super()._parse_unary()

    def _positive(self) -> Any:
        """A sign ``+``, which the parser would leave out also before what is no number."""
        is_literal = self._curr is not None and self._curr.token_type == TokenType.NUMBER
        operand = self._parse_unary()
        return operand if is_literal or operand is None else _by_name("POSITIVE", [operand])

    UNARY_PARSERS: ClassVar[dict[Any, Any]] = {
        **Spark.Parser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: self._positive(),
    }

    def _suffixed(self, digits: str, suffix: str) -> Any:
        """A literal such as ``127Y`` or ``1.5BD``."""
        token, written = self._prev, f"{digits}{suffix}"
        if suffix in _INTEGERS:
            name, bits = _INTEGERS[suffix]
            if not digits.lstrip("-").isdigit() or not -(2 ** (bits - 1)) <= int(digits) < 2 ** (bits - 1):
                raise NotValidError(f"{written} is never a value: it is no {name}", token.start, token.end)
        elif suffix == "BD":
            name = _decimal_name(digits, written, token)
        else:
            name, limit = ("float", _FLOAT_MAX) if suffix == "F" else ("double", math.inf)
            if abs(float(digits)) >= limit:
                raise NotValidError(f"{written} is never a value: it is too large for a {name}", token.start, token.end)
        literal = exp.Literal(this=digits, is_string=False)
        return self.expression(exp.Cast(this=literal, to=exp.DataType.build(name, dialect="spark")))

    FUNCTIONS: ClassVar[dict[str, Any]] = {
        **Spark.Parser.FUNCTIONS,
        **{name: partial(_by_name, name) for name in _KEPT},
    }
    COLUMN_OPERATORS: ClassVar[dict[Any, Any]] = {
        **Spark.Parser.COLUMN_OPERATORS,
        TokenType.DCOLON: lambda self, this, to: self._converted(this, to),
    }

    def _converted(self, this: Any, to: Any) -> Any:
        suffix = self._prev.text.upper()
        if suffix in _SUFFIXES and isinstance(this, exp.Literal) and not this.is_string:
            return self._suffixed(this.name, suffix)
        return self.build_cast(strict=self.STRICT_CAST, this=this, to=to)

    def _parse_function_call(self, *args: Any, **options: Any) -> Any:
        name = self._curr.text.lower() if self._curr else ""
        wanted = _ARGUMENTS.get(name)
        if wanted is not None and self._next and self._next.token_type == TokenType.L_PAREN:
            self._count_arguments(name, *wanted)
            if name == "get_json_object":
                self._check_path()
        return super()._parse_function_call(*args, **options)

    def _check_path(self) -> None:
        """The parser would read a path without ``$`` as one with it, for which Spark finds nothing."""
        for token, following in zip(self._tokens[self._index :], self._tokens[self._index + 1 :], strict=False):
            if token.token_type == TokenType.COMMA:
                if following.token_type == TokenType.STRING and not following.text.startswith("$"):
                    said = f"get_json_object has the path {following.text!r}, which is none: it begins with $"
                    raise NotValidError(said, following.start, following.end)
                return

    def _count_arguments(self, name: str, least: int, most: int | None) -> None:
        called, depth, commas, at = self._curr, 0, 0, self._index + 1
        first = at + 1
        while True:
            if at == len(self._tokens):
                return  # not closed, which the parser finds
            kind = self._tokens[at].token_type
            depth += (kind in _OPENED) - (kind in _CLOSED)
            if not depth:
                break
            commas += kind == TokenType.COMMA and depth == 1
            at += 1
        count = commas + 1 if at > first else 0
        if count < least or (most is not None and count > most):
            wanted = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            raise NotValidError(
                f"{name} has {count} arguments, and takes {wanted}: no argument is ignored", called.start, called.end
            )


def _decimal_name(digits: str, written: str, token: Any) -> str:
    whole, _, fraction = digits.lstrip("-").partition(".")
    if not (whole + fraction).isdigit() or len(whole.lstrip("0") + fraction) > _DIGITS_MAX:
        raise NotValidError(f"{written} is never a value: a decimal has at most 38 digits", token.start, token.end)
    return f"decimal({max(1, len(whole.lstrip('0') + fraction))}, {len(fraction)})"


def check_types(tree: Any) -> None:
    """Refuse types that would silently be written as another one.

    Raises:
        NotValidError: for example ``CAST(x AS TIME)``.
    """
    for cast in tree.find_all(exp.Cast):
        kind = cast.args["to"]
        if isinstance(kind, exp.DataType) and kind.this not in KINDS:
            name = kind.this.value if isinstance(kind.this, exp.DType) else str(kind.this)
            raise NotValidError(f"the type {name} is not supported: convert to text, a number, a date or a timestamp")
