"""What survives a power failure: the order in which files and folders are created, synced and renamed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import workbench as wb
from workbench.connectors.parts.part_files import make_folder, take_folder, write_durably
from workbench.drivers.contract.probes import Probe
from workbench.drivers.faults.fault_names import Kind
from workbench.drivers.faults.faults import Fault, FaultPlan
from workbench.drivers.faults.faulty_disk import ProbedDisk
from workbench.durable.delayed_encoding import FILES
from workbench.durable.disk import DISK, make_folder_durably
from workbench.errors import SinkError, UnreadableCheckpointError
from workbench.lab import TOPOLOGIES, Scenario, run_scenario
from workbench.lab.simulation.exhaustive import Case, run_case
from workbench.lab.simulation.whole_checkpoints import lacking
from workbench.operators.contract.base import OperatorContext
from workbench.runtime.storage import DirectoryStorage, Manifest, folder_of
from workbench.runtime.storage.encoding import encode
from workbench.runtime.storage.files import LocalFiles
from workbench.runtime.storage.holding import LocalHold

# --- what the system is asked for


class Calls:
    """What is asked of the system's files, and what would not survive a power failure at this moment.

    Attributes:
        renamed: files that got their name, whose content and whose folders were durable then.
        unlinked: files that lost their first name, when their second one was durable.
        nameless: names that were given and not synced, with the number of the folder in which they stand.
        count: of syncs.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.renamed: list[str] = []
        self.nameless: dict[str, int] = {}
        self.count = 0
        self.unlinked: list[str] = []
        self._second: dict[str, str] = {}
        self._synced: set[int] = set()
        self._fsync, self._replace, self._mkdir, self._link = os.fsync, os.replace, os.mkdir, os.link
        self._unlink = os.unlink
        patch.setattr(os, "fsync", self.fsync)
        patch.setattr(os, "replace", self.replace)
        patch.setattr(os, "mkdir", self.mkdir)
        patch.setattr(os, "link", self.link)
        patch.setattr(os, "unlink", self.unlink)

    def fsync(self, descriptor: int) -> None:
        self._fsync(descriptor)
        self.count += 1
        number = os.fstat(descriptor).st_ino
        self._synced.add(number)
        self.nameless = {path: folder for path, folder in self.nameless.items() if folder != number}

    def replace(self, source: str, target: str) -> None:
        assert os.stat(source).st_ino in self._synced, f"{source} was not synced"
        above = [path for path in self.nameless if target.startswith(f"{path}/")]
        assert not above, f"{above} is not durable, and {target} lies in it"
        if target.endswith("manifest.json"):
            assert not self.nameless, "what the manifest lists is not durable"
        self._replace(source, target)
        self.nameless.pop(source, None)
        self._named(target)
        self.renamed.append(target)

    def mkdir(self, path: Any, mode: int = 0o777) -> None:
        self._mkdir(path, mode)
        if not os.path.basename(path).startswith("workbench-simulation-"):  # the folder of a run is of no account
            self._named(str(path))

    def link(self, source: str, target: str) -> None:
        self._link(source, target)
        self._named(target)
        self._second[source] = target
        self.renamed.append(target)

    def unlink(self, path: Any) -> None:
        if str(path) in self._second:
            assert self._second[str(path)] not in self.nameless, f"{path} is deleted, and its other name is not durable"
            self.unlinked.append(str(path))
        self._unlink(path)

    def _named(self, path: str) -> None:
        self.nameless[path] = os.stat(os.path.dirname(path)).st_ino


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    return Calls(monkeypatch)


def test_all_parents_that_a_folder_lacks_are_synced(tmp_path: Path, calls: Calls) -> None:
    make_folder_durably(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
    assert calls.nameless == {}
    assert calls.count == 3
    make_folder_durably(tmp_path / "a" / "b" / "c")
    make_folder(tmp_path / "a")
    assert calls.count == 3


def test_a_checkpoint_directory_survives_a_power_failure(tmp_path: Path, calls: Calls) -> None:
    hold = LocalHold(tmp_path / "new" / "checkpoints")
    hold.files.write("savepoints/before/manifest.json", (b"all",))
    hold.files.take(hold.files, "savepoints/before/manifest.json", "savepoints/after/tables/t/part")
    hold.release()
    assert calls.nameless == {}


def test_who_takes_a_directory_makes_durable_what_a_killed_process_left(tmp_path: Path, calls: Calls) -> None:
    checkpoints, rows = tmp_path / "new" / "checkpoints", tmp_path / "folder" / "rows"
    for folder in (checkpoints / "chk-00000001", checkpoints / "tables" / "t", checkpoints / "savepoints", rows):
        folder.mkdir(parents=True)
    (tmp_path / "draft").touch()
    os.link(tmp_path / "draft", checkpoints / "tables" / "t" / "part")
    assert len(calls.nameless) == 9
    storage = DirectoryStorage(checkpoints)
    storage.sync_names()
    storage.close()
    assert list(calls.nameless) == [str(rows)]  # the folder above it stands beside that of the checkpoints
    sink = wb.ParquetSink(rows).create(pa.schema([("n", pa.int64())]))
    sink.open(OperatorContext())
    assert calls.nameless == {}


def test_the_folder_of_a_database_is_durable_before_rows_are_written(tmp_path: Path, calls: Calls) -> None:
    (tmp_path / "folder" / "rows").mkdir(parents=True)
    sink = wb.SqlSink(f"sqlite:///{tmp_path}/folder/rows/all.db", "t").create(pa.schema([("n", pa.int64())]))
    sink.open(OperatorContext())
    assert calls.nameless == {}


def test_a_job_makes_its_directory_durable_before_it_reads_it(
    tmp_path: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.TableSink("rows"))
    pipeline.run("first", checkpoint_dir=tmp_path / "c").wait("60s")
    (tmp_path / "c" / "state").mkdir()
    read: list[bool] = []
    latest = DirectoryStorage.latest

    def looked(storage: DirectoryStorage) -> Any:
        read.append(bool(calls.nameless))
        return latest(storage)

    monkeypatch.setattr(DirectoryStorage, "latest", looked)
    assert calls.nameless
    pipeline.run("second", checkpoint_dir=tmp_path / "c", resume=True).wait("60s")
    assert read
    assert not any(read)


def test_whatever_a_checkpoint_needs_is_durable_when_it_is_complete(calls: Calls) -> None:
    for pipeline in ("in files", "latest"):
        for seed in range(30):
            scenario = Scenario(seed, {pipeline: TOPOLOGIES[pipeline]}, faults=FaultPlan(), durable=True)
            assert run_scenario(scenario).violations == ()
            assert calls.nameless == {}, "a commit was not synced"
    for kind in ("/chk-", "/savepoints/", "/state/", "/tables/", "/part-", "/.pending-", "manifest.json"):
        assert any(kind in path for path in calls.renamed), kind
    assert any("/.pending-" in path for path in calls.unlinked)


# --- a disk that loses its power


class Always(Random):
    """Chance by which every deleted file is back."""

    def random(self) -> float:
        return 0.0


@pytest.fixture
def disk() -> Iterator[ProbedDisk]:
    disk = ProbedDisk(Probe(), Always())
    token = DISK.set(disk)
    yield disk
    DISK.reset(token)


def test_what_was_synced_survives(tmp_path: Path, disk: ProbedDisk) -> None:
    files = LocalFiles(tmp_path / "root")
    files.write("a/b", (b"one", b"two"))
    files.take(files, "a/b", "c/d")
    files.write("a/b", (b"three",))
    disk.lose_power()
    assert (tmp_path / "root" / "a" / "b").read_bytes() == b"three"
    assert (tmp_path / "root" / "c" / "d").read_bytes() == b"onetwo"


def test_what_was_not_synced_is_gone(tmp_path: Path, disk: ProbedDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    write_durably(tmp_path / "kept", b"before")
    monkeypatch.setattr(disk, "sync_folder", lambda folder: None)
    write_durably(tmp_path / "kept", b"after")
    write_durably(tmp_path / "new", b"some")
    make_folder(tmp_path / "folder" / "below")
    disk.link(str(tmp_path / "kept"), str(tmp_path / "folder" / "link"))
    disk.lose_power()
    assert (tmp_path / "kept").read_bytes() == b"before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "kept.tmp", "new.tmp"]


def test_a_file_that_was_not_synced_is_empty(tmp_path: Path, disk: ProbedDisk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "sync", lambda file, path: None)
    write_durably(tmp_path / "file", b"some")
    disk.lose_power()
    assert (tmp_path / "file").read_bytes() == b""


def test_what_was_deleted_is_back_unless_its_folder_was_synced(tmp_path: Path, disk: ProbedDisk) -> None:
    files = LocalFiles(tmp_path / "root")
    for name in ("back", "gone", "half/one", "half/below/two", "whole/one"):
        files.write(name, (name.encode(),))
    files.delete_durably("gone")
    files.delete_durably("nowhere/gone")
    files.delete("back")
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["half", "whole"]
    disk.lose_power()
    assert sorted(path.name for path in (tmp_path / "root").iterdir()) == ["back", "half", "whole"]
    assert (tmp_path / "root" / "back").read_bytes() == b"back"

    files.delete("half/one")
    files.delete_folder("half")
    files.delete("whole/one")
    files.write("whole/one", (b"another",))
    assert not (tmp_path / "root" / "half").exists()
    disk.lose_power()
    assert (tmp_path / "root" / "half" / "one").read_bytes() == b"half/one"
    assert (tmp_path / "root" / "half" / "below" / "two").read_bytes() == b"half/below/two"
    assert (tmp_path / "root" / "whole" / "one").read_bytes() == b"another"

    files.delete("half/one")
    files.delete_folder("half")
    files.write("half/three", (b"three",))
    disk.lose_power()
    assert [path.name for path in (tmp_path / "root" / "half").iterdir()] == ["three"]


def test_a_deleted_file_that_was_never_synced_is_back_without_its_content(
    tmp_path: Path, disk: ProbedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync", lambda file, path: None)
        write_durably(tmp_path / "file", b"some")
    disk.delete(str(tmp_path / "file"))
    disk.lose_power()
    assert (tmp_path / "file").read_bytes() == b""


def test_a_power_failure_brings_some_deleted_files_back_and_others_not(tmp_path: Path) -> None:
    left = []
    for _ in range(2):
        disk = ProbedDisk(Probe(), Random(1))
        for name in "abcdefghij":
            (tmp_path / name).write_bytes(b"")
            disk.delete(str(tmp_path / name))
        assert not any(tmp_path.iterdir())
        disk.lose_power()
        left.append(sorted(path.name for path in tmp_path.iterdir()))
    assert left[0] == left[1]
    assert 0 < len(left[0]) < 10


def two_checkpoints(storage: DirectoryStorage) -> None:
    """Of one task, which need a file that both share."""
    storage._files.write("tables/t/shared", (b"rows",))
    for number in (1, 2):
        place = folder_of(number, None)
        file = storage.write(place, "a[0]", encode({"a": {FILES: ["tables/t/shared"]}}))
        storage.complete(place, Manifest(number, "job", "periodic", 1, 2, {"a": 1}, (file,), place=place))


def test_a_checkpoint_that_was_removed_is_not_complete_again(tmp_path: Path, disk: ProbedDisk) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        two_checkpoints(storage)
        storage.discard("chk-00000001")
        disk.lose_power()
        assert list((tmp_path / "chk-00000001").iterdir()) == [tmp_path / "chk-00000001" / "a-0.arrow"]
        assert [manifest.place for manifest in storage.manifests()] == ["chk-00000002"]


def test_a_checkpoint_whose_removal_could_not_be_synced_keeps_what_it_needs(
    tmp_path: Path, disk: ProbedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: str) -> None:
        raise OSError(5, "Input/output error")

    with closing(DirectoryStorage(tmp_path)) as storage:
        two_checkpoints(storage)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "sync_folder", broken)
            with pytest.raises(
                UnreadableCheckpointError, match=r"manifest.json cannot be permanently removed now: Input"
            ):
                storage.discard("chk-00000001")
        storage.discard("chk-00000002")
        disk.sync_folder(str(tmp_path / "tables" / "t"))
        disk.lose_power()
        assert lacking(tmp_path) == []
        assert [manifest.place for manifest in storage.manifests()] == ["chk-00000001"]


def test_a_job_that_could_not_go_back_to_a_savepoint_stays_where_it_was(tmp_path: Path, disk: ProbedDisk) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        two_checkpoints(storage)
        first, latest = storage.manifests()
        storage.take_back(first, 3)
        assert storage.latest() == first
        storage.undo_take_back()
        disk.lose_power()
        assert storage.latest() == latest


def test_a_job_that_does_not_start_gives_its_directory_back_although_its_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(storage: DirectoryStorage) -> None:
        raise UnreadableCheckpointError("the disk does not answer")

    monkeypatch.setattr(DirectoryStorage, "undo_take_back", broken)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "part-00000001-0000-000.parquet").touch()
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.ParquetSink(tmp_path / "out"))
    with pytest.raises(UnreadableCheckpointError, match="the disk does not answer"):
        pipeline.run("refused", checkpoint_dir=tmp_path / "c")
    DirectoryStorage(tmp_path / "c").close()


@pytest.mark.parametrize(("mode", "syncs", "then"), [("unaligned", 12, 40), ("unaligned", 17, 40)])
def test_names_that_a_killed_process_did_not_sync_survive_the_power_failure_of_its_successor(
    mode: str, syncs: int, then: int
) -> None:
    plan = FaultPlan((Fault("folder sync", syncs, "kill"), Fault("step", then, "power", follows=True)))
    outcome = run_case(Case("latest", mode, 0, plan))
    assert outcome.reached
    assert outcome.violations == ()


@pytest.mark.parametrize(("mode", "syncs"), [("exactly-once", 12), ("unaligned", 18)])
@pytest.mark.parametrize("kind", ["kill", "power"])
def test_a_manifest_whose_folder_could_not_be_synced_takes_nothing_of_the_next_one_with_it(
    mode: str, syncs: int, kind: Kind
) -> None:
    plan = FaultPlan((Fault("folder sync", syncs, "broken"), Fault("notify", 1, kind, follows=True)))
    outcome = run_case(Case("latest", mode, 0, plan))
    assert outcome.reached
    assert outcome.violations == ()


@pytest.mark.parametrize("exists", [False, True])
def test_a_folder_that_cannot_be_synced_is_told_by_its_name(
    tmp_path: Path, disk: ProbedDisk, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    def broken(folder: str) -> None:
        raise OSError(5, "Input/output error")

    if exists:
        (tmp_path / "out").mkdir()
    monkeypatch.setattr(disk, "sync_folder", broken)
    said = rf"cannot sync {tmp_path}, so a power failure could lose the folder .*out: Input/output error"
    with pytest.raises(SinkError, match=said):
        take_folder(tmp_path / "out")


def test_a_folder_whose_name_could_not_be_synced_is_made_again(
    tmp_path: Path, disk: ProbedDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(folder: str) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync_folder", broken)
        with pytest.raises(OSError, match="Input/output error"):
            make_folder_durably(tmp_path / "folder")
    make_folder_durably(tmp_path / "folder")
    disk.lose_power()
    assert (tmp_path / "folder").is_dir()


def test_a_file_whose_folder_is_gone_is_not_told_as_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(
        wb.errors.SinkError, match="No such file or directory; its folder existed when the job started: bring it"
    ):
        write_durably(tmp_path / "gone" / "file", b"some")


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EROFS, "make its folder writable again"),
        (errno.EACCES, "make its folder writable again"),
        (errno.ENOSPC, "free some space"),
        (errno.EMFILE, "close files that are open, or raise the limit of open files (ulimit -n)"),
    ],
)
def test_a_folder_that_is_no_longer_writable_is_not_told_as_a_full_disk(
    tmp_path: Path, disk: ProbedDisk, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(disk, "sync", refused)
    with pytest.raises(wb.errors.SinkError) as caught:
        write_durably(tmp_path / "file", b"some")
    assert str(caught.value) == (
        f"cannot write {tmp_path / 'file'}: {os.strerror(number)}; {advice} or choose another folder"
    )
    assert list(tmp_path.iterdir()) == []  # what was begun takes no space that is scarce
