"""Runs the same works on other systems, with the scripts of a folder, for comparison.

A script is called as ``PYTHON SCRIPT WORK SECONDS`` and prints a line of JSON with the fields of `Result` for each of
its settings; ``common.py`` of the folder, if it exists, is called first and writes the inputs. The environment names
the Python (PEER_PY), and may name folders for the inputs (PEER_DATA) and for scratch files (PEER_OUT).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from workbench.errors import SettingError, unknown
from workbench.lab.bench.measuring.measure import Result

DEFAULT = ("bare", "flink")
BARE_SHARE = 5
"""Kernels without an engine need no warm-up and have many settings, so each gets a fifth of the time."""
UNSAID: dict[str, object] = {"timeout": 100, "checkpoint": 0, "rate": 0, "sink": "none"}
"""The default of settings that a script does not name."""
OUTCOMES = ("completed",)
"""Names among the settings that describe results."""
LONGEST_S = 3_600


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of scripts.

    Attributes:
        path: the folder.
        scripts: those to run, in order.
        environment: of the scripts.
    """

    path: Path
    scripts: tuple[Path, ...]
    environment: dict[str, str]

    def run(self, work: str, seconds: float) -> Iterator[Result]:
        """Run every script; a failure is reported on stderr, and the others still run."""
        for script in self.scripts:
            length = max(1.0, seconds / BARE_SHARE) if script.stem == "bare" else seconds
            ran = self._call(script, work, f"{length:g}")
            for line in ran.stdout.splitlines():
                if not line.startswith("{"):
                    continue
                if (result := read_line(line)) is not None:
                    yield result
                elif (reason := json.loads(line).get("skipped")) is not None:
                    sys.stderr.write(f"{script.name} {work}: skipped: {reason}\n")
            if ran.returncode:
                last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
                sys.stderr.write(f"{script.name} {work}: exit code {ran.returncode}: {last}\n")

    @property
    def inputs(self) -> Path:
        """Where scripts find their inputs."""
        return Path(self.environment["PEER_DATA"])

    def prepare(self) -> None:
        """Write the inputs."""
        if (self.path / "common.py").exists():
            self._call(self.path / "common.py").check_returncode()

    def _call(self, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.environment.get("PEER_PY", sys.executable), str(script), *arguments]
        return subprocess.run(
            command, cwd=self.path, env=self.environment, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )


@contextmanager
def open_folder(path: Path, names: Sequence[str]) -> Iterator[Folder]:
    """The scripts of these names (``flink`` or ``flink_peer``) in a folder, with a place for their files.

    Raises:
        SettingError: no such folder or script.
    """
    if not path.is_dir():
        raise SettingError(f"--peers is {str(path)!r}: there is no such folder")
    known = {file.stem.removesuffix("_peer"): file for file in sorted(path.resolve().glob("[!_]*.py"))}
    chosen = []
    for name in names:
        if name.removesuffix("_peer") not in known:
            raise SettingError(unknown("peer", name, known))
        chosen.append(known[name.removesuffix("_peer")])
    with tempfile.TemporaryDirectory(prefix="workbench-peers-") as scratch:
        environment = {
            "PEER_DATA": str(Path(scratch) / "data"),
            "PEER_OUT": str(Path(scratch) / "out"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **os.environ,
        }
        folder = Folder(path.resolve(), tuple(chosen), environment)
        folder.prepare()
        yield folder


def read_line(line: str) -> Result | None:
    """Parse a script's line of JSON; None if it was skipped; unknown fields are ignored."""
    found = json.loads(line)
    wanted = {field.name for field in fields(Result)}
    known = {name: value for name, value in found.items() if name in wanted}
    return None if "eps" not in known else Result(**known)


def comparable(ours: Result, theirs: Result) -> bool:
    """Whether two results are of the same work with the same settings, as far as both name them."""
    if ours.workload != theirs.workload:
        return False
    for name in (ours.config.keys() | UNSAID.keys()) - set(OUTCOMES):
        if name in ours.config and theirs.config.get(name, UNSAID.get(name, ours.config[name])) != ours.config[name]:
            return False
    return True
