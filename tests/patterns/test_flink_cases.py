"""Flink's own tests of its CEP library: the same rows, patterns and matches; also with a restore behind each row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pattern_runs import PatternRun

import workbench as wb
from workbench.operators.matching.planning import match_stages

CASES = json.loads((Path(__file__).parent / "flink_cep_cases.json").read_text(encoding="utf-8"))["cases"]
KEYS = ["red", "green", "blue"]
"""Each has all rows of a case."""
SCHEMA = pa.schema(
    {"key": pa.string(), "label": pa.string(), "name": pa.string(), "price": pa.float64(), "volume": pa.float64()}
)


def built(calls: Sequence[Any]) -> wb.types.Pattern:
    """The pattern of a chain of calls; an argument that is a list is a group."""
    made: Any = wb
    for name, *arguments in calls:
        made = getattr(made, name)(*(built(one) if isinstance(one, list) else one for one in arguments))
    assert isinstance(made, wb.types.Pattern)
    return made


def batch(row: Sequence[Any]) -> pa.RecordBatch:
    label, name, price, volume, _ = row
    columns = [KEYS, *([value] * len(KEYS) for value in (label, name, price, volume))]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def found(case: dict[str, Any], restored_behind: int | None = None) -> Counter[tuple[str, ...]]:
    """The matches, each as its key and the labels of its rows in any order."""
    spec = match_stages(
        *(built(case["pattern"]), {"match": "MATCH_NUMBER()"}, ("key",), SCHEMA, "all", 10_000, None),
    )
    run = PatternRun(spec, SCHEMA, ["key"], 2)
    for at, row in enumerate(case["rows"]):
        run.feed(batch(row), [1_000 * row[-1]] * len(KEYS))
        run.watermark(1_000 * row[-1] - 1)  # rows of this time wait
        if at == restored_behind:
            run.restore(3 if at % 2 else 1)
    run.watermark()
    matches: dict[tuple[str, int], list[str]] = {}
    for row in run.out.rows.get("", []):
        matches.setdefault((row["key"], row["match"]), []).append(row["label"])
    return Counter((key, *sorted(labels)) for (key, _), labels in matches.items())


@pytest.mark.parametrize("case", CASES, ids=[case["test"] for case in CASES])
def test_matches_are_those_of_flink(case: dict[str, Any]) -> None:
    expected = Counter((key, *sorted(match.split())) for key in KEYS for match in case["matches"])
    assert found(case) == expected
    # A restore behind one row; together, the cases have one at each place.
    behind = CASES.index(case) % len(case["rows"])
    assert found(case, behind) == expected
