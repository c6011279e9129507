"""Patterns: the pattern queries of Nexmark, and a pattern compared with plain Python, record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import workbench as wb
from workbench.lab.bench.measuring.measure import Meter, Result
from workbench.lab.bench.measuring.shared_tables import SharedTable, in_milliseconds, share
from workbench.lab.bench.nexmark.events import events
from workbench.lab.bench.nexmark.pattern_queries import PATTERNS

EVENTS = 300_000
WORK = "patterns"
_LOW, _HIGH, _WITHIN_S, _DISORDER_S = 10_000, 10_000_000, 10, 4
_LOW_MEAN = "A AS AVG(A.price) < 10000"
_GREEDY = _LOW_MEAN, f"{_LOW_MEAN}, B AS SUM(A.price) + B.price >= 10000 * (COUNT(A.price) + 1)"
"""A greedy loop of Flink gives no row back to what follows it: B is the first row that A does not take."""
_CHECKED = 20_000
"""Events of the runs at parallelism 1 and 2, whose matches must be equal."""


def patterns(parallelism: int = 1, count: int = EVENTS) -> Iterator[Result]:
    """Run every pattern, and the one in plain Python.

    A query is checked if parallelism 1 and 2 give the same matches; the tests compare them with a backtracking search.
    The pattern ``low, high`` is checked if it finds the matches of plain Python.

    Args:
        parallelism: of the measured runs.
        count: of events.
    """
    bids, some = events(count)["bid"], events(min(count, _CHECKED))["bid"]
    for name, text in PATTERNS.items():
        exact = _matches(wb.sql(text, bid=_stream(some)), 1) == _matches(wb.sql(text, bid=_stream(some)), 2)
        yield _measured(name, partial(wb.sql, text, bid=_stream(bids)), parallelism, count, exact)
    with Meter() as meter:
        found = in_python(bids)
    exact = _matches(low_high(_stream(bids)), parallelism) == sorted(found)
    yield _measured("low, high", partial(low_high, _stream(bids)), parallelism, count, exact)
    yield replace(meter.result(WORK, {"query": "low, high"}, count, True), peer="python")


def write(folder: Path, count: int = EVENTS) -> None:
    """Write the bids, the queries and their matches for other systems."""
    bids = in_milliseconds(events(count)["bid"])
    texts = {name: text.strip().rstrip(";") for name, text in PATTERNS.items()}
    answers = {
        name: _with_whole_means(_table(wb.sql(text.replace(*_GREEDY), bid=_stream(bids))))
        for name, text in texts.items()
    }
    share(
        folder,
        {"bid": SharedTable(bids, "dateTime", _DISORDER_S)},
        texts,
        dict.fromkeys(texts, count),
        answers,
    )


def _with_whole_means(rows: pa.Table) -> pa.Table:
    """The rows of a query in Flink, where the mean of integers is an integer."""
    for at, column in enumerate(rows.schema):
        if pa.types.is_floating(column.type):
            rows = rows.set_column(at, column.name, pc.floor(rows[column.name]).cast(pa.int64()))
    return rows


def low_high(bids: wb.Stream) -> wb.Stream:
    """Each low bid with the first high one of its bidder within ten seconds."""
    low = wb.pattern("low", f"price < {_LOW}")
    pattern = low.followed_by("high", f"price > {_HIGH}").within(f"{_WITHIN_S}s")
    return bids.key_by("bidder").match(pattern, low="low.price", high="high.price")


def in_python(bids: pa.Table) -> list[tuple[int, int, int]]:
    """The same from bids in the order of their event time: bidder, low price and high price."""
    waiting: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    found = []
    columns = (bids["bidder"], bids["price"], bids["dateTime"].cast(pa.int64()))
    for bidder, price, at in zip(*(column.to_pylist() for column in columns), strict=True):
        if price < _LOW:
            waiting[bidder].append((price, at))
        elif price > _HIGH:
            for low, since in waiting.pop(bidder, ()):
                if at - since < _WITHIN_S * 1_000_000:
                    found.append((bidder, low, price))
    return found


def _stream(bids: pa.Table) -> wb.Stream:
    return wb.Stream.from_table(bids, event_time="dateTime", out_of_orderness=f"{_DISORDER_S}s")


def _table(stream: wb.Stream, parallelism: int = 1) -> pa.Table:
    job = stream.sink_to(wb.TableSink("rows")).run("patterns", parallelism=parallelism)
    job.wait()
    return job.table("rows")


def _matches(stream: wb.Stream, parallelism: int) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in _table(stream, parallelism).to_pylist())


def _measured(name: str, made: Callable[[], wb.Stream], parallelism: int, count: int, exact: bool) -> Result:
    """The second of two runs."""
    for _ in range(2):
        stream = made()
        with Meter() as meter:
            stream.sink_to(wb.DiscardSink()).run(f"patterns-{name[:2]}", parallelism=parallelism).wait()
    return meter.result(WORK, {"query": name, "p": parallelism}, count, exact)
