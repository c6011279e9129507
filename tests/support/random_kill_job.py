"""A process that runs drawn pipelines in processes of their own, of which some kill themselves; see `kill_job`.

Each line on its input is a folder, the seed of a pipeline, and whether the process kills itself in the middle: ``kill``
or ``end``. It answers as `kill_job` does; 1: the rows are wrong.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pipelines.killed import run_in_kernel

from workbench.compiled import warm_up


def main() -> None:
    warm_up()
    for line in sys.stdin:
        folder, number, when = line.split()
        child = os.fork()
        if child == 0:
            try:
                found = run_in_kernel(Path(folder), f"killed {number}", to_the_end=when == "end")
            except BaseException as error:  # noqa: BLE001
                found = [f"{type(error).__name__}: {error}"]
            sys.stderr.write("".join(f"{text}\n" for text in found))
            sys.stderr.flush()
            os._exit(bool(found))
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
