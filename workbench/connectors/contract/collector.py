"""Python's garbage collector, at rest for a moment."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Disable the search for cycles while many objects are made that are released soon: a search takes longer than
    making them. It is disabled for all threads, so the work is short, or the only one.

    Example:
        >>> with collector_at_rest():
        ...     gc.isenabled()
        False
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
