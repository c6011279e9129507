"""Sentences on the current effects of settings: the price of checkpoints, compared with spans and travel times worked
out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from unwatched import run_until_shown

import workbench as wb
from workbench.elements import LatencyMarker
from workbench.runtime.checkpoints.checkpoint_record import Acknowledgement, CheckpointRecord
from workbench.runtime.checkpoints.coordinator import HISTORY
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.kept_markers import KeptMarkers
from workbench.telemetry.effects.acting import Acting
from workbench.telemetry.effects.checkpoint_price import checkpoint_price

MS = 1_000
S = 1_000_000


def record(checkpoint_id: int, at_us: int, mode: str, **acks: Acknowledgement) -> CheckpointRecord:
    """Complete 100 ms after it was triggered."""
    tasks = tuple(acks)
    return CheckpointRecord(
        checkpoint_id, "periodic", at_us, tasks, mode=mode, state="COMPLETED", ended_us=at_us + 100 * MS,
        acknowledgements={f"{name}[0]": ack for name, ack in acks.items()},
    )  # fmt: skip


def end(until_us: int, inside_us: int, outside_us: int) -> Any:
    """A task that a marker reaches every 10 ms: those sent in the first 100 ms of a second take `inside_us`."""
    markers = KeptMarkers()
    for sent_us in range(0, until_us, 10 * MS):
        took_us = inside_us if sent_us % S <= 100 * MS else outside_us
        markers.add(sent_us + took_us, LatencyMarker(sent_us, "read[0]"))
    return SimpleNamespace(markers=markers)


def price(mode: str, **more: Any) -> Any:
    def at(second: int) -> CheckpointRecord:
        read = Acknowledgement(0, 0, 1 * MS, second * S + 20 * MS)
        summed = Acknowledgement(20 * MS, 30 * MS, 2 * MS, second * S + 50 * MS, **more)
        return record(second + 1, second * S, mode, read=read, sum=summed)

    records = [at(second) for second in range(10)]
    return checkpoint_price(records, [cast("Any", end(10 * S, 12 * MS, 9 * MS))], {"read[0]"}, 10 * S, 0)


@pytest.mark.parametrize(
    ("mode", "more", "task", "share"),
    [
        ("exactly-once", {}, "sum[0]", 0.032),  # 2 + 30 of each 1,000 ms
        ("exactly-once", {"unaligned": True}, "sum[0]", 0.002),  # nothing was blocked
        ("at-least-once", {}, "sum[0]", 0.002),
        ("changelog", {}, "sum[0]", 0.002),
        ("transactions", {}, "sum[0]", 0.032),
        ("stop-the-world", {}, "read[0]", 0.081),  # from 20 ms to 100 ms it read nothing, and 1 ms before that
    ],
)
def test_the_price_is_the_time_in_which_a_task_does_nothing_else(
    mode: str, more: dict[str, bool], task: str, share: float
) -> None:
    found = price(mode, **more)
    assert (found.task, found.share, found.checkpoints) == (task, pytest.approx(share), 10)
    assert (found.p99_ms, found.p99_inside_ms) == (9.0, 12.0)
    told = f"costs {share:.1%} of the time of {task} and raises p99 from 9.0 to 12 ms while one is taken"
    assert found.sentence == told.replace("%", " %")


def test_its_percentiles_are_of_the_same_seconds_as_the_latency_beside_them() -> None:
    ack = Acknowledgement(0, 0, 1 * MS, 0)
    records = [record(place + 1, place * S // 4, "exactly-once", read=ack) for place in range(40)]
    task, markers = end(7 * S, 400 * MS, 300 * MS), end(10 * S, 12 * MS, 9 * MS).markers
    arrived, travelled, *_ = markers.newest()
    for at_us, took_us in zip(arrived.tolist(), travelled.tolist(), strict=True):
        if at_us - took_us >= 7 * S:
            task.markers.add(at_us, LatencyMarker(at_us - took_us, "read[0]"))
    for recent_us, percentiles in ((2_500 * MS, (9.0, 12.0)), (10 * S, (9.0, 400.0))):
        found = checkpoint_price(records, [task], set(), 10 * S, 0, recent_us)
        assert found is not None
        assert (found.p99_ms, found.p99_inside_ms) == percentiles


def test_only_what_was_since_the_last_change_is_counted() -> None:
    ack = Acknowledgement(0, 0, 1 * MS, 0)
    records = [record(1, 0, "exactly-once", read=ack), record(2, 5 * S, "exactly-once", read=ack)]
    found = checkpoint_price(records, [], set(), 6 * S, 4 * S)
    assert found is not None
    assert (found.checkpoints, found.share, found.p99_ms) == (1, pytest.approx(1 * MS / (2 * S)), None)
    assert checkpoint_price(records, [], set(), 7 * S, 6 * S) is None


def test_a_frame_says_what_checkpoints_cost_and_that_a_timeout_has_no_effect() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(40_000)}), rate=20_000).uid("numbers")
    job = (
        numbers.rebalance()
        .sink_to(wb.TableSink("out"))
        .run("acting", driver="stepping", checkpoint_interval="100ms", buffer_size=100, buffer_timeout="1s")
    )
    seen: dict[str, str] = {}
    run_until_shown(job, lambda: bool(seen.update(job.recorder.latest().effects)) or len(seen) == 2)  # type: ignore[union-attr]
    # Of 100 records, 20 a millisecond, the first wait from the first millisecond's end to the fifth's.
    assert seen["buffer_timeout"] == "full after 4 ms at this rate: the timeout has no effect"
    assert "of the time of" in seen["checkpoint_interval"]
    job.tune(buffer_timeout="1ms", checkpoint_interval="disabled")
    run_until_shown(job, lambda: not job.recorder.latest().effects)  # type: ignore[union-attr]
    job.cancel()


def test_the_time_of_forgotten_checkpoints_lowers_no_price() -> None:
    ack = Acknowledgement(0, 0, 10 * MS, 0)
    begun = [record(number, number * S // 10, "exactly-once", sum=ack) for number in range(150)]
    found = checkpoint_price(begun[-HISTORY:], [], set(), 15 * S, 0)
    assert found is not None
    assert found.share == pytest.approx(0.1)  # 10 of each 100 ms


def test_the_time_before_a_job_began_lowers_no_price() -> None:
    began_us = 1_000 * S
    records = [record(1, began_us + S, "exactly-once", sum=Acknowledgement(0, 0, 100 * MS, 0))]
    master: Any = SimpleNamespace(
        settings=Settings(checkpoint_interval_us=S),
        execution=None,
        life=SimpleNamespace(started_us=began_us),
        coordinator=SimpleNamespace(history=records),
    )
    told = Acting(2_500 * MS).sample(master, began_us + 2 * S, None, 0)
    assert told["checkpoint_interval"] == "costs 5.0 % of the time of sum[0]"  # 100 of 2,000 ms
