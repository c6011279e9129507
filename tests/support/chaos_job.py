"""A program that starts the jobs of runs in processes of their own; see `forking`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from chaos.flows import End, flow
from forking import serve

import workbench as wb
from workbench.errors import WorkbenchError


def run(
    source: list[str],
    sinks: list[list[str]],
    folder: str,
    number: int,
    shape: str,
    parallelism: int,
    bounded: bool,
    rate: float | None,
    restore: str | None,
    mode: str,
    interval: str,
) -> str:
    """Continue the job from wherever an earlier process left it; returns how it ended."""
    settings: Any = {"restore": restore} if restore else {"resume": True}
    job = flow(End(*source), [End(*each) for each in sinks], number, shape=shape, bounded=bounded, rate=rate).run(
        f"chaos-{number}",
        parallelism=parallelism,
        buffer_timeout="5ms",
        checkpoint_interval=interval,
        checkpoint_mode=mode,
        checkpoint_dir=Path(folder) / "checkpoints",
        restart=wb.restart.exponential_delay(),
        **settings,
    )
    orders = Path(folder) / "order"
    while not job.over:
        if orders.exists():
            order = orders.read_text()
            orders.unlink()
            answer = Path(folder) / "answer.part"
            answer.write_text(obey(job, order))
            answer.rename(Path(folder) / "answer")
            if order.startswith("savepoint") and (Path(folder) / "answer").read_text() == "done":
                os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
    state = job.wait()
    if state != "FINISHED":
        (Path(folder) / "ended").write_text(f"{state}: {job.status()}")
    return state


def obey(job: wb.types.Job, order: str) -> str:
    """Do what the run asks for; returns ``done``, or why not."""
    verb, _, what = order.partition(" ")
    try:
        match verb:
            case "rescale":
                job.rescale(int(what), timeout="20s")
            case "stop":
                job.stop(timeout="60s")
            case "checkpoint":
                job.checkpoint()
            case "savepoint":
                job.pause()
                job.savepoint(what, timeout="20s")
    except WorkbenchError as error:
        if verb == "savepoint" and not job.over:
            job.resume()
        return f"refused: {error}"
    return "done"


def told(**job: Any) -> str:
    """Run the job, and leave the error that ends it in a file."""
    try:
        return run(**job)
    except BaseException as error:
        (Path(job["folder"]) / "ended").write_text(f"{type(error).__name__}: {error}")
        raise


if __name__ == "__main__":
    serve(told)
