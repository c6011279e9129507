"""The benchmark Nexmark: its events by the public definition, and the comparison with DuckDB."""

from __future__ import annotations

import json

import numpy as np
import pytest

from workbench.lab.bench.nexmark import measuring as nexmark
from workbench.lab.bench.nexmark.answers import ANSWERS
from workbench.lab.bench.nexmark.events import BASE_US, events
from workbench.lab.bench.nexmark.queries import Q


def test_events_have_the_public_shares_and_hot_keys() -> None:
    tables = events(50_000)
    assert [tables[name].num_rows for name in ("person", "auction", "bid")] == [1_000, 3_000, 46_000]
    assert tables["auction"]["id"].to_pylist() == list(range(1_000, 4_000))
    auctions = tables["bid"]["auction"].to_numpy()
    hot = (auctions - 1_000) % 100 == 0
    assert 0.48 < hot.mean() < 0.53
    times = tables["bid"]["dateTime"].cast("int64").to_numpy()
    assert times.min() >= BASE_US
    assert (np.diff(times) > 0).all()
    assert tables["bid"].equals(events(50_000)["bid"])
    assert not tables["bid"].equals(events(50_000, seed=2)["bid"])


def test_every_query_has_its_answer() -> None:
    assert ANSWERS.keys() == Q.keys()


@pytest.mark.parametrize("name", ["q3", "q4", "q9", "q15", "q18", "q19", "q20", "q21", "q22"])
def test_the_rows_of_a_query_are_those_of_duckdb(name: str) -> None:
    rows, exact = nexmark.compared(name, events(20_000))
    assert rows > 0
    assert exact


def test_wrong_rows_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ANSWERS, "q2", ANSWERS["q2"].replace("123", "124"))
    assert nexmark.compared("q2", events(20_000))[1] is False


def test_a_line_says_what_was_measured() -> None:
    line = json.loads(nexmark.Measured("q5", 10, 2, 30, 20, 7, True).to_json())
    assert line["config"] == {"query": "q5", "p": 2}
    assert line["eps_cpu_s"] == 20
