"""The benchmarks: their inputs and expectations against naive models, and the command with short runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.bench import bench
from workbench.cli import main
from workbench.cli.command import say
from workbench.dashboard.measured.sweep import SweepPoint, sweep_figures
from workbench.errors import MissingPackageError, SettingError
from workbench.lab.bench.measuring import full_speed, orderings, percentiles, starting, trial
from workbench.lab.bench.measuring.full_speed import FullSpeed
from workbench.lab.bench.measuring.measure import Result
from workbench.lab.bench.measuring.peers import comparable, read_line
from workbench.lab.bench.measuring.report import Report
from workbench.lab.bench.measuring.suites import SUITES, cases
from workbench.lab.bench.measuring.sweep import Sweep
from workbench.lab.bench.measuring.trial import Setting, run_trial
from workbench.lab.bench.works import architectures, crowd, idle, latencies, memory, odd_rows
from workbench.lab.bench.works.ad_events import CAMPAIGN_OF, expected_views
from workbench.lab.bench.works.blocks import (
    BASE_MS,
    BLOCK,
    BLOCK_MS,
    CHUNK_MAX,
    WINDOW_MS,
    Emitted,
    continued,
    continued_text,
    events,
)
from workbench.lab.bench.works.campaigns import Campaigns
from workbench.lab.bench.works.connectors.beside import measured
from workbench.lab.bench.works.connectors.kafka_speed import kafka_speeds
from workbench.lab.bench.works.connectors.postgresql_speed import postgresql_speeds
from workbench.lab.bench.works.connectors.redis_campaigns import RedisCampaigns
from workbench.lab.bench.works.function import Function
from workbench.lab.bench.works.grep import Grep, matching_rows
from workbench.lab.bench.works.grouping import Grouping
from workbench.lab.bench.works.latencies import Latencies, Stamps
from workbench.lab.bench.works.windows import Windows
from workbench.lab.bench.works.work import Work

WITH_REDIS = pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")

# --- inputs


def test_the_blocks_are_what_every_system_gets() -> None:
    block = events()
    assert block.text[0][:24].tobytes() == b"ohxyrga pkdrtur jzjioug "
    assert block.values[:5].tolist() == [406, 847, 682, 213, 511]
    assert block.keys[10_000][:5].tolist() == [7590, 6765, 5855, 8991, 7504]
    assert sorted(block.keys[BLOCK].tolist()) == list(range(BLOCK))
    assert (block.ads[:5].tolist(), block.types[:5].tolist()) == ([556, 437, 367, 800, 42], [0, 2, 1, 1, 2])
    late_ms = np.maximum.accumulate(block.times_ms) - block.times_ms
    assert 900 < late_ms.max() <= 1_000


def test_a_chunk_behind_the_end_of_the_block_begins_anew() -> None:
    column = np.arange(BLOCK)
    assert continued(column, 7)[BLOCK - 1 : BLOCK + 2].tolist() == [BLOCK - 1, 7, 8]
    lines = continued_text()
    assert (len(lines), lines[BLOCK + 3]) == (BLOCK + CHUNK_MAX, lines[3])
    assert lines[BLOCK - 1].as_py().encode() == events().text[BLOCK - 1].tobytes()


chunks = st.lists(st.integers(1, 1_300_000), min_size=1, max_size=30)


@settings(max_examples=40)
@given(sizes=chunks, order=st.randoms(use_true_random=False), left_out=st.integers(0, 3))
def test_what_was_emitted(sizes: list[int], order: object, left_out: int) -> None:
    ends = np.cumsum(sizes).tolist()
    ranges = [(end - size, size) for end, size in zip(ends, sizes, strict=True)]
    order.shuffle(ranges)  # type: ignore[attr-defined]
    ranges = ranges[left_out:] or ranges
    emitted = Emitted()
    for at, (first, count) in enumerate(ranges):
        emitted.add(first, count)
        if at % 3 == 0:
            emitted.ranges()
    times = np.zeros(BLOCK, np.int64)
    by_repetition: Counter[tuple[int, int]] = Counter()
    for first, count in ranges:
        numbers = np.arange(first, first + count)
        np.add.at(times, numbers % BLOCK, 1)
        for repetition in np.unique(numbers // BLOCK).tolist():
            rows = numbers[numbers // BLOCK == repetition] % BLOCK
            by_repetition[repetition, 0] += len(rows)
            by_repetition[repetition, 1] += int(rows.sum())
    assert np.array_equal(emitted.times(), times)
    assert emitted.count == sum(count for _, count in ranges)
    found: Counter[tuple[int, int]] = Counter()
    for repetition, alike, begin, end in emitted.repetitions():
        for at in range(repetition, repetition + alike):
            found[at, 0] += end - begin
            found[at, 1] += (begin + end - 1) * (end - begin) // 2
    assert +found == +by_repetition


def test_expected_views_are_those_of_a_naive_count() -> None:
    emitted = Emitted()
    emitted.add(0, 2 * BLOCK)
    emitted.add(2 * BLOCK + 1_000, 5_000)
    numbers = np.concatenate([np.arange(2 * BLOCK), np.arange(2 * BLOCK + 1_000, 2 * BLOCK + 6_000)])
    block = events()
    row = numbers % BLOCK
    frame = pd.DataFrame({"ad": block.ads[row], "type": block.types[row]})
    frame["time"] = block.times_ms[row] + numbers // BLOCK * BLOCK_MS
    views = frame[frame.type == 0]
    naive = views.groupby([(views.time - BASE_MS) // WINDOW_MS, views.ad // 10]).size().to_dict()
    assert {at: n for at, n in np.ndenumerate(expected_views(emitted)) if n} == naive


def test_matching_rows_are_those_that_duckdb_finds() -> None:
    lines = pa.table({"row": np.arange(BLOCK), "line": continued_text().slice(0, BLOCK)})
    query = "SELECT row FROM lines WHERE regexp_matches(line, 'error [0-9]{3}') ORDER BY row"
    with duckdb.connect() as database:
        database.register("lines", lines)
        assert np.array_equal(database.execute(query).fetchnumpy()["row"], matching_rows())


# --- latencies


def test_stamps_at_a_rate_are_the_times_at_which_records_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([1_000_000, 1_000_500, 1_009_000])
    monkeypatch.setattr(latencies, "now_us", lambda: next(clock))
    stamps = Stamps(1_000.0)  # one a millisecond
    assert stamps.next(1).tolist() == [1_000_000]
    assert stamps.next(1).tolist() == [1_000_500]  # earlier than thought: the schedule began half a millisecond before
    assert stamps.next(3).tolist() == [1_001_500, 1_002_500, 1_003_500]  # the source is behind


def test_percentiles_of_latencies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "now_us", lambda: 5_000_000)
    seen = Latencies(sample=1)
    seen.arrived(np.array([4_999_999]))  # before the measurement
    seen.start()
    assert seen.percentiles_ms() == (None, None, None)
    monkeypatch.setattr(latencies, "now_us", lambda: 6_000_000)
    seen.arrived(6_000_000 - np.arange(1, 1_001)[::-1])  # 1 to 1,000 microseconds
    assert seen.percentiles_ms() == (0.5, 0.9, 0.99)


# --- runs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (Grep, Setting(parallelism=2, seconds=0.5)),
        (lambda: Grouping(10_000, 2, 0), Setting(parallelism=2, seconds=0.5)),
        (lambda: Grouping(10_000, 1, 20_000), Setting(parallelism=1, seconds=0.8, rate=20_000, buffer_timeout_ms=5)),
        (lambda: Grouping(BLOCK, 2, 0), Setting(parallelism=2, seconds=0.5, checkpoint_s=1)),
        (Windows, Setting(parallelism=2, seconds=0.8)),
        (Campaigns, Setting(parallelism=2, seconds=0.8, checkpoint_s=1)),
        pytest.param(RedisCampaigns, Setting(parallelism=2, seconds=0.8, checkpoint_s=1), marks=WITH_REDIS),
        (Function, Setting(parallelism=2, seconds=0.8)),
    ],
)
def test_every_result_is_exact(make: Callable[[], Work], setting: Setting) -> None:
    shares: list[float] = []
    result = run_trial(make, setting, shares.append)
    assert result.checked
    assert result.events > 0
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert result.config["p"] == setting.parallelism
    assert (result.p50_ms is not None) == (result.workload == "W2")


@pytest.mark.slow
def test_a_run_that_was_over_before_it_could_be_measured_is_done_again_with_more_events(monkeypatch) -> None:
    run, limits = trial._limited, []

    class OverAtOnce(Campaigns):
        def start_measuring(self) -> None:
            before = -1
            while len(limits) == 1 and before != self.emitted.count:
                before = self.emitted.count
                time.sleep(0.5)

    def limited(work, setting, checkpoints, limit, on_progress):
        limits.append(limit)
        return run(work, setting, checkpoints, limit, on_progress)

    monkeypatch.setattr(trial, "_limited", limited)
    result = run_trial(OverAtOnce, Setting(parallelism=2, seconds=0.8, checkpoint_s=1), lambda share: None)
    assert result.events > 0
    assert result.checked
    assert limits == [limits[0], 4 * limits[0]]


@pytest.mark.slow
@pytest.mark.parametrize("make", [Grep, lambda: Grouping(10_000, 1, 0), Windows, Campaigns, Function])
def test_a_lost_event_is_noticed(make: Callable[[], Work]) -> None:
    work = make()
    job = work.pipeline(limit=3 * BLOCK).run("bench-lost", parallelism=1, checkpoint_interval=None)
    job.wait("60s")
    assert work.exact()
    missed = int(matching_rows()[0]) if isinstance(work, Grep) else int(np.argmin(events().types))
    work.emitted.add(3 * BLOCK + missed, 1)  # emitted, yet never seen by the sink
    assert not work.exact()


def test_views_are_in_the_database_before_their_window_is_over_and_exact_whatever_fails() -> None:
    """E6: the current values every second."""
    work = Campaigns(rate=10_000)
    job = work.pipeline(limit=25_000).run("campaigns", parallelism=2, checkpoint_interval="100ms")
    first = events().types[:25_000] == 0
    views = np.bincount(CAMPAIGN_OF["campaign"].to_numpy()[events().ads[:25_000][first]], minlength=100)
    seen = np.zeros(100, np.int64)
    while not work.path.exists() or not seen.any():
        job._run.driver.wait_for(job._run.driver.ended, 0.01)
        seen = work.counts()[0] if int(job.status()["checkpoints"]) else seen
    assert (seen <= views).all()
    assert seen.sum() < views.sum()
    job.fail("aggregate[1]")
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 1
    assert work.counts().tolist() == [views.tolist()]  # so few events span no more than one window


@WITH_REDIS
def test_views_are_in_redis_before_their_window_is_over_and_exact_whatever_fails() -> None:
    """E6 with the store of the documents."""
    work = RedisCampaigns(rate=10_000)
    job = work.pipeline(limit=25_000).run("campaigns", parallelism=2, checkpoint_interval="100ms")
    seen = 0
    while not seen:
        job._run.driver.wait_for(job._run.driver.ended, 0.01)
        seen = int(work.counts().sum())
    assert seen < np.count_nonzero(events().types[:25_000] == 0)
    job.faults.fail("aggregate[1]")
    assert job.wait("60s") == "FINISHED"
    assert job.status()["restarts"] == 1
    first = events().types[:25_000] == 0
    views = np.bincount(CAMPAIGN_OF["campaign"].to_numpy()[events().ads[:25_000][first]], minlength=100)
    assert work.counts().tolist() == [views.tolist()]


def test_a_benchmark_with_redis_needs_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SettingError, match="no redis-server on the PATH: install it"):
        RedisCampaigns()


# --- suites and the command


def test_no_run_is_made_twice() -> None:
    every = cases("all", 1.0)
    assert len(set(every)) == len(every)
    assert {case.work for case in every} == {"grep", "bare grep", "grouping", "windows", "campaigns", "function"}
    assert {case.keys for case in cases("grouping", 1.0, keys=BLOCK, parallelism=1)} == {BLOCK}
    assert len(cases("checkpoint", 1.0)) == 6


def test_runs_with_checkpoints_measure_two_of_the_longest_interval() -> None:
    assert {round(case.setting.seconds * (1 - trial.WARM_UP), 6) for case in cases("checkpoint")} == {10}
    assert {case.setting.seconds for case in cases("grouping")} == {6}
    assert {case.setting.seconds for case in cases("checkpoint", 3.0)} == {3}


# --- starts and memory


def test_memory_is_watched_and_the_table_is_exact() -> None:
    seen: list[memory.Sample] = []
    watched = memory.watch(1, 10_000, seen.append, warm_up_s=0.5, period_s=0.5)
    assert watched.exact
    assert watched.samples == tuple(seen)
    assert [round(sample.seconds, 1) for sample in seen] == [pytest.approx(at, abs=0.4) for at in (0.5, 1.0, 1.5)]
    assert [sample.events for sample in seen] == sorted(sample.events for sample in seen)
    assert 20 < seen[0].rss_mb < 20_000
    found = json.loads(watched.to_json())
    assert (found["workload"], found["checked"], found["config"]) == ("memory", True, {"p": 2, "keys": 10_000})


def test_growth_is_from_the_first_fifth_to_the_last() -> None:
    def watched(*rss_mb: float) -> memory.Watch:
        return memory.Watch(1, tuple(memory.Sample(0, 0, 0, each, 0) for each in rss_mb), True)

    assert watched(100, 90, 500, 500, 500, 500, 500, 500, 103, 101).growth == pytest.approx(102 / 95 - 1)
    assert not watched(100, 90, 500, 500, 500, 500, 500, 500, 103, 101).flat
    assert watched(100, 104.9).flat
    assert watched(100, 50).growth == pytest.approx(-0.5)


def test_growing_memory_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    grown = memory.Watch(10, (memory.Sample(0, 0, 0, 100, 0), memory.Sample(9, 1, 1, 110, 0)), True)
    monkeypatch.setattr(memory, "watch", lambda seconds, keys, show: grown)
    assert main(["bench", "memory"]) == 1
    assert "growth +10.0%" in capsys.readouterr().out


def test_a_crowd_is_measured_and_every_job_is_exact() -> None:
    found = list(crowd.crowds(1, wide=4, jobs=3))
    assert [(each.kind, each.p, each.jobs, each.data_s) for each in found] == [
        ("wide", 1, 1, 0),
        ("wide", 4, 1, 0),
        ("jobs", 1, 1, 1),
        ("jobs", 1, 3, 1),
    ]
    assert all(each.checked and 0 < each.started_s < each.seconds and each.cpu_s > 0 for each in found)
    line = json.loads(found[-1].to_json())
    assert line["config"] == {"kind": "jobs", "p": 1, "jobs": 3, "data_s": 1}
    assert (line["peer"], line["workload"], line["checked"]) == ("workbench", "crowd", True)


def test_architectures_keep_what_they_claim_and_no_more() -> None:
    table = architectures.compare_architectures(
        ["snapshots", "changelog:offset_interval=60s", "at-most-once", "acks"],
        seconds=1, rate=8_000, fails_at=[0.7], interval="50ms",
    )  # fmt: skip
    exact, logged, lossy, acked = table.to_pylist()
    assert [row["claimed"] for row in (exact, logged, lossy)] == ["exactly-once", "at-least-once", "at-most-once"]
    assert [row["observed"] for row in (exact, logged, lossy)] == ["exactly-once", "at-least-once", "at-most-once"]
    assert exact["replayed"] < logged["replayed"]  # whose offsets are those of the beginning
    assert (acked["claimed"], acked["lost_rows"], acked["lost_counts"]) == ("at-least-once", 0, 0)
    assert acked["observed"] == ("at-least-once" if acked["doubled_rows"] + acked["doubled_counts"] else "exactly-once")
    assert acked["ack_messages"] > 2 * (8_000 - 5_600) // 1_000  # roots, and batches that were processed
    assert acked["ack_bytes"] > 8_000 * 16 // 4 > exact["ack_bytes"] == 0
    assert exact["buffers"] > 0
    assert 0 < logged["doubled_counts"] <= logged["replayed"]
    assert (logged["lost_rows"], logged["lost_counts"], lossy["doubled_rows"], lossy["replayed"]) == (0, 0, 0, 0)
    assert lossy["lost_counts"] > lossy["lost_rows"] > 0
    assert all(row["records"] == 8_000 and row["recovery_ms"] > 0 for row in (exact, logged, lossy))


def test_transactions_repeat_little_and_count_everything_once() -> None:
    few, single = (
        architectures.compare_one(name, seconds=0.5, rate=8_000, fails_at=[0.7], interval="50ms")
        for name in ("transactions:coalesce=100", "transactions")
    )
    assert (few.records, single.records) == (4_000, 250)
    for each in (few, single):
        assert (each.claimed, each.observed) == ("exactly-once", "exactly-once")
        assert each.recovery_ms > 0
        assert each.replayed <= 100  # what was processed since the last write


def test_an_architecture_that_breaks_its_claim_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = architectures.Compared(
        "snapshots", "exactly-once", "at-least-once", 9, 1.0, 9.0, 1.0, 2.0, 3, 0, 0, 0, 1, 50, 4, 0, 1, 0, 0, 7.0
    )
    kept = replace(broken, observed="exactly-once", doubled_rows=0)
    monkeypatch.setattr(architectures, "compare_one", lambda name, seconds: kept if name == "snapshots" else broken)
    speed = FullSpeed("E1", "at-most-once", 8, 9, 0.25, None, None, 0.0, checked=True)
    monkeypatch.setattr(full_speed, "full_speeds", lambda: [speed])
    assert main(["bench", "architectures", "--repeats", "1", "--json"]) == 1
    *lines, line = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (line["config"]["architecture"], line["eps_cpu_s"], line["part"]) == ("at-most-once", 9, 0.25)
    assert [line["checked"] for line in lines] == [True, *[False] * (len(architectures.ARCHITECTURES) - 1)]
    assert lines[0]["config"] == {"architecture": "snapshots", "claimed": "exactly-once"}
    monkeypatch.setattr(architectures, "compare_one", lambda name, seconds: kept)
    assert main(["bench", "architectures", "--repeats", "1"]) == 0
    printed = capsys.readouterr().out
    assert "observed exactly-once; rows -0 +0" in printed
    assert "E1 at-most-once: 8 records/s at full speed, 9 per CPU second, 25.00% of no mechanism; Storm with" in printed
    monkeypatch.setattr(full_speed, "full_speeds", lambda: [replace(speed, checked=False)])
    assert main(["bench", "architectures"]) == 1
    assert "(wrong results)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "work", [pytest.param(work, marks=pytest.mark.slow if work == "E1" else []) for work in full_speed.WORKS]
)
def test_full_speed_is_that_of_records_which_were_counted(work: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["none", "acks:granularity=record"]
    for seconds in (0.6, 3, 12, 48):  # the first will do where nothing else runs
        alone, acked = full_speed.full_speeds(names, seconds, works=[work])
        if min(alone.eps, acked.eps) > 0 and acked.messages > 1:
            break
    assert min(alone.eps, acked.eps) > 0
    assert (alone.part, acked.part) == (1.0, acked.eps_cpu_s / alone.eps_cpu_s)
    assert acked.messages > 1 > alone.messages
    assert (alone.checked, acked.checked) == (True, True)
    lacks = full_speed.WORKS[work]()
    job = lacks.pipeline().run("lacks")
    job.stop()
    monkeypatch.setattr("workbench.lab.bench.works.blocks.Emitted.times", lambda self: np.ones(BLOCK, np.int64))
    assert not lacks.exact(job)


def speeds(**part: float) -> list[FullSpeed]:
    """Runs of E2 with these speeds beside a run of 100,000 a CPU second; names of architectures without their knobs."""
    given = {"none": 1.0, "snapshots": 1.0, "acks:granularity=record": 0.001, "transactions": 0.01}
    given |= {"transactions:coalesce=1000": 0.2, "micro-batches:batch_interval=200ms": 0.5}
    given |= {name: value for each, value in part.items() for name in given if name.partition(":")[0] == each}
    late = {"micro-batches:batch_interval=200ms": 200.0}
    calls = {"transactions": 2.0, "transactions:coalesce=1000": 0.002}
    return [
        FullSpeed("E2", name, 9, round(value * 100_000), value, late.get(name, 10.0), 300.0, calls.get(name, 0.0), True)
        for name, value in given.items()
    ]


def test_the_orders_of_the_documents_are_looked_for_in_what_was_measured() -> None:
    found = list(orderings.orderings(speeds()))
    assert [each.holds for each in found] == [True] * 4
    assert [each.why for each in found] == [""] * 4
    assert "A median of 200 ms; the highest of the others is 10 ms" in found[1].describe()
    assert "E2, as told: transactions call the store for each record" in found[2].describe()
    assert "2.00 and 0.0020 calls a record" in found[2].found
    assert list(orderings.orderings(speeds()[:1])) == []


def test_an_order_that_differs_has_a_reason_that_was_measured() -> None:
    acks, late, _, little = orderings.orderings(
        [replace(each, p50_ms=250.0) if each.architecture == "snapshots" else each for each in speeds(snapshots=0.9)]
    )
    assert (acks.holds, late.holds, little.holds) == (True, False, False)
    assert late.why == "At full speed records queue before the task that limits it: snapshots (250 ms)."
    assert little.found == "90.0% per CPU second, medians of 1 and 1 runs"
    assert little.why == "The runs differ by 0% and 0% among themselves."
    few = [replace(each, eps_cpu_s=50) if each.architecture == "transactions" else each for each in speeds()]
    acks = next(orderings.orderings(few))
    assert not acks.holds
    assert "less: transactions 50" in acks.found
    assert acks.why.startswith(
        "transactions takes 20,000 µs of a core for a record, with 2.0 calls of its store, an ack"
    )
    assert acks.why.endswith("where records share a write, it is 50.0 µs, so the calls cost it.")
    assert json.loads(acks.to_json())["holds"] is False


def test_what_jobs_without_much_to_do_take_is_measured() -> None:
    found = idle.measure(idle.Kind("paced", 1_000, "50ms"), 2, 1, settled_s=0.2)
    assert (found.jobs, found.kept_up) == (2, True)
    assert 0 < found.cpu_percent < 100
    line = json.loads(found.to_json())
    assert line["config"] == {"kind": "paced", "jobs": 2, "rate": 1_000}
    assert (line["peer"], line["workload"], line["kept_up"]) == ("workbench", "idle", True)


@pytest.mark.slow
def test_each_kind_of_job_with_little_to_do_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = idle.KINDS[0]
    monkeypatch.setattr(idle, "KINDS", (kind,))
    (found,) = idle.idles(seconds=1)
    assert (found.kind, found.jobs, found.rate) == ("paused", 1, kind.rate)
    assert found.memory_mb > 0


def test_a_source_that_falls_behind_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    late = idle.Idle("100 records/s", 150, 100, 10.0, 99.0, False, 0.2)
    monkeypatch.setattr(idle, "idles", lambda seconds: [late])
    assert main(["bench", "idle", "--repeats", "1"]) == 1
    assert capsys.readouterr().out == "100 records/s, 150 jobs: 99.00 % of a core, 0.20 MB each; it FELL BEHIND\n"


def test_a_crowd_with_a_wrong_result_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = crowd.Crowded("jobs", 1, 150, 10, 1.0, 12.0, 9.0, False)
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(crowd, "crowds", lambda seconds, wide: given.append((seconds, wide)) or [lost])
    assert main(["bench", "crowd", "--repeats", "1", "--seconds", "3", "--parallelism", "8"]) == 1
    assert given == [(3, 8)]
    assert "the results are WRONG" in capsys.readouterr().out


def test_percentiles_are_compared_with_those_of_the_records(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(percentiles, "WARM_UP_S", 0.2)
    monkeypatch.setattr(percentiles, "AFTER_S", 1.0)
    [found] = percentiles.compare(1_000, event_time=True, timeouts_ms=(50, 200))
    assert (found.rate, found.event_time, found.timeout_ms) == (1_000, True, 200)
    assert found.records > 100
    assert 20 < found.exact_p50_ms < found.exact_p99_ms
    close = percentiles.Compared(300, False, 100, 900, 50.0, 99.0, 48.0, 98.0, 52.0, 100.0)
    off = replace(close, sentence_p50_ms=60.0)
    assert (close.agrees, off.agrees) == (True, False)
    monkeypatch.setattr(percentiles, "percentiles", lambda: [close, off])
    assert main(["bench", "percentiles"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("OFF by more than a tenth") for line in lines] == [False, True]
    assert json.loads(close.to_json())["config"] == {"rate": 300, "event_time": False, "timeout_ms": 100}


def test_the_windows_of_a_crowd_are_checked_row_by_row() -> None:
    job = crowd._start(crowd._pipeline(1_500, None), "bench-crowd-checked", 1, 0, Path())
    job.wait("60s")
    table = job.table("windows")
    assert crowd._is_exact(table, 1_500)
    assert not crowd._is_exact(table.slice(1), 1_500)
    wrong = pa.array(np.array(table.column("s")) + np.eye(1, len(table), dtype=np.int64)[0])
    assert not crowd._is_exact(table.set_column(table.schema.get_field_index("s"), "s", wrong), 1_500)


@pytest.mark.slow
def test_a_start_is_measured_in_a_new_process(capsys: pytest.CaptureFixture[str]) -> None:
    start = starting._in_new_process({})
    assert min(start.import_s, start.extension_s, start.first_s, start.second_s) > 0
    starting.table([("cached", start), ("cached", replace(start, import_s=1.5))], say)
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["milliseconds", "import", "%load_ext", "first", "job", "next", "job"]
    assert line.split()[1] == f"{1_000 * (1.5 + start.import_s) / 2:,.0f}"


@pytest.mark.slow
def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "grep", "--json", "--seconds", "1", "--repeats", "1", "--parallelism", "1"]) == 0
    printed = capsys.readouterr()
    found, bare = map(json.loads, printed.out.splitlines())
    assert {"peer", "workload", "config", "eps", "eps_core", "eps_cpu_s", "checked", "rss_mb", "load1"} <= found.keys()
    assert (found["peer"], found["workload"], found["config"], found["checked"]) == ("workbench", "W1", {"p": 1}, True)
    assert found["eps_core"] == found["eps"]
    assert bare.keys() == found.keys()
    assert (bare["peer"], bare["workload"], bare["checked"]) == ("bare", "W1", True)
    assert bare["config"] == {"p": 1, "kernel": "the compiled expression"}


@pytest.mark.slow
def test_a_wrong_result_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Grep, "exact", lambda self: False)
    assert main(["bench", "grep", "--seconds", "1", "--repeats", "1", "--parallelism", "1"]) == 1
    assert "WRONG" in capsys.readouterr().out


PEER = """
import json, sys
assert sys.argv[1:] == ["W1", "1"], sys.argv
common = dict(peer="other", workload="W1", eps=1000, eps_core=500, eps_cpu_s=1000, p50_ms=None,
    p90_ms=None, p99_ms=None, checked=True, rss_mb=1, cores=2, events=1000, seconds=1, load1=0.5, unknown=1)
for p in (1, 2):
    print(json.dumps(dict(common, config=dict(p=p, trick=7))))
print(json.dumps(dict(peer="other", workload="W1", skipped="why")))
"""


@pytest.mark.slow
def test_peers_stand_beside_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other_peer.py").write_text(PEER)
    (tmp_path / "broken_peer.py").write_text("raise SystemExit('no luck')")
    monkeypatch.setenv("PEER_PY", sys.executable)
    options = ["--peers", str(tmp_path), "--peer", "other", "--peer", "broken", "--seconds", "1", "--repeats", "1"]
    assert main(["bench", "grep", "--parallelism", "1", *options]) == 0
    printed = capsys.readouterr()
    assert "broken_peer.py W1: exit code 1: no luck" in printed.err
    rows = [line for line in printed.out.splitlines() if " other " in line]
    assert len(rows) == 1  # the one of the same parallelism
    assert "trick 7" in rows[0]
    assert re.search(r"[\d,.]+x", rows[0])


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["bench", "grouping", "--keys", "5"], "(choose from "),
        (["bench", "speed"], "unknown benchmark 'speed'"),
        (["bench", "grep", "--peers", "/no/such"], "there is no such folder"),
        (["bench", "grep", "--peer", "flink"], "--peer chooses among the scripts of --peers: name their folder, too"),
        (["bench", "grep", "--html", "x.html"], "--html does nothing for 'workbench bench grep': leave it out"),
        (["bench", "grep", "--page", "served"], "--page does nothing for 'workbench bench grep': leave it out"),
        (["bench", "windows", "--keys", "10000"], "--keys does nothing for 'workbench bench windows': leave it out"),
        (["bench", "memory", "--repeats", "2"], "--repeats does nothing for 'workbench bench memory': leave it out"),
        (["bench", "crowd", "--keys", "10000"], "--keys does nothing for 'workbench bench crowd': leave it out"),
        (["bench", "start", "--seconds", "2"], "--seconds does nothing for 'workbench bench start': leave it out"),
        (["bench", "chaos", "--html", "/no/such/x.html"], "and there is no folder '/no/such': create it first"),
        (["bench", "chaos", "--html", "/"], "--html is '/', which is a folder: name a file"),
        (["bench", "grep", "--parallelism", "7"], "no run of grep has parallelism 7: leave it out, or choose another"),
    ],
)
def test_mistakes(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: int | str | None = main(argv)
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert sentence in capsys.readouterr().err


# --- reports


def result(peer: str = "workbench", speed: int = 100, **config: object) -> Result:
    """A result of W2 with this speed."""
    return Result("W2", config, speed, speed, speed, True, 1, 2, speed, 1.0, 0.1, 1.0, 2.0, 3.0, peer)


def test_what_can_be_compared() -> None:
    ours = result(p=2, keys=10_000, timeout=100, checkpoint=5, rate=0, completed=3)
    assert comparable(ours, result(p=2, keys=10_000, timeout=100, checkpoint=5, rate=0, ser="tuple", completed=9))
    assert not comparable(ours, result(p=2, keys=10_000, timeout=5, checkpoint=5, rate=0))
    assert not comparable(ours, result(p=2, keys=10_000))  # says nothing of checkpoints, so it has none
    assert comparable(result(p=2, keys=10_000, timeout=100, checkpoint=0, rate=0), result(p=2, keys=10_000))
    assert not comparable(ours, replace(ours, workload="W1"))


def test_a_report_shows_medians_and_ratios() -> None:
    ours = [result(speed=speed, p=2, checkpoint=0) for speed in (50, 400, 100)]
    with_checkpoints = [result(speed=each, p=2, checkpoint=5, completed=each) for each in (49, 392, 98)]
    report = Report([*ours, *with_checkpoints, result("flink", 25, p=2)])
    assert [(each.peer, each.eps_cpu_s) for each in report.medians()] == [
        ("workbench", 100),
        ("workbench", 98),
        ("flink", 25),
    ]
    text = repr(report)
    assert "4.00x" in text
    assert "98.0% of no checkpoints" in text
    assert "4.00x" in report._repr_html_()
    assert report.exact
    assert not Report([replace(ours[0], checked=False)]).exact


def test_the_cost_of_checkpoints_is_compared_round_by_round() -> None:
    # The machine is half as fast in the second round, and the medians, 100 and 60, would say 60 %.
    speeds = [(200, 190), (100, 60), (50, 48)]
    rounds = [(result(speed=one, p=2, checkpoint=0), result(speed=two, p=2, checkpoint=5)) for one, two in speeds]
    report = Report([each for both in rounds for each in both])
    with_them = next(each for each in report.medians() if each.config["checkpoint"] == 5)
    assert report.share_without_checkpoints(with_them) == pytest.approx(0.95)  # of 0.95, 0.6 and 0.96
    assert "95.0% of no checkpoints" in repr(report)
    assert report.share_without_checkpoints(rounds[0][0]) is None
    assert Report([with_them]).share_without_checkpoints(with_them) is None


def test_a_line_of_another_system() -> None:
    line = json.dumps({"peer": "x", "skipped": "y"})
    assert read_line(line) is None


def test_the_picture_of_a_sweep() -> None:
    points = [SweepPoint(0, 0.1, 0.2, 3.0, 1e6), SweepPoint(5, 2.0, 3.0, 9.0, 2e6)]
    latency, speed = sweep_figures(points, 100_000)
    [line] = [item for item in latency.renderers if getattr(item.glyph, "y", None) == "p99"][:1]
    assert line.data_source.data["p99"] == [3.0, 9.0]
    assert latency.x_range.factors == ["0 ms", "5 ms"]
    assert speed.y_range.end == pytest.approx(2.2e6)


def test_a_sweep_writes_a_page_and_shows_itself(tmp_path: Path) -> None:
    results = [result(speed=speed, p=2, timeout=timeout, rate=rate) for speed, timeout, rate in SWEEP]
    page = Sweep(results).save(tmp_path / "e4.html").read_text()
    assert "buffer timeout" in page
    assert "100,000 records/s" in page
    assert Sweep(results)._repr_html_().startswith("<iframe")


SWEEP = [(100, 0, 100_000), (900, 0, 0), (100, 5, 100_000), (950, 5, 0)]


def test_from_a_notebook() -> None:
    report = bench("grep", repeats=1, seconds=0.5, parallelism=1)
    assert [(each.peer, each.workload) for each in report.results] == [("workbench", "W1"), ("bare", "W1")]
    assert report.exact
    with pytest.raises(SettingError, match="unknown benchmark 'gerp'"):
        bench("gerp")
    assert set(SUITES) == {"grep", "grouping", "windows", "campaigns", "redis", "function", "latency"} | {
        "checkpoint",
        "sweep",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("speeds", "lines"), [(kafka_speeds, 5), (postgresql_speeds, 2)])
def test_connectors_beside_their_clients(speeds: Any, lines: int) -> None:
    try:
        found = list(speeds(1, rows=2_000))
    except (SettingError, MissingPackageError) as error:
        pytest.skip(str(error))
    assert [one.exact for one in found] == [True] * lines
    assert found[0].shares == {}
    assert all(share > 0 for one in found for share in one.shares.values())
    assert found[-1].shares
    assert "rows per CPU second" in found[-1].describe()
    assert json.loads(found[-1].to_json())["rows"] == 2_000


def test_a_server_process_may_end_while_its_time_is_read() -> None:
    def children() -> list[psutil.Process]:
        with subprocess.Popen(["sleep", "60"]) as child:
            found = [psutil.Process(child.pid)]
            child.kill()
        return found

    server: Any = SimpleNamespace(cpu_times=psutil.Process().cpu_times, children=children)
    found = measured("write", 10, lambda: True, server=server)
    assert found.exact
    assert found.cpu_s > 0


def test_odd_rows_are_null_whatever_their_share() -> None:
    for found in odd_rows.costs(rows=200, pairs=1):
        assert found.exact, found.describe()
        assert found.ratios[0] == 1
        assert json.loads(found.to_json())["ratios"] == list(found.ratios)
