"""The contracts of sources and sinks, as tests for any connector.

Belongs here: the behaviour that every source and sink must show, and the processes that are killed.
Does not: simulations of whole jobs (``simulation``), and the connectors themselves.
"""

from workbench.lab.connectors.contract_error import ContractError
from workbench.lab.connectors.kills import check_kills
from workbench.lab.connectors.sink_run import SINK_SCHEMA
from workbench.lab.connectors.sinks import check_sink
from workbench.lab.connectors.sources import check_source

__all__ = ["SINK_SCHEMA", "ContractError", "check_kills", "check_sink", "check_source"]
