"""The time of expressions on rows without a result, relative to rows that have one."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from statistics import median
from typing import Any

import pyarrow as pa

from workbench.expressions import compile_expression

ROWS = 10_000
SHARES = (0.0, 0.0001, 0.01, 0.11, 1.0)
"""Of the rows that are odd."""
PAIRS = 9
_TURN_S = 0.004
_DECIMAL = pa.decimal128(20, 2)
_random = random.Random(1)


@dataclass(frozen=True, slots=True)
class Odd:
    """One expression.

    Attributes:
        text: the expression.
        odd: what is odd in some rows.
        columns: by name, the type, and functions that make a plain and an odd value.
    """

    text: str
    odd: str
    columns: dict[str, tuple[pa.DataType, Callable[[], Any], Callable[[], Any]]]

    def batch(self, share: float, rows: int) -> tuple[pa.RecordBatch, list[bool]]:
        """Rows, and which of them are odd, a share of all."""
        is_odd = [_random.random() < share for _ in range(rows)]
        arrays = [
            pa.array([(plain, odd)[each]() for each in is_odd], type_) for type_, plain, odd in self.columns.values()
        ]
        return pa.RecordBatch.from_arrays(arrays, list(self.columns)), is_odd


@dataclass(frozen=True, slots=True)
class Cost:
    """What one expression costs.

    Attributes:
        text, odd: see `Odd`.
        rows_per_cpu_s: without an odd row.
        ratios: for each of SHARES, the time relative to that without an odd row.
        exact: the null rows of each result were the odd ones.
    """

    text: str
    odd: str
    rows_per_cpu_s: float
    ratios: tuple[float, ...]
    exact: bool

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"peer": "workbench", "workload": "odd-rows", **asdict(self), "shares": SHARES})

    def describe(self) -> str:
        """One line."""
        ratios = ", ".join(f"{share:.2%} {ratio:.2f}" for share, ratio in zip(SHARES, self.ratios, strict=True))
        wrong = "" if self.exact else "; WRONG"
        return f"{self.text} ({self.odd}): {self.rows_per_cpu_s / 1e6:.1f} M rows per CPU second; {ratios}{wrong}"


def _small() -> int:
    return _random.randint(-1_000, 1_000)


def _day() -> str:
    return f"2024-{_random.randint(1, 12):02}-{_random.randint(1, 28):02}"


def _clock() -> str:
    return f"10:{_random.randint(10, 59)}:{_random.randint(10, 59)}.{_random.randint(100, 999)}"


_TOP = 2**63 - 1
ODD = (
    Odd("i + 1", "overflow", {"i": (pa.int32(), _small, lambda: 2**31 - 1)}),
    Odd("i * i", "overflow", {"i": (pa.int32(), _small, lambda: 2**31 - 1)}),
    Odd("l * 2", "overflow", {"l": (pa.int64(), _small, lambda: _TOP)}),
    Odd("l * l", "overflow", {"l": (pa.int64(), _small, lambda: _TOP)}),
    Odd("abs(l)", "overflow", {"l": (pa.int64(), _small, lambda: -_TOP - 1)}),
    Odd(
        "a DIV b", "overflow", {"a": (pa.int64(), _small, lambda: -_TOP - 1), "b": (pa.int64(), lambda: 7, lambda: -1)}
    ),
    Odd("a DIV b", "division by zero", {"a": (pa.int64(), _small, _small), "b": (pa.int64(), lambda: 7, lambda: 0)}),
    Odd("CAST(l AS INT)", "overflow", {"l": (pa.int64(), _small, lambda: _TOP)}),
    Odd("CAST(d AS INT)", "overflow", {"d": (_DECIMAL, lambda: Decimal(_small()), lambda: Decimal(10**15))}),
    Odd("CAST(d AS DECIMAL(8, 2))", "overflow", {"d": (_DECIMAL, lambda: Decimal(_small()), lambda: Decimal(10**15))}),
    Odd("CAST(s AS INT)", "no number", {"s": (pa.string(), lambda: str(_small()), lambda: "x1")}),
    Odd("CAST(s AS INT)", "30 digits", {"s": (pa.string(), lambda: str(_small()), lambda: "9" * 30)}),
    Odd("CAST(s AS DATE)", "no such day", {"s": (pa.string(), _day, lambda: "2024-02-30")}),
    Odd(
        "CAST(s AS TIMESTAMP)",
        "no such day, texts all differ",
        {"s": (pa.string(), lambda: f"{_day()} {_clock()}", lambda: f"2024-02-30 {_clock()}")},
    ),
    Odd("t + INTERVAL '1' SECOND", "overflow", {"t": (pa.timestamp("us"), _small, lambda: _TOP)}),
)


def costs(*, rows: int = ROWS, pairs: int = PAIRS) -> Iterator[Cost]:
    """Measure each expression, with each share of odd rows in turn.

    Args:
        rows: of a batch.
        pairs: number of turns, of which the median counts.
    """
    for odd in ODD:
        batches, are_odd = zip(*(odd.batch(share, rows) for share in SHARES), strict=True)
        # A compiled expression remembers whether rows overflowed, so each share has one of its own.
        runs = [compile_expression(f"{odd.text}{' ' * at}", batches[0].schema) for at in range(len(SHARES))]
        nulls = [run(batch).is_null().to_pylist() for run, batch in zip(runs, batches, strict=True)]
        begun = time.process_time()
        runs[0](batches[0])
        times = max(1, int(_TURN_S / max(time.process_time() - begun, 1e-5)))
        spent: list[list[float]] = [[] for _ in SHARES]
        for _ in range(pairs):
            for taken, run, batch in zip(spent, runs, batches, strict=True):
                begun = time.process_time()
                for _ in range(times):
                    run(batch)
                taken.append((time.process_time() - begun) / times)
        plain, *_ = typical = [median(taken) for taken in spent]
        yield Cost(
            odd.text, odd.odd, rows / plain, tuple(round(each / plain, 2) for each in typical), nulls == list(are_odd)
        )
