"""The plan of each process of a simulated job."""

from __future__ import annotations

from random import Random

from workbench.plan.acking import with_ackers
from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph, build_physical_graph
from workbench.state.key_groups import KEY_GROUPS_LEAST

_KEY_GROUPS = (KEY_GROUPS_LEAST, KEY_GROUPS_LEAST, KEY_GROUPS_LEAST, 6, 7, 300)


class Plans:
    """The plans of one job, at any parallelism; a process that restores may redistribute the state.

    Args:
        logical: the graph.
        chance: draws the number of key groups of each process.
        ackers: number of acker tasks; 0: records are not acknowledged.

    Attributes:
        made: all plans so far, by parallelism and number of key groups.
    """

    def __init__(self, logical: LogicalGraph, chance: Random, ackers: int = 0) -> None:
        self._logical = logical
        self._chance = chance
        self._ackers = ackers
        self._key_groups = KEY_GROUPS_LEAST
        self.made: dict[tuple[int, int], PhysicalGraph] = {}

    def begin_process(self) -> None:
        """Draw the number of key groups from now on."""
        self._key_groups = self._chance.choice(_KEY_GROUPS)

    def at(self, parallelism: int) -> PhysicalGraph:
        """The plan at a parallelism, in this process."""
        key = parallelism, self._key_groups
        if key not in self.made:
            graph = build_physical_graph(
                self._logical, parallelism, local_aggregation=not self._ackers, max_parallelism=self._key_groups
            )
            self.made[key] = with_ackers(graph, self._ackers)
        return self.made[key]
