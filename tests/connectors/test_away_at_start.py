"""Servers that are away for a moment while a job starts: it waits for them, and loses and doubles nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from chaos.arena import MAKE
from chaos.flows import APPENDING, SCHEMA, End, flow
from chaos.outputs import COLUMNS
from chaos.systems import System
from kafka_server import running
from relay import Relay
from waiting import until

import workbench as wb
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.contract.retries import Retries
from workbench.errors import SinkError


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for an answer for a shorter time than servers are away."""
    for place in ("kafka.cluster.ANSWER_S", "kafka.tail.ANSWER_S", "kafka.topics.ANSWER_S", "redis.server._ANSWER_S"):
        monkeypatch.setattr(f"workbench.connectors.{place}", 0.2)


@pytest.fixture
def leave(monkeypatch: pytest.MonkeyPatch) -> Callable[[System], None]:
    """Takes a server away, until sinks or sources have looked for it twice."""
    again, failed = Attempts.again, Retries.failed
    away: list[Relay] = []
    looks = count(1)

    def look() -> None:
        if not next(looks) % 2 and away:
            away.pop().mend()

    def of_sink(self: Attempts, error: str, *, lost: bool = True) -> bool:
        look()
        return again(self, error, lost=lost)

    def of_source(self: Retries, now_us: int, error: str) -> int | None:
        look()
        return failed(self, now_us, error)

    def leave(system: System) -> None:
        assert system.relay is not None
        assert not away, "nothing has looked for the server"
        system.relay.cut()
        away.append(system.relay)

    monkeypatch.setattr(Attempts, "again", of_sink)
    monkeypatch.setattr(Retries, "failed", of_source)
    return leave


@pytest.mark.parametrize("sink", ["kafka", "redis", "nats"])
def test_the_check_before_a_start_waits_for_the_server(sink: str, leave: Callable[[System], None]) -> None:
    with MAKE[sink]() as system:
        system.create_output(sink, 0, COLUMNS["rows"])
        leave(system)
        APPENDING[sink](system.place, 0).check_fresh(SinkContext("job", "sink", pa.schema(SCHEMA)))


@pytest.mark.slow
@pytest.mark.parametrize("sink", ["kafka", "kafka-transactions"])
def test_a_job_starts_and_resumes_as_soon_as_its_server_answers(
    sink: str, leave: Callable[[System], None], tmp_path: Path
) -> None:
    kind = sink.partition("-")[0]
    with MAKE[kind]() as system:
        system.create_input(kind, 0)
        system.create_output(sink, 0, COLUMNS["rows"])

        def run(*, bounded: bool) -> wb.types.Job:
            end = End(kind, system.place)
            pipeline = flow(end, [End(sink, system.place)], 0, shape="rows", bounded=bounded)
            return pipeline.run("away", checkpoint_dir=tmp_path, checkpoint_interval="50ms", resume=bounded)

        def written() -> list[int]:
            return sorted(each["id"] for each in system.found(sink, 0, COLUMNS["rows"]) if isinstance(each, dict))

        system.feed(kind, 0, range(10))
        leave(system)
        job = run(bounded=False)
        until(lambda: written() == list(range(10)))
        job.stop(wait=True)
        assert job.status()["restarts"] == 0
        system.feed(kind, 0, range(10, 20))
        leave(system)
        job = run(bounded=True)
        assert job.wait("60s") == "FINISHED"
        assert job.status()["restarts"] == 0
        assert written() == list(range(20))


def test_brokers_that_stay_away_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.connectors.contract.attempts.WAIT_S", 0.3)
    with running() as broker:
        broker.relay.cut()
        sink = wb.KafkaSink(broker.servers, "out", delivery="exactly-once")
        with pytest.raises(SinkError, match=rf"no connection to {broker.servers}: .*; start the broker"):
            wb.Stream.from_table(pa.table({"n": [1]})).sink_to(sink).run("away")
        broker.relay.mend()
