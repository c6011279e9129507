"""Spark's SQL with Flink's window table functions: text to statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, ClassVar, Literal

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import TokenType

from workbench.errors import QueryError, unknown
from workbench.expressions.tree.limits import balanced, check_nesting, too_deep
from workbench.expressions.tree.sql import STRING_ESCAPES, Tree
from workbench.expressions.tree.strict import NotValidError, StrictParser, check_types
from workbench.queries.reading.places import Text

WINDOWS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
"""The window table functions."""

_EMITTED: dict[str, Literal["final", "changes"]] = {"FINAL": "final", "CHANGES": "changes"}
_TEXT_MAX = 100_000
"""In characters."""
_PARSER_FAULTS = (AttributeError, IndexError, KeyError, TokenError, TypeError, ValueError)
"""Exceptions that sqlglot raises on some malformed texts."""


_STATEMENTS = ("SELECT", "WITH", "INSERT", "CREATE", "EXPLAIN", "SET", "EXECUTE", "BEGIN", "END")


class _Parser(StrictParser):
    """Takes ``TUMBLE(TABLE bid PARTITION BY bidder, DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND)``."""

    FUNC_TOKENS = Spark.Parser.FUNC_TOKENS | {TokenType.SESSION}

    def _window(self, name: str) -> Tree:
        arguments: list[Tree] = []
        called = self._tokens[self._index - 2]  # the name; the parenthesis behind it has been read as well
        while self._curr and self._curr.token_type != TokenType.R_PAREN:
            arguments.append(self._argument())
            if not self._match(TokenType.COMMA):
                break
        return self.expression(exp.Anonymous(this=name, expressions=arguments)).update_positions(called)

    def _argument(self) -> Tree:
        if self._next and self._next.token_type == TokenType.FARROW:
            name = self._curr.text
            self._advance(2)
            return self.expression(exp.Kwarg(this=exp.var(name.upper()), expression=self._argument()))
        if self._match(TokenType.TABLE):
            table = self._parse_table_parts()
        elif self._curr.token_type == TokenType.L_PAREN:
            table = self._parse_table()
        else:
            table = self._parse_disjunction()
        if self._match(TokenType.PARTITION_BY):
            several = self._curr.token_type == TokenType.L_PAREN
            keys = self._parse_wrapped_csv(self._parse_column) if several else [self._parse_column()]
            return self.expression(exp.Tuple(expressions=[table, *keys]))
        return table

    def _parse_field_def(self) -> Tree | None:
        """A column of CREATE TABLE, or ``WATERMARK FOR ts AS ts - INTERVAL '4' SECOND``."""
        if not self._match_text_seq("WATERMARK", "FOR"):
            return super()._parse_field_def()
        column = self._parse_column()
        if not self._match(TokenType.ALIAS):
            self.raise_error("Expecting AS")
        return self.expression(exp.WatermarkColumnConstraint(this=column, expression=self._parse_disjunction()))

    def _parse_match_recognize(self) -> Tree | None:
        """Keep only the positions of the clauses; ``match_clauses`` reads them."""
        if not self._match(TokenType.MATCH_RECOGNIZE):
            return None
        named = self._prev
        if not self._match(TokenType.L_PAREN):
            self.raise_error("Expecting (")
        opened, depth = self._prev, 1
        while self._curr and depth:
            depth += (self._curr.token_type == TokenType.L_PAREN) - (self._curr.token_type == TokenType.R_PAREN)
            self._advance()
        if depth:
            self.raise_error("Expecting )")
        closed = self._prev
        tree = self.expression(exp.MatchRecognize(alias=self._parse_table_alias()))
        tree.meta.update(start=named.start, end=named.end, opened=opened.end, closed=closed.start)
        return tree

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[[Any], Tree]]] = {
        **Spark.Parser.FUNCTION_PARSERS,
        **{name: methodcaller("_window", name) for name in WINDOWS},
    }


class _Tokenizer(Spark.Tokenizer):  # type: ignore[misc]
    """Reads the text after EXPLAIN, and after EXECUTE STATEMENT SET BEGIN, as a statement."""

    STRING_ESCAPES: ClassVar[list[str]] = STRING_ESCAPES
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        word: kind
        for word, kind in {**Spark.Tokenizer.KEYWORDS, "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE}.items()
        if word not in ("EXPLAIN", "EXECUTE")
    }


class StreamSql(Spark):  # type: ignore[misc]
    """The dialect of whole queries; its expressions are Spark's."""

    Tokenizer = _Tokenizer
    Parser = _Parser


@dataclass(frozen=True)
class Statement:
    """One statement of a script.

    Attributes:
        tree: the syntax tree.
        explained: whether EXPLAIN precedes it.
        emitted: ``final`` or ``changes``, from EMIT at its end; None without EMIT.
    """

    tree: Tree
    explained: bool = False
    emitted: Literal["final", "changes"] | None = None


def statements(text: Text) -> list[Statement]:
    """Parse the statements of a script, separated by semicolons.

    Raises:
        QueryError: not text, too long, or not SQL; with the line and a caret.
    """
    if not isinstance(text.sql, str):
        raise QueryError(f"a query is SQL text, not {text.sql!r}", origin=text.origin)
    if len(text.sql) > _TEXT_MAX:
        raise QueryError(
            f"the query has {len(text.sql):,} characters, more than the maximum of {_TEXT_MAX:,}: build it from "
            "several streams",
            origin=text.origin,
        )
    dialect = StreamSql()
    try:
        tokens = dialect.tokenize(text.sql)
    except TokenError:
        raise QueryError("the query has a quote that is not closed: close it", origin=text.origin) from None
    found = [_statement(chunk, dialect, text) for chunk in _chunks(tokens)]
    if not found:
        raise QueryError("the query is empty: write for example SELECT * FROM flights", origin=text.origin)
    return found


def _chunks(tokens: Sequence[Any]) -> list[list[Any]]:
    chunks: list[list[Any]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            chunks.append([])
        else:
            chunks[-1].append(token)
    return [chunk for chunk in map(_without_set, chunks) if chunk]


def _without_set(chunk: list[Any]) -> list[Any]:
    """A statement without the words by which Flink makes several of them one job, as all of a script are here."""
    words = [token.text.upper() for token in chunk]
    if words[:4] == ["EXECUTE", "STATEMENT", "SET", "BEGIN"]:
        return chunk[4:]
    return [] if words in (["BEGIN", "STATEMENT", "SET"], ["END"]) else chunk


def _statement(tokens: list[Any], dialect: Spark, text: Text) -> Statement:
    explained = tokens[0].text.upper() == "EXPLAIN" and len(tokens) > 1
    rest = tokens[1:] if explained else tokens
    first = rest[0]
    last = [token.text.upper() for token in rest[-2:]]
    emitted = _EMITTED.get(last[-1]) if last[0] == "EMIT" else None
    if emitted is not None and len(rest) > len(last):
        rest = rest[:-2]
    if first.token_type in (TokenType.COMMAND, TokenType.SHOW, TokenType.DESCRIBE):
        raise text.error_at(first.start, first.end, f"{first.text.upper()} is not supported: write a SELECT")
    if first.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
        raise text.error_at(first.start, first.end, unknown("statement", first.text.upper(), _STATEMENTS))
    try:
        check_nesting(rest)
        [tree] = dialect.parser().parse(rest, text.sql)
        check_types(tree)
        balanced(tree)
    except RecursionError:
        raise text.error_at(first.start, first.end, too_deep().message) from None
    except NotValidError as error:
        start, end = (first.start, first.end) if error.start < 0 else (error.start, error.end)
        raise text.error_at(start, end, error.message) from None
    except ParseError as error:
        raise _unreadable(error, rest, text) from None
    except _PARSER_FAULTS:
        raise text.error_at(
            first.start,
            first.end,
            "the statement that starts here cannot be parsed: check for a missing operand, quote or parenthesis",
        ) from None
    return Statement(tree, explained, emitted)


def _unreadable(error: ParseError, tokens: Sequence[Any], text: Text) -> QueryError:
    detail = error.errors[0]
    at = next((token for token in tokens if (token.line, token.col) == (detail["line"], detail["col"])), tokens[-1])
    word, problem = at.text, str(detail["description"])
    if any(token.text.upper() in ("MATCH_RECOGNIZE", "EMIT") for token in (at, *tokens)) and "Expecting" not in problem:
        named = next(token for token in tokens if token.text.upper() in ("MATCH_RECOGNIZE", "EMIT"))
        return text.error_at(named.start, named.end, f"{named.text.upper()} is not supported: remove it")
    if "missing for" in problem:
        said = f"the query is incomplete at {word!r}: something is missing here"
    elif problem.startswith("Expecting"):
        said = f"{problem.split()[1]} is expected near {word!r}"
    else:
        said = f"the query cannot be parsed at {word!r}: check for a missing comma, operator, quote or parenthesis"
    return text.error_at(at.start, at.end, said)
