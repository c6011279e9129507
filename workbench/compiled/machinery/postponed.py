"""Kernels that numba compiles, or loads from its cache, when they are made ready; numba is imported then."""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any

_lock = Lock()


class Postponed:
    """A kernel that is not there before it is made ready.

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
        """Compile it, or load it from the cache on disk; several threads may ask, one compiles."""
        with _lock:
            if not self.is_ready:
                module = import_module(self.module)
                kernels: Any = import_module("workbench.compiled.machinery.compiled")
                kernels.KERNELS[self.name].make_ready()
                self._function = getattr(module, self.name)
                self.is_ready = True

    def _first(self, *arguments: Any) -> Any:
        """Whoever calls a kernel has made it ready; it is a pause and no error where that was forgotten."""
        self.make_ready()
        return self._function(*arguments)
