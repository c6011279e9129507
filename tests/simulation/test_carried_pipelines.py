"""Random pipelines give the rows of DuckDB in the carried tier: in micro-batches, with batches that fail and run again.

Everything but Spark itself is as it is on Spark; ``tests/spark/test_engine_spark.py`` runs some of them there.
``make pipelines`` draws 400.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from random import Random

import pytest
from batched_run import run_in_batches
from pipelines.draft import Draft
from pipelines.generator import draw
from pipelines.running import MEMORY, PARALLELISMS, with_files

from workbench.compiled import warm_up

SEEDS = int(os.environ.get("WORKBENCH_CARRIED", "16"))
FIRST = int(os.environ.get("WORKBENCH_FIRST_CARRIED", "0"))


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    warm_up()


@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_a_carried_pipeline_gives_the_rows_of_duckdb(seed: int) -> None:
    chance = Random(f"carried {seed}")
    with tempfile.TemporaryDirectory(prefix="workbench-carried-", dir=MEMORY) as folder:
        parallelisms = chance.choice(PARALLELISMS)
        draft = Draft(chance, Path(folder), parallelisms)
        pipeline = draw(draft, 8)
        story = f"carried {seed}, parallelism {parallelisms}:\n" + "\n".join(draft.story)
        crashes = Random(f"crashes {seed}") if chance.random() < 0.5 else None
        try:
            tables = run_in_batches(
                pipeline,
                max(parallelisms),
                Path(folder) / "checkpoints",
                batch_rows=chance.choice((1, 10, 60, 10_000)),
                crashes=crashes,
            )
            found = with_files(draft, tables)
        except Exception as error:
            error.add_note(story)
            raise
        problems = [text for one in draft.expected if (text := one.problem(found))]
        assert not problems, "\n".join([*problems, story])
