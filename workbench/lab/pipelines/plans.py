"""By which plan each process of a simulated job runs."""

from __future__ import annotations

from random import Random

from workbench.plan.logical import LogicalGraph
from workbench.plan.physical import PhysicalGraph, build_physical_graph
from workbench.state.key_groups import KEY_GROUPS_LEAST

_KEY_GROUPS = (KEY_GROUPS_LEAST, KEY_GROUPS_LEAST, KEY_GROUPS_LEAST, 6, 7, 300)


class Plans:
    """The plans of one job, at whatever parallelism it goes on; a process that restores may deal the state anew.

    Args:
        logical: what runs.
        chance: draws how many key groups each process has.

    Attributes:
        made: all plans so far, by parallelism and number of key groups.
    """

    def __init__(self, logical: LogicalGraph, chance: Random) -> None:
        self._logical = logical
        self._chance = chance
        self._key_groups = KEY_GROUPS_LEAST
        self.made: dict[tuple[int, int], PhysicalGraph] = {}

    def begin_process(self) -> None:
        """Draw how many key groups the job has from now on."""
        self._key_groups = self._chance.choice(_KEY_GROUPS)

    def at(self, parallelism: int) -> PhysicalGraph:
        """The plan at a parallelism, in this process."""
        key = parallelism, self._key_groups
        if key not in self.made:
            self.made[key] = build_physical_graph(self._logical, parallelism, max_parallelism=self._key_groups)
        return self.made[key]
