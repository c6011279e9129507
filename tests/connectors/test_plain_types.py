"""Tables of other libraries, whose text and bytes are views or runs: every operator takes them in their plain form."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

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
