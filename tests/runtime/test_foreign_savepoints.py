"""Savepoints of real jobs that somebody has changed piece by piece, with all checksums right: a job that is to go on
from one either runs, with what it says, or is refused with a sentence; no loop ever sees what does not fit.

A sample of the changes; with ``WORKBENCH_ALL_DAMAGE=1`` all of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from edited_savepoints import EditedSavepoint, JsonText, Piece, Stream, stream_of
from waiting import until

import workbench as wb
from workbench.durations import NO_TIME
from workbench.operators.windows.sessions import SessionPlaces

ALL = bool(os.environ.get("WORKBENCH_ALL_DAMAGE"))
SAMPLE = 14
"""Changes to each job's savepoint, spread evenly over all of them."""
ROWS = 2_000
CLICKS = pa.table({"user": [f"u{i % 7}" for i in range(ROWS)], "n": range(ROWS), "t": range(0, 10 * ROWS, 10)})
BIG, SMALL = 2**62, -(2**62)

Build = Callable[[str], wb.types.Pipeline]


def clicks(rate: int | None, name: str = "clicks") -> wb.Stream:
    return wb.Stream.from_table(CLICKS, event_time="t", rate=rate).uid(name)


class Timed(wb.functions.ProcessFunction):
    """State of every kind, some of it with a time to live, and timers."""

    count = wb.state.ValueState(pa.int64(), default=0)
    last = wb.state.ValueState(pa.string(), ttl="1h")
    seen = wb.state.ListState(pa.int64(), ttl="1h")
    by_text = wb.state.MapState(pa.string(), pa.int64())

    def process(
        self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext
    ) -> dict[str, Any]:
        state.count += 1
        state.last = record["user"]
        state.seen.append(record["n"])
        state.by_text[str(record["n"] % 3)] = record["n"]
        ctx.register_event_timer((ctx.timestamp or 0) + 5_000)
        return {"user": record["user"], "n": state.count + len(state.seen) + len(state.by_text)}

    def on_timer(self, time: int, state: wb.state.State, ctx: wb.functions.ProcessContext) -> dict[str, Any]:
        return {"user": ctx.key, "n": len(state.seen)}


class Ruled(wb.functions.CoProcessFunction):
    """Broadcast state."""

    limits = wb.state.BroadcastState(pa.string(), pa.int64())

    def process1(
        self, record: dict[str, Any], state: wb.state.State, ctx: wb.functions.ProcessContext
    ) -> dict[str, Any]:
        return {"user": record["user"], "n": ctx.broadcast.limits.get(record["user"], 0)}

    def process2(self, record: dict[str, Any], state: wb.state.State) -> None:
        state.limits[record["user"]] = record["n"]


class Every(wb.triggers.Trigger):
    """A user's trigger, which keeps something."""

    def on_record(
        self, time_us: int, window: wb.windows.Window, context: wb.triggers.TriggerContext
    ) -> wb.triggers.Action:
        context.register_event_timer(window.end - 1)
        context.state["seen"] = context.state.get("seen", 0) + 1
        return wb.triggers.Action.CONTINUE

    def on_event_time(
        self, time_us: int, window: wb.windows.Window, context: wb.triggers.TriggerContext
    ) -> wb.triggers.Action:
        return wb.triggers.Action.FIRE


def windowed(rate: int | None, window: wb.windows.WindowAssigner, **settings: Any) -> Any:
    return clicks(rate).key_by("user").window(window, **settings)


def joined(rate: int | None, **how: Any) -> wb.Stream:
    return clicks(rate).join(clicks(rate, "others").select("user", other="n"), on="user", **how).uid("op")


UN = {"user": pa.string(), "n": pa.int64()}
JOBS: dict[str, Callable[[int | None], wb.Stream]] = {
    "rolling": lambda rate: clicks(rate).key_by("user", "n").aggregate(n_=wb.count(), high=wb.max("t")).uid("op"),
    "reduce": lambda rate: clicks(rate).key_by("user").reduce(lambda held, new: new).uid("op"),
    "tumbling": lambda rate: windowed(rate, wb.tumbling("3ms")).aggregate(n_=wb.count(), mean=wb.mean("n")).uid("op"),
    "sliding": lambda rate: windowed(rate, wb.sliding("3ms", "1ms")).aggregate(n_=wb.sum("n")).uid("op"),
    "session": lambda rate: windowed(rate, wb.session("3ms")).aggregate(n_=wb.sum("n")).uid("op"),
    "counted": lambda rate: windowed(rate, wb.windows.count_tumbling(90)).aggregate(n_=wb.sum("n")).uid("op"),
    "median": lambda rate: windowed(rate, wb.sliding("3ms", "1ms")).aggregate(n_=wb.median("n")).uid("op"),
    "trigger": lambda rate: windowed(rate, wb.tumbling("3ms"), trigger=Every()).aggregate(n_=wb.count()).uid("op"),
    "process": lambda rate: clicks(rate).key_by("user").process(Timed(), UN).uid("op"),
    "broadcast": lambda rate: clicks(rate).connect(clicks(rate, "rules").broadcast()).process(Ruled(), UN).uid("op"),
    "interval": lambda rate: joined(rate, between=("-1ms", "1ms")),
    "window join": lambda rate: joined(rate, window=wb.tumbling("3ms")),
    "session join": lambda rate: joined(rate, window=wb.session("3ms")),
    "timestamps": lambda rate: clicks(rate).assign_timestamps("t", out_of_orderness="1ms").uid("op"),
    "punctuated": lambda rate: (
        clicks(rate).assign_timestamps("t", watermarks=wb.watermarks.punctuated("n % 5 = 0")).uid("op")
    ),
}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives a savepoint of a job by its name; each is taken once."""
    root = tmp_path_factory.mktemp("saved")

    def folder(name: str) -> Path:
        own = root / name.replace(" ", "-")
        if not own.exists():
            job = JOBS[name](400).sink_to(wb.DiscardSink()).run("saved", checkpoint_dir=own, parallelism=2)
            until(lambda: sum(int(row["numRecordsIn"] or 0) for row in job.metrics()) >= 100)
            job.savepoint("s")
            job.cancel()
            job.wait("60s")
        return own / "savepoints" / "s"

    return folder


def outcome(name: str, folder: Path, root: Path) -> str:
    """What becomes of a job that begins with a savepoint: how it ends, or why it is refused."""
    try:
        job = JOBS[name](None).sink_to(wb.DiscardSink()).run("after", restore=folder, checkpoint_dir=root)
        return job.wait("60s")
    except wb.errors.WorkbenchError as error:
        return f"{type(error).__name__}: {error}"


def changes_of(value: Any) -> Iterator[tuple[str, Any]]:
    """A value of a piece, changed in every way."""
    if isinstance(value, pa.Table):
        yield from table_changes(value)
    else:
        yield from json_changes(value)
    yield "another kind", 7 if isinstance(value, pa.Table) else pa.table({"n": [1]})
    yield "no Arrow", Stream(b"\xff\xff\xff\xff\x10\x00\x00\x00no arrow at all!")
    yield "no JSON", JsonText("[" * 50_000)


def json_changes(value: Any) -> Iterator[tuple[str, Any]]:
    for other in (None, "x", -1, BIG, 1.5, [], {}, [None], {"0": None}, [[0, 10**6, 0]], {"0": -1}, {"0": BIG}):
        yield f"{other!r}", other
    if isinstance(value, dict | list) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        for key in list(keys)[:2]:
            for what, other in json_changes(value[key]):
                copy = dict(value) if isinstance(value, dict) else list(value)
                copy[key] = other
                yield f"[{key!r}] {what}", copy


def table_changes(table: pa.Table) -> Iterator[tuple[str, Any]]:
    yield "no rows", table.slice(0, 0)
    yield "rows twice", pa.concat_tables([table, table])
    yield "no columns", pa.table({})
    yield "a column of nulls", pa.table({"n": pa.nulls(1 << 20)})
    yield "compressed", Stream(stream_of(table, compression="zstd"))
    for at, name in enumerate(table.schema.names):
        rows = table.num_rows
        yield f"{name} is gone", table.drop_columns([name])
        others = {
            "nulls": pa.nulls(rows, table.schema.field(at).type),
            "nothing": pa.nulls(rows),
            "texts": pa.array(["x"] * rows),
            "lists": pa.array([[1]] * rows, pa.list_(pa.int64())),
            "small": pa.array([SMALL] * rows, pa.int64()),
            "big": pa.array([BIG] * rows, pa.int64()),
            "floats": pa.array([float("nan")] * rows),
            "truths": pa.array([True] * rows),
        }
        for what, column in others.items():
            yield f"{name} has {what}", table.set_column(at, name, column)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_job_takes_a_changed_savepoint_or_refuses_it(name: str, saved: Callable[[str], Path], tmp_path: Path) -> None:
    source = saved(name)
    assert outcome(name, source, tmp_path / "unchanged") == "FINISHED"
    whole = EditedSavepoint(source)
    first: dict[tuple[str, str], Piece] = {}
    for piece in whole.pieces():  # of each operator the first subtask whose piece holds anything
        key = (piece.operator, piece.name)
        value = whole.value(piece)
        if key not in first or (isinstance(value, pa.Table) and not whole.value(first[key]).num_rows):
            first[key] = piece
    cases = [(piece, *change) for piece in first.values() for change in changes_of(whole.value(piece))]
    chosen = cases if ALL else cases[:: max(1, len(cases) // SAMPLE)]
    refused = 0
    wrong = []
    for number, (piece, what, value) in enumerate(chosen):
        copy = shutil.copytree(source, tmp_path / str(number) / "s")
        edited = EditedSavepoint(copy)
        edited.put(piece, value)
        edited.save()
        found = outcome(name, copy, tmp_path / str(number) / "c")
        if found != "FINISHED" and not found.startswith(("CheckpointError", "CorruptCheckpointError")):
            wrong.append((piece, what, found))
        refused += found != "FINISHED"
    assert wrong == []
    assert refused >= len(chosen) / 4  # the changes are such that many of them cannot be right


def test_sessions_that_overlap_are_joined_by_one_record() -> None:
    """No job writes such ones; there is room for all of them to become one."""
    places = SessionPlaces(wb.session("1s"))
    starts = np.arange(50) * 10
    places.add(np.zeros(50, np.int64), starts, starts + 100)
    placed = places.place(np.zeros(1, np.int64), np.array([0]), NO_TIME, None)
    assert len(placed.moves) == 49
    assert sorted({*placed.moves[:, 2].tolist(), int(placed.entries[0])}) == list(range(50))


class Forgetful(wb.watermarks.WatermarkGenerator):
    """A user's, which cannot go on from what it said."""

    def on_batch(self, batch: pa.RecordBatch, times: Any) -> int | None:
        return int(times.max())

    def snapshot(self) -> Any:
        return {"n": 1}

    def restore(self, state: Any) -> None:
        raise ValueError("no such state")


def test_what_a_users_restore_raises_is_no_damage_of_the_checkpoint(tmp_path: Path) -> None:
    def stream(rate: int | None) -> wb.types.Pipeline:
        timed = wb.Stream.from_table(CLICKS, event_time="t", rate=rate, watermarks=Forgetful).uid("clicks")
        return timed.sink_to(wb.DiscardSink())

    job = stream(400).run("saved", checkpoint_dir=tmp_path / "a")
    until(lambda: sum(int(row["numRecordsIn"] or 0) for row in job.metrics()) >= 100)
    folder = job.savepoint("s")
    job.cancel()
    job.wait("60s")
    with pytest.raises(
        wb.errors.WorkbenchError, match=r"Forgetful.restore failed with ValueError: no such state"
    ) as raised:
        stream(None).run("after", restore=folder, checkpoint_dir=tmp_path / "b").wait("60s")
    assert not isinstance(raised.value, wb.errors.CheckpointError)


def test_a_refusal_names_the_operator_the_piece_and_the_checkpoint(
    saved: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = shutil.copytree(saved("tumbling"), tmp_path / "a" / "s")
    edited = EditedSavepoint(copy)
    edited.change("op", "watermarks", lambda value: [[0, 10**9, 7]])
    edited.save()
    told = outcome("tumbling", copy, tmp_path / "c")
    assert told.startswith("CorruptCheckpointError: the state of operator 'op' in savepoints/s cannot be restored ")
    assert "watermarks has the key groups 0 to 1000000000 of 128" in told


def test_a_number_of_a_checkpoint_leaves_room_for_those_behind_it(saved: Callable[[str], Path], tmp_path: Path) -> None:
    copy = shutil.copytree(saved("rolling"), tmp_path / "a" / "s")
    edited = EditedSavepoint(copy)
    edited.change_manifest(lambda content: content.update(checkpoint_id=2**62))
    edited.save()
    assert "which leaves no number for later ones" in outcome("rolling", copy, tmp_path / "c")
