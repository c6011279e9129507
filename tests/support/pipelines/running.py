"""Runs a drawn pipeline: in a random order of steps, with crashes, kills, and somebody at the controls; or live."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.api.beginning.opening import open_storage
from workbench.api.launching.assembling import build_master
from workbench.api.launching.parts import check_transactions
from workbench.api.running.pipeline import Pipeline
from workbench.clock import VirtualClock
from workbench.drivers.contract.probes import Probe, ProbedStorage, ProbedTables
from workbench.drivers.faults.faults import FaultInjector, FaultPlan, Killed
from workbench.drivers.stepped.simulation import SimulationDriver
from workbench.errors import PlanError
from workbench.lab.pipelines.checkpointing import draw_architecture
from workbench.lab.pipelines.drawing import draw_aggregation
from workbench.lab.pipelines.plans import Plans
from workbench.lab.simulation.person import Person, draw_actions
from workbench.operators.joins import groups as join_groups
from workbench.operators.joins import interval as join_interval
from workbench.operators.joins import session as join_session
from workbench.operators.windows import entries as window_entries
from workbench.operators.windows import tumbling as window_tumbling
from workbench.plan.acking import check_replayable
from workbench.plan.batchable import check_batches
from workbench.runtime.job.observer import JobObserver
from workbench.runtime.settings.restart_strategies import FixedDelay
from workbench.runtime.settings.settings import Settings
from workbench.runtime.storage import DirectoryStorage, MemoryStorage
from workbench.state import states_on_disk

from .draft import Draft
from .expected import AtLast, Between, Exactly
from .generator import OPERATORS, Operator, draw
from .slow import Slow

STEPS_MAX = 200_000
PROCESSES_MAX = 15
OPERATORS_MAX = 8
TIMEOUT_LEAST_US = 100_000
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
PARALLELISMS = ((1,), (1,), (1,), (2,), (3,), (1, 2), (1, 2, 3))

LIMITS = (
    (window_entries, "_FEW_ENTRIES"),
    (window_tumbling, "_FEW_ENTRIES"),
    (join_session, "_FEW_SESSIONS"),
    (join_interval, "_FEW_KEYS"),
    (join_interval, "_PAIRS_AT_ONCE"),
    (join_groups, "ROWS_AT_ONCE"),
    (states_on_disk, "RESIDENT_MAX"),
)
"""Numbers from which on state is packed, cut or put on disk: few records reach them only when they are small."""

Tables = dict[str, pa.Table]


def check(seed: int, *, live: bool = False, most: int = OPERATORS_MAX, only: Operator | None = None) -> str:
    """Draw a pipeline, of one operator alone when it is given, and run it; what was drawn.

    Raises:
        AssertionError: a sink holds something else than it must; tells the pipeline.
    """
    chance = Random(f"pipeline {seed}")
    parallelisms = chance.choice(PARALLELISMS)
    with ExitStack() as process:
        folder = process.enter_context(tempfile.TemporaryDirectory(prefix="workbench-pipeline-", dir=MEMORY))
        process.enter_context(small_limits(chance.choice((None, 2, 5))))
        draft = Draft(chance, Path(folder), parallelisms)
        pipeline = draw(draft, most, OPERATORS if only is None else {only: 1})
        settings = "live"
        story = f"pipeline {seed}, at most {most} operators, parallelism {parallelisms}:\n" + "\n".join(draft.story)
        try:
            if live:
                tables = _lively(pipeline, draft, f"random-{seed}")
            else:
                checkpoints = Path(folder) / "checkpoints"
                run = SimulatedRun(pipeline, Random(f"run {seed}"), parallelisms, checkpoints, Random(f"groups {seed}"))
                settings = run.words
                tables = run.tables()
        except Exception as error:
            error.add_note(f"{story}\n{settings}")
            raise
        problems = [text for one in draft.expected if (text := one.problem(with_files(draft, tables)))]
    assert not problems, "\n".join([*problems, story, settings])
    return story


@contextmanager
def small_limits(limit: int | None) -> Iterator[None]:
    saved = [(module, name, getattr(module, name)) for module, name in LIMITS]
    for module, name, usual in saved:
        setattr(module, name, usual if limit is None else limit)
    try:
        yield
    finally:
        for module, name, usual in saved:
            setattr(module, name, usual)


def smallest(seed: int) -> str:
    """A failing seed with as few operators as still fail, told as text."""
    for most in range(OPERATORS_MAX + 1):
        try:
            check(seed, most=most)
        except Exception as error:  # noqa: BLE001  whatever it is, it is what is looked for
            return f"{type(error).__name__}: {error}\n" + "\n".join(getattr(error, "__notes__", []))
    return f"pipeline {seed} fails no more"


def with_files(draft: Draft, tables: Tables) -> Tables:
    """The tables and what the sinks of files have committed."""
    found = dict(tables)
    for name, where in draft.folders.items():
        parts = [pq.read_table(path) for path in sorted(where.glob("part-*.parquet"))]
        known = [one.rows for one in draft.expected if isinstance(one, Exactly | AtLast | Between) and one.sink == name]
        found[name] = pa.concat_tables(parts) if parts else (known or [pa.table({})])[0].slice(0, 0)
    return found


def _lively(pipeline: Pipeline, draft: Draft, name: str) -> Tables:
    chance = draft.chance
    job = pipeline.run(
        name,
        parallelism=max(draft.parallelisms),
        max_parallelism=Random(name).choice((None, 6, 7, 300)),
        buffer_timeout=chance.choice(("0ms", "5ms", "disabled")),
        buffer_size=chance.choice((1, 10, 1000)),
        checkpoint_interval=chance.choice(("20ms", "disabled")),
    )
    assert job.wait("120s") == "FINISHED"
    return {table: job.table(table) for table in draft.tables}


class SimulatedRun:
    """One run, over all its processes.

    Args:
        pipeline: that runs.
        chance: of its settings, its faults and the order of its steps.
        parallelisms: that it may have.
        directory: for its checkpoints, if it may end and start again.
        dealing: the chance of its key groups.
        architecture: of fault tolerance, and then faults in most runs; empty: checkpoints.

    Attributes:
        settings: of the job.
        counted_twice: records that it processed again, as it says itself.
        failures: restarts, and processes that ended.
        words: of all that was drawn.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        chance: Random,
        parallelisms: tuple[int, ...],
        directory: Path,
        dealing: Random,
        architecture: str = "",
    ) -> None:
        self._logical = pipeline.logical_graph()
        self._chance = chance
        self._parallelisms = parallelisms
        self._directory = directory if chance.random() < 0.3 else None
        durable = self._directory is not None
        plan = (
            FaultPlan.draw(chance, kills=durable) if chance.random() < (0.9 if architecture else 0.5) else FaultPlan()
        )
        self._faults, self._clock = FaultInjector(plan), VirtualClock(1_000_000)
        settings = Settings(
            buffer_size=chance.choice((1, 3, 16, 100, 1000)),
            buffer_timeout_us=chance.choice((0, 5_000, None)),
            buffers_per_channel=chance.choice((1, 2)),
            floating_buffers=chance.choice((0, 4)),
            checkpoint_interval_us=chance.choice((None, None, 2_000, 20_000)),
            watermark_interval_us=chance.choice((100, 1_000, 20_000)),
            restart=FixedDelay(10, 0),
            local_aggregation=draw_aggregation(chance),
        )
        self.settings = draw_architecture(chance, settings, architecture) if architecture else settings
        if (acking := self.settings.policy.acking) is not None:  # with shorter ones it may replay for ever
            patient = replace(acking, message_timeout_us=max(acking.message_timeout_us, TIMEOUT_LEAST_US))
            policy = replace(self.settings.policy, acking=patient)
            self.settings = replace(self.settings, fault_tolerance=policy)
        self._plans = Plans(self._logical, dealing, self.settings.ackers)
        self.counted_twice = self.failures = 0
        self._person: Person | None = None
        if chance.random() < 0.4:
            self._person = Person(draw_actions(chance, may_stop=durable), parallelisms, self._plans.at)
        self._memory = MemoryStorage()
        self.words = f"{self.settings}, {plan}{', with somebody at the controls' * (self._person is not None)}"
        self.words += f"{', on disk' * durable}"

    def tables(self) -> Tables:
        """Run until the job has finished; its tables."""
        for _ in range(PROCESSES_MAX):
            with ExitStack() as process:
                try:
                    self._start(process)
                    self._step()
                except Killed:
                    self.failures += 1
                    continue
                finally:
                    self._count()
                master = self._driver.master
                if master.all_committed:
                    tables = master.services.tables
                    return {name: tables.read(name) for name in tables.names()}
                assert self._directory is not None, master.failure
                assert self._faults.fired or self._person is not None, master.failure
        raise AssertionError(f"the job was not finished after {PROCESSES_MAX} starts")

    def refusal(self) -> str:
        """Why its architecture cannot run this pipeline; empty if it can."""
        policy = self.settings.policy
        try:
            if policy.batches is not None:
                check_batches(self._logical, policy.batches.interval_us)
            if self.settings.ackers:
                check_replayable(self._logical)
            for parallelism in self._parallelisms:
                check_transactions(policy, self._logical, self._plans.at(parallelism))
        except PlanError as error:
            return str(error)
        return ""

    def _count(self) -> None:
        master = self._driver.master
        self.failures += master.restarts
        self.counted_twice += sum(found.records for found in master.life.audit.found)
        self.counted_twice += sum(counts.replayed_records for counts in master.services.roots.values())

    def _start(self, process: ExitStack) -> None:
        self._plans.begin_process()
        settings = replace(self.settings, parallelism=self._chance.choice(self._parallelisms))
        storage, manifest, first_id = open_storage(self._directory, resume=True, restore=None)
        if isinstance(storage, DirectoryStorage):
            process.callback(storage.close)
        self._driver = driver = SimulationDriver(self._chance, self._clock, self._faults, Probe(), [])
        master = build_master(
            "random",
            self._logical,
            self._plans.at(settings.parallelism),
            settings,
            ProbedStorage(storage if self._directory else self._memory, driver.probe),
            manifest,
            first_id,
            clock=self._clock,
            stage=driver,
            background=driver,
            observer=JobObserver(),
            tables=ProbedTables(driver.probe),
            data_dir=self._directory,
            executor=Slow(self._chance),
        )
        driver.run(master)

    def _step(self) -> None:
        driver, person, master = self._driver, self._person, self._driver.master
        master.step()
        for _ in range(STEPS_MAX):
            if driver.ended.is_set():
                return
            if not driver.step() and not driver.ended.is_set() and not (person is not None and person.resumes(master)):
                raise AssertionError(f"nothing can happen any more, but the job is {master.state}")
            if person is not None:
                person.after_step(master)
        raise AssertionError("the job does not end")
