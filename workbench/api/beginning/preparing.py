"""Prepares the compiled kernels; a machine's first run, which compiles them, shows a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from workbench.compiled import is_warm, warm_up
from workbench.compiled.machinery.compiled import KERNELS

Progress = Callable[[int, int, str], None]
Show = Callable[[int, str], None]
"""Receives the number of kernels that are ready and the name of the next one."""


def prepare_kernels() -> None:
    """Load all kernels, with a bar in a terminal or a notebook as soon as one has to be compiled.

    Nothing is shown if all come from the cache on disk, which takes a fraction of a second.
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
    """Show in a terminal or a notebook that a user's function is being compiled, while it is."""
    with ExitStack() as stack:
        _bar(stack, 1, "compiling")(0, function)
        yield


def _bar(stack: ExitStack, total: int, what: str = "compiling, once on this machine") -> Show:
    """A bar that is shown until `stack` is closed."""
    # Imported here because a bar is rarely needed, and the import takes longer than a job's start.
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
