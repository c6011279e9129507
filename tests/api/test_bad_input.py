"""Bad input gets one sentence that names the value and the fix, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import workbench as wb
from workbench import col

TIMES = pa.table({"t": pa.array([1, 2, 3], pa.int64()), "n": [1, 2, 3]})


def one_line(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text
    assert len(text) < 400
    return text


def run_to_the_end(folder: Path, name: str = "bad-input", **options: object) -> wb.types.Job:
    stream = wb.Stream.from_table(TIMES, event_time="t").key_by("n").aggregate(c=wb.count())
    job = stream.sink_to(wb.TableSink("out")).run(name, checkpoint_dir=folder, **options)  # type: ignore[arg-type]
    job.wait("120s")
    return job


def test_an_unknown_column_names_the_nearest_and_the_users_line() -> None:
    stream = wb.Stream.from_table(TIMES)
    with pytest.raises(wb.errors.ExpressionError) as caught:
        stream.filter("m > 2")
    text = one_line(caught.value)
    assert "unknown column 'm'" in text
    assert "Valid: n, t" in text
    assert 'stream.filter("m > 2")' in text  # the user's own line
    with pytest.raises(wb.errors.ExpressionError, match="unknown column 'nn'"):
        stream.with_columns(x=col("nn") + 1)
    with pytest.raises(wb.errors.ExpressionError, match="unknown column 'k'"):
        stream.key_by("k")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.window(wb.tumbling("-1h")), "cannot be negative"),
        (lambda s: s.window(wb.tumbling("1h"), allowed_lateness="-5s"), "allowed_lateness is '-5s'"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(buffer_timeout="-5ms"), "buffer_timeout is '-5ms'"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(buffer_timeout=5), "which has no unit"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(min_pause=None), "min_pause is None, which is not a duration"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(checkpoint_interval="soon"), "checkpoint_interval is 'soon'"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(parallelism=0), "parallelism is 0"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(buffer_size=0), "buffer_size is 0"),
        (lambda s: s.sink_to(wb.TableSink("x")).run("a/b"), "cannot be a file name"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(resume=True), "nothing to resume from"),
        (lambda s: s.sink_to(wb.TableSink("x")).run(restore="a"), "restore also needs a checkpoint_dir"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(call: object, sentence: str) -> None:
    before = wb.jobs()
    with pytest.raises(wb.errors.WorkbenchError, match=sentence) as caught:
        call(wb.Stream.from_table(TIMES, event_time="t"))  # type: ignore[operator]
    one_line(caught.value)
    assert wb.jobs() == before


def test_unknown_settings_of_a_running_job_list_the_valid_ones_and_change_nothing() -> None:
    job = wb.Stream.from_table(TIMES, rate=0.5).sink_to(wb.TableSink("out")).run("tuned")
    with pytest.raises(
        wb.errors.SettingError, match=r"unknown setting 'bufer_timeout': did you mean 'buffer_timeout'\?"
    ):
        job.tune(bufer_timeout="5ms")
    with pytest.raises(wb.errors.SettingError, match="applies only to a replayed history"):
        job.tune(buffer_timeout="5ms", speed="60x")
    assert job.status()["buffer_timeout"] == "100ms"
    with pytest.raises(wb.errors.JobError, match="unknown task 'tabel"):
        job.fail(task="tabel[0]")
    with pytest.raises(wb.errors.JobError, match="a job 'tuned' is RUNNING"):
        wb.Stream.from_table(TIMES).sink_to(wb.TableSink("out")).run("tuned")


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(wb.errors.CheckpointError, match=r"file/c.* cannot be written") as caught:
        run_to_the_end(tmp_path / "file" / "c")
    one_line(caught.value)


def test_a_directory_with_checkpoints_of_another_job_is_refused_without_resume(tmp_path: Path) -> None:
    run_to_the_end(tmp_path)
    sentence = r"already holds checkpoints of job 'bad-input'.*and this run is of 'other'.*resume=True"
    with pytest.raises(wb.errors.CheckpointError, match=sentence) as caught:
        run_to_the_end(tmp_path, name="other", replace=True)
    one_line(caught.value)
    assert run_to_the_end(tmp_path, resume=True).table("out").num_rows == 3


def test_a_corrupt_checkpoint_is_named_never_passed_over_and_not_deleted(tmp_path: Path) -> None:
    run_to_the_end(tmp_path)
    [file] = tmp_path.glob("chk-*/aggregate-0.arrow")
    whole = file.read_bytes()
    file.write_bytes(whole[:-7])
    for _ in range(2):
        with pytest.raises(
            wb.errors.CorruptCheckpointError, match=r"aggregate-0.arrow does not match its checksum"
        ) as caught:
            run_to_the_end(tmp_path, resume=True)
        one_line(caught.value)
    assert file.read_bytes() == whole[:-7]
    file.write_bytes(whole)  # repaired from a backup
    assert run_to_the_end(tmp_path, resume=True).table("out").num_rows == 3
    manifest = sorted(tmp_path.glob("chk-*/manifest.json"))[-1]
    manifest.write_text("{")
    with pytest.raises(wb.errors.CorruptCheckpointError, match=r"manifest.json cannot be read"):
        run_to_the_end(tmp_path, resume=True)


def test_another_pipeline_does_not_take_over_a_checkpoint(tmp_path: Path) -> None:
    run_to_the_end(tmp_path)
    other = wb.Stream.from_table(TIMES).sink_to(wb.TableSink("elsewhere"))
    with pytest.raises(
        wb.errors.CheckpointError, match=r"has state of operators 'aggregate', 'out', which this pipeline does not have"
    ):
        other.run("bad-input", checkpoint_dir=tmp_path, resume=True)


def test_two_sinks_of_one_place_are_refused(tmp_path: Path) -> None:
    stream = wb.Stream.from_table(TIMES)
    for sink in (wb.TableSink("out"), wb.ParquetSink(tmp_path / "out")):
        with pytest.raises(wb.errors.PlanError, match="two sinks write to"):
            (stream.sink_to(sink) + stream.filter("n > 1").sink_to(sink)).run("twice")


def test_two_sinks_of_one_place_are_refused_under_whichever_names(tmp_path: Path) -> None:
    stream = wb.Stream.from_table(TIMES)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for other in (tmp_path / "link", tmp_path / "link" / ".." / "real"):
        for below in ("", "out"):
            pair = stream.sink_to(wb.ParquetSink(tmp_path / "real" / below)) + stream.sink_to(
                wb.FileSink(other / below, format="csv")
            )
            with pytest.raises(wb.errors.PlanError, match="two sinks write to"):
                pair.run("twice")
        rows = [wb.SqlSink(f"sqlite:///{folder}/rows.db", "rows") for folder in (tmp_path / "real", other)]
        with pytest.raises(wb.errors.PlanError, match="two sinks write to"):
            (stream.sink_to(rows[0]) + stream.sink_to(rows[1])).run("twice")


def test_a_damaged_replay_log_fails_the_job_with_its_file(tmp_path: Path) -> None:
    table = pa.table({"e": pa.array([3, 1, 2], pa.timestamp("us")), "a": pa.array([10, 20, 30], pa.timestamp("us"))})
    history = wb.History.from_arrow(
        table, tmp_path / "log", event_time="e", arrival_time="a", channels=1, progress=False
    )
    with pytest.raises(wb.errors.HistoryError, match="unknown arrival_time column 'landing'"):
        wb.History.from_arrow(table, tmp_path / "x", event_time="e", arrival_time="landing", progress=False)
    holes = table.set_column(1, "a", pa.array([10, None, 30], pa.timestamp("us")))
    with pytest.raises(wb.errors.HistoryError, match="is null in 1 records, first in row 1"):
        wb.History.from_arrow(holes, tmp_path / "y", event_time="e", arrival_time="a", progress=False)
    [file] = (tmp_path / "log").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(wb.errors.HistoryError, match=r"\.parquet"):
        wb.Stream.replay(history.path)
