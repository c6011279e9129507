"""External input gives the right result or a WorkbenchError, soon and in bounded memory, and touches only what it was
given.

Some hundred inputs run with every test; ``make fuzz`` tries 50,000, and 500 more of each format of messages.
``python -m fuzz FORMAT SEED``, in this folder, tries one of them anew.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

import pytest
from fuzz.formats import FORMATS
from fuzz.formats.messages import Messages
from fuzz.runner import UNMADE, Input, Report, fuzz, inputs

INPUTS = int(os.environ.get("WORKBENCH_FUZZ", "250"))
MESSAGES = 500 if "WORKBENCH_FUZZ" in os.environ else 30
"""Inputs of each format of messages."""
SEED = int(os.environ.get("WORKBENCH_SEED", "1"))
PROCESSES = 2
DEADLINE_S = 20.0

HOLES = {
    "replay_paths_are_joined_unchecked": ("replay-log", "touched", 1),
    "recorded_types_are_not_checked": ("recording", "raised", 31),
    "recorded_lines_are_unbounded": ("recording", "memory", 1),
    "depth_is_unchecked": ("replay-log", "raised", 41),
}
"""Planted holes: the format that lets each be seen, as what, and the first of ten seeds of which one finds it."""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="what an input touches and takes is seen in Linux alone"
)


def told(report: Report) -> str:
    return "\n".join(str(outcome) for outcome in report.found.values())


@pytest.mark.slow
def test_whatever_is_read_gives_the_right_result_or_an_error_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    begun = perf_counter()
    shares = {name: one.share for name, one in FORMATS.items()}
    report = fuzz(inputs(shares, INPUTS, SEED), processes=PROCESSES, deadline_s=DEADLINE_S)
    with capsys.disabled():
        if "WORKBENCH_FUZZ" in os.environ:
            sys.stdout.write(f"\n{report.table()}\n{INPUTS:,} inputs, seed {SEED}: {perf_counter() - begun:,.0f} s\n")
    assert not report.found, told(report)
    assert sum(count.kinds[UNMADE] for count in report.counts.values()) <= INPUTS / 100


@pytest.mark.slow
def test_a_damaged_message_of_any_format_is_a_dead_letter_and_the_others_are_rows() -> None:
    """Or, with ``on_error="fail"``, a SourceError: each input is read in both ways."""
    names = [name for name, one in FORMATS.items() if issubclass(one, Messages)]
    tried = [Input(name, seed) for seed in range(SEED, SEED + MESSAGES) for name in names]
    report = fuzz(tried, processes=PROCESSES, deadline_s=DEADLINE_S)
    assert not report.found, told(report)
    assert {name: report.counts[name].inputs for name in names} == dict.fromkeys(names, MESSAGES)
    assert len(names) == 5


@pytest.mark.slow
@pytest.mark.parametrize("hole", HOLES)
def test_a_planted_hole_is_found(hole: str) -> None:
    name, kind, first = HOLES[hole]
    tried = [Input(name, seed) for seed in range(first, first + 10)]
    report = fuzz(tried, processes=1, deadline_s=DEADLINE_S, hole=hole)
    assert kind in {outcome.kind for outcome in report.found.values()}, told(report)
