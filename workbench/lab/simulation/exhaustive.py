"""Every crash at every place, and every pair of crashes: covers what random faults may miss.

A *census* runs a pipeline without a fault and counts the places that each task reaches; those that are reached only
during a recovery are counted in a run with a crash. As runs are identical up to their first fault, every counted place
is reached again when a fault is injected there. `places_missed` lists the existing places (`crash_places`) that no
census has found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import NamedTuple, cast, get_args

from workbench.connectors.parts.parquet_sink import ParquetSink
from workbench.connectors.tables.table_sink import TableSink
from workbench.drivers.faults.crash_points import COORDINATOR, CrashPoint, FaultPoint
from workbench.drivers.faults.fault_names import POINTS, Kind
from workbench.drivers.faults.faults import Fault, FaultPlan
from workbench.expressions import col
from workbench.lab.pipelines.comparing import Rows, equal
from workbench.lab.pipelines.inputs import source
from workbench.lab.pipelines.topologies import TOPOLOGIES, Trial, late
from workbench.lab.simulation.crash_places import ON_THE_WAY_BACK, Owners, Place, missing
from workbench.lab.simulation.scenario import DrawTrial, Scenario
from workbench.lab.simulation.simulation import Simulation, run_scenario
from workbench.lab.simulation.worker_processes import in_processes
from workbench.operators.aggregates import aggregations
from workbench.operators.aggregates.local_aggregate import Worthwhile
from workbench.runtime.barriers.aligned import EXACTLY_ONCE
from workbench.runtime.barriers.unaligned import UNALIGNED
from workbench.runtime.settings.restart_strategies import FixedDelay
from workbench.runtime.settings.settings import Settings
from workbench.windows.tumbling import Tumbling

MODES = (EXACTLY_ONCE.name, UNALIGNED.name)
NAMES = ("rebalanced", "latest", "united", "late", "in files", "spread in files", "layered", "exchanged")
"""One source spread over many, an upsert, two sources, side outputs, files in one chain with their source and behind an
exchange, alignment at three levels, exchanges of every kind. All except that one chain have channels."""
_SEEDS = 15
_AT_ONCE = 20
_KILLED_EVERY = 80, 5
"""Steps at which a run is killed to observe its recovery: a sample, and many if none of these shows all of it."""
_FIRST_KILLS = 1_000
"""The range of steps to sample from; if need be, the steps of a whole run."""
_CRASHES: tuple[Kind, ...] = ("crash", "kill")
_SINGLES: tuple[Kind, ...] = (*_CRASHES, "power")


@dataclass(frozen=True, slots=True)
class Case:
    """One run with given faults; plain data, so that it can be sent to another process.

    Attributes:
        name: of the pipeline.
        mode: of its checkpoints.
        seed: the random seed.
        faults: the injected faults.
    """

    name: str
    mode: str
    seed: int
    faults: FaultPlan

    def __str__(self) -> str:
        return f"{self.name}, {self.mode}, seed {self.seed}: {self.faults}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a case.

    Attributes:
        reached: whether all its faults have happened.
        violations: see `SimulationResult`.
    """

    case: str
    reached: bool
    violations: tuple[str, ...]


class Census(NamedTuple):
    """The places that an undisturbed run reaches.

    Attributes:
        scenario: the run.
        owners: its tasks.
        places: how often each place was reached.
        steps: number of steps.
    """

    scenario: Scenario
    owners: Owners
    places: dict[Place, int]
    steps: int


def run_case(case: Case) -> Outcome:
    """Run one case."""
    result = run_scenario(replace(_calm(case.name, case.mode, case.seed), faults=case.faults))
    return Outcome(str(case), len(result.faults) == len(case.faults.faults), result.violations)


def run_cases(cases: Sequence[Case], *, jobs: int = 1) -> Iterator[Outcome]:
    """Run cases, in order, in `jobs` processes."""
    return in_processes(jobs, run_case, cases, at_once=_AT_ONCE)


def single_crashes() -> list[Case]:
    """Every crash point x every task x aligned and unaligned x eight pipelines, each as a failed task, as a killed
    process and, where a write is in progress or on disk, as a power failure; for places of the coordinator, each task
    fails while the coordinator is there."""
    return [case for name in NAMES for mode in MODES for case in _singles(name, mode)]


def places_missed() -> list[str]:
    """The places of those pipelines that no single crash covers, each in words; empty when all are covered."""
    return [
        f"{name}, {mode}: {point} of {owner}"
        for name in NAMES
        for mode in MODES
        for point, owner in missing(_reached(name, mode), census(name, mode).owners, mode)
    ]


def _reached(name: str, mode: str) -> set[Place]:
    return {*census(name, mode).places, *way_back(name, mode)[1]}


def pairs_of_crashes() -> list[Case]:
    """Every place of a five-task graph, followed by every place again."""
    cases = []
    for mode in MODES:
        scenario, owners, places, _ = census("five", mode)
        firsts = list(_faults(places, len(owners.tasks), _CRASHES, crash_all=False))
        for first in firsts:
            for second in firsts:
                then = replace(second, occurrence=1, follows=True)
                plan = FaultPlan((first, then))
                cases.append(Case("five", mode, scenario.seed, plan))
    return cases


def _singles(name: str, mode: str) -> Iterator[Case]:
    scenario, owners, places, _ = census(name, mode)
    tasks = len(owners.tasks)
    for fault in _faults(places, tasks, _SINGLES, crash_all=True):
        yield Case(name, mode, scenario.seed, FaultPlan((fault,)))
    for kind in _CRASHES:  # a process starts for the first time after a kill, and again after a crash
        before, places = way_back(name, mode, kind)
        for fault in _faults(places, tasks, _SINGLES, crash_all=True):
            yield Case(name, mode, scenario.seed, FaultPlan((before, fault)))


def _faults(places: dict[Place, int], tasks: int, kinds: Sequence[Kind], *, crash_all: bool) -> Iterator[Fault]:
    for (point, owner), times in sorted(places.items()):
        for kind in kinds:
            if kind not in POINTS[point]:
                continue
            victims = tasks if crash_all and kind == "crash" and owner == COORDINATOR else 1
            for task in range(victims):
                yield Fault(point, (times + 1) // 2, kind, task, owner)


@cache
def census(name: str, mode: str) -> Census:
    """The census of the seed, out of some, that reaches most places."""
    counted = (_count(_calm(name, mode, seed)) for seed in range(_SEEDS))
    return max(counted, key=lambda found: (len({point for point, _ in found.places}), len(found.places)))


@cache
def way_back(name: str, mode: str, kind: Kind = "kill") -> tuple[Fault, dict[Place, int]]:
    """The kill, or the crash of a task, whose recovery reaches most places, and how often each of those was reached."""
    whole = census(name, mode)
    few, many = _KILLED_EVERY
    first = range(few // 2, min(whole.steps, _FIRST_KILLS), few)
    best = max((_way_back(whole.scenario, step, kind) for step in first), key=lambda found: len(found[1]))
    for step in range(many, whole.steps if kind == "kill" else 0, many):
        if not missing({**whole.places, **best[1]}, whole.owners, mode):
            break
        best = max(best, _way_back(whole.scenario, step, kind), key=lambda found: len(found[1]))
    return best


def _way_back(scenario: Scenario, step: int, kind: Kind) -> tuple[Fault, dict[Place, int]]:
    first = Fault("step", step, kind)
    places = _count(replace(scenario, faults=FaultPlan((first,)))).places
    return first, {place: n for place, n in places.items() if place[0] in ON_THE_WAY_BACK}


def _count(scenario: Scenario) -> Census:
    """How often each place was reached by a run."""
    with Simulation(replace(scenario, census=True)) as simulation:
        while simulation.step():
            pass
        if simulation.violations:
            raise AssertionError("\n".join(simulation.violations))
        execution = simulation.master.execution
        assert execution is not None
        counts = simulation.faults.counts
        places = {(cast(CrashPoint, point), owner): n for (point, owner), n in counts.items() if _listed(point, owner)}
        return Census(scenario, Owners.of(execution), places, len(simulation.trace))


def _listed(point: FaultPoint, owner: str) -> bool:
    return bool(owner) and point in get_args(CrashPoint)


def _calm(name: str, mode: str, seed: int) -> Scenario:
    settings = Settings(
        buffer_size=3,
        buffer_timeout_us=0,
        buffers_per_channel=1,
        floating_buffers=1,
        checkpoint_interval_us=500,
        checkpoint_mode=mode,
        retained_checkpoints=1,
        watermark_interval_us=100,
        restart=FixedDelay(3, 0, counts_injected=False),
        local_aggregation=Worthwhile(rows=1, shrinks=1, pause=0),
    )
    own: dict[str, DrawTrial] = {"spread in files": spread_in_files, "late": partial(late, drops=0)}
    draw = five if name == "five" else _two_wide({**TOPOLOGIES, **own}[name])
    return Scenario(seed, {name: draw}, faults=FaultPlan(), actions=(), long=True, settings=settings, durable=True)


def _two_wide(draw: DrawTrial) -> DrawTrial:
    return lambda chance, folder: replace(draw(chance, folder), parallelisms=(2,))


def spread_in_files(chance: Random, folder: Path) -> Trial:
    """Files behind an exchange."""
    stream, rows = source(chance)
    place = folder / "files"
    expected: Rows = Counter(tuple(row) for row in rows)
    sink = ParquetSink(place, compression="none")
    return Trial(stream.rebalance().sink_to(sink), equal("files", expected), folders=(("files", place),))


def five(chance: Random, folder: Path) -> Trial:
    """Five tasks: a source, two filters, two windows with a sink."""
    stream, rows = source(chance, disorder=0)
    kept = stream.with_parallelism(1).rebalance().filter(col("v") > 0).key_by("key").window(Tumbling(100))
    counts = kept.aggregate(n=aggregations.count())
    groups: dict[tuple[str | None, int], int] = {}
    for row in rows:
        if row.t is not None and row.v is not None and row.v > 0:
            groups[row.key, row.t - row.t % 100] = groups.get((row.key, row.t - row.t % 100), 0) + 1
    expected = Counter((key, start, start + 100, n) for (key, start), n in groups.items())
    return Trial(counts.sink_to(TableSink("out")), equal("out", expected), parallelisms=(2,))
