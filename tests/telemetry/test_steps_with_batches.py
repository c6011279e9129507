"""Descriptions of micro-batches in the stepper: collected, logged, released, committed, replayed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from telling import tells_the_same_again, words_until

import workbench as wb
from workbench.api.job.job import Job


@pytest.fixture
def job() -> Iterator[Job]:
    """A count in batches of at most four records."""
    stream = wb.Stream.from_table(pa.table({"k": list("abac") * 3}))
    counts = stream.key_by("k").aggregate(n=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k"))
    batches = wb.micro_batches("50ms", batch_size=4)
    job = counts.run("batches", driver="stepping", fault_tolerance=batches, buffer_size=1)
    yield job
    if not job.over:
        job.cancel()
        job.wait()


def test_the_way_of_a_batch_is_told(job: Job) -> None:
    [step] = job.stepper.step()
    assert step.words == "table[0] collected 1 record, not sent yet: batch 1 has 1 so far."
    assert job.stepper.scene().scene.task("table[0]").beside == (("collects batch 1", "1"),)
    assert "Batch 1 is cut; it will be committed with checkpoint 1." in words_until(job, "is cut")
    assert ("batch 1", "collecting") in job.stepper.scene().scene.facts
    told = words_until(job, "ends batch 1")
    assert "table[0] ends batch 1 with 4 records; nothing is sent before the offsets are durable." in told
    assert "Meanwhile, it collects batch 2: 1 record so far." in told
    assert dict(job.stepper.scene().scene.task("table[0]").beside) == {
        "unsent of batch 1": "4",
        "collects batch 2": "1",
    }
    assert job.stepper.scene().scene.channels[0].marbles == ()
    assert words_until(job, "The records of batch 1").endswith("The records of batch 1 are known: 0 to 4 of table[0].")
    assert "The log holds the offsets of the batch now." in words_until(job, "background")
    told = words_until(job, "is released")
    assert "The offsets of batch 1 are durable. Batch 1 is released: the sources send it." in told
    told = words_until(job, "table[0] sent record k=a")
    assert told.endswith("Of batch 1, 3 records and the barrier are still to be sent.")
    assert words_until(job, "sent record k=c").endswith("Of batch 1, only the barrier is still to be sent.")
    assert words_until(job, "sent barrier 1").endswith("Batch 1 is sent, and its barrier behind it.")
    scene = job.stepper.scene().scene
    assert (scene.task("table[0]").state, scene.task("table[0]").copied) == ((("offset", "8"),), (("offset", "4"),))
    assert "Batch 1 is committed: state, positions and rows at once." in words_until(job, "is committed")
    assert ("committed up to batch", "1") in job.stepper.scene().scene.facts
    assert "committed up to batch: 1" in repr(job.stepper.scene())
    assert "committed up to batch: 1" in job.stepper.scene().headline()


def test_a_batch_that_fails_is_replayed_under_its_number(job: Job) -> None:
    words_until(job, "Batch 2 is released")
    words_until(job, "aggregate[0] took record k=a")
    job.faults.fail("aggregate[0]")
    assert "Batch 2 failed: it has had no effect." in words_until(job, "Batch 2 failed")
    told = words_until(job, "is replayed")
    assert "Batch 2 is replayed: the same records under the same txid, with checkpoint 3." in told
    assert words_until(job, "again") == "table[0] read 1 record of batch 2 again: 1 so far."
    assert ("batch 2", "collecting again") in job.stepper.scene().scene.facts
    words_until(job, "Batch 2 is committed")
    job.stepper.driver.run_until(lambda: job.over)
    assert {row["k"]: row["n"] for row in job.table("counts").to_pylist()} == {"a": 6, "b": 3, "c": 3}


def test_a_batch_whose_checkpoint_was_complete_is_committed_after_all(job: Job) -> None:
    """The task fails when the manifest of its batch is being written."""
    words_until(job, "Batch 2 is sent")
    words_until(job, "aggregate[0] took barrier 2")
    words_until(job, "background")
    job.faults.fail("aggregate[0]")
    told = words_until(job, "Batch 2 was committed after all")
    assert "its checkpoint was complete when the task failed" in told


def test_going_back_tells_the_same(job: Job) -> None:
    words_until(job, "Batch 1 is committed")
    tells_the_same_again(job, back=9, ahead=5)
