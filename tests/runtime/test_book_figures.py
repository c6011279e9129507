"""The checkpoint algorithm step by step: what the stepper draws is what the book's figures F2-7 to F2-15 show.

The pictures are worked out by hand. Every number in them is also compared with the runtime's own state: what lies on
the channels and what the operators answer.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import workbench as wb
from workbench.api.job.job import Job
from workbench.elements import CheckpointBarrier, Records
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.telemetry.scene import Scene


def run(name: str, values: list[int], sources: int) -> Job:
    """Numbers from one or two sources, and the running sums of the even and the odd ones."""
    numbers = wb.Stream.from_table(pa.table({"n": values})).with_parallelism(sources).uid("numbers")
    parity = numbers.with_columns(parity="CASE WHEN n % 2 = 0 THEN 'even' ELSE 'odd' END").with_parallelism(sources)
    sums = parity.key_by("parity").aggregate(total=wb.sum("n")).uid("sum")
    return sums.sink_to(wb.TableSink("totals")).run(
        name, driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None
    )


@pytest.fixture
def one() -> Iterator[Job]:
    """F2-7 and F2-8: one source."""
    job = run("one-source", list(range(1, 9)), 1)
    yield job
    end(job)


@pytest.fixture
def two() -> Iterator[Job]:
    """F2-9 to F2-15: two sources, each with the numbers 1 to 8."""
    job = run("two-sources", [n for n in range(1, 9) for _ in range(2)], 2)
    yield job
    end(job)


def end(job: Job) -> None:
    if not job.over:
        job.cancel()
        job.wait()


def drawn(job: Job) -> Scene:
    """What the picture shows now, after a look at whether it is true."""
    scene = job.stepper.scene().scene
    execution = job.stepper.driver.execution
    if execution is None:
        return scene
    ends = {
        (item.channel.source, task.name): item
        for task in execution.tasks
        if isinstance(task, OperatorTask)
        for item in task.gate.channels
    }
    assert {(channel.source, channel.target) for channel in scene.channels} == set(ends)
    for channel in scene.channels:
        item = ends[channel.source, channel.target]
        assert channel.blocked is item.blocked
        records = [e.batch.column("n")[0].as_py() for e in item.channel.elements if isinstance(e, Records)]
        assert [int(marble.text) for marble in channel.marbles if marble.kind == "record"] == records
        barriers = [e.checkpoint_id for e in item.channel.elements if isinstance(e, CheckpointBarrier)]
        assert [int(marble.text) for marble in channel.marbles if marble.kind == "barrier"] == barriers
        assert len(channel.marbles) == len(item.channel.elements)
    for task in scene.tasks:
        own = execution.task(task.name)
        assert own is not None
        assert task.snapshot == own.snapshots.last_id
    return scene


def sums(scene: Scene) -> tuple[str, str]:
    """The even and the odd sum."""
    held = {what: value.removeprefix("total=") for task in scene.tasks for what, value in task.state}
    return held.get("even", "-"), held.get("odd", "-")


def offsets(scene: Scene) -> list[str]:
    return [value for task in scene.tasks for what, value in task.state if what == "offset"]


def row(scene: Scene, source: str, target: str) -> str:
    """A channel, the next element first: numbers are records, ``|1`` is the barrier of checkpoint 1."""
    wanted = [marble for marble in scene.channel(source, target).marbles if marble.kind in ("record", "barrier")]
    return " ".join(marble.text if marble.kind == "record" else f"|{marble.text}" for marble in wanted)


def test_f2_7_a_checkpoint_holds_the_offset_and_the_sums(one: Job) -> None:
    assert one.stepper.until("total = 9", "sum")
    scene = drawn(one)
    assert (offsets(scene), sums(scene)) == (["5"], ("6", "9"))
    one.checkpoint()
    assert one.stepper.until_checkpoint()
    assert drawn(one).completed == 1


def test_f2_8_recovery_in_three_steps(one: Job) -> None:
    assert one.stepper.until("total = 9", "sum")
    one.checkpoint()
    assert one.stepper.until_checkpoint()
    one.stepper.step(4)
    before = drawn(one)
    assert int(offsets(before)[0]) > 5
    one.fail("sum[1]")
    # first: the tasks are ended, and begin again
    assert one.stepper.driver.run_until(lambda: one.state == "RESTARTING")
    assert {task.status for task in drawn(one).tasks} == {"CREATED"}
    # second: their state is that of the checkpoint
    assert one.stepper.driver.run_until(lambda: one.state == "RUNNING")
    reset = drawn(one)
    assert (offsets(reset), sums(reset)) == (["5"], ("6", "9"))
    assert not any(channel.marbles for channel in reset.channels)
    # third: they go on, and read again what came behind it
    assert one.wait() == "FINISHED"
    totals = one.table("totals").to_pylist()
    assert sorted(found["total"] for found in totals if found["parity"] == "even") == [2, 6, 12, 20]
    assert sorted(found["total"] for found in totals if found["parity"] == "odd") == [1, 4, 9, 16]


def test_f2_9_to_f2_15_a_checkpoint_with_alignment(two: Job) -> None:
    # F2-9: two sources have sent 1 to 4, the sums have taken a part of them
    two.stepper.step(14)
    scene = drawn(two)
    assert (offsets(scene), sums(scene)) == (["4", "4"], ("8", "2"))
    assert row(scene, "numbers[0]", "sum[1]") == row(scene, "numbers[1]", "sum[1]") == "3"

    # F2-10: the checkpoint is triggered, and each source sends its barrier behind what it has sent
    two.checkpoint()
    assert two.stepper.next_barrier()
    scene = drawn(two)
    assert row(scene, "numbers[0]", "sum[0]") == "|1"
    assert row(scene, "numbers[0]", "sum[1]") == "3 |1 5"
    assert row(scene, "numbers[1]", "sum[0]") == "4"
    assert [scene.task(f"numbers[{index}]").snapshot for index in (0, 1)] == [1, 0]
    assert two.stepper.next_barrier()
    scene = drawn(two)
    assert row(scene, "numbers[1]", "sum[0]") == "4 |1"
    assert row(scene, "numbers[1]", "sum[1]") == "3 |1 5"

    # F2-11: the first barrier is at a sum: its channel is held back, and the 6 behind it waits
    assert two.stepper.next_barrier()
    scene = drawn(two)
    assert scene.channel("numbers[0]", "sum[0]").blocked
    assert row(scene, "numbers[0]", "sum[0]") == "6"
    assert not scene.channel("numbers[1]", "sum[0]").blocked
    assert sums(scene)[0] == "12"
    assert scene.task("sum[0]").snapshot == 0

    # F2-12 and F2-13: the second barrier has come: snapshot, and the channels are let go
    assert two.stepper.until_aligned()
    scene = drawn(two)
    assert scene.task("sum[0]").snapshot == 1
    assert sums(scene)[0] == "12"  # 2 + 2 + 4 + 4: nothing from behind the barriers
    assert not scene.channel("numbers[0]", "sum[0]").blocked

    # F2-14: what had been held back is processed, while the other sum still aligns
    assert two.stepper.until("total = 18", "sum")
    assert row(drawn(two), "numbers[0]", "sum[0]") == "8"  # the 6 has been taken
    assert drawn(two).task("sum[1]").snapshot == 0
    assert two.stepper.until_aligned()
    assert drawn(two).task("sum[1]").snapshot == 1

    # F2-15: all have acknowledged
    assert drawn(two).completed == 0
    assert two.stepper.until_checkpoint()
    assert drawn(two).completed == 1
    assert two.wait() == "FINISHED"
    assert sums_committed(two) == {"even": 40, "odd": 32}


def sums_committed(job: Job) -> dict[str, int]:
    """The largest running sum of each key: all numbers are above zero."""
    largest: dict[str, int] = {}
    for found in job.table("totals").to_pylist():
        largest[found["parity"]] = max(found["total"], largest.get(found["parity"], 0))
    return largest


def test_the_words_tell_what_the_last_step_did(two: Job) -> None:
    two.stepper.step(3)
    assert drawn(two).words == "sum[1] took record n=1, parity=odd from numbers[0]."
    two.stepper.step(1)
    assert drawn(two).words == "numbers[0] sent record n=2, parity=even to sum[0]."


def test_the_picture_holds_every_marble_and_marks_what_is_held_back(two: Job) -> None:
    two.stepper.step(14)
    two.checkpoint()
    while not any(channel.blocked for channel in drawn(two).channels):
        assert two.stepper.next_barrier()
    svg, scene = two.stepper.scene().svg, drawn(two)
    records = [marble for channel in scene.channels for marble in channel.marbles if marble.kind == "record"]
    assert svg.count("<circle r='15'") == len(records) > 0
    assert svg.count("‖ held<") == sum(channel.blocked for channel in scene.channels) == 1
    assert svg.count("class='barrier'") == 3
    assert "even: total=12" in svg


def test_hostile_data_are_text_in_the_picture() -> None:
    bad = "<img src=x onerror=alert(1)>'\"&" + "x" * 10_000
    table = pa.table({"k": [bad, None, "\u202eevil"], "n": [bad, bad, bad]})
    counts = wb.Stream.from_table(table).with_parallelism(1).key_by("k").aggregate(n=wb.count())
    job = counts.sink_to(wb.TableSink("t")).run("hostile", driver="stepping", buffer_size=1, buffer_timeout="0ms")
    for _ in range(12):
        job.stepper.step()
        html = job.stepper.scene()._repr_html_()
        assert "<img" not in html
        assert len(html) < 30_000
    job.cancel()
