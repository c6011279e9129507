"""The reports of ``workbench bench spark`` and ``history``; the runs themselves need Spark."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.cli.entry import main
from workbench.lab.bench import apart_runs
from workbench.lab.bench.on_spark import campaigns, delays, histories, watching
from workbench.lab.bench.on_spark.campaigns import KERNEL, LANES, SPARK, Counted
from workbench.lab.bench.on_spark.delays import MASTERS, Answer, ratios
from workbench.lab.bench.on_spark.histories import Written
from workbench.lab.bench.on_spark.watching import Watched


def test_the_ratio_is_of_warm_rounds_and_each_master_has_one() -> None:
    found = [
        Answer(engine, master, number, seconds * (9 if number == 1 else 1), 3, True)
        for master, slower in zip(MASTERS, (1.1, 3.0), strict=True)
        for number in (1, 2, 3)
        for engine, seconds in (("translated", 2.0 * slower), ("by hand", 2.0))
    ]
    for line, ratio in zip(ratios(found), ("1.10", "3.00"), strict=True):
        assert f"takes {ratio} times as long" in line
    assert ratios([each for each in found if each.round == 1]) == []


def test_wrong_rows_end_with_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs = [Answer("kernel", "", 1, 0.5, 3, True), Answer("by hand", MASTERS[0], 1, 0.5, 2, False)]
    monkeypatch.setattr(apart_runs, "flights_history", lambda: SimpleNamespace(path=tmp_path))
    monkeypatch.setattr(delays, "answers", lambda log, rounds: runs)
    monkeypatch.setattr(campaigns, "lanes", lambda rounds, tell: ())
    assert main(["bench", "spark", "--json"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["peer"], line["config"]["engine"], line["exact"]) for line in lines] == [
        ("workbench", "kernel", True),
        ("spark", "by hand", False),
    ]
    assert "WRONG ROWS" in runs[1].describe()


def test_campaigns_are_counted_in_the_kernel_as_the_events_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so they are by each lane on Spark, which the benchmark shows: the same pipelines."""
    assert [lane for lane in LANES if lane[0] == SPARK] == [(SPARK, "spark", "join"), (SPARK, "spark", "look-up")]
    monkeypatch.setattr(campaigns, "LANES", [lane for lane in LANES if lane[0] == KERNEL])
    told: list[str] = []
    found = list(campaigns.lanes(1, told.append, rows=20_000))
    assert [(one.campaigns, one.exact, one.events) for one in found] == [
        ("join", True, 20_000),
        ("join", True, 20_000),
        ("look-up", True, 20_000),
    ]
    assert "join, micro-batches" in found[1].describe()
    assert told == ["E6: 20,000 events as a history"]
    monkeypatch.setattr(campaigns, "_counts", lambda table: np.zeros((0, 100), np.int64))
    assert not next(campaigns.lanes(1, told.append, rows=20_000)).exact


def test_wrong_counts_on_spark_end_with_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(apart_runs, "flights_history", lambda: SimpleNamespace(path=tmp_path))
    monkeypatch.setattr(delays, "answers", lambda log, rounds: [])
    found = [Counted(SPARK, "spark", "join", "native", 1, 2.0, 100, exact) for exact in (True, False)]
    monkeypatch.setattr(campaigns, "lanes", lambda rounds, tell: found[:1])
    assert main(["bench", "spark"]) == 0
    assert "Spark (real) join, native" in capsys.readouterr().out
    monkeypatch.setattr(campaigns, "lanes", lambda rounds, tell: found)
    assert main(["bench", "spark", "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[0])["config"]["tier"] == "native"


def test_a_batch_that_nobody_saw_ends_with_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [Watched(watched, 2, 4.0 + watched, 3.0, 40, 40 * watched) for watched in (False, True)]
    monkeypatch.setattr(apart_runs, "flights_history", lambda: SimpleNamespace(log=None))
    monkeypatch.setattr(watching, "watching", lambda log, rounds: runs)
    assert main(["bench", "watch"]) == 0
    assert "takes 1.250 times as long, and 1.000 times the CPU time" in capsys.readouterr().out
    runs.append(Watched(True, 3, 4.0, 3.0, 40, 39))
    assert main(["bench", "watch", "--json"]) == 1
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["seen"] == 39


def test_a_history_is_told_with_its_share_of_plain_parquet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def write(rows: int, tell: object) -> Written:
        asked.append(rows)
        return Written(rows, 10.0, 15.0, 4.0, 1_100, 300, rows < 10)

    monkeypatch.setattr(histories, "write", write)
    assert main(["bench", "history", "--rows", "3"]) == 0
    assert "3 records as a history: 15.0 s, 0 rows/s, 1.50 times Spark's write.parquet" in capsys.readouterr().out
    assert main(["bench", "history"]) == 1
    assert asked == [3, 50_000_000]
