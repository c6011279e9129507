"""A disk without space: a sentence, the job goes on, and nothing half-written is taken for whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "support" / "full_disk_job.py"


def in_a_namespace() -> list[str]:
    """The command that gives a program mounts of its own; skips the test where there is none."""
    command = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives a program no mounts of its own")
    return command


def test_a_job_outlives_a_full_disk(tmp_path: Path) -> None:
    done = subprocess.run(
        [*in_a_namespace(), sys.executable, str(PROGRAM), str(tmp_path)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    full = "No space left on device; free some space"
    assert seen["savepoint"].startswith("the savepoint 'during' was not taken: ")
    assert full in seen["savepoint"]
    assert seen["recording"].startswith(f"cannot write '{tmp_path}/disk/run.recording': {full}")
    assert seen["report"].startswith(f"cannot write '{tmp_path}/disk/run.html': {full}")
    assert "state on disk cannot be written to " in seen["state"]
    assert "TMPDIR" in seen["state"]
    assert seen["restarts"] == 0
    assert seen["files"] == ["filler", "job"]
    assert seen["savepoints"] == ["before", "before"]
    assert (seen["end"], seen["rows"], seen["left"]) == ("FINISHED", True, [])
