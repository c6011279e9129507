"""Checkpointing modes on threads that keep taking the interpreter from each other, with one buffer per channel."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.api.launching import refusals
from workbench.runtime.settings.settings import Settings

ROWS = 3_000
KEYS = 7


@pytest.fixture(autouse=True)
def contended(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = sys.getswitchinterval()
    monkeypatch.setattr(refusals, "Settings", partial(Settings, buffers_per_channel=1, floating_buffers=0))
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def start(**settings: Any) -> Job:
    numbers = pa.table({"n": list(range(ROWS)), "key": [n % KEYS for n in range(ROWS)]})
    stream = wb.Stream.from_table(numbers).rebalance().filter("n >= 0")
    sums = stream.key_by("key").aggregate(count=wb.count(), total=wb.sum("n"))
    pipeline = sums.sink_to(wb.TableSink("sums", upsert_key=["key"]))
    defaults: dict[str, Any] = {"parallelism": 2, "buffer_size": 16, "checkpoint_interval": "2ms"}
    job = pipeline.run("contended", **{**defaults, **settings})
    assert job._run.master.settings.buffers_per_channel == 1
    return job


def sums(job: Job) -> dict[int, tuple[int, int]]:
    return {row["key"]: (row["count"], row["total"]) for row in job.table("sums").to_pylist()}


EXPECTED = {key: (len(range(key, ROWS, KEYS)), sum(range(key, ROWS, KEYS))) for key in range(KEYS)}

MODES: list[dict[str, Any]] = [
    {"checkpoint_mode": "unaligned"},
    {"checkpoint_mode": "exactly-once", "aligned_checkpoint_timeout": "1ms"},
    {"checkpoint_mode": "exactly-once", "max_concurrent_checkpoints": 3},
    {"checkpoint_mode": "stop-the-world"},
]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: "-".join(map(str, mode.values())))
@pytest.mark.parametrize("task", ["filter[0]", "aggregate[1]"])
def test_nothing_is_lost_or_counted_twice(mode: dict[str, Any], task: str) -> None:
    job = start(**mode)
    before = max((each.id for each in job.checkpoints()), default=0)
    job.fail(task=task)
    assert job.wait("60s") == "FINISHED"
    assert sums(job) == EXPECTED
    assert job.checkpoints()[-1].id > before
    assert job.audit() == []


def test_modes_are_tuned_while_the_threads_run() -> None:
    job = start()
    for mode in ("unaligned", "stop-the-world", "exactly-once") * 3:
        if job.over:
            break
        job.tune(checkpoint_mode=mode)
        job.checkpoint()
    assert job.wait("60s") == "FINISHED"
    assert sums(job) == EXPECTED
