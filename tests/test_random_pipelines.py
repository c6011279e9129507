"""Random pipelines give the rows that DuckDB gives for the same data, in any order of steps, with and without crashes.

A failure names its seed and tells what was drawn. For a long run::

    WORKBENCH_PIPELINES=2000 python -m pytest tests/test_random_pipelines.py -k simulated
"""

from __future__ import annotations

import math
import os
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipeline_generator import Expected, PipelineGenerator

from workbench.api.launch import build_master
from workbench.api.pipeline import Pipeline
from workbench.clock import VirtualClock
from workbench.drivers.faults import FaultInjector, FaultPlan
from workbench.drivers.probes import Probe, ProbedStorage, ProbedTables
from workbench.drivers.simulation import SimulationDriver
from workbench.kernels import warm_up
from workbench.observer import JobObserver
from workbench.plan.physical import build_physical_graph
from workbench.runtime.restart_strategies import FixedDelay
from workbench.runtime.settings import Settings
from workbench.runtime.storage import MemoryStorage

SIMULATED = int(os.environ.get("WORKBENCH_PIPELINES", "60"))
FIRST = int(os.environ.get("WORKBENCH_FIRST_PIPELINE", "0"))
LIVE = 8
STEPS_MAX = 200_000
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


def simulated(pipeline: Pipeline, chance: Random, parallelism: int) -> tuple[dict[str, pa.Table], str]:
    """Run it in a random order of steps, sometimes with crashes; its tables, and its settings in words."""
    logical = pipeline.logical_graph()
    settings = Settings(
        parallelism=parallelism,
        buffer_size=chance.choice((1, 3, 16, 100, 1000)),
        buffer_timeout_us=chance.choice((0, 5_000, None)),
        checkpoint_interval_us=chance.choice((None, None, 2_000, 20_000)),
        watermark_interval_us=chance.choice((100, 1_000, 20_000)),
        restart=FixedDelay(10, 0),
    )
    plan = FaultPlan.draw(chance, kills=False) if chance.random() < 0.3 else FaultPlan()
    faults, clock = FaultInjector(plan), VirtualClock(1_000_000)
    driver = SimulationDriver(chance, clock, faults, Probe(), [])
    master = build_master(
        "random",
        logical,
        build_physical_graph(logical, parallelism),
        settings,
        ProbedStorage(MemoryStorage(), driver.probe),
        None,
        1,
        clock=clock,
        stage=driver,
        background=driver,
        observer=JobObserver(),
        tables=ProbedTables(driver.probe),
        data_dir=None,
    )
    driver.run(master)
    master.step()
    steps = 0
    while driver.step():
        steps += 1
        assert steps < STEPS_MAX, "the job does not end"
    assert master.state == "FINISHED", master.failure
    tables = master.services.tables
    return {name: tables.read(name) for name in tables.names()}, f"{settings}, {plan}"


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows as comparable values: times in microseconds, floats to 11 digits, NaN equal to itself."""
    return list(zip(*(map(_plain, _micros(column).to_pylist()) for column in table.columns), strict=True))


def _micros(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()) if pa.types.is_timestamp(kind) else column


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_plain, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(f"{value + 0.0:.11g}")
    return value


def differences(expected: Expected, got: pa.Table) -> str:
    """What a sink has too much or too little; nothing where it is right."""
    wanted = expected.rows
    if got.column_names != wanted.column_names:
        return f"{expected.sink} has the columns {got.column_names} instead of {wanted.column_names}"
    if len(got) != expected.total:
        kept = f"{expected.sink} has {len(got)} rows instead of {expected.total}"
        if expected.keys is not None:
            return kept
    if expected.keys is None:
        had, should = Counter(rows_of(got)), Counter(rows_of(wanted))
    else:
        had, should = (last_rows(table, expected.keys, expected.count) for table in (got, wanted))
    if had == should:
        return ""
    much, little = list((had - should).items())[:4], list((should - had).items())[:4]
    return f"{expected.sink} {got.column_names}\n  has too much {much}\n  and lacks    {little}"


def last_rows(table: pa.Table, keys: tuple[str, ...], count: str) -> Counter[tuple[Any, ...]]:
    """Of each key the row that has counted most."""
    last: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    at = [table.column_names.index(key) for key in keys]
    counted = table.column_names.index(count)
    for row in rows_of(table):
        key = tuple(row[place] for place in at)
        if key not in last or last[key][counted] < row[counted]:
            last[key] = row
    return Counter(last.values())


def check(seed: int, *, live: bool = False) -> None:
    chance = Random(f"pipeline {seed}")
    parallelism = chance.choice((1, 1, 2, 3))
    with tempfile.TemporaryDirectory(prefix="workbench-pipeline-", dir=MEMORY) as folder:
        generator = PipelineGenerator(chance, Path(folder), parallelism)
        pipeline, settings = generator.draw(), "live"
        story = f"pipeline {seed}, parallelism {parallelism}:\n" + "\n".join(generator.story)
        try:
            if live:
                job = pipeline.run(
                    f"random-{seed}",
                    parallelism=parallelism,
                    buffer_timeout=chance.choice(("0ms", "5ms", "disabled")),
                    buffer_size=chance.choice((1, 10, 1000)),
                    checkpoint_interval=chance.choice(("20ms", "disabled")),
                )
                job.wait("30s")
                tables = {
                    one.sink: job.table(one.sink) for one in generator.expected if one.sink not in generator.folders
                }
            else:
                tables, settings = simulated(pipeline, chance, parallelism)
        except Exception as error:
            error.add_note(f"{story}\n{settings}")
            raise
        for name, where in generator.folders.items():
            parts = [pq.read_table(path) for path in sorted(where.glob("part-*.parquet"))]
            schema = next(one.rows.schema for one in generator.expected if one.sink == name)
            tables[name] = pa.concat_tables(parts) if parts else schema.empty_table()
        problems = [text for one in generator.expected if (text := differences(one, tables[one.sink]))]
    assert not problems, "\n".join([*problems, story, settings])


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    warm_up()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SIMULATED))
def test_a_simulated_pipeline_gives_the_rows_of_duckdb(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(100_000, 100_000 + LIVE))
def test_a_live_pipeline_gives_the_rows_of_duckdb(seed: int) -> None:
    check(seed, live=True)
