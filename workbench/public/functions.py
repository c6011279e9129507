"""Functions with keyed state, and their arguments."""

from workbench.operators.process.connect import ConnectedContext, CoProcessFunction
from workbench.operators.process.process_function import ProcessContext, ProcessFunction

__all__ = ["CoProcessFunction", "ConnectedContext", "ProcessContext", "ProcessFunction"]
