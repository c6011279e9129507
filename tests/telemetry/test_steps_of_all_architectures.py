"""The steps of every architecture can be described in every pipeline, whatever fails."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from unwatched import wait

import workbench as wb
from workbench.runtime.barriers.architectures import ARCHITECTURES

GIVEN = {
    "acks": "acks:granularity=record,message_timeout=200ms,ackers=2,max_spout_pending=3",
    "micro-batches": "micro-batches:batch_interval=100ms,batch_size=7,max_pending=2",
    "transactions": "transactions:coalesce=3",
    "changelog": "changelog:changelog_interval=50ms,offset_interval=150ms",
    "at-most-once": "at-most-once:flush_interval=50ms",
    "stop-the-world": "stop-the-world:interval=50ms",
}
FAULTS = ("aggregate[0]", "aggregate[1]", "table[0]", "clicks[0]")


def pipeline() -> wb.Pipeline:
    """Two sources with event time, a union, a filter, windows by key, and two sinks."""
    rows = {"k": list("abcab") * 6, "t": pa.array([n * 40_000 for n in range(30)], pa.timestamp("us"))}
    first = wb.Stream.from_table(pa.table(rows), event_time="t", rate=200)
    second = wb.Stream.from_table(pa.table(rows), event_time="t", rate=200).uid("clicks")
    united = first.union(second).filter("k <> 'c'")
    counts = united.key_by("k").window(wb.tumbling("200ms")).aggregate(n=wb.count())
    return counts.sink_to(wb.TableSink("counts"))


def test_all_are_given() -> None:
    assert GIVEN.keys() == ARCHITECTURES.keys()


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", GIVEN)
def test_it_is_told_whatever_fails(name: str, seed: int) -> None:
    chance = random.Random(f"{name} {seed}")
    job = pipeline().run(
        f"told-{seed}", driver="stepping", fault_tolerance=GIVEN[name], parallelism=2,
        buffer_size=chance.choice([1, 4]), buffer_timeout="20ms",
        restart="fixed-delay:attempts=9,delay=10ms", checkpoint_interval="100ms",
    )  # fmt: skip
    told = set()
    for _ in range(6):
        for step in job.stepper.step(chance.randrange(10, 60)):
            told.add(step.words)
            assert step.words.endswith(".")
        view = job.stepper.scene()
        assert view.svg.startswith("<svg")
        assert repr(view)
        if job.over:
            break
        chance.choice(
            [
                lambda: job.faults.fail(chance.choice(FAULTS)),
                lambda: job.faults.fail(coordinator=True),
                lambda: job.checkpoint(),
                lambda: job.stepper.back(3),
            ]
        )()
    assert wait(job) == "FINISHED"
    assert len(told) > 20
