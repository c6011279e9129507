"""Random pipelines under each fault-tolerance architecture, with faults, give what its guarantee allows.

Exactly once: the rows of DuckDB. At least once: never fewer. At most once: never more. A failure names its seed and
tells what was drawn. ``make pipelines`` draws 400 for each.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from pipelines.architectures import check_under

from workbench.compiled import warm_up
from workbench.runtime.barriers.architectures import ARCHITECTURES

SEEDS = range(int(os.environ.get("WORKBENCH_ARCHITECTURE_PIPELINES", "12")))


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_a_pipeline_keeps_the_guarantee_of_its_architecture(architecture: str) -> None:
    warm_up()
    outcomes = Counter(check_under(architecture, seed) for seed in SEEDS)
    assert outcomes["equal"] >= len(SEEDS) // 3, outcomes
    if ARCHITECTURES[architecture]().guarantee == "exactly-once":
        assert set(outcomes) <= {"equal", "refused"}
