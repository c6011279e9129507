"""Sources and sinks of every kind in one query of a job on Spark, which fails in the middle of a batch and is resumed.

The query runs here in place of Spark's, with the same readers, operators, sinks and files.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from query_here import run_here
from spark_connectors import EXPECTED, PASSWORDS, everything, servers

from workbench.errors import JobError
from workbench.spark.engine.epochs import Epochs
from workbench.spark.jobs import query_runner

COMMITTED = 5
"""Sinks that have committed the second batch when the next one fails."""


def test_no_sink_loses_or_repeats_a_row_when_only_some_have_committed_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = run_here(monkeypatch, 1_500)
    gate.release(100)
    monkeypatch.setattr(query_runner, "environment_sent", lambda spark, graph: nullcontext())
    for name, value in PASSWORDS.items():
        monkeypatch.setenv(name, value)
    write = Epochs.write

    def failing(self: Epochs, batch: int, rows: Any) -> None:
        if batch == 1:
            monkeypatch.setattr(list(self._operators.values())[COMMITTED], "notify_complete", lambda epoch: 1 // 0)
        write(self, batch, rows)

    def run() -> Any:
        checkpoints = tmp_path / "checkpoints"
        return everything(tmp_path).run("connected", engine="spark", checkpoint_dir=checkpoints, resume=True)

    with servers(tmp_path) as between:
        with monkeypatch.context() as patch:
            patch.setattr(Epochs, "write", failing)
            with pytest.raises(JobError):
                run().wait("60s")
        first = between.written()
        assert first["sqlite"].total() > first["nats"].total() > 0  # the first sink is a batch ahead of the last one
        assert run().wait("60s") == "FINISHED"
        found = between.written()
    assert {name for name, rows in found.items() if rows != EXPECTED} == set()
    called = [tuple(json.loads(line).values()) for line in (tmp_path / "called.jsonl").read_text().splitlines()]
    assert set(called) == set(EXPECTED)  # at least once
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if PASSWORDS["WB_PG_PASSWORD"].encode() in path.read_bytes()] == []
