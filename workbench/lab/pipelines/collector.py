"""Python's garbage collector during simulations."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from workbench.plan.physical import PhysicalGraph


@contextmanager
def what_is_there_set_apart() -> Iterator[None]:
    """Let the collector scan only new objects: modules, and what they hold, stay alive anyway."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def untie(graphs: Iterable[PhysicalGraph], *hubs: object) -> None:
    """Break the references between objects, so that a run is released as soon as it is no longer referenced.

    Objects that a search for cycles finds have left the processor's cache by then: searching takes a twentieth of a
    run.

    Args:
        graphs: their vertices and edges refer to each other.
        hubs: objects through which all others refer to each other; they are emptied.
    """
    for graph in graphs:
        for vertex in graph.vertices:
            vertex.ins.clear()
            vertex.outs.clear()
    for hub in hubs:
        vars(hub).clear()
