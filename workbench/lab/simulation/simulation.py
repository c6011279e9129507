"""One number, one run: a pipeline, its input, its settings, the order of all steps and the faults, drawn from a seed.

A run starts a job, steps it in random order, kills and restarts it according to its fault plan, performs actions of
users, and finally compares the committed rows with a plain model. A `Checker` observes all of it. The same seed
reproduces a violation::

    from workbench.lab import simulate

    result = simulate(4711)
    assert result.ok, result
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from workbench.api.beginning.opening import open_storage
from workbench.api.launching.assembling import build_master
from workbench.api.launching.parts import leave_others
from workbench.clock import VirtualClock
from workbench.compiled import warm_up
from workbench.connectors.contract.collector import collector_at_rest
from workbench.drivers.contract.probes import ProbedStorage, ProbedTables
from workbench.drivers.faults.faults import FaultInjector, Killed, PowerFailed, faults_named
from workbench.drivers.faults.faulty_disk import ProbedDisk
from workbench.drivers.stepped.simulation import SimulationDriver, trace_hash
from workbench.durable.disk import DISK
from workbench.errors import CheckpointError, SettingError, WorkbenchError, unknown
from workbench.lab.invariants import Checker
from workbench.lab.invariants.transactions import TransactionChecker
from workbench.lab.pipelines.checkpointing import verify_rows
from workbench.lab.pipelines.collector import untie
from workbench.lab.pipelines.committed import committed
from workbench.lab.pipelines.comparing import Outputs, taken_back
from workbench.lab.pipelines.drawing import describe
from workbench.lab.pipelines.plans import Plans
from workbench.lab.pipelines.run_folder import make_run_folder, remove_run_folder
from workbench.lab.pipelines.topologies import TOPOLOGIES
from workbench.lab.simulation.damage import Damage, damage
from workbench.lab.simulation.failures import FailureLog, injected
from workbench.lab.simulation.person import Person
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.whole_checkpoints import lacking
from workbench.runtime.job.master import Master
from workbench.runtime.storage import DirectoryStorage, Manifest, MemoryStorage
from workbench.runtime.transactions.transactions import Transactions

START_US = 1_000_000
STEPS_MAX = 30_000
PROCESSES_MAX = 16
STORY_LINES = 40
SILENCE_US_MAX = 60_000_000
"""Longer than any wait in a simulation, except for a time-out after everything else has stopped."""


def simulate(seed: int, *, pipelines: Sequence[str] | None = None) -> SimulationResult:
    """Run one simulation.

    Args:
        seed: of all random choices.
        pipelines: names to choose from; None: all of ``TOPOLOGIES``.

    Raises:
        SettingError: no such pipeline.

    Example:
        >>> simulate(1).ok
        True
    """
    for name in pipelines or ():
        if name not in TOPOLOGIES:
            raise SettingError(unknown("pipeline", name, TOPOLOGIES))
    return run_scenario(Scenario(seed, TOPOLOGIES if pipelines is None else {n: TOPOLOGIES[n] for n in pipelines}))


@collector_at_rest()
def run_scenario(scenario: Scenario) -> SimulationResult:
    """Run one simulation, parts of which are fixed."""
    with Simulation(scenario) as simulation:
        simulation.run()
        result = simulation.result()
    simulation.let_go()
    return result


class Simulation:
    """One run, step by step; a context manager, because it has a folder.

    Attributes:
        drawn: what it consists of.
        driver: of the process that runs now, or ran last.
        violations: those found so far.
    """

    def __init__(self, scenario: Scenario) -> None:
        warm_up()
        if scenario.only:
            faults_named(scenario.only)  # rejects unknown names before anything is written
        self.scenario = scenario
        self.folder = make_run_folder()
        self.drawn = drawn = scenario.draw(self.folder)
        self.trial, self.settings, self.durable = drawn.trial, drawn.settings, drawn.durable
        self.logical = self.trial.pipeline.logical_graph()
        self.faults = FaultInjector(drawn.faults, census=scenario.census)
        self._disk = ProbedDisk(self.faults, scenario.chance("power") if drawn.faults.has("power") else None)
        self._plans = Plans(self.logical, scenario.chance("key groups"), self.settings.ackers)
        self.person = Person(drawn.actions, self.trial.parallelisms, self._plans.at)
        # What a job counts twice may be late when it is repeated.
        on_time = self.trial.on_time and self.settings.policy.guarantee != "at-least-once"
        self.checker: Checker | TransactionChecker = Checker(on_time=on_time, folders=dict(self.trial.folders))
        if self.settings.policy.transactions is not None:
            self.checker = TransactionChecker()
        self.log = FailureLog()
        self.memory = MemoryStorage()
        self.clock = VirtualClock(START_US)
        self.chance = scenario.chance("schedule")
        self.trace: list[str] = []
        self.violations: list[str] = []
        self.restarts = self.checkpoints = self.processes = self.counted_twice = 0
        self.visible: Outputs = {}  # what a reader saw when the last process ended
        self._damage: Damage | None = None
        self._taken_back: tuple[str, int] | None = None  # the savepoint, and the first checkpoint that counts again
        self._process: ExitStack | None = None
        self._finished = False
        self.driver: SimulationDriver

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def master(self) -> Master:
        """Of the process that runs now, or ran last; a different one after a failover."""
        return self.driver.master

    @property
    def running(self) -> bool:
        """Whether a process runs the job now."""
        return self._process is not None

    def close(self) -> None:
        """Remove the run's folder."""
        if self._process is not None:
            self._process.close()
        remove_run_folder(self.folder)

    def let_go(self) -> None:
        """Release everything immediately; the simulation cannot be used any more."""
        driver, master = self.driver, self.master
        self.checker.let_go()
        untie(
            self._plans.made.values(), master.coordinator, master.life, master, driver.probe, driver, self.faults, self
        )

    def result(self) -> SimulationResult:
        """The result so far."""
        return SimulationResult(
            seed=self.scenario.seed,
            pipeline=self.drawn.name,
            settings=describe(self.settings, self.durable),
            steps=len(self.trace),
            tasks=max((graph.number_of_tasks for graph in self._plans.made.values()), default=0),
            plan=self.drawn.faults,
            actions=self.drawn.actions,
            faults=tuple(map(str, self.faults.fired)),
            restarts=self.restarts,
            rescaled=self.person.rescaled,
            processes=self.processes,
            checkpoints=self.checkpoints,
            overshoot=self.checker.overshoot,
            trace_hash=trace_hash(self.trace),
            violations=tuple(self.violations),
            story=tuple(self.trace[-STORY_LINES:]) if self.violations else (),
        )

    # steps -------------------------------------------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the job has finished, or an invariant was violated."""
        return self._finished or bool(self.violations)

    def run(self) -> None:
        """Take all steps."""
        self._take_steps(sys.maxsize)

    def step(self) -> bool:
        """Start a process, or take one step of it; False when the run is over."""
        if self.over:
            return False
        self._take_steps(1)
        return True

    def _take_steps(self, most: int) -> None:
        """Take `most` steps, or all that are left."""
        disk = DISK.set(self._disk)
        try:
            for _ in range(most):
                if self._finished or self.violations:
                    break
                self._step()
        except Exception as error:  # noqa: BLE001  whatever the runtime raises is found by this seed
            self.violations.append(f"the runtime raised {type(error).__name__}: {error}")
        finally:
            DISK.reset(disk)

    def _step(self) -> None:
        if self._process is None:
            self._begin_process()
            return
        driver, checker, clock = self.driver, self.checker, self.clock
        began_us = clock.now_us() - driver.skipped_us
        try:
            if driver.advance() is None and not self.person.resumes(driver.master):
                self.violations.append(f"I11: nothing can happen any more, but the job is {driver.master.state}")
                return
        except Killed as cause:
            self._end_process(cause)
            return
        master = driver.master
        if clock.now_us() - driver.skipped_us - began_us > SILENCE_US_MAX:
            self.violations.append(f"I11: only a time-out can still happen, but the job is {master.state}")
        if master is not checker.master:
            checker.obey(master)
        checker.after_step(driver.actor)
        if checker.violations or self.log.unexpected:
            self.violations += checker.violations + self.log.unexpected
        if len(self.trace) > STEPS_MAX:
            self.violations.append(f"I11: the job is {master.state} after {STEPS_MAX} steps")
        self.person.after_step(master)
        if driver.ended.is_set():
            self._on_ended()

    def _on_ended(self) -> None:
        """The job of this process is over."""
        master = self.master
        self._end_process()
        if master.all_committed:
            self._finished = True
            self.checker.finished()
            self.violations += self.checker.violations
            wrong = verify_rows(self.trial, self.visible, self.settings.policy, self.counted_twice)
            self.violations += [f"I7: {text}" for text in wrong]
            if self.trial.counted is not None and self.checker.totals is not None:
                self.violations += [f"I15: {t}" for t in self.trial.counted(self.visible, self.checker.totals)]
        elif not self.durable:
            self.violations.append(f"the job is {master.state}: {master.failure}")
        elif master.state == "FAILED" and not injected(str(master.failure)):
            self.violations.append(f"the job failed by itself: {master.failure}")

    # processes ---------------------------------------------------------------------------------------------------

    def _begin_process(self) -> None:
        if self.processes >= PROCESSES_MAX:
            self.violations.append(f"I11: the job was not finished after {PROCESSES_MAX} starts")
            return
        if self.processes:
            self._do_damage()
        self.processes += 1
        self._process = ExitStack()
        try:
            self._start(self._process)
        except Killed as cause:
            self._end_process(cause)
        except WorkbenchError as error:
            if injected(str(error)):  # the process could not start, and the next one tries again
                self._process.close()
                self._process = None
            elif self._damage is not None and isinstance(error, CheckpointError):
                self._end_damaged(refused=True)
            else:
                raise
        else:
            if self._damage is not None and not injected(str(self.master.failure)):
                self._end_damaged(refused=isinstance(self.master.failure, CheckpointError))
            elif self.driver.ended.is_set():
                self._on_ended()
            else:
                self._check_nothing_taken_back()

    def _end_process(self, cause: Killed | None = None) -> None:
        """Only the files of the process remain, and after a power failure not all of these."""
        assert self._process is not None
        master = self.master
        if master.state not in ("CREATED", "INITIALIZING"):
            self.visible = committed(master.services.tables, self.trial)
        self.restarts += master.restarts
        self.checkpoints += master.coordinator.completed
        self.counted_twice += sum(found.records for found in master.life.audit.found)
        self.counted_twice += sum(counts.replayed_records for counts in master.services.roots.values())
        self._process.close()
        self._process = None
        if isinstance(cause, PowerFailed):
            self._disk.lose_power()
            self.violations += [] if self._damage else lacking(self.folder / "checkpoints")

    def _start(self, process: ExitStack) -> None:
        chance, checker = self.chance, self.checker
        settings = replace(self.settings, parallelism=chance.choice(self.trial.parallelisms))
        self._plans.begin_process()
        graph = self._plans.at(settings.parallelism)
        directory = self.folder / "checkpoints" if self.durable else None
        savepoint = self._savepoint_to_restore()
        above_bytes = 0 if self.scenario.seed % 2 else None  # every table as changes, or each checkpoint as a whole
        storage, manifest, first_id = open_storage(directory, savepoint is None, savepoint, above_bytes)
        leave_others(settings.policy, storage, resumes=savepoint is None)
        self._check_going_back(manifest, first_id, explicit=savepoint is not None)
        if isinstance(storage, DirectoryStorage):
            process.callback(storage.close)
        else:
            storage = self.memory
        self.driver = driver = SimulationDriver(chance, self.clock, self.faults, checker, self.trace)
        master = build_master(
            "simulation",
            self.logical,
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
            run=f"process-{self.processes}",
        )
        checker.watch(master)
        if isinstance(parts := master.services.parts, Transactions):
            process.callback(parts.store.close)
        driver.run(master)

    def _savepoint_to_restore(self) -> str | None:
        """Sometimes the job goes back to a savepoint, if its sinks can: committed files are permanent."""
        if self.processes == 1:
            return None
        names = sorted(path.parent.name for path in self.folder.glob("checkpoints/savepoints/*/manifest.json"))
        if not names or self.trial.folders or self.trial.outside or self._damage is not None:
            return None
        if self.chance.random() < 0.5:
            return None
        self.visible = {}
        return self.chance.choice(names)

    def _check_going_back(self, manifest: Manifest | None, first_id: int, *, explicit: bool) -> None:
        """A job that was reset to a savepoint never resumes from a later checkpoint of the time before."""
        if explicit and manifest is not None:
            self._taken_back = (manifest.place, first_id)
        elif self._taken_back is not None and manifest is not None:
            place, first = self._taken_back
            if manifest.place != place and manifest.checkpoint_id < first:
                self.violations.append(f"I6: the job was restored to {place}, but continues from {manifest.place}")

    # damage ------------------------------------------------------------------------------------------------------

    def _do_damage(self) -> None:
        for fault in self.faults.due("restart", ""):
            if self._damage is None:
                self._damage = damage(self.folder / "checkpoints", fault)

    def _end_damaged(self, *, refused: bool) -> None:
        """The job must not have started; then the file is repaired."""
        assert self._damage is not None
        assert self._process is not None
        if not refused:
            self.violations.append(f"I6: a checkpoint was restored although {self._damage.path.name} is damaged")
        self.log.unexpected.clear()
        self._damage.mend()
        self._damage = None
        self._process.close()
        self._process = None

    # visible rows ------------------------------------------------------------------------------------------------

    def _check_nothing_taken_back(self) -> None:
        """Rows that were visible before the restart are visible after it."""
        if self.master.state != "RUNNING" or not self.visible:
            return
        now = committed(self.master.services.tables, self.trial)
        self.violations += [f"I7: {text}" for text in taken_back(self.visible, now, self.trial.upserts)]
