"""Rows with flags of their own as a changelog with a key, sources that give changes, and the engine's names."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from rescaled import rescaled

import workbench as wb
from workbench.api.streams.changelogs import upsert_key
from workbench.connectors.tables.table_source import TableSource
from workbench.errors import JobError, PlanError, QueryError, WorkbenchError
from workbench.operators.changelogs.row_kinds import FIELD, KIND, NAMES

PEOPLE = pa.table(
    {"op": ["I", "I", "U", "D", "I"], "id": [1, 2, 1, 2, 3], "name": ["a", "b", "a2", None, "c"]},
)


def changes(stream: wb.Stream, **settings: Any) -> list[tuple[Any, ...]]:
    """Each change, as its kind and its values."""
    seen: list[tuple[Any, ...]] = []

    def note(batch: pa.RecordBatch) -> None:
        seen.extend((NAMES[row.pop(KIND)], *row.values()) for row in batch.to_pylist())

    job = stream.sink_to(wb.CallbackSink(note)).run("changes", **settings)
    assert job.wait("60s") == "FINISHED"
    return seen


def people(*rows: tuple[Any, int, str | None], **more: Any) -> wb.Stream:
    ops, ids, names = zip(*rows, strict=True)
    return wb.Stream.from_table(pa.table({"op": ops, "id": ids, "name": names}), **more).with_parallelism(1)


def test_each_row_changes_the_row_of_its_key() -> None:
    stream = wb.Stream.from_table(PEOPLE).with_parallelism(1).as_changelog("id")
    assert stream.columns == ["id", "name", KIND]
    assert upsert_key(stream._end) == ("id",)
    assert changes(stream, buffer_size=1) == [
        ("+I", 1, "a"),
        ("+I", 2, "b"),
        ("-U", 1, "a"),
        ("+U", 1, "a2"),
        ("-D", 2, "b"),
        ("+I", 3, "c"),
    ]


def test_a_batch_changes_a_key_at_most_once() -> None:
    assert changes(wb.Stream.from_table(PEOPLE).with_parallelism(1).as_changelog("id")) == [
        ("+I", 1, "a2"),
        ("+I", 3, "c"),
    ]


def test_rows_out_of_turn_leave_the_table_that_they_describe() -> None:
    stream = people(
        ("D", 1, None),  # of a key that nobody added
        ("U", 2, "first"),  # an update without a former row
        ("I", 2, "again"),
        ("I", 2, "again"),  # comes twice
        ("UPDATE_BEFORE", 3, "x"),
        ("update_after", 3, "y"),
        ("-U", 3, "y"),
    )
    assert changes(stream.as_changelog("id"), buffer_size=1) == [
        ("+I", 2, "first"),
        ("-U", 2, "first"),
        ("+U", 2, "again"),
        ("+I", 3, "y"),
        ("-D", 3, "y"),
    ]


@pytest.mark.parametrize(
    ("flag", "there"),
    [(flag, True) for flag in ("+I", "i", "Insert", "c", "CREATE", "r", "read", "+U", "u", "update", "UPDATE_AFTER")]
    + [(flag, False) for flag in ("-U", "update_before", "-D", "d", "DELETE")],
)
def test_the_usual_flags(flag: str, there: bool) -> None:
    table = people(("I", 1, "old"), (flag, 1, "new")).as_changelog("id").collect()
    assert table["name"].to_pylist() == (["new"] if there else [])


def test_flags_with_a_meaning_of_their_own() -> None:
    mine = people((1, 7, "a"), (4, 7, "b"), (2, 8, "c"), (1, 8, None), (2, 9, "d"))
    kinds: Any = {1: "-D", 2: "+I", 3: "-U", 4: "+U"}  # SQL Server's __$operation
    assert mine.as_changelog("id", kinds=kinds).collect().to_pylist() == [
        {"id": 7, "name": "b"},
        {"id": 9, "name": "d"},
    ]
    gone = people((False, 7, "a"), (True, 7, "a"), (False, 8, "b"))
    assert gone.as_changelog("id", kinds={True: "-D", False: "+U"}).collect().to_pylist() == [{"id": 8, "name": "b"}]
    with pytest.raises(JobError, match="the flag op is 'I' on record"):  # the usual ones are not known then
        people(("N", 1, "a"), ("I", 2, "b")).as_changelog("id", kinds={"N": "+I"}).collect()


def test_an_unknown_flag_fails_with_its_row_or_becomes_a_dead_letter() -> None:
    rows = (("I", 1, "a"), ("X", 2, "b"), (None, 3, "c"), ("U", 1, "a2"))
    with pytest.raises(JobError, match=r"the flag op is 'X' on record \{'op': 'X', 'id': 2, 'name': 'b'\}.*'\+I'"):
        people(*rows).as_changelog("id").collect()
    stream = people(*rows).as_changelog("id", on_error="dead_letter")
    pipeline = stream.sink_to(wb.TableSink("people")) + stream.dead_letters().sink_to(wb.TableSink("odd"))
    job = pipeline.run("odd-flags")
    assert job.wait("60s") == "FINISHED"
    assert job.table("people").to_pylist() == [{"id": 1, "name": "a2"}]
    odd = [(row["key"], json.loads(row["record"])["op"]) for row in job.table("odd").to_pylist()]
    assert odd == [("2", "X"), ("3", None)]


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda rows: rows.as_changelog("id", op="flag"), "unknown column 'flag'"),
        (lambda rows: rows.as_changelog("id", op="id"), "the column 'id' holds the flags"),
        (lambda rows: rows.as_changelog("nobody"), "nobody"),
        (lambda rows: rows.as_changelog([]), "as_changelog has no key"),
        (lambda rows: rows.as_changelog("name", op="id"), "the column 'id' is int64, and only text has flags"),
        (lambda rows: rows.as_changelog("name", op="id", kinds={"I": "+I"}), "kinds has the flags 'I'"),
        (lambda rows: rows.as_changelog("id", kinds={"I": "add"}), r"kinds\['I'\] is 'add'"),
        (lambda rows: rows.as_changelog("id", kinds={}), "kinds is"),
        (lambda rows: rows.as_changelog("id", kinds={None: "+I"}), "kinds has the flag None"),
        (lambda rows: rows.as_changelog("id", on_error="skip"), "unknown on_error 'skip'"),
        (lambda rows: rows.as_changelog("id").as_changelog("id", op="name"), "a changelog already"),
        (lambda rows: rows.as_changelog("id").map(dict, schema={"n": pa.int64()}), "map cannot follow a changelog"),
    ],
)
def test_flags_that_cannot_be_read_are_refused(made: Callable[[wb.Stream], wb.Stream], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        made(wb.Stream.from_table(PEOPLE))


def test_groups_joins_and_a_database_follow_the_table(tmp_path: Path) -> None:
    rows = wb.Stream.from_table(PEOPLE).with_parallelism(1).as_changelog("id")
    towns = wb.Stream.from_table(pa.table({"id": [1, 2, 3], "town": ["Rome", "Oslo", "Rome"]}))
    file = tmp_path / "people.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
    connection.close()
    pipeline = rows.join(towns, "id").group_by("town").aggregate(n=wb.count()).sink_to(wb.TableSink("towns"))
    pipeline += rows.group_by().aggregate(n=wb.count(), last=wb.max("name")).sink_to(wb.TableSink("all"))
    pipeline += rows.sink_to(wb.SqlSink(f"sqlite:///{file}", "people", upsert_key="id"))
    job = pipeline.run("followed", buffer_size=1, parallelism=2)
    assert job.wait("60s") == "FINISHED"
    assert job.table("towns").to_pylist() == [{"town": "Rome", "n": 2}]
    assert job.table("all").to_pylist() == [{"n": 2, "last": "c"}]
    with sqlite3.connect(file) as connection:
        assert sorted(connection.execute("SELECT id, name FROM people")) == [(1, "a2"), (3, "c")]
    connection.close()


def test_the_rows_of_keys_move_when_the_job_is_rescaled() -> None:
    chance = Random(8)
    rows = [(chance.choice("IUUDU"), chance.randrange(40), chance.randrange(1_000)) for _ in range(600)]
    left: dict[int, int] = {}
    for op, key, value in rows:
        if op == "D":
            left.pop(key, None)
        else:
            left[key] = value
    ops, keys, values = zip(*rows, strict=True)
    table = pa.table({"op": ops, "k": keys, "v": values})
    stream = wb.Stream.from_table(table, rate=200).with_parallelism(1).as_changelog("k")
    pipeline = stream.sink_to(wb.TableSink("rows", upsert_key="k"))
    pipeline += stream.group_by().aggregate(n=wb.count(), total=wb.sum("v")).sink_to(wb.TableSink("sum"))
    job = rescaled(pipeline, "changes-rescaled", 100)
    assert {row["k"]: row["v"] for row in job.table("rows").to_pylist()} == left
    assert job.table("sum").to_pylist() == [{"n": len(left), "total": sum(left.values())}]


def test_a_table_of_sql_whose_rows_have_flags(tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    rows = [("c", 1, "a"), ("r", 2, "b"), ("u", 1, "a2"), ("d", 2, None), ("c", 3, "c")]
    file.write_text("".join(json.dumps({"op": op, "id": key, "name": name}) + "\n" for op, key, name in rows))
    declared = (
        "CREATE TABLE people (op STRING, id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED) WITH "
        f"('connector' = 'filesystem', 'path' = '{file}', 'format' = 'json', 'changelog.op' = 'op'); "
    )
    query = "SELECT id, name, upper(name) AS big FROM people"
    assert wb.sql(declared + query).collect().to_pylist() == [
        {"id": 1, "name": "a2", "big": "A2"},
        {"id": 3, "name": "c", "big": "C"},
    ]
    assert wb.sql(declared + "SELECT count(*) AS n FROM people").collect().to_pylist() == [{"n": 2}]
    other = "'changelog.insert' = 'c, u', 'changelog.delete' = 'd', 'changelog.update' = 'r', 'changelog.op' ="
    assert wb.sql(declared.replace("'changelog.op' =", other) + query).collect()["id"].to_pylist() == [1, 3]
    for text, instead, sentence in (
        ("'changelog.op' = 'op'", "'changelog.op' = 'flag'", r"column of flags \(changelog.op\) 'flag'"),
        ("'changelog.op' = 'op'", "'changelog.ops' = 'op'", "unknown option 'changelog.ops'"),
        ("'changelog.op' = 'op'", "'changelog.insert' = 'c'", "lacks the option 'changelog.op'"),
        (", PRIMARY KEY (id) NOT ENFORCED", "", "has flags of changes, but no key"),
        ("op STRING", "op BIGINT", "only text has flags"),
        ("op STRING", "op BIGINT", "only text has flags"),
    ):
        assert text in declared
        with pytest.raises(QueryError, match=sentence):
            wb.sql(declared.replace(text, instead) + query)
    with pytest.raises(QueryError, match=r"changelog\.insert is 'c', and the column op is bigint"):
        wb.sql(
            declared.replace("op STRING", "op BIGINT").replace(
                "'changelog.op'", "'changelog.insert' = 'c', 'changelog.op'"
            )
            + query
        )
    with pytest.raises(QueryError, match="reads flags of changes"):
        wb.sql_script(declared + "INSERT INTO people SELECT 'c', id, name FROM more", more=wb.Stream.from_table(PEOPLE))


class GivesChanges(TableSource):
    """A table whose rows are changes already."""

    changelog_key = ("id",)


def given(**columns: list[Any]) -> wb.Stream:
    kinds = pa.array(columns.pop("kinds"), pa.int8())
    table = pa.table(
        [*map(pa.array, columns.values()), kinds],
        schema=pa.schema([*(pa.field(name, pa.array(values).type) for name, values in columns.items()), FIELD]),
    )
    return wb.Stream.from_source(GivesChanges(table)).with_parallelism(1)


def test_a_source_gives_changes_with_a_key() -> None:
    rows = given(id=[1, 2, 1, 1, 2], name=["a", "b", "a", "z", "b"], kinds=[0, 0, 1, 2, 3])
    assert upsert_key(rows.filter("id > 0")._end) == ("id",)
    pipeline = rows.sink_to(wb.TableSink("rows", upsert_key="id"))
    pipeline += rows.group_by().aggregate(n=wb.count()).sink_to(wb.TableSink("n"))
    job = pipeline.run("given", parallelism=2)
    assert job.wait("60s") == "FINISHED"
    assert job.table("rows").to_pylist() == [{"id": 1, "name": "z"}]
    assert job.table("n").to_pylist() == [{"n": 1}]
    with pytest.raises(PlanError, match="map cannot follow a changelog"):
        rows.map(dict, schema={"n": pa.int64()})


def test_a_source_that_promises_changes_has_their_columns() -> None:
    with pytest.raises(PlanError, match=r"gives changes, but has no column '\$kind'"):
        wb.Stream.from_source(GivesChanges(pa.table({"id": [1]})))
    with pytest.raises(PlanError, match="has the key id, but no column 'id'"):
        given(n=[1], kinds=[0])


TABLE = "CREATE TABLE t (`{}` INT) WITH ('connector' = 'socket', 'port' = '9', 'format' = 'json');"
OURS = ("$kind", "$records", "$event_time", "$epoch", "$gone", "$root", "$id")


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(
    "made",
    [
        lambda rows, name: rows.rename({"n": name}),
        lambda rows, name: rows.select("id", **{name: "n + 1"}),
        lambda rows, name: rows.with_columns(**{name: "'+I'"}),
        lambda rows, name: rows.map(lambda row: row, schema={name: pa.int64()}),
        lambda rows, name: rows.map_batches(lambda batch: batch, schema={name: pa.int64()}),
        lambda rows, name: rows.key_by("id").aggregate(**{name: wb.count()}),
        lambda rows, name: rows.group_by("id").aggregate(**{name: wb.count()}),
        lambda rows, name: rows.group_by("id").aggregate(n=wb.count()).with_columns(**{name: "CAST(0 AS TINYINT)"}),
        lambda rows, name: rows.window(wb.tumbling("1s"), time="processing").aggregate(**{name: wb.count()}),
        lambda rows, name: rows.over(["id"], "range", None, {name: wb.count()}),
        lambda rows, name: rows.key_by("id").top_n(2, "n", rank=name),
        lambda rows, name: rows.join(pa.table({"id": [1], name: [2]}), "id"),
        lambda rows, name: rows.rename({"n": name[:2]}).join(rows.rename({"n": name[:2]}), "id", suffix=name[2:]),
        lambda rows, name: wb.Stream.from_table(pa.table({"id": [1], name: pa.array([0], pa.int8())})),
        lambda rows, name: wb.Stream.from_socket("localhost", 9, format="json", schema={name: pa.int64()}),
        lambda rows, name: wb.sql(f"SELECT id AS `{name}` FROM plain", plain=rows),
        lambda rows, name: wb.sql(f"SELECT id, count(*) AS `{name}` FROM plain GROUP BY id", plain=rows),
        lambda rows, name: wb.sql(f"{TABLE.format(name)} SELECT 1 FROM t"),
    ],
)  # fmt: skip
def test_the_names_of_the_engine_are_refused_wherever_a_column_gets_a_name(made: Any, name: str) -> None:
    rows = wb.Stream.from_table(pa.table({"id": [1], "n": [2]}))
    with pytest.raises(WorkbenchError) as raised:
        made(rows, name)
    assert f"a column is named {name!r}, which the engine uses itself" in raised.value.message


def test_the_column_of_the_kinds_passes_through() -> None:
    groups = wb.Stream.from_table(PEOPLE).group_by("op").aggregate(n=wb.count())
    assert groups.select(*groups.columns).columns == ["op", "n", KIND]
    assert wb.Stream.from_table(pa.table({"$price": [1]})).collect().to_pylist() == [{"$price": 1}]
