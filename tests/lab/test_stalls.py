"""E9: naive checkpoints against distributed snapshots are measured, checked and drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from workbench.cli.entry import main
from workbench.clock import VirtualClock
from workbench.dashboard.measured.stalls import StallRun, stalls_figures
from workbench.lab.bench.measuring import stalls
from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.stalls import MODES, RATE, Moment, Stalled, WatchedGrouping

RESULT = Result("W2", {}, 9, 9, 9, checked=True, rss_mb=1, cores=1, events=9, seconds=1.0, load1=0.0, p50_ms=1.0)


def test_both_runs_of_a_way_are_exact_and_its_slowest_records_are_known() -> None:
    (found,) = stalls.stalls(lambda passed: None, seconds=1.0, keys=[50_000], modes=["stop-the-world"])
    assert found.exact
    assert found.at_rate.config["keys"] == 50_000
    assert found.at_full_speed.events > found.at_rate.events > 0
    assert found.at_rate.p99_ms is not None
    assert found.worst_ms >= found.at_rate.p99_ms > 0
    assert "stop the world" in found.describe()
    assert "wrong results" in replace(found, at_rate=replace(found.at_rate, checked=False)).describe()


def test_a_moment_has_the_slowest_of_the_records_that_came_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = VirtualClock(1_000_000)
    monkeypatch.setattr(stalls, "now_us", clock.now_us)
    monkeypatch.setattr("workbench.lab.bench.works.latencies.now_us", clock.now_us)
    work = WatchedGrouping(10_000, 1, RATE)
    row = pa.record_batch({"key": [1], "n": [1], "s": [1]})
    work._keep(row, np.array([999_000]))  # before measuring
    work.start_measuring()
    for now, created in ((1_010_000, 1_004_000), (1_049_000, 1_009_000), (1_120_000, 1_118_000), (1_130_000, 990_000)):
        clock.advance_to(now)
        work._keep(row, np.array([created]))
    assert work.moments() == (Moment(0.0, 40.0), Moment(0.1, 2.0))


def test_the_command_prints_each_way_and_draws_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        Stalled(mode, keys, RESULT, replace(RESULT, checked=mode != "none"), (Moment(0.1, 5.0),))
        for keys in (10, 20)
        for mode in MODES
    ]
    monkeypatch.setattr(stalls, "stalls", lambda on_progress, seconds: found[1:3])
    page = tmp_path / "stalls.html"
    assert main(["bench", "stalls", "--json", "--html", str(page)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["config"]["mode"] for line in lines] == ["snapshots", "stop-the-world"]
    assert [line["worst_ms"] for line in lines] == [5.0, 5.0]
    assert "distributed snapshots" in page.read_text()
    monkeypatch.setattr(stalls, "stalls", lambda on_progress, seconds: found)
    assert main(["bench", "stalls", "--html", str(page)]) == 1
    assert capsys.readouterr().out.count("(wrong results)") == 2


def test_the_picture_has_the_largest_state_over_time_and_all_sizes() -> None:
    runs = [
        StallRun(name, keys, 1.0, worst, 7.0, [0.0, 0.1], [worst, 1.0])
        for keys, worst in ((10, 5.0), (20, 9.0))
        for name in ("a", "b")
    ]
    over_time, latency, speed = stalls_figures(runs, 1_000)
    lines = [[list(each.data_source.data["y"]) for each in plot.renderers] for plot in (over_time, latency, speed)]
    assert lines[0] == [[9.0, 1.0], [9.0, 1.0]]
    assert lines[1] == [[5.0, 9.0]] * 4  # a line and its dots for each way
    assert lines[2] == [[7.0, 7.0]] * 4
    assert [item.label.value for item in over_time.legend.items] == ["a", "b"]
    assert latency.x_range.factors == ["10", "20"]
