"""Nexmark's pattern queries in their public texts, against a backtracking search."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from pattern_search import Bound, searched

import workbench as wb
from workbench.lab.bench.nexmark.pattern_queries import Q0, Q1, Q2, Q3
from workbench.patterns.reading import read_pattern

AUCTIONS, BIDDERS = (1, 2), (7, 8)


def bids() -> dict[tuple[int, int], list[int]]:
    """Prices by auction and bidder; the n-th bid of each is at second n."""
    random = Random(23)
    return {
        (auction, bidder): [random.choice([20, 60, 120, 5_000, 12_000, 20_000]) for _ in range(60)]
        for auction in AUCTIONS
        for bidder in BIDDERS
    }


def rows(query: str) -> list[tuple[object, ...]]:
    columns: dict[str, list[int]] = {"auction": [], "bidder": [], "price": [], "dateTime": []}
    for (auction, bidder), prices in bids().items():
        for second, price in enumerate(prices):
            for name, value in zip(columns, (auction, bidder, price, second * 1_000_000), strict=True):
                columns[name].append(value)
    table = pa.table({**columns, "dateTime": pa.array(columns["dateTime"], pa.timestamp("us"))})
    bid = wb.Stream.from_table(table, event_time="dateTime", out_of_orderness="10min")
    result = wb.sql(query, bid=bid).collect()
    return sorted(
        tuple(value.minute * 60 + value.second if hasattr(value, "minute") else value for value in row.values())
        for row in result.to_pylist()
    )


def _average(name: str, at: int, bound: Bound, values: list[int]) -> bool:
    own = [values[row] for variable, row in bound if variable == "A"] + [values[at]]
    return name == "B" or sum(own) / len(own) < 10_000


def _drop(name: str, at: int, bound: Bound, values: list[int]) -> bool:
    first = values[bound[0][1]] if bound else 0
    return {"A": True, "B": values[at] > first - 50, "C": values[at] < first - 50}[name]


@pytest.mark.parametrize(("query", "skip"), [(Q1, "past_last"), (Q2, "next_row")])
def test_periods_of_a_low_average_price(query: str, skip: str) -> None:
    expected = []
    for key, prices in bids().items():
        for match in searched(read_pattern("A+ B"), prices, _average, skip, 0):  # type: ignore[arg-type]
            own = [row for variable, row in match if variable == "A"]
            expected.append((*key, own[0], own[-1], sum(prices[row] for row in own) / len(own)))
    assert rows(query) == sorted(expected)
    assert len(expected) > 5


def test_price_drops_within_five_seconds() -> None:
    expected = []
    for key, prices in bids().items():
        for match in searched(read_pattern("A B* C"), prices, _drop, "past_last", 5):
            first, last = match[0][1], match[-1][1]
            expected.append((*key, last, prices[first] - prices[last]))
    assert rows(Q3) == sorted(expected)
    assert len(expected) > 20


def test_periods_of_a_falling_price() -> None:
    expected = []
    for key, prices in bids().items():
        start = 0
        while start < len(prices):
            # A rise over the price before the last fall ends a period; the pattern gives rows back until it fits.
            bottom = start
            while bottom + 1 < len(prices) and prices[bottom + 1] < prices[bottom]:
                bottom += 1
            found = next(
                (
                    last
                    for last in range(bottom, start, -1)
                    if last - 1 > start and last + 1 < len(prices) and prices[last + 1] > prices[last - 1]
                ),
                None,
            )
            if found is None:
                start += 1
                continue
            expected.append((*key, start, found, found + 1))
            start = found + 1
    assert rows(Q0) == sorted(expected)
    assert len(expected) > 5
