"""The soak test: a job under faults keeps every promise, and each broken promise is detected."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.cli import main
from workbench.connectors.tables.tables import Tables
from workbench.lab.soak.faults import KINDS
from workbench.lab.soak.ledger import Ledger
from workbench.lab.soak.read_rows import ReadRows
from workbench.lab.soak.resources import ARENAS, settled_mb
from workbench.lab.soak.result import Recovery, Suffered
from workbench.lab.soak.watch import Soak
from workbench.lab.soak.work import BASE_US, GROUPS, KEYS, TOTALS, WINDOW_US, WINDOWS, Work, exact_counts, exact_window

# live --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_kind_of_fault_once_and_every_promise_is_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code = main(["soak", "--seconds", str(len(KINDS)), "--fault-every", "1", "--json", "--directory", str(tmp_path)])
    outcome = json.loads(capsys.readouterr().out)
    assert outcome["violations"] == []
    assert code == 0
    assert {kind: recovery["count"] for kind, recovery in outcome["by_kind"].items()} == dict.fromkeys(KINDS, 1)
    assert outcome["recovery"]["count"] == 5
    assert outcome["after"]["threads"] == outcome["before"]["threads"]
    assert outcome["looks"] > 3
    rows = sum(pq.read_metadata(path).num_rows for path in (tmp_path / "milestones").glob("part-*"))
    # Of each key every hundredth record, so at most 99 of each key are behind the last one.
    assert outcome["records"] - 99 * KEYS <= rows * 100 <= outcome["records"]


@pytest.mark.slow
def test_a_table_that_commits_twice_and_an_open_file_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    commit, kept = Tables.commit, []

    def twice(self: Tables, name: str, subtask: int, epoch: int, table: pa.Table) -> None:
        commit(self, name, subtask, epoch, table)
        if name == WINDOWS and table.num_rows:
            self._tables[name].fresh.append(self._tables[name].fresh[-1])
            kept.append((tmp_path / "kept").open("a"))

    soak = Soak(tmp_path / "job", seconds=1, fault_every_s=1, rate=250_000, seed=3)
    soak._warm_up()
    monkeypatch.setattr(soak, "_warm_up", lambda: None)
    monkeypatch.setattr(Tables, "commit", twice)
    monkeypatch.setattr("workbench.lab.soak.watch.PATIENCE_S", 0.1)
    soaked = soak.run(lambda suffered: None, lambda seconds: None)
    assert not soaked.ok
    assert any("is committed 2 times" in violation for violation in soaked.violations)
    assert any(f"open files {soaked.before.files} -> " in violation for violation in soaked.violations)
    for file in kept:
        file.close()


# what is checked ---------------------------------------------------------------------------------------------------


class Shown:
    """A job as a ledger sees it."""

    def __init__(self, **tables: pa.Table) -> None:
        self.tables = tables

    def table(self, name: str) -> pa.Table:
        return self.tables[name]


def records(work: Work, count: int) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = work._records(0, count).to_pylist()
    return rows


def committed(work: Work, count: int = 450_000) -> Shown:
    """What a right run of so many records commits, told record by record."""
    groups: dict[tuple[int, int], list[int]] = {}
    totals: Counter[int] = Counter()
    for row in records(work, count):
        window = (row["time_us"] - BASE_US) // WINDOW_US
        groups.setdefault((window, row["group"]), []).append(row["number"])
        totals[row["key"]] += 1
    whole = {place: numbers for place, numbers in groups.items() if place[0] < 2}
    starts = pa.array([BASE_US + window * WINDOW_US for window, _ in whole])
    windows = pa.table(
        {
            "group": [group for _, group in whole],
            "window_start": starts.cast(pa.timestamp("us", "UTC")),
            "window_end": pa.array([us.as_py() + WINDOW_US for us in starts]).cast(pa.timestamp("us", "UTC")),
            "n": [len(numbers) for numbers in whole.values()],
            "s": [sum(numbers) for numbers in whole.values()],
        }
    )
    ordered = sorted(totals.items())
    key, n = [key for key, _ in ordered], [n for _, n in ordered]
    milestones = [(each, 100 * i, 100 * i * (each + 1)) for each, n_ in ordered for i in range(1, n_ // 100 + 1)]
    work.parts.mkdir(parents=True)
    columns = dict(zip(("key", "n", "s"), map(pa.array, zip(*milestones, strict=True)), strict=True))
    pq.write_table(pa.table(columns), work.parts / "part-1.parquet")
    total_rows = pa.table({"key": key, "n": n, "s": [m * (each + 1) for each, m in ordered]})
    return Shown(**{WINDOWS: windows, TOTALS: total_rows})


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shown, bytes]:
    work = Work(1.0, tmp_path_factory.mktemp("right"))
    return committed(work), (work.parts / "part-1.parquet").read_bytes()


@pytest.fixture
def shown(right: tuple[Shown, bytes], tmp_path: Path) -> tuple[Shown, Work]:
    work = Work(1.0, tmp_path)
    work.read.add(0, 450_000)
    work.parts.mkdir()
    (work.parts / "part-1.parquet").write_bytes(right[1])
    return Shown(**right[0].tables), work


def closed(job: Any, work: Work, ledger: Ledger | None = None) -> list[str]:
    ledger = ledger or Ledger(work)
    ledger.close(job)
    return ledger.violations


def test_what_is_right_is_found_right(shown: tuple[Shown, Work]) -> None:
    assert closed(*shown) == []


def test_a_window_that_comes_twice_or_not_at_all_or_is_wrong(shown: tuple[Shown, Work]) -> None:
    job, work = shown
    table = job.tables[WINDOWS]
    job.tables[WINDOWS] = pa.concat_tables([table, table.slice(5, 1)])
    assert [text.partition(" is ")[2] for text in closed(job, work)] == ["committed 2 times"]
    job.tables[WINDOWS] = table.slice(1)
    assert closed(job, work) == ["window 0 has 63 rows and should have 64"]
    more = pa.array([1] + [0] * (table.num_rows - 1))
    n = pa.array([a.as_py() + b.as_py() for a, b in zip(table["n"], more, strict=True)])
    job.tables[WINDOWS] = table.set_column(3, "n", n)
    group, right_n = table["group"][0].as_py(), table["n"][0].as_py()
    expected = f"the records of window and group {group} is {right_n + 1} and should be {right_n}"
    assert closed(job, work) == [expected]


def test_a_window_that_is_taken_back(shown: tuple[Shown, Work]) -> None:
    job, work = shown
    ledger = Ledger(work)
    ledger.look(job)
    table = job.tables[WINDOWS]
    job.tables[WINDOWS] = table.slice(1)
    ledger.look(job)
    group = table["group"][0].as_py()
    assert ledger.violations == [f"window 0 of group {group} was committed and has disappeared"]


def test_a_total_that_is_wrong_or_goes_back(shown: tuple[Shown, Work]) -> None:
    job, work = shown
    ledger = Ledger(work)
    ledger.look(job)
    table = job.tables[TOTALS]
    n, s = table["n"].to_pylist(), table["s"].to_pylist()
    job.tables[TOTALS] = pa.table({"key": table["key"], "n": [n[0] - 1, *n[1:]], "s": [s[0] - 1, *s[1:]]})
    ledger.look(job)
    assert ledger.violations == [f"the committed total of key 0 decreased from {n[0]} to {n[0] - 1}"]
    assert closed(job, work) == [f"the total of key 0 is {n[0] - 1} and should be {n[0]}"]
    job.tables[TOTALS] = pa.table({"key": table["key"], "n": n, "s": [s[0], s[1] + 7, *s[2:]]})
    assert closed(job, work) == [f"the sum of key 1 is {s[1] + 7} and should be {s[1]}"]


def test_more_records_in_totals_than_were_read(shown: tuple[Shown, Work]) -> None:
    job, work = shown
    ledger = Ledger(work)
    ledger.look(job)
    assert ledger.violations == []
    work.read = ReadRows()
    work.read.add(0, 449_999)
    ledger.look(job)
    assert ledger.violations == ["the committed totals count 450000 records, of which 449999 were read"]


def test_looking_keeps_the_notes_of_what_was_read_few(shown: tuple[Shown, Work]) -> None:
    job, work = shown
    for first in range(0, 450_000, 1_000):
        work.read.add(first, 1_000)
    assert len(work.read._fresh) > 450
    Ledger(work).look(job)
    assert (len(work.read._fresh), work.read.runs().tolist()) == (0, [[0, 450_000]])


@pytest.mark.parametrize("records", [0, 450_000])
def test_notes_have_room_from_the_beginning_and_get_more_when_it_is_too_little(
    shown: tuple[Shown, Work], records: int
) -> None:
    job, work = shown
    ledger = Ledger(work, records)
    room = ledger._windows.nbytes, ledger._milestones.nbytes
    assert closed(job, work, ledger) == []
    assert ((ledger._windows.nbytes, ledger._milestones.nbytes) == room) == (records > 0)
    pq.write_table(pa.table({"key": [7], "n": [90_000], "s": [720_000]}), work.parts / "part-2.parquet")
    ledger.look(job)
    assert ledger._milestones[900, 7] == 1
    assert ledger.violations == []


def test_files_that_come_twice_change_or_vanish(shown: tuple[Shown, Work]) -> None:
    job, work = shown
    ledger = Ledger(work)
    ledger.look(job)
    pq.write_table(pa.table({"key": [7], "n": [100], "s": [800]}), work.parts / "part-2.parquet")
    ledger.look(job)
    assert ledger.violations == ["milestone 100 of key 7 is committed 2 times"]
    (work.parts / "part-2.parquet").unlink()
    pq.write_table(pa.table({"key": [7], "n": [200], "s": [1600]}), work.parts / "part-1.parquet")
    ledger.look(job)
    assert ledger.violations[1:] == [
        "the committed file part-1.parquet has changed",
        "the committed file part-2.parquet is gone",
    ]


def test_a_lost_file(shown: tuple[Shown, Work]) -> None:
    job, work = shown
    (work.parts / "part-1.parquet").unlink()
    found = closed(job, work)
    count = exact_counts(work.read)[0] // 100
    assert f"the number of milestones of key 0 is 0 and should be {count}" in found


# the pieces --------------------------------------------------------------------------------------------------------


def test_what_follows_from_the_numbers_of_records(tmp_path: Path) -> None:
    work = Work(1.0, tmp_path)
    rows = records(work, 450_000)
    second = [row for row in rows if BASE_US + WINDOW_US <= row["time_us"] < BASE_US + 2 * WINDOW_US]
    counts, sums = exact_window(1)
    of_five = [row["number"] for row in second if row["group"] == 5]
    assert (counts.sum(), counts[5], sums[5]) == (200_000, len(of_five), sum(of_five))
    assert len(counts) == GROUPS
    work.read.add(0, 450_000)
    by_key = Counter(row["key"] for row in rows)
    assert exact_counts(work.read).tolist() == [by_key[key] for key in range(KEYS)]
    assert any(later["time_us"] < earlier["time_us"] for earlier, later in pairwise(rows))


def test_rows_that_are_read_again_count_once() -> None:
    read = ReadRows()
    assert (read.count, read.unbroken, read.furthest) == (0, 0, 0)
    for first, count in [(0, 10), (30, 10), (5, 10), (50, 5), (32, 3), (15, 5), (40, 2)]:
        read.add(first, count)
    assert read.runs().tolist() == [[0, 20], [30, 42], [50, 55]]
    assert (read.count, read.unbroken, read.furthest) == (37, 20, 55)
    read.add(20, 30)
    assert read.runs().tolist() == [[0, 55]]


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators are not asked to give memory back")
def test_what_allocators_keep_for_later_is_no_memory_of_the_job() -> None:
    before = settled_mb()
    pieces = [np.ones(12_000) for _ in range(1_000)]  # 96 kB each, too small to be a mapping of its own
    last = np.ones(12_000)  # behind them, so that they are in the middle of the heap
    held = settled_mb()
    del pieces
    assert held > before + 80
    assert settled_mb() < before + 20
    assert last.sum() == 12_000


@pytest.mark.skipif("jemalloc" not in pa.supported_memory_backends(), reason="Arrow is built without jemalloc")
def test_arrow_gives_memory_back_while_a_soak_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before, meanwhile = pa.default_memory_pool().backend_name, []

    def warm_up(self: Soak) -> None:
        meanwhile.append(pa.default_memory_pool().backend_name)
        raise KeyboardInterrupt

    monkeypatch.setattr(Soak, "_warm_up", warm_up)
    with pytest.raises(KeyboardInterrupt):
        Soak(tmp_path, seconds=1, fault_every_s=1, rate=1_000, seed=0).run(lambda _: None, lambda _: None)
    assert meanwhile == ["jemalloc"]
    assert pa.default_memory_pool().backend_name == before


def test_recovery_times_are_told_by_kind() -> None:
    faults = [Suffered(float(number), "stall", "totals", number / 100) for number in range(1, 201)]
    assert Recovery.of(faults) == Recovery(200, 1010, 1990, 2000)


def test_a_folder_with_something_in_it_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    assert main(["soak", "--directory", str(tmp_path)]) == 2
    assert "which is not empty: name another folder" in capsys.readouterr().err


def test_a_folder_that_cannot_be_made_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert main(["soak", "--directory", str(tmp_path / "file" / "below")]) == 2
    assert "which cannot be used (Not a directory): name another folder" in capsys.readouterr().err


ARENAS_OF_MANY_THREADS = """
import ctypes, tempfile, threading
import numpy as np
from workbench.lab.soak.resources import malloc_gives_back

{first}
done = threading.Event()
def hold():
    pieces = [np.ones(5_000) for _ in range(20)]
    ready.wait()
    done.wait()
    return pieces
ready = threading.Barrier(13)
threads = [threading.Thread(target=hold) for _ in range(12)]
for thread in threads:
    thread.start()
ready.wait()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
with tempfile.TemporaryFile() as file:
    stream = ctypes.c_void_p(libc.fdopen(file.fileno(), b"w"))
    libc.malloc_info(0, stream)
    libc.fflush(stream)
    file.seek(0)
    print(file.read().decode().count("<heap nr"))
done.set()
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have no arenas")
def test_malloc_keeps_what_is_free_in_few_places() -> None:
    def arenas(first: str) -> int:
        script = ARENAS_OF_MANY_THREADS.format(first=first)
        return int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)

    assert arenas("malloc_gives_back()") <= ARENAS < arenas("")
