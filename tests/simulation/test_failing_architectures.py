"""Fault-tolerance architectures under random faults and a crash at every step; planted bugs are found."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from workbench.drivers.faults.faults import Fault, FaultPlan
from workbench.elements import Records
from workbench.lab.pipelines.checkpointing import draw_architecture
from workbench.lab.simulation.architecture_names import ARCHITECTURES as NAMES
from workbench.lab.simulation.exhaustive import five
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.search import Search
from workbench.lab.simulation.simulation import run_scenario
from workbench.operators.acking.acker import FROM_OPERATOR, Acker
from workbench.operators.contract.base import Snapshot
from workbench.runtime.acking.pending_roots import PendingRoots
from workbench.runtime.acking.tracking import TrackedOutput, process_by_root
from workbench.runtime.barriers.aligned import AlignedBarriers
from workbench.runtime.barriers.architectures import ARCHITECTURES
from workbench.runtime.barriers.at_least_once import CountedBarriers
from workbench.runtime.barriers.snapshots import Arrival, Snapshots
from workbench.runtime.exchange.output import EdgeOutput
from workbench.runtime.settings.restart_strategies import FixedDelay
from workbench.runtime.settings.settings import Settings
from workbench.runtime.tasks import acked_operator
from workbench.runtime.tasks.source_task import SourceTask

SEEDS = 40
FREE = FixedDelay(3, 0, counts_injected=False)


def runs(architecture: str, seeds: range, pipeline: str = "", only: tuple[str, ...] = ()) -> list[SimulationResult]:
    search = Search(pipeline, only, architecture)
    return [run_scenario(search.scenario(seed)) for seed in seeds]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_promise_is_kept(architecture: str) -> None:
    results = runs(architecture, range(SEEDS))
    assert [str(result) for result in results if not result.ok] == []
    assert all(architecture in result.settings for result in results)
    assert sum(result.restarts for result in results) > 10
    assert sum(result.processes > 1 for result in results) >= 3


@pytest.mark.parametrize("kind", ["crash", "kill"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_failure_at_any_step_breaks_no_promise(architecture: str, kind: Any) -> None:
    settings = draw_architecture(Random(1), Settings(buffer_size=3, buffer_timeout_us=0, restart=FREE), architecture)
    calm = Scenario(
        3, {"five": five}, faults=FaultPlan(), actions=(), rows_max=12, settings=settings, durable=kind == "kill"
    )
    steps = run_scenario(calm).steps
    assert steps > 40
    broken, restarted = [], 0
    for step in range(1, steps, 1 if kind == "crash" else 3):
        result = run_scenario(replace(calm, faults=FaultPlan((Fault("step", step, kind),))))
        restarted += bool(result.faults)
        broken += [] if result.ok else [str(result)]
    assert broken == []
    assert restarted > steps // (2 if kind == "crash" else 6)


def test_the_command_offers_them_all() -> None:
    assert set(ARCHITECTURES) == set(NAMES)


# planted bugs ----------------------------------------------------------------------------------------------------


def positions_are_ahead_of_the_log(patch: pytest.MonkeyPatch) -> None:
    """State is logged at the first marker: what other channels have in flight is in no log, and is not read again."""

    def first(self: CountedBarriers, channel: Any, barrier: Any, now_us: int) -> None:
        if self._snapshots.wants(barrier.checkpoint_id):
            self._snapshots.report(self._snapshots.take(barrier), Arrival(0))

    patch.setattr(CountedBarriers, "on_barrier", first)


def records_between_positions_and_log_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    on_barrier = CountedBarriers.on_barrier

    def counted(self: CountedBarriers, channel: Any, barrier: Any, now_us: int) -> None:
        on_barrier(self, channel, replace(barrier, offsets=None), now_us)

    patch.setattr(CountedBarriers, "on_barrier", counted)
    patch.setattr(Snapshots, "records_in", 0)


def the_last_positions_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A source saves nothing while it has no new position."""
    position = Snapshots._position

    def forgets(self: Snapshots, barrier: Any) -> Snapshot:
        return {} if barrier.offsets is False else position(self, barrier)

    patch.setattr(Snapshots, "_position", forgets)


def flushes_are_not_aligned(patch: pytest.MonkeyPatch) -> None:
    """Rows behind the barrier of a faster channel are committed, and come again if the process dies."""
    complete = AlignedBarriers._complete_if_aligned

    def first(self: AlignedBarriers, now_us: int) -> None:
        self._aligned = len(self._gate.channels)
        complete(self, now_us)

    patch.setattr(AlignedBarriers, "_complete_if_aligned", first)


def sinks_forget_what_they_have_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("workbench.plan.physical.Vertex.sinks", [])


def sources_read_on_during_a_checkpoint(patch: pytest.MonkeyPatch) -> None:
    """And save their position only when it is complete."""
    patch.setattr(SourceTask, "source_state", lambda self: {})


def an_acker_takes_a_root_for_complete_when_it_is_announced(patch: pytest.MonkeyPatch) -> None:
    fold = Acker.fold

    def early(self: Acker, roots: Any, values: Any, sources: Any) -> Any:
        return fold(self, roots, np.where(sources == FROM_OPERATOR, values, 0), sources)

    patch.setattr(Acker, "fold", early)


def copies_of_a_broadcast_share_their_ids(patch: pytest.MonkeyPatch) -> None:
    """Each id should enter the value twice, and enters it once for the making and once for each copy."""

    def to_each(self: TrackedOutput, records: Records) -> None:
        stamped = self._stamped(records)
        for target in range(len(self.pending)):
            EdgeOutput.send_to(self, target, stamped)

    patch.setattr(TrackedOutput, "_to_each", to_each)


def a_source_forgets_what_has_failed(patch: pytest.MonkeyPatch) -> None:
    def forgets(self: PendingRoots, now_us: int) -> None:
        self._pending.expelled(now_us)

    patch.setattr(PendingRoots, "expire", forgets)


def records_of_several_roots_are_acknowledged_as_one(patch: pytest.MonkeyPatch) -> None:
    def together(records: Records, each: Any) -> Any:
        one = records.batch.set_column(
            records.batch.num_columns - 2,
            records.batch.schema.field(records.batch.num_columns - 2),
            pa.array([records.batch.column(records.batch.num_columns - 2)[0].as_py()] * len(records), pa.int64()),
        )
        return process_by_root(Records(one, records.timestamps), each)

    patch.setattr(acked_operator, "process_by_root", together)


PLANTED = [
    ("acks", an_acker_takes_a_root_for_complete_when_it_is_announced, "rebalanced", ()),
    ("acks", copies_of_a_broadcast_share_their_ids, "broadcast", ()),
    ("acks", a_source_forgets_what_has_failed, "rebalanced", ()),
    ("acks", records_of_several_roots_are_acknowledged_as_one, "rebalanced", ()),
    ("changelog", positions_are_ahead_of_the_log, "rebalanced", ()),
    ("changelog", records_between_positions_and_log_are_not_counted, "rebalanced", ()),
    ("changelog", the_last_positions_are_forgotten, "", ()),
    ("at-most-once", flushes_are_not_aligned, "rebalanced", ()),
    ("at-most-once", sinks_forget_what_they_have_committed, "in files", ()),
    ("stop-the-world", sources_read_on_during_a_checkpoint, "", ()),
]


@pytest.mark.parametrize(
    ("architecture", "plant", "pipeline", "only"), PLANTED, ids=lambda each: getattr(each, "__name__", "")
)
def test_a_planted_bug_is_found(
    architecture: str, plant: Any, pipeline: str, only: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    search = Search(pipeline, only, architecture)
    assert any(not run_scenario(search.scenario(seed)).ok for seed in range(60))
