"""The `workbench` command, from its help to a killed run that resumes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pytest
from packaging.requirements import Requirement
from waiting import PATIENCE_S, until

from workbench.cli import demo, doctor, main
from workbench.cli.checks import Check, machine, packages, runtime, space
from workbench.cli.entry import COMMANDS
from workbench.cli.run_folder import RunFolder
from workbench.datasets.package import DATA_FOLDER
from workbench.errors import CheckpointError, HistoryError
from workbench.runtime.storage import DirectoryStorage
from workbench.telemetry.frames import EdgeFrame, Frame, TaskFrame
from workbench.telemetry.reached import reached

NAMES = list(COMMANDS)
ROOT = Path(__file__).parents[2]


# --- help and mistakes


def leaves(argv: list[str]) -> int | str | None:
    """The exit code with which argparse ends the process."""
    with pytest.raises(SystemExit) as left:
        main(argv)
    return left.value.code


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert leaves(["--help"]) == 0
    printed = capsys.readouterr().out
    assert all(re.search(rf"^    {name} ", printed, re.MULTILINE) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert leaves([name, "--help"]) == 0
    assert f"usage: workbench {name}" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_line_of_a_help_is_wider_than_the_terminal(
    name: str, columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert leaves([*filter(None, [name]), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > columns] == []
    assert any(line.startswith("usage: workbench") for line in lines)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert leaves(["--version"]) == 0
    assert re.fullmatch(r"workbench \d+\.\d+\.\d+\n", capsys.readouterr().out)


IMPORTED = """
import contextlib, io, sys
from workbench.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(*sys.modules)
"""
JUPYTER_AND_SPARK = {"panel", "bokeh", "IPython", "ipykernel", "pyspark"}
RUNTIME = {"numba", "numpy", "pandas", "pyarrow", "sqlglot", "workbench.public", "workbench.runtime", "workbench.api"}


@pytest.mark.parametrize(
    ("argv", "needless"),
    [
        ([], JUPYTER_AND_SPARK | RUNTIME | {"rich"}),
        (["--version"], JUPYTER_AND_SPARK | RUNTIME | {"rich"}),
        (["--help"], JUPYTER_AND_SPARK | RUNTIME | {"rich"}),
        (["demo", "--help"], JUPYTER_AND_SPARK | RUNTIME),
        (["serve", "--help"], JUPYTER_AND_SPARK | RUNTIME),
        (["doctor", "--help"], JUPYTER_AND_SPARK | RUNTIME),
        (["slots", "--help"], JUPYTER_AND_SPARK | RUNTIME),
        (["simulate", "--help"], JUPYTER_AND_SPARK | RUNTIME),
        (["compare", "--help"], JUPYTER_AND_SPARK | RUNTIME),
        (["bench", "--help"], JUPYTER_AND_SPARK),  # the help lists the runs
        (["soak", "--help"], JUPYTER_AND_SPARK),  # ... and the faults
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_command_that_only_tells_something_imports_nothing_for_running_it(
    argv: list[str], needless: set[str]
) -> None:
    process = subprocess.run(
        [sys.executable, "-c", IMPORTED, *argv], capture_output=True, text=True, check=True, timeout=60
    )
    imported = set(process.stdout.split())
    assert "workbench.cli.entry" in imported
    assert imported & needless == set()


def test_the_help_of_the_demo_names_the_folder_that_it_uses(capsys: pytest.CaptureFixture[str]) -> None:
    assert leaves(["demo", "--help"]) == 0
    assert f"(default: {DATA_FOLDER})" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (
            ["demo", "--headless", "--speed", "fast"],
            "speed is 'fast': write a multiple of recorded time such as '600x'",
        ),
        (["demo", "--headless", "--speed=-3x"], "--speed is '-3x': a replay speed must be above zero"),
        (["demo", "--headless", "--buffer-timeout", "5"], "--buffer-timeout is '5'"),
        (["demo", "--headless", "--checkpoint-interval=-1s"], "--checkpoint-interval is '-1s': a duration cannot be"),
        (["demo", "--headless", "--parallelism", "0"], "--parallelism is 0: it must be at least 1"),
        (["demo", "--headless", "--parallelism", "two"], "--parallelism is 'two': write a whole number"),
        (["demo", "--headless", "--directory", __file__], "which is a file: name a folder"),
        (["demo", "--headless", "--prepare"], "not allowed with argument"),
        (["demo", "--headless", "fresh"], "'fresh' is for JupyterLab, which --headless and --prepare do not start"),
        (["demo", "--speed", "max"], "--speed needs --headless: add that, or leave it out"),
        (["demo", "--prepare", "--fresh"], "--fresh needs --headless: add that"),
        (["demo", "--directory", "data"], "--directory needs --headless or --prepare: add one of them"),
        (["demo", "--headless", "--parallelism", "1001"], "--parallelism is 1001: it must be at most 1000"),
        (["demo", "--headless", "--checkpoint-interval", "0"], "checkpoint_interval is 0: write a time such as '5s'"),
        (["serve", __file__.replace(".py", ".no")], "there is no script"),
        (["serve", str(ROOT / "README.md"), "two"], "'two' is for a script, but"),
        (["simulate", "--exhaustive", "--seeds", "3"], "--seeds is for a search through seeds, and --exhaustive and"),
        (["simulate", "--pairs", "--first", "0"], "--first is for a search through seeds, and --exhaustive and"),
        (["simulate", "--pairs", "--pipeline", "window"], "--pipeline is for a search through seeds, and --exhaustive"),
        (["simulate", "--replay", "3", "--pace"], "--pace is for a search through seeds, and --replay shows one"),
        (["simulate", "--replay", "3", "--jobs", "2"], "--jobs is for a search through seeds, and --replay shows one"),
        (["serve"], "the following arguments are required: FILE; 'workbench serve --help'"),
        (
            ["simulate", "--seeds", "1", "--seeds=2"],
            "argument --seeds: it is given twice, as 1 and as 2: write it once",
        ),
        (["dmo"], "invalid choice: 'dmo'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: int | str | None = main(argv)
    except SystemExit as left:
        code = left.code
    printed = capsys.readouterr()
    assert code == 2
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_what_no_job_takes_is_refused_before_a_former_run_is_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(tmp_path)
    folder.output.mkdir()
    run = ["demo", "--headless", "--fresh", "--directory", str(tmp_path)]
    for option in ("--parallelism=1001", "--checkpoint-interval=0s"):
        assert main([*run, option]) == 2
        assert "Starting" not in capsys.readouterr().out
    assert folder.output.is_dir()


def test_the_unexpected_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(lab_options: list[str]) -> int:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr(demo, "open_notebook", broken)
    monkeypatch.delenv("WORKBENCH_DEBUG", raising=False)
    assert main(["demo"]) == 2
    sentence = "unexpected RuntimeError: first line second line (WORKBENCH_DEBUG=1 shows where)"
    assert capsys.readouterr().err == f"workbench: {sentence}\n"
    monkeypatch.setenv("WORKBENCH_DEBUG", "1")
    with pytest.raises(RuntimeError, match="first line"):
        main(["demo"])


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["demo", "--headless", "--directory", str(tmp_path / "file" / "below")]) == 2
    printed = capsys.readouterr().err
    assert "cannot create" in printed
    assert "choose another --directory" in printed


def test_python_m_workbench() -> None:
    ran = subprocess.run([sys.executable, "-m", "workbench", "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("workbench ")


# --- doctor


def test_doctor_prints_a_line_for_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--quick"])
    lines = capsys.readouterr().out.splitlines()
    named = {
        line[9:31].strip(): line[:9].strip() for line in lines if line[:9].strip() in ("ok", "missing", "optional")
    }
    assert {"Python", "pyarrow", "pyspark", "Java", "compiled kernels", "folder", "disk"} <= named.keys()
    assert "Spark session" not in named
    assert named["pyarrow"] == named["compiled kernels"] == "ok"
    assert code == (1 if "missing" in named.values() else 0)


def test_doctor_tells_whether_the_machine_is_ready_for_a_lesson_before_it_starts_spark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    java, spark = Check("Java", True, "17"), Check("Spark session", False, "no memory", "free some", needed=True)
    monkeypatch.setattr(doctor, "checks", lambda: iter([java]))
    monkeypatch.setattr(runtime, "spark_session", lambda: iter([spark]))
    assert main(["doctor"]) == 1
    told = capsys.readouterr().out
    places = [told.index(text) for text in ("Java", "is ready for a lesson", "Spark session  ", "1 missing: Spark")]
    assert places == sorted(places)
    assert main(["doctor", "--quick"]) == 0
    assert "Spark session" not in capsys.readouterr().out
    monkeypatch.setattr(doctor, "checks", lambda: iter([Check("Java", False, "none", "install it", needed=True)]))
    assert main(["doctor", "--quick"]) == 1
    assert "Not ready for a lesson. 1 missing: Java." in capsys.readouterr().out


def test_doctor_tells_what_takes_the_space(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--space"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = {words[0]: int(words[1].replace(",", "")) for words in lines if words[2:3] == ["MB"]}
    assert table.keys() >= {"engine", "Spark", "dashboards", "JupyterLab", "all"}
    assert abs(table.pop("all") - sum(table.values())) <= len(table)
    assert min(table["engine"], table["Spark"]) > 100


def test_a_package_counts_once_with_what_it_requires(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def install(name: str, requires: str, content: int) -> None:
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (tmp_path / f"{name}.py").write_bytes(bytes(content))
        needs = "".join(f"Requires-Dist: {each}\n" for each in requires.split())
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n{needs}")
        (info / "RECORD").write_text(f"{name}.py,,\n{name}_removed.py,,\n")

    install("first", "shared", 1_000_000)
    install("second", "shared second-of-it", 3_000_000)
    install("shared", "first", 2_000_000)
    install("second_of_it", "", 4_000_000)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(space, "PURPOSES", {"a": ("first", "absent"), "b": ("second",), "c": ("absent",)})
    found = list(space.taken())
    assert [(each.purpose, dict(each.packages)) for each in found] == [
        ("a", {"shared": 2_000_000, "first": 1_000_000}),
        ("b", {"second-of-it": 4_000_000, "second": 3_000_000}),
    ]
    assert found[1].describe() == "      7 MB  second-of-it 4, second 3"


def test_a_missing_package_says_how_to_mend_it() -> None:
    check = packages.installed(Requirement("no-such-package-anywhere>=1"))
    assert (check.ok, check.found) == (False, "not installed")
    assert check.mend == f"run '{sys.executable} -m pip install \"no-such-package-anywhere>=1\"'"


def test_an_old_package_says_what_is_needed() -> None:
    check = packages.installed(Requirement("pyarrow>=1000"))
    assert not check.ok
    assert check.found.endswith("but >=1000 is needed")


def test_a_missing_browser_is_optional(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WORKBENCH_CHROMIUM", raising=False)
    [check] = machine.browser()
    assert (check.ok, check.needed, check.found) == (False, False, "no Chromium on the PATH")
    program = tmp_path / "my-browser"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("WORKBENCH_CHROMIUM", str(program))
    [check] = machine.browser()
    assert (check.ok, check.found) == (True, str(program))


# --- demo


def test_demo_becomes_jupyterlab(monkeypatch: pytest.MonkeyPatch) -> None:
    opens = ["--ServerApp.root_dir=/a b", "--LabApp.default_url=/lab/tree/c.ipynb"]
    lab = [sys.executable, "-m", "jupyterlab", "-y", *opens]
    commands: list[list[str]] = []

    def execv(program: str, command: list[str]) -> None:
        assert program == sys.executable
        commands.append(command)
        raise SystemExit(0)

    monkeypatch.setattr(demo, "notebook", lambda: Path("/a b/c.ipynb"))
    monkeypatch.setattr(demo.os, "execv", execv)
    monkeypatch.setattr(demo.os, "geteuid", lambda: 1000)
    assert leaves(["demo"]) == 0
    monkeypatch.setattr(demo.os, "geteuid", lambda: 0)
    assert leaves(["demo", "--", "--no-browser"]) == 0
    assert commands == [lab, [*lab, "--allow-root", "--no-browser"]]


def test_an_installed_notebook_is_copied_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(demo, "CHECKOUT", tmp_path / "no-checkout")
    monkeypatch.setattr(demo.sysconfig, "get_path", lambda name: str(tmp_path / "prefix"))
    (tmp_path / "here").mkdir()
    with pytest.raises(HistoryError, match="is not installed"):
        demo.notebook(tmp_path / "here")
    installed = tmp_path / "prefix" / "share" / "workbench" / "notebooks" / demo.NOTEBOOK
    installed.parent.mkdir(parents=True)
    installed.write_text("original")
    installed.with_name("02_second.ipynb").write_text("second")
    copy = demo.notebook(tmp_path / "here")
    assert copy == tmp_path / "here" / demo.NOTEBOOK
    assert copy.read_text() == "original"
    assert (tmp_path / "here" / "02_second.ipynb").read_text() == "second"
    copy.write_text("edited")
    assert demo.notebook(tmp_path / "here").read_text() == "edited"


def test_what_is_prepared_is_what_the_notebook_reads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(demo, "notebook", lambda: tmp_path / "lessons" / demo.NOTEBOOK)
    monkeypatch.setattr(
        "workbench.cli.headless.flights_history", lambda path: asked.append(Path(path)) or SimpleNamespace(rows=1)
    )
    assert main(["demo", "--prepare"]) == 0
    assert main(["demo", "--prepare", "--directory", str(tmp_path / "other")]) == 0
    [reads] = re.findall(r'flights_history\(\\"(.+?)\\"\)', (demo.CHECKOUT / "notebooks" / demo.NOTEBOOK).read_text())
    assert asked == [tmp_path / "lessons" / reads, tmp_path / "other/flights.log"]


def test_cleaning_leaves_the_history(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for path in (folder.history, folder.checkpoints, folder.output):
        path.mkdir()
        (path / "file").write_text("")
    folder.mark_finished(rows=3)
    assert folder.is_finished
    folder.clean()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flights.log"]
    assert not folder.is_finished
    assert not folder.is_begun


def test_a_folder_in_use_is_not_cleaned(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    storage = DirectoryStorage(folder.checkpoints)
    try:
        with pytest.raises(CheckpointError, match="in use by process"):
            folder.clean()
        assert folder.checkpoints.exists()
    finally:
        storage.close()
    folder.clean()
    assert not folder.is_begun


def test_cleaning_that_is_cut_off_is_taken_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path)
    folder.output.mkdir()
    folder.checkpoints.mkdir()
    remove = shutil.rmtree

    def cut_off(path: Path) -> None:
        remove(path)
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.cli.run_folder.shutil.rmtree", cut_off)
    with pytest.raises(KeyboardInterrupt):
        folder.clean()
    assert folder.checkpoints.exists() != folder.output.exists()
    assert folder.is_finished, "so that the next run cleans instead of resuming onto missing output"


def test_a_job_has_reached_what_its_last_tasks_have() -> None:
    def frame(*watermarks: int | None) -> Frame:
        tasks = [TaskFrame("source[0]", "v0", 0, "s", "RUNNING", {"currentInputWatermark": 1})]
        tasks += [
            TaskFrame(f"sink[{index}]", "v1", index, "s", "RUNNING", {"currentInputWatermark": watermark})
            for index, watermark in enumerate(watermarks)
        ]
        edge = EdgeFrame("v0->v1", "v0", "v1", "hash", 0, 8, 0.0, 0.0)
        return Frame("j", "RUNNING", 0, 0, 0, {}, {}, edges=(edge,), tasks=tuple(tasks))

    assert reached(frame(30, 20)) == 20
    assert reached(frame(30, None)) is None
    assert reached(frame()) is None


# --- the main job, headless

Demo = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def headless(flights_log: Path, tmp_path: Path) -> Iterator[Demo]:
    """Starts ``workbench demo --headless`` in a folder that has the history already; no run outlives the test."""
    shutil.copytree(flights_log, tmp_path / "data" / "flights.log")
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "workbench", "demo", "--headless", "--directory", str(tmp_path / "data")]
        environment = {key: value for key, value in os.environ.items() if key != "WORKBENCH_DEBUG"}
        process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with process:  # which closes its pipe
            process.kill()


def finished(process: subprocess.Popen[str], code: int = 0) -> str:
    """What a run printed that ends with this exit code."""
    printed, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, printed
    return printed


def complete_checkpoints(folder: Path) -> int:
    return len(list((folder / "checkpoints").glob("chk-*/manifest.json")))


def assert_output(folder: Path, oracle: pa.Table) -> None:
    """The Parquet files hold exactly the oracle's rows."""
    found = duckdb.sql(
        f"SELECT origin, window_start, flights, mean_delay, worst FROM '{folder}/delays/part-*.parquet' ORDER BY ALL"
    ).to_arrow_table()
    assert found.num_rows == oracle.num_rows
    for name in ("origin", "window_start", "flights", "worst"):
        assert found[name].to_pylist() == oracle[name].to_pylist()
    assert found["mean_delay"].to_pylist() == pytest.approx(oracle["mean_delay"].to_pylist(), rel=1e-12)


@pytest.mark.slow
@pytest.mark.spark
def test_a_run_prints_the_table_and_the_next_one_starts_anew(
    headless: Demo, tmp_path: Path, delays_oracle: pa.Table
) -> None:
    printed = finished(headless("--speed", "max", "--checkpoint-interval", "200ms"))
    assert "Starting." in printed
    assert re.search(r"EWR +│ +7,135 │ 117,596 │ +15.11 │ +1126 ", printed)
    assert re.search(r"336,776 flights in [\d.]+ s: [\d,]+ per second, [\d,]+ per CPU second", printed)
    assert "21,105 rows are committed in" in printed
    assert_output(tmp_path / "data", delays_oracle)
    printed = finished(headless("--speed", "max", "--parallelism", "1", "--checkpoint-interval", "disabled"))
    assert "The earlier run is finished. Starting a new run; the output of the earlier run is removed." in printed
    assert_output(tmp_path / "data", delays_oracle)


@pytest.mark.slow
@pytest.mark.spark
def test_kill_9_and_the_same_command_again(headless: Demo, tmp_path: Path, delays_oracle: pa.Table) -> None:
    options = ("--speed", "6000000x", "--checkpoint-interval", "100ms")
    folder = tmp_path / "data"
    process = headless(*options)
    until(lambda: complete_checkpoints(folder) >= 2, process)
    process.kill()
    process.communicate()
    assert not RunFolder(folder).is_finished
    printed = finished(headless(*options))
    assert "An earlier run was interrupted. Resuming from its latest complete checkpoint" in printed
    assert re.search(r"restored from chk-\d+", printed)
    assert_output(folder, delays_oracle)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_stops_with_a_checkpoint_and_resumes(
    headless: Demo, tmp_path: Path, delays_oracle: pa.Table, number: signal.Signals, code: int
) -> None:
    folder = tmp_path / "data"
    process = headless("--speed", "3000000x", "--checkpoint-interval", "disabled")
    until((folder / "checkpoints" / "lock").exists, process)
    time.sleep(0.5)
    process.send_signal(number)
    printed = finished(process, code=code)
    assert "Interrupted. Taking a final checkpoint." in printed
    assert re.search(r"Run the same command to resume from checkpoint \d+, or add --fresh to start again\.", printed)
    assert complete_checkpoints(folder) == 1
    printed = finished(headless("--speed", "max", "--parallelism", "3"))
    assert re.search(r"restored from chk-\d+", printed)
    assert_output(folder, delays_oracle)


def test_a_caller_may_have_closed_the_standard_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "checks", lambda: iter([Check("Python", True, "there")]))
    monkeypatch.setattr(runtime, "spark_session", lambda: iter([]))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        patch.setattr(sys, "stderr", None)
        assert main(["doctor"]) == 0
        assert main(["simulate", "--replay", "1", "--seeds", "2"]) == 2
        sys.stdout.close()
        sys.stderr.close()
