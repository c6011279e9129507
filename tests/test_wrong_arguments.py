"""Arguments of a wrong kind, as beginners pass them: each is one sentence with the value and the fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import workbench as wb
from workbench.arguments import path_of, whole_number

TABLE = pa.table({"k": ["a"], "n": [1], "t": pa.array([0], pa.timestamp("us"))})
FRAME = pd.DataFrame({"k": ["a"]})


def clicks() -> wb.Stream:
    return wb.Stream.from_table(TABLE, event_time="t")


def of_arrow(table: object = TABLE, path: object = "clicks.log", **options: object) -> wb.History:
    times = {"event_time": "t", "arrival_time": "t", "progress": False}
    return wb.History.from_arrow(table, path, **{**times, **options})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: wb.Stream.from_table(FRAME),
            "table is a pandas.DataFrame, and has to be a pyarrow.Table: pyarrow.Table.f",
        ),
        (lambda: wb.Stream.from_table(pa.table({})), "the table has no columns, so it has no records: give it one"),
        (
            lambda: wb.Stream.from_table([{"n": 1}]),
            "table is [{'n': 1}], and has to be a pyarrow.Table: pyarrow.Table.from",
        ),
        (lambda: wb.Stream.from_table(TABLE, rate="5"), "rate is '5': it counts records per second and is above zero"),
        (lambda: wb.Stream.replay(TABLE), "history is a pyarrow.lib.Table: pass a wb.History, or the path of one"),
        (
            lambda: wb.Stream.replay(of_arrow().path, speed=None),
            "speed is None: write a multiple of recorded time such as '600x'",
        ),
        (
            lambda: wb.Stream.from_generator(print, ["n"]),
            "the source got the schema ['n']: pass a pyarrow.Schema or a dict",
        ),
        (lambda: wb.Stream.from_generator(print, {"n": pa.int64()}, limit="3"), "limit is '3': write a whole number"),
        (
            lambda: wb.Stream.from_files([]),
            "paths is []: name a file, a folder, a pattern such as 'data/*.csv', or several",
        ),
        (lambda: wb.Stream.from_files([3]), "a path is 3: write a path, such as 'data/flights'"),
        (lambda: wb.Stream.from_files("x.csv", format=["csv"]), "there is no file 'x.csv'"),
        (lambda: wb.Stream.from_socket("localhost", "9999"), "port is '9999': write a whole number"),
        (lambda: wb.Stream.from_socket("localhost", 9999, retries="2"), "retries is '2': write a whole number"),
        (
            lambda: wb.Stream.hybrid(TABLE, clicks()),
            "history is a pyarrow.lib.Table: give hybrid two streams just made",
        ),
        (lambda: clicks().union([clicks()]), "union got [Stream"),
        (lambda: clicks().union(TABLE), "union got a pyarrow.lib.Table, which is no stream: pass streams"),
        (
            lambda: clicks().sink_to("out"),
            "sink_to got 'out', which is no sink: pass one, such as wb.TableSink('delays')",
        ),
        (lambda: clicks().sink_to(wb.TableSink), "which is no sink: pass one, such as wb.TableSink('delays')"),
        (lambda: clicks().map(lambda n: n, {"m": pa.int64()}, keep=3), "keep is 3: name the columns to keep"),
        (lambda: clicks().side_output([]), "unknown side output []"),
        (lambda: clicks().with_parallelism("2"), "parallelism is '2': write a whole number, such as 2"),
        (
            lambda: clicks().join(clicks(), on=None, window=wb.tumbling("1s")),
            "on is None: name the columns that must be",
        ),
        (
            lambda: clicks().join(clicks(), on="k", window="1h"),
            "window is '1h': write for example window=wb.tumbling('1h')",
        ),
        (
            lambda: clicks().join(clicks(), on="k", between="1h"),
            "between is '1h': write two times, for example ('-5min',",
        ),
        (lambda: clicks().filter(wb.col("n").is_in(1)), "is_in takes a list of values, not 1: write is_in([1])"),
        (lambda: wb.punctuated(3), "punctuated got 3: write an expression, such as 'kind = 1'"),
        (lambda: wb.on_count("3"), "on_count is '3': write a whole number, such as 2"),
        (lambda: wb.keep_last(None), "keep_last is None: write a whole number, such as 2"),
        (lambda: wb.TableSink(3), "the table name is 3: write text, such as 'delays'"),
        (lambda: wb.PrintSink("all"), "limit is 'all': write a whole number"),
        (lambda: wb.ParquetSink(None), "path is None: write a path, such as 'data/flights'"),
        (lambda: wb.FileSink(3, "csv"), "path is 3: write a path, such as 'data/flights'"),
        (lambda: wb.SqlSink(3, "delays"), "url is 3: write text, such as 'sqlite:///delays.db'"),
        (lambda: wb.SqlSink("sqlite:///x.db", 3), "the table name is 3: write text, such as 'delays'"),
        (lambda: wb.compare("a", "b"), "compare got 'a', which is no job: pass two, such as wb.job('a'), wb.job('b')"),
        (lambda: wb.savepoints(3), "the checkpoint directory is 3: write a path"),
        (lambda: wb.Recording.open(None), "path is None: write a path"),
        (lambda: wb.History.open(3), "path is 3: write a path"),
        (lambda: of_arrow(FRAME), "table is a pandas.DataFrame, and has to be a pyarrow.Table"),
        (lambda: of_arrow(path=3), "path is 3: write a path"),
        (lambda: of_arrow(channels="x"), "channels is 'x': a replay log has at least 1, write a whole number"),
        (lambda: of_arrow(channels=1.5), "channels is 1.5: a replay log has at least 1, write a whole number"),
        (lambda: of_arrow(notes="one note"), "notes is 'one note': write a list of sentences"),
        (
            lambda: wb.History.from_spark(FRAME, "x", event_time="t", arrival_time="t"),
            "df is a pandas.DataFrame, and has to be a Spark DataFrame: History.from_arrow takes a pyarrow.Table, which"
            " pyarrow.Table.from_pandas(frame) makes of it, or spark.createDataFrame(frame) a Spark frame",
        ),
    ],
)
def test_it_is_one_sentence(
    call: Callable[[], object], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(wb.WorkbenchError) as refused:
        call()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == (["clicks.log"] if "speed" in sentence else [])


def test_what_other_libraries_have_for_numbers_and_paths_is_taken() -> None:
    numbers = TABLE.to_pandas()["n"]
    assert whole_number(numbers.iloc[0], "n") == 1
    assert path_of(Path("a") / "b", "path") == Path("a/b")
    assert wb.Stream.from_table(TABLE, rate=numbers.astype("float32").iloc[0]).columns == ["k", "n", "t"]


def test_one_column_to_keep_may_be_its_name() -> None:
    assert clicks().map(lambda n: n, {"m": pa.int64()}, keep="k").columns == ["k", "m"]
