"""Standing by for a job with checkpoints in an object store, where only a lease excludes a second owner (F2-16)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SECRET

import workbench as wb
from workbench.api.beginning import opening
from workbench.api.launching import claiming
from workbench.clock import VirtualClock
from workbench.durable.checksum import RunningChecksum
from workbench.errors import CheckpointError
from workbench.runtime.storage import DirectoryStorage, HeldError, Manifest, directory, lease
from workbench.runtime.storage.encoding import encode
from workbench.runtime.storage.lease import HEARTBEAT_US, LEASE, LEASE_US, SETTLE_US, Lease
from workbench.runtime.storage.locations import open_files

COUNT = 4_000


def numbers(out: Path, rate: int | None = None) -> wb.types.Pipeline:
    return wb.Stream.from_table(pa.table({"n": range(COUNT)}), rate=rate).sink_to(wb.ParquetSink(out))


def written(out: Path) -> list[int]:
    return sorted(n for path in out.glob("part-*") for n in pq.read_table(path)["n"].to_pylist())


def until(job: wb.types.Job, reached: Callable[[], bool]) -> None:
    while not reached():
        assert not job.over
        job._run.driver.wait_for(job._run.driver.ended, 0.01)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    """By which all leases go."""
    clock = VirtualClock(1_700_000_000_000_000)
    monkeypatch.setattr(directory, "BootClock", lambda: clock)
    monkeypatch.setattr(opening, "SETTLE_US", 0)
    return clock


def test_it_waits_as_long_as_the_owner_lives_and_no_longer(
    bucket: str, clock: VirtualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    opened = claiming.open_storage

    def counted(*arguments: Any, **options: Any) -> Any:
        tried.append(clock.now_us())
        return opened(*arguments, **options)

    owner = DirectoryStorage(bucket, clock=clock)
    monkeypatch.setattr(claiming, "open_storage", counted)
    job = numbers(tmp_path / "out").run("stands-by", checkpoint_dir=bucket, standby=True)
    for _ in range(3):
        clock.advance_to(clock.now_us() + LEASE_US - 1)
        until(job, lambda: tried.count(clock.now_us()) > 1)  # the first of these has come to its end
        assert job.state == "SUSPENDED"
        assert job.status()["lease"] == str(owner.holder)
        owner.beat()
    clock.advance_to(clock.now_us() + LEASE_US)  # the owner has died
    assert job.wait("60s") == "FINISHED"
    assert written(tmp_path / "out") == list(range(COUNT))
    with pytest.raises(CheckpointError, match="was taken over by nobody"):  # who finished has given it back
        owner.beat()
    assert SECRET not in repr(job.status())


def test_an_owner_that_was_only_silent_ends_when_another_has_taken_over(
    bucket: str, clock: VirtualClock, tmp_path: Path
) -> None:
    first = numbers(tmp_path / "out", rate=500).run("silent", checkpoint_dir=bucket, checkpoint_interval="50ms")
    until(first, lambda: int(first.status()["checkpoints"]) > 0)
    clock.advance_to(clock.now_us() + LEASE_US)
    second = numbers(tmp_path / "out").run("takes-over", checkpoint_dir=bucket, standby=True)
    with pytest.raises(wb.errors.JobError, match="was taken over by"):
        first.wait("60s")
    assert second.wait("60s") == "FINISHED"
    assert written(tmp_path / "out") == list(range(COUNT))


def test_an_owner_bears_that_the_store_is_away_for_a_moment_and_no_longer(
    bucket: str, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: Lease) -> tuple[str | None, int]:
        raise OSError(f"When reading {bucket}: no route to host")

    with closing(DirectoryStorage(bucket, clock=clock)) as owner:
        with monkeypatch.context() as patched:
            patched.setattr(Lease, "_read", away)
            clock.advance_to(clock.now_us() + lease.SILENT_MOST_US - 1)
            owner.beat()
        owner.beat()
        with monkeypatch.context() as patched:
            patched.setattr(Lease, "_read", away)
            clock.advance_to(clock.now_us() + lease.SILENT_MOST_US)
            with pytest.raises(CheckpointError, match=r"not be renewed for 7 seconds \(.*no route to host") as told:
                owner.beat()
    assert SECRET not in str(told.value)


def test_of_two_that_come_at_once_one_gets_it_and_the_other_waits_on(
    bucket: str, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2, timeout=60)
    read, looks = Lease._read, threading.local()

    def both(self: Lease) -> tuple[str | None, int]:
        """Both find it free before one takes it, and both have taken it before one looks again."""
        looks.count = getattr(looks, "count", 0) + 1
        if looks.count == 2:
            together.wait()
        found = read(self)
        if looks.count == 1:
            together.wait()
        return found

    outcomes: list[Any] = []

    def come() -> None:
        try:
            outcomes.append(opening.open_storage(bucket, True, None)[0])
        except CheckpointError as error:
            outcomes.append(error)

    with closing(DirectoryStorage(bucket, clock=clock)):
        clock.advance_to(clock.now_us() + LEASE_US)
        with monkeypatch.context() as patched:
            patched.setattr(Lease, "_read", both)
            threads = [threading.Thread(target=come) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        (got,) = [outcome for outcome in outcomes if isinstance(outcome, DirectoryStorage)]
        (refused,) = [outcome for outcome in outcomes if isinstance(outcome, HeldError)]  # for which a standby waits
        assert refused.holder == got.holder
        got.check()
        got.close()


class Stalled:
    """Files of a lease's directory that take their time once.

    Attributes:
        path: of the file.
        meanwhile: happens before it is written.
    """

    def __init__(self, files: Any) -> None:
        self._files = files
        self.path = ""
        self.meanwhile: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def write(self, path: str, pieces: Any) -> None:
        if self.path and path.endswith(self.path):
            self.path = ""
            self.meanwhile()
        self._files.write(path, pieces)


def stalled(owner: DirectoryStorage, path: str, meanwhile: Callable[[], None]) -> None:
    files = Stalled(owner._files)
    files.path, files.meanwhile = path, meanwhile
    owner._files = owner._hold.files = files  # type: ignore[assignment]


def test_an_owner_that_stalls_while_it_renews_its_lease_does_not_go_on_beside_its_successor(
    bucket: str, clock: VirtualClock
) -> None:
    successors: list[DirectoryStorage] = []

    def succeed() -> None:
        clock.advance_to(clock.now_us() + LEASE_US)
        successors.append(DirectoryStorage(bucket, clock=clock))
        clock.advance_to(clock.now_us() + SETTLE_US)
        successors[0].settle()

    owner = DirectoryStorage(bucket, clock=clock)
    clock.advance_to(clock.now_us() + HEARTBEAT_US)
    stalled(owner, LEASE, succeed)
    for ask in (owner.beat, owner.check, owner.beat):
        with pytest.raises(CheckpointError, match="renewed its lease too late"):
            ask()
    with pytest.raises(CheckpointError, match="was taken over by"):
        successors[0].beat()
    clock.advance_to(clock.now_us() + LEASE_US)
    with closing(DirectoryStorage(bucket, clock=clock)) as third:
        owner.close()
        successors[0].close()
        third.beat()


def test_a_renewal_is_believed_when_it_took_effect_in_time(bucket: str, clock: VirtualClock) -> None:
    def stall(us: int) -> Callable[[], None]:
        return lambda: clock.advance_to(clock.now_us() + us)

    with closing(DirectoryStorage(bucket, clock=clock)) as owner:
        stalled(owner, LEASE, stall(lease.SILENT_MOST_US - 1))
        owner.beat()  # nobody may have taken it yet
        clock.advance_to(clock.now_us() + 10 * LEASE_US)  # the machine slept
        stalled(owner, LEASE, stall(SETTLE_US))
        owner.beat()  # who has taken it would still wait
        clock.advance_to(clock.now_us() + 10 * LEASE_US)
        stalled(owner, LEASE, stall(SETTLE_US + 1))
        with pytest.raises(CheckpointError, match="renewed its lease too late"):
            owner.beat()


def test_a_renewal_that_failed_and_came_nevertheless_is_not_believed_later(bucket: str, clock: VirtualClock) -> None:
    owner = DirectoryStorage(bucket, clock=clock)
    files = owner._files

    def come_later() -> None:
        late = {"owner": owner._hold.lease, "heartbeat_us": clock.now_us()}  # type: ignore[attr-defined]
        files.write(LEASE, (json.dumps(late).encode(),))
        raise OSError("no answer")

    clock.advance_to(clock.now_us() + HEARTBEAT_US)
    stalled(owner, LEASE, come_later)
    owner.beat()
    owner.check()
    clock.advance_to(clock.now_us() + LEASE_US)
    with pytest.raises(CheckpointError, match="renewed its lease too late"):
        owner.check()


def test_nobody_is_told_of_a_checkpoint_that_was_complete_too_late(bucket: str, clock: VirtualClock) -> None:
    owner = DirectoryStorage(bucket, clock=clock)
    successors: list[DirectoryStorage] = []

    def succeed() -> None:
        clock.advance_to(clock.now_us() + LEASE_US)
        successors.append(DirectoryStorage(bucket, clock=clock))

    file = owner.write("chk-00000001", "a[0]", encode({"a": {"n": 1}}))
    stalled(owner, "manifest.json", succeed)
    with pytest.raises(CheckpointError, match="was taken over by"):
        owner.complete("chk-00000001", Manifest(1, "job", "periodic", 1, 2, {}, (file,), place="chk-00000001"))
    for touch in (lambda: owner.discard("chk-00000001"), lambda: owner.keep("job.json", b"{}")):
        with pytest.raises(CheckpointError, match="was taken over by"):
            touch()
    (successor,) = successors
    assert [manifest.place for manifest in successor.manifests()] == ["chk-00000001"]  # it may have gone on from there
    assert not successor._files.exists("job.json")
    successor.close()


def test_a_lease_of_somebody_unknown_is_respected(bucket: str, clock: VirtualClock) -> None:
    foreign = {"owner": "x", "heartbeat_us": clock.now_us()}
    open_files(bucket).write(LEASE, (json.dumps(foreign).encode(),))
    with pytest.raises(HeldError, match="names 'x'") as told:
        DirectoryStorage(bucket, clock=clock)
    assert told.value.holder is None
    clock.advance_to(clock.now_us() + LEASE_US)
    DirectoryStorage(bucket, clock=clock).close()


def test_the_times_of_a_lease_leave_room_for_clocks_that_differ() -> None:
    assert LEASE_US - lease.SILENT_MOST_US >= 5_000_000
    assert 2 * HEARTBEAT_US + SETTLE_US < lease.SILENT_MOST_US


# another process -----------------------------------------------------------------------------------------------------

SHORT_US = 4_000_000
OWNER = f"""
import sys
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parent), *(str(Path(__file__).parents[1] / name) for name in ("", "support"))]!r}
from test_remote_standby import numbers
from workbench.api.beginning import opening
opening.HEARTBEAT_US, opening.SETTLE_US = 300_000, 0
job = numbers(Path(sys.argv[2]), rate=200).run("shared", checkpoint_dir=sys.argv[1], checkpoint_interval="50ms")
while int(job.status()["checkpoints"]) < 3:
    job._run.driver.wait_for(job._run.driver.ended, 0.01)
print("under way", flush=True)
job.wait()
"""


@pytest.mark.slow
def test_it_goes_on_when_the_owner_is_killed_not_before_its_lease_is_over(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "LEASE_US", SHORT_US)
    out = tmp_path / "out"
    command = [sys.executable, "-c", OWNER, bucket, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "under way\n"
        job = numbers(out).run("shared", checkpoint_dir=bucket, standby=True)
        assert job.state == "SUSPENDED"
        until(job, lambda: f"process {owner.pid} on " in str(job.status()["lease"]))
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    files = open_files(bucket)
    last = json.loads(bytes(memoryview(files.read(LEASE, RunningChecksum()))))["heartbeat_us"]
    committed = written(out)
    assert 0 < len(committed) < COUNT
    until(job, lambda: f"process {os.getpid()} on " in str(job.status()["lease"]))
    taken = json.loads(bytes(memoryview(files.read(LEASE, RunningChecksum()))))
    assert taken["owner"].split(":")[1] == str(os.getpid())
    assert taken["heartbeat_us"] >= last + SHORT_US
    assert job.wait("60s") == "FINISHED"
    assert written(out) == list(range(COUNT))
