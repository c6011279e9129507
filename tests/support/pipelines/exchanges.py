"""How records are spread over the next operator's subtasks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from .draft import Draft
from .drawn import Drawn
from .records import filtered, mapped
from .wording import condition


def exchanged(draft: Draft, drawn: Drawn) -> list[Drawn]:
    if draft.sometimes(0.2):
        return [_broadcast(draft, drawn)]
    streams = {
        "rebalance": drawn.stream.rebalance,
        "shuffle": drawn.stream.shuffle,
        "local rebalance": partial(drawn.stream.rebalance, local=True),
        "partition_by an expression": lambda: drawn.stream.partition_by(f"coalesce({drawn.of('int')[0]}, 1)"),
        "partition_by a function": lambda: drawn.stream.partition_by(_places),
    }
    kind = draft.chance.choice([name for name in streams if drawn.of("int") or "expression" not in name])
    draft.story.append(f"   {kind} of {drawn.table}")
    made = replace(drawn, stream=streams[kind]())
    if draft.sometimes(0.3):
        return [made]
    return mapped(draft, made) or filtered(draft, made)


def _places(batch: pa.RecordBatch) -> np.ndarray:
    return np.arange(len(batch)) * 7 - 3


def _broadcast(draft: Draft, drawn: Drawn) -> Drawn:
    """Every record goes to each of a known number of subtasks."""
    copies, (spark, duck) = draft.chance.randint(1, 3), condition(draft, drawn)
    stream = drawn.stream.broadcast().filter(spark).with_parallelism(copies)
    query = f"SELECT n.* FROM {drawn.table} n, range({copies}) WHERE {duck}"
    return draft.made(drawn, stream, query, f"broadcast to {copies}, filter {spark},", ordered=False)
