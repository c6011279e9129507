"""TODO of exercise fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from workbench.api.job.job import Job
from workbench.api.job.registry import forget
from workbench.api.kept.snapshot import Snapshot
from workbench.api.streams.stream import Stream
from workbench.connectors.tables.table_sink import TableSink
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.exercise import Judge, MissingAnswerError, ViolatedError
from workbench.lessons.exercises.programs import program
from workbench.lessons.exercises.rows import no_column
from workbench.operators.aggregates.aggregations import sum as sum_of

FIRST, SECOND = "lesson-check-first", "lesson-check"


def first_version(orders: Stream) -> Stream:
    """The running program: it counts cancelled orders, too."""
    return orders.key_by("shop").aggregate(revenue=sum_of("cents")).uid("revenue")


def judge(answer: Any, chance: Random) -> None:
    """Run the first version for a while, take a savepoint, and continue with the answer."""
    shops = ("oslo", "rome", "lima")
    rows = [(chance.choice(shops), chance.randrange(100, 900), chance.random() < 0.4) for _ in range(60)]
    orders = pa.table(
        {
            "shop": [shop for shop, *_ in rows],
            "cents": [cents for _, cents, _ in rows],
            "cancelled": [cancelled for *_, cancelled in rows],
        }
    )
    with TemporaryDirectory() as folder:
        first = _start(first_version, orders, FIRST, folder)
        with first.stepper.driver.unwatched():
            first.stepper.driver.run_until(lambda: first.over, chance.randrange(12, 40))
            place = Path(folder, FIRST, "savepoints", "before")
            first.savepoint("before")
        snapshot = Snapshot.open(place)
        offsets: Any = snapshot.offsets["orders"][0]
        read = sum(offsets["positions"].values())
        first.cancel()
        second = _start(answer, orders, SECOND, folder, restore=str(place), parallelism=chance.choice((1, 2, 3)))
        with second.stepper.driver.unwatched():
            second.wait()
        for job in (first, second):
            forget(job)
        _compare(second, rows, read)


def _start(build: Callable[[Stream], Any], orders: pa.Table, name: str, folder: str, **settings: Any) -> Job:
    stream = build(Stream.from_table(orders).with_parallelism(1).uid("orders"))
    if stream is ...:
        raise MissingAnswerError("its function still returns `...`")
    if stream is None:
        raise ViolatedError("a stream as the result", "the function returns nothing: is a `return` missing?")
    if not isinstance(stream, Stream):
        raise ViolatedError("a stream as the result", f"the function returns {type(stream).__name__}")
    if lacking := {"shop", "revenue"} - set(stream.columns):
        raise ViolatedError(
            "the result's columns", no_column(min(lacking), dict.fromkeys(stream.columns), ("shop", "revenue"))
        )
    try:
        return stream.sink_to(TableSink("revenues")).run(
            name, driver="stepping", buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None, replace=True,
            checkpoint_dir=str(Path(folder, name)), **settings,
        )  # fmt: skip
    except WorkbenchError as error:
        raise ViolatedError("state that is taken over", f"the savepoint does not fit: {error}") from error


def _compare(job: Job, rows: list[tuple[str, int, bool]], read: int) -> None:
    found = {row["shop"]: row["revenue"] for row in job.table("revenues").to_pylist()}
    if job.state != "FINISHED":
        raise ViolatedError("a program that runs", f"the job ended as {job.state}: {job.status()['failure']}", job)
    for shop in {shop for shop, _, cancelled in rows[read:] if not cancelled}:
        before = sum(cents for name, cents, _ in rows[:read] if name == shop)
        after = sum(cents for name, cents, cancelled in rows[read:] if name == shop and not cancelled)
        everything = sum(cents for name, cents, _ in rows if name == shop)
        if found.get(shop) == before + after:
            continue
        told = f"the savepoint was taken after {read} orders, when {shop} had {before} cents. At the end it has "
        told += f"{found.get(shop)}; correct is {before} + {after} = {before + after}."
        cancelled = everything - before - after
        if found.get(shop) == after:
            raise ViolatedError(
                "state that is taken over", f"{told} The sums so far are lost: what identifies the state?", job
            )
        if found.get(shop) == everything:
            raise ViolatedError("the fix", f"{told} Cancelled orders still count.", job)
        if found.get(shop) == before + cancelled:
            told += " Only the cancelled orders were counted."
        elif found.get(shop) == before - (everything - before):
            told += " Amounts were subtracted that had never been added."
        raise ViolatedError("right values", told, job)


JUDGE: Judge = program(judge, 3, "Savepoints of three runs, continued with other parallelisms: all sums are right.")
