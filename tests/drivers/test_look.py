"""The cost of one poll of the sources: due records go from two sources to two sinks with few Python calls."""

from __future__ import annotations

import sys
import threading
from types import FrameType

import pyarrow as pa
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.tables.tables import Tables
from workbench.drivers.contract.turns import Turnstile
from workbench.drivers.live.looking import Looking
from workbench.drivers.live.slot_threads import Crew, SlotThread
from workbench.plan.physical import build_physical_graph
from workbench.runtime.deployment.deploying import deploy
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.messages.messages import Report
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks.execution import Execution, JobServices
from workbench.runtime.tasks.operator_task import OperatorTask
from workbench.runtime.tasks.task import Outcome

LOOK_US = 1_000
SCHEMA = pa.schema([("key", pa.int64()), ("value", pa.int64()), ("stamp", pa.int64())])


class Host:
    dropped = 0

    def report(self, report: Report) -> None:
        raise AssertionError(report)


def rows(first: int, count: int) -> pa.RecordBatch:
    numbers = pa.array(range(first, first + count))
    return pa.RecordBatch.from_arrays([numbers, numbers, numbers], schema=SCHEMA)


class Job:
    """A running count and sum per key, its records shipped at once, whose slots the test steps."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int]] = []
        self.clock = VirtualClock(1_000_000)
        stream = (
            wb.Stream.from_generator(rows, SCHEMA, event_time="stamp", rate=100_000)
            .select("key", "value")
            .key_by("key")
            .aggregate(n=wb.count(), s=wb.sum("value"))
            .sink_to(wb.CallbackSink(self._take))
        )
        graph = build_physical_graph(stream.logical_graph(), 2, 1)
        services = JobServices("job", self.clock, Tables(), None, {})
        self.execution: Execution = deploy(
            graph, Settings(parallelism=2, buffer_timeout_us=0), services, Host(), 0, None
        )
        crew = Crew(Turnstile(), Looking(self.clock.now_us), self.clock.now_us, threading.Event())
        crew.threads = tuple(SlotThread(slot, crew) for slot in self.execution.slots)
        self.threads = crew.threads

    def _take(self, batch: pa.RecordBatch) -> None:
        self.taken += zip(*batch.to_pydict().values(), strict=True)

    def taken_once(self) -> bool:
        """Whether every row is the first one of its key."""
        return all(row == (row[0], 1, row[0]) for row in self.taken) and len(set(self.taken)) == len(self.taken)

    def look(self) -> int:
        """All sources poll, then everything is processed; returns how often a task was stepped."""
        self.clock.advance_to(self.clock.now_us() + LOOK_US)
        for thread in self.threads:
            thread._step_sources()
        stepped = len(self.threads)
        while any(thread._step() for thread in self.threads):
            stepped += 1
        return stepped


def python_calls(job: Job) -> int:
    """The calls of Python functions in one look."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        job.look()
    finally:
        sys.setprofile(None)
    return calls


def test_a_look_takes_few_calls() -> None:
    job = Job()
    for _ in range(50):
        job.look()
    before = len(job.taken)
    calls = sorted(python_calls(job) for _ in range(9))
    assert len(job.taken) - before == 900
    assert calls[4] <= 276  # ten of them for when the records were due of which its markers tell
    assert job.taken_once()


def test_an_operator_without_input_is_not_stepped(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job()
    for _ in range(3):
        job.look()
    stepped: list[str] = []
    step = OperatorTask.step

    def noted(task: OperatorTask) -> Outcome:
        stepped.append(task.name)
        return step(task)

    monkeypatch.setattr(OperatorTask, "step", noted)
    job.look()
    assert sorted(stepped) == ["aggregate[0]", "aggregate[1]"]


def test_an_operator_whose_output_was_full_is_stepped_without_input() -> None:
    job = Job()
    task = job.execution.tasks[-1]
    assert task.is_quiet
    task.load.held_back = True
    assert not task.is_quiet
    task.step()
    assert not task.load.held_back
    assert task.is_quiet


def test_what_may_not_wait_is_not_put_into_a_pending_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job()
    job.look()

    def never(*arguments: object) -> None:
        raise AssertionError("a pending buffer was used")

    monkeypatch.setattr(EdgeOutput, "_spread", never)
    for _ in range(20):
        job.look()
    assert job.taken_once()
    assert len(job.taken) > 900
