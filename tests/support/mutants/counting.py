"""Bugs in what operators count, and in where they say that records stand."""

from __future__ import annotations

import pytest

from workbench.connectors.contract import block_reader
from workbench.operators.contract.base import Counters
from workbench.runtime.exchange.chain import Link

Patch = pytest.MonkeyPatch


def late_records_are_not_counted(patch: Patch) -> None:
    patch.setattr(Counters, "numLateRecordsDropped", property(lambda self: 0, lambda self, value: None))


def errors_are_not_counted(patch: Patch) -> None:
    patch.setattr(Counters, "numRecordsInErrors", property(lambda self: 0, lambda self, value: None))


def a_chained_operator_misses_a_record(patch: Patch) -> None:
    """Counted as sent, and not as received: only counters can tell where it was."""

    def receive(self: Link, records: object, port: int = 0) -> None:
        rows = records.batch.num_rows  # type: ignore[attr-defined]
        self.counters.numRecordsIn += rows - (rows > 2)
        self.operator.process(records, port, self)  # type: ignore[arg-type]

    patch.setattr(Link, "receive", receive)


def positions_begin_anew_with_each_read(patch: Patch) -> None:
    counted = block_reader.counted
    patch.setattr(block_reader, "counted", lambda place, first: counted(place, 0))
