"""A user's own sink and source: the job treats them like built-in ones, without a list of classes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from example_connectors import PARTS, LinesLogic, LinesSink, Numbers
from searching_runs import results_of
from waiting import until

import workbench as wb
from workbench.plan.guarantee import weakest_guarantee

RUN = """
import sys
from pathlib import Path
from example_connectors import LinesSink, Numbers
folder, parallelism, pause_us = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
pipeline = Numbers(50, pause_us).stream().rebalance().sink_to(LinesSink(folder / "out"))
job = pipeline.run("lines", parallelism=parallelism, checkpoint_interval="50ms",
                   checkpoint_dir=folder / "checkpoints", resume=True)
print("started", flush=True)
print(job.wait(), flush=True)
"""
SIMULATED = """
from example_connectors import LinesSink, Numbers

def stream(folder):
    return Numbers(6).stream().filter("n % 3 > 0").sink_to(LinesSink(folder / "new" / "out"))
"""


def lines(folder: Path) -> list[int]:
    return sorted(json.loads(str(line))["n"] for line in LinesSink(folder).committed())


def test_a_bounded_job_commits_its_tail_and_is_labelled(tmp_path: Path) -> None:
    pipeline = Numbers(20).stream().sink_to(LinesSink(tmp_path / "out"))
    assert weakest_guarantee(pipeline.logical_graph())[0] == "exactly-once"
    assert "numbers -> out" in str(pipeline.explain())
    job = pipeline.run("own", checkpoint_dir=tmp_path / "checkpoints", checkpoint_interval=None)
    assert job.wait("60s") == "FINISHED"
    assert lines(tmp_path / "out") == list(range(PARTS * 20))
    (found,) = wb.found_jobs(tmp_path / "checkpoints")
    assert found.record.state == "FINISHED"
    with pytest.raises(wb.errors.SinkError, match="out has lines, which job 'other' did not write"):
        pipeline.run("other")


def test_its_place_is_taken_once(tmp_path: Path) -> None:
    stream = Numbers(1_000, pause_us=10_000).stream()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "out")
    twice = stream.sink_to(LinesSink(tmp_path / "out")) + stream.sink_to(LinesSink(link))
    with pytest.raises(wb.errors.PlanError, match=r"two sinks write to '.*out'"):
        twice.run("twice")
    job = stream.sink_to(LinesSink(tmp_path / "out")).run("first")
    try:
        with pytest.raises(wb.errors.SinkError, match="is written to by job 'first' of process"):
            stream.sink_to(LinesSink(tmp_path / "out")).run("second")
    finally:
        job.cancel()
        job.wait("60s")


def test_it_refuses_to_go_back_behind_its_lines_and_names_the_checkpoint(tmp_path: Path) -> None:
    stream = Numbers(1_000, pause_us=2_000).stream()
    job = stream.sink_to(LinesSink(tmp_path / "out")).run(
        "back", checkpoint_dir=tmp_path / "checkpoints", checkpoint_interval="20ms"
    )
    try:
        until(lambda: lines(tmp_path / "out"))
        job.savepoint("early")
        files = len([*(tmp_path / "out").glob("*.txt")])
        until(lambda: len([*(tmp_path / "out").glob("*.txt")]) > files + 2)  # one of them may be the savepoint's own
        with pytest.raises(
            wb.errors.SinkError, match=r"behind checkpoint \d+ \(savepoints/early of job 'back', completed 20"
        ):
            job.restore("early")
        assert job.state == "RUNNING"
    finally:
        job.cancel()
        job.wait("60s")


def test_it_is_killed_and_restored_exactly_once(tmp_path: Path) -> None:
    def process(parallelism: int, pause_us: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", RUN, str(tmp_path), str(parallelism), str(pause_us)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1] / "support")

    with process(2, 20_000) as killed:
        until(lambda: len(lines(tmp_path / "out")) > 20, killed)
        killed.send_signal(signal.SIGKILL)
    assert len(lines(tmp_path / "out")) < PARTS * 50
    with process(1, 0) as again:
        out, _ = again.communicate(timeout=120)
    assert out.splitlines()[-1] == "FINISHED"
    assert lines(tmp_path / "out") == list(range(PARTS * 50))


def test_it_is_simulated_with_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.py"
    path.write_text(SIMULATED)
    results = results_of(path, 25)
    assert [str(result) for result in results if not result.ok] == []
    assert sum(result.processes > 1 for result in results) > 2

    whole = LinesLogic._write
    monkeypatch.setattr(LinesLogic, "_write", lambda self, name, rows: whole(self, name, rows[1:]))
    (result,) = results_of(path, 1)
    (violation,) = result.violations
    assert violation.startswith("I7: files of out:")
    assert "rows of the run without faults are missing" in violation
