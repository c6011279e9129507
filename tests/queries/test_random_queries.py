"""Random queries give the rows that DuckDB computes from the same tables.

Each runs at one parallelism. For a long run, with each of three::

    WORKBENCH_QUERIES=2000 python -m pytest tests/queries/test_random_queries.py
"""

from __future__ import annotations

import os

import pytest
from sql_queries import Queries, of_duckdb, of_stream, tables

LONG = "WORKBENCH_QUERIES" in os.environ
SEEDS = range(int(os.environ.get("WORKBENCH_QUERIES", "80")))
FAST = 40
"""The seeds below are among the fast tests."""


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[] if seed < FAST else pytest.mark.slow) for seed in SEEDS])
def test_a_random_query_gives_the_rows_of_duckdb(seed: int) -> None:
    query, rows = Queries(seed).draw(), tables(seed)
    expected = of_duckdb(query, rows)
    for parallelism in (1, 2, 3) if LONG else (1 + seed % 3,):
        assert of_stream(query, rows, parallelism) == expected, query.stream


def test_the_queries_find_rows() -> None:
    empty = [seed for seed in SEEDS if not of_duckdb(Queries(seed).draw(), tables(seed))]
    assert len(empty) < len(SEEDS) / 10
