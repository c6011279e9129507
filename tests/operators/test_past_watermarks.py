"""A record that was late for a key stays late, even if its subtask is restored together with one that was behind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from workbench.elements import Records
from workbench.operators.aggregates import aggregations as agg
from workbench.operators.contract.base import Operator, OperatorContext, Output, Snapshot
from workbench.operators.snapshots.past_watermarks import PastWatermarks
from workbench.operators.windows.aggregate import WindowAggregate
from workbench.runtime.storage.encoding import decode, encode
from workbench.windows import Window
from workbench.windows.session import Session
from workbench.windows.sliding import Sliding
from workbench.windows.tumbling import Tumbling

SCHEMA = pa.schema([("k", pa.int64())])
BEHIND, AHEAD = 6, 5
"""Keys of subtask 0 and of subtask 1, of two."""


class Fired(Output):
    """Keeps the windows that fire: the key and the number of records."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int]] = []

    def emit(self, records: Records) -> None:
        self.rows += [(row["k"], row["n"]) for row in records.batch.to_pylist()]

    def emit_watermark(self, watermark_us: int) -> None:
        """A session's; not what this is about."""

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)


def opened(window: Window, subtask: int, parallelism: int) -> tuple[Operator, OperatorContext]:
    operator = WindowAggregate(("k",), window, (("n", agg.count()),)).create([SCHEMA])
    context = OperatorContext(subtask=subtask, parallelism=parallelism)
    operator.open(context)
    return operator, context


def record(key: int, time: int) -> Records:
    return Records(pa.record_batch([[key]], schema=SCHEMA), np.array([time]))


def saved(operators: Sequence[Operator]) -> list[Snapshot]:
    """As a checkpoint has them."""
    return [decode(encode({"w": operator.snapshot(1)}).join(), "w")["w"] for operator in operators]


@pytest.mark.parametrize("window", [Tumbling(10), Sliding(10, 10), Session(10)], ids=["tumbling", "sliding", "session"])
@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("restores", [1, 2])
def test_a_window_that_has_fired_does_not_open_again(window: Window, parallelism: int, restores: int) -> None:
    out = Fired()
    former = [opened(window, subtask, 2)[0] for subtask in range(2)]
    for key, operator in zip((BEHIND, AHEAD), former, strict=True):
        operator.process(record(key, 1), 0, out)
    former[1].on_watermark(50, out)
    assert out.rows == [(AHEAD, 1)]
    operators = former
    for _ in range(restores):
        snapshots = saved(operators)
        pairs = [opened(window, subtask, parallelism) for subtask in range(parallelism)]
        operators = [operator for operator, _ in pairs]
        for operator in operators:
            operator.restore(snapshots)
    owner = {key: 0 if key == BEHIND else parallelism - 1 for key in (BEHIND, AHEAD)}
    for key in (BEHIND, AHEAD):
        operators[owner[key]].process(record(key, 2), 0, out)
    late = [context.counters.numLateRecordsDropped for _, context in pairs]
    assert (sum(late), late[owner[AHEAD]]) == (1, 1), "of the key that was ahead"
    for operator in operators:
        operator.on_watermark(100, out)
    assert out.rows == [(AHEAD, 1), (BEHIND, 2)]


def test_what_was_ahead_is_forgotten_once_the_rest_has_caught_up() -> None:
    past = PastWatermarks(OperatorContext())
    assert past.restore([{"watermarks": [[0, 64, 10]]}, {"watermarks": [[64, 100, 30], [100, 128, 20]]}]) == 10
    both = Records(pa.record_batch([[BEHIND, AHEAD]], schema=SCHEMA))
    assert len(past.parts(both, ["k"], 10)) == 2
    assert past.snapshot(10) == [[0, 64, 10], [64, 100, 30], [100, 128, 20]]
    assert past.snapshot(20) == [[0, 64, 20], [64, 100, 30], [100, 128, 20]]
    assert past.parts(both, ["k"], 30) == [(both, 30)]
    assert past.snapshot(31) == [[0, 128, 31]]
