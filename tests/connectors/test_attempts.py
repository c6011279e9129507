"""A sink that waits for its server reports this like a source, and stops waiting when its job ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from outages import outages
from waiting import until

import workbench as wb
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import Sink
from workbench.connectors.contract.calls import Calls
from workbench.connectors.epochs.waiting import WaitingOperator
from workbench.dashboard.contract.view_table import dashboard_views
from workbench.dashboard.views.sources.sources_part import html
from workbench.errors import JobError, SinkError


@dataclass(frozen=True)
class Lost(Sink):
    """A server that is away until `back`; where it does not open, a first attempt fails, and the next one waits for the
    server when it is opened."""

    back: threading.Event = field(default_factory=threading.Event)
    opening: threading.Event = field(default_factory=threading.Event)
    wait_s: float = 60.0
    opens: bool = True
    name = "orders"
    kind = "kafka"

    def create(self, schema: pa.Schema) -> Any:
        return LostLogic(self)


class LostOnce(Lost):
    guarantee = "exactly-once"


class LostLogic(WaitingOperator):
    def __init__(self, sink: Lost) -> None:
        super().__init__(Attempts(sink.wait_s, "<b>db</b>:9092"))
        self._sink = sink

    def open(self, context: Any) -> None:
        if not self._sink.opens and context.attempt:
            self._sink.opening.set()
            self._send()

    def process(self, records: Any, port: int, out: Any) -> None:
        if not self._sink.opens:
            raise SinkError("the connection is lost")
        self._send()

    def _send(self) -> None:
        while not self._sink.back.is_set():
            if not self._attempts.again("<i>refused</i>"):
                raise SinkError("no connection")
        self._attempts.succeeded()


def outage(job: Any) -> Any:
    return next(iter(outages(job)), None)


def started(sink: Lost, **settings: Any) -> Any:
    return wb.Stream.from_table(pa.table({"n": range(9)})).sink_to(sink).run("attempts", **settings)


@pytest.fixture
def job() -> Iterator[Any]:
    sink = Lost()
    job = started(sink)
    until(lambda: outage(job) is not None and outage(job).attempts > 1)
    yield job
    sink.back.set()
    assert job.wait("60s") == "FINISHED"
    assert outage(job) is None
    assert job.status()["restarts"] == 0


def test_a_lost_connection_of_a_sink_is_shown_with_the_attempt_that_is_due(job: Any) -> None:
    frame = job.recorder.latest()
    (task,) = (task for task in frame.tasks if task.outage is not None)
    assert (task.outage.error, task.outage.server) == ("<i>refused</i>", "<b>db</b>:9092")
    assert task.outage.retry_ms <= 1_000 < task.outage.ends_ms <= 60_000
    assert task.metrics["connectionAttempts"] == task.outage.attempts
    assert task.outage.operator == "orders"
    shown = html(frame, {})
    assert "has had no connection to &lt;b&gt;db&lt;/b&gt;:9092 for" in shown
    assert ": &lt;i&gt;refused&lt;/i&gt;. It tries again" in shown
    assert f", attempt {task.outage.attempts + 1}; after " in shown
    assert "the task fails, and the job restarts or ends. Meanwhile it takes no records" in shown
    assert "sources" in [view.name for view in dashboard_views(True, frame)]


@pytest.mark.parametrize("architecture", [None, "transactions"])
def test_a_job_is_canceled_while_its_sink_waits_for_a_server(architecture: Any) -> None:
    sink = Lost() if architecture is None else LostOnce()
    job = started(sink, fault_tolerance=architecture, checkpoint_interval="10ms")
    until(lambda: outage(job) is not None)
    since = time.monotonic()
    job.cancel()
    assert job.state == "CANCELED"
    assert time.monotonic() - since < 5  # a step that does not end is waited for ten seconds


def test_a_job_is_canceled_while_its_sink_waits_for_a_server_when_it_restarts() -> None:
    job = started(sink := Lost(opens=False), restart=wb.restart.fixed_delay(99, "1ms"))
    assert sink.opening.wait(60)
    since = time.monotonic()
    job.cancel()
    assert job.state == "CANCELED"
    assert time.monotonic() - since < 5


def test_a_connection_that_is_lost_when_a_job_restarts_is_shown() -> None:
    job = started(sink := Lost(opens=False), restart=wb.restart.fixed_delay(99, "1ms"))
    assert sink.opening.wait(60)
    until(lambda: any(each.attempts > 1 for each in job.recorder.latest().awaited.values()))
    assert job.state == "INITIALIZING"
    frame = job.recorder.latest()
    ((task, outage),) = frame.awaited.items()
    assert task in [each.name for each in frame.tasks]
    assert (outage.error, outage.server) == ("<i>refused</i>", "<b>db</b>:9092")
    assert outage.retry_ms <= 1_000 < outage.ends_ms <= 60_000
    told = f"{task} has had no connection to <b>db</b>:9092 for "
    assert job.status()["lost_connections"].startswith(told)
    assert "has had no connection to &lt;b&gt;db&lt;/b&gt;:9092 for " in html(frame, {})
    until(lambda: any(finding.startswith(told) for finding in job.recorder.latest().findings))
    job.cancel()
    assert job.status()["lost_connections"] is None


def test_a_job_is_not_stopped_without_its_server_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Lost()
    sink.back.set()
    numbers = wb.Stream.from_table(pa.table({"n": range(1_000_000)}), rate=1_000)
    options: Any = {"checkpoint_dir": tmp_path, "checkpoint_interval": "20ms"}
    job = numbers.sink_to(sink).run("attempts", **options)
    until(lambda: job.status()["last_checkpoint"])
    sink.back.clear()
    until(lambda: outage(job) is not None)
    monkeypatch.setattr("workbench.connectors.contract.attempts.HURRY_S", 0.2)
    with pytest.raises(
        JobError, match=r"failed: no connection \(.* while the job was being stopped; a run that resumes continues"
    ):
        job.stop()
    assert (job.state, job.status()["restarts"]) == ("FAILED", 0)
    monkeypatch.undo()
    sink.back.set()
    job = numbers.sink_to(sink).run("attempts", resume=True, **options)
    job.stop()
    assert job.state == "FINISHED"


def test_a_server_that_stays_away_fails_the_task() -> None:
    job = started(Lost(wait_s=0.1), restart=wb.restart.no_restart())
    with pytest.raises(JobError, match="no connection"):
        job.wait("60s")


def test_pauses_grow_and_the_first_failure_after_an_answer_is_the_first_again() -> None:
    attempts = Attempts(1.0)
    pauses = []
    while attempts.again("refused"):
        assert attempts.outage is not None
        assert attempts.outage.ends_us == attempts.outage.since_us + 1_000_000
        pauses.append(attempts.outage.attempts)
    assert pauses == [1, 2, 3, 4, 5]  # after 50, 150, 350, 750 and 1000 ms
    assert attempts.outage is not None  # why its task fails
    attempts.succeeded()
    assert attempts.outage is None
    assert attempts.again("busy", lost=False)
    assert attempts.outage is None
    assert attempts.again("refused")
    assert attempts.outage.attempts == 2  # type: ignore[unreachable]
    attempts.give_up()
    assert not attempts.again("refused")


def test_calls_on_several_threads_are_repeated_each_for_itself() -> None:
    away, calls = threading.Event(), Calls("db:1", ConnectionError, str)
    away.set()

    def ask() -> int:
        if away.is_set():
            raise ConnectionError("refused")
        return 7

    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(calls.repeated, ask) for _ in range(4)]
        until(lambda: calls.outage is not None and calls.outage.attempts > 1)
        assert calls.outage is not None
        assert (calls.outage.server, calls.outage.error) == ("db:1", "refused")
        away.clear()
        assert [each.result(60) for each in asked] == [7] * 4
        assert calls.outage is None
        away.set()
        asked = [threads.submit(calls.repeated, ask) for _ in range(2)]
        until(lambda: calls.outage is not None)
        calls.give_up()
        for each in (*asked, threads.submit(calls.repeated, ask)):
            with pytest.raises(ConnectionError):
                each.result(60)
        assert calls.outage is not None  # why the task fails
    with pytest.raises(ConnectionError, match="wrong password"):
        Calls("db:1", ConnectionError, lambda error: "").repeated(lambda: refuse("wrong password"))


def refuse(words: str) -> int:
    raise ConnectionError(words)
