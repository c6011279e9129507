"""Runs a user's script as the main program of this process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import StackSummary, TracebackException
from types import ModuleType

from workbench.origin import is_ours


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
    """The traceback of an exception without the frames of the workbench."""
    report = TracebackException.from_exception(error)
    left: list[TracebackException | None] = [report]
    while left:
        if (each := left.pop()) is not None:
            each.stack = StackSummary.from_list([line for line in each.stack if not is_ours(line.filename)])
            left += [each.__cause__, each.__context__, *(each.exceptions or ())]
    return "".join(report.format())
