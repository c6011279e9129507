"""Pipelines on Spark Structured Streaming give the rows that they give in the kernel."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pipelines.draft import Draft
from pipelines.expected import counted
from pipelines.generator import draw
from pipelines.running import with_files

import workbench as wb
from workbench.api.running.pipeline import Pipeline
from workbench.connectors.replay.log import write_log
from workbench.spark.session import session as spark_session

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]

SECOND = 1_000_000
FIRST_US = 1_600_000_000 * SECOND


@pytest.fixture(scope="module")
def spark() -> Any:
    return spark_session()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history of two channels, the second of which would be late for a watermark over everything read so far."""
    chance = Random(7)
    n = 3_000
    arrived = [FIRST_US + at * SECOND for at in range(n)]
    table = pa.table(
        {
            "k": [chance.choice("abc") for _ in range(n)],
            "v": pa.array([chance.choice((None, *range(50))) for _ in range(n)], pa.int64()),
            "t": pa.array([at - chance.randint(0, 60) * SECOND for at in arrived], pa.timestamp("us", "UTC")),
            "arrived": pa.array(arrived, pa.timestamp("us", "UTC")),
        }
    )
    path = tmp_path_factory.mktemp("engine") / "events.log"
    write_log(table, path, event_time="t", arrival_time="arrived", channels=2, row_group_rows=500)
    return path


def events(log: Path) -> wb.Stream:
    return wb.Stream.replay(log, out_of_orderness="60s")


class AlternateSums(wb.functions.ProcessFunction):
    """Every second record of a key gives the sum so far, and a timer gives it again."""

    total = wb.state.ValueState(pa.int64())
    count = wb.state.ValueState(pa.int64())

    def process(self, record: Any, state: Any, ctx: Any) -> Any:
        state.total = (state.total or 0) + (record["v"] or 0)
        state.count = (state.count or 0) + 1
        ctx.register_event_timer(ctx.timestamp // (600 * SECOND) * 600 * SECOND + 600 * SECOND)
        return None

    def on_timer(self, time: int, state: Any, ctx: Any) -> Any:
        return {"k": ctx.key, "at": time}


AIRPORTS = pa.table({"k": ["a", "b"], "city": ["Aachen", "Bonn"]})

PIPELINES: dict[str, tuple[str, Callable[[Path], Pipeline]]] = {
    "tumbling": (
        "native",
        lambda log: (
            events(log)
            .filter("v IS NOT NULL")
            .with_columns(double=wb.col("v") * 2)
            .key_by("k")
            .window(wb.tumbling("1min"))
            .aggregate(n=wb.count(), s=wb.sum("double"), m=wb.mean("v"))
            .sink_to(wb.TableSink("out"))
        ),
    ),
    "sliding": (
        "native",
        lambda log: (
            events(log)
            .join(AIRPORTS, on="k", how="left")
            .key_by("city")
            .window(wb.sliding("2min", "1min"))
            .aggregate(most=wb.max("v"))
            .sink_to(wb.TableSink("out"))
        ),
    ),
    "several sinks": (
        "native",
        lambda log: (
            events(log).union(events(log).filter("v > 40")).sink_to(wb.TableSink("all"))
            + events(log).join(AIRPORTS, on="k").select("city", "v").sink_to(wb.TableSink("out"))
        ),
    ),
    "carried": (
        "carried",
        lambda log: (
            events(log).key_by("k").process(AlternateSums(), {"k": pa.string(), "at": pa.int64()})
            .sink_to(wb.TableSink("timers"))
            + events(log).key_by("k").window(wb.session("3s")).aggregate(n=wb.count()).sink_to(wb.TableSink("sessions"))
            + events(log).key_by("k").window(wb.windows.count_tumbling(7)).aggregate(n=wb.count())
            .sink_to(wb.TableSink("sevens"))
            + events(log).key_by("k").aggregate(n=wb.count(), s=wb.sum("v")).sink_to(wb.TableSink("rolling"))
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_gives_the_same_rows_on_both_engines(name: str, spark: Any, log: Path) -> None:
    tier, made = PIPELINES[name]
    assert made(log).explain(engine="spark").tier == tier
    here = made(log).run(f"kernel {name}".replace(" ", "-"), parallelism=2)
    there = made(log).run(f"spark {name}".replace(" ", "-"), engine="spark", spark=spark)
    assert here.wait("60s") == "FINISHED"
    assert there.wait("240s") == "FINISHED"
    tables = [node.spec.name for node in made(log).logical_graph().nodes if node.role == "sink"]
    for table in tables:
        mine, theirs = here.table(table), there.table(table)
        assert mine.schema.equals(theirs.schema)
        if table == "sevens":  # which records of a key meet in a count window depends on the order of the channels
            assert len(mine) == len(theirs)
        elif table == "rolling":
            assert counted(mine.select(["k", "n"])) == counted(theirs.select(["k", "n"]))
        else:
            assert counted(mine) == counted(theirs)
    assert there.checkpoints()[-1].phases_ms["addBatch"] > 0


@pytest.mark.parametrize("seed", range(3))
def test_a_random_pipeline_gives_the_rows_of_duckdb_on_spark(seed: int, spark: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="workbench-spark-") as folder:
        draft = Draft(Random(f"spark {seed}"), Path(folder), (1, 2))
        pipeline = draw(draft, 8)
        story = "\n".join(draft.story)
        job = pipeline.run(f"random-{seed}", engine="spark", spark=spark, parallelism=2)
        assert job.wait("240s") == "FINISHED", story
        found = with_files(draft, {table: job.table(table) for table in draft.tables})
        problems = [text for one in draft.expected if (text := one.problem(found))]
        assert not problems, "\n".join([*problems, story])
