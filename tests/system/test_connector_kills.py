"""Connectors of real servers under ``kill -9`` of the job's process and restarts of the server, at random moments.

A few run with the slow tests; ``make connector-kills`` runs 200 kills and 50 restarts for each server.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from chaos.arena import MAKE
from chaos.outputs import COLUMNS, expected_of
from chaos.systems import System
from forking import Processes
from waiting import until

KILLS = int(os.environ.get("WORKBENCH_KILLS", "3"))
RESTARTS = int(os.environ.get("WORKBENCH_RESTARTS", "1"))
SEED = int(os.environ.get("WORKBENCH_SEED", "1"))
KILLS_PER_JOB = 20
LIFE_S_MIN, LIFE_S_MAX = 0.2, 1.0
DOWN_S_MAX = float(os.environ.get("WORKBENCH_DOWN_S", "0.4"))
START_S_MAX = 5.0
"""A job that starts waits so long for its server at least; if it is away for longer, the job has to run already."""
SINKS = {
    "redis": ("redis", "redis-hash"),
    "postgresql": ("postgresql", "postgresql-upsert"),
    "kafka": ("kafka",),
    "nats": ("nats",),
    "mqtt": ("parquet",),
}
"""By server, which is the source, too: one that rows are added to, exactly once, and one with the last of each key."""
ROWS_AT_ONCE = 7
STEP_S = 0.02


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    started = Processes("chaos_job.py")
    yield started
    started.close()


class Auditor:
    """Compares what the output of one job has with what its input was given, and with what was seen before."""

    def __init__(self, name: str, source: System, target: System, number: int) -> None:
        self._name, self._source, self._target, self._number = name, source, target, number
        self._seen: Counter[int] = Counter()
        self.fed = 0
        source.create_input(name, number)
        for sink in SINKS[name]:
            target.create_output(sink, number, COLUMNS["rows"])

    def feed(self) -> None:
        self._source.feed(self._name, self._number, range(self.fed, self.fed + ROWS_AT_ONCE))
        self.fed += ROWS_AT_ONCE

    def _found(self, sink: str, shape: str) -> list[dict[str, object]]:
        rows = self._target.found(sink, self._number, COLUMNS[shape])
        assert not [each for each in rows if not isinstance(each, dict)]
        return [each for each in rows if isinstance(each, dict)]

    def _written(self) -> Counter[int]:
        """The IDs of the rows in the output."""
        return Counter(int(str(each["id"])) for each in self._found(SINKS[self._name][0], "rows"))

    def feed_until_seen(self) -> None:
        """Until the last row that is fed now is in the output; a server that keeps nothing is fed until then."""
        begin = self.fed

        def seen() -> bool:
            if self.fed == begin or not self._source.keeps:
                self.feed()
            return any(each >= begin for each in self._written())

        until(seen)

    def audit(self, moment: str) -> None:
        """Nothing is duplicated, nothing was never fed, and nothing that was seen is gone."""
        now = self._written()
        assert max(now.values(), default=1) == 1, f"{moment}: {[n for n in now if now[n] > 1][:5]} are there twice"
        assert not set(now) - set(range(self.fed)), f"{moment}: {sorted(set(now) - set(range(self.fed)))[:5]}"
        assert not self._seen - now, f"{moment}: {sorted(self._seen - now)[:5]} are gone"
        self._seen = now

    def audit_kept(self, moment: str) -> None:
        """While a job reads a server that keeps nothing, everything that comes is there once; what came before may be
        lost."""
        self.feed_until_seen()
        begin = self.fed
        for _ in range(10):
            self.feed()
        until(lambda: self.fed - 1 in self._written())
        self.audit(moment)
        lost = set(range(begin, self.fed)) - set(self._seen)
        assert not lost, f"{moment}: {sorted(lost)[:5]} are lost"

    def audit_end(self, moment: str) -> None:
        """Everything is there once."""
        self.audit(moment)
        assert sorted(self._seen) == list(range(self.fed)), f"{moment}: {self.fed - len(self._seen)} rows are lost"
        for sink in SINKS[self._name][1:]:
            found = sorted(self._found(sink, "counts"), key=str)
            assert found == sorted(expected_of(self._name, "counts", self.fed, table=True), key=str), moment


def live(system: System, auditor: Auditor, chance: Random, *, restart: bool) -> None:
    """Feed the job for a while; at some moment the server goes down and comes back, if it restarts."""
    if restart and DOWN_S_MAX > START_S_MAX:
        auditor.feed_until_seen()
    end_s = time.monotonic() + chance.uniform(LIFE_S_MIN, LIFE_S_MAX)
    down_s = time.monotonic() + chance.uniform(0, LIFE_S_MIN) if restart else end_s + 1
    while (now_s := time.monotonic()) < end_s or restart:
        if restart and now_s >= down_s:
            system.down()
            time.sleep(chance.uniform(0, DOWN_S_MAX))
            system.up()
            restart = False
            end_s = time.monotonic() + chance.uniform(0, LIFE_S_MAX)
        auditor.feed()
        time.sleep(STEP_S)


@pytest.mark.parametrize("name", SINKS)
def test_killed_processes_and_restarted_servers_lose_and_double_nothing(
    name: str, processes: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = Random(f"{name} {SEED}")
    restarting = set(chance.sample(range(KILLS), min(RESTARTS, KILLS)))
    jobs = rows = 0
    with MAKE[name]() as system, MAKE[""]() as files:
        target = files if name == "mqtt" else system
        for begin in range(0, KILLS, KILLS_PER_JOB):
            number, jobs = jobs, jobs + 1
            auditor = Auditor(name, system, target, number)
            folder = tmp_path / str(number)
            folder.mkdir()
            job = {
                "source": (name, system.place),
                "sinks": [(sink, target.place) for sink in SINKS[name]],
                "folder": str(folder),
                "number": number,
                "shape": "rows",
                "rate": None,
                "restore": None,
                "mode": "exactly-once",
                "interval": "30ms",
            }
            for kill in range(begin, min(begin + KILLS_PER_JOB, KILLS)):
                moment = f"seed {SEED}, kill {kill}"
                processes.start(**job, parallelism=chance.choice((1, 2, 3)), bounded=False)
                live(system, auditor, chance, restart=kill in restarting)
                assert processes.kill() == -signal.SIGKILL, f"{moment}: the job had ended by itself"
                auditor.audit(moment)
            processes.start(**job, parallelism=2, bounded=system.keeps)
            moment = f"seed {SEED}, the end of job {number}"
            if system.keeps:
                assert processes.wait() == 0
                auditor.audit_end(moment)
            else:
                auditor.audit_kept(moment)
                processes.kill()
            rows += auditor.fed
    with capsys.disabled():
        if "WORKBENCH_RESTARTS" in os.environ:
            sys.stdout.write(
                f"{name}: {KILLS} kills, {len(restarting)} restarts, {jobs} jobs, {rows:,} rows, seed {SEED}: "
                f"nothing {'lost' if system.keeps else 'lost while it was read'}, nothing twice\n"
            )
