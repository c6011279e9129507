"""How a kernel is declared: one function, one signature, compiled when it is first needed.

A kernel calls no kernel of another file: the cache on disk tracks only the kernel's own file, and would keep using the
old code of the other one. The cache is in the package's folder or, where that cannot be written, in the user's
cache folder (NUMBA_CACHE_DIR names another); it is bound to the processor and to the version of numba.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from types import FunctionType
from typing import Any, TypeVar

from numba import njit, types
from numba.core.types import Type

F = TypeVar("F", bound=Callable[..., Any])

I64: Type = types.int64
INTS_IN: Type = types.Array(types.int64, 1, "C", readonly=True)
FLOATS_IN: Type = types.Array(types.float64, 1, "C", readonly=True)
HASHES_IN: Type = types.Array(types.uint64, 1, "C", readonly=True)
BYTES_IN: Type = types.Array(types.uint8, 1, "C", readonly=True)
SMALL_INTS_IN: Type = types.Array(types.int32, 1, "C", readonly=True)
INTS: Type = types.int64[::1]
SMALL_INTS: Type = types.int32[::1]
FLOATS: Type = types.float64[::1]
HASHES: Type = types.uint64[::1]
BYTES: Type = types.uint8[::1]
INT_ROWS: Type = types.int64[:, ::1]
FLOAT_ROWS: Type = types.float64[:, ::1]
"""Arrays are contiguous; the names in ``_IN`` are only read, so they may also be views of Arrow's immutable buffers."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A declared kernel.

    Attributes:
        name: of the function.
        function: the loop, in Python.
        signature: its argument types.
        few: maximum rows of its first argument for which it keeps the interpreter lock.
        dispatchers: numba's, where there are few rows in a second one.
    """

    name: str
    function: FunctionType
    signature: tuple[Type, ...]
    few: int
    dispatchers: tuple[Any, ...]

    @property
    def was_compiled(self) -> bool:
        """Whether this process had to compile it, because the cache on disk did not have it."""
        return any(dispatcher.stats.cache_misses for dispatcher in self.dispatchers)

    def make_ready(self) -> None:
        """Compile it, or load it from the cache on disk; from then on it accepts only its declared types."""
        for dispatcher in self.dispatchers:
            if dispatcher.signatures:
                continue
            try:
                dispatcher.compile(self.signature)
            except OSError:  # it is compiled, but there is no space to store it for the next process
                if not dispatcher.signatures:
                    raise
            dispatcher.disable_compile()


FEW = 4_096
"""Rows that a kernel handles in some tens of microseconds."""

KERNELS: dict[str, Kernel] = {}
"""All kernels declared by the modules imported so far, by name."""


def compiled(*signature: Type, few: int = 0) -> Callable[[F], F]:
    """Declare a kernel with these argument types; see ``workbench.compiled`` for when it is compiled.

    Args:
        signature: the argument types.
        few: the kernel keeps the interpreter lock if its first argument has at most this many rows. Releasing and
            reacquiring the lock costs tens of microseconds if another thread waits for it, more than such a call.

    Example:
        >>> @compiled(INTS_IN, INTS)
        ... def double(values, out):
        ...     for i in range(len(values)):
        ...         out[i] = 2 * values[i]
    """

    def declare(function: Any) -> Any:
        freeing = _dispatcher(function, nogil=True)
        if not few:
            KERNELS[function.__name__] = Kernel(function.__name__, function, signature, 0, (freeing,))
            return freeing
        keeping = _dispatcher(_twin(function), nogil=False)
        KERNELS[function.__name__] = Kernel(function.__name__, function, signature, few, (freeing, keeping))

        @wraps(function)
        def chosen(rows: Any, *others: Any) -> Any:
            return keeping(rows, *others) if len(rows) <= few else freeing(rows, *others)

        return chosen

    return declare


def _dispatcher(function: FunctionType, *, nogil: bool) -> Any:
    try:
        return njit(nogil=nogil, cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        return njit(nogil=nogil)(function)


def _twin(function: FunctionType) -> FunctionType:
    """The same function under another name, which the cache on disk distinguishes."""
    twin = FunctionType(function.__code__, function.__globals__, f"{function.__name__}_few")
    twin.__qualname__ = f"{function.__qualname__}_few"
    twin.__module__ = function.__module__
    return twin
