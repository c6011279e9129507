"""Savepoints are self-contained: programs change, fork, move and rescale from them (E10)."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import until

import workbench as wb
from workbench.api.job import savepointing
from workbench.durable.checksum import checksum
from workbench.runtime.exchange.in_flight import TASK
from workbench.runtime.storage import DirectoryStorage, Manifest, folder_named, folder_of
from workbench.runtime.storage.encoding import encode
from workbench.runtime.storage.manifest import read_manifest

ROWS = 2_000
CLICKS = pa.table({"user": [f"u{i % 7}" for i in range(ROWS)], "n": range(ROWS), "t": range(ROWS)})
SAVED_AT = 100


def clicks(rate: object = "max") -> wb.Stream:
    return wb.Stream.from_table(CLICKS, event_time="t", rate=None if rate == "max" else rate).uid("clicks")


def counts(stream: wb.Stream, uid: str = "counts") -> wb.Stream:
    return stream.key_by("user").aggregate(n=wb.count()).uid(uid)


def sunk(stream: wb.Stream, table: str = "out") -> wb.types.Pipeline:
    return stream.sink_to(wb.TableSink(table))


def received(job: wb.types.Job) -> int:
    """The records that have reached the sinks of a job."""
    return sum(int(str(row["numRecordsIn"])) for row in job.metrics() if not row["task"].startswith("table"))


def expected(rows: int = ROWS) -> list[tuple[str, int]]:
    """What counting each user's clicks gives, record by record."""
    return sorted((f"u{i % 7}", i // 7 + 1) for i in range(rows))


def shown(job: wb.types.Job, table: str = "out") -> list[tuple[str, int]]:
    found = job.table(table)
    return sorted(zip(found.column("user").to_pylist(), found.column("n").to_pylist(), strict=True))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A savepoint of a job that has ended since, and whose directory is gone."""
    root = tmp_path_factory.mktemp("original")
    job = sunk(counts(clicks(rate=200))).run("original", checkpoint_dir=root / "c", checkpoint_interval="20ms")
    until(lambda: sum(int(row["numRecordsIn"] or 0) for row in job.metrics()) >= SAVED_AT)
    folder = Path(job.savepoint("before-fix"))
    job.cancel()
    job.wait("60s")
    assert folder == root / "c" / "savepoints" / "before-fix"
    moved = tmp_path_factory.mktemp("moved") / "before-fix"
    shutil.copytree(folder, moved)
    shutil.rmtree(root)
    return moved


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_jobs_fork_from_one_savepoint_at_other_parallelisms(saved: Path, tmp_path: Path) -> None:
    before = contents(saved)
    jobs = []
    for name, parallelism in [("one", 1), ("three", 3)]:
        job = sunk(counts(clicks())).run(
            name, restore=saved, checkpoint_dir=tmp_path / name, parallelism=parallelism, checkpoint_interval="20ms"
        )
        jobs.append(job)
    for job in jobs:
        assert job.wait("60s") == "FINISHED"
        assert shown(job) == expected()  # the rows committed before the savepoint are among them
    assert contents(saved) == before


def test_a_changed_program_takes_the_state_of_the_same_uids(saved: Path, tmp_path: Path) -> None:
    even = clicks().filter("n % 2 = 0").uid("even")  # new, and before the operator whose state goes on
    job = sunk(counts(even)).run("fixed", restore=str(saved), checkpoint_dir=tmp_path / "c")
    assert job.wait("60s") == "FINISHED"
    rows = [pair for pair in shown(job) if pair[0] == "u3"]
    taken = rows[-1][1]
    held = wb.Snapshot.open(saved).operator_state("counts").to_pylist()
    (before,) = [row["count()"] for row in held if row["user"] == "u3"]
    read = sum(row["count()"] for row in held)
    assert taken == before + sum(1 for i in range(read, ROWS) if i % 2 == 0 and i % 7 == 3)
    assert "operator 'even' begins without state: it is new since savepoints/before-fix" in [
        event.text for event in job.recorder.latest().events
    ]


def test_state_without_an_operator_is_refused_by_name_and_dropped_on_request(saved: Path, tmp_path: Path) -> None:
    other = sunk(counts(clicks(), "totals"))
    with pytest.raises(wb.errors.CheckpointError) as caught:
        other.run("other", restore=saved, checkpoint_dir=tmp_path / "c")
    assert str(caught.value) == (
        "savepoints/before-fix of job 'original' has state of operator 'counts', which this pipeline does not have "
        "(it has clicks, out, totals): give the operator that should restore it .uid('counts'), or drop the state "
        "with allow_non_restored_state=True"
    )
    renamed = sunk(counts(clicks()), "elsewhere")
    with pytest.raises(
        wb.errors.CheckpointError, match="give the sink that should restore it a table or folder named 'out',"
    ):
        renamed.run("other", restore=saved, checkpoint_dir=tmp_path / "c")
    job = other.run("other", restore=saved, checkpoint_dir=tmp_path / "c", allow_non_restored_state=True)
    assert job.wait("60s") == "FINISHED"
    texts = [event.text for event in job.recorder.latest().events]
    assert "the state of operator 'counts' in savepoints/before-fix is dropped" in texts
    read = wb.Snapshot.open(saved).operator_state("counts").column("count()").to_pylist()
    rows = shown(job)
    assert len(rows) == ROWS
    begun_anew = [n for user, n in rows if user == "u0" and n == 1]
    assert len(begun_anew) == 2  # once in the original, once since
    assert max(n for _, n in rows) < ROWS // 7
    assert sum(read) > 0


def test_a_job_that_runs_goes_back_to_a_savepoint_with_unknown_state_on_request(tmp_path: Path) -> None:
    first = sunk(counts(clicks(rate=100))).run("first", checkpoint_dir=tmp_path / "c")
    first.savepoint("before-fix")
    first.cancel()
    first.wait("60s")
    other = sunk(counts(clicks(rate=100), "totals"))
    job = other.run("other", resume=True, checkpoint_dir=tmp_path / "c", allow_non_restored_state=True)
    with pytest.raises(
        wb.errors.CheckpointError, match=r"has state of operator 'counts'.* allow_non_restored_state=True"
    ):
        job.restore("before-fix")
    assert job.state == "RUNNING"
    again = job.restore("before-fix", allow_non_restored_state=True)
    assert job.state == "CANCELED"
    again.tune(rate="max")
    assert again.wait("60s") == "FINISHED"
    texts = [event.text for event in again.recorder.latest().events]
    assert "the state of operator 'counts' in savepoints/before-fix is dropped" in texts
    assert len(shown(again)) == ROWS  # each click once, counted anew since the savepoint


def test_state_of_another_shape_is_refused_by_name_and_nothing_is_left_behind(saved: Path, tmp_path: Path) -> None:
    other = sunk(clicks().key_by("user").aggregate(n=wb.count(), m=wb.max("n")).uid("counts").select("user", "n"))
    with pytest.raises(wb.errors.CheckpointError, match="the state of operator 'counts' has no column"):
        other.run("shape", restore=saved, checkpoint_dir=tmp_path / "c")
    job = sunk(counts(clicks())).run("shape", restore=saved, checkpoint_dir=tmp_path / "c")
    job.wait("60s")
    assert shown(job) == expected()


def test_what_was_forked_goes_on_after_its_end_without_the_original(saved: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(saved, tmp_path / "copy")
    first = sunk(counts(clicks(rate=10))).run("fork", restore=copy, checkpoint_dir=tmp_path / "c")
    first.cancel()  # before its first own checkpoint
    first.wait("60s")
    shutil.rmtree(copy)
    again = sunk(counts(clicks())).run("fork", resume=True, checkpoint_dir=tmp_path / "c")
    again.wait("60s")
    assert shown(again) == expected()
    with pytest.raises(wb.errors.CheckpointError, match="already holds checkpoints of job 'fork'"):
        sunk(counts(clicks())).run("fork", restore=saved, checkpoint_dir=tmp_path / "c")


def test_a_savepoint_that_lacks_a_file_is_refused(saved: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(saved, tmp_path / "copy")
    file = min((copy / "tables" / "out").iterdir())
    file.unlink()
    told = rf"cannot be copied to .*No such file or directory.*{re.escape(file.name)}"
    with pytest.raises(wb.errors.CorruptCheckpointError, match=told):
        sunk(counts(clicks())).run("torn", restore=copy, checkpoint_dir=tmp_path / "c")
    with pytest.raises(wb.errors.CheckpointError, match="there is no savepoint 'nothing' in"):
        sunk(counts(clicks())).run("torn", restore="nothing", checkpoint_dir=tmp_path / "d")


def test_a_checkpoint_of_a_job_that_died_can_be_forked_too(tmp_path: Path) -> None:
    job = sunk(counts(clicks(rate=200))).run("dead", checkpoint_dir=tmp_path / "c", checkpoint_interval="20ms")
    until(lambda: [c for c in job.checkpoints() if c.state == "COMPLETED"])
    job.cancel()
    job.wait("60s")
    latest = max((tmp_path / "c").glob("chk-*/manifest.json")).parent
    fork = sunk(counts(clicks())).run("alive", restore=latest, checkpoint_dir=tmp_path / "d")
    fork.wait("60s")
    assert shown(fork) == expected()


# --- listing, inspecting, deleting


def test_a_question_mark_in_a_path_is_a_letter_as_any(saved: Path, tmp_path: Path) -> None:
    odd = tmp_path / "why? #1" / "savepoints"
    shutil.copytree(saved, odd / "s")
    assert wb.Snapshot.open(odd / "s").checkpoint_id == wb.Snapshot.open(saved).checkpoint_id
    assert len(wb.savepoints(odd.parent)) == 1
    with closing(DirectoryStorage(tmp_path / "c")) as storage:
        assert storage.bring_in(*folder_named(odd / "s")).kind == "savepoint"  # type: ignore[misc]


def test_savepoints_are_listed_and_deleted(saved: Path, tmp_path: Path) -> None:
    job = sunk(counts(clicks(rate=10))).run("kept", restore=saved, checkpoint_dir=tmp_path / "c")
    folder = job.savepoint("second")
    found = wb.savepoints(tmp_path / "c")
    assert [(each.name, each.kind, each.job) for each in found] == [
        ("before-fix", "savepoint", "original"),
        ("second", "savepoint", "kept"),
    ]
    with pytest.raises(wb.errors.CheckpointError, match="in use by process"):
        wb.delete_savepoint(folder)
    job.cancel()
    job.wait("60s")
    with pytest.raises(wb.errors.CheckpointError, match=r"the job in .* would restart from it"):
        wb.delete_savepoint(folder)
    wb.delete_savepoint(tmp_path / "c" / "savepoints" / "before-fix")
    assert [each.name for each in wb.savepoints(tmp_path / "c")] == ["second"]
    with pytest.raises(wb.errors.CheckpointError, match="contains no complete savepoint"):
        wb.delete_savepoint(tmp_path / "c" / "savepoints" / "before-fix")
    again = sunk(counts(clicks())).run("kept", resume=True, checkpoint_dir=tmp_path / "c")
    again.wait("60s")
    assert shown(again) == expected()
    wb.delete_savepoint(folder)
    assert wb.savepoints(tmp_path / "c") == []


def test_a_savepoint_that_is_being_taken_is_not_overwritten_by_another_of_its_name(tmp_path: Path) -> None:
    job = sunk(counts(clicks(rate=200))).run("twice", checkpoint_dir=tmp_path / "c", checkpoint_interval=None)
    job.faults.stall("out")
    with pytest.raises(wb.errors.JobError, match="the savepoint 'here' was not complete within 300ms"):
        job.savepoint("here", timeout="300ms")
    with pytest.raises(
        wb.errors.JobError, match="the savepoint 'here' is already being taken: wait for it, or choose another"
    ):
        job.savepoint("here")
    job.faults.stall("out", False)
    until(job.savepoints)
    taken = wb.Snapshot.open(tmp_path / "c" / "savepoints" / "here").checkpoint_id
    with pytest.raises(wb.errors.JobError, match="the savepoint 'here' already exists"):
        job.savepoint("here")
    job.savepoint("there")
    job.cancel()
    job.wait("60s")
    assert [(each.name, each.checkpoint_id) for each in wb.savepoints(tmp_path / "c")] == [
        ("here", taken),
        ("there", taken + 1),
    ]


def test_a_savepoint_or_last_checkpoint_that_fails_says_why(tmp_path: Path) -> None:
    job = sunk(counts(clicks(rate=200))).run("blocked", checkpoint_dir=tmp_path / "c", checkpoint_interval=None)
    job.savepoint("first")  # it has committed rows, and their folder is there
    (tmp_path / "c" / "savepoints").rename(tmp_path / "elsewhere")
    (tmp_path / "c" / "savepoints").write_text("in the way")
    with pytest.raises(wb.errors.JobError, match=r"the savepoint 'second' was not taken: .* could not be written: "):
        job.savepoint("second")
    (tmp_path / "c" / "tables").rename(tmp_path / "tables")
    before = received(job)
    until(lambda: received(job) > before)  # or the last checkpoint would have nothing to write there
    job.stop(wait=False)
    with pytest.raises(wb.errors.JobError) as caught:
        job.wait("60s")
    text = str(caught.value)
    assert "failed: the final checkpoint could not be taken: " in text
    assert text.endswith("(the job was about to end)")


def test_a_running_job_deletes_savepoints_that_it_does_not_need(tmp_path: Path) -> None:
    job = sunk(counts(clicks(rate=10))).run("tidy", checkpoint_dir=tmp_path / "c", checkpoint_interval=None)
    job.savepoint("first")
    job.savepoint("second")
    with pytest.raises(wb.errors.JobError, match="the job would restart from 'second' after a failure"):
        job.delete_savepoint("second")
    job.delete_savepoint("first")
    assert job.savepoints() == ["second"]
    with pytest.raises(wb.errors.JobError, match="unknown savepoint 'first'"):
        job.delete_savepoint("first")
    job.cancel()
    job.wait("60s")
    with pytest.raises(wb.errors.JobError, match=r"has ended \(CANCELED\): wb.delete_savepoint\(folder\) deletes"):
        job.delete_savepoint("second")


def test_a_snapshot_shows_state_timers_offsets_and_what_was_in_flight(tmp_path: Path) -> None:
    times = pa.array([5, None], pa.int64())
    states: dict[str, Any] = {
        "source": {"positions": {"0": 7}, "$watermarks": {}},
        "keyed": {
            "states": pa.table({"key:user": ["a"], "state:n": [3], "state:user": ["<b>"]}),
            "event_timers": pa.table({"key:user": ["a"], "time": [9]}),
            "watermark": 4,
        },
        TASK: {
            "in_flight": [["keyed", None, "out", 0, 0, 1, 2, False]],
            "in_flight-0": pa.table({"user": ["a", "b"], "$event_time": times}),
        },
    }
    uids = {"source": 1, "keyed": 1, "<script>": 2}
    with closing(DirectoryStorage(tmp_path)) as storage:
        place = folder_of(1, None)
        file = storage.write(place, "keyed[0]", encode(states))
        storage.complete(place, Manifest(1, "<i>job", "periodic", 0, 0, uids, (file,), place=place))
    snapshot = wb.Snapshot.open(tmp_path / place)
    held = snapshot.operator_state("keyed").to_pylist()  # both are "user"
    assert held == [{"key:user": "a", "n": 3, "state:user": "<b>"}]
    assert snapshot.operator_state("keyed", "event_timers").to_pylist() == [{"user": "a", "time": 9}]
    assert snapshot.values("keyed") == [{"watermark": 4}]
    assert snapshot.offsets == {"source": [{"positions": {"0": 7}}]}
    (flow,) = snapshot.in_flight
    assert (flow["from"], flow["to"], flow["sender"], flow["receiver"], flow["records"].num_rows) == (
        "keyed", "out", 0, 1, 2,
    )  # fmt: skip
    assert list(snapshot.operators) == [
        {"operator": "<script>", "parallelism": 2, "rows": {}},
        {"operator": "keyed", "parallelism": 1, "rows": {"states": 1, "event_timers": 1}},
        {"operator": "source", "parallelism": 1, "rows": {}},
    ]
    assert "<i>" not in snapshot._repr_html_() + snapshot.operators._repr_html_()
    assert "&lt;i&gt;job" in snapshot._repr_html_()
    assert "keyed x 1" in repr(snapshot)
    assert snapshot.to_dict()["offsets"] == snapshot.offsets
    with pytest.raises(wb.errors.CheckpointError, match="unknown operator 'keys'"):
        snapshot.operator_state("keys")
    with pytest.raises(wb.errors.CheckpointError, match="has no tables of state"):
        snapshot.operator_state("source")


def test_the_state_of_another_kind_of_operator_is_refused_and_dropped_on_request(saved: Path, tmp_path: Path) -> None:
    windows = clicks().key_by("user").window(wb.tumbling("1s")).aggregate(n=wb.count()).uid("counts")
    other = sunk(windows.select("user", "n"))
    with pytest.raises(wb.errors.CheckpointError) as caught:
        other.run("other", restore=saved, checkpoint_dir=tmp_path / "c")
    assert str(caught.value) == (
        "the state of operator 'counts' in savepoints/before-fix of job 'original' belongs to a RollingAggregate, but "
        "this pipeline has a WindowAggregate of tumbling 1s windows with that uid, which cannot restore it: give that "
        "operator another uid, or drop the state with allow_non_restored_state=True"
    )
    job = other.run("other", restore=saved, checkpoint_dir=tmp_path / "c", allow_non_restored_state=True)
    assert job.wait("60s") == "FINISHED"
    texts = [event.text for event in job.recorder.latest().events]
    assert "the state of operator 'counts' in savepoints/before-fix is dropped" in texts


def test_state_is_not_dropped_because_an_operator_without_state_has_its_uid(saved: Path, tmp_path: Path) -> None:
    other = sunk(clicks().filter("n > 1").uid("counts").select("user", "n"))
    with pytest.raises(
        wb.errors.CheckpointError, match="belongs to a RollingAggregate, but this pipeline has a Filter"
    ):
        other.run("other", restore=saved, checkpoint_dir=tmp_path / "c")


def test_a_savepoint_of_an_earlier_version_says_no_kinds(saved: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(saved, tmp_path / "copy"))
    manifest = read_manifest((copy / "manifest.json").read_bytes(), "", "")
    assert manifest.kinds["counts"] == "RollingAggregate"
    content = json.loads((copy / "manifest.json").read_bytes())
    del content["checksum"], content["kinds"]
    body = json.dumps(content, sort_keys=True).encode().removeprefix(b"{")
    (copy / "manifest.json").write_bytes(f'{{"checksum": "{checksum(body)}", '.encode() + body)
    windows = clicks().key_by("user").window(wb.tumbling("1s")).aggregate(n=wb.count()).uid("counts")
    with pytest.raises(
        wb.errors.CheckpointError, match=r"the state of operator 'counts' lacks 'watermarks' \(it has .*\), so"
    ):
        sunk(windows.select("user", "n")).run("other", restore=copy, checkpoint_dir=tmp_path / "c")
    job = sunk(counts(clicks())).run("same", restore=copy, checkpoint_dir=tmp_path / "d")
    assert job.wait("60s") == "FINISHED"
    assert shown(job) == expected()


@pytest.mark.parametrize("name", [None, 5, b"x"])
def test_names_that_are_no_text_are_refused_with_what_they_are(name: Any, tmp_path: Path) -> None:
    pipeline = sunk(counts(clicks(rate=100)))
    with pytest.raises(wb.errors.CheckpointError, match=f"job name {name!r} cannot be a file name"):
        pipeline.run(name)
    job = pipeline.run("named", checkpoint_dir=tmp_path / "c")
    try:
        with pytest.raises(wb.errors.CheckpointError, match=f"savepoint {name!r} cannot be a file name"):
            job.savepoint(name)
    finally:
        job.cancel()
        job.wait("60s")


def test_savepoints_of_what_is_no_directory_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    for place in (tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(wb.errors.CheckpointError, match=f"'{place}' is not a checkpoint directory"):
            wb.savepoints(place)
    assert wb.savepoints(tmp_path) == []


def test_a_job_whose_sink_commits_while_its_savepoint_is_looked_at_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = clicks(rate=10).select("n")
    pipeline = stream.sink_to(wb.ParquetSink(tmp_path / "out")) + stream.sink_to(wb.TableSink("shown"))
    job = pipeline.run("looked-at", checkpoint_dir=tmp_path / "c", checkpoint_interval="disabled")
    job.savepoint("early")
    check = savepointing.check_restorable

    def check_and_commit(*args: Any) -> None:
        check(*args)
        while all("part-00000001-" in part.name for part in (tmp_path / "out").glob("part-*.parquet")):
            job.savepoint(f"later-{len(job.savepoints())}")

    monkeypatch.setattr(savepointing, "check_restorable", check_and_commit)
    with pytest.raises(wb.errors.SinkError, match="was committed by checkpoint"):
        job.restore("early")
    assert wb.job("looked-at") is job
    assert job.state == "RUNNING"
    job.faults.fail(coordinator=True)
    job.tune(rate="max")
    assert job.wait("60s") == "FINISHED"
    assert sorted(job.table()["n"].to_pylist()) == list(range(ROWS))
    assert sorted(pq.read_table(tmp_path / "out")["n"].to_pylist()) == list(range(ROWS))


def test_what_was_tuned_is_in_force_after_a_restore(tmp_path: Path) -> None:
    times = pa.array([i * 1_000_000 for i in range(1_000)], pa.timestamp("us"))
    history = wb.History.from_arrow(
        pa.table({"n": range(1_000), "e": times}), tmp_path / "log", event_time="e", arrival_time="e", progress=False
    )
    replays = [wb.Stream.replay(history, speed=speed).uid(f"replay-{speed}") for speed in ("2x", "3x")]
    streams = [clicks(rate=100), clicks(rate=50).uid("views"), *replays]
    pipeline = sunk(streams[0], "0")
    for place, stream in enumerate(streams[1:], 1):
        pipeline += sunk(stream, str(place))
    job = pipeline.run("tuned", checkpoint_dir=tmp_path / "c")
    tuned = {
        "buffer_timeout": "disabled",
        "buffer_size": 1_234,
        "checkpoint_interval": "disabled",
        "checkpoint_mode": "unaligned",
        "aligned_checkpoint_timeout": "1500ms",
        "checkpoint_timeout": "7min",
        "min_pause": "3s",
        "max_concurrent_checkpoints": 1,
        "tolerable_failed_checkpoints": 5,
        "retained_checkpoints": 4,
        "at_end": "hold",
        "restart_delay": "2s",
        "parallelism": 2,
        "rate": {"clicks": 123.4567891},
    }
    assert {*tuned, "speed"} == set(wb.SETTINGS)
    job.tune(**tuned)
    job.savepoint("kept")
    before = job.status()
    again = job.restore("kept")
    after = again.status()
    assert {name: after[name] for name in tuned} == {name: before[name] for name in tuned}
    tempo = again._run.master.sources.tempo()
    assert tempo.speeds == {"replay-2x": 2.0, "replay-3x": 3.0}
    assert tempo.rates == {"clicks": 123.4567891, "views": 50}
    again.tune(rate="max", speed="4.56789012x")
    last = again.restore("kept")._run.master.sources.tempo()
    assert set(last.rates.values()) == {None}
    assert set(last.speeds.values()) == {4.56789012}
