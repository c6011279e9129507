"""What the readers of both tiers share: Spark asks them for offsets, and each batch is in the log before it is read.

Spark runs a reader in a separate process on the driver's machine, and sends it to executors, which need only the folder
of the log: so it is sent without its open files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader

Offset = dict[str, Any]


class LogReader(DataSourceStreamReader):  # type: ignore[misc]  # PySpark is untyped here
    """Offsets of a log of batches.

    Args:
        options: of the data source.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options
        self._folder = Path(options["folder"])
        self._reading: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_reading": None}

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        return {"batch": 0, "ended": False, "positions": {}}

    def latestOffset(self, start: Offset | None = None, limit: object = None) -> Offset:  # noqa: N802  Spark's name
        if self._reading is None:
            from workbench.spark.sending.sent import received

            self._reading = self._opened(received(Path(self._options["plan"])))
        offset: Offset = self._reading.next_offset(start or self.initialOffset())
        return offset

    def _opened(self, plan: Any) -> Any:
        """The reading of the plan's sources, which writes the log."""
        raise NotImplementedError  # abstract

    def commit(self, end: Offset) -> None:
        if self._reading is not None:
            self._reading.forget(end)

    def stop(self) -> None:
        if self._reading is not None:
            self._reading.close()
