"""A program that starts the jobs of runs in processes of their own; see `forking`."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any, Literal

from chaos.flows import APPENDING, End, flow, mapped, source_of
from chaos.plans import SERVER_OF, SOURCES
from forking import serve

import workbench as wb
from workbench.errors import WorkbenchError

WORK_S = 10.0
"""How long a job that has nothing to read, or no server, is waited for."""


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
    mode: Literal["exactly-once", "unaligned"],
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
            answer.write_text(obey(job, order, Path(folder) / "answer"))
            answer.rename(Path(folder) / "answer")
        time.sleep(0.01)
    state = job.wait()
    if state != "FINISHED":
        (Path(folder) / "ended").write_text(f"{state}: {job.status()}")
    return state


def obey(job: wb.types.Job, order: str, answer: Path) -> str:
    """Do what the run asks for; returns ``done``, or why not. Orders to die are answered before."""
    verb, _, what = order.partition(" ")
    try:
        match verb:
            case "work":
                end_s = time.monotonic() + WORK_S
                while not job.over and not at_work(job) and time.monotonic() < end_s:
                    time.sleep(0.02)
            case "rescale":
                job.rescale(int(what), timeout="20s")
            case "stop":
                job.stop(timeout="60s")
            case "savepoint":
                job.pause()
                job.savepoint(what, timeout="20s")
                answer.write_text("done")
                os.kill(os.getpid(), signal.SIGKILL)
            case "die":
                job.checkpoint()
                time.sleep(int(what) / 1e6)
                os.kill(os.getpid(), signal.SIGKILL)
    except WorkbenchError as error:
        if verb == "savepoint" and not job.over:
            job.resume()
        return f"refused: {error}"
    return "done"


def at_work(job: wb.types.Job) -> bool:
    """Whether it has read rows and completed a checkpoint."""
    read: Any = job.status()["records_in"]
    return read > 0 and any(each.state == "COMPLETED" for each in job.checkpoints())


def told(**job: Any) -> str:
    """Run the job, and leave the error that ends it in a file."""
    try:
        return run(**job)
    except BaseException as error:
        (Path(job["folder"]) / "ended").write_text(f"{type(error).__name__}: {error}")
        raise


def pipelines() -> None:
    """One of each kind."""
    for source in SOURCES:
        if source in SERVER_OF:
            rows = source_of(End(source, place_of(source)), 0, bounded=True, rate=None)
            if source != "postgresql-log":
                for sink in APPENDING:
                    mapped(rows).key_by("key").aggregate(n=wb.count()).sink_to(APPENDING[sink](place_of(sink), 0))


def place_of(kind: str) -> str:
    """Where nothing is."""
    places = {"postgresql": "postgresql://localhost/x", "kafka": "localhost:9092", "": "/nowhere"}
    server = SERVER_OF.get(kind, "")
    return places.get(server, f"{server}://localhost")


if __name__ == "__main__":
    serve(told, pipelines)
