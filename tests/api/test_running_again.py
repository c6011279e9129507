"""What a run does where an earlier run of a job has left its checkpoints and its rows: the table of docs/how-to.md."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from waiting import until

import workbench as wb
from workbench import datasets
from workbench.connectors.contract.base import Sink
from workbench.connectors.replay.log import write_log

README = Path(__file__).parents[2] / "README.md"
DOCS = Path(__file__).parents[2] / "docs" / "how-to.md"
HEAD = ("run", "TableSink", "ParquetSink", "FileSink", "SqlSink", "SqlSink with upsert_key")
NUMBERS = count()


def sinks(folder: Path) -> list[Sink]:
    url = f"sqlite:///{folder}/rows.db"
    return [
        wb.TableSink("rows"),
        wb.ParquetSink(folder / "rows"),
        wb.FileSink(folder / "lines", format="csv"),
        wb.SqlSink(url, "added"),
        wb.SqlSink(url, "replaced", upsert_key="n"),
    ]


class Case:
    """One job with one sink, in a folder of its own."""

    def __init__(self, folder: Path, sink: int) -> None:
        folder.mkdir()
        self.folder, self.name = folder, f"again-{next(NUMBERS)}"
        self.sink = sinks(folder)[sink]

    def run(self, rows: int = 10, rate: float | None = None, column: str = "n", **options: object) -> wb.types.Job:
        stream = wb.Stream.from_table(pa.table({"n": list(range(rows)), "m": [0] * rows}), rate=rate)
        stream = stream.filter(f"{column} >= 0").uid(f"filter-{column}")
        given = {"name": self.name, "checkpoint_dir": self.folder / "kept", "checkpoint_interval": "20ms"}
        return stream.sink_to(self.sink).run(**{**given, **options})  # type: ignore[arg-type]

    def running(self) -> wb.types.Job:
        job = self.run(rows=100_000, rate=2_000, restart="none")
        until(job.checkpoints)
        job.savepoint("before")
        taken = job.checkpoints()[-1].id
        until(lambda: job.checkpoints()[-1].id > taken + 2)  # which have committed rows
        return job

    def finished(self) -> None:
        assert self.run().wait("60s") == "FINISHED"

    def stopped(self) -> None:
        job = self.running()
        job.stop(timeout="60s")

    def canceled(self) -> None:
        job = self.running()
        job.cancel()
        assert job.wait("60s") == "CANCELED"

    def failed(self) -> None:
        job = self.running()
        job.faults.fail(coordinator=True)
        with pytest.raises(wb.errors.JobError, match="failed on purpose"):
            job.wait("60s")

    def aside(self) -> int:
        return len(list((self.folder / "kept" / "earlier").glob("*")))

    def outcome(self, **options: object) -> str:
        """What a run with these options does: starts, starts over, continues, or is refused and changes nothing."""
        before = wb.jobs().get(self.name)
        runs = before is not None and not before.over
        aside = self.aside()
        try:
            job = self.run(**options)  # type: ignore[arg-type]
        except wb.errors.WorkbenchError as error:
            refusal = str(error)
        else:
            refusal = ""
        if refusal:
            assert "--" not in refusal  # a program cannot write flags
            assert self.aside() == aside
            assert not runs or (before is not None and before.state == "RUNNING")
            return "refused"
        assert before is None or before.over
        restored = job._run.master.restart_point is not None
        job.cancel()
        if self.aside() > aside:
            assert not restored
            return "starts over"
        return "continues" if restored else "starts"


SLOW = {"rows": 100_000, "rate": 2_000, "restart": "none"}
ROWS: list[tuple[str, tuple[Callable[[Case], object], ...], dict[str, object]]] = [
    ("the first", (lambda case: None,), {}),
    ("while it runs", (Case.running,), SLOW),
    ("while it runs, `replace=True`", (Case.running,), {**SLOW, "replace": True}),
    ("while it runs, `resume=True, replace=True`", (Case.running,), {**SLOW, "resume": True, "replace": True}),
    ("after it has read all of its input", (Case.finished,), {}),
    ("after that, `replace=True`", (Case.finished,), {"replace": True}),
    ("after that, `resume=True`", (Case.finished,), {"resume": True}),
    ("after that, with another program", (Case.finished,), {"column": "m"}),
    ("after that, under another name", (Case.finished,), {"name": "another"}),
    ("after that, without `checkpoint_dir`", (Case.finished,), {"checkpoint_dir": None}),
    ("after it was stopped or canceled, or failed", (Case.stopped, Case.canceled, Case.failed), SLOW),
    ("after that, `replace=True`", (Case.stopped, Case.canceled, Case.failed), {**SLOW, "replace": True}),
    ("after that, `resume=True`", (Case.stopped, Case.canceled, Case.failed), {**SLOW, "resume": True}),
    ("after that, `restore=` of a savepoint before rows", (Case.stopped,), {**SLOW, "restore": "before"}),
]


@pytest.mark.slow
def test_the_table_of_runs_in_the_documentation_is_what_runs_do(tmp_path: Path) -> None:
    lines = [HEAD, ("---",) * len(HEAD)]
    for what, earlier, options in ROWS:
        outcomes = []
        for sink in range(len(HEAD) - 1):
            found = set()
            for before in earlier if sink < 2 else earlier[:1]:
                case = Case(tmp_path / str(next(NUMBERS)), sink)
                before(case)
                found.add(case.outcome(**options))
            assert len(found) == 1, f"{what}, {HEAD[sink + 1]}: {found}"
            outcomes.append(found.pop())
        lines.append((what, *outcomes))
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    assert table in DOCS.read_text(encoding="utf-8"), f"docs/how-to.md lacks this table:\n{table}"


@pytest.mark.parametrize("sink", range(5))
def test_a_run_that_replaces_an_ended_job_creates_the_place_of_its_sink(tmp_path: Path, sink: int) -> None:
    case = Case(tmp_path / "new", sink)
    case.finished()
    other = Case(tmp_path / "newer", sink)
    other.name = case.name
    assert other.outcome(replace=True) == "starts"


BODY = "\nimport pyarrow as pa, workbench as wb\nwb.Stream.from_table(pa.table({'n': list(range(ROWS))}), rate=RATE)"


def run_cell(shell: InteractiveShell, line: str = "", rows: int = 100_000) -> tuple[wb.types.Job, str]:
    """Run a `%%stream` cell; the job of its name, and what was printed."""
    body = BODY.replace("ROWS", str(rows)).replace("RATE", "None" if rows < 100 else "2000")
    with capture_output() as captured:
        shell.run_cell(f"%%stream cell --checkpoint-dir kept --checkpoint-interval 20ms {line}{body}")
    return wb.job("cell"), captured.stdout + captured.stderr


@pytest.mark.slow
def test_a_cell_that_is_run_again_starts_over_where_a_run_would(
    shell: InteractiveShell, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_cell = {"metadata": {"cellId": "a"}}
    monkeypatch.setattr(shell, "parent_header", one_cell, raising=False)
    first, _ = run_cell(shell, rows=10)
    first.wait("60s")
    again, said = run_cell(shell, rows=10)  # unchanged, after it has read all of its input
    assert "'cell' starts over" in said
    assert "%%stream cell --checkpoint-dir" in said
    assert "earlier/1 --resume goes back to it" in said
    again.wait("60s")
    running, said = run_cell(shell)  # changed
    assert "earlier/2 --resume goes back to it" in said
    log = running.recorder
    until(lambda: any("earlier/2 --resume" in event.text for frame in log.frames() for event in frame.events))
    until(running.checkpoints)
    assert run_cell(shell)[0] is running  # unchanged, while it runs: it is shown
    refused, said = run_cell(shell, rows=90_000)  # changed, while it runs: the checkpoints would be lost to it
    assert (refused, running.state) == (running, "RUNNING")
    assert "continue it with --resume, start over with --replace, which sets them aside" in said
    over, said = run_cell(shell, "--replace", rows=90_000)
    assert "earlier/3 --resume goes back to it" in said
    assert (running.state, over.state) == ("FINISHED", "RUNNING")
    until(over.checkpoints)
    over.stop(timeout="60s")
    stopped, said = run_cell(shell, rows=90_000)  # which has not read all of its input
    assert stopped is over
    assert "continue it with --resume, start over with --replace, which sets them aside" in said
    assert "or choose another --checkpoint-dir" in said
    assert "=True" not in said
    assert run_cell(shell, "--resume", rows=90_000)[0].state == "RUNNING"


@pytest.mark.slow
def test_the_program_of_the_readme_runs_twice_in_one_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = pa.array([number * 60_000_000 for number in range(5_000)], pa.timestamp("us", "UTC"))
    delays = [float(number % 50) for number in range(5_000)]
    flights = pa.table({"time": times, "origin": ["JFK", "LGA"] * 2_500, "dep_delay": delays})
    log = write_log(flights, tmp_path / "flights.log", event_time="time", arrival_time="time", channels=1)
    monkeypatch.setattr(datasets, "flights_history", lambda: wb.History.open(log.path))
    monkeypatch.setattr(wb.types.Job, "dashboard", lambda job: None)
    monkeypatch.chdir(tmp_path)
    program = (
        README.read_text(encoding="utf-8").partition("## Ten lines, a year")[2].split("```")[1].removeprefix("python")
    )
    names: dict[str, object] = {}
    exec(program, names)
    first = names["job"]
    assert isinstance(first, wb.types.Job)
    until(first.checkpoints)
    exec(program, names)  # while it runs
    second = names["job"]
    assert isinstance(second, wb.types.Job)
    assert (first.state, second is first) == ("FINISHED", False)
    second.tune(speed="max")
    assert second.wait("60s") == "FINISHED"
    rows = second.table("delays").num_rows
    exec(program, names)  # after it has ended
    third = names["job"]
    assert isinstance(third, wb.types.Job)
    third.tune(speed="max")
    assert third.wait("60s") == "FINISHED"
    assert third.table("delays").num_rows == rows > 0
