"""A process that handles jobs as the cells of a kernel do, while somebody interrupts it.

For each line on its input it runs a cell; it tells when the cell begins and how it ended. In the end it waits for its
job, and tells whether each row is there once: where an interrupt has cancelled it, whether none is twice, and whether
a job that nobody disturbs comes to all of them in this process.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
from IPython.core.interactiveshell import InteractiveShell

import workbench as wb

COUNT = 3_000
START = "%%stream work -p 2 --checkpoint-interval 10ms --no-dashboard --replace"
STREAM = "wb.Stream.from_table(table, rate=1_000).uid('table').rebalance().filter('n >= 0').uid('kept')\n"
CELLS = (
    f"{START}\n{STREAM}",
    f"{START} --checkpoint-dir FOLDER\n{STREAM}",
    "wb.job('work').wait('5s')",
    "for _ in range(300): wb.job('work').status(), wb.job('work').metrics()",
    "wb.job('work').tune(buffer_timeout='5ms'); wb.job('work').pause(); wb.job('work').resume()",
    "%stream list",
    "wb.job('work').savepoint('sNUMBER')",
    "wb.job('work').rescale(3)",
    "wb.job('work').faults.fail(coordinator=True); wb.job('work').fail('kept[0]')",
)


class Cells:
    """Runs cells; an interrupt between two of them is nobody's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running = False
        self._shell = InteractiveShell.instance()
        self._shell.run_line_magic("load_ext", "workbench")
        self._shell.user_ns.update(wb=wb, table=pa.table({"n": range(COUNT)}))
        signal.signal(signal.SIGINT, self._interrupted)

    def _interrupted(self, number: int, frame: object) -> None:
        if self._running:
            raise KeyboardInterrupt

    def run(self, cell: str, number: int) -> str:
        """How it ended."""
        text = cell.replace("FOLDER", str(self._folder / str(number))).replace("NUMBER", str(number))
        try:
            self._running = True
            result = self._shell.run_cell(text)
            self._running = False
        except KeyboardInterrupt:
            self._running = False
            return "KeyboardInterrupt"
        error = result.error_before_exec or result.error_in_exec
        return "done" if error is None else type(error).__name__


def tell(*words: object) -> None:
    stream = sys.__stdout__
    assert stream is not None
    stream.write(" ".join(map(str, words)) + "\n")
    stream.flush()


def main(seed: int, folder: Path) -> None:
    chance = Random(seed)
    cells = Cells(folder)
    cells.run(CELLS[0], 0)
    for number, _ in enumerate(sys.stdin, start=1):
        tell("begin", number)
        tell("end", number, cells.run(chance.choice(CELLS), number))
    state, rows = outcome()
    if state == "CANCELED":  # by an interrupt, and what is committed stays
        harmed = len(rows) != len(set(rows)) or not set(rows) <= set(range(COUNT))
        cells.run(CELLS[0], 0)
        state, rows = outcome()
    else:
        harmed = False
    tell("rows", state, "wrong" if harmed or rows != list(range(COUNT)) else "right")


def outcome() -> tuple[str, list[int]]:
    """How the job ended, and its rows."""
    job = wb.job("work")
    if not job.over:
        job.resume()
    return job.wait("30s"), sorted(job.table()["n"].to_pylist())


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
