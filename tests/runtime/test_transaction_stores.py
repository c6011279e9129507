"""The stores of transactions: memory, SQLite and a real PostgreSQL have the same content, and survive what they promise
to."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from databases import query
from postgresql_server import running
from unwatched import run_until, wait

import workbench as wb
from workbench.api.job.job import Job
from workbench.elements import Records, Watermark, WatermarkStatus
from workbench.runtime.barriers.transactions import store_at
from workbench.runtime.transactions.cells import Cell, row_of
from workbench.runtime.transactions.memory_store import MemoryStore
from workbench.runtime.transactions.sql_store import SqlStore
from workbench.runtime.transactions.store import FencedWriteError, Origin, Production, Row, Store, Write

ROWS, KEYS = 28, 3


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("server").url)
    return f"sqlite:///{tmp_path}/store.db"


OPENED: list[SqlStore] = []


@pytest.fixture(autouse=True)
def _stores_are_closed() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().end()


def opened(url: str, rows: str = "rows", owner: str = "first") -> SqlStore:
    store = SqlStore(store_at(url))
    OPENED.append(store)
    store.open(rows, owner)
    return store


def begun(store: Store, *ranges: str) -> dict[str, int]:
    tokens = {name: store.claim(name) for name in ranges}
    store.begin([Write(name, token) for name, token in tokens.items()], Origin("plan", 4))
    return tokens


# the same as memory --------------------------------------------------------------------------------------------------


def random_writes(chance: Random) -> Iterator[Write]:
    """Writes as a task makes them: ids rise, and what is acknowledged was produced before."""
    produced, taken = {"x": 0, "y": 0}, {"p": 0, "q": 0}
    for number, step in enumerate(range(30), 1):
        productions = []
        for channel in produced:
            element: Any = chance.choice(
                [
                    Records(pa.record_batch({"n": range(step, step + 3), "s": ["é", None, "c"]}), np.arange(3) + step),
                    Records(pa.record_batch({"n": [step]})),
                    Watermark(step - 2**60),
                    WatermarkStatus(bool(step % 2)),
                ]
            )
            productions.append(Production(channel, produced[channel], element))
            produced[channel] += len(element) if isinstance(element, Records) else 1
        runs = []
        for channel in taken:
            skipped = chance.choice((0, 0, 2))
            runs.append((channel, taken[channel] + skipped, 2))
            taken[channel] += skipped + 2
        yield Write(
            "a[0]",
            0,
            states={chance.choice(("one", "two")): bytes([step])},
            facts=chance.choice((None, {"links": {"one": step}, "ids": dict(produced)})),
            taken=runs,
            past={"p": chance.randrange(taken["p"])} if step % 3 == 0 else {},
            productions=productions,
            acknowledged={"x": chance.randrange(produced["x"])},
            rows=[("sink", number, Records(pa.record_batch({"n": [step]})))],
            flushed=[("sink", step, number)] if step % 5 == 0 else [],
            written={"sink": number - 4} if number > 4 else {},
        )


def plain(row: Row) -> Any:
    def told(element: Any) -> Any:
        if not isinstance(element, Records):
            return element
        times = element.timestamps
        return element.batch.to_pydict(), None if times is None else times.tolist()

    productions = sorted((each.channel, each.first, told(each.element)) for each in row.productions)
    rows = [(uid, number, told(records)) for uid, number, records in row.rows]
    taken = {channel: list(map(tuple, runs)) for channel, runs in row.taken.items()}
    return row.states, row.facts, taken, productions, rows, row.flushed


def test_a_database_holds_what_memory_holds(url: str) -> None:
    memory, database = MemoryStore(), opened(url, "same")
    for store in (memory, database):
        begun(store, "a[0]", "b[0]")
    for write in random_writes(Random(7)):
        for store in (memory, database):
            token = store.row("a[0]").token
            store.write(Write(**{name: getattr(write, name) for name in Write.__slots__} | {"token": token}))
        assert plain(database.row("a[0]")) == plain(memory.row("a[0]"))
        assert database.taken("a[0]", "q") == memory.taken("a[0]", "q")
    for store in (memory, database):
        assert [store.knows(each) for each in (0, 5, 6)] == [True, True, False]
        assert store.origin == Origin("plan", 4)
    assert database.row("b[0]").states == {}
    database.end()
    assert opened(url, "same").origin is None


# fences --------------------------------------------------------------------------------------------------------------


def test_the_token_is_compared_in_the_write(url: str) -> None:
    store = opened(url, "fenced")
    old = begun(store, "a[0]", "b[0]")
    new = store.claim("a[0]")
    with pytest.raises(FencedWriteError, match=f"a.0. wrote with the sequencer {old['a[0]']}, but {new} owns its keys"):
        store.write(Write("a[0]", old["a[0]"], states={"one": b"zombie"}))
    assert store.row("a[0]").states == {}
    store.write(Write("a[0]", new, states={"one": b"state"}))
    store.write(Write("b[0]", old["b[0]"], states={"two": b"state"}))
    assert store.row("a[0]").states == {"one": b"state"}
    store.end()


def test_a_process_that_wakes_up_can_neither_write_nor_take_its_ranges_back(url: str) -> None:
    zombie = opened(url, "process", "first")
    old = begun(zombie, "a[0]")
    successor = opened(url, "process", "second")
    assert successor.origin == Origin("plan", 4)
    new = successor.claim("a[0]")
    with pytest.raises(FencedWriteError):
        zombie.write(Write("a[0]", old["a[0]"], states={"one": b"zombie"}))
    for act in (lambda: zombie.claim("a[0]"), lambda: zombie.begin([], Origin("other"))):
        with pytest.raises(wb.errors.CheckpointError, match="another process continues this job") as raised:
            act()
        assert "pa55word" not in str(raised.value)
    zombie.end()  # and it forgets nothing that is not its own
    successor.write(Write("a[0]", new, states={"one": b"state"}))
    assert successor.row("a[0]").states == {"one": b"state"}
    successor.end()


def test_jobs_share_a_database(url: str) -> None:
    one, other = opened(url, "one"), opened(url, "other")
    begun(one, "a[0]")
    token = begun(other, "a[0]")["a[0]"]
    other.write(Write("a[0]", token, states={"x": b"other"}))
    assert one.row("a[0]").states == {}
    one.end()
    assert other.row("a[0]").states == {"x": b"other"}
    other.end()


@pytest.mark.parametrize(
    "cell",
    [
        Cell("taken", "p", 0, b'[["a", 2]]'),
        Cell("facts", "", 0, b'{"links": {"a": "late"}, "ids": {}}'),
        Cell("production", "x", 3, b"nothing"),
        Cell("production", "x", 3, b'{"watermark": true}'),
        Cell("row", "sink", 1, b'{"idle": true}'),
        Cell("flushed", "sink", 1, b"[]"),
    ],
)
def test_a_cell_that_someone_else_has_written_is_refused(cell: Cell) -> None:
    with pytest.raises(wb.errors.CorruptCheckpointError, match=f"the store holds a {cell.kind} .* cannot be read"):
        row_of([cell])


# jobs ----------------------------------------------------------------------------------------------------------------


def counts() -> wb.types.Pipeline:
    table = pa.table({"n": range(ROWS), "key": [n % KEYS for n in range(ROWS)]})
    counted = wb.Stream.from_table(table, rate=1_000).key_by("key").aggregate(n=wb.count())
    return counted.rebalance().sink_to(wb.TableSink("out"))


def stepped(url: str, folder: Path, name: str = "job", **more: Any) -> Job:
    settings = {"fault_tolerance": wb.transactions(store=url, coalesce=5), "checkpoint_interval": "20ms", **more}
    return counts().run(name, driver="stepping", checkpoint_dir=folder, resume=True, **settings)


def advance(job: Job, records: int) -> None:
    driver: Any = job.stepper.driver
    read = lambda: sum(source.root.counters.numRecordsIn for source in driver.execution.sources)  # noqa: E731
    run_until(job, lambda: read() >= records)


def vanish(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process is gone: nobody tells the store, and the directory is free."""
    with monkeypatch.context() as patch:
        patch.setattr(SqlStore, "end", lambda self: self._database.close())
        job.cancel()


def recoveries(job: Job) -> list[str]:
    frame = job.recorder.latest()
    assert frame is not None
    return [event.text for event in frame.events if event.kind == "recovery"]


def check(job: Job) -> None:
    assert wait(job) == "FINISHED"
    check_table(job)


def check_table(job: Job) -> None:
    rows = Counter((row["key"], row["n"]) for row in job.table().to_pylist())
    assert rows == Counter((n % KEYS, n // KEYS + 1) for n in range(ROWS))


@pytest.mark.parametrize("records", [3, 20])
def test_another_process_continues_from_the_last_transactions(
    records: int, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = stepped(url, tmp_path / "job")
    advance(job, records)
    vanish(job, monkeypatch)
    again = stepped(url, tmp_path / "job")
    again.stepper.step(1)
    assert any("continued from the last transaction" in text for text in recoveries(again))
    driver: Any = again.stepper.driver
    assert driver.master.restores == 0
    check(again)
    done = stepped(url, tmp_path / "job")  # what has ended is not continued
    assert not any("last transaction" in text for text in recoveries(done))
    check(done)


@pytest.mark.parametrize("between", ["snapshots", "a savepoint", "another parallelism", "another store"])
def test_rows_that_do_not_continue_the_checkpoints_are_not_used(
    between: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = f"sqlite:///{tmp_path}/store.db", tmp_path / "job"
    job = stepped(url, folder)
    advance(job, 10)
    job.savepoint("early")
    advance(job, 20)
    vanish(job, monkeypatch)
    if between == "snapshots":
        other = stepped(url, folder, fault_tolerance="snapshots")
        advance(other, 2)
        other.cancel()
    elif between == "another store":
        other = stepped(f"sqlite:///{tmp_path}/other.db", folder)
        advance(other, 2)
        vanish(other, monkeypatch)
    more: dict[str, Any] = {"parallelism": 2} if between == "another parallelism" else {}
    more |= {"resume": False, "restore": "early"} if between == "a savepoint" else {}
    settings: dict[str, Any] = {
        "fault_tolerance": wb.transactions(store=url, coalesce=5),
        "checkpoint_interval": "20ms",
    }
    again = counts().run("job", driver="stepping", checkpoint_dir=folder, **{"resume": True, **settings, **more})
    again.stepper.step(1)
    assert not any("last transaction" in text for text in recoveries(again))
    check(again)
    left = query(url, "SELECT count(*) FROM workbench_store_cells")[0][0]
    assert (left > 0) == (between == "another store")  # it has forgotten where else it has been


def test_a_database_that_goes_away_costs_an_attempt_and_no_record(server: Any, tmp_path: Path) -> None:
    job = counts().run(
        "away",
        fault_tolerance=wb.transactions(store=server.url),
        checkpoint_interval="100ms",
        restart="fixed-delay:attempts=50,delay=50ms",
    )
    server.crash()
    server.start()
    assert job.wait() == "FINISHED"
    check_table(job)
    assert "pa55word" not in str(job.status()) + repr(job._run.master.settings)
    assert job.status()["fault_tolerance"].startswith("transactions:coalesce=1,strong=true,store=postgresql://***@/")


def test_the_password_is_used_and_never_shown(server: Any) -> None:
    policy = wb.transactions(store=server.url)
    assert "pa55word" not in f"{policy} {policy!r}"
    job = counts().run("secret", fault_tolerance=policy, at_end="hold")
    job.tune(coalesce=9)
    assert job._run.master.settings.policy.transactions.store.address == server.url  # type: ignore[union-attr]
    assert "pa55word" not in str(job.status())
    job.stop()


@pytest.mark.parametrize(
    ("store", "message"),
    [
        ("postgres", "store is 'postgres': write 'memory', 'sqlite:///transactions.db'"),
        ("duckdb:///a.db", "the database URL 'duckdb:///a.db' cannot be used: write sqlite"),
        ("sqlite:///:memory:", "would be lost with the process"),
        ("postgresql://ann:pa55word@host", r"'postgresql://\*\*\*@host' names no database"),
        (5, "store is 5"),
    ],
)
def test_what_is_no_store_is_refused(store: Any, message: str) -> None:
    with pytest.raises(wb.errors.SettingError, match=message):
        wb.transactions(store=store)


def test_a_store_that_cannot_be_used_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_bytes(b"not a database" * 100)
    with pytest.raises(wb.errors.SinkError, match=r"cannot open a store of sqlite:///.*no.db: file is not a database"):
        counts().run("refused-transaction-stores", fault_tolerance=wb.transactions(store=f"sqlite:///{tmp_path}/no.db"))
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE workbench_store_jobs (x)")
    with pytest.raises(wb.errors.SinkError, match=r"no such column|has no column"):
        counts().run(
            "refused-transaction-stores", fault_tolerance=wb.transactions(store=f"sqlite:///{tmp_path}/other.db")
        )
    assert "refused-transaction-stores" not in wb.jobs()
