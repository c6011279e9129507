"""What survives a power failure: the order in which files and folders are made, synced and renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from workbench.connectors.disk import DISK, make_folder_durably
from workbench.connectors.part_files import make_folder, write_durably
from workbench.drivers.faults import FaultPlan
from workbench.drivers.faulty_disk import ProbedDisk
from workbench.drivers.probes import Probe
from workbench.runtime.storage.files import LocalFiles
from workbench.runtime.storage.holding import LocalHold
from workbench.testing import TOPOLOGIES, Scenario, run_scenario

# --- what the system is asked for


class Calls:
    """What is asked of the system's files, and what would not survive a power failure at this moment.

    Attributes:
        renamed: files that got their name, whose content and whose folders were durable then.
        nameless: names that were given and not synced, with the number of the folder in which they stand.
        count: of syncs.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.renamed: list[str] = []
        self.nameless: dict[str, int] = {}
        self.count = 0
        self._synced: set[int] = set()
        self._fsync, self._replace, self._mkdir, self._link = os.fsync, os.replace, os.mkdir, os.link
        patch.setattr(os, "fsync", self.fsync)
        patch.setattr(os, "replace", self.replace)
        patch.setattr(os, "mkdir", self.mkdir)
        patch.setattr(os, "link", self.link)

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


def test_whatever_a_checkpoint_needs_is_durable_when_it_is_complete(calls: Calls) -> None:
    for pipeline in ("in files", "latest"):
        for seed in range(30):
            scenario = Scenario(seed, {pipeline: TOPOLOGIES[pipeline]}, faults=FaultPlan(), durable=True)
            assert run_scenario(scenario).violations == ()
            assert calls.nameless == {}, "a commit was not synced"
    for kind in ("/chk-", "/savepoints/", "/state/", "/tables/", "/part-", "/.pending-", "manifest.json"):
        assert any(kind in path for path in calls.renamed), kind


# --- a disk that loses its power


@pytest.fixture
def disk() -> Iterator[ProbedDisk]:
    disk = ProbedDisk(Probe(), loses_power=True)
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
