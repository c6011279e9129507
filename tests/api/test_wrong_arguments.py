"""Arguments of a wrong kind, as beginners pass them: each raises one sentence with the value and the fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import workbench as wb
from workbench.arguments import path_of, whole_number

TABLE = pa.table({"k": ["a"], "n": [1], "t": pa.array([0], pa.timestamp("us"))})
FRAME = pd.DataFrame({"k": ["a"]})


def clicks() -> wb.Stream:
    return wb.Stream.from_table(TABLE, event_time="t")


def rows() -> Iterator[dict[str, int]]:
    yield {"n": 1}


def keyed() -> Any:
    return clicks().key_by("k")


UNNAMED = "aggregate got count() without a name for its column: write for example aggregate(n=wb.count())"
MISTAKES: list[tuple[Callable[[], object], str]] = [
    (lambda: clicks().key_by(lambda r: r["k"]), "key_by got a function, and it takes columns: name one"),
    (lambda: keyed().aggregate(wb.count()), UNNAMED),
    (lambda: clicks().group_by("k").aggregate(wb.count()), UNNAMED),
    (lambda: keyed().window(wb.tumbling("1s")).aggregate(wb.count()), UNNAMED),
    (lambda: clicks().with_columns(wb.col("n") + 1), "with_columns got 'n + 1' without a name for its column"),
    (lambda: anything(clicks()).process(print), "a Stream has no 'process': group the records first, as in key_by('c"),
    (lambda: anything(clicks()).aggregate(n=wb.count()), "group the records first, as in key_by('column').aggregate("),
    (lambda: anything(clicks()).filtr("n > 1"), "a Stream has no 'filtr': did you mean 'filter'?"),
    (lambda: anything(clicks()).where("n > 1"), "a Stream has no 'where': write filter(...)"),
    (lambda: keyed().filter("n > 1"), "a KeyedStream has no 'filter': call filter(...) on the stream before it is gr"),
    (lambda: keyed().window(wb.tumbling("1s")).collect(), "a WindowedStream has no 'collect': call collect(...) on"),
    (lambda: keyed().reduce("sum"), "reduce got 'sum': pass a function"),
    (lambda: clicks().map_batches("x", {"n": pa.int64()}), "map_batches got 'x': pass a function"),
    (lambda: clicks().split("n > 1"), "split got 'n > 1': write conditions by name, such as {'late'"),
    (lambda: clicks().join(FRAME, on="k"), "join got a pandas.DataFrame: pass a stream, or a pyarrow.Table: pyarrow."),
    (
        lambda: wb.sql("SELECT * FROM f", f=FRAME),
        "f is a pandas.DataFrame: pass a stream, or a pyarrow.Table: p",
    ),
    (lambda: wb.Stream.from_generator(rows, {"n": pa.int64()}), "source is rows, which makes a Python generator: pass"),
    (lambda: wb.Stream.from_generator(rows(), {"n": pa.int64()}), "source is a Python generator: pass a function of ("),
    (lambda: wb.Stream.from_generator(lambda: 1, {"n": pa.int64()}), "source is <lambda>(): pass a function of (first"),
    (lambda: wb.serve(3), "serve got 3, which is not a job: pass jobs, such as wb.job('delays')"),
]
"""Each in the words of a beginner, or of another library."""


def anything(value: Any) -> Any:
    """The value, of which a type checker knows nothing."""
    return value


def of_arrow(table: object = TABLE, path: object = "clicks.log", **options: object) -> wb.History:
    times = {"event_time": "t", "arrival_time": "t", "progress": False}
    return wb.History.from_arrow(table, path, **{**times, **options})


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: wb.Stream.from_table(FRAME),
            "table is a pandas.DataFrame, but must be a pyarrow.Table: pyarrow.Table.f",
        ),
        (lambda: wb.Stream.from_table(pa.table({})), "the table has no columns: give it at least one"),
        (
            lambda: wb.Stream.from_table([{"n": 1}]),
            "table is [{'n': 1}], but must be a pyarrow.Table: pyarrow.Table.from",
        ),
        (lambda: wb.Stream.from_table(TABLE, rate="5"), "rate is '5': write records per second, above zero"),
        (lambda: wb.Stream.replay(TABLE), "history is a pyarrow.lib.Table: pass a wb.History, or the path of one"),
        (
            lambda: wb.Stream.replay(of_arrow().path, speed=None),
            "speed is None: write a multiple of recorded time such as '600x'",
        ),
        (
            lambda: wb.Stream.from_generator(print, ["n"]),
            "the source got the schema ['n']: pass a pyarrow.Schema or a dict",
        ),
        *MISTAKES,
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
            "history is a pyarrow.lib.Table: pass hybrid two source streams",
        ),
        (lambda: clicks().union([clicks()]), "union got [Stream"),
        (lambda: clicks().union(TABLE), "union got a pyarrow.lib.Table, which is not a stream: pass streams"),
        (
            lambda: clicks().sink_to("out"),
            "sink_to got 'out', which is not a sink: pass one, such as wb.TableSink('delays')",
        ),
        (lambda: clicks().sink_to(wb.TableSink), "which is not a sink: pass one, such as wb.TableSink('delays')"),
        (lambda: clicks().map(len, {"m": pa.int64()}, columns="n", keep=3), "keep is 3: name columns, such as keep="),
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
            "between is '1h': write two durations, such as ('-5min', '10min'), or 'latest'",
        ),
        (lambda: clicks().filter(wb.col("n").is_in(1)), "is_in takes a list of values, not 1: write is_in([1])"),
        (lambda: wb.watermarks.punctuated(3), "punctuated got 3: write an expression, such as 'kind = 1'"),
        (lambda: wb.triggers.on_count("3"), "on_count is '3': write a whole number, such as 2"),
        (lambda: wb.windows.keep_last(None), "keep_last is None: write a whole number, such as 2"),
        (lambda: wb.TableSink(3), "the table name is 3: write text, such as 'delays'"),
        (lambda: wb.PrintSink("all"), "limit is 'all': write a whole number"),
        (lambda: wb.ParquetSink(None), "path is None: write a path, such as 'data/flights'"),
        (lambda: wb.FileSink(3, "csv"), "path is 3: write a path, such as 'data/flights'"),
        (lambda: wb.SqlSink(3, "delays"), "url is 3: write text, such as 'sqlite:///delays.db'"),
        (lambda: wb.SqlSink("sqlite:///x.db", 3), "the table name is 3: write text, such as 'delays'"),
        (
            lambda: wb.compare("a", "b"),
            "compare got 'a', which is not a job: pass two jobs, such as wb.job('a'), wb.job('b')",
        ),
        (lambda: wb.savepoints(3), "the checkpoint directory is 3: write a path"),
        (lambda: wb.Recording.open(None), "path is None: write a path"),
        (lambda: wb.History.open(3), "path is 3: write a path"),
        (lambda: of_arrow(FRAME), "table is a pandas.DataFrame, but must be a pyarrow.Table"),
        (lambda: of_arrow(path=3), "path is 3: write a path"),
        (lambda: of_arrow(channels="x"), "channels is 'x': write a whole number, at least 1"),
        (lambda: of_arrow(channels=1.5), "channels is 1.5: write a whole number, at least 1"),
        (lambda: of_arrow(notes="one note"), "notes is 'one note': write a list of sentences"),
        (
            lambda: wb.History.from_spark(FRAME, "x", event_time="t", arrival_time="t"),
            "df is a pandas.DataFrame, but must be a Spark DataFrame: History.from_arrow takes a pyarrow.Table: "
            "convert it with pyarrow.Table.from_pandas(frame), or with spark.createDataFrame(frame) to a Spark "
            "DataFrame",
        ),
    ],
)
def test_it_is_one_sentence(
    call: Callable[[], object], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(wb.errors.WorkbenchError) as refused:
        call()
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == (["clicks.log"] if "speed" in sentence else [])


async def lookup(k: str) -> None:
    """Knows nothing."""


def run_with(name: str, value: object) -> None:
    job = clicks().sink_to(wb.DiscardSink()).run("one", **{"checkpoint_dir": "cp", "driver": "stepping", name: value})
    job.cancel()


COUNTS: dict[str, Callable[[object], object]] = {
    **{
        name: partial(run_with, name)
        for name in (
            *("parallelism", "buffer_size", "retained_checkpoints", "max_concurrent_checkpoints"),
            *("tolerable_failed_checkpoints", "slots_per_taskmanager"),
        )
    },
    "with_parallelism": lambda value: clicks().with_parallelism(value),
    "explain(parallelism)": lambda value: clicks().sink_to(wb.DiscardSink()).explain(value),
    "explain(slots)": lambda value: clicks().sink_to(wb.DiscardSink()).explain(slots_per_taskmanager=value),
    "concurrency": lambda value: clicks().lookup_async(lookup, key="k", schema={"m": pa.int64()}, concurrency=value),
    "limit": lambda value: wb.Stream.from_generator(print, {"n": pa.int64()}, limit=value),
    "retries": lambda value: wb.Stream.from_socket("localhost", 9999, retries=value),
    "port": lambda value: wb.Stream.from_socket("localhost", value),
    "channels": lambda value: of_arrow(channels=value),
    "count_tumbling": wb.windows.count_tumbling,
    "count_sliding": lambda value: wb.windows.count_sliding(value, value),
    "on_count": wb.triggers.on_count,
    "keep_last": wb.windows.keep_last,
    "top_k": lambda value: wb.top_k("n", value),
    "PrintSink": wb.PrintSink,
    "fixed_delay": lambda value: wb.restart.fixed_delay(attempts=value),
    "exponential_delay": lambda value: wb.restart.exponential_delay(attempts=value),
    "failure_rate": lambda value: wb.restart.failure_rate(max_failures_per_interval=value),
}
"""Arguments that count something, and what takes them."""


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_is_a_whole_number(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in (2.9, 2.0, True, np.True_, "two"):
        with pytest.raises(wb.errors.WorkbenchError, match="whole number") as refused:
            COUNTS[name](value)
        assert repr(value) in str(refused.value)
    assert not list(tmp_path.iterdir())
    COUNTS[name](2 if name == "max_concurrent_checkpoints" else np.int64(2))


SWITCHES: dict[str, Callable[[object], object]] = {
    **{
        name: partial(run_with, name)
        for name in ("resume", "allow_non_restored_state", "standby", "incremental", "local_aggregation")
    },
    "filter": lambda value: clicks().filter(lambda n: n > 1, columns="n", compiled=value),
    "map": lambda value: clicks().map(lambda n: n, {"m": pa.int64()}, columns="n", compiled=value),
    "local": lambda value: clicks().rebalance(local=value),
    "ordered": lambda value: clicks().lookup_async(lookup, key="k", schema={"m": pa.int64()}, ordered=value),
    "overwrite": lambda value: of_arrow(overwrite=value),
    "progress": lambda value: of_arrow(progress=value),
    "create": lambda value: wb.SqlSink("sqlite:///x.db", "clicks", create=value),
    "event_times": lambda value: wb.CallbackSink(print, event_times=value),
}
"""Arguments that are true or false, and what takes them."""


@pytest.mark.parametrize("name", SWITCHES)
def test_what_is_true_or_false_is_no_text(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in ("no", "false", "", 0, 1, None, np.int64(1)):
        with pytest.raises(wb.errors.SettingError) as refused:
            SWITCHES[name](value)
        assert f" is {value!r}: write True or False" in str(refused.value)
    assert not list(tmp_path.iterdir())
    SWITCHES[name](np.False_)


def test_what_handles_a_running_job_takes_counts_and_truth_values_only(tmp_path: Path) -> None:
    job = clicks().sink_to(wb.DiscardSink()).run("handled", driver="stepping", checkpoint_dir=tmp_path)
    for call, sentence in (
        (lambda: job.tune(buffer_size=1.7), "buffer_size is 1.7: write a whole number"),
        (lambda: job.tune(parallelism=True), "parallelism is True: write a whole number"),
        (lambda: job.rescale(1.5), "parallelism is 1.5: write a whole number"),
        (lambda: job.faults.stall("discard", "off"), "stalled is 'off': write True or False"),
        (lambda: job.faults.fail(coordinator="no"), "coordinator is 'no': write True or False"),
        (lambda: job.restore("x", allow_non_restored_state="no"), "allow_non_restored_state is 'no': write True or"),
        (lambda: job.stepper.step(1.5), "count is 1.5: write a whole number"),
        (lambda: job.stepper.back(0.5), "count is 0.5: write a whole number"),
        (lambda: job.stepper.fork(0.5), "step is 0.5: write a whole number"),
        (lambda: wb.serve(port=1.5), "port is 1.5: write a whole number"),
    ):
        with pytest.raises(wb.errors.SettingError, match=sentence):
            call()
    job.cancel()


def test_a_rate_and_a_speed_are_numbers(tmp_path: Path) -> None:
    history = of_arrow(path=tmp_path / "rates.log")
    for value in (True, np.True_):
        with pytest.raises(wb.errors.SettingError, match="rate is"):
            wb.Stream.from_table(TABLE, rate=value)
        with pytest.raises(wb.errors.SettingError, match="speed is"):
            wb.Stream.replay(history, speed=value)
        with pytest.raises(wb.errors.SettingError, match="backoff_multiplier is"):
            wb.restart.exponential_delay(backoff_multiplier=value)
    assert wb.Stream.replay(history, speed=np.int64(600)).columns == ["k", "n", "t"]


def test_what_other_libraries_have_for_numbers_and_paths_is_taken() -> None:
    numbers = TABLE.to_pandas()["n"]
    assert whole_number(numbers.iloc[0], "n") == 1
    assert path_of(Path("a") / "b", "path") == Path("a/b")
    assert wb.Stream.from_table(TABLE, rate=numbers.astype("float32").iloc[0]).columns == ["k", "n", "t"]


def test_one_column_to_keep_may_be_its_name() -> None:
    assert clicks().map(lambda n: n, {"m": pa.int64()}, columns="n", keep="k").columns == ["k", "m"]


def test_a_method_that_does_not_exist_names_the_line_and_is_no_attribute() -> None:
    with pytest.raises(wb.errors.PlanError, match=r"test_wrong_arguments\.py, line \d+: anything\(clicks\(\)\)\.filtr"):
        anything(clicks()).filtr("n > 1")
    assert not hasattr(clicks(), "filtr")
    assert not hasattr(clicks(), "_repr_png_")
    with pytest.raises(AttributeError, match="did you mean 'tumbling'"):
        anything(wb).tumble("1h")
