"""Progress of a history's preparation, which the user can interrupt."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

from workbench.connectors.replay.log import Progress

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

Result = TypeVar("Result")

_POLL_SECONDS = 0.1
_BAR_CELLS = 20
"""With its words, a bar of this width fits into a notebook that has a dashboard docked beside it."""
_groups = itertools.count()


@contextlib.contextmanager
def shown(progress: bool | Progress) -> Iterator[Progress]:
    """A progress bar in the terminal or notebook for True, nothing for False, else the given callback."""
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield _silent
    else:
        with _bar() as callback:
            yield callback


def say(progress: bool | Progress, sentence: str) -> None:
    """Print one sentence if a progress bar would have been shown."""
    if progress is True:
        from rich.console import Console

        Console(stderr=True).print(sentence, markup=False, highlight=False)


def run_job(spark: SparkSession, action: Callable[[], Result], stage: str, progress: Progress) -> Result:
    """Run an action of Spark, telling `progress` its tasks; an interrupt cancels the job on Spark too.

    The action runs in a separate thread, so that this one can poll the job's state and receive the interrupt.
    """
    from pyspark import inheritable_thread_target

    context = spark.sparkContext
    group = f"workbench-{os.getpid()}-{next(_groups)}"

    def run() -> Result:
        context.setJobGroup(group, f"workbench: {stage}", interruptOnCancel=True)
        return action()

    progress(stage, 0, 0)
    with ThreadPoolExecutor(1, "workbench-spark") as executor:
        future: Future[Result] = executor.submit(inheritable_thread_target(spark)(run))
        try:
            while not wait([future], timeout=_POLL_SECONDS).done:
                progress(stage, *_tasks(context, group))
            result = future.result()
        except BaseException:
            context.cancelJobGroup(group)
            raise
    progress(stage, 1, 1)
    return result


def _silent(stage: str, done: int, total: int) -> None:
    pass


@contextlib.contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    description, percentage = TextColumn("{task.description}", markup=False), TextColumn("{task.percentage:>3.0f}%")
    columns = (description, BarColumn(_BAR_CELLS), percentage, TimeElapsedColumn())
    console = Console(stderr=True)
    # Elsewhere bars stay: a file has no others, and a notebook's page still writes to a bar that is taken away, which
    # the cell shows as an error.
    bar = Progress(*columns, console=console, transient=console.is_terminal)
    rows: dict[str, TaskID] = {}

    def show(stage: str, done: int, total: int) -> None:
        if stage not in rows:
            bar.start()
            rows[stage] = bar.add_task(stage, total=None)
        bar.update(rows[stage], completed=done, total=total or None)

    try:
        yield show
    finally:
        if rows:
            bar.refresh()  # a notebook is not drawn again when it stops, and would show what was before the last step
            bar.stop()


def _tasks(context: SparkContext, group: str) -> tuple[int, int]:
    """The completed and the known tasks of all jobs of a group."""
    tracker = context.statusTracker()
    done = total = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info else ():
            tasks = tracker.getStageInfo(stage)
            if tasks:
                done += tasks.numCompletedTasks
                total += tasks.numTasks
    return done, total
