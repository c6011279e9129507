"""Jobs between real servers while these restart, hang and lose connections, and while the jobs are killed, stopped and
rescaled: nothing is lost, doubled, reordered, changed or unreadable. ``make chaos`` runs many more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from chaos.arena import Arena
from chaos.plans import FAULTS, SERVER_OF, SERVERS, drawn

SEEDS = (255, 1810, 245, 1894, 561)


@pytest.fixture(scope="module")
def arena() -> Iterator[Arena]:
    with Arena() as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_between_failing_servers_loses_and_doubles_nothing(seed: int, arena: Arena) -> None:
    outcome = arena.run(drawn(seed))
    assert outcome.fine, f"{outcome.plan}: {outcome.findings}"
    assert sum(verdict.rows for _, verdict in outcome.verdicts) > 0


@pytest.mark.slow
def test_these_runs_have_all_servers_and_kinds_of_faults() -> None:
    plans = [drawn(seed) for seed in SEEDS]
    assert {fault.kind for plan in plans for fault in plan.faults} == set(FAULTS)
    assert {SERVER_OF.get(plan.source) for plan in plans} >= set(SERVERS)
    assert {SERVER_OF.get(sink) for plan in plans for sink in plan.sinks} >= set(SERVERS) - {"mqtt"}
