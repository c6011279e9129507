"""A program of the tests in a process of its own, which answers each line with a number."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


class ChildProgram:
    """Runs a script of this folder.

    Args:
        script: its name.
    """

    def __init__(self, script: str) -> None:
        self._program = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name(script))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, line: str) -> int:
        """Send a line; returns the answer."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(f"{line}\n")
        self._program.stdin.flush()
        return int(self._program.stdout.readline())

    def close(self) -> None:
        """Let it end."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.close()
        self._program.stdout.close()
        self._program.wait()
