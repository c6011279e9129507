"""What a reader hears of the checkpoints and savepoints that can be restored."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from workbench.connectors.contract.base import SourceReader
from workbench.elements import CheckpointBarrier
from workbench.runtime.barriers.kept_positions import KeptPositions
from workbench.runtime.barriers.snapshots import SnapshotTaken


class Hearing(SourceReader):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.durables: list[Any] = []
        self.wants = False

    @property
    def wants_checkpoint(self) -> bool:
        return self.wants

    def durable(self, snapshot: Any) -> None:
        self.durables.append(snapshot)

    def complete(self, snapshot: Any) -> None:
        self.heard.append(snapshot["at"])

    def keep(self, checkpoint_id: int) -> None:
        self.heard.append(("keep", checkpoint_id))

    def give_up(self, checkpoint_id: int) -> None:
        self.heard.append(("give up", checkpoint_id))


def test_savepoints_are_kept_beside_the_last_checkpoints_until_they_fail() -> None:
    reader = Hearing()
    positions = KeptPositions(reader, "source")

    def taken(number: int, *, savepoint: bool = False) -> None:
        barrier = CheckpointBarrier(number, 0, "exactly-once", savepoint=savepoint)
        positions.taken(SnapshotTaken("source[0]", barrier, {"source": {"at": number}}, 0, 0, 0, 0))

    for number in (1, 2):
        taken(number)
        positions.completed(number, 2)
    assert reader.heard == [1]
    taken(3, savepoint=True)
    positions.completed(3, 2)
    positions.aborted(3)  # complete by then
    taken(4, savepoint=True)
    positions.aborted(4)
    positions.aborted(4)
    taken(5)
    positions.aborted(5)
    taken(6)
    positions.completed(6, 2)
    assert reader.heard == [1, ("keep", 3), 1, ("keep", 4), ("give up", 4), 2]


def test_a_reader_hears_of_each_checkpoint_that_is_complete_and_asks_for_one_at_a_time() -> None:
    reader = Hearing()
    positions = KeptPositions(reader, "source")
    reported: list[SnapshotTaken] = []
    report = positions.noting(reported.append)
    assert not positions.asks
    reader.wants = True
    assert [positions.asks, positions.asks] == [True, False]
    for number in (1, 2, 3):
        states: Any = {"source": {"at": number, "rows": pa.table({"n": [number]})}}
        report(SnapshotTaken("source[0]", CheckpointBarrier(number, 0, "exactly-once"), states, 0, 0, 0, 0))
    assert [taken.barrier.checkpoint_id for taken in reported] == [1, 2, 3]
    positions.aborted(1)
    assert [positions.asks, positions.asks] == [True, False]
    positions.completed(2, 2)
    assert (reader.durables, reader.heard) == ([{"at": 2}], [])  # without tables, and before an older one is given up
    assert positions.asks
    positions.completed(3, 2)
    assert (reader.durables[1:], reader.heard) == ([{"at": 3}], [2])
