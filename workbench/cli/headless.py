"""``workbench demo --headless``: the main job in a terminal, from the history to the committed table.

Kill it at any moment and run it again: it resumes from the latest complete checkpoint and produces the same table.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

from rich.console import Console

import workbench as wb
from workbench.api.beginning.preparing import prepare_kernels
from workbench.cli.interruption import interruption
from workbench.cli.main_job import NAME, main_job
from workbench.cli.outcome import Effort, print_outcome
from workbench.cli.progress import display
from workbench.cli.run_folder import RunFolder
from workbench.datasets import flights_history
from workbench.errors import SettingError
from workbench.plan.physical import CHANNELS_MOST
from workbench.runtime.settings.settings import Settings

MAX_PARALLELISM = isqrt(CHANNELS_MOST)
"""Limit of the main job, whose exchange connects all subtasks with all subtasks."""
POLL_PERIOD_S = 0.1
STOP_PATIENCE = "60s"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of ``workbench demo --headless``; see its help."""

    directory: Path
    speed: str
    parallelism: int
    buffer_timeout: str
    checkpoint_interval: str
    fresh: bool


def check(options: Options) -> None:
    """Refuse invalid values before anything of an earlier run is removed.

    Raises:
        SettingError: a value is invalid.
    """
    if options.parallelism > MAX_PARALLELISM:
        raise SettingError(f"--parallelism is {options.parallelism}: it must be at most {MAX_PARALLELISM}")
    Settings().with_values(
        {"buffer_timeout": options.buffer_timeout, "checkpoint_interval": options.checkpoint_interval}
    )


def prepare(console: Console, directory: Path) -> wb.History:
    """The flights as a replay log in `directory`; a Spark job writes it the first time.

    Raises:
        CheckpointError: the folder cannot be written.
        HistoryError: the data or Java is missing.
    """
    folder = RunFolder(directory)
    folder.create()
    history = flights_history(folder.history)
    console.print(f"{history.rows:,} flights in {folder.history}.")
    return history


def run(console: Console, options: Options) -> int:
    """Run the main job to its end, or until it is interrupted.

    Returns:
        The exit code: 0, 130 after an interrupt, or 143 after a SIGTERM.

    Raises:
        WorkbenchError: the history, the folder or a checkpoint cannot be used, or the job failed.
    """
    check(options)
    folder = RunFolder(options.directory)
    history = prepare(console, options.directory)
    console.print(begin(folder, options.fresh))
    pipeline = main_job(history, speed=options.speed, output=folder.output)
    prepare_kernels(pipeline.logical_graph)  # so that compiling on a first run does not count as the job's time
    with interruption() as asked:
        job = pipeline.run(
            NAME,
            parallelism=options.parallelism,
            buffer_timeout=options.buffer_timeout,
            checkpoint_interval=options.checkpoint_interval,
            checkpoint_dir=folder.checkpoints,
            resume=True,
        )
        effort = Effort.begin()
        follow(console, job, asked)
        if asked.is_set() and not job.over:
            console.print("Interrupted. Taking a final checkpoint.")
            job.stop(wait=False)
        job.wait(timeout=STOP_PATIENCE)
    effort.end()
    if not job.complete:
        last = job.status()["last_checkpoint"]
        console.print(f"Stopped. Run the same command to resume from checkpoint {last}, or add --fresh to start again.")
        return asked.code
    folder.mark_finished(rows=job.table(NAME).num_rows, seconds=round(effort.wall_s, 3))
    print_outcome(console, job, effort, folder, options.speed)
    return 0


def begin(folder: RunFolder, fresh: bool) -> str:
    """Prepare the folder, and say whether the run starts or resumes."""
    if fresh and folder.is_begun:
        folder.clean()
        return "Starting a new run; the output of the earlier run is removed."
    if folder.is_finished:
        folder.clean()
        return "The earlier run is finished. Starting a new run; the output of the earlier run is removed."
    if folder.is_begun:
        return "An earlier run was interrupted. Resuming from its latest complete checkpoint, if there is one."
    return "Starting."


def follow(console: Console, job: wb.types.Job, asked: threading.Event) -> None:
    """Show the job's progress until it ends or an interrupt is requested."""
    told = 0
    with display(console) as progress:
        while not asked.is_set():
            over = job.over
            frame = job.recorder.latest()
            if frame is not None:
                for event in frame.events[told:]:
                    if event.kind in ("failure", "recovery"):
                        console.print(event.text)
                told = len(frame.events)
                progress.show(frame)
            if over:
                return
            time.sleep(POLL_PERIOD_S)
