"""The checkpoints of an earlier run are set aside whole, and a crash at any step loses and mixes nothing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from conftest import SECRET

import workbench as wb
from workbench.api.beginning.starting_over import told_aside
from workbench.api.launching import claiming
from workbench.drivers.contract.probes import Probe
from workbench.drivers.faults.faulty_disk import ProbedDisk
from workbench.durable.delayed_encoding import FILES
from workbench.durable.disk import DISK
from workbench.errors import CheckpointError
from workbench.lab.simulation.whole_checkpoints import lacking
from workbench.runtime.storage import CheckpointReader, DirectoryStorage, Manifest, folder_of
from workbench.runtime.storage.encoding import encode
from workbench.runtime.storage.files import LocalFiles

RECORD = "record.json"


class Killed(BaseException):
    """The process dies at a step."""


class Nth(Probe):
    def __init__(self, last: int) -> None:
        super().__init__()
        self.left = last

    def reached(self, place: str, task: str, amount: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed


def used(directory: Path | str, job: str, first: int) -> str:
    """Fill a directory with checkpoints that share a file, and a savepoint that the job was reset to; return where it
    resumes from."""
    with closing(DirectoryStorage(directory)) as storage:
        storage._files.write(f"tables/t/{job}", (job.encode(),))
        for number, savepoint in enumerate((None, "kept", None, None), first):
            if number == first + 3:
                storage.take_back(storage.savepoints()[0], number)
            place = folder_of(number, savepoint)
            file = storage.write(place, "a[0]", encode({"a": {FILES: [f"tables/t/{job}"]}}))
            kind = "savepoint" if savepoint else "periodic"
            storage.complete(place, Manifest(number, job, kind, 1, 2, {"a": 1}, (file,), place=place))
        storage.keep(RECORD, job.encode())
        latest = storage.latest()
    assert latest is not None
    return latest.place


def in_it(directory: Path) -> dict[str, str]:
    """The complete checkpoints in a directory, with the job of each; all of their files are there."""
    assert lacking(directory) == []
    files = LocalFiles(directory)
    reader = CheckpointReader(files)
    names = [*files.folders(), *(f"savepoints/{name}" for name in files.folders("savepoints"))]
    return {name: reader.manifest(name).job for name in names if reader.is_complete(name)}


@pytest.mark.slow
def test_a_crash_at_any_step_leaves_one_run_to_resume_and_never_two_in_a_folder(tmp_path: Path) -> None:
    step, ended = 0, False
    seen: set[bool] = set()
    while not ended:
        step += 1
        directory = tmp_path / str(step)
        place = used(directory, "first", 1)
        before = in_it(directory)
        disk = ProbedDisk(Nth(step), Random(step))
        storage = DirectoryStorage(directory)
        token = DISK.set(disk)
        try:
            storage.set_aside(RECORD)
            ended = True
        except Killed:
            disk.lose_power()
        finally:
            DISK.reset(token)
            storage.close()
        aside = [in_it(folder) for folder in (directory / "earlier").glob("*")]
        with closing(DirectoryStorage(directory)) as again:
            latest = again.latest()
        if latest is not None:
            assert latest.place == place
            if before not in aside:
                assert in_it(directory) == before, "nothing is removed before everything is copied"
        else:
            assert aside == [before]
            assert CheckpointReader(LocalFiles(directory / "earlier" / "1")).latest().place == place  # type: ignore[union-attr]
            assert (directory / "earlier" / "1" / RECORD).read_text() == "first"
        seen.add(latest is None)
        with closing(DirectoryStorage(directory)) as again:  # the next run starts over, and the one after it, too
            if again.latest() is not None:
                again.set_aside(RECORD)
        used(directory, "second", 7)
        with closing(DirectoryStorage(directory)) as again:
            again.set_aside(RECORD)
        jobs = [set(in_it(folder).values()) for folder in (directory / "earlier").glob("*")]
        assert all(len(each) <= 1 for each in jobs)
        assert {"second"} in jobs
        assert set().union(*(in_it(folder) for folder in (directory / "earlier").glob("*"))) >= before.keys()
    assert seen == {False, True}
    assert step > 20


def test_what_was_set_aside_is_resumed_and_restored_with_the_files_that_checkpoints_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claiming, "INCREMENTAL_ABOVE_BYTES", 0)  # the state is written as changes, in files of its own
    counts = wb.Stream.from_table(pa.table({"k": list(range(100)) * 2})).key_by("k").aggregate(n=wb.count())
    pipeline = counts.sink_to(wb.TableSink("counts"))

    def run(where: Path, **options: object) -> wb.types.Job:
        job = pipeline.run("counts", checkpoint_dir=where, checkpoint_interval="20ms", **options)  # type: ignore[arg-type]
        assert job.wait("60s") == "FINISHED"
        return job

    first = run(tmp_path)
    assert any((tmp_path / "state").iterdir())
    expected = first.table("counts").num_rows
    run(tmp_path)  # FINISHED, so the run starts over
    aside = tmp_path / "earlier" / "1"
    assert first.table("counts").num_rows == expected
    [*_, last] = sorted(path.name for path in aside.glob("chk-*"))
    assert run(tmp_path / "other", restore=aside / last).table("counts").num_rows == expected
    assert run(aside, resume=True).table("counts").num_rows == expected
    with pytest.raises(CheckpointError, match=r"continue it with resume=True, or choose another checkpoint_dir"):
        run(tmp_path, restore=aside / last)


@pytest.mark.slow
def test_an_object_store_keeps_what_is_set_aside(bucket: str) -> None:
    place = used(bucket, "first", 1)
    with closing(DirectoryStorage(bucket)) as storage:
        aside = storage.set_aside(RECORD)
        assert storage.latest() is None
        assert storage.savepoints() == []
    assert SECRET not in told_aside("first", aside)
    with closing(DirectoryStorage(aside)) as storage:
        latest = storage.latest()
        assert latest is not None
        assert latest.place == place
        assert [each.place for each in storage.savepoints()] == ["savepoints/kept"]
        for manifest in (*storage.manifests(), *storage.savepoints()):
            for file in manifest.files:
                storage.states(manifest, file)  # which compares the checksums
            assert all(storage._files.exists(path) for path in manifest.needs)
        assert storage.kept(RECORD) == b"first"
