"""A simulation as a stepping job: stopped at the step before a violation."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from workbench.api.job.job import Job
from workbench.api.job.run import Run
from workbench.errors import JobError
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.search import Search
from workbench.lab.simulation.simulation import Simulation
from workbench.runtime.job.observer import Observers
from workbench.telemetry.recorder import Recorder
from workbench.telemetry.sampler import Sampler


def replay(
    seed: int | Scenario,
    *,
    pipeline: str = "",
    faults: Sequence[str] = (),
    fault_tolerance: str = "",
    steps: int | None = None,
) -> Job:
    """The job of a simulation, stopped; ``job.stepper.step()`` continues in the order that the seed draws.

    Args:
        seed: of the simulation, or a whole scenario.
        pipeline: as after ``--pipeline``, a Python file or a name; empty: drawn by the seed.
        faults: as after ``--fault``.
        fault_tolerance: as after ``--fault-tolerance``; empty: checkpoints.
        steps: where to stop, counting the starts of processes; None: before the first violation, or at the start if
            there is none.

    Example:
        >>> job = replay(3, steps=20)
        >>> len(job.stepper.step(2)), job.status()["state"]
        (2, 'RUNNING')
    """
    search = Search(pipeline, tuple(faults), fault_tolerance)
    scenario = seed if isinstance(seed, Scenario) else search.scenario(seed)
    simulation = Simulation(scenario)
    try:
        _go(simulation, _steps_to_violation(scenario) if steps is None else steps)
        return _job(simulation)
    except BaseException:
        simulation.close()
        raise


def _steps_to_violation(scenario: Scenario) -> int:
    """The number of steps before the one with a violation; 0: there is none."""
    with Simulation(scenario) as simulation:
        taken = 0
        while simulation.step():
            taken += 1
        return taken - 1 if simulation.violations else 0


def _go(simulation: Simulation, steps: int) -> None:
    for _ in range(steps):
        simulation.step()
    if not simulation.running:  # between two processes there is no job to inspect
        simulation.step()


def _job(simulation: Simulation) -> Job:
    recorder = Recorder()
    sampler = Sampler(recorder)
    master, driver = simulation.master, simulation.driver
    sampler.watch(master)
    master.life.observer = Observers(master.life.observer, sampler)
    driver.watch(sampler.sample)
    sampler.sample()

    def rerun(*_: object) -> Job:
        raise JobError("a replayed simulation continues from its current step, not from a checkpoint: run its pipeline")

    name = f"simulation-{simulation.scenario.seed}"
    run = Run(
        name, master, driver, recorder, rerun=rerun, record=rerun, watch=sampler.watch,
        holder=lambda: None,
        again="it replays a simulation", beside="it replays a simulation",
    )  # fmt: skip
    job = Job(run)
    weakref.finalize(job, simulation.close)
    return job
