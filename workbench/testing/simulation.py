"""One number, one run: a pipeline, its input, its settings, the order of all steps and the faults, drawn from a seed.

A run starts a job, steps it in random order, kills and restarts it as its fault plan says, lets somebody turn knobs,
and in the end compares the committed rows with a plain model. All the time a `Checker` watches. A violation is found
again with the same seed::

    from workbench.testing import simulate

    result = simulate(4711)
    assert result.ok, result
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.api.launch import build_master, open_storage
from workbench.clock import VirtualClock
from workbench.drivers.faults import FaultInjector, FaultPlan, Killed
from workbench.drivers.probes import ProbedStorage, ProbedTables
from workbench.drivers.simulation import SimulationDriver, trace_hash
from workbench.errors import SettingError, unknown
from workbench.kernels import warm_up
from workbench.observer import JobObserver
from workbench.plan.physical import build_physical_graph
from workbench.runtime.master import Master
from workbench.runtime.restart_strategies import FixedDelay
from workbench.runtime.settings import Settings
from workbench.runtime.storage import DirectoryStorage, MemoryStorage
from workbench.testing.invariants import Checker
from workbench.testing.person import Person
from workbench.testing.topologies import TOPOLOGIES, Outputs, Trial

START_US = 1_000_000
STEPS_MAX = 30_000
PROCESSES_MAX = 12
STORY_LINES = 40
_DURABLE = 0.35
"""How many of the trials keep their checkpoints on disk; those whose sinks write files always do."""
SILENCE_US_MAX = 60_000_000
"""Nothing in a simulation waits for so long, except for a time-out after everything else has stopped."""


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What came of one seed.

    Attributes:
        seed: reproduces the run.
        pipeline: its name in ``TOPOLOGIES``.
        settings: of the job, in words.
        steps: taken in all.
        faults: those that happened.
        restarts: of the job within a process.
        processes: how often the job was started; more than once after kills and stops.
        checkpoints: completed.
        overshoot: the most buffers by which a task exceeded its output pool within one step.
        trace_hash: SHA-256 over all steps; equal for equal seeds.
        violations: of the runtime's promises, one sentence each.
        story: the last steps before a violation.
        rescaled: how often the job went on at another parallelism.
    """

    seed: int
    pipeline: str
    settings: str
    steps: int
    faults: tuple[str, ...]
    restarts: int
    processes: int
    checkpoints: int
    overshoot: int
    trace_hash: str
    violations: tuple[str, ...]
    story: tuple[str, ...]
    rescaled: int = 0

    @property
    def ok(self) -> bool:
        """Whether every promise was kept."""
        return not self.violations

    def __str__(self) -> str:
        faults = ", ".join(self.faults) or "no faults"
        head = f"seed {self.seed}: {self.pipeline}, {self.settings}; {self.steps} steps, {faults}"
        return head if self.ok else "\n".join([head, *(f"  {text}" for text in self.violations)])


def simulate(seed: int, *, pipelines: Sequence[str] | None = None) -> SimulationResult:
    """Run one simulation.

    Args:
        seed: of everything that is drawn.
        pipelines: names of those to choose from; None: all of ``TOPOLOGIES``.

    Raises:
        SettingError: no such pipeline.

    Example:
        >>> simulate(1).ok
        True
    """
    names = sorted(TOPOLOGIES) if pipelines is None else list(pipelines)
    for name in names:
        if name not in TOPOLOGIES:
            raise SettingError(unknown("pipeline", name, TOPOLOGIES))
    warm_up()
    with tempfile.TemporaryDirectory(prefix="workbench-simulation-", dir=_memory_folder()) as folder:
        return _Simulation(seed, names, Path(folder)).run()


class _Log(JobObserver):
    """Keeps the failures that nobody injected."""

    def __init__(self) -> None:
        self.unexpected: list[str] = []

    def on_event(self, time_us: int, kind: str, text: str) -> None:
        if kind == "failure" and not _injected(text):
            self.unexpected.append(f"a failure that nobody injected: {text}")


class _Simulation:
    def __init__(self, seed: int, names: Sequence[str], folder: Path) -> None:
        self.seed = seed
        self.chance = chance = Random(seed)
        self.name = chance.choice(names)
        self.folder = folder
        self.trial: Trial = TOPOLOGIES[self.name](chance, folder)
        self.logical = self.trial.pipeline.logical_graph()
        self.durable = bool(self.trial.folders) or chance.random() < _DURABLE
        self.settings = _draw_settings(chance, self.durable)
        self.faults = FaultInjector(FaultPlan.draw(chance, kills=self.durable))
        self.person = Person(chance, may_stop=self.durable, parallelisms=self.trial.parallelisms)
        self.checker = Checker(on_time=self.trial.on_time, folders=dict(self.trial.folders))
        self.log = _Log()
        self.memory = MemoryStorage()
        self.clock = VirtualClock(START_US)
        self.trace: list[str] = []
        self.restarts = 0
        self.checkpoints = 0
        self.processes = 0
        self.visible: Outputs = {}  # what a reader saw when the last process ended

    def run(self) -> SimulationResult:
        try:
            violations = self._run_processes()
        except Exception as error:  # noqa: BLE001  whatever the runtime raises is found by this seed
            violations = [f"the runtime raised {type(error).__name__}: {error}"]
        return SimulationResult(
            seed=self.seed,
            pipeline=self.name,
            settings=_describe(self.settings, self.durable),
            steps=len(self.trace),
            faults=tuple(map(str, self.faults.fired)),
            restarts=self.restarts,
            rescaled=self.person.rescaled,
            processes=self.processes,
            checkpoints=self.checkpoints,
            overshoot=self.checker.overshoot,
            trace_hash=trace_hash(self.trace),
            violations=tuple(violations),
            story=tuple(self.trace[-STORY_LINES:]) if violations else (),
        )

    def _run_processes(self) -> list[str]:
        """Start the job until it has finished; what was violated."""
        while self.processes < PROCESSES_MAX:
            self.processes += 1
            with ExitStack() as process:
                master = self._start(process)
                try:
                    problems = self._step(master)
                except Killed:
                    continue
                finally:
                    if master.state not in ("CREATED", "INITIALIZING"):
                        self.visible = self._outputs(master)
                    self.restarts += master.restarts
                    self.checkpoints += master.coordinator.completed
            if problems or master.state == "FINISHED":
                return problems
            if not self.durable:
                return [f"the job is {master.state}: {master.failure}"]
            if master.state == "FAILED" and not _injected(str(master.failure)):
                return [f"the job failed by itself: {master.failure}"]
        return [f"the job was not finished after {PROCESSES_MAX} starts"]

    def _start(self, process: ExitStack) -> Master:
        chance, checker = self.chance, self.checker
        logical = self.logical
        settings = replace(self.settings, parallelism=chance.choice(self.trial.parallelisms))
        graph = build_physical_graph(logical, settings.parallelism)
        directory = self.folder / "checkpoints" if self.durable else None
        savepoint = self._savepoint_to_restore()
        storage, manifest, first_id = open_storage(directory, resume=savepoint is None, restore=savepoint)
        if isinstance(storage, DirectoryStorage):
            process.callback(storage.close)
        else:
            storage = self.memory
        self.driver = driver = SimulationDriver(chance, self.clock, self.faults, checker, self.trace)
        master = build_master(
            "simulation",
            logical,
            graph,
            settings,
            ProbedStorage(storage, driver.probe),
            manifest,
            first_id,
            clock=self.clock,
            stage=driver,
            background=driver,
            observer=self.log,
            tables=ProbedTables(driver.probe),
            data_dir=directory,
        )
        checker.watch(master)
        driver.run(master)
        return master

    def _savepoint_to_restore(self) -> str | None:
        """Sometimes the job goes back to a savepoint, where its sinks can: committed files stay committed."""
        places = self.folder.glob("checkpoints/savepoints/*/manifest.json")
        names = sorted(path.parent.name for path in places)
        if not names or self.trial.folders or self.chance.random() < 0.5:
            return None
        self.visible = {}
        return self.chance.choice(names)

    def _step(self, master: Master) -> list[str]:
        """Step one process until its job is over or a promise is broken; what was violated."""
        driver, checker, person, log = self.driver, self.checker, self.person, self.log
        master.step()
        if taken_back := self._taken_back(master):
            return taken_back
        while not driver.ended.is_set():
            before_us = self.clock.now_us()
            if not driver.step() and not person.resumes(master):
                return [f"nothing can happen any more, and the job is {master.state}"]
            if self.clock.now_us() - before_us > SILENCE_US_MAX:
                return [f"nothing but a time-out is left to happen, and the job is {master.state}"]
            checker.after_step(driver.actor)
            if checker.violations or log.unexpected:
                return checker.violations + log.unexpected
            if len(self.trace) > STEPS_MAX:
                return [f"the job is {master.state} after {STEPS_MAX} steps"]
            person.after_step(master)
        if master.state == "FINISHED":
            checker.finished()
            return checker.violations + [f"I7: {text}" for text in self.trial.verify(self._outputs(master))]
        return []

    def _taken_back(self, master: Master) -> list[str]:
        """Rows that could be seen before the restart, and that are not there after it."""
        if master.state != "RUNNING":
            return []
        now = self._outputs(master)
        gone = {
            sink: rows - now.get(sink, Counter())
            for sink, rows in self.visible.items()
            if sink not in self.trial.upserts and rows - now.get(sink, Counter())
        }
        return [f"I7: {sink}: {rows.total()} visible rows were taken back" for sink, rows in sorted(gone.items())]

    def _outputs(self, master: Master) -> Outputs:
        tables = master.services.tables
        found = {name: _counted(tables.read(name)) for name in tables.names()}
        for uid, folder in self.trial.folders:
            parts = [pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]
            found[uid] = _counted(pa.concat_tables(parts)) if parts else Counter()
        return found


def _counted(table: pa.Table) -> Counter[tuple[object, ...]]:
    columns = [
        column.cast(pa.int64()).to_pylist() if pa.types.is_timestamp(column.type) else column.to_pylist()
        for column in table.columns
    ]
    return Counter(zip(*columns, strict=True))


def _draw_settings(chance: Random, durable: bool) -> Settings:
    return Settings(
        buffer_size=chance.choice((1, 2, 3, 5, 16, 64)),
        buffer_timeout_us=chance.choice((0, 5_000, None)),
        buffers_per_channel=chance.choice((1, 2)),
        floating_buffers=chance.choice((0, 1, 4)),
        checkpoint_interval_us=chance.choice((None, 500, 2_000, 2_000, 20_000)),
        checkpoint_timeout_us=chance.choice((600_000_000, 50_000)) if durable else 600_000_000,
        retained_checkpoints=chance.choice((1, 3)),
        watermark_interval_us=chance.choice((100, 1_000, 100_000)),
        latency_interval_us=chance.choice((2_000, 200_000)),
        restart=FixedDelay(3, chance.choice((0, 5_000)), counts_injected=False),
    )


def _describe(settings: Settings, durable: bool) -> str:
    shown = settings.shown()
    return (
        f"buffers of {settings.buffer_size} records, timeout {shown['buffer_timeout']},"
        f" checkpoints every {shown['checkpoint_interval']} {'on disk' if durable else 'in memory'}"
    )


def _injected(text: str) -> bool:
    return "injected" in text or "on purpose" in text or "timed out" in text


def _memory_folder() -> str | None:
    """A folder in memory where there is one: flushing files to it costs nothing."""
    folder = Path("/dev/shm")
    return str(folder) if folder.is_dir() else None
