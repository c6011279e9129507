"""The plan of each process of a simulated job."""

from __future__ import annotations

from random import Random

from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph, build_physical_graph
from workbench.state.key_groups import KEY_GROUPS_LEAST

_KEY_GROUPS = (KEY_GROUPS_LEAST, KEY_GROUPS_LEAST, KEY_GROUPS_LEAST, 6, 7, 300)


class Plans:
    """The plans of one job, at any parallelism; a process that restores may redistribute the state.

    Args:
        logical: the graph.
        chance: draws the number of key groups of each process.

    Attributes:
        made: all plans so far, by parallelism and number of key groups.
    """

    def __init__(self, logical: LogicalGraph, chance: Random) -> None:
        self._logical = logical
        self._chance = chance
        self._key_groups = KEY_GROUPS_LEAST
        self.made: dict[tuple[int, int], PhysicalGraph] = {}

    def begin_process(self) -> None:
        """Draw the number of key groups from now on."""
        self._key_groups = self._chance.choice(_KEY_GROUPS)

    def at(self, parallelism: int) -> PhysicalGraph:
        """The plan at a parallelism, in this process."""
        key = parallelism, self._key_groups
        if key not in self.made:
            self.made[key] = build_physical_graph(self._logical, parallelism, max_parallelism=self._key_groups)
        return self.made[key]
