"""Python's garbage collector while a simulation runs."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from workbench.plan.physical import PhysicalGraph


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """No search for cycles meanwhile: a run is short, and looking at all that Python holds takes a part of its time."""
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


def untie(graphs: Iterable[PhysicalGraph], *hubs: object) -> None:
    """Take apart what refers to one another, so that a run is free as soon as nobody holds it.

    What a search for cycles has to find has left the processor's cache meanwhile: searching takes a twentieth of a run.

    Args:
        graphs: their vertices and edges know each other.
        hubs: objects through which all others know each other; they are emptied.
    """
    for graph in graphs:
        for vertex in graph.vertices:
            vertex.ins.clear()
            vertex.outs.clear()
    for hub in hubs:
        vars(hub).clear()
