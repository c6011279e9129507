"""Upserts and deletions by key as a whole changelog, with the values that they leave out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from workbench.elements import Records
from workbench.errors import RecordError
from workbench.operators.changelogs.keyed_upserts import CLEAR, KeyedUpserts, unchanged_bits, upserts_schema
from workbench.operators.changelogs.row_kinds import AFTER, DELETE, KIND, NAMES
from workbench.operators.contract.base import Operator, OperatorContext

SCHEMA = pa.schema({"id": pa.int64(), "a": pa.string(), "b": pa.string()})
GIVEN = upserts_schema(SCHEMA)
SAME_B = unchanged_bits([2], 3)
MOVED_B = unchanged_bits([2], 3, moved=True)
Event = tuple[int, int | None, str | None, str | None, bytes | None]


class Emitted:
    """Keeps what an operator emits."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def emit(self, records: Records) -> None:
        self.batches.append(records.batch)

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)


def made() -> Operator:
    operator = KeyedUpserts(("id",)).create([GIVEN])
    operator.open(OperatorContext())
    return operator


def changes(operator: Operator, *batches: Sequence[Event]) -> list[tuple[Any, ...]]:
    out = Emitted()
    for events in batches:
        columns = zip(*((id, a, b, kind, mark) for kind, id, a, b, mark in events), strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, GIVEN, strict=True)]
        operator.process(Records(pa.RecordBatch.from_arrays(arrays, schema=GIVEN)), 0, out)
    return [(NAMES[row.pop(KIND)], *row.values()) for batch in out.batches for row in batch.to_pylist()]


def put(id: int, a: str, b: str) -> Event:
    return AFTER, id, a, b, None


def gone(id: int) -> Event:
    return DELETE, id, None, None, None


CLEARED: Event = (CLEAR, None, None, None, None)


def test_an_upsert_adds_or_replaces_and_a_deletion_takes_the_row_back() -> None:
    assert changes(made(), [put(1, "x", "y")], [put(1, "z", "y"), put(2, "v", "w")], [gone(1), gone(7)]) == [
        ("+I", 1, "x", "y"),
        ("-U", 1, "x", "y"),
        ("+U", 1, "z", "y"),
        ("+I", 2, "v", "w"),
        ("-D", 1, "z", "y"),
    ]


def test_a_row_that_stays_equal_changes_nothing() -> None:
    assert changes(made(), [put(1, "x", "y")], [put(1, "x", "y")], [gone(2), gone(2)]) == [("+I", 1, "x", "y")]


def test_outputs_end_alike_whatever_batches_the_changes_come_in_again_after_a_failure() -> None:
    """An output keeps what it had at the failure, and gets the changes from the checkpoint on again; one of them has
    only some rows."""
    events = [put(1, "x", "y"), put(2, "p", "q"), gone(2), put(1, "z", "y"), put(3, "a", "b"), put(1, "x", "y")]
    events += [put(2, "r", "s"), gone(2), gone(3), put(4, "c", "d"), put(3, "e", "f"), gone(4), gone(3)]
    first = [events[:1]]  # before the checkpoint
    for seen in range(1, len(events) + 1):
        for cut in range(seen, len(events) + 1):
            output: dict[Any, tuple[Any, ...]] = {}
            some: dict[Any, str] = {}
            lost = changes(made(), *first, *([each] for each in events[1:seen]))
            again = changes(made(), *first, *filter(None, (events[1:cut], events[cut:])))[1:]
            for kind, *row in [*lost, *again]:
                if kind in ("+I", "+U"):
                    output[row[0]] = tuple(row)
                else:
                    output.pop(row[0], None)
                if row[1] in ("a", "p") and kind in ("+I", "+U"):
                    some[row[0]] = row[1]
                elif row[1] in ("a", "p"):
                    some.pop(row[0], None)
            assert (output, some) == ({1: (1, "x", "y")}, {}), (seen, cut)


def test_a_value_that_an_update_leaves_out_is_that_of_the_row_before() -> None:
    events: list[Event] = [put(1, "x", "large"), (AFTER, 1, "z", None, SAME_B), (AFTER, 1, "q", None, SAME_B)]
    assert changes(made(), events)[-1] == ("+U", 1, "q", "large")
    single = changes(made(), *([each] for each in events))
    assert single[-2:] == [("-U", 1, "z", "large"), ("+U", 1, "q", "large")]


def test_a_row_with_another_key_keeps_the_value() -> None:
    events: list[Event] = [put(1, "x", "large"), gone(1), (AFTER, 9, "z", None, MOVED_B)]
    single = [("+I", 1, "x", "large"), ("-D", 1, "x", "large"), ("+I", 9, "z", "large")]
    assert changes(made(), *([each] for each in events)) == single
    assert changes(made(), events) == single  # in one batch too
    changed: list[Event] = [(AFTER, 1, "v", None, SAME_B), gone(1), (AFTER, 9, "z", None, MOVED_B)]
    steps = [("-U", 1, "x", "large"), ("+U", 1, "v", "large"), ("-D", 1, "v", "large")]
    assert changes(made(), events[:1], changed) == [single[0], *steps, single[2]]


def test_a_value_that_no_earlier_row_has_is_refused() -> None:
    with pytest.raises(RecordError, match=r"row \{'id': 1\} leaves out .* REPLICA IDENTITY FULL"):
        changes(made(), [(AFTER, 1, "z", None, SAME_B)])
    with pytest.raises(RecordError, match="REPLICA IDENTITY FULL"):
        changes(made(), [put(2, "a", "b"), gone(1), (AFTER, 9, "z", None, MOVED_B)])


def test_all_rows_go_with_a_truncation() -> None:
    found = changes(made(), [put(1, "x", "y"), put(2, "v", "w"), CLEARED, put(2, "n", "m")])
    assert found == [
        ("+I", 1, "x", "y"),
        ("+I", 2, "v", "w"),
        ("-D", 1, "x", "y"),
        ("-D", 2, "v", "w"),
        ("+I", 2, "n", "m"),
    ]


def test_the_state_is_restored() -> None:
    first = made()
    changes(first, [put(1, "x", "large"), put(2, "v", "w"), gone(2)])
    rows = first.snapshot(1)["rows"]
    second = made()
    second.restore([{"rows": rows() if callable(rows) else rows}])
    assert second.query({"id": 1}) == {"id": 1, "a": "x", "b": "large"}
    assert second.query_keys(5) == (1, [{"id": 1}])
    assert changes(second, [(AFTER, 1, "z", None, SAME_B)]) == [("-U", 1, "x", "large"), ("+U", 1, "z", "large")]


def test_keys_without_rows_are_forgotten() -> None:
    operator: Any = made()
    for begin in range(0, 60_000, 10_000):
        changes(operator, [put(id, "x", "y") for id in range(begin, begin + 10_000)])
        changes(operator, [gone(id) for id in range(begin, begin + 10_000)])
    assert len(operator._index) < 30_000
    assert changes(operator, [put(5, "x", "y")]) == [("+I", 5, "x", "y")]
