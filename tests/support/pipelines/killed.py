"""A drawn pipeline whose process is killed in the middle, and which another process brings to its end."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest

import workbench as wb

from .draft import Draft
from .generator import draw
from .running import with_files

RATE = 400
"""Records per second, so that the input takes longer than a few checkpoints."""


def drawn(folder: Path, seed: str, rate: int | None = None) -> tuple[Draft, wb.types.Pipeline]:
    """The same pipeline in every process.

    Args:
        folder: for its files; the drawing has a part of its own for each process.
        seed: of a pipeline whose sources are tables.
        rate: of its sources.
    """
    folder.mkdir(exist_ok=True)
    draft = Draft(Random(seed), folder, (1, 2))
    from_table = wb.Stream.from_table

    def paced(table: Any, **settings: Any) -> wb.Stream:
        return from_table(table, **{**settings, "rate": rate})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wb.Stream, "from_table", staticmethod(paced))
        patch.setattr(wb.Stream, "from_files", None)  # a second process would find other files than the first
        return draft, draw(draft, 8)


def problems(draft: Draft, job: Any) -> list[str]:
    """What its sinks hold and should not, or the other way round."""
    found = with_files(draft, {table: job.table(table) for table in draft.tables})
    return [text for one in draft.expected if (text := one.problem(found))]


def run_in_kernel(folder: Path, seed: str, *, to_the_end: bool) -> list[str]:
    """Continue it; kills this process after three checkpoints, unless it is to come to its end."""
    draft, pipeline = drawn(folder, seed, RATE)
    job: Any = pipeline.run(
        "random", parallelism=2, checkpoint_interval="20ms", checkpoint_dir=folder / "checkpoints", resume=True
    )
    while not to_the_end and not job.over:
        if sum(each.state == "COMPLETED" for each in job.checkpoints()) >= 3:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.005)
    job.wait("60s")
    return [*problems(draft, job), *([] if to_the_end else ["it was not killed"])]
