"""Incremental checkpoints: only changes are written, and the restored state is complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import workbench as wb
from workbench.elements import Records
from workbench.errors import CorruptCheckpointError
from workbench.operators.aggregates.aggregate import RollingAggregate
from workbench.operators.contract.base import OperatorContext
from workbench.runtime.storage import DirectoryStorage, Manifest, folder_of
from workbench.runtime.storage.encoding import encode
from workbench.runtime.storage.state_parts import CHANGES_MAX
from workbench.runtime.storage.table_changes import apply_changes, can_change, changes_between

MB = 1_000_000
TASK = st.sampled_from(["t[0]", "t[1]"])


def of_dict(state: dict[str, int]) -> pa.Table:
    return pa.table({"key:k": list(state), "n": pa.array(state.values(), pa.int64())})


# --- what has changed in a table

KINDS = {
    "int": pa.int64(),
    "small": pa.int8(),
    "float": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "list": pa.list_(pa.int64()),
    "nested": pa.list_(pa.struct([("a", pa.string()), ("b", pa.list_(pa.float32()))])),
    "map": pa.map_(pa.string(), pa.int32()),
    "money": pa.decimal128(20, 2),
    "time": pa.timestamp("us", "UTC"),
}
SAMPLES: dict[str, list[Any]] = {
    "int": [0, -1, 2**62, None],
    "small": [0, 5, -128, None],
    "float": [0.0, -0.0, float("nan"), 1.5, None],
    "flag": [True, False, None],
    "text": ["", "a", "ä" * 9, None],
    "list": [[], [1], [1, 2], [None], None],
    "nested": [[], [{"a": "x", "b": [1.0]}], [{"a": None, "b": None}], [{"a": "x", "b": [1.0, 2.0]}, None], None],
    "map": [[], [("a", 1)], [("a", 2)], [("a", 1), ("b", None)], None],
    "money": [None, 0, 7],
    "time": [None, 0, 7],
}


@st.composite
def versions(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """A table, and what came of it: rows gone, moved, changed and added; with or without keys, perhaps slices."""
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    keyed = draw(st.booleans())
    key = st.integers(0, 12) if keyed else st.none()
    row = st.tuples(key, *(st.integers(0, len(SAMPLES[name]) - 1) for name in names))
    before = draw(st.lists(row, min_size=1, max_size=12))
    now = list(before)
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(now)))
        now[at : at + draw(st.integers(0, 2))] = draw(st.lists(row, max_size=2))
    if draw(st.booleans()):
        now = now[::-1]

    def table(rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = {"key:k": pa.array([row[0] for row in rows], pa.int64())} if keyed else {}
        for at, name in enumerate(names):
            columns[name] = pa.array([SAMPLES[name][row[at + 1]] for row in rows], KINDS[name])
        spare = draw(st.integers(0, 2))
        whole = pa.table(columns)
        return pa.concat_tables([whole.slice(0, spare), whole]).combine_chunks().slice(min(spare, len(rows)))

    return table(before), table(now)


def bits(table: pa.Table) -> list[str]:
    """Rows as text that tells -0.0 from 0.0 and is equal for equal NaN."""
    return [repr(row) for row in table.to_pylist()]


@settings(max_examples=300)
@given(tables=versions())
def test_changes_lead_from_one_table_to_the_other(tables: tuple[pa.Table, pa.Table]) -> None:
    before, now = tables
    changes = changes_between(before, now) if can_change(before) and can_change(now) else None
    if changes is not None:
        found = apply_changes(before, [changes])
        assert found.schema.equals(now.schema)
        assert bits(found) == bits(now)


def test_only_rows_that_differ_are_in_the_changes() -> None:
    n = 10_000
    before = pa.table({"key:k": np.arange(n), "v": np.arange(n), "s": [str(i % 7) for i in range(n)]})
    values = np.arange(n)
    values[[3, 500, 9_999]] = -1
    after = pa.table({"key:k": np.arange(n), "v": values, "s": before.column("s")})
    changes = changes_between(before, after)
    assert changes is not None
    assert changes.rows.column("key:k").to_pylist() == [3, 500, 9_999]
    gone = after.filter(pa.array(np.arange(n) % 100 != 0))  # and in the middle of the table, keys that came back
    back = pa.concat_tables([gone.slice(0, 50), after.slice(0, 1), gone.slice(50)]).combine_chunks()
    changes = changes_between(gone, back)
    assert changes is not None
    assert changes.rows.to_pylist() == [{"key:k": 0, "v": 0, "s": "0"}]
    assert apply_changes(gone, [changes]).equals(back)


def test_where_most_has_changed_there_are_no_changes() -> None:
    before = of_dict({str(i): i for i in range(100)})
    assert changes_between(before, of_dict({str(i): i + (i >= 40) for i in range(100)})) is None
    assert changes_between(before, of_dict({f"other {i}": i for i in range(100)})) is None
    assert changes_between(before, before.rename_columns(["key:k", "m"])) is None


def test_what_cannot_be_compared_is_not() -> None:
    assert not can_change(pa.table({"d": pa.array(["a"]).dictionary_encode()}))
    assert not can_change(pa.concat_tables([of_dict({"a": 1}), of_dict({"b": 1})]))
    assert not can_change(of_dict({}))


# --- in a checkpoint directory


class Job:
    """Takes checkpoints of tables in a directory, as the coordinator does."""

    def __init__(self, folder: Path, above: int | None = 0) -> None:
        self.storage = DirectoryStorage(folder, incremental_above_bytes=above)
        self.number = self.storage.highest_id()
        self.storage.remove_incomplete()

    def take(
        self, tables: dict[str, pa.Table], savepoint: str | None = None, *, complete: bool = True
    ) -> tuple[str, int]:
        """A checkpoint; its place and the bytes that it wrote."""
        self.number += 1
        place = folder_of(self.number, savepoint)
        files = tuple(
            self.storage.write(place, task, encode({"agg": {"groups": table}})) for task, table in tables.items()
        )
        if complete:
            manifest = Manifest(self.number, "job", "periodic", 1, 2, {"agg": 1}, files, place=place)
            self.storage.complete(place, manifest)
        return place, sum(file.written for file in files)

    def read(self, manifest: Manifest) -> dict[str, pa.Table]:
        return {file.task: self.storage.states(manifest, file)["agg"]["groups"] for file in manifest.files}


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def numbers(count: int, seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"key:k": rng.permutation(count), "a": rng.random(count), "b": rng.integers(0, 9, count)}


def test_one_percent_of_changes_writes_less_than_five_percent(tmp_path: Path) -> None:
    count = 2_000_000  # of 24 bytes
    columns = numbers(count)
    rng = np.random.default_rng(2)
    with closing((job := Job(tmp_path)).storage):
        whole = job.take({"agg[0]": pa.table(columns)})[1]
        assert whole > 47 * MB
        for _ in range(3):
            columns["a"] = columns["a"].copy()
            columns["a"][rng.choice(count, count // 100, replace=False)] += 1
            before = on_disk(tmp_path)
            place, written = job.take({"agg[0]": pa.table(columns)})
            assert written < 0.05 * whole
            assert on_disk(tmp_path) - before < 0.05 * whole
        manifest = job.storage.manifests()[-1]
        assert manifest.place == place
        assert whole < manifest.size_bytes < 1.15 * whole
        assert job.read(manifest)["agg[0]"].equals(pa.table(columns))


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("WORKBENCH_LARGE"), reason="needs 8 GB of memory: set WORKBENCH_LARGE=1")
def test_one_gigabyte_of_state_with_one_percent_of_changes(tmp_path: Path) -> None:
    keys, at_once = 26_000_000, 1_000_000
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64())])
    aggregates = {"n": wb.count(), "s": wb.sum("v"), "low": wb.min("v"), "high": wb.max("v")}
    operator = RollingAggregate(("k",), tuple(aggregates.items())).create([schema])
    operator.open(OperatorContext())
    rng = np.random.default_rng(3)

    def process(column: Any) -> None:
        batch = pa.RecordBatch.from_arrays([pa.array(column), pa.array(column % 1_000)], schema=schema)
        operator.process(Records(batch, np.zeros(len(batch), np.int64)), 0, Nowhere())

    for begin in range(0, keys, at_once):
        process(np.arange(begin, begin + at_once) * 7919)
    storage = DirectoryStorage(tmp_path)
    sizes, seconds = [], []
    for number in range(1, 4):
        place = folder_of(number, None)
        began = perf_counter()
        file = storage.write(place, "agg[0]", encode({"agg": operator.snapshot(number)}))
        manifest = Manifest(number, "job", "periodic", 1, 2, {"agg": 1}, (file,), place=place)
        storage.complete(place, manifest)
        seconds.append(round(perf_counter() - began, 1))
        sizes.append(file.written)
        process(rng.choice(keys, keys // 100, replace=False) * 7919)
    print("bytes written:", sizes, "seconds:", seconds)  # noqa: T201  figures to report
    assert sizes[0] > 1_000_000_000
    assert all(size < 0.05 * sizes[0] for size in sizes[1:])
    restored = storage.states(manifest, manifest.files[0])["agg"]["groups"]
    assert isinstance(restored, pa.Table)
    assert pc.sum(restored.column("cell:count()")).as_py() == keys + 2 * (keys // 100)
    storage.close()


class Nowhere:
    """An output that nobody reads."""

    def emit(self, records: Records) -> None:
        """It is let go."""

    def emit_side(self, tag: str, records: Records) -> None:
        """It is let go."""


def test_a_chain_begins_anew_when_it_is_long_or_its_changes_are_large(tmp_path: Path) -> None:
    state = {str(i): i for i in range(1_000)}
    with closing((job := Job(tmp_path)).storage):
        lengths = []
        for round_ in range(CHANGES_MAX + 3):
            state["7"] = -round_
            job.take({"t": of_dict(state)})
            lengths.append(len(job.storage.manifests()[-1].files[0].parts))
        assert lengths == [*range(1, CHANGES_MAX + 2), 1, 2]
        for i in range(300):
            state[str(i)] = -1
        job.take({"t": of_dict(state)})
        for i in range(300, 600):
            state[str(i)] = -1
        job.take({"t": of_dict(state)})
        assert len(job.storage.manifests()[-1].files[0].parts) == 1


def test_files_go_when_no_checkpoint_needs_them(tmp_path: Path) -> None:
    state = {str(i): i for i in range(1_000)}
    with closing((job := Job(tmp_path)).storage):
        first, _ = job.take({"t": of_dict(state)})
        state["3"] = 9
        second, _ = job.take({"t": of_dict(state)})
        state["4"] = 9
        given_up, _ = job.take({"t": of_dict(state)}, complete=False)
        third, _ = job.take({"t": of_dict(state)})
        assert len(list((tmp_path / "state").iterdir())) == 4
        job.storage.discard(given_up)
        assert len(list((tmp_path / "state").iterdir())) == 3
        job.storage.discard(first)
        job.storage.discard(second)
        (last,) = job.storage.manifests()
        assert job.read(last)["t"].equals(of_dict(state))  # from files that three checkpoints wrote
        assert len(list((tmp_path / "state").iterdir())) == 3
        job.storage.discard(third)
        assert list((tmp_path / "state").iterdir()) == []


def test_what_a_checkpoint_in_progress_needs_outlives_the_one_it_came_from(tmp_path: Path) -> None:
    state = {str(i): i for i in range(1_000)}
    with closing((job := Job(tmp_path)).storage):
        first, _ = job.take({"t": of_dict(state)})
        state["3"] = 9
        place = folder_of(9, None)
        file = job.storage.write(place, "t", encode({"agg": {"groups": of_dict(state)}}))
        job.take({"t": of_dict({"other": 1})})
        job.storage.discard(first)
        manifest = Manifest(9, "job", "periodic", 1, 2, {}, (file,), place=place)
        job.storage.complete(place, manifest)
        assert len(file.parts) == 2
        assert job.read(manifest)["t"].equals(of_dict(state))


def test_small_tables_and_savepoints_are_whole_in_their_own_folder(tmp_path: Path) -> None:
    state = of_dict({str(i): i for i in range(1_000)})
    with closing((job := Job(tmp_path, above=1_000)).storage):
        job.take({"t": state.slice(0, 5).combine_chunks(), "u": state})
        job.take({"t": state, "u": state}, savepoint="s")
        (checkpoint,), savepoint = job.storage.manifests(), job.storage.savepoint("s")
        assert [len(file.parts) for file in checkpoint.files] == [0, 1]
        assert savepoint is not None
        assert savepoint.needs == frozenset()
        assert job.read(savepoint)["u"].equals(state)


def test_without_incremental_checkpoints_everything_is_written_each_time(tmp_path: Path) -> None:
    state = of_dict({str(i): i for i in range(1_000)})
    with closing((job := Job(tmp_path, above=None)).storage):
        written = [job.take({"t": state})[1] for _ in range(2)]
        assert written[0] == written[1] > state.nbytes
        assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("part", [0, 1])
def test_a_damaged_or_missing_part_is_an_error_by_name(tmp_path: Path, part: int) -> None:
    state = {str(i): i for i in range(1_000)}
    with closing((job := Job(tmp_path)).storage):
        job.take({"t": of_dict(state)})
        state["3"] = 9
        job.take({"t": of_dict(state)})
        manifest = job.storage.manifests()[-1]
        path = tmp_path / manifest.files[0].parts[part].path
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 4]))
        with pytest.raises(CorruptCheckpointError, match=rf"{path.name} does not match its checksum"):
            job.read(manifest)
        path.unlink()
        with pytest.raises(CorruptCheckpointError, match=rf"{path.name} cannot be read \(No such file"):
            job.read(manifest)


def test_a_table_whose_files_were_deleted_is_written_whole_again(tmp_path: Path) -> None:
    table = of_dict({f"t {key}": key for key in range(60)})
    with closing((job := Job(tmp_path)).storage):
        place, _ = job.take({"t[0]": table})
        job.take({"t[0]": table}, "kept")
        job.storage.discard(place)
        job.take({"t[0]": table})
        (manifest,) = job.storage.manifests()
        assert job.read(manifest)["t[0]"].equals(table)


class Checkpoints(RuleBasedStateMachine):
    """Random updates, checkpoints, ends of processes and retention, beside a dictionary for each checkpoint."""

    folder: Path
    spent: Iterator[Path]

    @initialize()
    def begin(self) -> None:
        self.root = next(self.spent)
        self.states: dict[str, dict[str, int]] = {"t[0]": {}, "t[1]": {}}
        self.taken: dict[str, dict[str, dict[str, int]]] = {}
        self.job = Job(self.root)

    @rule(
        task=st.sampled_from(["t[0]", "t[1]"]), keys=st.lists(st.integers(0, 60), max_size=6), value=st.integers(0, 3)
    )
    def update(self, task: str, keys: list[int], value: int) -> None:
        self.states[task] |= {f"{task} {key}": value for key in keys}

    @rule(task=TASK, count=st.integers(1, 3), seed=st.integers(0, 9))
    def remove(self, task: str, count: int, seed: int) -> None:
        for key in sorted(self.states[task], key=lambda key: hash_of(key, seed))[:count]:
            del self.states[task][key]

    @rule()
    def fill(self) -> None:
        for task, state in self.states.items():
            state |= {f"{task} {key}": key for key in range(60)}

    @rule(complete=st.booleans(), savepoint=st.booleans())
    def checkpoint(self, complete: bool, savepoint: bool) -> None:
        name = f"s{self.job.number}" if savepoint else None
        tables = {task: of_dict(state) for task, state in self.states.items()}
        place, _ = self.job.take(tables, name, complete=complete)
        if complete:
            self.taken[place] = {task: dict(state) for task, state in self.states.items()}
        else:
            self.job.storage.discard(place)

    @precondition(lambda self: len(self.taken) > 1)
    @rule(at=st.integers(0, 9))
    def retire(self, at: int) -> None:
        place = sorted(self.taken)[at % len(self.taken)]
        self.job.storage.discard(place)
        del self.taken[place]

    @rule(swap=st.booleans(), complete=st.booleans())
    def restart(self, swap: bool, complete: bool) -> None:
        """The process ends, perhaps in the middle of a checkpoint; the next one has its keys at other subtasks."""
        if not complete:
            self.job.take({task: of_dict(state) for task, state in self.states.items()}, complete=False)
        self.job.storage.close()
        self.job = Job(self.root)
        if swap:
            self.states = dict(zip(self.states, reversed(self.states.values()), strict=True))

    def teardown(self) -> None:
        if hasattr(self, "job"):
            complete = [*self.job.storage.manifests(), *self.job.storage.savepoints()]
            assert {manifest.place for manifest in complete} == self.taken.keys()
            for manifest in complete:
                found = self.job.read(manifest)
                assert {task: dict(zip(*table.to_pydict().values(), strict=True)) for task, table in found.items()} == (
                    self.taken[manifest.place]
                )
            self.job.storage.close()


def hash_of(key: str, seed: int) -> int:
    return int.from_bytes(key.encode(), "big") * (seed + 7) % 101


def test_any_checkpoint_can_be_restored_after_any_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Checkpoints.spent = (tmp_path / str(number) for number in range(10**9))
    monkeypatch.setattr("os.fsync", lambda descriptor: None)
    run_state_machine_as_test(Checkpoints, settings=settings(max_examples=40, stateful_step_count=25))
