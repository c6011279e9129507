"""Tables of other libraries with text and bytes as views or runs: every operator receives plain types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workbench as wb
from workbench.connectors.contract.plain_types import plain_table, plain_type

WORDS = [None if n % 7 == 0 else f"word {n % 5} {'é' * (n % 20)}" for n in range(100)]
RUNS = [f"run {n}" for n in range(25)]
VIEWS = pa.table(
    {
        "n": range(100),
        "word": pa.array(WORDS, pa.string_view()),
        "raw": pa.array([word and word.encode() for word in WORDS], pa.binary_view()),
        "many": pa.array([[word, word] for word in WORDS], pa.list_(pa.string_view())),
        "run": pa.RunEndEncodedArray.from_arrays(
            pa.array(range(4, 101, 4), pa.int32()), [f"run {n}" for n in range(25)]
        ),
    }
)
KINDS = [pa.int64(), pa.large_string(), pa.large_binary(), pa.list_(pa.large_string()), pa.string()]


def test_the_plain_form_has_the_same_values() -> None:
    plain = plain_table(VIEWS)
    assert plain.schema.types == KINDS
    assert plain.to_pylist() == VIEWS.to_pylist()
    assert plain_table(plain) is plain
    nested = pa.struct({"m": pa.map_(pa.string_view(), pa.list_(pa.binary_view(), 2)), "l": pa.large_list(pa.int8())})
    assert plain_type(nested) == pa.struct(
        {"m": pa.map_(pa.large_string(), pa.list_(pa.large_binary(), 2)), "l": pa.large_list(pa.int8())}
    )


def nested_views() -> pa.Table:
    """Every place in which a view can stand, with nulls."""
    words = pa.array(["a", None, "much longer than what fits into a view"], pa.string_view())
    return pa.table(
        {
            "n": [1, 2, 3],
            "word": words,
            "raw": words.cast(pa.binary_view()),
            "list": pa.array([["a", None], None, []], pa.list_(pa.string_view())),
            "pair": pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string_view(), 2)),
            "large": pa.array([["a"], [None], None], pa.large_list(pa.string_view())),
            "struct": pa.array([{"w": "a"}, {"w": None}, None], pa.struct({"w": pa.string_view()})),
            "map": pa.array([[("k", "v")], None, []], pa.map_(pa.string_view(), pa.binary_view())),
            "code": pa.array(["x", None, "x"]).dictionary_encode(),
            "plain": pa.array(["p", None, "q"]),
        }
    )


@pytest.mark.parametrize("source", ["arrow", "parquet"])
def test_columns_that_pass_unchanged_come_out_in_the_types_of_their_source(tmp_path: Path, source: str) -> None:
    table = nested_views()
    if source == "parquet":
        table = table.select(["n", "word", "raw", "code", "plain"])  # Arrow writes no views within other values
        pq.write_table(table, tmp_path / "views.parquet")
        rows = wb.Stream.from_files(tmp_path / "views.parquet")
    else:
        rows = wb.Stream.from_table(table)
    kept = rows.filter("n < 3").rebalance()
    chosen = kept.select("n", w="word", up="upper(word)").union(kept.select("n", w="word", up="upper(word)"))
    assert rows.schema.field("word") == pa.field("word", pa.large_string())
    assert not rows.schema.field("word").metadata
    sinks = kept.sink_to(wb.TableSink("kept")) + kept.sink_to(wb.ParquetSink(tmp_path / "out"))
    job = (sinks + chosen.sink_to(wb.TableSink("chosen"))).run("given", parallelism=2)
    assert job.wait("60s") == "FINISHED", job.failure
    read = pq.read_table(tmp_path / "out")
    for found in (job.table("kept"), read):
        kinds = [plain_type(kind) if kind.num_fields and found is read else kind for kind in table.schema.types]
        assert found.schema.types == kinds
        assert not any(b"workbench:type" in (field.metadata or {}) for field in found.schema)
        assert sorted(found.to_pylist(), key=lambda row: row["n"]) == table.slice(0, 2).to_pylist()
    assert job.table("chosen").schema.types == [pa.int64(), pa.string_view(), pa.string()]
    assert job.table("chosen") is job.table("chosen")  # converted once


def test_view_types_survive_windows_joins_upserts_and_a_restore(tmp_path: Path) -> None:
    table = pa.table(
        {"word": pa.array(["a", "b", "a", "c"], pa.string_view()), "t": pa.array([0, 1, 2, 3], pa.timestamp("s"))}
    )
    towns = pa.table({"word": pa.array(["a", "b"], pa.string_view()), "town": pa.array(["A", "B"], pa.string_view())})
    rows = wb.Stream.from_table(table, event_time="t")
    counts = rows.key_by("word").window(wb.tumbling("1min")).aggregate(n=wb.count())
    joined = rows.join(towns, on="word", how="left")
    outer = rows.key_by("word").aggregate(n=wb.count())
    pipeline = (
        counts.sink_to(wb.TableSink("counts"))
        + joined.sink_to(wb.TableSink("joined"))
        + outer.sink_to(wb.TableSink("latest", upsert_key=["word"]))
    )
    view = pa.string_view()

    def check(job: wb.types.Job) -> None:
        assert job.table("counts").schema.field("word").type == view
        assert [job.table("joined").schema.field(name).type for name in ("word", "town")] == [view, view]
        assert sorted(job.table("latest").to_pylist(), key=lambda row: row["word"]) == [
            {"word": "a", "n": 2},
            {"word": "b", "n": 1},
            {"word": "c", "n": 1},
        ]
        assert job.table("latest").schema.field("word").type == view

    job = pipeline.run("views", checkpoint_dir=tmp_path / "chk", parallelism=2)
    assert job.wait("60s") == "FINISHED", job.failure
    check(job)
    again = pipeline.run("views-again", checkpoint_dir=tmp_path / "chk", resume=True, parallelism=1)
    assert again.wait("60s") == "FINISHED", again.failure
    check(again)


def test_views_and_runs_are_filtered_exchanged_joined_and_are_keys() -> None:
    towns = pa.table({"word": VIEWS["word"].combine_chunks().slice(1, 1), "town": pa.array(["Oslo"], pa.string_view())})
    rows = wb.Stream.from_table(VIEWS)
    kept = rows.filter("n % 3 > 0").key_by("word").reduce(lambda before, row: row).rebalance()
    found = rows.join(towns, on="word")
    job = (kept.sink_to(wb.TableSink("kept")) + found.sink_to(wb.TableSink("found"))).run("views", parallelism=2)
    assert job.wait("60s") == "FINISHED"
    wanted = VIEWS.to_pylist()
    assert sorted(job.table("kept").to_pylist(), key=lambda row: row["n"]) == [row for row in wanted if row["n"] % 3]
    assert sorted(job.table("found").to_pylist(), key=lambda row: row["n"]) == [
        {**row, "town": "Oslo"} for row in wanted if row["word"] == WORDS[1]
    ]


def test_views_in_parquet_files(tmp_path: Path) -> None:
    table = VIEWS.select(["n", "word", "raw"])
    pq.write_table(table, tmp_path / "views.parquet")
    stream = wb.Stream.from_files(tmp_path)
    assert stream.schema.types == KINDS[:3]
    job = stream.filter("n % 3 > 0").sink_to(wb.TableSink("out")).run("files")
    assert job.wait("60s") == "FINISHED"
    assert job.table().to_pylist() == [row for row in table.to_pylist() if row["n"] % 3]
