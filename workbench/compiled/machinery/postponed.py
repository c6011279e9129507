"""Kernels that numba compiles, or loads from its cache, when they are prepared; only then is numba imported."""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any

_lock = Lock()


class Postponed:
    """A kernel that is compiled or loaded only when it is prepared.

    Args:
        name: of the kernel.
        module: that declares it.
    """

    __slots__ = ("_function", "is_ready", "module", "name")

    def __init__(self, name: str, module: str) -> None:
        self.name = name
        self.module = module
        self.is_ready = False
        self._function = self._first

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def make_ready(self) -> None:
        """Compile it, or load it from the cache on disk; if several threads ask, one compiles."""
        with _lock:
            if not self.is_ready:
                module = import_module(self.module)
                kernels: Any = import_module("workbench.compiled.machinery.compiled")
                kernels.KERNELS[self.name].make_ready()
                self._function = getattr(module, self.name)
                self.is_ready = True

    def _first(self, *arguments: Any) -> Any:
        """Callers prepare a kernel first; otherwise the first call pauses to compile it."""
        self.make_ready()
        return self._function(*arguments)
