"""State on disk that is larger than memory: its checkpoints are written and restored with little of it in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pytest

import workbench as wb
from workbench.clock import VirtualClock
from workbench.elements import Records
from workbench.operators.contract.base import Operator, OperatorContext, Snapshot
from workbench.operators.process.process import Process
from workbench.runtime.storage import DirectoryStorage
from workbench.runtime.storage.encoding import decode, encode
from workbench.runtime.storage.manifest import Manifest
from workbench.state import states_on_disk

EVENTS = pa.schema([("k", pa.int64())])
MB = 1_000_000
Backend = Literal["memory", "disk"]
KEYS, STEP = 100_000, 4_096
STATE = {"text": wb.state.ValueState(pa.string()), "items": wb.state.ListState(pa.int64())}


def text_of(key: int) -> str:
    return f"{key:08d}" * 120


def collect(record: dict[str, Any], state: wb.state.State) -> None:
    """Keeps the keys that come in a list, and forgets those that are to be cleared."""
    if record["k"] in CLEARED:
        state.clear()
    else:
        state.text = "x" * 200
        state.items = [*state.items, record["k"]]


CLEARED: set[int] = set()


def put(record: dict[str, Any], state: wb.state.State) -> None:
    state.text = text_of(record["k"])
    state.items = [record["k"]]


class NoOutput:
    """An output that gets nothing."""

    def emit(self, records: Records) -> None:
        assert not len(records)

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)


class Peak:
    """Bytes at the worst moment, of Arrow's memory and Python's."""

    bytes = 0


POOLS: list[pa.MemoryPool] = []
"""Kept as long as the process: an array gives its memory back to the pool that it came from, and caches and threads may
hold one for longer than a test (without this the process dies of it, many tests later)."""


@contextmanager
def measured() -> Iterator[Peak]:
    """Counts what is allocated inside, beyond what there was before."""
    former, pool, peak = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool()), Peak()
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        yield peak
        peak.bytes = pool.max_memory() + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(former)


def opened(subtask: int = 0, parallelism: int = 1, backend: Backend = "disk", function: Any = put) -> Operator:
    spec = Process(("k",), function, {"n": pa.int64()}, STATE, state_backend=backend)
    operator = spec.create([EVENTS])
    operator.open(OperatorContext(subtask=subtask, parallelism=parallelism, clock=VirtualClock()))
    return operator


def filled(keys: int) -> Operator:
    operator = opened()
    for begin in range(0, keys, STEP):
        column = np.arange(begin, min(begin + STEP, keys))
        batch = pa.RecordBatch.from_arrays([pa.array(column)], schema=EVENTS)
        operator.process(Records(batch, np.zeros(len(batch), np.int64)), 0, NoOutput())
    return operator


@pytest.mark.slow
def test_a_checkpoint_of_much_state_needs_little_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(states_on_disk, "RESIDENT_MAX", STEP)
    operator = filled(KEYS)
    with closing(DirectoryStorage(tmp_path)) as storage:
        with measured() as writing:
            file = storage.write("chk-00000001", "p[0]", encode({"p": operator.snapshot(1)}))
        operator.close()
        manifest = Manifest(1, "job", "periodic", 1, 2, {"p": 1}, (file,), place="chk-00000001")
        with measured() as reading:
            operators = [opened(subtask, 2) for subtask in range(2)]
            snapshots = [storage.states(manifest, file)["p"]]
            for fresh in operators:
                fresh.restore(snapshots)
            del snapshots
    assert file.full_size > 95 * MB
    assert writing.bytes < 30 * MB
    assert reading.bytes < 30 * MB
    counts = [fresh.query_keys(0)[0] for fresh in operators]
    assert sum(counts) == KEYS
    assert min(counts) > 0.4 * KEYS
    for key in (0, 1, STEP, 54_321, KEYS - 1):
        found = [shown for fresh in operators if (shown := fresh.query({"k": key})) is not None]
        assert found == [{"text": text_of(key), "items": [key]}]
    for fresh in operators:
        fresh.close()


def test_a_checkpoint_is_of_the_moment_of_its_barrier_however_late_it_is_written(tmp_path: Path) -> None:
    operator = filled(10)
    snapshot = operator.snapshot(1)
    operator.process(Records(pa.record_batch([[10, 11]], schema=EVENTS), np.zeros(2, np.int64)), 0, NoOutput())
    later = operator.snapshot(2)
    found = [decode(encode({"p": each}).join(), "f")["p"]["states"] for each in (snapshot, later, snapshot)]
    assert [sorted(table.column("key:k").to_pylist()) for table in found if isinstance(table, pa.Table)] == [
        list(range(10)),
        list(range(12)),
        list(range(10)),
    ]
    operator.close()


def test_state_that_cannot_be_read_leaves_no_file(tmp_path: Path) -> None:
    schema = pa.schema([("key:k", pa.int64())])

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([np.arange(100_000)], schema=schema)
        raise RuntimeError("the disk is gone")

    states: dict[str, Any] = {"p": {"states": lambda: pa.RecordBatchReader.from_batches(schema, batches())}}
    with closing(DirectoryStorage(tmp_path)) as storage:
        with pytest.raises(RuntimeError, match="the disk is gone"):
            storage.write("chk-00000001", "p[0]", encode(states))
        assert not list(tmp_path.rglob("*.arrow"))


def test_fields_that_a_checkpoint_did_not_have_are_fresh_on_disk() -> None:
    table = pa.table({"key:k": [1, 2], "state:text": ["a", None]})
    operator = opened()
    snapshot: Snapshot = {"states": table}
    operator.restore([snapshot])
    assert operator.query({"k": 1}) == {"text": "a", "items": []}
    assert operator.query_keys(9) == (1, [{"k": 1}])
    operator.close()


def test_a_file_that_is_restored_may_be_deleted_meanwhile(tmp_path: Path) -> None:
    with closing(DirectoryStorage(tmp_path)) as storage:
        table = pa.table({"n": range(100_000)})
        file = storage.write("chk-00000001", "p[0]", encode({"p": {"rows": table}}))
        states = storage.states(Manifest(1, "job", "periodic", 1, 2, {}, (file,), place="chk-00000001"), file)
        storage.discard("chk-00000001")
        assert states["p"]["rows"] == table


# --- what has changed


class Store:
    """State on disk of some keys, its checkpoints in a directory, and a dictionary beside it."""

    def __init__(self, folder: Path) -> None:
        self.operator = opened(function=collect)
        self.storage = DirectoryStorage(folder)
        self.number = 0
        self.held: dict[int, list[int]] = {}

    def add(self, keys: Sequence[int]) -> None:
        for begin in range(0, len(keys), STEP):
            column = pa.array(keys[begin : begin + STEP], pa.int64())
            batch = pa.RecordBatch.from_arrays([column], schema=EVENTS)
            self.operator.process(Records(batch, np.zeros(len(batch), np.int64)), 0, NoOutput())
        for key in keys:
            self.held[key] = [*self.held.get(key, []), key]

    def clear(self, keys: Sequence[int]) -> None:
        CLEARED.update(keys)
        self.add(keys)
        CLEARED.clear()
        for key in keys:
            del self.held[key]

    def checkpoint(self, *, complete: bool = True) -> tuple[Manifest, int]:
        self.number += 1
        place = f"chk-{self.number:08d}"
        file = self.storage.write(place, "p[0]", encode({"p": self.operator.snapshot(self.number)}))
        manifest = Manifest(self.number, "job", "periodic", 1, 2, {"p": 1}, (file,), place=place)
        if complete:
            self.storage.complete(place, manifest)
        else:
            self.storage.discard(place)
        return manifest, file.written

    def restored(
        self, manifest: Manifest, backend: Literal["memory", "disk"], parallelism: int
    ) -> dict[int, list[int]]:
        """What operators hold that begin from a checkpoint."""
        found: dict[int, list[int]] = {}
        for subtask in range(parallelism):
            operator = opened(subtask, parallelism, backend)
            operator.restore([self.storage.states(manifest, manifest.files[0])["p"]])
            count, keys = operator.query_keys(10**6)
            assert count == len(keys)
            for key in keys:
                state = operator.query(key)
                assert state is not None
                found[int(str(key["k"]))] = state["items"]  # type: ignore[assignment]
            operator.close()
        return found

    def close(self) -> None:
        self.operator.close()
        self.storage.close()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    monkeypatch.setattr(states_on_disk, "RESIDENT_MAX", 500)
    store = Store(tmp_path)
    yield store
    store.close()


def test_a_checkpoint_of_state_on_disk_writes_what_has_changed(store: Store, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    store.add(range(30_000))
    whole = store.checkpoint()[1]
    assert whole > 6 * MB
    for _ in range(3):
        store.add(rng.choice(30_000, 300, replace=False).tolist())
        manifest, written = store.checkpoint()
        assert written < 0.05 * whole
    store.add(range(40_000, 40_100))
    store.checkpoint(complete=False)  # what it would have held is in the next one
    manifest, written = store.checkpoint()
    assert written < 0.05 * whole
    assert len(manifest.files[0].parts) == 5
    assert store.restored(manifest, "disk", 2) == store.held
    table = wb.Snapshot.open(tmp_path / manifest.place).operator_state("p")
    assert dict(zip(table.column("k").to_pylist(), table.column("items").to_pylist(), strict=True)) == store.held


@pytest.mark.parametrize("backend", ["memory", "disk"])
def test_state_on_disk_that_is_gone_stays_gone(store: Store, tmp_path: Path, backend: Any) -> None:
    store.add(range(1, 3_000))
    store.checkpoint()
    store.clear(range(1, 3_000, 7))
    manifest, _ = store.checkpoint()
    assert len(manifest.files[0].parts) == 2
    assert store.restored(manifest, backend, 1) == store.held
    table = wb.Snapshot.open(tmp_path / manifest.place).operator_state("p")
    assert sorted(table.column("k").to_pylist()) == sorted(store.held)
    store.add([8])
    assert store.restored(store.checkpoint()[0], backend, 3) == store.held


def test_a_large_table_with_columns_that_need_no_memory_is_written() -> None:
    nothing = pa.array([None, None], pa.string())
    texts = pa.array(["x" * 1_000_000, "y"])
    table = pa.table({"text": texts, "nothing": nothing, "empty": pa.array(["", ""]), "again": nothing})
    assert decode(encode({"p": {"rows": table}}).join(), "f")["p"]["rows"].equals(table)
