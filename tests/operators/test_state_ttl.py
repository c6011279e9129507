"""State with a time to live: kept at least that long behind the watermark, also after a restore with other subtasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.elements import Records
from workbench.errors import PlanError, QueryError, SettingError
from workbench.operators.changelogs.group_aggregate import GroupAggregate
from workbench.operators.changelogs.join import RegularJoin
from workbench.operators.changelogs.row_kinds import FIELD, KIND, NAMES
from workbench.operators.changelogs.sortable import Order
from workbench.operators.changelogs.top_rows import TopRows
from workbench.operators.contract.base import Operator, OperatorContext
from workbench.operators.joins.columns import JoinColumns
from workbench.state.key_groups import KeyPartitioner

ROWS = pa.schema({"k": pa.string(), "v": pa.int64()})
CHANGES = ROWS.append(FIELD)
TTL = 80

Change = tuple[Any, ...]


class Subtasks:
    """The subtasks of one operator."""

    def __init__(self, spec: Any, inputs: Sequence[pa.Schema] = (ROWS,), parallelism: int = 1) -> None:
        self._spec, self._inputs = spec, inputs
        self._keys = [spec.columns.left_keys] * 2 if isinstance(spec, RegularJoin) else [spec.keys]
        self._made = [self._opened(subtask, parallelism) for subtask in range(parallelism)]
        self.found: list[Change] = []

    def _opened(self, subtask: int, parallelism: int) -> Operator:
        made: Operator = self._spec.create(self._inputs)
        made.open(OperatorContext(subtask=subtask, parallelism=parallelism))
        return made

    def emit(self, records: Records) -> None:
        for row in records.batch.to_pylist():
            kind = row.pop(KIND, 0)
            self.found.append((NAMES[kind], *row.values()))

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)

    def rows(self, rows: list[tuple[str, int]], times: list[int], port: int = 0, kinds: Any = None) -> list[Change]:
        columns = [*zip(*rows, strict=True), *([kinds or [0] * len(rows)] if KIND in self._inputs[port].names else [])]
        arrays = [pa.array(values, f.type) for values, f in zip(columns, self._inputs[port], strict=True)]
        batch = Records(pa.RecordBatch.from_arrays(arrays, schema=self._inputs[port]), np.array(times, np.int64))
        parts = KeyPartitioner(self._keys[port], self._inputs[port], len(self._made)).split(batch)
        self.found = []
        for operator, part in zip(self._made, parts, strict=True):
            if part is not None:
                operator.process(part, port, self)
        return sorted(self.found)

    def watermark(self, time: int) -> None:
        self.found = []
        for operator in self._made:
            operator.on_watermark(time, self)
        assert not self.found

    def restored(self, parallelism: int) -> Subtasks:
        taken = [operator.snapshot(1) for operator in self._made]
        written = [{name: piece() if callable(piece) else piece for name, piece in one.items()} for one in taken]
        after = Subtasks(self._spec, self._inputs, parallelism)
        for operator in after._made:
            operator.restore(written)
        return after


def in_turn(
    spec: Any, rows: list[tuple[list[tuple[str, int]], list[int]]], inputs: Any = (ROWS,)
) -> list[list[Change]]:
    """The changes of two batches before, and one behind the watermark that drops `a`; in two ways that must agree."""
    runs = []
    for restores in (False, True):
        subtasks, found = Subtasks(spec, inputs), []
        for (values, times), watermark in zip(rows, (40, 89, 100), strict=True):
            found.append(subtasks.rows(values, times))
            subtasks.watermark(watermark)
            if restores:
                subtasks = subtasks.restored({40: 3, 89: 2}.get(watermark, 1))
        found.append(subtasks.rows([("a", 1), ("b", 1)], [130, 130]))
        runs.append(found)
    assert runs[0] == runs[1]
    return runs[0]


BATCHES = [([("a", 5), ("b", 5)], [10, 10]), ([("b", 3)], [70]), ([("a", 7)], [20])]
"""With a time to live of 80 in steps of 10, `a` is dropped at the watermark 100, and `b` at 150."""


def test_a_group_begins_anew() -> None:
    spec = GroupAggregate(("k",), (("n", wb.count()), ("total", wb.sum("v"))), TTL)
    assert in_turn(spec, BATCHES) == [
        [("+I", "a", 1, 5), ("+I", "b", 1, 5)],
        [("+U", "b", 2, 8), ("-U", "b", 1, 5)],
        [("+U", "a", 2, 12), ("-U", "a", 1, 5)],
        [("+I", "a", 1, 1), ("+U", "b", 3, 9), ("-U", "b", 2, 8)],
    ]


def test_distinct_values_of_a_group_are_dropped_with_it() -> None:
    spec = GroupAggregate(("k",), (("n", wb.count_distinct("v")),), TTL)
    assert in_turn(spec, BATCHES)[3] == [("+I", "a", 1), ("+U", "b", 3), ("-U", "b", 2)]


def test_a_distinct_value_is_told_again_some_time_after_it_was_told() -> None:
    rows = [([("a", 5), ("b", 5)], [10, 10]), ([("b", 3)], [70]), ([("a", 7)], [20])]
    assert in_turn(GroupAggregate(("k",), (), TTL), rows) == [
        [("+I", "a"), ("+I", "b")],
        [],
        [],
        [("+I", "a"), ("+I", "b")],
    ]
    changed = in_turn(GroupAggregate(("k",), (), TTL), rows, (CHANGES,))
    assert changed[3] == [("+I", "a")]


@pytest.mark.parametrize("rank", [None, "place"])
def test_top_rows_begin_anew(rank: str | None) -> None:
    spec = TopRows(("k",), (Order("v"),), 2, rank, ttl_us=TTL)
    last = in_turn(spec, BATCHES)[3]
    places = ("+I", "a", 1), ("+I", "b", 1), ("-D", "b", 5)
    ranked = ("+I", "a", 1, 1), ("+U", "b", 1, 1), ("+U", "b", 3, 2), ("-U", "b", 3, 1), ("-U", "b", 5, 2)
    assert last == list(ranked if rank else places)


def test_the_last_and_the_first_row_begin_anew() -> None:
    last = TopRows(("k",), (), 1, None, True, TTL)
    assert in_turn(last, BATCHES)[3] == [("+I", "a", 1), ("+U", "b", 1), ("-U", "b", 3)]
    first = TopRows(("k",), (), ttl_us=TTL)
    assert in_turn(first, BATCHES)[3] == [("+I", "a", 1), ("+I", "b", 1)]


@pytest.mark.parametrize("changes", [False, True])
def test_a_join_forgets_each_record_at_its_time(changes: bool) -> None:
    inputs = (CHANGES, ROWS) if changes else (ROWS, ROWS)
    subtasks = Subtasks(RegularJoin(JoinColumns(("k",), ("k",)), ttl_us=TTL), inputs)
    subtasks.rows([("a", 1), ("a", 2), ("b", 3)], [10, 60, 10])
    subtasks.watermark(89)
    assert subtasks.rows([("a", 7)], [90], 1) == [("+I", "a", 1, 7), ("+I", "a", 2, 7)]
    subtasks.watermark(100)
    for parallelism in (1, 2):
        subtasks = subtasks.restored(parallelism)
        assert subtasks.rows([("a", 8), ("b", 8)], [101, 101], 1) == [("+I", "a", 2, 8)]
    if changes:  # a row that was forgotten can be taken back
        assert subtasks.rows([("a", 1), ("a", 2)], [102, 102], 0, [3, 3])[:1] == [("-D", "a", 1, 7)]
        assert subtasks.rows([("a", 9)], [103], 1) == []
    subtasks.watermark(1_000)
    assert subtasks.rows([("a", 1)], [1_001]) == []


def test_keys_of_forgotten_records_are_forgotten_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.operators.changelogs.join._FEW_KEYS", 0)
    subtasks = Subtasks(RegularJoin(JoinColumns(("k",), ("k",)), ttl_us=TTL), (ROWS, ROWS))
    for at in range(20):
        subtasks.rows([(f"k{at}", at), ("a", at)], [at * 40, at * 40], at % 2)
        subtasks.watermark(at * 40)
    assert len(subtasks._made[0]._index) <= 5  # type: ignore[attr-defined]
    assert subtasks.rows([("a", 5)], [801], 0) == [("+I", "a", 5, 19)]


# in pipelines -----------------------------------------------------------------------------------------------------


def clicks() -> wb.Stream:
    return wb.Stream.from_table(pa.table({"user": ["ann"], "page": ["x"], "t": [0]}), event_time="t")


def test_operators_with_a_time_to_live_do_not_grow() -> None:
    counts = clicks().group_by("user").aggregate(n=wb.count()).state_ttl("1d")
    joined = counts.join(clicks().distinct("page", "user").state_ttl("2h"), "user").state_ttl("1h")
    assert joined.sink_to(wb.DiscardSink()).explain().growing == {}


def test_set_and_hints_give_operators_a_time_to_live() -> None:
    query = "SELECT a.user, n FROM a JOIN (SELECT user, COUNT(*) AS n FROM b GROUP BY user) AS c ON a.user = c.user"

    def growing(text: str) -> list[str]:
        return list(wb.sql(text, a=clicks(), b=clicks()).sink_to(wb.DiscardSink()).explain().growing)

    assert growing(query) == ["group", "join"]
    assert growing(f"SET 'state_ttl' = '1 d'; {query}") == []
    assert growing(f"SET 'table.exec.state.ttl' = '1h'; {query}") == []
    hint = "SELECT /*+ STATE_TTL('a' = '1d', 'c' = '2h') */"
    assert growing(query.replace("SELECT", hint, 1)) == []  # the query in FROM is a part of it
    assert growing(query.replace("(SELECT", "(SELECT /*+ STATE_TTL('b' = '1d') */")) == ["join"]


def test_a_time_to_live_that_does_not_fit_is_refused() -> None:
    with pytest.raises(PlanError, match="filter keeps no state for ever: state_ttl follows"):
        clicks().filter("t > 0").state_ttl("1d")
    with pytest.raises(SettingError, match="state_ttl is 0"):
        clicks().distinct("user").state_ttl("0s")
    for text, message in (
        ("SET 'ttl' = '1d'; SELECT user FROM a", "unknown setting 'ttl'"),
        ("SET 'state_ttl' = 'never'; SELECT user FROM a", "state_ttl is 'never'"),
        ("SELECT /*+ STATE_TTL('b' = '1d') */ user FROM a", "unknown table 'b'"),
        ("SELECT /*+ STATE_TTL('a' = '1d') */ a.t FROM a, a AS b WHERE a.user = b.user", "has no time for b"),
        ("SELECT /*+ BROADCAST(a) */ user FROM a", "the only one is STATE_TTL"),
    ):
        with pytest.raises(QueryError, match=message):
            wb.sql(text, a=clicks())
