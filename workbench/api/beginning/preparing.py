"""Has numba compile kernels where there are no ready ones; on a machine's first run, a bar shows the progress."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Event, Thread

from workbench.compiled import (
    KERNELS,
    hash_bytes,
    hash_ints,
    hearing,
    is_warm,
    mix_hashes,
    route,
    scatter,
    spread,
    warm_up,
)
from workbench.plan.logical import LogicalGraph

Show = Callable[[str, int], None]
"""Takes what is compiled next, and how many were compiled before."""


def prepare_kernels(graph: Callable[[], LogicalGraph]) -> None:
    """Make the kernels ready that a pipeline needs, with a bar in a terminal or a notebook once one has to be compiled.

    What calls a kernel makes it ready when it is constructed, so each operator is made once and let go. Nothing is
    shown where all come from the cache on disk, which takes a fraction of a second.
    """
    if is_warm():
        return
    with ExitStack() as stack:
        stack.enter_context(hearing(_shown(stack)))
        for node in graph().nodes:
            if any(item.exchange == "hash" for item in node.inputs):
                warm_up(hash_bytes, hash_ints, mix_hashes, route, scatter, spread)
            if node.role == "operator":
                spec, schemas = node.spec, [item.schema for item in node.inputs]
                with suppress(Exception):  # the start of the job reports an operator that cannot be created
                    spec.create(schemas)  # type: ignore[call-arg]


def prepare_others() -> None:
    """Prepare all other kernels while the job runs; those that remain at the end of the process are skipped."""
    if is_warm() or _others.is_alive() or _ends.is_set():
        return
    with suppress(RuntimeError):  # it has begun, and ended; or the system has no thread left
        _others.start()
        atexit.register(_leave)


def _warm_up_others() -> None:
    for kernel in KERNELS.values():
        if _ends.is_set():
            return
        warm_up(kernel)


def _leave() -> None:
    """Wait for the compiler: a process that ends while it works would crash."""
    _ends.set()
    _others.join()


_ends = Event()
_others = Thread(target=_warm_up_others, name="kernels", daemon=True)


@contextmanager
def compiling(function: str) -> Iterator[None]:
    """Say in a terminal or a notebook that a user's function is being compiled, as long as it is."""
    with ExitStack() as stack:
        _bar(stack, "compiling")(function, 0)
        yield


def _shown(stack: ExitStack) -> Callable[[str], None]:
    """The progress callback: a bar, shown from the first compiled kernel until `stack` is closed."""
    declared = import_module("workbench.compiled.machinery.compiled").KERNELS
    show: Show | None = None

    def next_one(name: str) -> None:
        nonlocal show
        count = sum(kernel.was_compiled for kernel in declared.values())
        if show is None and count:
            show = _bar(stack, "compiling, once on this machine")
        if show is not None:
            show(name, count)

    return next_one


def _bar(stack: ExitStack, what: str) -> Show:
    """A bar that is shown until `stack` is left."""
    if find_spec("rich") is None:
        return lambda name, count: None
    # Loaded here because a bar is seldom needed, and loading takes longer than a job's start.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn(f"{what}: {{task.fields[what]}}"), BarColumn(), TimeElapsedColumn())
    hidden = not (console.is_terminal or console.is_jupyter)
    bars = stack.enter_context(Progress(*columns, console=console, transient=True, disable=hidden))
    bar = bars.add_task("", total=None, what="")
    return lambda name, count: bars.update(bar, what=f"{name} ({count} done)" if count else name)
