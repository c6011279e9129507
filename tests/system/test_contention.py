"""Live threads with one buffer per channel that switch all the time, live tuning, and the smallest pools.

A sample runs each time; WORKBENCH_CONTENTION=2000 makes so many runs, and as many changes in one running job.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from contending import contend
from left_behind import Resources

import workbench as wb
from workbench.drivers.faults.faults import FaultPlan
from workbench.errors import SettingError
from workbench.lab import Scenario, run_scenario
from workbench.lab.pipelines.comparing import equal
from workbench.lab.pipelines.topologies import TOPOLOGIES, Trial
from workbench.runtime.settings.settings import Settings

RUNS = int(os.environ.get("WORKBENCH_CONTENTION", "12"))
CHANGES = max(RUNS, 100)
GRAPHS = max(RUNS // 10, 12)


def test_threads_that_get_in_each_others_way() -> None:
    broken = [result for seed in range(RUNS) if (result := contend(seed)).problems]
    assert broken == []


def test_a_job_is_tuned_all_the_time() -> None:
    rows = 5 * CHANGES
    table = pa.table({"n": range(rows), "t": range(rows), "key": [n % 7 for n in range(rows)]})

    def draw(chance: Random, folder: Path) -> Trial:
        stream = wb.Stream.from_table(table, event_time="t", rate=500)
        counts = stream.key_by("key").window(wb.tumbling("1ms")).aggregate(n=wb.count())
        expected: Counter[tuple[int, int]] = Counter((n % 7, n - n % 1_000) for n in range(rows))
        whole = Counter((key, start, start + 1_000, n) for (key, start), n in expected.items())
        return Trial(counts.sink_to(wb.TableSink("out")), equal("out", whole))

    result = contend(5, draw=draw, tunings=CHANGES)
    assert result.problems == ()
    assert result.tuned == CHANGES


@pytest.mark.parametrize("more", range(9))
def test_any_pool_from_the_smallest_on_makes_progress(more: int) -> None:
    for seed in range(more, GRAPHS, 9) if RUNS < 200 else range(GRAPHS):
        calm = Scenario(seed, TOPOLOGIES, faults=FaultPlan(), actions=())
        settings = Settings(buffer_size=1, buffer_timeout_us=0, buffers_per_channel=1, floating_buffers=more)
        result = run_scenario(replace(calm, settings=settings))
        assert result.ok, result


@pytest.mark.parametrize(("name", "value"), [("buffers_per_channel", 0), ("floating_buffers", -1)])
def test_a_smaller_pool_is_refused(name: str, value: int) -> None:
    with pytest.raises(SettingError, match=f"{name} is {value}"):
        replace(Settings(), **{name: value}).check()


def test_what_is_left_behind_is_named() -> None:
    before = Resources.now()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="forgotten")
    thread.start()
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        port.listen()
        left = before.left_behind(seconds=0)
    release.set()
    thread.join()
    assert left[0] == "I16: the thread 'forgotten' still runs"
    assert left[1].startswith("I16: the file socket:[")
    assert before.left_behind() == []
