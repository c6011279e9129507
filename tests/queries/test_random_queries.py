"""Random queries give the rows that DuckDB computes from the same tables."""

from __future__ import annotations

import pytest
from sql_queries import Queries, of_duckdb, of_stream, tables

SEEDS = range(60)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_query_gives_the_rows_of_duckdb(seed: int) -> None:
    query, rows = Queries(seed).draw(), tables(seed)
    expected = of_duckdb(query, rows)
    for parallelism in (1, 2, 3):
        assert of_stream(query, rows, parallelism) == expected, query.stream


def test_the_queries_find_rows() -> None:
    empty = [seed for seed in SEEDS if not of_duckdb(Queries(seed).draw(), tables(seed))]
    assert len(empty) < len(SEEDS) / 10
