"""Scripts that start jobs, run by Python and by ``workbench run``: what they say, and how they end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main
from workbench.cli.scripts.program import traceback_of
from workbench.front_ends import is_script

JOBS = """
import sys
import pyarrow as pa
import workbench as wb

INT = {"i": pa.int64()}
def rows(first, n): return pa.record_batch({"i": pa.array(range(first, first + n), pa.int64())})
def inverse(row): return {"i": 1 // row["i"]}
def bounded(): return wb.Stream.from_generator(rows, INT, rate=2000, limit=1001)
def endless(): return wb.Stream.from_generator(rows, INT, rate=1000)
def failing(name):
    numbers = wb.Stream.from_table(pa.table({"i": [1, 0]}))
    return numbers.map(inverse, INT).sink_to(wb.DiscardSink()).run(name, restart=wb.restart.no_restart())
"""
SLOW = pytest.mark.slow

Script = Callable[[str], Path]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(lines: str) -> Path:
        path = tmp_path / "job.py"
        path.write_text(JOBS + lines, encoding="utf-8")
        return path

    return write


def started(*words: str | Path) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != "WORKBENCH_DEBUG"}
    return subprocess.Popen(
        [sys.executable, *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip


def ended(*words: str | Path) -> tuple[int, str, str]:
    process = started(*words)
    printed, told = process.communicate(timeout=60)
    return process.returncode, printed, told


@SLOW
def test_python_waits_for_a_bounded_job_stops_an_endless_one_and_tells_a_failure(script: Script) -> None:
    path = script("""
bounded().filter("i % 1000 = 0").sink_to(wb.PrintSink()).run("bounded")
endless().sink_to(wb.DiscardSink()).run("endless")
failing("failing")
import atexit
atexit.register(print, "the last word")
print("main ends", flush=True)
""")
    code, printed, told = ended(path)
    assert code == 0
    assert printed.index("main ends") < printed.index("i=1000") < printed.index("the last word")
    assert "ZeroDivisionError" in told
    assert f'File "{path}", line 8, in inverse' in told
    assert "job 'endless': the script has ended, so the job is stopped, because its source has no end" in told
    assert "job.wait()" in told
    assert "job 'bounded'" not in told


@SLOW
def test_ctrl_c_ends_the_wait_at_the_end_of_a_script_at_once(script: Script) -> None:
    path = script("""
wb.Stream.from_generator(rows, INT, rate=1, limit=1000).sink_to(wb.DiscardSink()).run("years")
print("main ends", flush=True)
""")
    process = started(path)
    assert process.stderr is not None
    assert "waits for 'years' to end; Ctrl-C ends it" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert "interrupted while the script waited for 'years'" in told
    assert "Traceback" not in told


@SLOW
@pytest.mark.parametrize(
    ("lines", "code", "words"),
    [
        ('bounded().sink_to(wb.DiscardSink()).run("p")\nassert sys.argv[1:] == ["--of", "script"]', 0, ""),
        ('failing("p")', 1, "in inverse"),
        ('endless().sink_to(wb.DiscardSink()).run("p")\ninverse({"i": 0})', 1, "in inverse"),
        ("sys.exit(7)", 7, ""),
    ],
    ids=["all is well", "a job fails", "the script fails", "the script has a code of its own"],
)
def test_the_exit_code_of_workbench_run_tells_how_all_ended(script: Script, lines: str, code: int, words: str) -> None:
    found, _, told = ended("-m", "workbench", "run", script(lines), "--of", "script")
    assert (found, "workbench/" in told) == (code, False), told
    assert words in told


def test_a_traceback_shows_the_scripts_own_lines_alone(tmp_path: Path) -> None:
    damaged = tmp_path / "prices.parquet"
    damaged.write_bytes(b"PAR1 cut off")
    with pytest.raises(wb.errors.SourceError) as raised:
        wb.Stream.from_files(damaged)
    told = traceback_of(raised.value)
    files = [line for line in told.splitlines() if line.lstrip().startswith('File "')]
    assert [f'"{__file__}"' in line for line in files] == [True], told
    assert "; write it again" in told
    assert ".;" not in told


def test_a_traceback_of_a_wrong_call_ends_in_how_it_is_meant() -> None:
    with pytest.raises(TypeError) as raised:
        wb.DiscardSink(nam="out")  # type: ignore[call-arg]
    assert traceback_of(raised.value).endswith(
        "unexpected keyword argument 'nam'\ndid you mean 'name'? It is called as DiscardSink(name=...)\n"
    )


@SLOW
def test_an_interrupted_run_stops_with_the_savepoint_that_was_asked_for(script: Script, tmp_path: Path) -> None:
    path = script(f"""
endless().sink_to(wb.DiscardSink()).run("p", checkpoint_dir={str(tmp_path / "kept")!r})
print("main ends", flush=True)
""")
    process = started("-m", "workbench", "run", "--savepoint", "before", path)
    assert process.stdout is not None
    assert process.stdout.readline() == "main ends\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert [savepoint.name for savepoint in wb.savepoints(tmp_path / "kept")] == ["before"]


def test_run_names_a_missing_file_and_a_savepoint_that_can_have_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(tmp_path / "none.py")]) == 2
    assert "there is no script" in capsys.readouterr().err
    file = tmp_path / "some.py"
    file.touch()
    assert main(["run", "--savepoint", "a/b", str(file)]) == 2
    assert "savepoint 'a/b' cannot be a file name" in capsys.readouterr().err


def test_a_test_runner_is_no_script() -> None:
    assert not is_script()
