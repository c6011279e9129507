"""Real ``kill -9`` at random moments: committed rows are there exactly once at every moment (I7).

A few kills run with every test; ``make kills`` runs 300 of them.
"""

from __future__ import annotations

import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pyarrow.parquet as pq
import pytest
from child_program import ChildProgram
from databases import query
from kill_job import KEYS
from postgresql_server import running

KILLS = int(os.environ.get("WORKBENCH_KILLS", "4"))
SEED = int(os.environ.get("WORKBENCH_SEED", "1"))
COUNT = 6_000
KILLS_PER_JOB = 12
LONGEST_S = 1.2
"""A process lives at most so long: some die before their first checkpoint, most after many."""


class Processes:
    """Starts one process after another, each of which goes on with the job in a folder."""

    def __init__(self) -> None:
        self._program = ChildProgram("kill_job.py")

    def run(self, folder: Path, count: int, killed_after_s: float = 0, architecture: str = "snapshots") -> int:
        """Run the job in a process that is killed after so long, or not at all; 0: it has finished."""
        return self._program.ask(f"{folder} {count} {killed_after_s} {architecture}")

    def close(self) -> None:
        self._program.close()


@pytest.fixture
def processes() -> Iterator[Processes]:
    started = Processes()
    yield started
    started.close()


def visible(folder: Path) -> Counter[int]:
    """The rows that anybody can read now."""
    return Counter(n for path in folder.glob("odd/part-*.parquet") for n in pq.read_table(path)["n"].to_pylist())


@pytest.mark.slow
def test_what_is_committed_is_there_once_however_often_the_process_is_killed(
    processes: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = Random(SEED)
    kills = jobs = 0
    while kills < KILLS:
        folder = tmp_path / f"job-{jobs}"
        jobs += 1
        before: Counter[int] = Counter()
        for _ in range(KILLS_PER_JOB):
            if kills == KILLS:
                break
            status = processes.run(folder, COUNT, chance.uniform(0.001, LONGEST_S))
            if status == 0:
                break  # it was faster
            assert status == -signal.SIGKILL
            kills += 1
            now = visible(folder)
            assert not before - now, f"kill {kills}, seed {SEED}: {(before - now).total()} visible rows are gone"
            assert max(now.values(), default=1) == 1, f"kill {kills}, seed {SEED}: rows are there twice"
            before = now
        while not (folder / "counts.parquet").exists():
            assert processes.run(folder, COUNT) == 0
        assert visible(folder) == Counter(range(1, COUNT, 2)), f"job {jobs}, seed {SEED}"
        table = pq.read_table(folder / "counts.parquet")
        rows = Counter(zip(table["k"].to_pylist(), table["c"].to_pylist(), strict=True))
        assert rows == Counter((n % KEYS, n // KEYS + 1) for n in range(COUNT)), f"job {jobs}, seed {SEED}"
    with capsys.disabled():
        if "WORKBENCH_KILLS" in os.environ:
            sys.stdout.write(f"{kills} kills of {jobs} jobs, seed {SEED}: nothing lost, nothing twice\n")


@pytest.mark.slow
def test_random_pipelines_give_the_rows_of_duckdb_after_a_kill(tmp_path: Path) -> None:
    """On Spark, ``tests/support/spark_kill_job.py`` does so."""
    program = ChildProgram("random_kill_job.py")
    for seed in (0, 16, 23, 26, 31):
        assert program.ask(f"{tmp_path / str(seed)} {seed} kill") == -signal.SIGKILL, seed
        assert program.ask(f"{tmp_path / str(seed)} {seed} end") == 0, seed
    program.close()


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_killed_job_continues_from_its_last_transactions(database: str, processes: Processes, tmp_path: Path) -> None:
    """The checkpoints of its sinks are seldom the last that was durable, and nothing is read again from one."""
    url = f"sqlite:///{tmp_path}/store.db"
    with running() if database == "postgresql" else nullcontext() as server:
        url = url if server is None else server.url
        architecture = f"transactions:coalesce=100,store={url}"
        folder, chance = tmp_path / "job", Random(SEED)
        for _ in range(2):
            assert processes.run(folder, COUNT, chance.uniform(0.05, 0.5), architecture) == -signal.SIGKILL
        assert processes.run(folder, COUNT, architecture=architecture) == 0
        assert visible(folder) == Counter(range(1, COUNT, 2))
        table = pq.read_table(folder / "counts.parquet")
        rows = Counter(zip(table["k"].to_pylist(), table["c"].to_pylist(), strict=True))
        assert rows == Counter((n % KEYS, n // KEYS + 1) for n in range(COUNT))
        began = (folder / "continued").read_text().split()  # a busy machine may kill one before it says so
        assert began[-1] == "transactions"
        assert "checkpoint" not in began
        assert "pa55word" not in "".join(path.read_text(errors="replace") for path in folder.rglob("*.json"))
        cells = "SELECT count(*) FROM workbench_store_cells"
        assert (query(url, cells) if server is None else server.query(cells)) == [(0,)]  # it has ended
