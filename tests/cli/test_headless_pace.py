"""The last line of ``workbench demo --headless``: the speed of the job itself, and how it is measured."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from workbench.cli import headless
from workbench.cli.headless import Options
from workbench.cli.outcome import Effort, pace


def test_only_what_runs_at_full_speed_has_a_speed_by_the_clock() -> None:
    effort = Effort(wall_s=2.0, cpu_s=3.0)
    assert pace(300_000, effort, float("inf")) == (
        "300,000 flights in 2.0 s: 150,000 per second, 100,000 per CPU second, since its tasks started "
        "(3.0 CPU seconds on all cores)."
    )
    assert "per second" not in pace(300_000, effort, 3600.0)
    assert "at 3600x: 100,000 per CPU second" in pace(300_000, effort, 3600.0)


def test_compiling_and_starting_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    job = SimpleNamespace(
        over=True, complete=True, wait=lambda timeout: "FINISHED", table=lambda name: SimpleNamespace(num_rows=1)
    )

    def begin() -> Effort:
        done.append("measure")
        return Effort(-1.0, -1.0)

    def run(*_: Any, **__: Any) -> Any:
        done.append("run")
        return job

    monkeypatch.setattr(Effort, "begin", staticmethod(begin))
    monkeypatch.setattr(headless, "prepare_kernels", lambda graph: done.append("compile"))
    monkeypatch.setattr(headless, "prepare", lambda console, directory: None)
    monkeypatch.setattr(headless, "main_job", lambda history, **_: SimpleNamespace(run=run, logical_graph=None))
    monkeypatch.setattr(headless, "follow", lambda *_: done.append("follow"))
    monkeypatch.setattr(headless, "print_outcome", lambda *_: done.append("print"))
    monkeypatch.setattr(headless.RunFolder, "mark_finished", lambda self, **_: None)
    assert headless.run(Console(quiet=True), Options(tmp_path, "max", 1, "50ms", "5s", False)) == 0
    assert done == ["compile", "run", "measure", "follow", "print"]
