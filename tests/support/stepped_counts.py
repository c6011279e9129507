"""A small job under an architecture of fault tolerance, which a test steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

import workbench as wb
from workbench.api.job.job import Job

Starts = Callable[[object], Job]


def starts(name: str, **settings: Any) -> Starts:
    """Starts a count by key of a hundred records a second under an architecture, every time under this name."""
    return partial(start_counts, name, buffer_size=1, **settings)


def start_counts(name: str, architecture: object, **settings: Any) -> Job:
    """Start a count by key of a hundred records a second."""
    stream = wb.Stream.from_table(pa.table({"k": list("abac") * 15}), rate=100)
    counts = stream.key_by("k").aggregate(n=wb.count()).sink_to(wb.TableSink("counts", upsert_key="k"))
    return counts.run(name, driver="stepping", fault_tolerance=architecture, buffer_timeout="0ms", **settings)
