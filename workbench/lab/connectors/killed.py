"""A process of `check_kills`: runs the pipeline of a file, and kills itself after some checkpoints."""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the pipeline; returns 0 if it finishes.

    Args:
        arguments: the file, the folder of the run, the parallelism, after how many checkpoints of this process it is
            killed (0: not at all), and how many seconds later.
    """
    program, folder, width, checkpoints, rest_s = arguments
    pipeline = runpy.run_path(program)["pipeline"](Path(folder))
    job = pipeline.run(
        "kills",
        parallelism=int(width),
        checkpoint_interval="30ms",
        checkpoint_dir=Path(folder) / "checkpoints",
        resume=True,
    )
    while int(checkpoints) and not job.over:
        if sum(one.state == "COMPLETED" for one in job.checkpoints()) >= int(checkpoints):
            time.sleep(float(rest_s))
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
    state = job.wait()
    sys.stdout.write(f"{state}\n" if state == "FINISHED" else f"{state}: {job.status()}\n")
    return 0 if state == "FINISHED" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
