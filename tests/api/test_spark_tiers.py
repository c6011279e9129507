"""The tier of each operator on Spark is known before anything runs; needs no Java."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pipelines.draft import Draft
from pipelines.generator import OPERATORS, draw

import workbench as wb

SECOND = 1_000_000
NEAR = [1_600_000_000 * SECOND, 1_600_000_001 * SECOND]


def table(times: list[int] = NEAR) -> wb.Stream:
    rows = pa.table({"k": ["a", "b"], "v": [1, 2], "f": [0.5, 1.0], "t": pa.array(times, pa.timestamp("us", "UTC"))})
    return wb.Stream.from_table(rows, event_time="t")


def tier_of(stream: wb.Stream) -> tuple[str, str]:
    """The tier of the operator before the sink, and its reason."""
    told = stream.sink_to(wb.DiscardSink()).explain(engine="spark").operators[-2]
    return told.tier, told.reason


NATIVE = {
    "filter": lambda s: s.filter("v > 1"),
    "with_columns": lambda s: s.with_columns(w=wb.col("v") + 1),
    "select": lambda s: s.select("k"),
    "drop": lambda s: s.drop("f"),
    "rename": lambda s: s.rename({"v": "w"}),
    "union": lambda s: s.union(s),
    "tumbling": lambda s: s.key_by("k").window(wb.tumbling("1s")).aggregate(n=wb.count()),
    "sliding": lambda s: s.key_by("k").window(wb.sliding("2s", "1s")).aggregate(n=wb.mean("v")),
    "join": lambda s: s.join(pa.table({"k": ["a"], "x": [1]}), on="k"),
}

CARRIED = {
    "map": (lambda s: s.map(lambda row: row), "the workbench's own operator"),
    "rolling": (lambda s: s.key_by("k").aggregate(n=wb.count()), "a row for each key and batch"),
    "session": (lambda s: s.key_by("k").window(wb.session("1s")).aggregate(n=wb.count()), "session"),
    "trigger": (
        lambda s: s.key_by("k").window(wb.tumbling("1s"), trigger=wb.triggers.early("1s")).aggregate(n=wb.count()),
        "triggers",
    ),
    "microseconds": (lambda s: s.key_by("k").window(wb.tumbling("7us")).aggregate(n=wb.count()), "milliseconds"),
    "float keys": (lambda s: s.key_by("f").window(wb.tumbling("1s")).aggregate(n=wb.count()), "group the values"),
    "median": (lambda s: s.key_by("k").window(wb.tumbling("1s")).aggregate(n=wb.median("v")), "all values"),
    "two windows": (
        lambda s: (
            s.key_by("k").window(wb.tumbling("1s")).aggregate(n=wb.count())
            .key_by("k").window(wb.tumbling("5s")).aggregate(n=wb.sum("n"))
        ),
        "results of windows",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NATIVE)
def test_what_catalyst_has_is_native(name: str) -> None:
    assert tier_of(NATIVE[name](table())) == ("native", "")


@pytest.mark.parametrize("name", CARRIED)
def test_everything_else_is_carried_with_the_reason(name: str) -> None:
    made, reason = CARRIED[name]
    tier, told = tier_of(made(table()))
    assert tier == "carried"
    assert reason in told


def test_a_native_operator_beside_a_carried_one_is_carried_and_says_why() -> None:
    plan: Any = table().filter("v > 1").map(lambda row: row).sink_to(wb.DiscardSink()).explain(engine="spark")
    assert plan.tier == "carried"
    assert "runs with 'map', which is carried" in plan.operators[1].reason


def test_times_before_1970_are_late_for_spark_and_therefore_carried() -> None:
    early = table([-5 * SECOND, 5 * SECOND]).filter("v > 1").sink_to(wb.DiscardSink()).explain(engine="spark")
    assert early.tier == "carried"
    assert "before 1970" in early.operators[0].reason


def test_a_lateness_tells_what_differs() -> None:
    windows = table().key_by("k").window(wb.tumbling("1s"), allowed_lateness="3s").aggregate(n=wb.count())
    tier, reason = tier_of(windows)
    assert tier == "native"
    assert "3s after its end" in reason


def test_no_operator_of_the_random_pipelines_is_refused(tmp_path: Path) -> None:
    """Four in five would do; what Spark refuses is in docs/spark.md: sources that wait for each other."""
    tiers: dict[str, set[str]] = {}
    for number, operator in enumerate(OPERATORS):
        folder = tmp_path / str(number)
        folder.mkdir()
        for seed in range(10):  # until it fits the stream
            draft = Draft(Random(f"tier {seed}"), folder, (1, 2))
            plan = draw(draft, 1, {operator: 1}).explain(engine="spark")
            if len(plan.operators) > 2:
                break
        tiers[operator.__name__] = {each.tier for each in plan.operators}
    assert len(tiers) == len(OPERATORS)
    runs = sum(often for operator, often in OPERATORS.items() if "refused" not in tiers[operator.__name__])
    assert runs >= 0.8 * sum(OPERATORS.values())
    assert [name for name, of_plan in tiers.items() if "refused" in of_plan] == []


def test_sources_that_wait_for_each_other_are_refused_before_anything_runs() -> None:
    rows = pa.table({"t": pa.array(NEAR, pa.timestamp("us", "UTC"))})
    aligned = wb.Stream.from_table(rows, event_time="t", align="both", max_drift="1s").sink_to(wb.DiscardSink())
    assert aligned.explain(engine="spark").tier == "refused"
    with pytest.raises(wb.errors.PlanError, match="sources on Spark do not wait for each other: leave out align"):
        aligned.run("aligned", engine="spark")


def test_an_unknown_engine_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(wb.errors.SettingError, match="unknown engine"):
        table().sink_to(wb.DiscardSink()).explain(engine="flink")  # type: ignore[call-overload]
