"""A process that ends with a running job: its threads end before Python is torn down."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_BEFORE = """
import atexit, threading

@atexit.register  # the first that is registered is called last
def tell():
    print(*(job.state for job in wb.jobs().values()))
    print("left:", *sorted(t.name for t in threading.enumerate() if t.name.startswith("busy")))

import time
import pyarrow as pa
import workbench as wb

SCHEMA = pa.schema([("n", pa.int64())])

def rows(first, count):
    return pa.record_batch([pa.array(range(first, first + count))], schema=SCHEMA)

def run(stream):
    return stream.sink_to(wb.TableSink("out")).run(
        "busy", parallelism=2, checkpoint_interval="50ms", checkpoint_dir="checkpoints"
    )

def until(reached):
    while not reached():
        time.sleep(0.01)
"""

_RUNNING = """
job = run(wb.Stream.from_generator(rows, SCHEMA, rate=20_000).key_by("n").aggregate(count=wb.count()))
until(lambda: job.status()["last_checkpoint"])
print(sum(t.name.startswith("busy") for t in threading.enumerate()) >= 4)
"""

_STUCK = """
stuck = threading.Event()
def wait_for_ever(batch):
    stuck.set()
    time.sleep(3_600)
    return batch
run(wb.Stream.from_generator(rows, SCHEMA, limit=10).map_batches(wait_for_ever, SCHEMA))
stuck.wait()
"""

_KERNEL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "workbench")
"""


def ended(folder: Path, *parts: str, code: int = 0) -> list[str]:
    script = folder / "script.py"
    script.write_text("".join((_BEFORE, *parts)))
    done = subprocess.run(
        [sys.executable, str(script)], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout.splitlines()


def test_no_thread_of_a_running_job_is_left_when_python_is_torn_down(tmp_path: Path) -> None:
    assert ended(tmp_path, _RUNNING) == ["True", "FINISHED", "left:"]


def test_nor_after_an_error(tmp_path: Path) -> None:
    assert ended(tmp_path, _RUNNING, "raise SystemExit(3)", code=3) == ["True", "FINISHED", "left:"]


@pytest.mark.slow
def test_a_function_that_never_returns_does_not_keep_the_process(tmp_path: Path) -> None:
    # The script fails: else it would wait for its job.
    state, left = ended(tmp_path, _STUCK, 'raise ValueError("enough")', code=1)
    assert state == "RUNNING"
    assert left.startswith("left: busy tm-0/")


@pytest.mark.slow
def test_a_kernel_stops_its_jobs_in_order_before(tmp_path: Path) -> None:
    # A stopped job is FINISHED though its sources had more to read, with everything committed that it has processed.
    assert ended(tmp_path, _KERNEL, _RUNNING) == ["True", "FINISHED", "left:"]
