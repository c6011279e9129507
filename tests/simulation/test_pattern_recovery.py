"""Patterns under crashes, restarts, rescaling and tuning: matches and time-outs are those of a search (I6, I7)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import workbench as wb
from workbench.lab import TOPOLOGIES, simulate
from workbench.lab.pipelines.topologies import Outputs, Trial, _source

WITHIN_US = 60
FOUND: list[int] = []
"""How many matches each run was to find."""


def patterns(chance: Random, folder: Path) -> Trial:
    stream, rows = _source(chance)
    pattern = wb.pattern("a", "n % 3 = 0").followed_by("b", "n % 3 = 1").within(f"{WITHIN_US}us")
    if chance.random() < 0.5:  # the same, but asked of each partial match
        pattern = wb.pattern("a", "n % 3 = 0").followed_by("b", "n % 3 = 1 AND a.n % 3 = 0").within(f"{WITHIN_US}us")
    made = stream.key_by("key").match(pattern, first="a.n", last="b.n")
    pipeline = made.sink_to(wb.TableSink("found"))
    pipeline += made.side_output("timed_out").sink_to(wb.TableSink("timed_out"))

    found, late = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    tied = set()
    for key in {row.key for row in rows}:
        own = sorted((row.t, row.n) for row in rows if row.key == key and row.t is not None)
        if len({t for t, _ in own}) < len(own):
            tied.add(key)  # which of two rows of one time comes first depends on the run
            continue
        for at, (t, n) in enumerate(own):
            if n % 3 == 0:
                ends = (m for u, m in own[at + 1 :] if m % 3 == 1 and u - t < WITHIN_US)
                last = next(ends, None)
                (late if last is None else found)[(key, n, last)] += 1

    FOUND.append(found.total())

    def verify(outputs: Outputs) -> list[str]:
        got = {
            name: Counter({row: count for row, count in outputs[name].items() if row[0] not in tied})
            for name in ("found", "timed_out")
        }
        wanted = {"found": found, "timed_out": late}
        return [] if got == wanted else [f"found {got}, not {wanted}; without {tied}"]

    return Trial(pipeline, verify)


@pytest.fixture(autouse=True)
def pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOPOLOGIES, "patterns", patterns)


def test_partial_matches_survive_whatever_happens() -> None:
    results = [simulate(seed, pipelines=["patterns"]) for seed in range(25)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(FOUND) > 50
    assert sum(result.restarts + result.processes - 1 for result in results) > 0
