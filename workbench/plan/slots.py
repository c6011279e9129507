"""The assignment of subtasks to slots of TaskManagers (F2-2).

Vertices of one slot sharing group share slots, at most one subtask of each in a slot, so a group needs as many slots as
its widest vertex has subtasks; different groups have different slots. A slot of a group thus holds one parallel slice
of the pipeline. A vertex with fewer subtasks than its group has slots is spread over them evenly, and each further such
vertex starts one slot later: two TaskManagers share the work of two subtasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

SLOTS_PER_TASKMANAGER = 2


class Placed(Protocol):
    """The object to place: a vertex."""

    parallelism: int
    slot_sharing_group: str
    slots: tuple[int, ...]

    def partner(self) -> Placed | None:
        """A vertex placed earlier whose records this one receives without an exchange between subtasks."""


def assign_slots(vertices: Sequence[Placed]) -> int:
    """Set ``slots`` of every vertex, in the given order; returns the total number of slots."""
    first = 0
    for group in dict.fromkeys(vertex.slot_sharing_group for vertex in vertices):
        members = [vertex for vertex in vertices if vertex.slot_sharing_group == group]
        width = max(vertex.parallelism for vertex in members)
        turn = 0
        for vertex in members:
            partner = vertex.partner()
            if partner is not None and partner.slot_sharing_group == group:
                vertex.slots = partner.slots
                continue
            spread = [(index * width // vertex.parallelism + turn) % width for index in range(vertex.parallelism)]
            vertex.slots = tuple(first + slot for slot in spread)
            turn += vertex.parallelism < width
        first += width
    return first


def slot_name(slot: int, slots_per_taskmanager: int) -> str:
    """``"tm-0/slot-1"``: the TaskManager (the failure domain) and its slot."""
    return f"tm-{slot // slots_per_taskmanager}/slot-{slot % slots_per_taskmanager}"
