"""``workbench simulate`` and its parts: searching, shrinking a failure, replaying it, a user's pipeline."""

from __future__ import annotations

import io
import itertools
import os
import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console
from searching_runs import results_of

from workbench.cli import main
from workbench.cli.progress_bar import ProgressBar
from workbench.connectors.parts.part_formats import PART_FORMATS, encode_csv
from workbench.connectors.tables.tables import Tables
from workbench.errors import JobError, SettingError
from workbench.lab import Scenario, replay, run_scenario, shrink, simulate
from workbench.lab.pipelines.topologies import TOPOLOGIES
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.search import Search, run_blocks
from workbench.lab.simulation.user_pipeline import load_pipeline, trial_of
from workbench.operators.windows.rows import KeptRecords

USER = """
import pyarrow as pa
from searching_runs import results_of

import workbench as wb

clicks = pa.table({"user": ["a", "b", "c", "a"] * 5, "t": range(20), "tags": [["x"], []] * 10})

def stream():
    return wb.Stream.from_table(clicks, event_time="t").key_by("user").aggregate(n=wb.count())
"""


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.py"
    path.write_text(USER)
    return path


@pytest.fixture
def committed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows of an epoch that was committed already are committed again."""
    commit = Tables.commit

    def careless(self: Tables, name: str, subtask: int, epoch: int, table: pa.Table) -> None:
        commit(self, name, subtask, epoch, table)
        if epoch > 1:
            self._entry(name).fresh.extend(list(self._entry(name).fresh)[-1:])

    monkeypatch.setattr(Tables, "commit", careless)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "x = 1\n\nraise ValueError('x')\n",
            "raises ValueError: x; fix it (faulty.py, line 3: raise Val",
        ),
        (
            "def stream():\n    return 1 / 0\n",
            "raises ZeroDivisionError: division by zero; fix it (faulty.py, line 2",
        ),
        ("x = 1\nstream = (\n", "raises SyntaxError: '(' was never closed; fix it (faulty.py, line 2: stream = ()"),
    ],
)
def test_an_error_in_ones_own_file_is_told_with_its_line(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "faulty.py"
    path.write_text(text)
    assert main(["simulate", "--seeds", "1", "--pipeline", str(path)]) == 2
    error = capsys.readouterr().err
    assert f"{path} cannot be run, it {told}" in error
    assert "unexpected" not in error


def first_failure(**drawn: Any) -> tuple[Scenario, Any]:
    for seed in range(100):
        scenario = Scenario(seed, **drawn)
        result = run_scenario(scenario)
        if not result.ok:
            return scenario, result
    raise AssertionError("the planted bug was not found")


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "3", "--first", "7"]) == 0
    said = capsys.readouterr().out
    assert re.fullmatch(
        r"3 seeds from 7 passed: [\d,]+ steps with \d+ crashes and other faults in [\d.]+ s, \d+ seeds per second,"
        r" \d+ per CPU second\.\n",
        said,
    )


def pace_row(name: str, results: list[SimulationResult]) -> list[str]:
    """The columns of a row that are not measured: by every size of the graph, and of one or two tasks."""
    small = [result for result in results if result.tasks <= 2]
    return [name, *itertools.chain.from_iterable(
        [f"{len(those):,}", f"{sum(r.steps for r in those) / len(those):,.0f}"] if those else ["", ""]
        for those in (results, small)
    )]  # fmt: skip


def test_the_command_tells_its_pace_by_pipeline(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "60", "--pace"]) == 0
    said = capsys.readouterr().out
    results = [simulate(seed) for seed in range(60)]
    by_name = {name: [result for result in results if result.pipeline == name] for name in TOPOLOGIES}
    drawn = {name: those for name, those in by_name.items() if those}
    assert any(result.tasks > 2 for result in results)
    for name, those in [*drawn.items(), ("all", results)]:
        (row,) = [line for line in said.splitlines() if line.startswith(f"│ {name} ")]
        cells = [cell.strip() for cell in row.split("│")[1:-1]]
        assert [*cells[:3], *cells[4:6]] == pace_row(name, those)
        assert int(cells[3]) > 0
        assert bool(cells[6]) == bool(cells[4])


def test_where_there_is_no_bar_a_line_tells_of_every_tenth() -> None:
    console = Console(file=io.StringIO(), width=100)
    with ProgressBar(console, "looking") as progress:
        progress.advance()
        progress.expect("simulating", 40)
        for _ in range(39):
            progress.advance()
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert [line.partition(" after ")[0] for line in lines] == [f"simulating: {done} of 40" for done in range(4, 40, 4)]


@pytest.mark.usefixtures("committed_twice")
def test_the_command_prints_what_fails_and_how_to_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "100", "--fault", "process", "--pipeline", "filtered"]) == 1
    lines = capsys.readouterr().out.splitlines()
    seed = next(match[1] for line in lines if (match := re.match(r"seed (\d+): filtered, buffers of", line)))
    assert any(line.startswith("  I7: out: ") for line in lines)
    assert lines[-2].startswith("It still fails with: ")
    assert lines[-1].startswith("Reproduce it with: workbench simulate ")
    words = shlex.split(lines[-1].partition(": workbench ")[2])
    assert words == ["simulate", "--pipeline", "filtered", "--fault", "process", "--replay", seed]
    assert main(words) == 1
    shown = capsys.readouterr().out
    assert f"seed {seed}: filtered" in shown
    assert f"job = workbench.lab.replay({seed}, pipeline='filtered', faults=('process',))" in shown


@pytest.mark.usefixtures("committed_twice")
def test_a_failure_is_made_small() -> None:
    scenario, result = first_failure()
    smaller, found = shrink(scenario, result)
    assert not found.ok
    assert found.violations[0].partition(":")[0] == result.violations[0].partition(":")[0] == "I7"
    assert smaller.faults is not None
    assert len(smaller.faults.faults) <= len(result.plan.faults)
    assert len(smaller.actions or ()) <= len(result.actions)
    assert smaller.rows_max is not None
    assert smaller.rows_max < 20
    again = run_scenario(smaller)
    assert (again.trace_hash, again.violations) == (found.trace_hash, found.violations)


@pytest.mark.usefixtures("committed_twice")
def test_a_replay_stands_right_before_the_violation() -> None:
    scenario, result = first_failure()
    job = replay(scenario)
    assert not job.over
    job.stepper.step()
    last = result.story[-1].split(" ")
    assert job.recorder.latest() is not None
    assert job.stepper.driver.actor == last[0]


def test_a_seed_that_keeps_every_promise_is_replayed_from_its_start() -> None:
    job = replay(11)
    assert job.state == "RUNNING"
    assert len(job.stepper.step(5)) == 5
    assert job.stepper.driver.run_until(lambda: job.over or job.recorder.frames()[-1].sequence > 100)
    with pytest.raises(JobError, match="not from a checkpoint"):
        job._run.rerun("a", False)


@pytest.mark.slow
def test_several_processes_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # A shell that another test had in this process leaves a __main__ that new processes cannot be told of.
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    seeds = range(30)
    alone = list(run_blocks(Search("windows"), seeds))
    together = list(run_blocks(Search("windows"), seeds, jobs=2))
    assert alone == together
    assert [block.seeds for block in alone] == [25, 5]


@pytest.mark.slow
def test_the_pipeline_of_a_user_keeps_its_results(user_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--pipeline", str(user_file), "--seeds", "20"]) == 0
    assert "20 seeds from 0 passed" in capsys.readouterr().out


MEDIAN = """
import pyarrow as pa
import workbench as wb

table = pa.table({"k": [n % 5 for n in range(30)], "t": [n * 10 for n in range(30)]})
keyed = wb.Stream.from_table(table, event_time="t").key_by("k")
stream = keyed.window(wb.tumbling("100us")).aggregate(middle=wb.median("t"))
"""

SESSIONS = MEDIAN.replace('wb.tumbling("100us")', 'wb.session("100us")').replace('wb.median("t")', 'wb.max("t")')

ON_DISK = """
import pyarrow as pa
import workbench as wb

class Counted(wb.functions.ProcessFunction):
    n = wb.state.ValueState(pa.int64(), default=0)

    def process(self, record, state, ctx):
        state.n += 1
        ctx.register_event_timer(1_000_000)

    def on_timer(self, time, state, ctx):
        yield {"k": ctx.key, "n": state.n}

table = pa.table({"k": [n % 5 for n in range(30)], "t": [n * 10 for n in range(30)]})
keyed = wb.Stream.from_table(table, event_time="t").key_by("k")
stream = keyed.process(Counted(), {"k": pa.int64(), "n": pa.int64()}, state_backend="disk")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "seeds"),
    [(MEDIAN, range(20)), (SESSIONS, range(20)), (ON_DISK, (41, 47, 75))],
    ids=("median", "sessions", "disk"),
)
def test_state_that_is_saved_in_another_form_is_no_other_state(
    program: str, seeds: Iterable[int], tmp_path: Path
) -> None:
    path = tmp_path / "own.py"
    path.write_text(program)
    search = Search(str(path))
    for seed in seeds:
        result = run_scenario(search.scenario(seed))
        assert result.ok, result


def test_a_record_that_a_restored_window_lacks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = KeptRecords.load

    def careless(self: Any, entries: Any, table: pa.Table, places: Any, tables: Any) -> None:
        load(self, entries, table, places, {**tables, "members": tables["members"].slice(1)})

    monkeypatch.setattr(KeptRecords, "load", careless)
    path = tmp_path / "own.py"
    path.write_text(MEDIAN)
    search = Search(str(path))
    results = (run_scenario(search.scenario(seed)) for seed in range(60))
    broken = next(result for result in results if not result.ok)
    assert "I6: aggregate was restored with " in broken.violations[0]


@pytest.mark.usefixtures("committed_twice")
def test_what_breaks_the_pipeline_of_a_user_is_found(user_file: Path) -> None:
    search = Search(str(user_file))
    results = (run_scenario(search.scenario(seed)) for seed in range(60))
    broken = next(result for result in results if not result.ok)
    assert broken.violations[0].startswith("I7: result: 0 rows of the run without faults are missing and ")


def test_a_file_that_cannot_be_simulated_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="there is no file"):
        load_pipeline(tmp_path / "none.py")
    path = tmp_path / "nothing.py"
    path.write_text("x = 1\n")
    with pytest.raises(SettingError, match="defines no pipeline"):
        load_pipeline(path)
    path.write_text(
        "import workbench as wb, pyarrow as pa\n"
        "stream = wb.Stream.from_table(pa.table({'n': [1]})).sink_to(wb.PrintSink())\n"
    )
    with pytest.raises(SettingError, match="leave out the sink"):
        load_pipeline(path)
    path.write_text(path.read_text().replace("wb.PrintSink()", "wb.CallbackSink(print)"))
    with pytest.raises(SettingError, match=r"write to 'print' each time: define rows\(folder\)"):
        load_pipeline(path)
    path.write_text(SINKS.replace("{folder}/new", f"{tmp_path}/old"))
    with pytest.raises(SettingError, match=r"old/clicks.db order' each time: define stream\(folder\), which writes to"):
        load_pipeline(path)
    path.write_text(SINKS.replace("read = ", "read = folder.nothing"))
    with pytest.raises(SettingError, match="raises AttributeError: 'PosixPath' object has no attribute 'nothing"):
        load_pipeline(path)
    path.write_text(
        "import workbench as wb, pyarrow as pa\n"
        "stream = wb.Stream.from_table(pa.table({'n': [1]})).map(lambda row: 1 // 0,"
        " schema=pa.schema({'n': pa.int64()}))\n"
    )
    with pytest.raises(SettingError, match="does not finish without faults"):
        trial_of(load_pipeline(path))


def test_a_table_may_be_called_as_an_operator_is(tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text(
        USER.replace("(n=wb.count())", "(n=wb.count()).sink_to(wb.TableSink('table', upsert_key=['user']))")
    )
    assert [str(result) for result in results_of(path, 30) if not result.ok] == []


SINKS = """
import pyarrow as pa
import workbench as wb

clicks = pa.table({"user": ["a", "b", "c", "a"] * 5, "n": range(20)})

def stream(folder):
    read = wb.Stream.from_table(clicks)
    url = f"sqlite:///{folder}/new/clicks.db"
    counts = read.key_by("user").aggregate(count=wb.count())
    return (
        read.sink_to(wb.SqlSink(url, "order"))
        + counts.sink_to(wb.SqlSink(url, "latest", upsert_key="user"))
        + read.sink_to(wb.ParquetSink(folder / "parquet"))
        + read.sink_to(wb.FileSink(folder / "csv", "csv"))
        + read.sink_to(wb.TableSink("table"))
    )
"""
"""Sinks of all kinds, and a name that SQL has taken for itself."""

CALLED = """
import pyarrow as pa
import workbench as wb

clicks = pa.table({"n": range(20)})
written = CONTAINER

def put(batch):
    written.update((row["n"], row) for row in batch.to_pylist())

def stream(folder):
    written.clear()
    return wb.Stream.from_table(clicks).sink_to(wb.CallbackSink(put))

def rows(folder):
    return [*written.values()]
"""


def test_a_user_has_sinks_of_all_kinds_in_the_folder_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "sinks.py"
    path.write_text(SINKS)
    results = results_of(path, 25)
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.processes > 1 for result in results) > 2


def test_what_a_sink_of_a_user_loses_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "sinks.py"
    path.write_text(SINKS)
    results_of(path, 1)  # what is expected is known

    def forgetful(rows: pa.Table) -> Any:
        return encode_csv(rows.slice(0, rows.num_rows - 1) if 19 in rows.column("n").to_pylist() else rows)

    monkeypatch.setitem(PART_FORMATS, "csv", replace(PART_FORMATS["csv"], encode=forgetful))
    (result,) = results_of(path, 1)
    (violation,) = result.violations
    assert violation.startswith("I7: files of csv: 1 rows of the run without faults are missing and 0 are surplus")


def test_a_sink_of_ones_own_is_found_when_it_is_not_idempotent(tmp_path: Path) -> None:
    path = tmp_path / "by_key.py"
    path.write_text(CALLED.replace("CONTAINER", "{}"))
    assert all(result.ok for result in results_of(path, 40))
    path = tmp_path / "every_call.py"
    path.write_text(
        CALLED.replace("CONTAINER", "[]").replace("written.update(", "written.extend(").replace(".values()", "")
    )
    broken = next(result for result in results_of(path, 40) if not result.ok)
    assert re.match(
        "I7: rows: 0 rows of the run without faults are missing and [0-9]+ are surplus", broken.violations[0]
    )


def test_a_pipeline_of_a_user_is_replayed_as_the_command_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "by_key.py"
    path.write_text(CALLED.replace("CONTAINER", "{}"))
    assert main(["simulate", "--pipeline", str(path), "--fault", "kill", "--replay", "3"]) == 0
    call = f"replay(3, pipeline={str(path)!r}, faults=('kill',))"
    assert f"In Python: job = workbench.lab.{call}; job.stepper.step()" in capsys.readouterr().out
    job = replay(3, pipeline=str(path), faults=("kill",))
    assert {row["task"].partition("[")[0] for row in job.metrics()} == {"table"}


@pytest.mark.slow
def test_what_depends_on_the_process_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    path = tmp_path / "hashed.py"
    path.write_text(
        "import pyarrow as pa, workbench as wb\n"
        "table = wb.Stream.from_table(pa.table({'user': ['a', 'b', 'c']}))\n"
        "stream = table.map(lambda row: {'place': hash(row['user'])}, {'place': pa.int64()})\n"
    )
    seed = os.environ.get("PYTHONHASHSEED")
    assert main(["simulate", "--pipeline", str(path), "--seeds", "2"]) == 1
    said = capsys.readouterr().out
    assert (
        "No seed failed, but another process returned different rows:\n  result: 3 rows of the run without faults are"
        in said
    )
    assert os.environ.get("PYTHONHASHSEED") == seed


def test_the_input_of_a_user_is_not_said_to_be_made_smaller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a random one.py"
    path.write_text(
        "import itertools, pyarrow as pa, workbench as wb\n"
        "numbers = itertools.count()\n"
        "table = wb.Stream.from_table(pa.table({'n': range(9)}))\n"
        "stream = table.map(lambda row: {'x': next(numbers)}, {'x': pa.int64()})\n"
    )
    assert main(["simulate", "--pipeline", str(path), "--seeds", "1"]) == 1
    said = capsys.readouterr().out
    assert "9 rows of the run without faults are missing and 9 are surplus" in said
    words = shlex.split(said.splitlines()[-1].partition(": workbench ")[2])
    assert words == ["simulate", "--pipeline", str(path), "--replay", "0"]
    assert "It still fails with: no faults; no user actions. Then: " in said


def test_an_unknown_pipeline_or_fault_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--pipeline", "window"]) == 2
    assert "did you mean 'windows'" in capsys.readouterr().err
    assert main(["simulate", "--fault", "kil"]) == 2
    assert "did you mean 'kill'" in capsys.readouterr().err


def test_what_is_fixed_of_a_scenario_changes_nothing_else() -> None:
    drawn = simulate(5)
    fixed = run_scenario(Scenario(5, faults=drawn.plan, actions=drawn.actions))
    assert fixed == drawn
