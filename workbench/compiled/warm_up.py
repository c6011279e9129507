"""Chooses the kernels: precompiled ones if they were built for this processor, else numba's.

Numba's are prepared before the first record of a job that needs them, so that none is compiled in the middle of a
stream: every caller of a kernel prepares it in its constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from workbench.compiled.machinery.modules import MODULES
from workbench.compiled.machinery.postponed import Postponed
from workbench.compiled.native.library import ready

READY = ready()
"""The kernels compiled ahead of time; None: numba compiles them."""

Progress = Callable[[str], None]
"""Called with the name of the next kernel to prepare."""

_heard: list[Progress] = []


def kernels() -> Mapping[str, Callable[..., Any]]:
    """Every kernel by name."""
    if READY is not None:
        return READY.kernels
    return {name: Postponed(name, module) for module, names in MODULES.items() for name in names}


KERNELS = kernels()


def is_warm() -> bool:
    """Whether every kernel is ready to run."""
    return READY is not None or all(kernel.is_ready for kernel in KERNELS.values() if isinstance(kernel, Postponed))


def warm_up(*needed: Callable[..., Any]) -> None:
    """Prepare kernels, or all of them if none is given; returns at once if they are ready.

    Those of ``READY`` always are. Numba compiles all others in ten to thirty seconds, once per machine, and loads them
    from the cache on disk in a fraction of a second. A prepared kernel accepts only its declared types: another type is
    a TypeError, not a silent pause for compiling.

    Example:
        >>> warm_up()
        >>> is_warm()
        True
    """
    if READY is not None:
        return
    for kernel in needed or KERNELS.values():
        if isinstance(kernel, Postponed) and not kernel.is_ready:
            for progress in _heard:
                progress(kernel.name)
            kernel.make_ready()


@contextmanager
def hearing(progress: Progress) -> Iterator[None]:
    """Call `progress` for each kernel that is prepared during the block by any thread."""
    _heard.append(progress)
    try:
        yield
    finally:
        _heard.remove(progress)


def packs_at_once() -> bool:
    """Whether kernels pack values in one instruction, which makes ``spread`` faster with `packed`."""
    if READY is not None:
        return READY.packs
    packs: bool = import_module("workbench.compiled.keys.packing").packs_at_once()
    return packs
