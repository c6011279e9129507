"""Functions that keep state for each key, and what they are called with."""

from workbench.operators.process.connect import ConnectedContext, CoProcessFunction
from workbench.operators.process.process_function import ProcessContext, ProcessFunction

__all__ = ["CoProcessFunction", "ConnectedContext", "ProcessContext", "ProcessFunction"]
