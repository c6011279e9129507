"""Builds the extension module with precompiled kernels, with numba and the C compiler of this Python.

Run as a program, it builds the module in the package's own folder: ``python -m workbench.compiled.native.building``.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from workbench.compiled.native.calls import Signature, Value, source
from workbench.compiled.native.library import FILE, LEVELS, stamp


class NotBuildableError(Exception):
    """The kernels cannot be built on this machine."""


def build(file: Path = FILE) -> None:
    """Write the extension module.

    Raises:
        NotBuildableError: the machine is not supported, or has no C compiler.
    """
    levels = LEVELS.get(platform.machine())
    if levels is None or sys.platform == "win32":
        raise NotBuildableError(f"kernels are not built ahead of time for {sys.platform} on {platform.machine()}")
    with tempfile.TemporaryDirectory(prefix="workbench-kernels-") as folder:
        objects = [Path(folder, f"{level}.o") for level in levels]
        begun = [_begin(level, features, file) for (level, features), file in zip(levels.items(), objects, strict=True)]
        described = [_described(process) for process in begun]
        if any(own != described[0] for own in described):
            raise NotBuildableError("numba infers different types for different processors")
        text = Path(folder, "calls.c")
        text.write_text(source(described[0], levels, stamp()), encoding="utf-8")
        _link([text, *objects], file)


def _begin(level: str, features: str, file: Path) -> subprocess.Popen[str]:
    """One process per level: they run in parallel."""
    environment = {**os.environ, "NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": features, "WORKBENCH_KERNELS": "numba"}
    command = [sys.executable, "-m", "workbench.compiled.native.level", level, str(file)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _described(process: subprocess.Popen[str]) -> list[Signature]:
    described, errors = process.communicate()
    if process.returncode:
        raise NotBuildableError(f"numba does not compile the kernels: {errors.strip()}")
    return [_signature(own) for own in json.loads(described)]


def _signature(described: dict[str, Any]) -> Signature:
    takes, returns = (tuple(Value(**value) for value in described[name]) for name in ("takes", "returns"))
    return Signature(described["name"], takes, returns, described["few"])


def _link(parts: list[Path], file: Path) -> None:
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    includes = [f"-I{sysconfig.get_paths()['include']}", f"-I{np.get_include()}"]
    shared = ["-bundle", "-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-shared"]
    made = file.with_suffix(f".{os.getpid()}")
    command = [*compiler, "-O2", "-fPIC", "-fvisibility=hidden", *includes, *shared, *map(str, parts), "-o", str(made)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise NotBuildableError(f"{compiler[0]} failed: {ran.stderr.strip()}")
        made.replace(file)
    except FileNotFoundError as error:
        raise NotBuildableError(f"there is no C compiler {compiler[0]!r}") from error
    finally:
        made.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        build()
    except NotBuildableError as error:
        sys.exit(f"Kernels are not compiled ahead of time: {error}")
