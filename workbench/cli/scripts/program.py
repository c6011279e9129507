"""Runs a user's script as the main program of this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException
from types import ModuleType

from workbench.origin import is_ours
from workbench.traces import is_library
from workbench.traces.calls import advice


@contextmanager
def main_program(script: Path, arguments: Sequence[str]) -> Iterator[Callable[[], None]]:
    """A function that runs a script once; until the end of the context, the script is the main program.

    Its folder comes first in the path of imports, as with ``python script.py``.

    Args:
        script: a Python file.
        arguments: of the script; it reads them in ``sys.argv``.
    """
    path = script.absolute()
    module = ModuleType("__main__")
    module.__file__ = str(path)
    main, argv, folders = sys.modules["__main__"], sys.argv, sys.path[:]
    sys.modules["__main__"] = module
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(path.resolve().parent))

    def run() -> None:
        with io.open_code(str(path)) as file:
            code = compile(file.read(), str(path), "exec")
        exec(code, module.__dict__)

    try:
        yield run
    finally:
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, folders


def traceback_of(error: BaseException) -> str:
    """The traceback of an exception without the frames of the workbench, and of what it calls; below an error of a call
    with the wrong arguments, how the function is called."""
    if note := advice(error, error.__traceback__):
        error.add_note(note)
    report = TracebackException.from_exception(error)
    left: list[TracebackException | None] = [report]
    while left:
        if (each := left.pop()) is not None:
            each.stack = StackSummary.from_list(list(_calls_of_the_script(each.stack)))
            left += [each.__cause__, each.__context__, *(each.exceptions or ())]
    return "".join(report.format())


def _calls_of_the_script(stack: Iterable[FrameSummary]) -> Iterator[FrameSummary]:
    """The calls that are neither in the workbench, nor in a library that it has called."""
    inside = False
    for call in stack:
        inside = is_ours(call.filename) or (inside and (is_library(call.filename) or call.filename == "<string>"))
        if not inside:
            yield call
