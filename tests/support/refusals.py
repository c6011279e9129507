"""Messages that a test program receives when a call is refused."""

from __future__ import annotations

from collections.abc import Callable

import workbench as wb


def error_of(done: Callable[[], object]) -> str:
    """The message of the error that a call raises; empty if it raises none."""
    try:
        done()
    except wb.errors.WorkbenchError as error:
        return error.message
    return ""
