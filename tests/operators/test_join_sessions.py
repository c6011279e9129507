"""Joins within sessions: worked out by hand, and random runs compared with a model with lists."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_joins import ACTION, HOW, KEYS, Row, opened, records, written
from test_joins import Collected as Rows

import workbench as wb
from workbench.durations import MAX_TIME, NO_TIME
from workbench.operators.joins import session as join_session
from workbench.operators.joins.columns import JoinColumns
from workbench.operators.joins.window import WindowJoin
from workbench.state.key_groups import KeyPartitioner
from workbench.windows.session import Session


@pytest.fixture(autouse=True, scope="module")
def _packs_early():
    saved, join_session._FEW_SESSIONS = join_session._FEW_SESSIONS, 1
    yield
    join_session._FEW_SESSIONS = saved


class Collected(Rows):
    """Keeps watermarks, too."""

    def __init__(self) -> None:
        super().__init__()
        self.watermarks: list[int] = []

    def emit_watermark(self, watermark_us: int) -> None:
        self.watermarks.append(watermark_us)


@dataclass
class _Session:
    key: tuple
    start: int
    end: int
    sides: tuple[list[Row], list[Row]] = field(default_factory=lambda: ([], []))


class Model:
    """Sessions of both sides, one record at a time."""

    def __init__(self, spec: WindowJoin) -> None:
        self.spec = spec
        self.gap = spec.window.gap_us
        self.watermark = NO_TIME
        self.sessions: list[_Session] = []
        self.dropped = 0

    def over(self, end: int) -> bool:
        return end <= self.watermark

    def process(self, port: int, rows: list[Row]) -> None:
        for row in rows:
            keeps = self.spec.columns.keeps_right if port else self.spec.columns.keeps_left
            if row[3] == NO_TIME or (None in row[:2] and not keeps):
                continue
            mine = _Session(row[:2], row[3], row[3] + self.gap)
            met = [s for s in self.sessions if s.key == mine.key and s.start <= mine.end and mine.start <= s.end]
            if not met and self.over(mine.end):
                self.dropped += 1
                continue
            mine.sides[port].append(row)
            for other in met:
                self.sessions.remove(other)
                mine.start, mine.end = min(mine.start, other.start), max(mine.end, other.end)
                for all_rows, more in zip(mine.sides, other.sides, strict=True):
                    all_rows.extend(more)
            self.sessions.append(mine)

    def advance(self, watermark: int) -> list[Row]:
        self.watermark = max(self.watermark, watermark)
        done = [session for session in self.sessions if self.over(session.end)]
        self.sessions = [session for session in self.sessions if not self.over(session.end)]
        return [row for session in done for row in self.joined(session)]

    def joined(self, session: _Session) -> list[Row]:
        columns, time, (lefts, rights) = self.spec.columns, session.end - 1, session.sides
        if None not in session.key and lefts and rights:
            return [(*left[:3], right[2], time) for left in lefts for right in rights]
        came = [(*row[:3], None, time) for row in lefts] if columns.keeps_left else []
        return came + ([(*row[:2], None, row[2], time) for row in rights] if columns.keeps_right else [])


@pytest.mark.slow
@settings(max_examples=150)
@given(HOW, st.integers(1, 30), st.lists(ACTION, max_size=14))
def test_any_run_gives_what_lists_of_sessions_give(how, gap, actions):
    spec = WindowJoin(JoinColumns(*KEYS, how), Session(gap))
    model, operators, dropped = Model(spec), [opened(spec)], 0
    for action, argument in [*actions, ("watermark", MAX_TIME)]:
        out, wanted = Collected(), []
        if action == "restore":
            taken = [operator.snapshot(1) for operator in operators]
            for operator in operators:  # what a snapshot holds does not change with the live state
                for port in (0, 1):
                    operator.process(records(port, [("a", 1, 1, 5), ("z", 7, 1, 100)]), port, Collected())
                operator.on_watermark(10**6, Collected())
            operators = [opened(spec, subtask, argument) for subtask in range(argument)]
            for operator in operators:
                operator.restore([written(snapshot) for snapshot in taken])
        elif action == "watermark":
            wanted = model.advance(argument)
            for operator in operators:
                operator.on_watermark(argument, out)
        else:
            port = ("left", "right").index(action)
            model.process(port, argument)
            schema = records(port, argument).batch.schema
            parts = KeyPartitioner(KEYS[port], schema, len(operators)).split(records(port, argument))
            for operator, part in zip(operators, parts, strict=True):
                if part is not None:
                    before = operator._context.counters.numLateRecordsDropped
                    operator.process(part, port, out)
                    dropped += operator._context.counters.numLateRecordsDropped - before
        assert Counter(out.rows) == Counter(wanted)
    assert dropped == model.dropped
    for operator in operators:
        snapshot = written(operator.snapshot(2))
        assert snapshot["left"].num_rows + snapshot["right"].num_rows == 0


@pytest.mark.parametrize("parallelism", [1, 2])
def test_clicks_and_orders_of_one_visit_meet(parallelism):
    """By hand: user a visits twice, an order keeps the first visit alive; user b orders nothing."""
    seconds = pa.timestamp("s")
    clicks = pa.table({"user": ["a", "b", "a", "a"], "page": [1, 2, 3, 4], "t": pa.array([0, 1, 14, 40], seconds)})
    orders = pa.table({"user": ["a", "a"], "item": ["tea", "mug"], "t": pa.array([7, 42], seconds)})
    sides = [wb.Stream.from_table(table, event_time="t", out_of_orderness="1min") for table in (clicks, orders)]
    joined = sides[0].join(sides[1], on="user", window=wb.session("10s"), how="left").select("user", "page", "item")
    job = joined.sink_to(wb.TableSink("visits")).run(f"visits-{parallelism}", parallelism=parallelism)
    assert job.wait("120s") == "FINISHED"
    rows = sorted(tuple(row.values()) for row in job.table().to_pylist())
    assert rows == [("a", 1, "tea"), ("a", 3, "tea"), ("a", 4, "mug"), ("b", 2, None)]
