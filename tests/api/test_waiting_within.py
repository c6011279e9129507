"""Methods that wait for a job cannot be called by the job's own functions, which would deadlock or lose records."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb

ROWS = pa.table({"n": range(60)})

WAITING: dict[str, Callable[[wb.types.Job], object]] = {
    "wait": lambda job: job.wait(),
    "wait for a while": lambda job: job.wait("60s"),
    "savepoint": lambda job: job.savepoint("within"),
    "rescale": lambda job: job.rescale(3),
    "tune": lambda job: job.tune(parallelism=3, checkpoint_interval="1s"),
    "restore": lambda job: job.restore("within"),
}
STEPPING: dict[str, Callable[[wb.types.Job], object]] = {
    "step": lambda job: job.stepper.step(),
    "one task": lambda job: job.stepper.driver.step_task("table[0]"),
    "next": lambda job: job.stepper.next_record(),
    "back": lambda job: job.stepper.back(),
    "fork": lambda job: job.stepper.fork(),
}
GOING_ON: dict[str, Callable[[wb.types.Job], object]] = {
    "checkpoint": lambda job: job.checkpoint(),
    "status": lambda job: job.status(),
    "tune": lambda job: job.tune(checkpoint_interval="1s"),
    "pause": lambda job: (job.pause(), job.resume()),
    "table": lambda job: job.table(),
}


class Within:
    """A function of a job that calls the job once, at its seventeenth record."""

    def __init__(self, call: Callable[[wb.types.Job], object]) -> None:
        self._call = call
        self.handle = threading.Event()
        self.job: wb.types.Job | None = None
        self.answers: list[object] = []

    def __call__(self, record: dict[str, Any]) -> dict[str, Any]:
        if record["n"] == 17 and not self.answers:
            self.handle.wait()
            assert self.job is not None
            try:
                self.answers.append(("done", self._call(self.job)))
            except wb.errors.JobError as error:
                self.answers.append(str(error))
        return record

    def run(self, **settings: Any) -> wb.types.Job:
        stream = wb.Stream.from_table(ROWS).map(self, ROWS.schema)
        self.job = stream.rebalance().sink_to(wb.TableSink("out")).run("within", **settings)
        self.handle.set()
        return self.job

    def finished(self, job: wb.types.Job) -> None:
        assert job.wait("60s") == "FINISHED"
        assert sorted(job.table()["n"].to_pylist()) == list(range(60))


@pytest.mark.parametrize("call", WAITING)
def test_a_running_job_refuses_its_own_functions_to_wait_for_it(call: str, tmp_path: Path) -> None:
    within = Within(WAITING[call])
    job = within.run(parallelism=2, checkpoint_dir=tmp_path, checkpoint_interval="20ms")
    within.finished(job)
    (answer,) = within.answers
    assert "this call waits for the job 'within', but was made by one of its own functions" in str(answer)
    assert job.status()["checkpoint_interval"] == "20ms"
    assert job.savepoints() == []


@pytest.mark.parametrize("call", [*WAITING, *STEPPING])
def test_so_does_a_stepping_job_which_lost_records(call: str) -> None:
    within = Within({**WAITING, **STEPPING}[call])
    job = within.run(parallelism=2, driver="stepping", buffer_size=4)
    within.finished(job)
    (answer,) = within.answers
    assert "was made by one of its own functions" in str(answer) or "during a step, which would lose" in str(answer)


@pytest.mark.parametrize("driver", ["live", "stepping"])
@pytest.mark.parametrize("call", GOING_ON)
def test_what_only_asks_or_tells_is_done(call: str, driver: Any) -> None:
    within = Within(GOING_ON[call])
    within.finished(within.run(parallelism=2, driver=driver))
    ((done, _),) = within.answers
    assert done == "done"
