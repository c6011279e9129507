"""The invariants of transactions find planted bugs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from workbench.lab.simulation.search import Search
from workbench.lab.simulation.simulation import Simulation, run_scenario
from workbench.runtime.transactions import sql_store
from workbench.runtime.transactions.bloom import BloomFilter
from workbench.runtime.transactions.cells import Below, Cell
from workbench.runtime.transactions.delivery import Delivery
from workbench.runtime.transactions.memory_store import MemoryStore
from workbench.runtime.transactions.record_ids import RecordIds
from workbench.runtime.transactions.sql_store import SqlStore
from workbench.runtime.transactions.staged_sink import StagedSink
from workbench.runtime.transactions.store import Row, Write
from workbench.runtime.transactions.transaction import Transaction


def ids_are_not_in_the_write(patch: pytest.MonkeyPatch) -> None:
    """State without its record ids: what comes again takes effect again."""
    apply = Row.apply
    patch.setattr(Row, "apply", lambda self, write: apply(self, replace(write, taken=())))


def state_is_not_in_the_write(patch: pytest.MonkeyPatch) -> None:
    """Record ids without the state: what was processed is lost."""
    apply = Row.apply

    def ids_only(self: Row, write: Write) -> None:
        apply(self, replace(write, states=write.states if not self.states else {}))

    patch.setattr(Row, "apply", ids_only)


def productions_are_not_in_the_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delivery, "productions", lambda self: [])


def productions_are_sent_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    end = Transaction.end

    def early(self: Transaction) -> None:
        for output in self._outputs:
            output.flush()
        staged = [list(delivery.staged) for delivery in self.outbound]
        for delivery in self.outbound:
            for first, element in delivery.staged:
                delivery._send(first, element)
        end(self)
        for delivery, kept in zip(self.outbound, staged, strict=True):
            assert delivery.staged == kept
            delivery.staged.clear()

    patch.setattr(Transaction, "end", early)


def input_is_acknowledged_before_the_write(patch: pytest.MonkeyPatch) -> None:
    took = Transaction.took

    def at_once(self: Transaction, channel: str, first: int, count: int, records: int) -> None:
        took(self, channel, first, count, records)
        for delivery in self.inbound:
            if delivery.key == channel:
                delivery.acknowledge(first + count)

    patch.setattr(Transaction, "took", at_once)


def zombies_may_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryStore, "write", lambda self, write: self._rows[write.range].apply(write))


def the_filter_forgets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BloomFilter, "may_hold", lambda self, ids: np.zeros(len(ids), np.bool_))


def the_store_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    """What the filter may hold is dropped unseen: a false positive loses a record."""
    patch.setattr(RecordIds, "_looked_up", lambda self, channel, first, count, may: [(first, count)][may.any() :])
    patch.setattr(BloomFilter, "may_hold", lambda self, ids: ids % np.uint64(7) == 3)


def nothing_is_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Delivery, "send_again", lambda self: setattr(self, "again", False))


def ids_are_forgotten_while_copies_are_queued(patch: pytest.MonkeyPatch) -> None:
    def take(self: Delivery) -> int:
        first, _ = self.numbers.popleft()
        self.past = self.settled
        return first

    patch.setattr(Delivery, "take", take)


def rows_of_a_checkpoint_are_written_again(patch: pytest.MonkeyPatch) -> None:
    """A sink does not say which rows belong to its checkpoint."""
    take_over = StagedSink.take_over
    patch.setattr(StagedSink, "take_over", lambda self, rows, flushed, latest: take_over(self, rows, {}, 0))


# in a database ---------------------------------------------------------------------------------------------------


def a_database_takes_the_writes_of_zombies(patch: pytest.MonkeyPatch) -> None:
    """A write that does not compare the sequencer: whoever writes has the token of the range."""
    write = SqlStore.write

    def any_token(self: SqlStore, given: Write) -> None:
        write(self, replace(given, token=self.row(given.range).token))

    patch.setattr(SqlStore, "write", any_token)


def a_database_has_state_without_its_record_ids(patch: pytest.MonkeyPatch) -> None:
    changes = sql_store.changes

    def without_ids(write: Write, taken: Iterable[Cell] = ()) -> tuple[list[Below], list[Cell]]:
        deleted, cells = changes(write, taken)
        return deleted, [cell for cell in cells if cell.kind != "taken"]

    patch.setattr(sql_store, "changes", without_ids)


def a_database_has_record_ids_without_their_state(patch: pytest.MonkeyPatch) -> None:
    """What a task has written first stays its state."""
    patch.setattr(sql_store, "_INSERT", sql_store._INSERT.replace("excluded.content", _FIRST_STATE))


_FIRST_STATE = (
    "CASE WHEN workbench_store_cells.kind = 'state' THEN workbench_store_cells.content ELSE excluded.content END"
)

PLANTED = [
    (ids_are_not_in_the_write, "", 0),
    (state_is_not_in_the_write, "", 0),
    (productions_are_not_in_the_write, "", 0),
    (productions_are_sent_before_they_are_durable, "rebalanced", 0),
    (input_is_acknowledged_before_the_write, "rebalanced", 0),
    (zombies_may_write, "", 0),
    (the_filter_forgets, "rebalanced", 0),
    (the_store_is_not_asked, "rebalanced", 0),
    (nothing_is_sent_again, "rebalanced", 0),
    (ids_are_forgotten_while_copies_are_queued, "silent", 300),
    (rows_of_a_checkpoint_are_written_again, "rebalanced", 0),
    (a_database_takes_the_writes_of_zombies, "", 0),
    (a_database_has_state_without_its_record_ids, "", 0),
    (a_database_has_record_ids_without_their_state, "", 0),
]


@pytest.mark.parametrize(("plant", "pipeline", "first"), PLANTED, ids=lambda each: getattr(each, "__name__", ""))
def test_a_planted_bug_is_found(plant: Any, pipeline: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    search = Search(pipeline, (), "transactions")
    assert any(not run_scenario(search.scenario(seed)).ok for seed in range(first, first + 150))


def test_zombies_are_tried_and_fail() -> None:
    tried = 0
    for seed in range(20):
        with Simulation(Search("rebalanced", ("task failure",), "transactions").scenario(seed)) as simulation:
            simulation.run()
            assert simulation.result().ok
            tried += simulation.checker.zombies  # type: ignore[union-attr]
    assert tried > 5
