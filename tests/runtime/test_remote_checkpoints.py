"""Checkpoints in other file systems: an object store, and errors about missing ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SECRET
from pyarrow import fs
from waiting import until

import workbench as wb
from workbench.clock import VirtualClock
from workbench.runtime.storage import DirectoryStorage, Manifest, folder_named, folder_of
from workbench.runtime.storage.encoding import encode
from workbench.runtime.storage.files import LocalFiles
from workbench.runtime.storage.lease import LEASE_US
from workbench.runtime.storage.locations import folder_in
from workbench.runtime.storage.remote_files import RemoteFiles


def folder(bucket: str, place: str) -> str:
    """Its URI."""
    head, _, options = bucket.partition("?")
    return f"{head}/{place}?{options}"


def checkpoint(storage: DirectoryStorage, number: int, table: pa.Table, savepoint: str | None = None) -> Manifest:
    place = folder_of(number, savepoint)
    file = storage.write(place, "a[0]", encode({"a": {"rows": table, "n": number}}))
    manifest = Manifest(number, "job", "savepoint" if savepoint else "periodic", 1, 2, {"a": 1}, (file,), place=place)
    storage.complete(place, manifest)
    return manifest


def test_an_object_store_keeps_checkpoints_and_what_changed_in_them(bucket: str, tmp_path: Path) -> None:
    table = pa.table({"key:k": range(1_000), "n": [0] * 1_000})
    other = table.set_column(1, "n", pa.array([1, *[0] * 999]))
    with closing(DirectoryStorage(bucket, incremental_above_bytes=0)) as storage:
        first = checkpoint(storage, 1, table)
        second = checkpoint(storage, 2, other)
        saved = checkpoint(storage, 3, other, savepoint="s")
        assert storage.manifests() == [first, second]
        assert storage.latest() == saved
        storage.discard(first.place)
        storage.write(folder_of(4, None), "a[0]", encode({"a": {"n": 4}}))
    with closing(DirectoryStorage(bucket)) as storage:
        assert storage.highest_id() == 4
        storage.remove_incomplete()
        assert storage.highest_id() == 3
        (kept,) = storage.manifests()
        assert len(kept.files[0].parts) == 2
        for manifest in (kept, saved):
            assert storage.states(manifest, manifest.files[0])["a"]["rows"].equals(other)
    with closing(DirectoryStorage(tmp_path / "here")) as local:
        found = folder_named(folder(bucket, "savepoints/s"))
        assert found is not None
        brought = local.bring_in(*found)
        assert local.states(brought, brought.files[0])["a"]["rows"].equals(other)


NUMBERS = pa.table({"n": range(3_000), "t": range(3_000)})


def pipeline(out: Path, rate: int | None) -> wb.types.Pipeline:
    numbers = wb.Stream.from_table(NUMBERS, event_time="t", rate=rate).uid("numbers")
    counts = numbers.with_columns(odd="n % 2").key_by("odd").aggregate(count=wb.count()).uid("counts")
    return counts.sink_to(wb.ParquetSink(out))


@pytest.mark.slow
def test_a_job_recovers_exactly_once_from_an_object_store(bucket: str, tmp_path: Path) -> None:
    first = pipeline(tmp_path / "out", 100).run(  # all of it would take half a minute
        "remote", checkpoint_dir=bucket, checkpoint_interval="50ms", parallelism=2
    )

    def done() -> int:
        return sum(c.state == "COMPLETED" for c in first.checkpoints())

    until(lambda: done() >= 1)
    before = done()
    first.fail("counts[0]")
    until(lambda: done() > before)
    with pytest.raises(wb.errors.CheckpointError, match=r"is in use by process \d+ on") as caught:
        DirectoryStorage(bucket)
    assert SECRET not in str(caught.value)
    first.cancel()
    first.wait("60s")
    again = pipeline(tmp_path / "out", None).run("remote", checkpoint_dir=bucket, resume=True, parallelism=1)
    assert again.wait("60s") == "FINISHED"
    found = pq.read_table(tmp_path / "out")
    expected = [(odd, count + 1) for odd in (0, 1) for count in range(1_500)]
    assert sorted(zip(found.column("odd").to_pylist(), found.column("count").to_pylist(), strict=True)) == expected
    paths = [c.path for c in again.checkpoints()]
    everything = repr(again.status()) + repr(paths) + repr(again.recorder.latest())
    assert "s3://***@" in everything
    assert SECRET not in everything
    assert wb.savepoints(bucket) == []


def test_no_secret_is_written_or_shown(bucket: str) -> None:
    with closing(DirectoryStorage(bucket)) as storage:
        manifest = checkpoint(storage, 1, pa.table({"n": [1]}))
        assert SECRET.encode() not in manifest.to_json()
        assert SECRET not in storage.path_of(manifest.place) + storage.shown + repr(storage)
        assert storage.path_of(manifest.place).endswith("/jobs/c/chk-00000001")
    reader = wb.Snapshot.open(folder(bucket, "chk-00000001"))
    assert SECRET not in repr(reader) + reader._repr_html_() + repr(reader.to_dict())
    with pytest.raises(wb.errors.CheckpointError) as caught:
        wb.Snapshot.open(folder(bucket, "chk-00000009"))
    assert SECRET not in str(caught.value)


def test_a_bucket_that_does_not_exist_is_refused_in_a_sentence(bucket: str) -> None:
    with pytest.raises(wb.errors.CheckpointError, match="cannot be used") as caught:
        DirectoryStorage(bucket.replace("@b", "@no-such-b"))
    assert SECRET not in str(caught.value)


def test_a_lease_ends_when_its_owner_is_silent_and_the_owner_finds_out(bucket: str) -> None:
    clock = VirtualClock(1_000_000_000)
    first = DirectoryStorage(bucket, clock=clock)
    clock.advance_to(clock.now_us() + LEASE_US - 1)
    with pytest.raises(wb.errors.CheckpointError, match="in use by process"):
        DirectoryStorage(bucket, clock=clock)
    first.beat()
    clock.advance_to(clock.now_us() + LEASE_US - 1)
    with pytest.raises(wb.errors.CheckpointError, match="in use by process"):
        DirectoryStorage(bucket, clock=clock)
    clock.advance_to(clock.now_us() + 1)
    second = DirectoryStorage(bucket, clock=clock)
    with pytest.raises(wb.errors.CheckpointError, match="was taken over by"):
        first.beat()
    with pytest.raises(wb.errors.CheckpointError, match="was taken over by"):
        checkpoint(first, 1, pa.table({"n": [1]}))
    assert second.manifests() == []
    first.close()
    second.check()  # the former owner takes nothing away from the present one
    second.close()
    DirectoryStorage(bucket, clock=clock).close()


def test_tables_need_a_directory_of_this_machine(bucket: str) -> None:
    with pytest.raises(wb.errors.PlanError, match=r"the table 'numbers' cannot be kept in 's3://\*\*\*@") as caught:
        wb.Stream.from_table(NUMBERS).sink_to(wb.TableSink("numbers")).run("tables", checkpoint_dir=bucket)
    assert SECRET not in str(caught.value)


def test_what_cannot_be_opened_says_what_is_missing() -> None:
    run = wb.Stream.from_table(NUMBERS).sink_to(wb.DiscardSink()).run
    with pytest.raises(wb.errors.CheckpointError, match=r"'hdfs://ann:?\S*@?namenode:8020/c'|libhdfs") as caught:
        run("hdfs", checkpoint_dir="hdfs://ann@namenode:8020/c")
    assert "libhdfs" in str(caught.value)
    assert "HADOOP_HOME" in str(caught.value)
    with pytest.raises(wb.errors.CheckpointError, match="write a path, or a URI such as s3://bucket/prefix"):
        run("ftp", checkpoint_dir="ftp://host/c")


def test_a_file_uri_is_a_path(tmp_path: Path) -> None:
    with closing(DirectoryStorage(f"file://{tmp_path}/c")) as storage:
        assert storage.directory == tmp_path / "c"
        checkpoint(storage, 1, pa.table({"n": [1]}))
    assert (tmp_path / "c" / "chk-00000001" / "manifest.json").exists()


def test_what_another_process_deletes_at_the_same_moment_is_deleted(tmp_path: Path) -> None:
    class Contended:
        """A file system on which whatever somebody asks about is deleted right after the answer."""

        type_name = "contended"
        local = fs.LocalFileSystem()
        delete_dir, delete_file = local.delete_dir, local.delete_file

        def get_file_info(self, path: str) -> fs.FileInfo:
            info = self.local.get_file_info(path)
            (self.delete_dir if info.type == fs.FileType.Directory else self.delete_file)(path)
            return info

    files = RemoteFiles(Contended(), str(tmp_path), "there")
    (tmp_path / "chk-1").mkdir()
    (tmp_path / "chk-1" / "part").touch()
    (tmp_path / "manifest").touch()
    files.delete_folder("chk-1")
    files.delete("manifest")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "look",
    [
        wb.found_jobs,
        wb.savepoints,
        lambda uri: wb.Snapshot.open(folder_in(uri, "savepoints/monday")),
        lambda uri: wb.delete_savepoint(folder_in(uri, "savepoints/monday")),
    ],
    ids=["found_jobs", "savepoints", "Snapshot.open", "delete_savepoint"],
)
def test_a_store_that_does_not_let_anybody_in_is_told_with_its_place_and_a_remedy(
    look: Callable[[str], object], bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: RemoteFiles, path: str = "") -> Any:
        raise OSError(f"When listing s3://key:{SECRET}@b: AWS Error ACCESS_DENIED during ListObjectsV2\nand more")

    monkeypatch.setattr(RemoteFiles, "folders", refused)
    monkeypatch.setattr(RemoteFiles, "exists", refused)
    with pytest.raises(
        wb.errors.CheckpointError,
        match=r"the checkpoint directory 's3://\*\*\*@b\d+/jobs/c(/savepoints)?' cannot be used \("
        r"When listing s3://\*\*\*@b: AWS Error ACCESS_DENIED during ListObjectsV2\): "
        r"check that it exists and the credentials, or choose another$",
    ) as caught:
        look(bucket)
    assert SECRET not in repr(caught.value) + repr(caught.value.__cause__)


def test_a_folder_that_nobody_may_look_into_is_told_likewise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: LocalFiles, path: str = "") -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(LocalFiles, "folders", refused)
    for look in (wb.found_jobs, wb.savepoints):
        with pytest.raises(
            wb.errors.CheckpointError, match=f"'{tmp_path}' cannot be used .Permission denied.: change its perm"
        ):
            look(tmp_path)
