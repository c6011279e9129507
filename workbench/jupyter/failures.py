"""How an error looks in a notebook: a WorkbenchError is one sentence that names the cell's line, with no traceback.

Below the sentence of a failed job are the lines of the user's functions that the failure has passed."""

from __future__ import annotations

import linecache
import sys
from traceback import walk_tb
from types import TracebackType
from typing import Any

from workbench.errors import JobError, QueryError, WorkbenchError, sentence_of
from workbench.jupyter.cell import BodySyntaxError
from workbench.origin import Origin, is_cell, line_text
from workbench.traces.calls import advice


def show_failure(
    shell: Any,
    kind: type[BaseException],
    error: BaseException,
    trace: TracebackType | None,
    tb_offset: int | None = None,
) -> list[str]:
    """Print a WorkbenchError as a sentence, and a syntax error in a ``%%stream`` cell as in any other cell; ``%tb``
    still shows the full traceback. A TypeError is shown as always; if a function of ours was called with the wrong
    arguments, a note says how it is called. For ``set_custom_exc``."""
    if isinstance(error, TypeError):
        if note := advice(error, trace):
            error.add_note(note)
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset, running_compiled_code=True)
        return []
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    if isinstance(error, BodySyntaxError):
        marked: list[str] = shell.SyntaxTB.structured_traceback(error.kind, error, [])
        shell._showtraceback(error.kind, error, marked)
        return marked
    lines = [f"{kind.__name__}: {sentence(error, trace)}"]
    if isinstance(error, QueryError) and error.excerpt:
        lines += error.excerpt.split("\n")
    if isinstance(error, JobError) and error.trace:
        lines += error.trace.split("\n")
    shell._showtraceback(kind, error, lines)
    return lines


def sentence(error: BaseException, trace: TracebackType | None) -> str:
    """The message, with the line of the cell that caused it unless the error itself has an origin."""
    if isinstance(error, WorkbenchError) and error.origin is None and (origin := cell_line(trace)) is not None:
        return f"{sentence_of(error)} ({origin})"
    return sentence_of(QueryError(error.message, origin=error.origin) if isinstance(error, QueryError) else error)


def cell_line(trace: TracebackType | None) -> Origin | None:
    """The innermost line of a cell in a traceback; None if there is none or the cell has only one line."""
    found = None
    for frame, line in walk_tb(trace):
        file = frame.f_code.co_filename
        if is_cell(file) and len(linecache.getlines(file)) > 1:
            text = line_text(file, line)
            found = Origin(file, line, "" if text.startswith("get_ipython().run_") else text)
    return found
