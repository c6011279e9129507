"""Interrupted or terminated commands: the exit code shows it, there is no traceback, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
from waiting import PATIENCE_S, until

import workbench as wb
from workbench.cli.scratch import scratch_folder

pytestmark = pytest.mark.slow

Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command as a terminal does, in a group of processes of its own; temporary folders go to `tmp_path`."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str) -> subprocess.Popen[str]:
        environment = {key: value for key, value in os.environ.items() if key != "WORKBENCH_DEBUG"}
        process = subprocess.Popen(
            [sys.executable, "-m", "workbench", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, "TMPDIR": str(tmp_path)},
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that share a search."""
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if any("spawn_main" in word for word in child.cmdline())]


def assert_all_end(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_S)
    for process in alive:
        process.kill()
    assert alive == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "whole_group", "begun"),
    [
        (signal.SIGINT, 130, True, False),
        (signal.SIGINT, 130, True, True),
        (signal.SIGINT, 130, False, True),
        (signal.SIGTERM, 143, False, True),
        (signal.SIGHUP, 129, True, False),
    ],
)
def test_a_search_in_several_processes_ends_with_all_of_them(
    start: Start, number: signal.Signals, code: int, whole_group: bool, begun: bool
) -> None:
    process = start("simulate", "--jobs", "2", "--seeds", "100000")
    until(lambda: len(workers(process)) == 2, process)
    shared = workers(process)
    until(lambda: all(each.memory_info().rss > 25_000_000 for each in shared), process)  # they know what to do
    if begun:  # their imports are done
        until(lambda: all(each.memory_info().rss > 120_000_000 for each in shared), process)
        time.sleep(1)
    (os.killpg if whole_group else os.kill)(process.pid, number)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, told) == (code, "")
    assert_all_end(shared)


def test_a_search_that_is_killed_leaves_no_process_behind(start: Start) -> None:
    process = start("simulate", "--jobs", "2", "--seeds", "100000")
    until(lambda: len(workers(process)) == 2, process)
    shared = workers(process)
    process.kill()
    assert_all_end(shared)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "number", "code"),
    [("grep", signal.SIGINT, 130), ("grep", signal.SIGTERM, 143), ("campaigns", signal.SIGHUP, 129)],
)
def test_a_benchmark_removes_its_folder(
    start: Start, name: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    process = start("bench", name, "--seconds", "60", "--repeats", "1")
    until(lambda: list(tmp_path.iterdir()), process)
    time.sleep(1)
    process.send_signal(number)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, told) == (code, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_soak_removes_its_folder(start: Start, tmp_path: Path) -> None:
    process = start("soak", "--seconds", "60")
    until(lambda: list(tmp_path.glob("workbench-soak-*/checkpoints/chk-*")), process)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, told) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_jobs_end_before_their_folder_is_removed() -> None:
    numbers = wb.Stream.from_table(pa.table({"n": range(1_000_000)}), rate=1_000).sink_to(wb.DiscardSink())
    other = numbers.run("of-a-notebook")
    folders: list[Path] = []

    def interrupted() -> None:
        with scratch_folder("workbench-test-") as folder:
            folders.append(Path(folder))
            numbers.run("interrupted", checkpoint_dir=folders[0] / "checkpoints", checkpoint_interval="1ms")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert wb.job("interrupted").over
    assert not folders[0].exists()
    assert not other.over
    other.cancel()
    other.wait("60s")
