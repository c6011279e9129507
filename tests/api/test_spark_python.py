"""The Python that the workers of a user's session run is checked before a start; no JVM is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from refusals import error_of

from workbench.spark.worker_python import check_worker_python

HERE = "{}.{}".format(*sys.version_info)


def script(folder: Path, lines: str) -> str:
    file = folder / "python"
    file.write_text(f"#!/bin/sh\n{lines}\n")
    file.chmod(0o755)
    return str(file)


def test_this_python_and_one_of_its_kind_are_accepted(tmp_path: Path) -> None:
    check_worker_python(sys.executable)
    check_worker_python(script(tmp_path, f'exec {sys.executable} "$@"'))


def test_an_environment_without_the_packages_is_told(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "other"], check=True)
    told = error_of(lambda: check_worker_python(str(tmp_path / "other" / "bin" / "python")))
    assert f"{tmp_path}/other/bin/python, which has no package pyarrow and no package pandas" in told
    assert f"set PYSPARK_PYTHON={sys.executable} in the environment" in told


@pytest.mark.parametrize(
    ("lines", "fact"),
    [
        ("echo 3.9 pyarrow", f"which is Python 3.9, and this process is Python {HERE}: stop the session, set "),
        ("exit 7", "which does not run on this machine: stop the session, set "),
        ("", "which does not run on this machine: stop the session, set "),
    ],
)
def test_another_python_is_told(lines: str, fact: str, tmp_path: Path) -> None:
    assert fact in error_of(lambda: check_worker_python(script(tmp_path, lines)))


def test_a_python_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = error_of(lambda: check_worker_python("python3"))
    assert told.startswith("the workers of the Spark session run python3, which does not exist on this machine: stop")
    script(tmp_path, "echo 3.9")
    (tmp_path / "python").rename(tmp_path / "python3")
    assert f"run python3 ({tmp_path}/python3), which is Python 3.9" in error_of(lambda: check_worker_python("python3"))
