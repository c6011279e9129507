"""A job goes on while its machine's clock is put forward and back, or sleeps: nothing is lost, fires twice or stalls.

The child process has a clock of its own (Debian's faketime), which its parent sets; a machine that sleeps is a process
that is stopped, and finds a later time when it continues.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clock_job import COUNT, KEYS, RATE
from waiting import until

LIBRARY = next(Path("/usr").glob("lib*/**/faketime/libfaketimeMT.so.1"), None)
HOUR_S = 3_600


class FakedMachine:
    """A process with a clock of its own.

    Args:
        folder: for the file that says how far its clock is ahead.
        checkpoints: of its job.
    """

    def __init__(self, folder: Path, checkpoints: str) -> None:
        self._ahead = folder / "ahead"
        self.set_ahead(0)
        program = Path(__file__).parents[1] / "support" / "clock_job.py"
        faked = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._ahead),
            "FAKETIME_NO_CACHE": "1",  # the file is read whenever the clock is
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, str(program), checkpoints, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **faked},
        )

    def set_ahead(self, seconds: int) -> None:
        """Set the clock: so far ahead of the real one."""
        new = self._ahead.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._ahead)  # at once: half a line is no time

    def ask(self, line: str = "facts") -> dict[str, Any]:
        """Its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def sleep(self, ahead_s: int) -> None:
        """Stop, and continue with the clock so far ahead."""
        os.kill(self.process.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{self.process.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        self.set_ahead(ahead_s)
        os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def faked(folder: Path, checkpoints: str) -> Iterator[FakedMachine]:
    machine = FakedMachine(folder, checkpoints)
    try:
        yield machine
    finally:
        machine.process.kill()
        machine.process.communicate()


def go_on(machine: FakedMachine) -> dict[str, Any]:
    """Wait until the job has completed further checkpoints and written further rows of every kind."""
    before = machine.ask()

    def further() -> dict[str, Any] | None:
        now = machine.ask()
        assert now["state"] == "RUNNING"
        grown = all(now["rows"][name] > before["rows"][name] for name in before["rows"])
        return now if grown and now["checkpoints"] >= before["checkpoints"] + 2 else None

    until(further, machine.process)
    now = machine.ask()
    assert now["rows"]["echoed"] <= RATE * now["seconds"] + 1
    return now


@pytest.mark.slow
@pytest.mark.skipif(LIBRARY is None, reason="faketime is not installed")
def test_a_job_goes_on_when_the_clock_is_set_or_its_machine_sleeps(bucket: str, tmp_path: Path) -> None:
    with faked(tmp_path, bucket) as machine:
        begun = go_on(machine)
        for ahead_s in (HOUR_S, -HOUR_S):
            machine.set_ahead(ahead_s)
            moved = go_on(machine)
            passed_s = moved["seconds"] - begun["seconds"]
            assert abs(moved["wall_s"] - begun["wall_s"] - passed_s - ahead_s) < 60  # its clock has been set
        machine.sleep(0)  # an hour later
        go_on(machine)
        end = machine.ask("finish")
    assert (end["state"], end["restarts"]) == ("FINISHED", 0)
    assert sorted(end["read"]) == list(range(COUNT))
    read, echoed = end["paused"]
    assert read == echoed
    assert len(end["echoed"]) == len(set(end["echoed"]))
    by_key = [COUNT // KEYS] * KEYS
    for name, more in (("counted", 0), ("timed", 1)):  # the silent source has a record of the first key
        windows = [(key, start) for key, start, _ in end[name]]
        assert len(windows) == len(set(windows)), name
        sums = [sum(count for of, _, count in end[name] if of == key) for key in range(KEYS)]
        assert sums == [by_key[0] + more, *by_key[1:]], name
    starts = sorted(start for _, start, _ in end["counted"])
    assert starts[-1] - starts[0] <= end["seconds"] + 0.3  # processing time passes as real time does
