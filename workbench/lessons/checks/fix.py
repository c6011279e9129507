"""Exercise `fix` of lesson 9: what is special are savepoints before and after everything, shops that are new after it,
and shops whose orders are all cancelled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
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
from workbench.drivers.stepped.stepping import ReachedError
from workbench.errors import WorkbenchError
from workbench.lessons.exercises.building import built
from workbench.lessons.exercises.exercise import Judge, ViolatedError
from workbench.lessons.exercises.programs import program
from workbench.lessons.exercises.rows import no_column
from workbench.operators.aggregates.aggregations import sum as sum_of

FIRST, SECOND = "lesson-check-first", "lesson-check"
MEMORY = "/dev/shm"
"""A disk in memory, where a system has one: a disk that syncs takes most of the time of a check."""
NEEDED = ("shop", "revenue")

Order = tuple[str, int, bool]
"""Its shop, its cents, and whether it is cancelled."""

_SPECIAL: tuple[Order, ...] = (
    ("oslo", 100, False),
    ("rome", 200, True),
    ("oslo", 300, True),
    ("", 50, False),  # a shop without a name
    ("early", 70, False),  # before the savepoints only
    ("oslo", 0, False),
    ("gone", 80, False),
    ("rome", 10, False),
    ("oslo", 0, True),
    ("gone", 90, True),  # from here on, its orders are cancelled
    ("", 60, True),
    ("free", 0, False),  # nothing but 0
    ("new", 500, True),  # nothing but cancelled orders
    ("late", 40, True),
    ("late", 45, False),  # the first one that counts
    ("oslo", 100, False),  # as much as the first one
    ("", 5, False),
    ("gone", 20, True),
    ("once", 5_000, False),  # a large one
    ("oslo", 100, False),  # the same again
    ("once", 1, False),
)


def first_version(orders: Stream) -> Stream:
    """The running program: it counts cancelled orders, too."""
    return orders.key_by("shop").aggregate(revenue=sum_of("cents")).uid("revenue")


def special(steps: int, parallelism: int, answer: Any) -> None:
    """Take a savepoint after some steps, and continue with the answer, in which tasks then fail."""
    _judge(answer, _SPECIAL, steps, parallelism, failures=3)


def judge(answer: Any, chance: Random) -> None:
    """Run the first version for a while, take a savepoint, and continue with the answer."""
    shops = ("oslo", "rome", "lima")
    rows = [(chance.choice(shops), chance.randrange(100, 900), chance.random() < 0.4) for _ in range(60)]
    _judge(answer, rows, chance.randrange(12, 40), chance.choice((1, 2, 3)), failures=0)


def _judge(answer: Any, rows: Sequence[Order], steps: int, parallelism: int, failures: int) -> None:
    with _folder() as folder:
        read = _first(rows, steps, folder)
        second = _Second(answer, rows, parallelism, failures, folder)
        second.finish()
        wrong = _wrong(second.job, rows, read)
        if wrong is not None:
            violated, words, shop = wrong
            job = second.job
            opens = partial(_again, answer, rows, steps, parallelism, failures, second.heard.get(shop, 0))
            raise ViolatedError(violated, words, job, opens=opens if second.heard.get(shop) else None)


def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None, ignore_cleanup_errors=True)


def _first(rows: Sequence[Order], steps: int, folder: str) -> int:
    """Run the first version until its savepoint; return the number of orders that it has read."""
    first = _start(first_version(_orders(rows)), FIRST, folder, parallelism=2)
    with first.stepper.driver.unwatched():
        first.stepper.driver.run_until(lambda: first.over, steps)
        first.savepoint("before")
    offsets: Any = Snapshot.open(_place(folder)).offsets["orders"][0]
    first.cancel()
    return sum(offsets["positions"].values())


class _Second:
    """The second version, continued from the savepoint.

    Attributes:
        heard: for each shop, the steps before its last result was emitted.
    """

    def __init__(self, answer: Any, rows: Sequence[Order], parallelism: int, failures: int, folder: str) -> None:
        orders = _orders(rows)
        stream = built(answer, [orders])
        if lacking := set(NEEDED) - set(stream.columns):
            raise ViolatedError("the result's columns", no_column(min(lacking), dict.fromkeys(stream.columns), NEEDED))
        if stream._end.tag is not None:  # a side output: an operator behind it can be listened to
            stream = stream.select(*stream.columns)
        self.heard: dict[str, int] = {}
        self._failures = failures
        self._end = stream._end.node
        self.job = _start(stream, SECOND, folder, restore=str(_place(folder)), parallelism=parallelism)

    def finish(self, stop_at: int | None = None) -> None:
        """Run it to its end, or up to a step."""
        job, driver = self.job, self.job.stepper.driver
        uids = [uid for node, uid in driver.master.logical.uids.items() if node.spec is self._end.spec]
        driver.stop_at = stop_at
        with driver.unwatched(), driver.listening(uids, self._hear), suppress(ReachedError):
            for number in range(self._failures):
                driver.run_until(lambda: job.over, 7)
                job.checkpoint()
                driver.run_until(lambda: job.over, 11)
                tasks = [task.name for task in job.stepper.scene().scene.tasks if task.status == "RUNNING"]
                if job.over or not tasks:
                    break
                job.fail(tasks[number % len(tasks)])
            driver.run_until(lambda: job.over)
        driver.stop_at = None

    def _hear(self, _: str, records: Any) -> None:
        if "shop" in records.batch.schema.names:
            for shop in records.batch.column("shop").to_pylist():
                self.heard[shop] = self.job.stepper.driver.taken


def _again(answer: Any, rows: Sequence[Order], steps: int, parallelism: int, failures: int, stop_at: int) -> Job:
    """The second version just before a result."""
    with _folder() as folder:  # what is taken over has been read by then
        _first(rows, steps, folder)
        second = _Second(answer, rows, parallelism, failures, folder)
        second.finish(stop_at)
        return second.job


def _orders(rows: Sequence[Order]) -> Stream:
    table = pa.table(
        {
            "shop": [shop for shop, *_ in rows],
            "cents": [cents for _, cents, _ in rows],
            "cancelled": [cancelled for *_, cancelled in rows],
        }
    )
    return Stream.from_table(table).with_parallelism(1).uid("orders")


def _place(folder: str) -> Path:
    return Path(folder, FIRST, "savepoints", "before")


def _start(stream: Stream, name: str, folder: str, **settings: Any) -> Job:
    try:
        job = stream.sink_to(TableSink("revenues")).run(
            name, driver="stepping", buffer_size=1, buffer_timeout="0ms", checkpoint_interval=None, replace=True,
            restart="fixed-delay:attempts=100,delay=0s", checkpoint_dir=str(Path(folder, name)), **settings,
        )  # fmt: skip
    except WorkbenchError as error:
        raise ViolatedError("state that is taken over", f"the savepoint does not fit: {error}") from error
    forget(job)
    return job


def _wrong(job: Job, rows: Sequence[Order], read: int) -> tuple[str, str, str] | None:
    """The violated property, a sentence, and the shop."""
    if job.state != "FINISHED":
        raise ViolatedError("a program that runs", f"the job ended as {job.state}: {job.status()['failure']}", job)
    found = {row["shop"]: row["revenue"] for row in job.table("revenues").to_pylist()}
    if foreign := found.keys() - {shop for shop, *_ in rows}:
        return "nothing invented", f"there is no shop {min(map(str, foreign))!r}.", min(map(str, foreign))
    for shop in dict.fromkeys(shop for shop, *_ in rows):
        before = sum(cents for name, cents, _ in rows[:read] if name == shop)
        after = sum(cents for name, cents, gone in rows[read:] if name == shop and not gone)
        counts = any(name == shop and not gone for name, _, gone in rows[read:])
        revenue = found.get(shop)
        if revenue == before + after or (revenue is None and not counts):
            continue
        orders = "1 order" if read == 1 else f"{read} orders"
        told = f"the savepoint was taken after {orders}, when {shop or 'the shop without a name'} had {before} "
        told += f"cents. At the end it has {revenue}; correct is {before} + {after} = {before + after}."
        violated, why = _reason(revenue, shop, before, after, rows[read:])
        return violated, f"{told}{why}", shop
    return None


def _reason(revenue: int | None, shop: str, before: int, after: int, since: Sequence[Order]) -> tuple[str, str]:
    cancelled = sum(cents for name, cents, gone in since if name == shop and gone)
    if revenue is None:
        return "no loss", " There is no result for it: which of its orders were left out?"
    if revenue == after and before:
        return "state that is taken over", " The sums so far are lost: what identifies the state?"
    if revenue == before + after + cancelled:
        return "the fix", " Cancelled orders still count."
    if revenue == before + cancelled:
        return "right values", " Only the cancelled orders were counted."
    if revenue == before - after - cancelled:
        return "right values", " Amounts were subtracted that had never been added."
    return "right values", ""


JUDGE: Judge = program(
    [partial(special, steps, parallelism) for steps, parallelism in ((2, 1), (16, 2), (22, 3))],
    judge,
    2,
    "Savepoints of five runs, continued with other parallelisms and under failures: all sums are right.",
)
