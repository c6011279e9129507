"""A source that reads a history to its end and then switches to live data: fast-forward (F1-11 to F1-13)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import pyarrow as pa

from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.rate import Rated
from workbench.connectors.replay.pace import Pace
from workbench.connectors.replay.source import ReplaySource
from workbench.elements import Records
from workbench.errors import PlanError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.functions.dead_letters import OnError, keeps_dead_letters
from workbench.operators.snapshots.pieces import value_in


@dataclass(frozen=True)
class HybridSource(Source):
    """Two sources in one: the same program runs over the past, as fast as it can be read, then over live data.

    Each subtask switches to the live source when it has read its share of the history, and reads nothing of it before:
    what the live source delivers must begin where the history ends, or overlap with it.

    Args:
        history: bounded; a replay keeps its pace, which can be tuned, until it ends.
        live: of the same columns.

    Raises:
        PlanError: the columns differ, only one of the two has event times, or one gives changes of rows.
    """

    history: Source
    live: Source
    kind: ClassVar[str] = "hybrid"

    def __post_init__(self) -> None:
        past, present = self.history.schema, self.live.schema
        if [(field.name, field.type) for field in past] != [(field.name, field.type) for field in present]:
            raise PlanError(
                f"the history has the columns {_show(past)} and the live source {_show(present)}: they must be equal; "
                "declare the history's schema for the live source"
            )
        for name, part in (("history", self.history), ("live source", self.live)):
            if part.changelog_key is not None or part.completed_by is not None:
                raise PlanError(
                    f"the {name} gives changes of rows ({part.describe()}), whose order with the other source is "
                    "unknown: pass sources whose records are only added, or read it in a job of its own"
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
        """The schema of both; a column is nullable if it is in one of them."""
        pairs = zip(self.history.schema, self.live.schema, strict=True)
        return pa.schema([a.with_nullable(a.nullable or b.nullable) for a, b in pairs])

    @property
    def event_time(self) -> str | None:
        """The history's event-time column; the live source may name another."""
        return self.history.event_time

    @property
    def bounded(self) -> bool:
        """Whether the live source comes to an end."""
        return bool(getattr(self.live, "bounded", True))

    @property
    def replay(self) -> ReplaySource | None:
        """The replay of the history, if any."""
        return cast("ReplaySource | None", self.history.replay)

    @property
    def resettable(self) -> bool:
        """Whether both sources are."""
        return self.history.resettable and self.live.resettable

    @property
    def keeps_savepoints(self) -> bool:  # type: ignore[override]
        """Whether one of the two keeps something for each savepoint."""
        return self.history.keeps_savepoints or self.live.keeps_savepoints

    @property
    def may_miss(self) -> str:  # type: ignore[override]
        """Why one of the two can miss records."""
        return self.history.may_miss or self.live.may_miss

    @property
    def on_error(self) -> OnError:
        """The policy of the source that keeps what is not a record, if there is one."""
        kept = [part for part in (self.history, self.live) if keeps_dead_letters(part)]
        return "dead_letter" if any(part.on_error == "dead_letter" for part in kept) else "fail"

    def describe(self) -> str:
        return f"{self.history.describe()}, then {self.live.describe()}"

    def create(self, pace: Pace | None = None) -> SourceReader:
        """Create a reader for one subtask; `pace` is for a replayed history."""
        history = self.history.create() if self.replay is None else self.replay.create(pace)
        return HybridReader(history, self.live.create(), self.schema)


class HybridReader(SourceReader):
    """Reads `history` until it is exhausted, then `live`; the snapshot records which of them it reads.

    After a rescaling a subtask may have both a rest of the history and a position in the live source: it reads the rest
    first, so that nothing becomes late.
    """

    def __init__(self, history: SourceReader, live: SourceReader, schema: pa.Schema) -> None:
        self._schema = schema
        self.history = history
        self.live = live
        self._is_live = False
        self.shares_event_time = history.shares_event_time

    @property
    def position_us(self) -> int | None:
        """The position in a replayed history, as an arrival time; None once live data is read."""
        return None if self._is_live else getattr(self.history, "position_us", None)

    def open(self, context: OperatorContext) -> None:
        self._clock = context.clock
        self.history.open(context)
        self.live.open(context)

    def parts(self, uid: str) -> dict[str, SourceReader]:
        return {f"{uid}.history": self.history, f"{uid}.live": self.live}

    def splits(self) -> Sequence[str]:
        phase = "live" if self._is_live else "history"
        return [f"{phase} {split}" for split in self._current.splits()]

    @property
    def outage(self) -> Outage | None:
        return self._current.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        phase = "live" if self._is_live else "history"
        return {f"{phase} {split}": each for split, each in self._current.progress().items()}

    def pending_records(self) -> int | None:
        """Records of the history not yet read, if known; None once live data is read."""
        pending = None if self._is_live else getattr(self.history, "pending_records", None)
        return None if pending is None else cast("int | None", pending())

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        fetched = self._current.poll(max_records)
        if isinstance(fetched, Exhausted) and not self._is_live:
            self._begin_live()
            return WaitUntil(self._clock.now_us() + 1)  # its splits are known before their first records arrive
        if not isinstance(fetched, Fetched):
            return fetched
        records = fetched.records
        if not records.batch.schema.equals(self._schema, check_metadata=True):
            batch = pa.RecordBatch.from_arrays(records.batch.columns, schema=self._schema)
            records = Records(batch, records.timestamps)
        split = f"{'live' if self._is_live else 'history'} {fetched.split}"
        return replace(fetched, records=records, split=split)

    def snapshot(self) -> Snapshot:
        """``{"phase": "history" or "live", "history": its positions, "live": its positions}``."""
        phase = "live" if self._is_live else "history"
        parts: dict[str, Any] = {"history": self.history.snapshot(), "live": self.live.snapshot()}
        return {"phase": phase, **parts}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for part, name in self._parts():
            part.restore([cast("Snapshot", value_in(snapshot, name, dict[str, Any])) for snapshot in snapshots])
        if {value_in(snapshot, "phase", str) for snapshot in snapshots} == {"live"}:
            self._begin_live()

    def complete(self, snapshot: Snapshot) -> None:
        """Tell both, each with its own part; the live source has a position as soon as it is open."""
        for part, name in self._parts():
            if name in snapshot:
                part.complete(cast("Snapshot", value_in(snapshot, name, dict[str, Any])))

    def keep(self, checkpoint_id: int) -> None:
        for part, _ in self._parts():
            part.keep(checkpoint_id)

    def give_up(self, checkpoint_id: int) -> None:
        for part, _ in self._parts():
            part.give_up(checkpoint_id)

    def forget(self, checkpoint_id: int) -> None:
        for part, _ in self._parts():
            part.forget(checkpoint_id)

    def close(self) -> None:
        self.history.close()
        self.live.close()

    def _parts(self) -> tuple[tuple[SourceReader, str], ...]:
        return (self.history, "history"), (self.live, "live")

    @property
    def _current(self) -> SourceReader:
        return self.live if self._is_live else self.history

    def _begin_live(self) -> None:
        self._is_live = True
        self.shares_event_time = self.live.shares_event_time


def _show(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def rated(uid: str, reader: SourceReader) -> Iterator[tuple[str, Rated]]:
    """The rated parts of a source's reader, by the name to tune them: ``clicks``, or ``clicks.live`` of a hybrid.

    Past and live data have separate rates, because a rate for reading the past does not suit live data.
    """
    for name, part in reader.parts(uid).items():
        if hasattr(part, "rate"):  # the only member of `Rated`, and much faster to check than the protocol
            yield name, cast(Rated, part)


def replayed(source: object) -> ReplaySource | None:
    """The replay that a source is, or that it begins with."""
    return cast("ReplaySource | None", getattr(source, "replay", None))
