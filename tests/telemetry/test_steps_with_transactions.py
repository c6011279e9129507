"""Descriptions of transactions in the stepper: durable before sent, duplicates, sequencers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from telling import tells_the_same_again, words_until

import workbench as wb
from workbench.api.job.job import Job
from workbench.runtime.transactions.bloom import BloomFilter


def run(name: str, **knobs: object) -> Job:
    """A count by key behind a source, and a filter behind that."""
    stream = wb.Stream.from_table(pa.table({"k": list("abac")}))
    counts = stream.key_by("k").aggregate(n=wb.count()).rebalance().filter("n > 0")
    return counts.sink_to(wb.TableSink("counts", upsert_key="k")).run(
        name, driver="stepping", fault_tolerance=wb.transactions(**knobs), buffer_size=1, checkpoint_interval="1h"
    )


@pytest.fixture
def job() -> Iterator[Job]:
    """A job that writes each record in a transaction of its own."""
    job = run("writes")
    yield job
    if not job.over:
        job.cancel()
        job.wait()


def test_a_record_is_durable_before_it_is_sent(job: Job) -> None:
    told = [job.stepper.step()[0].words for _ in range(5)]
    assert told == [
        "table[0] made record k=a (id 0) for aggregate[0]: neither durable nor sent.",
        "table[0] made one atomic write. Durable now: the position in its source. Durable, not sent yet: record k=a "
        "(id 0) for aggregate[0].",
        "A source has no sender to acknowledge: table[0] can send what is durable.",
        "table[0] sent record k=a to aggregate[0], then sent a latency marker to aggregate[0]. The transaction of "
        "table[0] is over: what it sent was durable before.",
        "aggregate[0] took record k=a from table[0]. The Bloom filter does not know id 0 of table[0]: new. Processed, "
        "and not durable yet: id 0 of table[0]. aggregate[0] made record k=a, n=1 (id 0) for filter[0]: neither "
        "durable nor sent.",
    ]
    told = words_until(job, "aggregate[0] made one atomic write")
    assert "Durable now: the state of its operators and id 0 of table[0]." in told
    assert "Durable, not sent yet: record k=a, n=1 (id 0) for filter[0]." in told
    scene = job.stepper.scene()
    assert ("durable, not sent", "id 0") in scene.scene.task("aggregate[0]").beside
    assert ("unacked", "id 0") in scene.scene.task("table[0]").beside
    assert "durable, not sent: id" in scene.svg
    assert scene.scene.channel("aggregate[0]", "filter[0]").marbles == ()
    assert words_until(job, "acknowledged").startswith("aggregate[0] acknowledged everything up to id 0 to table[0]")
    assert "aggregate[0] sent record k=a, n=1 to filter[0]" in words_until(job, "transaction of aggregate[0] is over")
    [sent] = job.stepper.scene().scene.channel("aggregate[0]", "filter[0]").marbles[:1]
    assert (sent.text, sent.about) == ("1", "id 0")
    assert ("writes", "3") in job.stepper.scene().scene.facts


def test_a_failure_before_the_acknowledgement_makes_a_duplicate_that_is_refused(job: Job) -> None:
    """The counter has written and not acknowledged when it fails: its sender sends again, and the ids tell."""
    words_until(job, "aggregate[0] made one atomic write")
    job.faults.fail("aggregate[0]")
    told = words_until(job, "aggregate[0]: failed")
    assert "Durable already: record k=a, n=1 (id 0) for filter[0], which its successor will send." in told
    told = words_until(job, "aggregate[0] was replaced")
    assert "continues from its last write as sequencer" in told
    told = words_until(job, "took record k=a, n=1 from aggregate[0]")  # sent by the successor, from the store
    assert "Processed, and not durable yet: id 0 of aggregate[0]" in told
    job.stepper.driver.run_until(lambda: job.over)
    assert {row["k"]: row["n"] for row in job.table("counts").to_pylist()} == {"a": 2, "b": 1, "c": 1}


def test_a_sender_that_is_replaced_sends_again_and_the_duplicate_is_refused(job: Job) -> None:
    words_until(job, "aggregate[0] made one atomic write")
    job.faults.fail("table[0]")
    assert "again, with the same ids, because" in words_until(job, "again, with the same ids")
    told = words_until(job, "refused")
    assert "1 duplicate refused among id 0 of table[0]: the Bloom filter said maybe, the store said seen" in told
    assert ("duplicates refused", "1") in job.stepper.scene().scene.facts


def test_a_false_duplicate_is_told(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter that is full of ids says maybe to all of them."""
    words_until(job, "aggregate[0] took record k=a")
    monkeypatch.setattr(BloomFilter, "may_hold", lambda self, ids: np.ones(len(ids), np.bool_))
    told = words_until(job, "aggregate[0] took record k=b")
    assert "1 false duplicate among id 1 of table[0]: the Bloom filter said maybe, the store said new." in told
    assert "Processed, and not durable yet: id 1 of table[0]." in told
    assert dict(job.stepper.scene().scene.facts)["false duplicates"] == "2"  # the other one is of the filter operator


def test_what_is_not_durable_is_sent_again(job: Job) -> None:
    words_until(job, "aggregate[0] took record k=a")
    job.faults.fail("aggregate[0]")
    told = words_until(job, "aggregate[0]: failed")
    assert told.endswith("Not durable, so it will be sent to the successor again: id 0 of table[0].")
    assert "; ids 0–4 of table[0] will come again" in words_until(job, "aggregate[0] was replaced")


def test_weak_productions_are_sent_before_they_are_durable() -> None:
    job = run("weak", strong=False)
    told = words_until(job, "(weak)")
    assert "What aggregate[0] sent is not durable: its write waits" in told
    assert "aggregate[0] can write" in words_until(job, "acknowledged everything: aggregate[0] can write")
    job.cancel()
    job.wait()


def test_going_back_tells_the_same(job: Job) -> None:
    words_until(job, "aggregate[0] made one atomic write")
    tells_the_same_again(job, back=4, ahead=2)
