"""The preparation of kernels: from the cache on disk if possible, and with a progress bar if a user has to wait."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from numba import njit
from pipelines.running import check

import workbench as wb
from workbench import compiled
from workbench.api.beginning import preparing
from workbench.compiled.machinery.compiled import INTS, KERNELS, Kernel
from workbench.compiled.machinery.compiled import compiled as declared
from workbench.compiled.machinery.modules import MODULES
from workbench.compiled.machinery.postponed import Postponed

PACKAGE = Path(wb.__file__).parent
SEEDS = range(60)
"""Pipelines drawn with these seeds call nearly every kernel."""
ONE_KERNEL = """
import workbench.compiled
from workbench.compiled.machinery.compiled import KERNELS
workbench.compiled.warm_up(workbench.compiled.hash_ints)
print(workbench.compiled.__file__)
print(KERNELS["hash_ints"].was_compiled)
print([kernel.name for kernel in workbench.compiled.KERNELS.values() if kernel.is_ready])
"""


def run_elsewhere(package: Path, home: Path) -> tuple[str, bool]:
    """Where a new process finds the kernels when the package lies in that folder, and whether it had to compile one."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    own = {"HOME": str(home), "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "WORKBENCH_KERNELS": "numba"}
    ran = subprocess.run(
        [sys.executable, "-c", ONE_KERNEL], env=kept | own, cwd=package, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    file, compiled_here, ready = ran.stdout.splitlines()
    assert ast.literal_eval(ready) == ["hash_ints"]
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


def test_every_declared_kernel_is_listed() -> None:
    for module in MODULES:
        import_module(module)
    assert {name: kernel.function.__module__ for name, kernel in KERNELS.items()} == {
        name: module for module, names in MODULES.items() for name in names
    }
    assert sorted(compiled.KERNELS) == sorted(KERNELS)
    assert set(KERNELS) <= set(compiled.__all__)


@pytest.fixture
def postponed(monkeypatch: pytest.MonkeyPatch) -> dict[str, Postponed]:
    """No kernel is ready, and numba has to compile them, which takes 15 s where it has not yet."""
    kernels = {name: Postponed(name, module) for module, names in MODULES.items() for name in names}
    warm_up = import_module("workbench.compiled.warm_up")  # the package has a function of that name
    monkeypatch.setattr(warm_up, "READY", None)
    monkeypatch.setattr(warm_up, "KERNELS", kernels)
    monkeypatch.setattr(preparing, "KERNELS", kernels)
    for name in ("workbench.public.names", "workbench.api.launching.launch"):  # what is imported later is not patched
        import_module(name)
    for module in [module for name, module in sys.modules.items() if name.startswith("workbench.")]:
        for name in kernels.keys() & vars(module).keys():
            if vars(module)[name] is compiled.KERNELS[name]:
                monkeypatch.setattr(module, name, kernels[name])
    return kernels


@pytest.mark.slow
def test_warm_up_makes_ready_what_it_is_asked_for_or_all(postponed: dict[str, Postponed]) -> None:
    told: list[str] = []
    with compiled.hearing(told.append):
        compiled.warm_up(postponed["hash_ints"], postponed["route"])
        assert [kernel.name for kernel in postponed.values() if kernel.is_ready] == ["hash_ints", "route"]
        assert not compiled.is_warm()
        compiled.warm_up()
    assert compiled.is_warm()
    assert told == ["hash_ints", "route", *(name for name in postponed if name not in ("hash_ints", "route"))]
    compiled.warm_up()
    assert len(told) == len(postponed)


@pytest.mark.slow
def test_no_kernel_is_called_that_was_not_made_ready_before(
    postponed: dict[str, Postponed], monkeypatch: pytest.MonkeyPatch
) -> None:
    unprepared: list[str] = []
    used: set[str] = set()

    def call(kernel: Postponed, *arguments: Any) -> Any:
        used.add(kernel.name)
        if not kernel.is_ready:
            unprepared.append(kernel.name)
        return kernel._function(*arguments)

    monkeypatch.setattr(Postponed, "__call__", call)
    for seed in SEEDS:
        for kernel in postponed.values():
            kernel.is_ready, kernel._function = False, kernel._first
        check(seed)
    for kernel in postponed.values():
        kernel.is_ready, kernel._function = False, kernel._first
    totals = wb.Stream.from_table(pa.table({"k": [1, 1], "v": [2, 3]})).key_by("k").aggregate(s=wb.sum("v"))
    job = totals.sink_to(wb.TableSink("totals", upsert_key="k")).run("totals")
    job.wait("120s")
    assert job.table("totals").to_pylist() == [{"k": 1, "s": 5}]
    numbers = wb.Stream.from_table(pa.table({"k": [1, 1, 1], "t": [1, 2, 3], "n": [5, 4, 6]}), event_time="t")
    rise = numbers.key_by("k").match(
        wb.pattern("low").next("up", "n > low.n"), rows="all", total="SUM(up.n)", last="LAST(up.n)"
    )
    rise.sink_to(wb.TableSink("rise")).run("rise").wait("30s")
    numbers.key_by("k").latest_by("n").sink_to(wb.TableSink("latest", upsert_key="k")).run("latest").wait("30s")
    values = numbers.group_by("k").aggregate(values=wb.count_distinct("n"))
    again = values.group_by("values").aggregate(keys=wb.count_distinct("k"))
    (values.sink_to(wb.TableSink("values")) + again.sink_to(wb.TableSink("again"))).run("values").wait("30s")
    joined = values.join(wb.Stream.from_table(pa.table({"k": [1], "name": ["a"]})), "k")
    joined.sink_to(wb.TableSink("joined")).run("joined", buffer_size=1).wait("30s")
    texts = wb.Stream.from_table(pa.table({"k": ["a", "a"], "v": [2, 3]})).key_by("k").aggregate(s=wb.sum("v"))
    texts.sink_to(wb.TableSink("texts")).run("texts").wait("30s")
    assert unprepared == []
    assert sorted(postponed.keys() - used) == []


def shown(monkeypatch: pytest.MonkeyPatch, compiled_at: int | None) -> list[tuple[str, int]]:
    """What the bar is told while three kernels are made ready, of which the one at `compiled_at` is not cached."""
    told: list[tuple[str, int]] = []
    own = {name: SimpleNamespace(was_compiled=False) for name in "abc"}
    monkeypatch.setattr(import_module("workbench.compiled.machinery.compiled"), "KERNELS", own)
    monkeypatch.setattr(preparing, "_bar", lambda stack, what: lambda name, count: told.append((name, count)))
    with preparing.ExitStack() as stack:
        next_one = preparing._shown(stack)
        for at, name in enumerate(own):
            next_one(name)
            own[name].was_compiled = at == compiled_at
    return told


def test_a_bar_is_shown_once_a_kernel_had_to_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, compiled_at=0) == [("b", 1), ("c", 1)]
    assert shown(monkeypatch, compiled_at=1) == [("c", 1)]


def test_nothing_is_shown_when_all_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, compiled_at=None) == []


def test_the_bar_names_the_kernel(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with preparing.ExitStack() as stack:
        show = preparing._bar(stack, "compiling, once on this machine")
        show("fold_ints", 3)
    assert "compiling, once on this machine: fold_ints (3 done)" in capfd.readouterr().err


def test_only_what_a_pipeline_needs_is_prepared(
    postponed: dict[str, Postponed], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(Postponed, "make_ready", lambda kernel: asked.append(kernel.name))  # compiling takes seconds
    stream = wb.Stream.from_table(pa.table({"k": [1], "v": [2]}))
    preparing.prepare_kernels(stream.key_by("k").aggregate(s=wb.sum("v")).sink_to(wb.DiscardSink()).logical_graph)
    assert {"spread", "hash_ints", "add_keys", "roll_keys", "fold_ints"} <= set(asked)
    assert set(asked).isdisjoint(
        {"place_in_tumbling", "place_in_sessions", "merge_rows", "find_literal", "number_rows"}
    )


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(preparing, "_ends", preparing.Event())
    monkeypatch.setattr(preparing, "_others", preparing.Thread(target=preparing._warm_up_others, daemon=True))
    yield
    preparing.atexit.unregister(preparing._leave)
    preparing._leave()


@pytest.mark.usefixtures("others")
@pytest.mark.slow
def test_the_other_kernels_are_made_ready_behind(postponed: dict[str, Postponed]) -> None:
    preparing.prepare_others()
    preparing.prepare_others()  # a second job begins
    preparing._others.join(60)
    assert compiled.is_warm()


def test_a_kernel_knows_whether_it_was_compiled() -> None:
    @declared(INTS)
    def twice(values: Any) -> None:
        for i in range(len(values)):
            values[i] *= 2

    kernel = KERNELS.pop("twice")
    assert not kernel.was_compiled
    kernel.dispatchers[0]._cache.disable()
    kernel.make_ready()
    assert kernel.was_compiled


def test_a_kernel_that_cannot_be_kept_for_the_next_process_is_ready_in_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import_module("workbench.compiled.folding.division")
    kernel = KERNELS["divide_by"]
    dispatcher = njit(nogil=True)(kernel.function)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dispatcher._cache, "save_overload", full)
    Kernel("divide_by", kernel.function, kernel.signature, 0, (dispatcher,)).make_ready()
    assert len(dispatcher.signatures) == 1
