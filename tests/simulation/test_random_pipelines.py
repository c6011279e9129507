"""Random pipelines give the rows that DuckDB gives for the same data, in any order of steps, with and without faults.

A failure names its seed and tells what was drawn; ``pipelines.running.smallest(seed)`` looks for a shorter pipeline
that fails. ``make pipelines`` draws 2,000.
"""

from __future__ import annotations

import os

import pytest
from pipelines.mutants import MUTANTS, Mutant, in_force
from pipelines.running import check

from workbench.compiled import warm_up

SIMULATED = int(os.environ.get("WORKBENCH_PIPELINES", "150"))
FIRST = int(os.environ.get("WORKBENCH_FIRST_PIPELINE", "0"))
SEEDS = sorted({*range(FIRST, FIRST + SIMULATED), 278})
"""Once the last one alone found a column that took the values of another."""
LIVE = 8


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    warm_up()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_simulated_pipeline_gives_the_rows_of_duckdb(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(100_000, 100_000 + LIVE))
def test_a_live_pipeline_gives_the_rows_of_duckdb(seed: int) -> None:
    check(seed, live=True)


@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_fault_to_search_for_fits_the_function_as_it_is_today(mutant: Mutant) -> None:
    with in_force(mutant):
        pass
