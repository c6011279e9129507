"""KafkaSink's transactions against a model of Kafka's contract, killed at every call; and the ledger of its senders."""

from __future__ import annotations

import json
import stat
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("confluent_kafka", reason="the package confluent-kafka is not installed")

from kafka_model import Died, Kafka

import workbench as wb
from workbench.connectors.epochs.ledger import Ledger
from workbench.connectors.kafka.cluster import KafkaCluster
from workbench.connectors.kafka.outgoing import Topic
from workbench.errors import CheckpointError, SinkError
from workbench.lab.connectors.sink_run import SinkRun, Taken


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> type[Kafka]:
    """The model; the sink's clients reach the one that was made last."""
    made: list[Kafka] = []

    class Reached(Kafka):
        def __init__(self, *rest: Any) -> None:
            super().__init__(*rest)
            made.append(self)

    monkeypatch.setattr(KafkaCluster, "producer", lambda *rest, **options: made[-1].producer(*rest, **options))
    monkeypatch.setattr(KafkaCluster, "consumer", lambda *rest, **options: made[-1].consumer(*rest, **options))
    return Reached


def begun(kafka: Kafka, parallelism: int) -> tuple[SinkRun, Taken]:
    """A job with a committed checkpoint, and one that is complete, but of which no subtask was notified."""
    sink = wb.KafkaSink("model:9092", "out", delivery="transactions")
    run = SinkRun(sink, parallelism, lambda: [json.loads(value) for value in kafka.visible()])
    run.process(7)
    run.checkpoint()
    run.process(14)
    taken = run.trigger()
    run.write(taken)
    return run, taken


def notify(kafka: Kafka, run: SinkRun, taken: Taken, deaths: Sequence[int | None]) -> int:
    """Each subtask commits until its own call of this number; returns how many died there."""
    died = 0
    for subtask, death in zip(run._subtasks, deaths, strict=True):
        kafka.dies_at = None if death is None else kafka.steps + death
        try:
            subtask.notify_complete(taken.number)
        except Died:
            died += 1
    kafka.dies_at = None
    return died


def recovered(kafka: Kafka, run: SinkRun, parallelism: int, death: int | None) -> bool:
    """Restore in a new process, which dies before its call of this number; whether it did not."""
    kafka.dies_at = None if death is None else kafka.steps + death
    try:
        run.crash(parallelism, killed=True)
    except Died:
        return False
    finally:
        kafka.dies_at = None
    return True


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_a_kill_at_any_call_loses_and_doubles_nothing(kafka: type[Kafka], parallelism: int) -> None:
    """In each subtask's transaction, and again at every call of the recovery."""
    kills = 0
    for last in range(4):
        death = 1
        while True:
            cluster = kafka(3, 3_600.0)
            run, taken = begun(cluster, 4)
            if not notify(cluster, run, taken, [death if at == last else None for at in range(4)]):
                break
            kills += 1
            again = 1
            while not recovered(cluster, run, parallelism, again):
                again += 5
                kills += 1
            run.audit(f"call {death} of subtask {last}, {again} of the recovery", restored=True)
            death += 1
        assert death > 3, "a transaction has several calls"
    assert kills > 50


def test_random_orders_of_kills_rescales_and_timeouts(kafka: type[Kafka]) -> None:
    for seed in range(40):
        chance = Random(seed)
        cluster = kafka(chance.randint(1, 3))
        width = chance.randint(1, 5)
        run, taken = begun(cluster, width)
        notify(cluster, run, taken, [chance.choice((None, 1, 2, 3, 4, 6, 8)) for _ in range(width)])
        for _ in range(chance.randint(1, 4)):
            cluster.now_s += chance.choice((0, 0, 61))
            width = chance.randint(1, 5)
            while not recovered(cluster, run, width, chance.choice((None, chance.randint(1, 60)))):
                cluster.now_s += chance.choice((0, 61))
                width = chance.randint(1, 5)
            run.audit(f"seed {seed}", restored=True)
            run.process(chance.randint(1, 9))
            taken = run.trigger()
            run.write(taken)
            notify(cluster, run, taken, [chance.choice((None, None, 1, 3, 5)) for _ in range(width)])
        assert recovered(cluster, run, 2, None)
        run.audit(f"seed {seed}, the end", restored=True)


def test_a_subtask_that_only_stalled_is_fenced(kafka: type[Kafka]) -> None:
    cluster = kafka(2)
    run, taken = begun(cluster, 4)
    lost = run.crash(2, killed=True)
    with pytest.raises(SinkError, match="a newer producer has this ID"):
        lost[3].notify_complete(taken.number)
    run.audit("after the stalled one", restored=True)


def test_a_transaction_that_stays_open_is_named(kafka: type[Kafka], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ending it, the model hides what a reader of the topic's end waits for: then it says for whom."""
    cluster = kafka(1, 3_600.0)
    run, taken = begun(cluster, 4)
    assert notify(cluster, run, taken, [None, None, None, 3]) == 1
    monkeypatch.setattr(Topic, "end_senders", lambda *rest: None)
    with pytest.raises(
        SinkError, match=r"transaction 'workbench contract/sink 3' or 'workbench contract/sink 0' is open"
    ):
        run.crash(2, killed=True)


def test_the_ledger_outlives_the_process(tmp_path: Path) -> None:
    assert Ledger(tmp_path, "sink").cover("job/sink", 4) == 4
    again = Ledger(tmp_path, "sink")
    assert [again.of("job/sink"), again.of("other/sink"), again.cover("job/sink", 2)] == [4, 0, 4]
    (file,) = (tmp_path / "senders").iterdir()
    assert json.loads(file.read_text()) == {"job/sink": 4}
    assert stat.S_ISREG(file.stat().st_mode)
    for damaged in ("", "[]", '{"job/sink": "4"}', '{"job/sink": -1}', '{"job/sink": 99999999}'):
        file.write_text(damaged)
        with pytest.raises(CheckpointError, match="does not name the senders of a sink"):
            Ledger(tmp_path, "sink")
