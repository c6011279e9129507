"""Random row patterns over random rows, compared with a backtracking search, with watermarks and restores anywhere."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pattern_runs import PatternRun
from pattern_search import Bound, Holds, searched

from workbench.operators.matching.match import MatchRows
from workbench.operators.matching.partials import Rules, Skip
from workbench.operators.matching.planning import is_asked
from workbench.patterns.automaton import row_automaton
from workbench.patterns.shape import Alternatives, Repetition, Sequence, Shape, Variable
from workbench.patterns.terms import Terms, parse_term

SCHEMA = pa.schema({"key": pa.int64(), "id": pa.int64(), "n": pa.int64()})
VARIABLES = ["A", "B", "C"]


def _local(name: str, at: int, bound: Bound, values: list[int]) -> bool:
    before = values[at - 1] if at else None
    return {"A": values[at] < 4, "B": values[at] % 2 == 0, "C": before is not None and values[at] > before}[name]


def _asked(name: str, at: int, bound: Bound, values: list[int]) -> bool:
    own = [values[row] for variable, row in bound if variable == name]
    if name == "B":
        return not own or values[at] > own[-1]
    if name == "C":
        return sum(own) + values[at] < 9
    return values[at] < 5


CONDITIONS: dict[str, tuple[dict[str, str], Holds]] = {
    "local": ({"A": "n < 4", "B": "n % 2 = 0", "C": "n > PREV(n)"}, _local),
    "asked": ({"A": "n < 5", "B": "LAST(B.n, 1) IS NULL OR B.n > LAST(B.n, 1)", "C": "SUM(C.n) < 9"}, _asked),
}


def drawn(random: Random, depth: int = 0) -> Shape:
    """A pattern whose repeated parts take at least one row."""
    kind = (
        random.choice(["variable", "sequence", "sequence", "alternatives", "repetition"]) if depth < 3 else "variable"
    )
    if kind == "sequence":
        return Sequence(tuple(drawn(random, depth + 1) for _ in range(random.randint(2, 3))))
    if kind == "alternatives":
        return Alternatives(tuple(drawn(random, depth + 1) for _ in range(2)))
    if kind == "repetition":
        part = drawn(random, 3) if random.random() < 0.7 else Sequence((drawn(random, 3), drawn(random, 3)))
        least = random.randint(0, 2)
        most = random.choice([None, least + 1, least + 2])
        return Repetition(part, least, most, random.random() < 0.7)
    return Variable(random.choice(VARIABLES))


@pytest.mark.parametrize("kind", CONDITIONS)
@pytest.mark.parametrize("seed", range(3))
def test_matches_are_those_of_a_backtracking_search(kind: str, seed: int) -> None:
    random = Random(seed)
    texts, holds = CONDITIONS[kind]
    terms = Terms({name: 1 << at for at, name in enumerate(VARIABLES)}, SCHEMA)
    conditions = tuple((at, at, terms.condition(parse_term(texts[name]), name)) for at, name in enumerate(VARIABLES))
    measures = tuple(
        (name, terms.term(parse_term(text)))
        for name, text in {"match": "MATCH_NUMBER()", "name": "CLASSIFIER()"}.items()
    )
    for _ in range(40):
        shape = drawn(random)
        skip: Skip = random.choice(["past_last", "next_row"])
        within = random.choice([0, 0, 3, 6])
        rules = Rules(False, skip, 0, within, is_asked(conditions), 10_000)
        automaton = row_automaton(shape, VARIABLES, {name: at for at, name in enumerate(VARIABLES)})
        spec = MatchRows(
            ("key",), str(shape), automaton, conditions, measures, rules, "all", within > 0, shows_empty=True
        )
        rows = {key: [random.randint(0, 7) for _ in range(random.randint(1, 14))] for key in range(3)}
        run = PatternRun(spec, SCHEMA, ["key"], random.randint(1, 3))
        for at in range(14):
            some = [(key, at, values[at]) for key, values in rows.items() if at < len(values)]
            if some:
                columns = [pa.array(column, pa.int64()) for column in zip(*some, strict=True)]
                run.feed(pa.RecordBatch.from_arrays(columns, schema=SCHEMA), [at] * len(some))
            if random.random() < 0.6:
                run.watermark(at)
            if random.random() < 0.3:
                run.restore(random.randint(1, 3))
        run.watermark()
        told: dict[tuple[int, int], list[tuple[str | None, int]]] = {}
        for row in run.out.rows.get("", []):
            told.setdefault((row["key"], row["match"]), []).append((row["name"], row["id"]))
        for key, values in rows.items():
            expected = searched(shape, values, holds, skip, within)
            numbered = sorted((number, match) for (of, number), match in told.items() if of == key)
            found = [tuple(pair for pair in match if pair[0] is not None) for _, match in numbered]
            assert found == expected, (str(shape), values, skip, within)
