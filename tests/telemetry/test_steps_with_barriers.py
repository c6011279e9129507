"""Descriptions of changelogs, at-most-once flushes and stop-the-world checkpoints in the stepper."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from stepped_counts import Starts, starts
from telling import tells_the_same_again, words_until

import workbench as wb


@pytest.fixture
def start() -> Starts:
    return starts("barriers")


def test_positions_fall_behind_the_log(start: Starts) -> None:
    job = start(wb.changelog("50ms", offset_interval="200ms"))
    assert job.stepper.scene().scene.facts == (("log", "empty"),)
    assert "table[0] saves a new position with entry 1: 5." in words_until(job, "sent barrier 1")
    assert words_until(job, "took barrier 1").endswith("aggregate[0] logs its state: entry 1.")
    assert words_until(job, "is complete").endswith("Entry 1 of the log is complete: log and positions agree.")
    told = words_until(job, "sent barrier 2")
    assert "table[0] saves its old position with entry 2: 5, although it has read 5 records more." in told
    assert job.stepper.scene().scene.task("table[0]").beside == (("position saved", "5"), ("read since", "6"))
    assert job.stepper.scene().scene.task("table[0]").copied == (
        ("offset", "5"),
    )  # what it saves, not what it has read
    told = words_until(job, "Entry 2 of the log")
    assert "a failure now would apply twice: aggregate[0] 5 records, table[0] 5 records." in told
    assert ("a failure applies twice", "aggregate[0] 5 records, table[0] 5 records") in job.stepper.scene().scene.facts


def test_what_a_failure_applies_twice_is_told_and_is_what_the_audit_counts(start: Starts) -> None:
    job = start(wb.changelog("50ms", offset_interval="200ms"))
    words_until(job, "Entry 3 of the log is complete")
    job.faults.fail("aggregate[0]")
    told = words_until(job, "Operators load")
    assert (
        "Operators load the log up to entry 3; sources go back to the positions in it: applied twice: aggregate[0] 10"
        in told
    )
    assert {row["task"]: row["records"] for row in job.audit()} == {"table[0]": 10, "aggregate[0]": 10}
    assert job.stepper.scene().scene.task("table[0]").state == (("offset", "5"),)
    words_until(job, "table[0] saves a new position")
    offset = int(dict(job.stepper.scene().scene.task("table[0]").state)["offset"])
    beside = dict(job.stepper.scene().scene.task("table[0]").beside)
    assert int(beside["position saved"]) + int(beside["read since"]) == offset > 5


def test_what_is_lost_is_told(start: Starts) -> None:
    job = start(wb.at_most_once("50ms"))
    told = words_until(job, "Flush 1")
    assert told.endswith("Flush 1 is complete: sinks have committed their rows; no state was saved.")
    scene = job.stepper.scene().scene
    assert scene.task("aggregate[0]").state[0] == ("a", "n=3")
    assert (scene.task("aggregate[0]").snapshot, scene.task("aggregate[0]").copied) == (1, ())
    assert scene.task("table[0]").copied == (("offset", "5"),)
    words_until(job, "table[0] sent record")
    facts = (("a failure now loses", "1 record on the way, the state of 3 keys, and rows not flushed"),)
    assert job.stepper.scene().scene.facts == facts
    job.faults.fail("aggregate[0]")
    assert words_until(job, "Lost").endswith(
        "Lost for good: 1 record on the way, the state of 3 keys, and rows not flushed. Sources will continue with "
        "the next record."
    )
    words_until(job, "aggregate[0] took record")
    assert len(job.stepper.scene().scene.task("aggregate[0]").state) == 2  # one key, and what is committed


def test_acks_without_ackers_lose_as_well(start: Starts) -> None:
    job = start(wb.acks(ackers=0))
    words_until(job, "aggregate[0] took record")
    job.faults.fail("aggregate[0]")
    assert "Lost for good" in words_until(job, "Lost")


def test_the_world_stops(start: Starts) -> None:
    job = start(wb.stop_the_world("50ms"))
    told = words_until(job, "sent barrier 1")
    assert told.endswith("table[0] reads nothing until checkpoint 1 is complete.")
    assert job.stepper.scene().scene.task("table[0]").beside == (("stands still", ""),)
    assert words_until(job, "is complete").endswith("Checkpoint 1 is complete: the sources continue.")
    words_until(job, "table[0] sent record")
    assert job.stepper.scene().scene.task("table[0]").beside == ()


@pytest.mark.parametrize(
    "architecture",
    [wb.changelog("50ms", offset_interval="200ms"), wb.at_most_once("50ms"), wb.stop_the_world("50ms")],
)
def test_going_back_tells_the_same(start: Starts, architecture: object) -> None:
    job = start(architecture)
    words_until(job, "is complete")
    tells_the_same_again(job, back=6, ahead=3)


def test_going_back_while_the_world_stands_still_finds_it_so(start: Starts) -> None:
    job = start(wb.stop_the_world("50ms"))
    words_until(job, "sent barrier 1")
    still = job.stepper.scene().scene
    assert still.task("table[0]").beside == (("stands still", ""),)
    words_until(job, "the sources continue")
    words_until(job, "table[0] sent record")
    again = job.stepper.back(job.stepper.scene().scene.step - still.step)
    assert again.scene == still
    fork = job.stepper.fork()  # from the moment at which it stands still: the fork waits for the checkpoint as well
    assert fork.stepper.scene().scene.task("table[0]").beside == (("stands still", ""),)
    assert words_until(fork, "is complete") == words_until(job, "is complete")
    assert words_until(fork, "table[0] sent record") == words_until(job, "table[0] sent record")
    fork.cancel()
    fork.wait()


def test_overtaken_records_are_in_the_snapshot_that_the_picture_shows(tmp_path: Path) -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(1, 17)})).with_parallelism(2).uid("numbers")
    sums = numbers.with_columns(odd="n % 2").with_parallelism(2).key_by("odd").aggregate(total=wb.sum("n")).uid("sum")
    job = sums.sink_to(wb.TableSink("sums")).run(
        "overtaken", driver="stepping", parallelism=2, buffer_size=1, buffer_timeout="0ms", checkpoint_mode="unaligned",
        checkpoint_interval=None, checkpoint_dir=tmp_path,
    )  # fmt: skip
    job.stepper.step(14)
    job.checkpoint()
    told = words_until(job, "sent barrier 1")
    only_what_is_new = "numbers[0] sent barrier 1 to sum[0] and sum[1], then sent record n=9, odd=1 to sum[1]."
    assert told == only_what_is_new
    words_until(job, "Barrier 1 has overtaken 2 records, which are in the snapshot of sum[1].")
    scene = job.stepper.scene().scene
    assert scene.task("sum[0]").copied == (("0", "total=20"),)
    assert scene.task("sum[1]").copied == (("1", "total=4"), ("overtaken 1", "5, 7"))
    assert [m.text for c in scene.channels for m in c.marbles if m.about == "overtaken"] == ["5", "7"]
    offsets = [int(dict(scene.task(f"numbers[{n}]").copied)["offset"]) for n in range(2)]
    assert sum(range(1, sum(offsets) + 1)) == 20 + 4 + 5 + 7, "a consistent cut"
    job.stepper.until_checkpoint()
    assert job.stepper.scene().scene.task("sum[1]").copied[1] == ("overtaken 1", "5, 7"), "it stays as it is"
    stored = wb.Snapshot.open(tmp_path / "chk-00000001").in_flight
    assert sorted(n for piece in stored for n in piece["records"]["n"].to_pylist()) == [5, 7]
    job.cancel()
