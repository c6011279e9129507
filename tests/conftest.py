"""What several test files share: the flights as a replay log (written by Spark once per run), and job cleaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import workbench as wb


@pytest.fixture(scope="session")
def flights_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The replay log of all flights, prepared by the Spark job that users run."""
    from workbench.datasets import flights_history

    path = tmp_path_factory.mktemp("flights") / "flights.log"
    flights_history(path, channels=2)
    return path


@pytest.fixture(scope="session")
def delays_oracle(flights_log: Path) -> pa.Table:
    """What the main job must give, by DuckDB over the files of the log."""
    return duckdb.sql(
        f"""
        SELECT origin, date_trunc('hour', departed) AS window_start, count(*) AS flights,
               avg(dep_delay) AS mean_delay, max(dep_delay) AS worst
        FROM read_parquet('{flights_log}/**/*.parquet') WHERE dep_delay IS NOT NULL
        GROUP BY ALL ORDER BY ALL
        """
    ).to_arrow_table()


@pytest.fixture(autouse=True)
def _no_job_outlives_its_test() -> Iterator[None]:
    yield
    for job in wb.jobs().values():
        if not job.over:
            job.cancel()
            job.wait("20s")
