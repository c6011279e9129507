"""Making kernels ready: from the cache on disk wherever it can be, and with a bar where somebody has to wait."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import workbench
from workbench.api.beginning import preparing
from workbench.compiled.machinery.compiled import INTS, KERNELS, compiled

PACKAGE = Path(workbench.__file__).parent
ONE_KERNEL = """
import workbench.compiled
from workbench.compiled.machinery.compiled import KERNELS
[kernel] = [kernel for kernel in KERNELS if kernel.name == "hash_ints"]
kernel.dispatcher.compile(kernel.signature)
print(workbench.compiled.__file__)
print(kernel.was_compiled)
"""


def run_elsewhere(package: Path, home: Path) -> tuple[str, bool]:
    """Where a new process finds the kernels when the package lies in that folder, and whether it had to compile one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    env = {**kept, "HOME": str(home), "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", ONE_KERNEL], env=env, cwd=package, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    file, compiled_here = ran.stdout.splitlines()
    return file, compiled_here == "True"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package in a folder whose caches cannot be written, not even by root: files stand where they would go."""
    site = tmp_path / "site-packages"
    shutil.copytree(PACKAGE, site / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    for room in ("folding", "keys", "machinery"):
        (site / "workbench" / "compiled" / room / "__pycache__").write_text("")
    return site


def test_a_package_that_cannot_be_written_caches_in_the_users_folder(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    file, compiled_here = run_elsewhere(installed, home)
    assert Path(file).is_relative_to(installed)
    assert compiled_here
    assert list(home.rglob("*.nbi"))
    assert run_elsewhere(installed, home) == (file, False)


def test_without_any_place_for_a_cache_kernels_are_compiled_each_time(installed: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file, no folder")
    assert run_elsewhere(installed, home)[1]


def shown(monkeypatch: pytest.MonkeyPatch, compiled_at: int | None) -> list[tuple[int, str]]:
    """What the bar is told while three kernels are made ready, of which the one at `compiled_at` is not cached."""

    class Kernel:
        was_compiled = False

    told: list[tuple[int, str]] = []
    declared = [Kernel() for _ in range(3)]

    def warm_up(progress: preparing.Progress) -> None:
        for at, name in enumerate(["a", "b", "c", "ready"]):
            progress(at, 3, name)
            if at == compiled_at:
                declared[at].was_compiled = True

    monkeypatch.setattr(preparing, "is_warm", lambda: False)
    monkeypatch.setattr(preparing, "KERNELS", declared)
    monkeypatch.setattr(preparing, "warm_up", warm_up)
    monkeypatch.setattr(preparing, "_bar", lambda stack, total: lambda ready, name: told.append((ready, name)))
    preparing.prepare_kernels()
    return told


def test_a_bar_is_shown_once_a_kernel_had_to_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, compiled_at=0) == [(1, "b"), (2, "c"), (3, "ready")]
    assert shown(monkeypatch, compiled_at=1) == [(2, "c"), (3, "ready")]


def test_nothing_is_shown_when_all_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, compiled_at=None) == []


def test_the_bar_names_the_kernel(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with preparing.ExitStack() as stack:
        show = preparing._bar(stack, 25)
        show(3, "fold_ints")
    assert "compiling, once on this machine: fold_ints" in capfd.readouterr().err


def test_a_kernel_knows_whether_it_was_compiled() -> None:
    @compiled(INTS)
    def twice(values: object) -> None:
        for i in range(len(values)):  # type: ignore[arg-type]
            values[i] *= 2  # type: ignore[index]

    kernel = KERNELS.pop()
    assert not kernel.was_compiled
    kernel.dispatcher.disable_compile(False)
    kernel.dispatcher._cache.disable()
    kernel.dispatcher.compile(kernel.signature)
    assert kernel.was_compiled
