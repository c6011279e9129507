"""Fault-tolerance policies: what tasks do at a barrier, and what a failure does to the results."""

from workbench.runtime.barriers.fault_tolerance import FaultTolerance
from workbench.runtime.barriers.policies import register_fault_tolerance

__all__ = ["FaultTolerance", "register_fault_tolerance"]
