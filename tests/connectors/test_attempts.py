"""A sink that waits for its server tells so as a source does, and waits no longer when its job ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from outages import outages
from waiting import until

import workbench as wb
from workbench.connectors.contract.attempts import Attempts
from workbench.connectors.contract.base import Sink
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
    shown = html(frame, {})
    assert "has had no connection to &lt;b&gt;db&lt;/b&gt;:9092 for" in shown
    assert ": &lt;i&gt;refused&lt;/i&gt;. It tries again" in shown
    assert f", attempt {task.outage.attempts + 1}; after " in shown
    assert "the task fails, and the job restarts or ends. Meanwhile it takes no records" in shown
    assert "sources" in [view.name for view in dashboard_views(True, frame)]


def test_a_job_is_canceled_while_its_sink_waits_for_a_server() -> None:
    job = started(Lost())
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
    assert attempts.outage is None
    assert attempts.again("busy", lost=False)
    assert attempts.outage is None
    assert attempts.again("refused")
    assert attempts.outage.attempts == 2  # type: ignore[unreachable]
    attempts.give_up()
    assert not attempts.again("refused")
