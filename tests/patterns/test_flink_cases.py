"""Flink's tests of its CEP library: the same rows, patterns and matches, also with a restore after each row."""

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


def ran(case: dict[str, Any], restored_behind: int | None = None, end: bool = True) -> PatternRun:
    """The run of a case; without its end, event time stands at the last row, or where `within` has passed for it."""
    spec = match_stages(
        *(built(case["pattern"]), {"match": "MATCH_NUMBER()"}, ("key",), SCHEMA, "all", 10_000, None),
    )
    run = PatternRun(spec, SCHEMA, ["key"], 2)
    for at, row in enumerate(case["rows"]):
        run.feed(batch(row), [1_000 * row[-1]] * len(KEYS))
        run.watermark(1_000 * row[-1] - 1)  # rows of this time wait
        if at == restored_behind:
            run.restore(3 if at % 2 else 1)
    if end:
        run.watermark()
    else:
        run.watermark(1_000 * (case["rows"][-1][-1] + 8))
    return run


def told(run: PatternRun) -> Counter[tuple[str, ...]]:
    """The matches, each as its key and the labels of its rows in any order."""
    matches: dict[tuple[str, int], list[str]] = {}
    for row in run.out.rows.get("", []):
        matches.setdefault((row["key"], row["match"]), []).append(row["label"])
    return Counter((key, *sorted(labels)) for (key, _), labels in matches.items())


def of_keys(matches: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter((key, *sorted(match.split())) for key in KEYS for match in matches)


@pytest.mark.parametrize("case", CASES, ids=[case["test"] for case in CASES])
def test_matches_are_those_of_flink(case: dict[str, Any]) -> None:
    # A restore behind one row; together, the cases have one at each place.
    for behind in (None, CASES.index(case) % len(case["rows"])):
        run = ran(case, behind)
        if case["matches"] is not None:
            assert told(run) == of_keys(case["matches"])
        if "timed_out" in case:
            late = Counter((row["key"], row["label"]) for row in run.out.rows["timed_out"])
            assert late == Counter((key, label) for key in KEYS for rows in case["timed_out"] for label in rows.split())
        if "left" in case:
            run = ran(case, behind, end=False)
            asked = [subtask.query({"key": key}) for subtask in run.subtasks for key in KEYS]
            assert sum(len(answer["partial_matches"]) for answer in asked if answer is not None) == case["left"]
