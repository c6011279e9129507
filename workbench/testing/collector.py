"""Python's garbage collector while a simulation runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """No search for cycles meanwhile: a run is short, and looking at all that Python holds takes a part of its time.

    The search that follows finds all of the run to be garbage only if nobody holds the run any more; what it finds
    alive it would look at again and again.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@contextmanager
def what_is_there_set_apart() -> Iterator[None]:
    """The collector looks only at what comes into being meanwhile: modules, and what they keep, stay anyway."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
