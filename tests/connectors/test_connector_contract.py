"""Each connector and the example in the docs pass the contract of their kind, and the contract finds planted bugs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from databases import query

import workbench as wb
from workbench.connectors.contract.base import Fetched, Sink, Source, SourceReader, WaitUntil
from workbench.connectors.files.file_source import FileSource
from workbench.connectors.live.generator_source import GeneratorSource
from workbench.connectors.live.socket_source import SocketSource
from workbench.connectors.replay.log import ReplayLog
from workbench.connectors.replay.source import ReplaySource
from workbench.connectors.tables.table_source import TableSource
from workbench.errors import PlanError
from workbench.lab.connectors import SINK_SCHEMA, ContractError, check_kills, check_sink, check_source
from workbench.operators.contract.base import Snapshot

DOCS = Path(__file__).parents[2] / "docs" / "connectors.md"
EXAMPLE_LINES_MAX = 60
TABLE = pa.table({"n": list(range(20)), "t": pa.array(range(20), pa.timestamp("us"))})


def example() -> dict[str, Any]:
    """What the code of the docs defines."""
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL):
        assert sum(bool(line.strip()) for line in code.splitlines()) <= EXAMPLE_LINES_MAX
        exec(compile(code, str(DOCS), "exec"), names)
    return names


# our own -------------------------------------------------------------------------------------------------------------


def files_of(kind: str, folder: Path) -> Source:
    for number in range(3):
        rows, name = TABLE.slice(number * 7, 7), folder / f"{number}.{kind}"
        if kind == "parquet":
            pq.write_table(rows, name, row_group_size=3)
        elif kind == "csv":
            pc.write_csv(rows, name)
        else:
            name.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows.to_pylist()))
    return FileSource(folder, TABLE.schema, event_time="t")


def lenient(folder: Path) -> Source:
    lines = [f'{{"n": {n}}}\n' if n % 4 else f'nonsense\n{{"n": {n}}}\n' for n in range(20)]
    for number in range(2):
        (folder / f"{number}.json").write_text("".join(lines[number * 10 : number * 10 + 10]))
    return FileSource(folder, pa.schema({"n": pa.int64()}), on_error="dead_letter")


def replayed(folder: Path) -> Source:
    wb.History.from_arrow(TABLE, folder / "log", event_time="t", arrival_time="t", progress=False)
    return ReplaySource(ReplayLog.open(folder / "log"))


def generated(folder: Path) -> Source:
    def rows(first: int, n: int) -> pa.RecordBatch:
        return TABLE.slice(first, n).combine_chunks().to_batches()[0]

    return GeneratorSource(rows, TABLE.schema, event_time="t", limit=20)


SOURCES: dict[str, Callable[[Path], Source]] = {
    "table": lambda folder: TableSource(TABLE, event_time="t"),
    "generator": generated,
    "parquet": lambda folder: files_of("parquet", folder),
    "csv": lambda folder: files_of("csv", folder),
    "json": lambda folder: files_of("json", folder),
    "lenient json": lenient,
    "replay": replayed,
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_loses_and_repeats_nothing_at_any_record(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    assert check_source(source, TABLE.select(source.schema.names).cast(source.schema)) == 3 * 21 + 20


SINKS: dict[str, Callable[[Path, int], Sink]] = {
    "parquet": lambda folder, n: wb.ParquetSink(folder / str(n)),
    "json": lambda folder, n: wb.FileSink(folder / str(n), format="json"),
    "sqlite": lambda folder, n: wb.SqlSink(f"sqlite:///{folder}/{n}.db", "numbers"),
    "sqlite by key": lambda folder, n: wb.SqlSink(f"sqlite:///{folder}/{n}.db", "numbers", upsert_key="key"),
    "duckdb": lambda folder, n: wb.SqlSink(f"duckdb:///{folder}/{n}.db", "numbers"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SINKS)
def test_a_sink_keeps_its_guarantee_at_any_record(name: str, tmp_path: Path) -> None:
    """DuckDB opens a file in a tenth of a second: it gets one row less, and the crashes in which subtasks change."""
    fenced = name.startswith(("sqlite", "duckdb"))
    rows, parallelism, crashes = (1, [(2, 3)], 72) if name == "duckdb" else (2, [(1, 1), (2, 3)], 216)
    found = check_sink(lambda n: SINKS[name](tmp_path, n), rows=rows, parallelism=parallelism, fenced=fenced)
    assert found == crashes


def test_a_sink_keeps_its_guarantee_at_any_moment(tmp_path: Path) -> None:
    make = SINKS["parquet"]
    assert check_sink(lambda n: make(tmp_path, n), rows=1, parallelism=[(2, 3)]) == 72


# the example of the docs ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_example_of_the_docs_keeps_its_contract(tmp_path: Path) -> None:
    names = example()
    names["test_source"]()
    names["test_sink"](tmp_path)


def test_the_example_of_the_docs_runs_in_a_job(tmp_path: Path) -> None:
    names = example()
    schema = pa.schema({"n": pa.int64()})
    source = names["LogSource"](lambda part, at, count: names["LOG"][part][at : at + count], 4, schema)
    sink = names["EpochFiles"](tmp_path)
    job = wb.Stream.from_source(source).sink_to(sink).run("docs", parallelism=2)
    while job.metrics() is None or len(sink.committed()) < 20:
        job.checkpoint()
    job.stop()
    assert sorted(sink.committed()) == sorted((row["n"],) for rows in names["LOG"] for row in rows)


def test_what_is_no_source_is_refused() -> None:
    with pytest.raises(PlanError, match=r"source is 'orders': pass a connector, or an object of your own subclass"):
        wb.Stream.from_source("orders")  # type: ignore[arg-type]


THREE_CHECKPOINTS = 5
"""A seed whose first process is killed after three of them."""
PROGRAM = """
import pyarrow as pa
import workbench as wb
table = pa.table({"n": list(range(4_000))})

def pipeline(folder):
    numbers = wb.Stream.from_table(table, rate=4_000)
    return (
        numbers.rebalance().sink_to(wb.ParquetSink(folder / "numbers"))
        + numbers.rebalance().sink_to(wb.SqlSink(f"sqlite:///{folder}/a.db", "numbers"))
    )
"""


@pytest.mark.slow
def test_killed_processes_lose_and_double_no_row(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = check_kills(program, tmp_path, kills=3)
    assert ended == [
        "parallelism 2: killed",
        "parallelism 3: killed",
        "parallelism 1: killed",
        "parallelism 2: FINISHED",
    ]
    assert sorted(n for (n,) in query(f"sqlite:///{tmp_path}/a.db", "SELECT n FROM numbers")) == list(range(4_000))
    assert sorted(pq.read_table(tmp_path / "numbers")["n"].to_pylist()) == list(range(4_000))


@pytest.mark.slow
def test_a_process_that_ends_before_its_kill_is_no_proof(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace(", rate=4_000", "").replace("4_000", "4"))
    with pytest.raises(ContractError, match="process 0 had finished before it could be killed"):
        check_kills(program, tmp_path, seed=THREE_CHECKPOINTS)
    program.write_text("def pipeline(folder):\n    raise KeyError('lost')\n")
    with pytest.raises(ContractError, match="process 0 at parallelism 2 failed: KeyError: 'lost'"):
        check_kills(program, tmp_path)


# planted bugs --------------------------------------------------------------------------------------------------------


def test_a_source_without_positions_is_refused() -> None:
    with pytest.raises(ContractError, match="is not resettable"):
        check_source(SocketSource("localhost", 9), 1)


def log_with(change: Callable[[type], None], schema: pa.Schema | None = None) -> Source:
    """The docs' source with a bug: a reader changed by a function."""
    names = example()
    change(names["LogReader"])
    log = names["LOG"]
    found = names["LogSource"](lambda part, at, n: log[part][at : at + n], 4, schema or pa.schema({"n": pa.int64()}))
    return cast("Source", found)


def skips(reader: Any) -> None:
    whole = reader.restore

    def restore(self: Any, snapshots: Sequence[Snapshot]) -> None:
        whole(self, snapshots)
        self.offsets = {part: offset + (offset == 3) for part, offset in self.offsets.items()}

    reader.restore = restore


def shares(reader: Any) -> None:
    def snapshot(self: Any) -> Snapshot:
        self.kept = getattr(self, "kept", {})
        return {"offsets": self.kept}

    whole = reader.poll

    def poll(self: Any, count: int) -> Any:
        found = whole(self, count)
        if hasattr(self, "kept"):
            self.kept.update({str(part): offset for part, offset in self.offsets.items()})
        return found

    reader.snapshot, reader.poll = snapshot, poll


def keeps_its_own(reader: Any) -> None:
    def restore(self: Any, snapshots: Sequence[Snapshot]) -> None:
        offsets = cast("dict[str, int]", snapshots[0]["offsets"])  # of one former subtask only
        self.offsets |= {int(part): offset for part, offset in offsets.items() if int(part) in self.offsets}

    reader.restore = restore


def returns_too_many(reader: Any) -> None:
    whole = reader.poll
    reader.poll = lambda self, count: whole(self, count + 1)


def names_another_split(reader: Any) -> None:
    whole = reader.poll

    def poll(self: Any, count: int) -> Any:
        found = whole(self, count)
        return Fetched(found.records, "nine") if isinstance(found, Fetched) else found

    reader.poll = poll


def goes_back_in_time(reader: Any) -> None:
    whole = reader.poll

    def poll(self: SourceReader, count: int) -> Any:
        found = whole(self, count)
        return found if isinstance(found, Fetched) else WaitUntil(0)

    reader.poll = poll


@pytest.mark.parametrize(
    ("bug", "message"),
    [
        (skips, r"after a crash at record \d+ .*, in the split '\d', 1 row is missing"),
        (shares, r"after a crash at record \d+ "),
        (keeps_its_own, r"restore at parallelism 3 instead of 2, in the split '1', 1 row is too many|more than 20"),
        (returns_too_many, "without a failure a reader returns 4 records where at most 3 were asked for"),
        (names_another_split, r"a reader returns the split 'nine', which is none of \['0', '1', '2', '3'\]"),
        (goes_back_in_time, "a reader waits until a time that is over"),
    ],
)
def test_a_planted_bug_of_a_source_is_found(bug: Callable[[type], None], message: str) -> None:
    with pytest.raises(ContractError, match=message):
        check_source(log_with(bug), 20)


def test_missing_records_of_a_source_are_found() -> None:
    with pytest.raises(ContractError, match="without a failure there are 20 records and not 21"):
        check_source(TableSource(TABLE), 21)
    with pytest.raises(ContractError, match="without a failure there are 20 records and not 19"):
        check_source(TableSource(TABLE), 19)
    other = TABLE.set_column(0, "n", pa.array([99, *range(1, 20)]))
    with pytest.raises(ContractError, match=r"without a failure 1 row is missing .*99.* and 1 row is too many"):
        check_source(TableSource(TABLE), other)


def publishes_early(writer: Any) -> None:
    whole = writer.snapshot

    def snapshot(self: Any, checkpoint_id: int) -> Snapshot:
        found: Snapshot = whole(self, checkpoint_id)
        for name, rows in self.pending.items():
            self.publish(name, rows)
        return found

    writer.snapshot = snapshot


def publishes_nothing_again(writer: Any) -> None:
    writer.restore = lambda self, snapshots: None


def publishes_under_new_names(writer: Any) -> None:
    whole = writer.publish
    writer.publish = lambda self, name, rows: whole(self, f"{name}-{len(list(self.folder.iterdir()))}", rows)


def forgets_the_pending(writer: Any) -> None:
    whole = writer.snapshot

    def snapshot(self: Any, checkpoint_id: int) -> Snapshot:
        found = dict(whole(self, checkpoint_id))
        return {**found, "pending": {}}

    writer.snapshot = snapshot


@pytest.mark.parametrize(
    ("bug", "message"),
    [
        (publishes_early, r"a reader sees \(\d, \d\), before its checkpoint is complete"),
        (publishes_nothing_again, r"crashed when the checkpoint is written at record \d.* missing"),
        (publishes_under_new_names, r"rows? (is|are) too many"),
        (forgets_the_pending, r"crashed when the checkpoint is written at record \d.* missing"),
    ],
)
def test_a_planted_bug_of_a_sink_is_found(bug: Callable[[type], None], message: str, tmp_path: Path) -> None:
    names = example()
    bug(names["EpochWriter"])
    with pytest.raises(ContractError, match=message):
        check_sink(lambda number: names["EpochFiles"](tmp_path / str(number)), rows=2)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("check_restore", "a checkpoint that is older than the rows is restored"),
        ("check_fresh", "a job starts afresh where it has written rows"),
    ],
)
def test_a_sink_that_refuses_nothing_is_found(method: str, message: str, tmp_path: Path) -> None:
    sink = example()["EpochFiles"]
    setattr(sink, method, getattr(Sink, method))
    with pytest.raises(ContractError, match=message):
        check_sink(lambda number: sink(tmp_path / str(number)), rows=1, parallelism=[(1, 1)])


def test_a_sink_that_lets_a_stalled_process_write_is_found(tmp_path: Path) -> None:
    sink = example()["EpochFiles"]
    with pytest.raises(ContractError, match="after a process has stalled, was replaced, and committed"):
        check_sink(lambda number: sink(tmp_path / str(number)), rows=1, parallelism=[(1, 1)], fenced=True)


def test_two_holders_of_a_place_are_found(tmp_path: Path) -> None:
    class Nobody:
        def keep(self) -> None: ...

        def release(self) -> None: ...

    sink = example()["EpochFiles"]
    sink.hold = lambda self, context: Nobody()
    with pytest.raises(ContractError, match="two jobs hold the same place at a time"):
        check_sink(lambda number: sink(tmp_path / str(number)), rows=1, parallelism=[(1, 1)])


def test_the_rows_of_the_contract() -> None:
    assert SINK_SCHEMA.names == ["key", "value"]
