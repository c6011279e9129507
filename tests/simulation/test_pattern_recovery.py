"""Patterns under crashes, restarts, rescaling and tuning: matches and time-outs are those of a search (I6, I7)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import workbench as wb
from workbench.lab import TOPOLOGIES, simulate
from workbench.lab.pipelines.topologies import Outputs, Trial

WITHIN_US = 60
FOUND: list[int] = []
"""How many matches each run was to find."""


def patterns(chance: Random, folder: Path) -> Trial:
    rows = [(chance.choice("abc"), at) for at in range(chance.randint(10, 40))]
    keys, numbers = zip(*rows, strict=True)
    times = [10 * at for at in numbers]
    order = sorted(range(len(rows)), key=lambda at: times[at] + chance.randint(0, 30))
    table = pa.table(
        {
            "key": [keys[at] for at in order],
            "n": [numbers[at] for at in order],
            "t": pa.array([times[at] for at in order], pa.timestamp("us")),
        }
    )
    rate = chance.choice((None, 2_000.0))
    stream = wb.Stream.from_table(table, event_time="t", out_of_orderness="40us", rate=rate)
    second = chance.choice(("n % 3 = 1", "n % 3 = 1 AND a.n % 3 = 0"))  # the other is asked of each partial match
    pattern = wb.pattern("a", "n % 3 = 0").followed_by("b", second).within(f"{WITHIN_US}us")
    made = stream.key_by("key").match(pattern, first="a.n", last="b.n")
    pipeline = made.sink_to(wb.TableSink("found"))
    pipeline += made.side_output("timed_out").sink_to(wb.TableSink("timed_out"))

    found, late = Counter[tuple[object, ...]](), Counter[tuple[object, ...]]()
    for key in "abc":
        own = [n for k, n in rows if k == key]
        for at, n in enumerate(own):
            if n % 3 == 0:
                ends = (m for m in own[at + 1 :] if m % 3 == 1 and 10 * (m - n) < WITHIN_US)
                last = next(ends, None)
                (late if last is None else found)[(key, n, last)] += 1
    FOUND.append(found.total())

    def verify(outputs: Outputs) -> list[str]:
        got, wanted = (outputs["found"], outputs["timed_out"]), (found, late)
        return [] if got == wanted else [f"found {got}, not {wanted}"]

    return Trial(pipeline, verify)


@pytest.fixture(autouse=True)
def pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOPOLOGIES, "patterns", patterns)


def test_partial_matches_survive_whatever_happens() -> None:
    results = [simulate(seed, pipelines=["patterns"]) for seed in range(40)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(FOUND) > 50
    assert sum(result.restarts + result.processes - 1 for result in results) > 0
