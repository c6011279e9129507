"""One level of a carried plan as a stateful processor of Spark, which reads and writes the state of each task once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark import SparkFiles
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle


class CarriedProcessor(StatefulProcessor):  # type: ignore[misc]  # PySpark is untyped here
    """Runs the tasks of one level; each task is a group, and its state is one value.

    Args:
        plan: name of the file with the plan, which Spark has sent to its executors.
        level: its index.
    """

    def __init__(self, plan: str, level: int) -> None:
        self._plan = plan
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("task", "content BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:  # noqa: N802, N803  Spark's names
        # Imported late: Spark asks a separate process for the names of the states, which does not need these modules.
        from workbench.spark.carried.level import is_at, run_task
        from workbench.spark.sending.sent import received

        plan, task = received(Path(SparkFiles.get(self._plan))), int(key[0])
        if not is_at(plan, task, self._level):
            yield from rows
            return
        pairs = [
            (int(channel), bytes(payload))
            for frame in rows
            for channel, payload in zip(frame["channel"], frame["payload"], strict=True)
        ]
        before = self._state.get()
        sent, state = run_task(plan, task, None if before is None else bytes(before[0]), pairs)
        self._state.update((state,))
        yield pd.DataFrame(
            {
                "task": pd.Series([to for to, _, _ in sent], dtype="int32"),
                "channel": pd.Series([channel for _, channel, _ in sent], dtype="int32"),
                "payload": pd.Series([payload for _, _, payload in sent], dtype="object"),
            }
        )

    def close(self) -> None:
        """Do nothing: no resources are held between two batches."""
