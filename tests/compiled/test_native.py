"""Precompiled kernels: they give the same results as numba's, reject the same input, and are ignored if they do not
fit."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from pipelines.running import check

import workbench
from workbench import compiled
from workbench.compiled.machinery.compiled import KERNELS
from workbench.compiled.machinery.modules import MODULES
from workbench.compiled.native import building
from workbench.compiled.native.library import FILE, LEVELS, ready, stamp

PACKAGE = Path(workbench.__file__).parent
built = pytest.mark.skipif(ready("") is None, reason="no kernels are built from these sources: run make install")
SEEDS = range(25)


@built
def test_ready_kernels_are_those_that_are_declared() -> None:
    for level in import_module("workbench.compiled.native.ready").levels():
        found = ready(level)
        assert found is not None
        assert sorted(found.kernels) == sorted(name for names in MODULES.values() for name in names)
        assert found.packs == (level == "x86-64-v4")


def chosen(returned: tuple[int, Any, Any], columns: Any) -> list[Any]:
    """What ``choose_rows`` returned, without the places between columns, which are left as they were."""
    found, memory, layout = returned
    parts = [
        memory[at : at + (found * width if width else -(-found // 8))].tobytes()
        for at, width in zip(layout[::3], columns[1::5], strict=True)
    ]
    valid = [
        memory[at : at + -(-found // 8)].tobytes()
        for at, nulls in zip(layout[1::3], columns[3::5], strict=True)
        if nulls
    ]
    return [found, layout.tolist(), parts, valid]


def copied(arguments: tuple[Any, ...]) -> list[Any]:
    """Copies of the arrays; those that are two views of one piece of memory stay so."""
    memory: dict[int, Any] = {}
    copies = []
    for given in arguments:
        if isinstance(given, np.ndarray):
            own = memory.setdefault(given.ctypes.data, given.copy()).view(given.dtype) if given.size else given.copy()
            own.flags.writeable = given.flags.writeable
            copies.append(own)
        else:
            copies.append(given)
    return copies


@built
@pytest.mark.slow
def test_each_call_of_a_pipeline_gives_what_numba_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ready("")
    assert found is not None
    calls: Counter[str] = Counter()

    def compared(name: str) -> Callable[..., Any]:
        own, numbas = found.kernels[name], getattr(import_module(KERNELS[name].function.__module__), name)

        def call(*arguments: Any) -> Any:
            copies = copied(arguments)
            wanted, got = numbas(*copies), own(*arguments)
            for copy, given in zip(copies, arguments, strict=True):
                if isinstance(copy, np.ndarray):
                    assert copy.tobytes() == given.tobytes(), name
            if name == "choose_rows":
                assert chosen(got, arguments[-1]) == chosen(wanted, arguments[-1])
            else:
                assert got == wanted, name
            calls[name] += 1
            return got

        return call

    for module in (*MODULES, "workbench.public.names", "workbench.api.launching.launch"):
        import_module(module)
    for kernel in KERNELS.values():
        kernel.make_ready()
    shown = dict(compiled.KERNELS)
    for module in [module for name, module in sys.modules.items() if name.startswith("workbench.")]:
        for name in shown.keys() & vars(module).keys():
            if vars(module)[name] is shown[name]:
                monkeypatch.setattr(module, name, compared(name))
    for seed in SEEDS:
        check(seed)
    assert len(calls) > 20


@built
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((np.zeros(1, np.int64),), "hash_ints takes 2 arguments, not 1"),
        ((np.zeros(1, np.float64), np.zeros(1, np.uint64)), "argument 1 of hash_ints must be a contiguous array"),
        ((np.zeros((1, 1), np.int64), np.zeros(1, np.uint64)), "argument 1 of hash_ints must be a contiguous array"),
        ((np.zeros(4, np.int64)[::2], np.zeros(2, np.uint64)), "argument 1 of hash_ints must be a contiguous array"),
        ((np.zeros(1, ">i8"), np.zeros(1, np.uint64)), "argument 1 of hash_ints must be a contiguous array"),
        ((np.zeros(1, np.int64), np.zeros(1, np.int64)), "argument 2 of hash_ints must be a writable contiguous array"),
        ((np.zeros(1, np.int64), np.frombuffer(bytes(8), np.uint64)), "argument 2 of hash_ints must be a writable"),
        (([1], np.zeros(1, np.uint64)), "argument 1 of hash_ints must be a contiguous array"),
    ],
)
def test_what_a_kernel_does_not_take_is_refused(arguments: tuple[Any, ...], told: str) -> None:
    found = ready("")
    assert found is not None
    with pytest.raises(TypeError, match=told):
        found.kernels["hash_ints"](*arguments)


@built
def test_a_number_that_is_none_or_too_large_is_refused() -> None:
    found = ready("")
    assert found is not None
    values = np.zeros(1, np.int64)
    for number, error in ((1.5, TypeError), ("1", TypeError), (2**63, OverflowError)):
        with pytest.raises(error):
            found.kernels["divide_by"](values, number, 0, values.copy())


@built
def test_memory_that_a_kernel_allocates_lives_as_long_as_its_array_and_no_longer() -> None:
    found = ready("")
    assert found is not None
    column, rows = np.arange(100_000), np.arange(0, 100_000, 2, dtype=np.int32)
    places = np.array([column.ctypes.data, 8, 0, 0, 0], np.int64)

    def choose() -> tuple[int, Any, Any]:
        chosen: tuple[int, Any, Any] = found.kernels["choose_rows"](
            len(rows), -1, 0, 0, 0, 0, np.empty(0, np.uint8), rows, places
        )
        return chosen

    kept = [choose() for _ in range(3)]
    before = psutil.Process().memory_info().rss
    for _ in range(2_000):  # 400 kB each
        choose()
    assert psutil.Process().memory_info().rss - before < 100_000_000
    for count, memory, layout in kept:
        assert memory.ctypes.data % 64 == 0
        values = memory[layout[0] :][: 8 * count].view(np.int64)
        assert np.array_equal(values, column[rows])


SOURCE = """
import sys
import workbench.compiled as own
print([own.READY.level if own.READY else None, "numba" in sys.modules])
"""


def source(site: Path, choice: str | None = None) -> list[Any]:
    """The level of the kernels in a process that finds the package in that folder, and whether it imports numba."""
    kept = {name: value for name, value in os.environ.items() if name != "WORKBENCH_KERNELS"}
    env = kept | {"PYTHONPATH": str(site)} | ({} if choice is None else {"WORKBENCH_KERNELS": choice})
    ran = subprocess.run([sys.executable, "-c", SOURCE], env=env, cwd=site, capture_output=True, text=True, check=True)
    told: list[Any] = ast.literal_eval(ran.stdout)
    return told


@built
def test_kernels_of_other_sources_or_that_cannot_be_loaded_are_left_to_numba(tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(PACKAGE, site / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    fastest = import_module("workbench.compiled.native.ready").levels()[-1]
    assert source(site) == [fastest, False]
    assert source(site, "numba") == [None, False]
    assert source(site, "pentium") == [None, False]
    kernel = site / "workbench/compiled/folding/division.py"
    text = kernel.read_text(encoding="utf-8")
    kernel.write_text(text.replace("_EXACT_BITS = 51", "_EXACT_BITS = 50"), encoding="utf-8")
    assert source(site) == [None, False]
    kernel.write_text(text, encoding="utf-8")
    assert source(site) == [fastest, False]
    (site / "workbench/durations.py").rename(site / "elsewhere.py")
    assert source(site) == [None, False]
    (site / "elsewhere.py").rename(site / "workbench/durations.py")
    library = site / FILE.relative_to(PACKAGE.parent)
    library.write_bytes(b"of another processor")
    assert source(site) == [None, False]
    library.unlink()
    assert source(site) == [None, False]


@pytest.mark.slow
def test_the_module_is_built_from_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = building.platform.machine()
    level, features = next(iter(LEVELS[machine].items()))
    monkeypatch.setattr(building, "LEVELS", {machine: {level: features}})
    monkeypatch.setenv("PYTHONPATH", str(PACKAGE.parent))
    file = tmp_path / "ready.abi3.so"
    building.build(file)
    loader = ExtensionFileLoader("ready", str(file))
    spec = spec_from_loader("ready", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    assert stamp() == module.STAMP
    assert module.levels() == [level]
    out = np.empty(3, np.int64)
    assert module.kernels(level)["divide_by"](np.array([7, -7, 0]), 2, 0, out)
    assert out.tolist() == [3, -3, 0]
    assert list(tmp_path.iterdir()) == [file]


def test_a_machine_without_levels_or_a_compiler_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_begin", lambda level, features, file: None)
    monkeypatch.setattr(building, "_described", lambda process: [])
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(building.NotBuildableError, match="there is no C compiler 'no-such-compiler'"):
        building.build(tmp_path / "ready.abi3.so")
    monkeypatch.setattr(building, "LEVELS", {})
    with pytest.raises(building.NotBuildableError, match="are not built ahead of time for"):
        building.build(tmp_path / "ready.abi3.so")
    assert list(tmp_path.iterdir()) == []
