"""The base class of tables outside of the job that records are looked up in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench.operators.contract.outage import Outage


class OpenTable:
    """Base of the connections of one subtask to a table."""

    @property
    def outage(self) -> Outage | None:
        """The broken connection to the server, as in `Operator`; meanwhile no call takes too long."""
        return None

    def hurry(self) -> None:
        """The job is being stopped: repeat calls for a short time only. Called by another thread than the rest."""

    def give_up(self) -> None:
        """The job ends: repeat no call. Called by another thread than the rest."""

    def find(self, *key: Any) -> Mapping[str, Any] | None:
        """The row with this key, or None; called on several threads at a time, where it may wait."""
        raise NotImplementedError  # abstract

    def close(self) -> None:
        """Close the connections; never raises."""
        raise NotImplementedError  # abstract


class LookupTable:
    """Base of the frozen descriptions of tables for `Stream.lookup_async`.

    Attributes:
        schema: the columns that a row adds to a record.
    """

    if TYPE_CHECKING:  # a property here would become the default of a dataclass's field

        @property
        def schema(self) -> pa.Schema: ...

    def describe(self) -> str:
        """One line for the graph."""
        raise NotImplementedError  # abstract

    def check_keys(self, count: int) -> None:
        """Reject a number of key columns that the table does not have.

        Args:
            count: of the key columns.

        Raises:
            PlanError: it has another one.
        """

    def open(self) -> OpenTable:
        """Open the table for one subtask; it may connect later."""
        raise NotImplementedError  # abstract
