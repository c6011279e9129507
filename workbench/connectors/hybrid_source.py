"""A source that reads a history to its end and then goes on with the present: fast-forward (F1-11 to F1-13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pyarrow as pa

from workbench.connectors.base import Exhausted, Fetched, Source, SourceReader, WaitUntil
from workbench.connectors.pace import Pace
from workbench.connectors.replay_source import ReplaySource
from workbench.errors import PlanError
from workbench.operators.base import OperatorContext, Snapshot


@dataclass(frozen=True)
class HybridSource:
    """One source made of two: the same program runs over the past, as fast as it can be read, then over the present.

    Each subtask goes over to the live source when it has read its share of the history. The live source is opened then:
    what it delivers must begin where the history ends, or overlap with it.

    Args:
        history: bounded; a replay keeps its pace, and can be tuned, until it ends.
        live: of the same columns.

    Raises:
        PlanError: the columns differ, or only one of the two has event times.
    """

    history: Source
    live: Source
    kind: ClassVar[str] = "hybrid"

    def __post_init__(self) -> None:
        past, present = self.history.schema, self.live.schema
        if past != present:
            raise PlanError(
                f"the history has the columns {_show(past)} and the live source {_show(present)}: they must be equal;"
                " declare the live source's schema to be that of the history"
            )
        if (self.history.event_time is None) != (self.live.event_time is None):
            with_time, without = (
                ("history", "live source") if self.live.event_time is None else ("live source", "history")
            )
            raise PlanError(
                f"the {with_time} has event times and the {without} has none: name its column with event_time"
            )

    @property
    def schema(self) -> pa.Schema:
        """Of both."""
        return self.history.schema

    @property
    def event_time(self) -> str | None:
        """The history's column; the live source may name another."""
        return self.history.event_time

    @property
    def resettable(self) -> bool:
        """Whether both are."""
        return self.history.resettable and self.live.resettable

    def describe(self) -> str:
        return f"{self.history.describe()}, then {self.live.describe()}"

    def create(self, pace: Pace | None = None) -> SourceReader:
        """A reader for one subtask; `pace` is for a replayed history."""
        history = self.history.create(pace) if isinstance(self.history, ReplaySource) else self.history.create()
        return HybridReader(history, self.live.create())


class HybridReader(SourceReader):
    """Reads `history` until it is exhausted, then `live`; which of them it is at is in its snapshot.

    After a rescaling a subtask may have both a rest of the history and a place in the live source: it reads the rest
    first, so that nothing becomes late.
    """

    def __init__(self, history: SourceReader, live: SourceReader) -> None:
        self._history = history
        self._live = live
        self._is_live = False
        self._live_states: list[Snapshot] = []
        self.shares_event_time = history.shares_event_time

    @property
    def position_us(self) -> int | None:
        """How far a replayed history is, as an arrival time; None once the present is read."""
        return None if self._is_live else getattr(self._history, "position_us", None)

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._history.open(context)

    def splits(self) -> Sequence[str]:
        phase = "live" if self._is_live else "history"
        return [f"{phase} {split}" for split in self._current.splits()]

    def pending_records(self) -> int | None:
        """Records of the source that is being read that are still to come, where it tells."""
        pending = getattr(self._current, "pending_records", None)
        return None if pending is None else cast("int | None", pending())

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        fetched = self._current.poll(max_records)
        if isinstance(fetched, Exhausted) and not self._is_live:
            self._begin_live()
            return WaitUntil(self._context.clock.now_us() + 1)  # its splits are known before their first records come
        if isinstance(fetched, Fetched):
            return Fetched(fetched.records, f"{'live' if self._is_live else 'history'} {fetched.split}")
        return fetched

    def snapshot(self) -> Snapshot:
        """``{"phase": "history" or "live", "history": ..., "live": ...}``; the live part is there once it has begun."""
        live: list[Any] = [self._live.snapshot()] if self._is_live else list(self._live_states)
        return cast(
            "Snapshot",
            {"phase": "live" if self._is_live else "history", "history": self._history.snapshot(), "live": live},
        )

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        self._history.restore([cast("Snapshot", snapshot["history"]) for snapshot in snapshots])
        self._live_states = [state for snapshot in snapshots for state in cast("list[Snapshot]", snapshot["live"])]
        if snapshots and all(snapshot["phase"] == "live" for snapshot in snapshots):
            self._begin_live()

    def close(self) -> None:
        self._history.close()
        if self._is_live:
            self._live.close()

    @property
    def _current(self) -> SourceReader:
        return self._live if self._is_live else self._history

    def _begin_live(self) -> None:
        self._is_live = True
        self.shares_event_time = self._live.shares_event_time
        self._live.open(self._context)
        if self._live_states:
            self._live.restore(self._live_states)


def _show(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def replayed(source: object) -> ReplaySource | None:
    """The replay that a source is, or that it begins with."""
    history = source.history if isinstance(source, HybridSource) else source
    return history if isinstance(history, ReplaySource) else None
