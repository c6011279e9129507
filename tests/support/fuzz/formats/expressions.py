"""Expressions: SQL text, and trees that `col` builds."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.expressions.evaluation.compiling import compile_expression
from workbench.expressions.tree.expression import Expression

from ..mutations import texts, values
from ..trial import Format, Trial

BATCH = pa.record_batch(
    {
        "n": pa.array([1, -(2**63), None, 2**63 - 1, 0], pa.int64()),
        "i": pa.array([1, -128, None, 127, 0], pa.int8()),
        "x": pa.array([0.5, float("nan"), None, float("inf"), -0.0]),
        "word": ["a", "", None, "é", "x" * 100],
        "ok": [True, False, None, True, False],
        "t": pa.array([0, -(2**62), None, 2**62, 1_372_658_400_000_000], pa.timestamp("us", "UTC")),
        "kind": pa.array(["p", "q", None, "p", "q"]).dictionary_encode(),
        "tags": [["a"], [], None, ["b", "c"], [None]],
    }
)
TEXTS = (
    "n > 15",
    "n + i * 2 - x / 3 % 5 DIV 2 >= 4 AND NOT ok OR word LIKE 'a%'",
    "CASE WHEN x IS NULL THEN 'none' WHEN isnan(x) THEN 'nan' ELSE CAST(x AS string) END",
    "coalesce(word, kind, 'x') IN ('a', 'b', \"c\") AND n BETWEEN -5 AND 5",
    "date_trunc('hour', t) + INTERVAL 5 MINUTES < TIMESTAMP '2013-07-01 06:00:00'",
    "substring(upper(concat(word, kind)), 2, 3) RLIKE '^[a-z]+$'",
    "unix_timestamp(t) > 5 AND year(t) = 2013 AND to_date(t) = DATE '2013-07-01'",
    "round(sqrt(abs(n)), 2) <=> power(x, 2) AND kind <> 'p'",
    "CAST(word AS bigint) IS NOT NULL",
    "greatest(n, i, 3) - least(x, 1.5)",
    "if(ok, nullif(n, 0), try_divide(n, i))",
    "replace(trim(word), 'a', 'b') ILIKE '%B_'",
)
WORDS = (
    *(
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "LIKE",
        "RLIKE",
        "IS",
        "NULL",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "CAST",
    ),
    *("AS", "INTERVAL", "DATE", "TIMESTAMP", "SELECT", "FROM", "*", "%", "/", "||", "<=>", "::", "->", "=>", "?", "@x"),
    *(
        "abs(n)",
        "floor(",
        "(SELECT 1)",
        "count(*)",
        "sum(n) OVER ()",
        "explode(tags)",
        "named_struct('a', 1)",
        "tags[0]",
    ),
    *(
        "a.b.c",
        "`n`",
        "`no`",
        "1e400",
        "0x1F",
        "X'1F'",
        "1L",
        "1.5BD",
        "9" * 40,
        "9" * 5_000,
        "'\\u0000'",
        "--",
        "/*",
        ";",
    ),
    *("n", "i", "x", "word", "ok", "t", "kind", "tags", "decimal(38, 10)", "array<int>", "INTERVAL '1' YEAR"),
    *(
        "round(x, 400)",
        "power(10, 400)",
        "substring(word, -9223372036854775808, 9223372036854775807)",
        "ltrim(word, 5)",
    ),
    *(
        "date_trunc('eon', t)",
        "RLIKE '('",
        "RLIKE '(a{1000}){1000}'",
        "LIKE '\\\\'",
        "t + INTERVAL 9223372036854775807 DAYS",
    ),
)
_BINARY = (
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.mod, operator.and_, operator.or_),
    *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
)
_UNARY = (operator.neg, operator.invert, abs)
_ODD: tuple[Any, ...] = (
    *values.NUMBERS, *values.NAMES, None, True, b"x", [], {}, (), object, float, pa.scalar(5), range(3),
)  # fmt: skip


class Expressions(Format):
    """An expression is compiled for a table's columns, and computed for its rows."""

    name = "expression"
    share = 16

    def make(self, trial: Trial) -> Any:
        chance = trial.chance
        if chance.random() < 0.3:
            return None
        text = chance.choice(TEXTS)
        for _ in trial.changes():
            trial.story.append("a text has another part")
            text = texts.changed(chance, text[:200_000], WORDS)
        if chance.random() < 0.03:
            text = chance.choice(("n > 1 AND " * 1_000_000 + "ok", "(" * 1_000_000, f"n IN ({'1, ' * 100_000}1)"))
        return text

    def read(self, trial: Trial, made: Any) -> None:
        compiled = compile_expression(_built(trial) if made is None else made, BATCH.schema)
        result = compiled(BATCH)
        result.validate(full=True)
        trial.must(len(result) == BATCH.num_rows, f"{len(result)} values for {BATCH.num_rows} rows")
        trial.must(result.type == compiled.type, f"the type is {result.type}, told was {compiled.type}")
        trial.must(len(compiled(BATCH.slice(0, 0))) == 0, "no rows have a value")
        if pa.types.is_boolean(compiled.type):
            compiled.choose(BATCH)
        again = compile_expression(compiled.sql, BATCH.schema)
        trial.must(again.type == compiled.type, f"{compiled.sql!r} is {again.type} when it is read again")


def _built(trial: Trial) -> Any:
    """An expression that methods and operators make, of what fits and of what does not."""
    chance = trial.chance
    made = wb.col(chance.choice((*BATCH.schema.names, chance.choice(values.NAMES))))
    methods = [name for name in dir(type(made)) if not name.startswith("_")]
    for _ in range(chance.choice((1, 2, 4, 400))):
        other = chance.choice((wb.col(chance.choice(BATCH.schema.names)), chance.choice(_ODD), 1))
        match chance.randrange(4):
            case 0:
                made = chance.choice(_UNARY)(made)
            case 1:
                method = getattr(made, chance.choice(methods))
                given = chance.choice(((), (other,), (other, 1)))
                made = method(*given) if callable(method) and _takes(method, given) else made
            case _:  # a text on the left of % is Python's own affair
                pair = (other, made) if chance.random() < 0.3 and not isinstance(other, str | bytes) else (made, other)
                made = chance.choice(_BINARY)(*pair)
        if not isinstance(made, Expression):
            made = wb.col("n")
    return made


def _takes(method: Callable[..., Any], given: tuple[Any, ...]) -> bool:
    """Whether it can be called with so many arguments."""
    try:
        inspect.signature(method).bind(*given)
    except TypeError:
        return False
    return True
