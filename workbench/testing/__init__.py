"""Testing pipelines and the runtime itself: seeded simulations, and the checker that watches them.

Belongs here: the invariants of the runtime, the pipelines that simulations run and the plain models that say what must
come out. Does not: the drivers that choose the steps, and tests.
"""

from workbench.testing.replaying import replay
from workbench.testing.result import SimulationResult
from workbench.testing.scenario import Scenario
from workbench.testing.shrinking import shrink
from workbench.testing.simulation import run_scenario, simulate
from workbench.testing.topologies import TOPOLOGIES

__all__ = ["TOPOLOGIES", "Scenario", "SimulationResult", "replay", "run_scenario", "shrink", "simulate"]
