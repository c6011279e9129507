"""Descriptions of roots, ackers and replays in the stepper."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from telling import words_until

import workbench as wb
from workbench.api.job.job import Job
from workbench.errors import JobError


def run(name: str, granularity: str = "record", keys: str = "abac") -> Job:
    """A count by key, with roots that time out after a second."""
    stream = wb.Stream.from_table(pa.table({"k": list(keys), "n": range(len(keys))}))
    counts = stream.key_by("k").aggregate(n=wb.count(), total=wb.sum("n"))
    acks = wb.acks(granularity=granularity, message_timeout="1s")
    return counts.sink_to(wb.TableSink("counts", upsert_key="k")).run(
        name, driver="stepping", fault_tolerance=acks, buffer_size=1, checkpoint_interval="1h"
    )


@pytest.fixture
def job() -> Iterator[Job]:
    """A job with four records, each a root of its own."""
    job = run("roots")
    yield job
    if not job.over:
        job.cancel()
        job.wait()


def test_the_life_of_a_root_is_told(job: Job) -> None:
    told = [job.stepper.step()[0].words for _ in range(7)]
    assert told[0].startswith(
        "table[0] sent record k=a, n=0 (root 1) to aggregate[0], then sent the ids of root 1 (XOR"
    )
    assert told[1].startswith("aggregate[0] took record k=a, n=0 (root 1) from table[0], then sent the ids of root 1")
    (announced,) = re.findall(r"XOR (....…)\) to acker", told[0])
    assert told[2].endswith(f"The XOR of root 1 is {announced} now.")
    assert told[5].endswith("The XOR of root 1 is 0: it and all records derived from it are processed.")
    assert "sent the message that root 1 is complete to table[0]" in told[5]
    assert told[6].endswith("Root 1 is acknowledged.")
    assert "$root" not in "".join(told)


def test_the_picture_shows_what_waits(job: Job) -> None:
    job.stepper.step(5)
    scene = job.stepper.scene().scene
    assert scene.task("table[0]").beside == (("pending roots", "1, 2"),)
    [(root, value)] = scene.task("acker[0]").beside
    assert root == "root 1"
    assert re.fullmatch("XOR ....…", value)
    job.stepper.step()
    [record] = job.stepper.scene().scene.channel("table[0]", "acker[0]").marbles
    assert (record.text, record.values["of"]) == ("2", "root 2")
    assert re.fullmatch("⊕....…", record.about)
    job.stepper.step()
    [sent] = [m for m in job.stepper.scene().scene.channel("table[0]", "aggregate[0]").marbles if m.kind == "record"]
    assert (sent.key, sent.text, sent.about, sent.values) == ("a", "2", "root 3", {"k": "a", "n": 2})
    svg = job.stepper.scene().svg
    for text in ("pending roots: 2, 3", ">root 3<", ">⊕"):
        assert text in svg
    assert "pending roots: 2, 3" in repr(job.stepper.scene())


def test_a_root_that_times_out_is_told_with_its_replay_and_the_late_acknowledgement(job: Job) -> None:
    job.faults.stall("aggregate")
    told = words_until(job, "timed out")
    assert "Roots 1, 2, 3, 4 timed out after 1s or more, and will be replayed." in told
    assert "Root 1 is replayed as root 5: its records are counted again." in told
    assert words_until(job, "forgot") == "acker[0] forgot 4 roots whose XOR did not become 0 within 1s."
    assert "Root 2 is replayed as root 6: its records are counted again." in words_until(job, "is replayed")
    assert dict(job.stepper.scene().scene.task("table[0]").beside) == {
        "pending roots": "5, 6",
        "to be replayed": "3, 4",
    }
    job.faults.stall("aggregate", False)
    words_until(job, "XOR of root 5 is 0")
    assert "Root 5 is acknowledged." in words_until(job, "acknowledged")
    held = job.stepper.scene().scene.task("aggregate[0]").state
    assert ("a", "n=3 total=2") in held  # root 5 counted the record of root 1 again


def test_an_acknowledgement_after_the_replay_is_told(job: Job) -> None:
    job.stepper.step(2)
    job.faults.stall("acker")
    words_until(job, "is replayed as")
    job.faults.stall("acker", False)
    assert "acknowledged too late: the replay was needless" in words_until(job, "too late")


def test_a_snapshot_holds_the_position_of_the_oldest_pending_root(job: Job) -> None:
    job.stepper.step(8)
    job.checkpoint()
    words_until(job, "sent barrier")
    scene = job.stepper.scene().scene
    oldest = int(dict(scene.task("table[0]").beside)["pending roots"].split(",")[0])
    assert scene.task("table[0]").copied == (("offset", str(oldest - 1)),)
    assert int(dict(scene.task("table[0]").state)["offset"]) > oldest - 1


def test_a_failed_task_ends_pending_roots(job: Job) -> None:
    job.stepper.step(4)
    job.faults.fail("aggregate[0]")
    assert "2 pending roots ended with the attempt" in words_until(job, "ended with the attempt")
    assert "(root 3)" in words_until(job, "table[0] sent record k=a, n=0")  # read again, under a new number


def test_it_steps_until_something_is_told(job: Job) -> None:
    view = job.stepper.until_told("root 2 IS acknowledged")
    assert view
    assert view.scene.words.endswith("Root 2 is acknowledged.")
    step = view.scene.step
    assert not job.stepper.until_told("root 99")
    assert job.over
    assert step == 13
    with pytest.raises(JobError, match="the text that a step should say is empty"):
        job.stepper.until_told(" ")


def test_a_batch_is_one_root() -> None:
    job = run("batches", "batch", "ab" * 3)
    assert "is acknowledged" in words_until(job, "acknowledged")
    job.cancel()
    job.wait()


def test_going_back_and_forking_tell_the_same(job: Job) -> None:
    job.faults.stall("aggregate")
    words_until(job, "is replayed as")
    taken = job.stepper.scene().scene.step
    last = job.stepper.driver.steps[-1].words
    scene = job.stepper.scene().scene
    job.stepper.step(3)
    back = job.stepper.back(3)
    assert (back.scene.step, back.scene.words) == (taken, last)
    assert back.scene == scene
    fork = job.stepper.fork(taken - 4)
    fork.stepper.step(4)
    assert fork.stepper.scene().scene.words == last
    assert fork.stepper.scene().scene.tasks == scene.tasks
    fork.cancel()
    fork.wait()


def test_ackers_stand_below_what_their_channels_pass(job: Job) -> None:
    """The channel from the source to the acker does not lead through the box of the operator between them."""
    svg = job.stepper.scene().svg
    boxes = {
        name: (float(y), float(height))
        for y, height, name in re.findall(
            r"class='box[^']*' x='\d+' y='(\d+)' width='\d+' height='(\d+)'[^>]*><title>(\S+):", svg
        )
    }
    lowest = max(y + height for name, (y, height) in boxes.items() if not name.startswith("acker"))
    assert boxes["acker[0]"][0] > lowest
    ways = re.findall(r"class='pipe[^']*' x1='\d+' y1='(\d+)' x2='\d+' y2='(\d+)'><title>table\[0\] to acker", svg)
    assert ways == [(ways[0][0], ways[0][0])]
    assert float(ways[0][0]) > lowest
