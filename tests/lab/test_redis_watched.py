"""E6 in Redis: another client observes the counts, which are checked and drawn."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from workbench.dashboard.measured.counts import counts_figures
from workbench.lab.bench.works.connectors import redis_watched


@pytest.mark.slow
def test_the_counts_follow_the_source_and_are_exact(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    watched = redis_watched.watch(rate=20_000, seconds=3.0)
    assert watched.exact
    assert watched.stored == sorted(watched.stored)
    assert all(stored <= emitted for stored, emitted in zip(watched.stored, watched.emitted, strict=True))
    assert watched.stored[-1] > 0
    assert all(0 <= age <= round(at, 3) for age, at in zip(watched.ages, watched.seconds, strict=True))
    assert watched.describe().endswith("exact in the end")
    assert json.loads(watched.to_json())["watched"]["rate"] == 20_000
    page = redis_watched.save(watched, tmp_path / "e6.html").read_text()
    assert "How old the counts in Redis are" in page


def test_the_age_of_counts_is_drawn_beside_them() -> None:
    views, age = counts_figures(1_000, [0.0, 1.0, 2.0], [0, 300, 600], [0, 0, 300], [0.0, 1.0, 1.0])
    assert views.title.text == "Views of ads so far, at 1,000 events/s"
    data = views.renderers[1].data_source.data
    assert (data["stored"], data["age"]) == ([0, 0, 300], [0.0, 1.0, 1.0])
    assert age.x_range is views.x_range


def test_counts_without_a_look_have_no_age() -> None:
    told = redis_watched.Watched(10, True, [], [], [], [])
    assert told.describe() == "at 10 events/s another client sees counts 0.0 s old, at most 0.0 s; exact in the end"
