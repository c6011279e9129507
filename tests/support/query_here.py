"""A streaming query in this process in place of Spark's: the carried tier in micro-batches, on a thread of its own.

It has the part of ``StreamingQuery`` that a job uses, and keeps what Spark keeps in the checkpoint directory: the state
of each task, the offsets and the commits. ``tests/spark/test_engine_spark.py`` drives the same verbs on Spark.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from batched_run import one_level, written
from pyspark import cloudpickle

from workbench.spark.carried.level import Row
from workbench.spark.carried.plan import TOLD, CarriedPlan
from workbench.spark.engine.batch import Batch
from workbench.spark.engine.reading import BEGIN, Reading, logged
from workbench.spark.jobs import batch_limits, launch, query_runner
from workbench.spark.sending.sent import sent


class QueryHere:
    """Runs batches until it is stopped, or a batch fails.

    Args:
        plan: of the pipeline.
        root: of its checkpoint directory.
        batch_rows: records of a batch, about.
        write: called with each batch.
        gate: each batch takes one of its permits.
    """

    def __init__(
        self, plan: CarriedPlan, root: Path, batch_rows: int, write: Callable[[Batch], None], gate: threading.Semaphore
    ) -> None:
        self._plan: CarriedPlan = cloudpickle.loads(sent(plan))  # as in a worker
        self._root, self._write, self._gate = root, write, gate
        self._rows = batch_rows
        self._stopped = threading.Event()
        self._idle = threading.Event()
        self._error: Exception | None = None
        self.name, self.id, self.runId = plan.job, "an-id", id(self)
        self.recentProgress: list[dict[str, Any]] = []
        for name in ("offsets", "commits"):
            (root / "spark" / name).mkdir(parents=True, exist_ok=True)
        self._thread = threading.Thread(target=self._run, name="query", daemon=True)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802  Spark's name
        return not self._stopped.is_set()

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802  Spark's name
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> Exception | None:
        return self._error

    def processAllAvailable(self) -> None:  # noqa: N802  Spark's name
        self._idle.wait(20)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(20)

    def _run(self) -> None:
        try:
            self._batches()
        except Exception as error:  # noqa: BLE001  a batch may fail in any way, and Spark tells of it
            self._error = error
            self._stopped.set()

    def _batches(self) -> None:
        reading = Reading(self._plan, self._root / "source", self._rows)
        try:
            while not self._stopped.is_set():
                if not self._gate.acquire(timeout=0.01):
                    continue
                number, offset, states = self._committed()
                end = reading.next_offset(offset)
                if end == offset:
                    self._idle.set()
                    self._stopped.wait(0.01)
                    continue
                self._begin(number + 1, end)
                columns = [column.to_pylist() for column in logged(self._root / "source", end["batch"]).columns]
                rows: list[Row] = list(zip(*columns, strict=True))
                read = len(rows)
                for level in range(self._plan.levels):
                    rows = one_level(self._plan, level, rows, states)
                told = [json.loads(payload) for task, _, payload in rows if task == TOLD]
                self._write(Batch(number + 1, written(self._plan, rows), told))
                self._commit(number + 1, end, states)
                reading.forget(end)
                self.recentProgress.append(report(number + 1, read))
        finally:
            reading.close()

    def _committed(self) -> tuple[int, Any, dict[tuple[int, int], bytes]]:
        """The last batch, its offset, and the state of each task by level and task."""
        file = self._root / "spark" / "state.json"
        if not file.exists():
            return -1, BEGIN, {}
        number, offset, states = json.loads(file.read_bytes())
        return number, offset, {(level, task): bytes.fromhex(state) for level, task, state in states}

    def _begin(self, number: int, offset: Any) -> None:
        (self._root / "spark" / "offsets" / str(number)).write_text(f"v1\n{{}}\n{json.dumps(offset)}")

    def _commit(self, number: int, offset: Any, states: dict[tuple[int, int], bytes]) -> None:
        kept = [(*place, state.hex()) for place, state in states.items()]
        (self._root / "spark" / "state.json").write_text(json.dumps((number, offset, kept)))
        (self._root / "spark" / "commits" / str(number)).write_text("v1\n{}")


def run_here(patch: pytest.MonkeyPatch, batch_rows: int = 100) -> threading.Semaphore:
    """Let jobs on Spark run here; returns the gate, through which batches go one by one as it is released."""
    gate = threading.Semaphore(0)

    def start(session: Any, plan: CarriedPlan, root: Path, *, batch_rows: int, write: Any, **others: Any) -> QueryHere:
        return QueryHere(plan, root, batch_rows, write, gate)

    patch.setattr(batch_limits, "BATCH_ROWS", batch_rows)
    patch.setattr(query_runner, "start_carried", start)
    patch.setattr(launch, "query_session", lambda given, partitions, several: None)
    return gate


def report(number: int, rows: int) -> dict[str, Any]:
    """A progress report of the kind that Spark gives."""
    return {
        "batchId": number,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "numInputRows": rows,
        "durationMs": {"addBatch": 5, "walCommit": 1, "triggerExecution": 6},
    }
