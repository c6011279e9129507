"""Runs a job in processes that are killed with ``kill -9``, until one of them finishes it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from workbench.lab.connectors.contract_error import ContractError

_FINISHED = "FINISHED"


def check_kills(
    program: Path,
    folder: Path,
    *,
    kills: int = 3,
    seed: int = 0,
    parallelism: Sequence[int] = (2, 3, 1),
    timeout_s: float = 120.0,
) -> list[str]:
    """Run a pipeline in processes that kill themselves (SIGKILL), each a random time after a checkpoint; the last one
    runs to the end. Each process resumes from the latest checkpoint, at another parallelism.

    What the sinks have then is for the caller to compare: nothing is missing, nothing twice.

    Args:
        program: a Python file that defines ``pipeline(folder)``, which returns a bounded `Pipeline` that lasts for some
            seconds, for example by the rate of its source.
        folder: of the run; the checkpoints are in it.
        kills: how many processes are killed.
        seed: of the random times.
        parallelism: of the processes, in turn.
        timeout_s: for each process, in seconds.

    Returns:
        One line for each process: its parallelism and how it ended.

    Raises:
        ContractError: a process failed, or ended before it could be killed.

    Example::

        check_kills(Path("own_pipeline.py"), tmp_path)
        assert sorted(read(tmp_path / "out")) == list(range(5_000))
    """
    chance, lines = Random(seed), []
    for number in range(kills + 1):
        width = parallelism[number % len(parallelism)]
        checkpoints, rest_s = (1 + chance.randrange(3), chance.uniform(0, 0.05)) if number < kills else (0, 0.0)
        command = [sys.executable, "-m", "workbench.lab.connectors.killed", str(program), str(folder)]
        command += [str(width), str(checkpoints), str(rest_s)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                out, _ = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise ContractError(
                    f"process {number} at parallelism {width} has not ended in {timeout_s:g} s"
                ) from None
        said = out.strip().splitlines()[-1] if out.strip() else ""
        if number < kills and said == _FINISHED:
            raise ContractError(
                f"process {number} had finished before it could be killed: give it more rows, or a rate"
            )
        if process.returncode != (-signal.SIGKILL if number < kills else 0) or (number == kills and said != _FINISHED):
            raise ContractError(f"process {number} at parallelism {width} failed: {said or process.returncode}")
        lines.append(f"parallelism {width}: {'killed' if number < kills else _FINISHED}")
    return lines
