"""Seeded simulations of the whole runtime: every promise is kept, and a seed determines everything."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.connectors.replay.log import ReplayLog
from workbench.connectors.tables.tables import Tables
from workbench.drivers.contract.serial import CLOCK
from workbench.drivers.faults.crash_points import COORDINATOR
from workbench.drivers.faults.fault_names import POINTS
from workbench.drivers.faults.faults import Fault, FaultInjector, FaultPlan, Killed, faults_named
from workbench.errors import JobError, SettingError
from workbench.lab import TOPOLOGIES, simulate
from workbench.lab.pipelines import run_folder
from workbench.lab.pipelines.committed import committed
from workbench.lab.pipelines.databases import read_database
from workbench.lab.pipelines.inputs import STEP_US, Chance
from workbench.lab.pipelines.recorded import recorded
from workbench.lab.pipelines.run_folder import make_run_folder, remove_run_folder
from workbench.lab.pipelines.topologies import _by_window, _source
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.simulation import Simulation, run_scenario

SEEDS = 160
CHUNK = 20


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_every_promise_is_kept(first: int) -> None:
    broken = [str(result) for seed in range(first, first + CHUNK) if not (result := simulate(seed)).ok]
    assert broken == []


@pytest.mark.parametrize("name", sorted(TOPOLOGIES))
def test_every_pipeline_is_simulated(name: str) -> None:
    results = [simulate(seed, pipelines=[name]) for seed in range(4)]
    assert [str(result) for result in results if not result.ok] == []
    assert {result.pipeline for result in results} == {name}
    assert sum(result.checkpoints for result in results) >= 4  # each run ends with one at least


def test_runs_differ_and_are_disturbed() -> None:
    results = [simulate(seed) for seed in range(80)]
    assert len({result.trace_hash for result in results}) == 80
    assert sum(result.restarts for result in results) > 5
    assert sum(result.processes > 1 for result in results) > 5
    assert len({fault.rpartition(" ")[0] for result in results for fault in result.faults}) > 12


@pytest.mark.parametrize("name", ["filtered", "windows", "united", "layered", "replayed", "in files"])
def test_a_run_leaves_nothing_to_the_garbage_collector(name: str) -> None:
    undisturbed = Scenario(5, {name: TOPOLOGIES[name]}, faults=FaultPlan(), actions=())
    run_scenario(undisturbed)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        assert run_scenario(undisturbed).ok
        gc.collect()
        # Threads of other tests in this process may leave something as well, but nothing of a simulation.
        left = Counter(type(one).__name__ for one in gc.garbage if type(one).__module__.startswith("workbench."))
        assert left.total() < 10, left  # the class of its channels and a storage, which refer to themselves
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_seed_is_one_run_in_any_process() -> None:
    code = "from workbench.lab import simulate\nfor seed in (1, 2, 3, 5): print(simulate(seed).trace_hash)"
    hashes = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for hash_seed in ("0", "12345")
    ]
    assert hashes[0] == hashes[1] == [simulate(seed).trace_hash for seed in (1, 2, 3, 5)]


@pytest.mark.parametrize("fair", [False, True])
def test_in_a_fair_run_time_passes_only_while_nobody_can_do_anything(fair: bool) -> None:
    """What is slower than the barriers that come to it would otherwise never be done: safety first, then liveness."""
    hurried = 0
    for seed in range(8):
        with Simulation(Scenario(seed, {"united": TOPOLOGIES["united"]}, faults=FaultPlan(()), actions=())) as run:
            while run.step():
                driver = run.driver
                if fair:
                    driver.be_fair()
                waiting = bool(driver._awake()) and not driver.ended.is_set()
                steps = len(run.trace)
                run.step()
                hurried += waiting and run.trace[steps:][:1] != [] and run.trace[steps].startswith(f"{CLOCK} ")
            assert run.master.state == "FINISHED"
    assert (hurried == 0) == fair


def test_an_unknown_pipeline_is_refused() -> None:
    with pytest.raises(SettingError, match="did you mean 'windows'"):
        simulate(1, pipelines=["window"])


def test_a_result_tells_its_run() -> None:
    result = simulate(7, pipelines=["filtered"])
    assert str(result).startswith("seed 7: filtered, buffers of ")
    assert result.story == ()


def test_a_plan_is_drawn_within_what_can_be_survived() -> None:
    chance = Random(1)
    plans = [FaultPlan.draw(chance, kills=False) for _ in range(600)]
    kinds = {fault.kind for plan in plans for fault in plan.faults}
    assert kinds == {"crash", "machine", "coordinator", "error", "jump", "late", "twice", "swapped"}
    assert {len(plan.faults) for plan in plans} == {0, 1, 2, 3}
    on_disk = [fault for _ in range(600) for fault in FaultPlan.draw(chance, kills=True).faults]
    assert {fault.point for fault in on_disk} == set(POINTS)
    assert all(fault.kind in POINTS[fault.point] for fault in on_disk)


def test_faults_are_asked_for_by_name() -> None:
    assert faults_named(["torn file"]) == [("restart", "torn")]
    assert faults_named(["kill", "fsync", "notify"]) == [("fsync", "kill"), ("notify", "kill")]
    assert faults_named(["mid-file"], on_disk=False) == []
    assert {fault.kind for _ in range(50) for fault in FaultPlan.draw(Random(2), kills=True, only=["kill"]).faults} == {
        "kill"
    }
    with pytest.raises(SettingError, match="did you mean 'slow disk'"):
        faults_named(["slow disc"])


def test_each_kind_that_is_asked_for_is_as_likely_as_the_others() -> None:
    chance = Random(4)
    plans = [FaultPlan.draw(chance, kills=True, only=["kill", "flipped bit"]) for _ in range(300)]
    kinds = Counter(fault.kind for plan in plans for fault in plan.faults)
    assert kinds.keys() == {"kill", "flipped"}  # a kill can happen at 26 places, a flipped bit at one
    assert min(kinds.values()) > 0.4 * kinds.total()
    assert len({fault.point for plan in plans for fault in plan.faults if fault.kind == "kill"}) > 20


def test_inputs_are_mostly_short_and_sometimes_long() -> None:
    lengths = Counter(len(_source(Random(seed))[1]) for seed in range(400))
    assert lengths.keys() == {0, 1, 2, 3, 4, 6, 20, 40}
    assert 4 < lengths[20] + lengths[40] < 25  # one of thirty
    assert {len(_source(Chance(str(seed), long=True))[1]) for seed in range(20)} == {20, 40}
    assert {len(_source(Chance(str(seed), 3, long=True))[1]) for seed in range(20)} == {3}


@pytest.mark.parametrize("long", [False, True])
def test_a_history_is_copied_for_each_run(long: bool, tmp_path: Path) -> None:
    for copy in ("first", "second"):
        for seed in range(12):
            folder = tmp_path / copy / str(seed)
            log, rows = recorded(Chance(str(seed)), folder, 5, long=long)
            log.verify()
            read = [row for channel in range(log.channels) for row in _read(log, channel)]
            assert sorted(read) == [(row.n, row.key, row.v) for row in rows]
            assert not long or len(rows) >= 20


def test_the_folder_of_a_run_goes_with_all_that_is_in_it_and_nothing_else(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("stays")
    folder = make_run_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_text("goes")
    (folder / "a" / "link").symlink_to(kept)
    remove_run_folder(folder)
    assert not folder.exists()
    assert (kept / "file").read_text() == "stays"
    remove_run_folder(folder)  # gone already


def test_runs_have_folders_of_their_own_even_in_copies_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []
    for process in (101, 102):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        monkeypatch.setattr(run_folder, "_NUMBERS", count())
        folders += [make_run_folder(), make_run_folder()]
    assert len(set(folders)) == 4
    for folder in folders:
        remove_run_folder(folder)


def test_committed_files_are_read_as_they_stand(tmp_path: Path) -> None:
    trial = TOPOLOGIES["in files"](Chance("1"), tmp_path)
    assert committed(Tables(), trial) == {"files": Counter()}
    ((_, folder),) = trial.folders
    folder.mkdir()
    for name in ("part-1.parquet", "part-2.parquet", ".pending-3.parquet", "part-4.parquet.tmp"):
        pq.write_table(pa.table({"n": [1, 2]}), folder / name)
    assert committed(Tables(), trial) == {"files": Counter({(1,): 2, (2,): 2})}
    pq.write_table(pa.table({"n": [1, 3]}), folder / "part-2.parquet")
    assert committed(Tables(), trial) == {"files": Counter({(1,): 2, (2,): 1, (3,): 1})}


def test_a_database_is_read_as_another_program_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    assert read_database(path, ("a", "b")) == {"a": Counter(), "b": Counter()}
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.executescript(
            "CREATE TABLE a (n INTEGER, t VARCHAR); INSERT INTO a VALUES (1, 'x'), (1, 'x'), (2, NULL)"
        )
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO a VALUES (3, 'not committed')")
        assert read_database(path, ("a", "b")) == {"a": Counter({(1, "x"): 2, (2, None): 1}), "b": Counter()}


def _read(log: ReplayLog, channel: int) -> list[tuple[object, ...]]:
    cursor = log.cursor(channel)
    found: list[tuple[object, ...]] = []
    while (batch := cursor.read(100)) is not None:
        found += [(row["n"], row["key"], row["v"]) for row in batch.to_pylist()]
    return found


def test_every_crash_point_of_the_list_is_there() -> None:
    listed = (
        "before trigger, after trigger, barrier emission, first barrier, end of alignment, synchronous part, mid-file,"
        " fsync, rename, acknowledge, last acknowledge, metadata write, metadata rename, notify, pre-commit, commit,"
        " after commit, cleanup, restore read, in-flight replay, re-commit"
    )
    assert set(listed.split(", ")) <= set(POINTS)


def test_a_fault_happens_at_its_occurrence_and_once() -> None:
    injector = FaultInjector(FaultPlan((Fault("process", 2, "kill"), Fault("commit", 1, "crash", owner="b[0]"))))
    injector.in_task = True
    injector.at("process", "a[0]")
    with pytest.raises(Killed):
        injector.at("process", "a[0]")
    injector.at("process", "a[0]")
    injector.at("commit", "a[0]")
    with pytest.raises(JobError, match=r"injected: crash at commit of b\[0\] 1"):
        injector.at("commit", "b[0]")
    assert [str(fault) for fault in injector.fired] == ["kill at process 2", "crash at commit of b[0] 1"]


def test_a_crash_outside_of_a_task_is_posted_to_one() -> None:
    crashed: list[int | str] = []
    plan = FaultPlan((Fault("complete", 1, "crash", task=5), Fault("fsync", 1, "crash", task=5)))
    injector = FaultInjector(plan)
    injector.crash = crashed.append
    injector.at("complete", COORDINATOR)
    injector.at("fsync", "filter[1]")
    assert crashed == [5, "filter[1]"]


def test_the_input_is_disordered_within_its_bound() -> None:
    for seed in range(40):
        _, rows = _source(Random(seed), disorder=7)
        assert all(row.t is None or row.n * STEP_US - 7 <= row.t <= row.n * STEP_US for row in rows)


def test_the_model_of_windows() -> None:
    chance = Random(3)
    _, rows = next((s, r) for s, r in (_source(chance, disorder=0) for _ in range(50)) if len(r) == 6)
    expected: Counter[tuple[str | None, int]] = Counter()
    for row in rows:
        if row.t is not None:
            expected[row.key, row.t // 30 * 30] += 1
    assert {(key, start): n for key, start, _, n, _, _ in _by_window(rows, 30)} == dict(expected)
