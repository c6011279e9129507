"""SqlSink: any reader of the database sees exactly the committed rows, whatever crashes when."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pytest
from databases import query
from hypothesis import given, settings
from sink_job import CRASH_POINTS, SCHEMA, NoOutput, SinkJob, crash_at, go_on, resolve

import workbench as wb
from workbench.clock import VirtualClock
from workbench.connectors.contract.base import SinkContext
from workbench.connectors.epochs import upsert as sql_upsert
from workbench.connectors.epochs.append import AppendLogic
from workbench.connectors.sql import duckdb as sql_duckdb
from workbench.connectors.sql.sink import SqlSink
from workbench.connectors.sql.table import SqlTable
from workbench.elements import Records
from workbench.errors import PlanError, SettingError, SinkError
from workbench.lab import simulate
from workbench.operators.contract.base import OperatorContext
from workbench.plan.guarantee import weakest_guarantee

ENGINES = ("sqlite", "duckdb")


def url(engine: str, folder: Path) -> str:
    return f"{engine}:///{folder / 'out.db'}"


def visible(address: str) -> list[int]:
    return sorted(value for (value,) in query(address, "SELECT value FROM numbers"))


def context(**values: Any) -> OperatorContext:
    return OperatorContext(job="j", uid="u", **values)


@pytest.mark.slow
@pytest.mark.parametrize("point", CRASH_POINTS)
@pytest.mark.parametrize(("engine", "parallelism"), [("sqlite", 1), ("sqlite", 2), ("sqlite", 3), ("duckdb", 3)])
def test_crash_points(tmp_path: Path, engine: str, point: str, parallelism: int) -> None:
    address = url(engine, tmp_path)
    job = SinkJob(SqlSink(address, "numbers"), None, parallelism=2)
    crash_at(point, job, lambda: visible(address), parallelism=parallelism, killed=True)
    go_on(job, lambda: visible(address), killed=True)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("ptwnck"), st.integers(0, 7)), max_size=25))
def test_any_order_of_checkpoints_notices_and_crashes(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[str, int]]
) -> None:
    address = url("sqlite", tmp_path_factory.mktemp("sql"))
    job = SinkJob(SqlSink(address, "numbers"), None, parallelism=2)
    for verb, number in story:
        match verb:
            case "p":
                job.process(number)
            case "t":
                job.trigger()
            case "w" if open_ids := [i for i in job.pending if i > job.completed]:
                job.write(open_ids[number % len(open_ids)], None if number < 5 else 1)
            case "n" if job.completed:
                job.notify(job.completed, only=lambda index, mask=number: bool(mask >> index & 1))  # type: ignore[misc]
            case "c" | "k":
                job.crash(parallelism=1 + number % 3, killed=verb == "k")
                assert visible(address) == list(range(job.completed_offset))
        seen = visible(address)
        assert len(set(seen)) == len(seen)
        assert all(value < job.completed_offset for value in seen)
    job.checkpoint()
    assert visible(address) == list(range(job.offset))


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_and_their_epoch_are_in_the_database_together(tmp_path: Path, engine: str) -> None:
    address = url(engine, tmp_path)
    job = SinkJob(SqlSink(address, "numbers"), None, parallelism=2)
    job.process(10)
    job.checkpoint()
    job.checkpoint()  # nothing new, so nothing is written
    assert sorted(query(address, "SELECT * FROM workbench_commits")) == [
        ("job/operator", "numbers", 0, 1, "first"),
        ("job/operator", "numbers", 1, 1, "first"),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_restore_behind_what_is_committed_is_refused(tmp_path: Path, engine: str) -> None:
    address = url(engine, tmp_path)
    job = SinkJob(SqlSink(address, "numbers"), None)
    for _ in range(3):
        job.process(4)
        job.checkpoint()
    with pytest.raises(SinkError, match="has rows of epoch 3, later than checkpoint 2 to restore"):
        job.restore(2)
    job.restore(3)
    assert visible(address) == list(range(12))


def test_a_fresh_start_behind_committed_rows_is_refused(tmp_path: Path) -> None:
    address = url("sqlite", tmp_path)
    sink = SqlSink(address, "numbers")
    job = SinkJob(sink, None)
    job.process(4)
    job.checkpoint()
    again = SinkJob(sink, None)
    with pytest.raises(SinkError, match="already holds rows of 'job/operator' up to epoch 1: resume the job"):
        again.process(1)
    with pytest.raises(SinkError, match="already holds rows"):
        sink.check_fresh(SinkContext("job", "operator", SCHEMA))
    sink.check_fresh(SinkContext("another", "operator", SCHEMA))  # may append to the same table
    assert visible(address) == [0, 1, 2, 3]


def test_a_job_that_goes_on_under_another_name_commits_nothing_twice(tmp_path: Path) -> None:
    address = url("sqlite", tmp_path)
    logic = SqlSink(address, "numbers").create(SCHEMA)
    logic.open(context())
    logic.process(Records(pa.record_batch([[1], [1]], schema=SCHEMA)), 0, NoOutput())
    snapshot = resolve(logic.snapshot(1))
    logic.notify_complete(1)
    renamed = SqlSink(address, "numbers").create(SCHEMA)
    renamed.open(OperatorContext(job="renamed", uid="u"))
    renamed.restore([snapshot])
    assert visible(address) == [1]
    assert resolve(renamed.snapshot(2))["writer"] == "j/u"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_commit_that_fails_leaves_nothing_behind(tmp_path: Path, engine: str) -> None:
    address = url(engine, tmp_path)
    query(address, "CREATE TABLE numbers (key BIGINT, value BIGINT CHECK (value < 7))")
    job = SinkJob(SqlSink(address, "numbers", create=False), None)
    job.process(5)
    job.checkpoint()
    job.process(5)
    with pytest.raises(SinkError, match=r"cannot write to the table 'numbers' of .*CHECK constraint"):
        job.checkpoint()
    assert visible(address) == [0, 1, 2, 3, 4]
    assert query(address, "SELECT epoch FROM workbench_commits") == [(1,)]


# types ---------------------------------------------------------------------------------------------------------------

INSTANT = dt.datetime(2026, 3, 29, 1, 30, 0, 250, tzinfo=dt.UTC)
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, None]),
    "small": (pa.int8(), [-8, None]),
    "big": (pa.int64(), [2**63 - 1, None]),
    "real": (pa.float64(), [0.1, None]),
    "text": (pa.string(), ['it\'s; "quoted" é', None]),
    "label": (pa.dictionary(pa.int32(), pa.string()), ["a", None]),
    "bytes": (pa.binary(), [b"\0\xff", None]),
    "day": (pa.date32(), [dt.date(2026, 2, 28), None]),
    "local time": (pa.timestamp("us"), [dt.datetime(2026, 3, 29, 2, 30), None]),
    "instant": (pa.timestamp("us", "Europe/Berlin"), [INSTANT, None]),
    "price": (pa.decimal128(20, 4), [Decimal("1234567890123456.7800"), None]),
    "nothing": (pa.null(), [None, None]),
}


def written(address: str) -> list[tuple[Any, ...]]:
    table = pa.table({name: pa.array(values, kind) for name, (kind, values) in COLUMNS.items()})
    job = wb.Stream.from_table(table).sink_to(wb.SqlSink(address, "types")).run("types")
    assert job.wait("120s") == "FINISHED", job.status()
    return query(address, "SELECT * FROM types ORDER BY flag IS NULL")


def test_types_in_sqlite(tmp_path: Path) -> None:
    address = url("sqlite", tmp_path)
    assert written(address) == [
        (
            *(1, -8, 2**63 - 1, 0.1, 'it\'s; "quoted" é', "a", b"\0\xff", "2026-02-28"),
            *("2026-03-29 02:30:00.000000", "2026-03-29 01:30:00.000250Z", "1234567890123456.7800", None),
        ),
        (None,) * 12,
    ]
    assert query(address, "SELECT strftime('%H:%M', instant), typeof(price) FROM types LIMIT 1") == [("01:30", "text")]


def test_types_in_duckdb(tmp_path: Path) -> None:
    address = url("duckdb", tmp_path)
    assert written(address)[0] == tuple(values[0] for _, values in COLUMNS.values())
    assert written_types(address) == [
        *("BOOLEAN", "TINYINT", "BIGINT", "DOUBLE", "VARCHAR", "VARCHAR", "BLOB", "DATE", "TIMESTAMP"),
        *("TIMESTAMP WITH TIME ZONE", "DECIMAL(20,4)", "INTEGER"),
    ]


def written_types(address: str) -> list[str]:
    return [row[1] for row in query(address, "DESCRIBE types")]


@pytest.mark.parametrize(
    ("engine", "kind"),
    [
        ("sqlite", pa.list_(pa.int64())),
        ("duckdb", pa.list_(pa.int64())),
        ("duckdb", pa.struct([("a", pa.int8())])),
        ("sqlite", pa.uint64()),
        ("duckdb", pa.decimal128(5, -2)),
        ("duckdb", pa.decimal256(50, 2)),
    ],
)
def test_what_has_no_column_type_is_refused_by_name(tmp_path: Path, engine: str, kind: pa.DataType) -> None:
    stream = wb.Stream.from_table(pa.table({"odd one": pa.nulls(1, kind)}))
    with pytest.raises(SinkError, match=f"{engine} has no column type for 'odd one', which is"):
        stream.sink_to(wb.SqlSink(url(engine, tmp_path), "t"))
    assert list(tmp_path.iterdir()) == []


# what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://ann:pa55@db/x", r"'mysql://\*\*\*@db/x' cannot be used: write sqlite:///path.db, duckdb"),
        ("postgresql://ann:pa55@db", r"'postgresql://\*\*\*@db' names no database: write postgresql://"),
        ("postgresql://ann:pa55@db:x/y", r"'postgresql://\*\*\*@db:x/y' cannot be used \(.*\): write postgresql://"),
        ("out.db", "'out.db' cannot be used"),
        ("sqlite:///:memory:", "would be lost with the process"),
        ("sqlite:///x.db?mode=ro", "cannot be used"),
        ("sqlite:///a%00b.db", "does not name a file: a path cannot have such characters"),
        ("duckdb:///a\ud800b.db", "does not name a file: a path cannot have such characters"),
    ],
)
def test_urls_that_cannot_be_used(address: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        wb.SqlSink(address, "t")


def test_a_path_that_the_system_does_not_take() -> None:
    sink = wb.SqlSink(f"sqlite:///{'x' * 300}.db", "t")
    with pytest.raises(SinkError, match=r"xxx cannot be a database file \(File name too long\): name another file"):
        sink.check(pa.schema([("n", pa.int64())]))


@pytest.mark.parametrize(
    "table",
    ["", "a b", 'x"; DROP TABLE y', "1st", "a" * 64, "a.", ".a", "a.b.c", '"a', '""', '"a\0"', f'"{"é" * 32}"', "a;b"],
)
def test_table_names_that_cannot_be_used(table: str) -> None:
    with pytest.raises(SettingError, match=r"the table name .* cannot be used: write letters"):
        wb.SqlSink("sqlite:///x.db", table)


def test_settings_that_do_not_go_together(tmp_path: Path) -> None:
    for name in ("workbench_commits", "workbench_owners", '"Workbench_owners"', "app.workbench_commits"):
        with pytest.raises(SettingError, match="because the workbench keeps its records in such"):
            wb.SqlSink("sqlite:///x.db", name)
    stream = wb.Stream.from_table(pa.table({"a": [1], "A": [2]}))
    with pytest.raises(SinkError, match="cannot tell the column 'A' from 'a'"):
        stream.sink_to(wb.SqlSink("sqlite:///x.db", "t"))
    with pytest.raises(PlanError, match="unknown key column 'b'"):
        stream.select("a").sink_to(wb.SqlSink("sqlite:///x.db", "t", upsert_key="b"))
    with pytest.raises(SinkError, match="is a folder"):
        stream.select("a").sink_to(wb.SqlSink(f"sqlite:///{tmp_path}", "t"))
    one = wb.SqlSink(url("sqlite", tmp_path), "t")
    same = wb.SqlSink(url("sqlite", tmp_path), "T")
    with pytest.raises(PlanError, match="two sinks write to"):
        (stream.select("a").sink_to(one) + stream.select("a").sink_to(same)).run("twice")


def test_a_duckdb_that_loses_commits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = wb.Stream.from_table(pa.table({"n": [1]}))
    stream.sink_to(wb.SqlSink("duckdb:///x.db", "t"))  # with the version that is installed
    monkeypatch.setattr(duckdb, "__version__", "2.0.1")
    with pytest.raises(PlanError, match=r"duckdb 2\.0\.1 can lose committed rows .* run 'pip install \"duckdb<2\"'"):
        stream.sink_to(wb.SqlSink("duckdb:///x.db", "t"))


def test_duckdb_is_needed_for_duckdb_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(sql_duckdb, "import_module", missing)
    stream = wb.Stream.from_table(pa.table({"a": [1]}))
    with pytest.raises(PlanError, match=r"needs the package duckdb: run 'pip install \"streaming-workbench\[sql\]\"'"):
        stream.sink_to(wb.SqlSink("duckdb:///x.db", "t"))
    stream.sink_to(wb.SqlSink("sqlite:///x.db", "t"))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_table_that_does_not_fit_is_refused_before_a_row_is_written(tmp_path: Path, engine: str) -> None:
    address = url(engine, tmp_path)
    missing = SqlSink(address, "numbers", create=False).create(SCHEMA)
    with pytest.raises(SinkError, match="cannot write to the table 'numbers'"):
        missing.open(context())
    query(address, "CREATE TABLE numbers (key BIGINT)")
    for sink in (SqlSink(address, "numbers"), SqlSink(address, "numbers", upsert_key="key")):
        with pytest.raises(SinkError, match="cannot write to the table 'numbers' of"):
            sink.create(SCHEMA).open(context())
    query(address, "ALTER TABLE numbers ADD COLUMN value BIGINT")
    SqlSink(address, "numbers").create(SCHEMA).open(context())
    with pytest.raises(SinkError, match="cannot write to the table 'numbers'"):  # no unique index on the key
        SqlSink(address, "numbers", upsert_key="key").create(SCHEMA).open(context())


# upserts -------------------------------------------------------------------------------------------------------------


def last_of_each(count: int) -> list[tuple[int, int]]:
    return sorted({value % 7: value for value in range(count)}.items())


@pytest.mark.parametrize("engine", ENGINES)
def test_upserts_converge_whatever_is_written_again(tmp_path: Path, engine: str) -> None:
    address = url(engine, tmp_path)
    job = SinkJob(SqlSink(address, "numbers", upsert_key="key"), None, parallelism=2)
    job.process(10)
    job.write(job.trigger())
    assert sorted(query(address, "SELECT * FROM numbers")) == last_of_each(10)  # not only when it is complete
    job.process(15)
    job.trigger()
    assert sorted(query(address, "SELECT * FROM numbers")) == last_of_each(25)
    job.crash(parallelism=3, killed=True)
    job.process(3)  # rows 10 to 12 come again, and with them what their keys had
    job.trigger()
    assert sorted(query(address, "SELECT * FROM numbers")) == sorted(
        {value % 7: value for value in [*range(25), 10, 11, 12]}.items()
    )
    job.process(20)
    job.trigger()
    assert sorted(query(address, "SELECT * FROM numbers")) == last_of_each(33)


def test_upserts_are_written_in_time_and_when_there_are_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address, clock = url("sqlite", tmp_path), VirtualClock(5_000_000)
    monkeypatch.setattr(sql_upsert, "FLUSH_ROWS", 3)
    logic = SqlSink(address, "numbers", upsert_key="key").create(SCHEMA)
    logic.open(context(clock=clock))
    assert logic.next_time_us() is None
    logic.process(Records(pa.record_batch([[1, 1], [10, 11]], schema=SCHEMA)), 0, NoOutput())
    assert logic.next_time_us() == 6_000_000
    assert query(address, "SELECT * FROM numbers") == []
    logic.on_time(6_000_000, NoOutput())
    assert query(address, "SELECT * FROM numbers") == [(1, 11)]
    assert logic.next_time_us() is None
    logic.process(Records(pa.record_batch([[2, 3, 4], [20, 30, 40]], schema=SCHEMA)), 0, NoOutput())
    assert query(address, "SELECT count(*) FROM numbers") == [(4,)]


def test_a_null_key_is_refused(tmp_path: Path) -> None:
    table = pa.table({"key": [1, None], "value": [1, 2]})
    sink = wb.SqlSink(url("sqlite", tmp_path), "numbers", upsert_key="key")
    job = wb.Stream.from_table(table).sink_to(sink).run("null-key", restart=wb.restart.no_restart())
    with pytest.raises(wb.errors.JobError, match="the key 'key' of a row for the table 'numbers' is null"):
        job.wait("120s")


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_a_key_that_is_no_number_is_one_in_duckdb_and_refused_in_sqlite(kind: pa.DataType, tmp_path: Path) -> None:
    nan = float("nan")
    table = pa.table({"key": pa.array([nan, 1.0, nan, -0.0, 0.0], kind), "value": [1, 2, 3, 4, 5]})

    def run(engine: str, name: str) -> wb.types.Job:
        sink = wb.SqlSink(url(engine, tmp_path / engine), "numbers", upsert_key="key")
        return wb.Stream.from_table(table).sink_to(sink).run(name, restart=wb.restart.no_restart())

    with pytest.raises(
        wb.errors.JobError, match=r"the column 'key' has nan \(\w+\), which SQLite would store as null: replace it"
    ):
        run("sqlite", "nan-key").wait("30s")
    assert run("duckdb", "nan-keys").wait("120s") == "FINISHED"
    assert sorted(query(url("duckdb", tmp_path / "duckdb"), "SELECT value FROM numbers")) == [(2,), (3,), (5,)]


def test_a_row_that_is_all_key(tmp_path: Path) -> None:
    address = url("sqlite", tmp_path)
    sink = wb.SqlSink(address, "seen", upsert_key="key")
    job = wb.Stream.from_table(pa.table({"key": ["a", "b", "a"]})).sink_to(sink).run("seen")
    assert job.wait("120s") == "FINISHED"
    assert sorted(query(address, "SELECT * FROM seen")) == [("a",), ("b",)]


# in a job ------------------------------------------------------------------------------------------------------------


def test_the_guarantees_are_told(tmp_path: Path) -> None:
    stream = wb.Stream.from_table(pa.table({"key": [1]}))
    append = stream.sink_to(wb.SqlSink(url("sqlite", tmp_path), "t"))
    upsert = stream.sink_to(wb.SqlSink(url("sqlite", tmp_path), "t", upsert_key="key"))
    assert weakest_guarantee(append.logical_graph())[0] == "exactly-once"
    guarantee, reason = weakest_guarantee(upsert.logical_graph())
    assert guarantee == "at-least-once"
    assert reason.startswith("the sink 't' writes the rows since the last checkpoint again after a failure: every key")
    with pytest.raises(PlanError, match="cannot keep exactly-once, only at-least-once: the sink 't' writes"):
        upsert.run("refused", guarantee="exactly-once")


@pytest.mark.parametrize("checkpoint_interval", ["20ms", None])
def test_the_tail_of_a_bounded_input_is_committed_in_every_sink(
    tmp_path: Path, checkpoint_interval: str | None
) -> None:
    table = pa.table({"key": [n % 7 for n in range(1000)], "value": list(range(1000))})
    stream = wb.Stream.from_table(table).rebalance().filter("value >= 0")
    keyed = wb.Stream.from_table(table).key_by("key").aggregate(last=wb.max("value"))
    pipeline = (
        stream.sink_to(wb.SqlSink(url("sqlite", tmp_path), "numbers"))
        + stream.sink_to(wb.SqlSink(f"duckdb:///{tmp_path}/out.duckdb", "numbers"))
        + keyed.sink_to(wb.SqlSink(url("sqlite", tmp_path), "latest", upsert_key="key"))
        + stream.sink_to(wb.TableSink("numbers-table"))
        + keyed.sink_to(wb.TableSink("latest-table", upsert_key=["key"]))
        + stream.sink_to(wb.ParquetSink(tmp_path / "parquet"))
        + stream.sink_to(wb.FileSink(tmp_path / "csv", format="csv"))
    )
    values = {} if checkpoint_interval is None else {"checkpoint_interval": checkpoint_interval}
    job = pipeline.run("tail", parallelism=2, **values)  # type: ignore[arg-type]
    assert job.wait("60s") == "FINISHED", job.status()
    numbers, latest = list(range(1000)), [(key, max(n for n in range(1000) if n % 7 == key)) for key in range(7)]
    assert visible(url("sqlite", tmp_path)) == numbers
    assert visible(f"duckdb:///{tmp_path}/out.duckdb") == numbers
    assert sorted(query(url("sqlite", tmp_path), "SELECT key, last FROM latest")) == latest
    assert sorted(job.table("numbers-table")["value"].to_pylist()) == numbers
    assert sorted(zip(*job.table("latest-table").to_pydict().values(), strict=True)) == latest
    parts = f"SELECT value FROM '{tmp_path}/parquet/part-*.parquet'"
    assert sorted(value for (value,) in duckdb.sql(parts).fetchall()) == numbers
    rows = Counter(value for (value,) in duckdb.sql(f"SELECT value FROM '{tmp_path}/csv/part-*.csv'").fetchall())
    assert rows == Counter(numbers)


def test_a_second_run_onto_the_same_rows_is_refused_before_it_starts(tmp_path: Path) -> None:
    pipeline = wb.Stream.from_table(pa.table({"n": [1]})).sink_to(wb.SqlSink(url("sqlite", tmp_path), "numbers"))
    assert pipeline.run("once", checkpoint_dir=tmp_path / "chk").wait("120s") == "FINISHED"
    with pytest.raises(SinkError, match="already holds rows of 'once/numbers' up to epoch 1"):
        pipeline.run("once", checkpoint_dir=tmp_path / "other")
    assert pipeline.run("once", checkpoint_dir=tmp_path / "chk", resume=True).wait("120s") == "FINISHED"
    assert query(url("sqlite", tmp_path), "SELECT n FROM numbers") == [(1,)]


# in the simulation ---------------------------------------------------------------------------------------------------


def test_crashes_at_any_point_lose_and_double_no_row() -> None:
    results = [simulate(seed, pipelines=["in a database"]) for seed in range(40)]
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.restarts + result.processes - 1 for result in results) > 10


@pytest.mark.parametrize("bug", ["forgets", "early", "unnoted"])
def test_the_simulation_finds_a_sink_that_breaks_its_promise(monkeypatch: pytest.MonkeyPatch, bug: str) -> None:
    def forgets(self: SqlTable, connection: Any, writer: str) -> dict[int, tuple[int, str]]:
        return {}  # commits again what is committed

    def early(self: AppendLogic, checkpoint_id: int) -> Any:
        snapshot = taken(self, checkpoint_id)
        self.notify_complete(checkpoint_id)  # before the checkpoint is complete
        return snapshot

    def unnoted(self: AppendLogic, checkpoint_id: int) -> Any:
        return {name: piece for name, piece in taken(self, checkpoint_id).items() if not name.startswith("rows-")}

    taken = AppendLogic.snapshot
    if bug == "forgets":
        monkeypatch.setattr(SqlTable, "_notes", forgets)
    else:
        monkeypatch.setattr(AppendLogic, "snapshot", early if bug == "early" else unnoted)
    assert any(not simulate(seed, pipelines=["in a database"]).ok for seed in range(150))
