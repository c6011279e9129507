"""Shrinks a failing simulation: fewer faults, fewer actions of users, fewer records, while it still fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from workbench.drivers.faults.faults import FaultPlan
from workbench.lab.simulation.result import SimulationResult
from workbench.lab.simulation.scenario import Scenario
from workbench.lab.simulation.simulation import run_scenario

ATTEMPTS_MAX = 150
_FEW_ROWS = (20, 10, 5, 3, 2, 1)


def shrink(
    scenario: Scenario, failed: SimulationResult, *, attempts: int = ATTEMPTS_MAX
) -> tuple[Scenario, SimulationResult]:
    """A smaller scenario that violates the same invariant, and its result.

    Args:
        scenario: the failing scenario.
        failed: its result.
        attempts: the maximum number of simulations.

    Example:
        >>> scenario = Scenario(1)
        >>> smaller, result = shrink(scenario, run_scenario(scenario))  # it does not fail: nothing to make small
        >>> smaller == scenario
        True
    """
    if failed.ok:
        return scenario, failed
    smallest, result = replace(scenario, faults=failed.plan, actions=failed.actions), failed
    tried = 0
    progressed = True
    while progressed and tried < attempts:
        progressed = False
        for smaller in _smaller(smallest):
            tried += 1
            found = run_scenario(smaller)
            if not found.ok and _broken(found) == _broken(failed):
                smallest, result, progressed = smaller, found, True
                break
            if tried >= attempts:
                break
    return smallest, result


def _broken(result: SimulationResult) -> str:
    """The number of the first violated invariant."""
    return result.violations[0].partition(":")[0]


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """The same with one thing less, the largest steps first."""
    for rows in () if scenario.fixed_input else _FEW_ROWS:
        if scenario.rows_max is None or rows < scenario.rows_max:
            yield replace(scenario, rows_max=rows)
    actions = scenario.actions or ()
    if len(actions) > 1:
        yield replace(scenario, actions=())
    for place in range(len(actions)):
        yield replace(scenario, actions=actions[:place] + actions[place + 1 :])
    faults = scenario.faults.faults if scenario.faults is not None else ()
    for place in range(len(faults)):
        yield replace(scenario, faults=FaultPlan(faults[:place] + faults[place + 1 :]))
