"""Rolling reduce: hand-worked streams, a naive model, and errors (F1-5)."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate, permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outputs import Collected

import workbench as wb
from workbench.elements import Records
from workbench.errors import CheckpointError, PlanError, RecordError
from workbench.operators.aggregates.reduce import Reduce, ReduceLogic
from workbench.operators.contract.base import OperatorContext
from workbench.state.key_groups import KeyPartitioner

SCHEMA = pa.schema({"k": pa.string(), "n": pa.int64(), "seen": pa.list_(pa.int64())})


def batch(rows: list[tuple[str | None, int]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"k": k, "n": n, "seen": [n]} for k, n in rows], schema=SCHEMA)


def join(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    a["n"] += b["n"]
    a["seen"] += b["seen"]  # in place: what was emitted before must not change
    return a


def opened(spec: Reduce, subtask: int = 0, parallelism: int = 1) -> ReduceLogic:
    operator = spec.create([SCHEMA])
    assert isinstance(operator, ReduceLogic)
    operator.open(OperatorContext(subtask=subtask, parallelism=parallelism))
    return operator


def test_each_record_is_folded_into_its_key() -> None:
    """F1-5: a rolling sum, a row out for every record in."""
    operator, out = opened(Reduce(("k",), join)), Collected()
    operator.process(Records(batch([("a", 1), ("b", 10), ("a", 2)]), np.array([5, 6, 7])), 0, out)
    operator.process(Records(batch([("a", 3), ("b", 20)]), np.array([8, 9])), 0, out)
    rows = [(row["k"], row["n"], row["seen"]) for part in out.records for row in part.batch.to_pylist()]
    assert rows == [("a", 1, [1]), ("b", 10, [10]), ("a", 3, [1, 2]), ("a", 6, [1, 2, 3]), ("b", 30, [10, 20])]
    assert [part.timestamps.tolist() for part in out.records if part.timestamps is not None] == [[5, 6, 7], [8, 9]]
    assert operator.query({"k": "b"}) == {"k": "b", "n": 30, "seen": [10, 20]}
    assert operator.query({"k": "c"}) is None
    assert operator.query_keys(5) == (2, [{"k": "a"}, {"k": "b"}])


@settings(max_examples=60)
@given(
    st.lists(st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(-9, 9)), max_size=8), max_size=6),
    st.lists(st.integers(1, 3), min_size=6, max_size=6),
)
def test_rescaled_between_batches_the_result_is_that_of_functools(
    batches: list[list[tuple[str | None, int]]], widths: list[int]
) -> None:
    spec = Reduce(("k",), join)
    operators = [opened(spec)]
    seen: list[tuple[str | None, int]] = []
    for rows, width in zip(batches, widths, strict=False):
        got = []
        for operator, part in zip(
            operators, KeyPartitioner(["k"], SCHEMA, len(operators)).split(Records(batch(rows))), strict=True
        ):
            out = Collected()
            if part is not None:
                operator.process(part, 0, out)
                got += out.records[0].batch.to_pylist()
        wanted = []
        for row in rows:
            seen.append(row)
            mine = [{"k": k, "n": n, "seen": [n]} for k, n in seen if k == row[0]]
            wanted.append(reduce(join, mine))
        assert sorted(map(repr, got)) == sorted(map(repr, wanted))
        snapshots = [operator.snapshot(1) for operator in operators]
        operators = [opened(spec, at, width) for at in range(width)]
        for operator in operators:
            operator.restore(snapshots)


def test_errors_name_what_is_held_and_the_record() -> None:
    def lose(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        return {"k": a["k"]}

    lose.__qualname__ = "lose"
    with pytest.raises(RecordError) as caught:
        opened(Reduce(("k",), lose)).process(Records(batch([("a", 1), ("a", 2)])), 0, Collected())
    assert str(caught.value) == (
        "reduce function 'lose' returned a dict that lacks n, seen, expected a dict with the columns k, n, seen, "
        "with {'k': 'a', 'n': 1, 'seen': [1]} held, on record {'k': 'a', 'n': 2, 'seen': [2]}"
    )


def test_state_of_other_columns_is_refused() -> None:
    operator = opened(Reduce(("k",), join))
    operator.process(Records(batch([("a", 1)])), 0, Collected())
    snapshot = operator.snapshot(1)
    other = Reduce(("k",), join).create([SCHEMA.remove(2)])
    other.open(OperatorContext())
    with pytest.raises(CheckpointError, match='has the columns "k", "n", "seen", and its input has "k", "n"'):
        other.restore([snapshot])
    by_number = Reduce(("n",), join).create([SCHEMA])
    by_number.open(OperatorContext())
    with pytest.raises(CheckpointError, match='is keyed by "k", but its keys are now "n"'):
        by_number.restore([snapshot])


def test_a_key_column_must_exist() -> None:
    with pytest.raises(PlanError, match="unknown key column 'z'"):
        Reduce(("z",), join).output_schema([SCHEMA])


def test_a_job() -> None:
    table = pa.table({"user": ["a", "b", "a", "a"], "score": [3, 5, 9, 4]})
    best = wb.Stream.from_table(table).key_by("user").reduce(lambda a, b: a if a["score"] >= b["score"] else b)
    job = best.sink_to(wb.TableSink("best")).run("best", parallelism=2)
    job.wait("120s")
    rows = job.table("best").to_pylist()
    # Two subtasks share the table, so in which order a's scores meet is open: the best ones in any such order.
    possible = [list(accumulate(scores, max)) for scores in permutations([3, 9, 4])]
    assert [row["score"] for row in rows if row["user"] == "a"] in possible
    assert [row["score"] for row in rows if row["user"] == "b"] == [5]
