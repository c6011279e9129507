"""Prepares the compiled kernels; on a machine's first run, which compiles them, a bar shows the progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from workbench.compiled import is_warm, warm_up
from workbench.compiled.machinery.compiled import KERNELS

Progress = Callable[[int, int, str], None]
Show = Callable[[int, str], None]
"""Takes the number of kernels that are ready and the name of the next one."""


def prepare_kernels() -> None:
    """Make all kernels ready, with a bar in a terminal or a notebook once one has to be compiled.

    Nothing is shown where all come from the cache on disk, which takes a fraction of a second.
    """
    if is_warm():
        return
    show: Show | None = None
    with ExitStack() as stack:

        def progress(ready: int, total: int, name: str) -> None:
            nonlocal show
            if show is None and any(kernel.was_compiled for kernel in KERNELS):
                show = _bar(stack, total)
            if show is not None:
                show(ready, name)

        warm_up(progress)


@contextmanager
def compiling(function: str) -> Iterator[None]:
    """Say in a terminal or a notebook that a user's function is being compiled, as long as it is."""
    with ExitStack() as stack:
        _bar(stack, 1, "compiling")(0, function)
        yield


def _bar(stack: ExitStack, total: int, what: str = "compiling, once on this machine") -> Show:
    """A bar that is there until `stack` is left."""
    # Loaded here because a bar is seldom needed, and loading takes longer than a job's start.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn(f"{what}: {{task.fields[kernel]}}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    hidden = not (console.is_terminal or console.is_jupyter)
    bars = stack.enter_context(Progress(*columns, console=console, transient=True, disable=hidden))
    bar = bars.add_task("", total=total, kernel="")
    return lambda ready, name: bars.update(bar, completed=ready, kernel=name)
