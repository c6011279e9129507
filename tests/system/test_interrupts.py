"""Ctrl-C at random moments in a process that works as a kernel does: no cell hangs, and no job is harmed.

A few interrupts with every test; ``make interrupts`` sends 200, and also fails when an interrupted cell takes long.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

import pytest

INTERRUPTS = int(os.environ.get("WORKBENCH_INTERRUPTS", "12"))
SEED = int(os.environ.get("WORKBENCH_SEED", "1"))
LATEST_S = 0.4
HANGS_S = 20.0
"""A cell that has not ended by then hangs."""
SLOWEST_S = float(os.environ.get("WORKBENCH_INTERRUPTED_S", HANGS_S))
"""An interrupted cell ends within that, on a machine that has little else to do."""


@pytest.mark.slow
def test_no_interrupt_hangs_a_cell_or_harms_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Path(__file__).parents[1] / "support" / "interrupt_job.py"
    process = subprocess.Popen(
        [sys.executable, str(program), str(SEED), str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")},
        cwd=tmp_path,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    told: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    words = ("begin", "end", "rows")

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(words):  # the cells print, too
                told.put(line.split())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    chance = Random(SEED)
    ended: Counter[str] = Counter()
    slowest_s = 0.0
    try:
        for number in range(1, INTERRUPTS + 1):
            process.stdin.write("next\n")
            process.stdin.flush()
            assert told.get(timeout=60) == ["begin", str(number)]
            time.sleep(chance.uniform(0, LATEST_S))
            process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            word, which, how = told.get(timeout=HANGS_S)
            if how == "KeyboardInterrupt":  # others ended by themselves, before the interrupt or in spite of it
                slowest_s = max(slowest_s, time.monotonic() - begun)
            assert (word, which) == ("end", str(number))
            ended[how] += 1
        process.stdin.close()
        assert told.get(timeout=60) == ["rows", "FINISHED", "right"]
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()
    assert set(ended) <= {"done", "KeyboardInterrupt", "JobError"}
    assert ended["KeyboardInterrupt"] > 0
    with capsys.disabled():
        if "WORKBENCH_INTERRUPTS" in os.environ:
            slowest = f"the slowest interrupted cell took {slowest_s:.2f} s"
            sys.stdout.write(f"{INTERRUPTS} interrupts, seed {SEED}: {dict(ended)}, {slowest}\n")
    assert slowest_s <= SLOWEST_S
