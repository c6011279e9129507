"""The same kernels from every source that they can come from: numba, and what was compiled ahead of time."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import pytest

from workbench import compiled
from workbench.compiled.machinery.compiled import KERNELS
from workbench.compiled.machinery.modules import MODULES
from workbench.compiled.native.library import LEVELS, ready

NUMBA = "numba" if compiled.READY is None else pytest.param("numba", marks=pytest.mark.slow)
"""Compiling all kernels takes 15 s: where they are ready, only `make test-all` tests numba's as well."""
SOURCES = (NUMBA, *LEVELS.get(platform.machine(), ()))


@contextmanager
def kernels_of(source: str) -> Iterator[None]:
    """Have ``workbench.compiled`` give the kernels of a source; skips the test where this machine has none."""
    with pytest.MonkeyPatch.context() as patch:
        if source == "numba":
            for module, names in MODULES.items():
                for name in names:
                    function = getattr(import_module(module), name)
                    KERNELS[name].make_ready()
                    patch.setattr(compiled, name, function)
        else:
            found = ready(source)
            if found is None:
                pytest.skip(f"no kernels for {source} processors are built, or this one is none")
            for name, function in found.kernels.items():
                patch.setattr(compiled, name, function)
        yield
