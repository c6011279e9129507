"""Conditions computed by the kernel find the same matches as conditions computed by expressions."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pattern_runs import PatternRun

from workbench.errors import RecordError
from workbench.operators.matching import conditions as asked
from workbench.operators.matching.match import MatchRows
from workbench.operators.matching.partials import Rules
from workbench.operators.matching.planning import is_asked
from workbench.operators.matching.programs import NO_PROGRAM, program_of
from workbench.operators.matching.text_codes import TextCodes
from workbench.operators.matching.text_order import TextOrder
from workbench.patterns.automaton import row_automaton
from workbench.patterns.shape import Repetition, Sequence, Variable
from workbench.patterns.terms import Terms, parse_term

SCHEMA = pa.schema(
    {
        "key": pa.int64(),
        "id": pa.int64(),
        "n": pa.int64(),
        "small": pa.int8(),
        "x": pa.float64(),
        "yes": pa.bool_(),
        "t": pa.timestamp("us"),
        "s": pa.string(),
        "word": pa.string(),
    }
)
VARIABLES = ["A", "B", "C"]
LEAST, MOST = -(2**63), 2**63 - 1
COMPILED = (
    "B.n > A.n",
    "B.n >= LAST(B.n, 1) OR LAST(B.n, 1) IS NULL",
    "NOT (B.n < FIRST(B.n) OR B.x <> A.x)",
    "(B.x < LAST(B.x, 1) OR LAST(B.x, 1) IS NULL) AND B.x <= A.x",
    "B.x = LAST(B.x, 1) OR B.x >= FIRST(B.x)",
    "B.n + A.n > 3 OR B.n - A.n = 0",
    "B.n * A.n > 4",
    "-(B.n - A.n) < 5",
    "B.small + A.small > 100 OR B.small * A.small IS NULL",
    "B.x / (A.x - LAST(B.x)) > 1",
    "B.x + A.n * COALESCE(LAST(B.x, 1), 1.0) > 0",
    "B.n BETWEEN A.n AND COALESCE(LAST(B.n, 1), 2) + 3",
    "B.yes = A.yes OR (B.yes AND NOT A.yes)",
    "B.t < A.t + INTERVAL 5 SECOND OR B.t < LAST(B.t, 1) + INTERVAL 2 SECOND",
    "COUNT(B.s) < 3 AND COUNT(*) < 5",
    "SUM(B.small) > A.small OR COUNT(*) > 4",
    "AVG(B.small) < A.n",
    "AVG(B.x) < 1.5 OR MAX(B.x) > A.x",
    "MIN(B.x) < SUM(A.x)",
    "MAX(B.t) > A.t AND MIN(B.n) <= LAST(B.n)",
    "PREV(FIRST(B.n)) < B.n OR PREV(A.n) IS NULL",
    "(A.s = 'x' OR A.s IS NULL) AND B.n > A.n AND COALESCE(LAST(B.n, 1), 0) < 3",
    "B.n > A.n AND TRUE",
    "B.s = A.s",
    "B.s <> LAST(B.s, 1) OR LAST(B.s, 1) IS NULL",
    "UPPER(B.s) = 'X' OR CONCAT(A.s, 'y') = CONCAT(LAST(B.s), 'y')",
    "COALESCE(LAST(B.s, 1), 'x') = A.s AND COUNT(*) < 5",
    "B.word > LAST(B.word, 1) OR (LAST(B.word, 1) IS NULL AND B.word < A.word)",
    "LAST(B.word, 1) IS NULL OR NOT (UPPER(B.word) <= LAST(B.word, 1) AND A.word >= 'w50')",
    "B.word BETWEEN A.s AND COALESCE(LAST(B.word, 1), 'y')",
)


def rows_of(random: Random, count: int, large: bool) -> list[dict[str, Any]]:
    whole = [None, *range(-4, 5), *([LEAST, LEAST + 1, MOST, MOST - 1, 3_037_000_500] if large else ())]
    real = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, *(at / 4 for at in range(-6, 7))]
    return [
        {
            "key": random.randint(0, 1),
            "id": at,
            "n": random.choice(whole),
            "small": random.choice([None, -128, -2, 1, 60, 127]),
            "x": random.choice(real),
            "yes": random.choice([None, True, False]),
            "t": random.choice([None, at * 1_000_000]),
            "s": random.choice([None, "x", "y"]),
            "word": ("x", "é", None, "xy", "Z", "x", "", f"w{100 - at}")[at * 5 % 8],
        }
        for at in range(count)
    ]


def matches(text: str, rows: list[dict[str, Any]], random: Random) -> list[dict[str, Any]]:
    """The rows of all matches of A B+ C, where B has the condition and C the opposite."""
    terms = Terms({name: 1 << at for at, name in enumerate(VARIABLES)}, SCHEMA)
    opposite = f"NOT ({text})".replace("B.", "C.").replace("FIRST(C.", "FIRST(B.").replace("LAST(C.", "LAST(B.")
    conditions = tuple(
        (at, at + 1, terms.condition(parse_term(given), "B")) for at, given in enumerate((text, opposite))
    )
    shape = Sequence((Variable("A"), Repetition(Variable("B"), 1, None), Variable("C")))
    automaton = row_automaton(shape, VARIABLES, {"B": 0, "C": 1})
    measures = (("name", terms.term(parse_term("CLASSIFIER()"))),)
    rules = Rules(False, "next_row", 0, 0, is_asked(conditions), 10_000)
    run = PatternRun(MatchRows(("key",), str(shape), automaton, conditions, measures, rules, "all"), SCHEMA, ["key"], 1)
    for begin in range(0, len(rows), 7):
        some = rows[begin : begin + 7]
        run.feed(pa.RecordBatch.from_pylist(some, SCHEMA), [row["id"] for row in some])
        run.watermark(begin + 3)
        if random.random() < 0.3:
            run.restore(random.randint(1, 2))
    run.watermark()
    return sorted(([row["id"], row["name"], str(row)] for row in run.out.rows.get("", [])), key=str)


@pytest.mark.parametrize("text", COMPILED)
def test_the_kernel_finds_what_expressions_find(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def noted(*given: Any) -> Any:
        made.append(program_of(*given))
        return made[-1]

    random = Random(text)
    rows = rows_of(random, 80, large="SUM" not in text and "AVG" not in text)
    seed = random.random()
    monkeypatch.setattr(asked, "program_of", noted)
    found = matches(text, rows, Random(seed))
    assert found
    assert made
    assert all(len(program.conditions) == 4 * 2 for program in made)
    monkeypatch.setattr(asked, "program_of", lambda *given: NO_PROGRAM)
    assert found == matches(text, rows, Random(seed))


def test_texts_are_forgotten_with_their_rows() -> None:
    texts = TextCodes()
    assert [texts.constant(text) for text in ("x", None, "x")] == [0, 1, 0]
    texts.codes(pa.array([f"{at}" for at in range(5_000)]))
    left = texts.codes(pa.array(["4999", "x", None, "7"]))
    packed = texts.packed(left)
    assert packed.tolist() == [3, 0, 1, 2]
    assert texts.codes(pa.array(["7", "4999", "x", "new"])).tolist() == [2, 3, 0, 4]
    assert texts.ranks().argsort().tolist() == [1, 3, 2, 4, 0]


def test_texts_find_their_places_among_others() -> None:
    random = Random(3)
    words = [f"w{at}" for at in range(200, 500)]
    order = TextOrder(pa.array(words))
    added = [*(f"w{random.randint(0, 999)}x{at}" for at in range(50)), *(f"z{at:02}" for at in range(70)), None, "é"]
    for word in added:
        assert order.add(pa.array([word], pa.string()))
        words.append(word or "")
        assert len(set(order.numbers.tolist())) == len(words)
    assert [words[at] for at in order.numbers.argsort()] == sorted(words)
    assert not order.add(pa.array([f"more{at}" for at in range(50)]))
    texts = [f"{'a' * at}b" for at in range(40)]  # each belongs between the same two
    assert not all(order.add(pa.array([text])) for text in texts)


def test_a_sum_beyond_64_bits_is_an_error() -> None:
    rows = [{"key": 1, "id": at, "n": MOST} for at in range(4)]
    with pytest.raises(RecordError, match=r"a sum in a condition of A B\+ C of key 1 exceeds the range of int64"):
        matches("SUM(B.n) > A.n OR TRUE", rows, Random(1))
