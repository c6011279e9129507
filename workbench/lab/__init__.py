"""The laboratory: tests and measures the product.

Belongs here: simulations with their pipelines and invariants, benchmarks, the soak test, and their commands.
Does not: code that the product needs; the product does not import the laboratory.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.lab.pipelines.topologies import TOPOLOGIES
    from workbench.lab.simulation.replaying import replay
    from workbench.lab.simulation.result import SimulationResult
    from workbench.lab.simulation.scenario import Scenario
    from workbench.lab.simulation.shrinking import shrink
    from workbench.lab.simulation.simulation import run_scenario, simulate

__all__ = ["TOPOLOGIES", "Scenario", "SimulationResult", "replay", "run_scenario", "shrink", "simulate"]

_HOMES = {
    "TOPOLOGIES": "pipelines.topologies",
    "Scenario": "simulation.scenario",
    "SimulationResult": "simulation.result",
    "replay": "simulation.replaying",
    "run_scenario": "simulation.simulation",
    "shrink": "simulation.shrinking",
    "simulate": "simulation.simulation",
}


def __getattr__(name: str) -> Any:
    """Import an exported name on first use: the help of a command needs none of them."""
    if name in _HOMES:
        return getattr(import_module(f"workbench.lab.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
