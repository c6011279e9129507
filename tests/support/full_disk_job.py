"""A job beside a disk that fills up, in a mount namespace of its own: prints what it sees as JSON.

Arguments: an empty folder, in which small disks are mounted for the job's files and for its state.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from waiting import until

import workbench as wb
from workbench.state import states_on_disk

ROWS = 2_000


def keep(record: dict[str, Any], state: Any) -> dict[str, Any]:
    state.text = "x" * 2_000
    return {"n": record["n"]}


def fill(disk: Path) -> Path:
    """Leave no space."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4_096)
    return filler


def sentence(act: Callable[[], object]) -> str:
    try:
        act()
    except wb.errors.WorkbenchError as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    disk, state = folder / "disk", folder / "state"
    for each, size in ((disk, "64m"), (state, "16m")):
        each.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(each)], check=True)
    tempfile.tempdir = str(state)
    states_on_disk.RESIDENT_MAX = 100  # nearly all keys are on disk
    rows = wb.Stream.from_table(pa.table({"n": range(ROWS)}), rate=20).with_parallelism(1)
    kept = rows.key_by("n").process(keep, {"n": pa.int64()}, state={"text": pa.string()}, state_backend="disk")
    restart = wb.restart.fixed_delay(attempts=1_000_000, delay="100ms")
    job = kept.sink_to(wb.TableSink("kept")).run(
        "full-disk", buffer_size=50, checkpoint_dir=disk / "job", checkpoint_interval="100ms", restart=restart
    )
    until(lambda: job.checkpoints())
    job.savepoint("before")
    filler = fill(disk)
    seen: dict[str, Any] = {
        "savepoint": sentence(lambda: job.savepoint("during")),
        "recording": sentence(lambda: job.recording(disk / "run.recording")),
        "report": sentence(lambda: job.report(disk / "run.html")),
        "restarts": job.status()["restarts"],
        "files": sorted(path.name for path in disk.iterdir()),
        "savepoints": [*job.savepoints(), *(path.name for path in (disk / "job" / "savepoints").iterdir())],
    }
    filler.unlink()
    filler = fill(state)
    until(lambda: job.status()["restarts"])
    seen["state"] = job.status()["last_interruption"]
    filler.unlink()
    job.tune(rate=10_000)
    seen["end"] = job.wait("120s")
    seen["rows"] = sorted(job.table("kept")["n"].to_pylist()) == list(range(ROWS))
    seen["left"] = [path.name for path in state.iterdir()]
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
