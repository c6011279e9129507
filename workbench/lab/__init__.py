"""Testing pipelines and the runtime itself: seeded simulations, and the checker that watches them.

Belongs here: the invariants of the runtime, the pipelines that simulations run and the plain models that say what must
come out. Does not: the drivers that choose the steps, and tests.
"""

from workbench.lab.pipelines.topologies import TOPOLOGIES
from workbench.lab.simulation.replaying import replay
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.shrinking import shrink
from workbench.lab.simulation.simulation import run_scenario, simulate

__all__ = ["TOPOLOGIES", "Scenario", "SimulationResult", "replay", "run_scenario", "shrink", "simulate"]
