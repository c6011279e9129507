"""Makes all kernels ready before the first record, so that none is compiled in the middle of a stream."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

from workbench.compiled.folding import accumulate, counting, division, merging, rolling, sessions, substring, windows  # noqa: F401  imported so that their kernels are declared
from workbench.compiled.keys import hashing, joining, key_table, partition, selection, spreading  # noqa: F401  imported so that their kernels are declared
from workbench.compiled.machinery.compiled import KERNELS

_lock = Lock()
_ready: set[str] = set()


def is_warm() -> bool:
    """Whether every kernel is ready to run."""
    return len(_ready) == len(KERNELS)


def warm_up(progress: Callable[[int, int, str], None] | None = None) -> None:
    """Compile every kernel, or load it from the cache on disk; at once when that has been done already.

    The first time on a machine this takes several seconds, later a fraction of one. A kernel that is ready accepts its
    declared types only: another type is a TypeError, not a silent pause for compiling.

    Args:
        progress: called with (kernels ready, kernels in all, name of the next one), the last time with ``"ready"``.

    Example:
        >>> warm_up()
        >>> is_warm()
        True
    """
    if is_warm():
        return
    with _lock:  # several threads may ask; one compiles
        for kernel in KERNELS:
            if kernel.name in _ready:
                continue
            if progress is not None:
                progress(len(_ready), len(KERNELS), kernel.name)
            try:
                kernel.dispatcher.compile(kernel.signature)
            except OSError:  # it is compiled, and there is no space to keep it for the next process
                if not kernel.dispatcher.signatures:
                    raise
            kernel.dispatcher.disable_compile()
            _ready.add(kernel.name)
        if progress is not None:
            progress(len(_ready), len(KERNELS), "ready")
