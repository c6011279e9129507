"""Reads from a reader by hand, as a task would."""

from __future__ import annotations

from typing import Any

from waiting import until

from workbench.connectors.contract.base import Exhausted, Fetched, WaitUntil


def read(reader: Any, count: int, at_once: int = 100) -> list[int]:
    """So many records; the reader's clock advances while it waits."""
    found: list[int] = []

    def complete() -> bool:
        polled = reader.poll(at_once)
        if isinstance(polled, Fetched):
            found.extend(polled.records.batch.column("n").to_pylist())
        elif isinstance(polled, WaitUntil):
            reader._clock.advance_to(max(reader._clock.now_us(), polled.time_us or 0))
        return len(found) >= count or isinstance(polled, Exhausted)

    until(complete)
    return found
