"""The logic of the JupyterLab front end that needs no page: decisions and messages, run by Node."""

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2] / "extension/tests"
BROUGHT = Path(sysconfig.get_path("scripts")) / "node"
NODE = str(BROUGHT) if BROUGHT.exists() else shutil.which("node")
COUNTS = {"asking.test.mjs": 12, "sentences.test.mjs": 2, "store.test.mjs": 11, "subshellComm.test.mjs": 4}
"""How many tests each file has."""


@pytest.fixture(scope="module")
def node():
    if NODE is None:
        pytest.skip("no Node here")
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.split(".")[0][1:]) < 24:
        pytest.skip("Node before 24 does not run TypeScript")
    return NODE


@pytest.mark.slow
@pytest.mark.parametrize(("file", "count"), COUNTS.items())
def test_the_front_end_by_itself(node, file, count):
    run = subprocess.run([node, "--test", str(TESTS / file)], capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 0, run.stdout
    assert f"pass {count}\n" in run.stdout


def test_every_file_of_tests_is_run():
    assert sorted(path.name for path in TESTS.iterdir()) == sorted(COUNTS)
