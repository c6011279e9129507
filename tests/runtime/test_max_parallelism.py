"""The number of key groups: jobs with hundreds of subtasks, and the limits of rescaling, now and later."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from workbench import col
from workbench.api.beginning.opening import open_storage, regrouped
from workbench.api.job.job import Job
from workbench.api.launching.assembling import build_master
from workbench.api.launching.refusals import RunRequest, planned
from workbench.clock import VirtualClock
from workbench.connectors.tables.tables import Tables
from workbench.drivers.contract.probes import Probe
from workbench.drivers.faults.faults import FaultInjector, FaultPlan
from workbench.drivers.stepped.simulation import SimulationDriver
from workbench.durable.checksum import checksum
from workbench.elements import Records
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.snapshots.past_watermarks import PastWatermarks
from workbench.runtime.exchange.splitters import ShuffleSplitter, split_by
from workbench.runtime.job.master import Master
from workbench.runtime.job.observer import JobObserver
from workbench.runtime.storage import DirectoryStorage
from workbench.runtime.storage.manifest import read_manifest
from workbench.state.key_groups import key_groups_of, owned_rows

ROWS, KEYS = 1_500, 500
TABLE = pa.table({"n": range(ROWS), "key": [n % KEYS for n in range(ROWS)], "t": [n * 1_000 for n in range(ROWS)]})


def source() -> wb.Stream:
    """Two subtasks read, so that the number of channels grows with the parallelism and not with its square."""
    return wb.Stream.from_table(TABLE, event_time="t").with_parallelism(2)


def counts() -> wb.types.Pipeline:
    return source().key_by("key").aggregate(count=wb.count()).uid("counts").sink_to(wb.TableSink("out"))


def stepped(pipeline: wb.types.Pipeline, parallelism: int, **options: Any) -> Job:
    fixed = {"driver": "stepping", "buffer_size": 64, "buffer_timeout": "0ms", "checkpoint_interval": None}
    return pipeline.run("wide", parallelism=parallelism, **{**fixed, **options})


def simulated(
    pipeline: wb.types.Pipeline,
    parallelism: int,
    groups: int | None = None,
    folder: Path | None = None,
    **begin: Any,
) -> Master:
    """Run to its end what needs no frame after every step: with hundreds of subtasks that would take long."""
    asked = {"parallelism": parallelism, "max_parallelism": groups, "buffer_size": 64, "buffer_timeout": "0ms"}
    resume, restore = begin.get("resume", False), begin.get("restore")
    plan = planned(RunRequest(pipeline, "wide", asked, folder, resume, restore, driver="stepping"))
    storage, manifest, first_id = open_storage(folder, resume, restore)
    graph = plan.graph
    if manifest is not None:
        graph = regrouped(graph, groups, manifest.max_parallelism, manifest.place)
    clock = VirtualClock(1_000_000)
    driver = SimulationDriver(Random(1), clock, FaultInjector(FaultPlan()), Probe(), [])
    master = build_master(
        "wide", plan.logical, graph, plan.settings, storage, manifest, first_id, clock=clock, stage=driver,
        background=driver, observer=JobObserver(), tables=Tables(), data_dir=folder,
    )  # fmt: skip
    driver.run(master)
    master.step()
    while not driver.ended.is_set():
        assert driver.step()
    if isinstance(storage, DirectoryStorage):
        storage.close()
    assert master.state == "FINISHED", master.failure
    return master


def received(master: Master, operator: str) -> list[int]:
    """How many records each subtask took."""
    assert master.execution is not None
    tasks = [task for task in master.execution.tasks if task.name.startswith(f"{operator}[")]
    return [task.root.counters.numRecordsIn for task in tasks]


def pairs_of(found: pa.Table) -> Counter[tuple[int, int]]:
    return Counter(zip(found["key"].to_pylist(), found["count"].to_pylist(), strict=True))


def pairs(job: Job | Master) -> Counter[tuple[int, int]]:
    return pairs_of(job.table("out") if isinstance(job, Job) else job.services.tables.read("out"))


ORACLE = Counter((n % KEYS, n // KEYS + 1) for n in range(ROWS))
"""(key, count so far) of every record."""


# hundreds of subtasks ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("parallelism", "groups"), [(129, 256), (200, 512), (300, 512)])
def test_hundreds_of_subtasks_count_what_one_does(parallelism: int, groups: int) -> None:
    master = simulated(counts(), parallelism)
    assert pairs(master) == ORACLE
    assert (master.shown()["parallelism"], master.shown()["max_parallelism"]) == (parallelism, groups)
    owners = key_groups_of(TABLE, ["key"], groups) * parallelism // groups
    assert received(master, "counts") == np.bincount(owners, minlength=parallelism).tolist()


def test_a_live_job_has_more_subtasks_than_there_used_to_be_key_groups() -> None:
    windows = source().key_by("key").window(wb.tumbling("1s")).aggregate(count=wb.count(), last=wb.max("n"))
    job = windows.sink_to(wb.TableSink("out")).run("wide", parallelism=129, checkpoint_interval=None)
    assert job.wait("60s") == "FINISHED"
    found = job.table("out").select(["key", "count", "last"]).to_pylist()
    firsts = {(n % KEYS, n // 1_000): n for n in range(ROWS)}  # the last of a key in each second
    counted = Counter((n % KEYS, n // 1_000) for n in range(ROWS))
    expected = [{"key": key[0], "count": counted[key], "last": last} for key, last in firsts.items()]
    assert sorted(found, key=lambda row: row["last"]) == sorted(expected, key=lambda row: row["last"])
    assert job.status()["max_parallelism"] == 256


@pytest.mark.slow
@pytest.mark.parametrize("exchange", ["shuffle", "custom", "rebalance"])
def test_records_reach_subtasks_beyond_the_255th(exchange: str) -> None:
    stream = source().partition_by("n") if exchange == "custom" else getattr(source(), exchange)()
    master = simulated(stream.filter(col("n") >= 0).uid("kept").sink_to(wb.TableSink("out")), 300)
    assert sorted(master.services.tables.read("out")["n"].to_pylist()) == list(range(ROWS))
    into = received(master, "kept")
    if exchange == "custom":
        assert into == [ROWS // 300] * 300
    assert sum(into[256:]) > ROWS // 20


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 300, 32_768])
def test_rows_are_split_among_any_number_of_targets(count: int) -> None:
    targets = np.arange(3 * count, dtype=np.int64)[::-1] % count
    batch = pa.record_batch({"row": pa.array(range(3 * count), pa.int64())})
    parts = split_by(Records(batch), targets, count)
    rows = [[] if part is None else part.batch["row"].to_pylist() for part in parts]
    assert rows == [np.flatnonzero(targets == target).tolist() for target in range(count)]


def test_random_targets_are_all_that_there_are() -> None:
    parts = ShuffleSplitter(600, seed=7).split(Records(pa.record_batch({"n": range(60_000)})))
    assert all(part is not None and len(part) > 40 for part in parts)


def test_a_key_is_answered_by_its_owner_whatever_the_key_groups() -> None:
    job = stepped(counts(), 5, max_parallelism=300)
    job.stepper.driver.run_until(lambda: processed(job) == ROWS)  # type: ignore[union-attr]
    state = job.operator_state("counts")
    assert [state.get(key) for key in (0, 1, 250, 499)] == [{"count": 3}] * 4
    job.cancel()
    job.wait()


def processed(job: Job) -> int:
    return sum(row["numRecordsIn"] for row in job.metrics() if row["task"].startswith("counts"))


# another parallelism, and another number of key groups ------------------------------------------------------------


def halfway(folder: Path, parallelism: int = 2, **options: Any) -> Path:
    """A savepoint of a job that has counted some of the records."""
    job = stepped(counts(), parallelism, checkpoint_dir=folder, **options)
    job.stepper.driver.run_until(lambda: processed(job) > ROWS // 3)  # type: ignore[union-attr]
    path = Path(job.savepoint("halfway"))
    assert ROWS // 3 < processed(job) < ROWS
    job.cancel()
    job.wait()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("groups", [256, 300])
def test_a_savepoint_goes_on_among_hundreds_of_subtasks(tmp_path: Path, groups: int) -> None:
    path = halfway(tmp_path / "a", max_parallelism=groups)
    snapshot = wb.Snapshot.open(path)
    assert (snapshot.manifest.max_parallelism, snapshot.to_dict()["max_parallelism"]) == (groups, groups)
    assert f"key groups  {groups}\n" in repr(snapshot)
    master = simulated(counts(), 200, folder=tmp_path / "b", restore=path)
    assert master.graph.max_parallelism == groups
    assert pairs(master) == ORACLE


def test_a_job_is_rescaled_as_far_as_its_key_groups_go() -> None:
    job = stepped(counts(), 2, max_parallelism=9)
    job.stepper.step(10)
    job.rescale(3)
    job.stepper.step(10)
    job.rescale(9)
    with pytest.raises(
        wb.errors.PlanError,
        match="parallelism is 10, and the job runs with max_parallelism 9: take a savepoint and start from it with "
        "max_parallelism 128",
    ):
        job.rescale(10)
    with pytest.raises(wb.errors.PlanError, match="parallelism is 300, and the job runs with max_parallelism 9"):
        job.tune(parallelism=300)
    assert (job.status()["parallelism"], job.status()["max_parallelism"]) == (9, 9)
    assert job.wait() == "FINISHED"
    assert pairs(job) == ORACLE


def test_a_live_job_is_rescaled_with_other_key_groups() -> None:
    stream = wb.Stream.from_table(TABLE, rate=2_000).with_parallelism(2).key_by("key").aggregate(count=wb.count())
    job = stream.sink_to(wb.TableSink("out")).run("wide", parallelism=2, max_parallelism=256)
    assert job.rescale(3)["parallelism"] == 3
    job.tune(rate="max")
    assert job.wait("60s") == "FINISHED"
    assert pairs(job) == ORACLE


def test_a_restore_above_the_key_groups_of_the_savepoint_is_refused(tmp_path: Path) -> None:
    path = halfway(tmp_path / "a")
    told = (
        "the parallelism of 'counts' is 129, and {} has max_parallelism 128: lower the parallelism, or set "
        "max_parallelism to 256, which redistributes the state"
    )
    with pytest.raises(wb.errors.CheckpointError, match=told.format("savepoints/halfway of job 'wide'")):
        stepped(counts(), 129, checkpoint_dir=tmp_path / "b", restore=path)
    with pytest.raises(wb.errors.CheckpointError, match=told.format("savepoints/halfway of job 'wide'")):
        stepped(counts(), 129, checkpoint_dir=tmp_path / "a", resume=True)
    with pytest.raises(
        wb.errors.PlanError, match="parallelism is 129: it must be between 1 and 128, the job's max_paral"
    ):
        stepped(counts(), 129, checkpoint_dir=tmp_path / "b", restore=path, max_parallelism=128)
    job = stepped(counts(), 2, checkpoint_dir=tmp_path / "a", resume=True)  # the directory is free again
    assert job.wait() == "FINISHED"


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after", "parallelism"), [(128, 512, 200), (300, 5, 5), (128, 129, 129)])
def test_state_is_dealt_anew_to_another_number_of_key_groups(
    tmp_path: Path, before: int, after: int, parallelism: int
) -> None:
    path = halfway(tmp_path / "a", 3, max_parallelism=before)
    master = simulated(counts(), parallelism, after, tmp_path / "b", restore=path)
    assert master.graph.max_parallelism == after
    assert pairs(master) == ORACLE
    (last,) = (tmp_path / "b").glob("chk-*/manifest.json")
    assert json.loads(last.read_bytes())["max_parallelism"] == after


def test_a_job_that_was_dealt_anew_goes_on_so(tmp_path: Path) -> None:
    path = halfway(tmp_path / "a")
    job = stepped(counts(), 3, checkpoint_dir=tmp_path / "b", restore=path, max_parallelism=7)
    assert job.status()["max_parallelism"] == 7
    again = job.savepoint("again")
    job.cancel()
    job.wait()
    job = stepped(counts(), 1, checkpoint_dir=tmp_path / "b", resume=True)
    assert job.status()["max_parallelism"] == 7
    assert job.wait() == "FINISHED"
    assert pairs(job) == ORACLE
    assert wb.Snapshot.open(again).manifest.max_parallelism == 7


def test_a_checkpoint_of_an_earlier_version_has_128_key_groups(tmp_path: Path) -> None:
    path = halfway(tmp_path / "a") / "manifest.json"
    content = json.loads(path.read_bytes())
    del content["checksum"], content["max_parallelism"]
    body = json.dumps(content, sort_keys=True).encode()[1:]
    path.write_bytes(f'{{"checksum": "{checksum(body)}", '.encode() + body)
    assert read_manifest(path.read_bytes(), "", "").max_parallelism == 128
    job = stepped(counts(), 5, checkpoint_dir=tmp_path / "b", restore=path.parent)
    assert job.status()["max_parallelism"] == 128
    assert job.wait() == "FINISHED"
    assert pairs(job) == ORACLE


# how far event time was -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(3, 40), st.integers(1, 3)), min_size=1, max_size=4), st.data())
def test_what_was_late_for_a_key_stays_late_with_other_key_groups(deals: list[tuple[int, int]], data: Any) -> None:
    """Each deal is a number of key groups and subtasks; the oracle keeps a watermark for every key."""
    keys = list(range(60))
    batch = pa.table({"k": keys})
    known = dict.fromkeys(keys, -1)
    snapshots: list[Snapshot] = []
    for groups, parallelism in deals:
        subtasks = [
            PastWatermarks(OperatorContext(subtask=n, parallelism=parallelism, max_parallelism=groups))
            for n in range(parallelism)
        ]
        owned = [owned_rows(batch, ["k"], n, parallelism, groups)["k"].to_pylist() for n in range(parallelism)]
        now = [past.restore(snapshots) if snapshots else -1 for past in subtasks]
        for past, own, mark in zip(subtasks, owned, now, strict=True):
            records = Records(pa.record_batch({"k": pa.array(own, pa.int64())}))
            found = {key: at for part, at in past.parts(records, ["k"], mark) for key in part.batch["k"].to_pylist()}
            assert found == {key: known[key] for key in own}
            assert mark <= min(found.values(), default=mark)
        reached = [max(mark, data.draw(st.integers(-1, 9))) for mark in now]
        known |= {key: max(known[key], at) for own, at in zip(owned, reached, strict=True) for key in own}
        snapshots = [{"watermarks": past.snapshot(at)} for past, at in zip(subtasks, reached, strict=True)]


@pytest.mark.parametrize(
    "ranges", [[[0, 129, 5]], [[0, 5, 5, 4]], [[0, 5, 5, 32_769]], [[-1, 5, 5]], [[3, 3, 5]]], ids=str
)
def test_watermarks_of_key_groups_that_cannot_be_are_refused(ranges: list[list[int]]) -> None:
    past = PastWatermarks(OperatorContext(uid="windows"))
    with pytest.raises(ValueError, match="watermarks has the key groups"):
        past.restore([{"watermarks": ranges}])  # type: ignore[dict-item]


def test_a_watermark_that_is_the_same_everywhere_is_one_range_whatever_the_key_groups() -> None:
    sizes = [len(json.dumps(PastWatermarks(OperatorContext(max_parallelism=n)).snapshot(7))) for n in (128, 32_768)]
    assert sizes == [len("[[0, 128, 7]]"), len("[[0, 32768, 7, 32768]]")]
