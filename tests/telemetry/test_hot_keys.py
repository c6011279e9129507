"""The key that makes a subtask receive the most records is named, with its share in the data."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import workbench as wb
from workbench.telemetry.frames import Frame, TaskFrame

COUNT = 800


def reads(task: TaskFrame) -> bool:
    return task.state == "RUNNING"


def found(origins: list[str], *keys: str, parallelism: int = 4) -> list[str]:
    """What is told, each sentence once, from the second second in which a job reads these until all are read."""
    table = pa.table({"origin": origins, "n": [n % 2 for n in range(len(origins))]})
    stream = wb.Stream.from_table(table, rate=400).uid("read").rebalance()
    job = stream.key_by(*keys).aggregate(c=wb.count()).uid("sum").sink_to(wb.DiscardSink()).run(
        "hot", driver="stepping", parallelism=parallelism, checkpoint_interval="disabled", buffer_size=100
    )  # fmt: skip
    told: list[str] = []

    driver = job.stepper.driver
    while not job.over:
        with driver.unwatched():  # a frame after every tenth step will do
            driver.run_until(lambda: job.over, 10)
        frame: Frame | None = job.recorder.latest()
        if frame is not None and frame.metrics["runningTime"] > 1_000 and all(map(reads, frame.tasks)):  # type: ignore[operator]
            told.extend(frame.findings)
    return list(dict.fromkeys(told))


def test_the_key_and_its_share_are_those_of_the_data() -> None:
    origins = ["ATL" if n % 10 < 9 else f"K{n % 7}" for n in range(COUNT)]
    last = found(origins, "origin")[-1]
    share = re.fullmatch(
        r"sum\[\d\] receives (\d+) % of the records of sum, .* a second: (\d+) % of them have origin = ATL\.", last
    )
    assert share is not None, last
    work, hot = map(int, share.groups())
    assert work * hot / 100 == pytest.approx(90, abs=2)  # of all records


def test_a_key_of_several_columns_is_named_with_all_of_them() -> None:
    told = found(["ATL" if n % 2 == 0 else f"K{n % 97}" for n in range(COUNT)], "origin", "n")
    assert any(
        'of them have origin, n = ["ATL",0]' in sentence or 'of them have origin, n = ["ATL", 0]' in sentence
        for sentence in told
    ), told


def test_nobody_looks_at_what_an_even_job_receives() -> None:
    assert found([f"K{n % 1_000}" for n in range(COUNT)], "origin", parallelism=2) == []
