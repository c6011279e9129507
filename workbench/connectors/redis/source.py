"""A source over Redis streams, with entry IDs as positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import pyarrow as pa

from workbench.arguments import text_of, true_or_false, whole_number
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.block_reader import check_event_time
from workbench.connectors.contract.looks import Looks
from workbench.connectors.contract.retries import Retries
from workbench.connectors.contract.secrets import cause_of
from workbench.connectors.contract.split_names import split_names
from workbench.connectors.files.json_times import TimeUnit, check_unit
from workbench.connectors.messages.sorting import refused, sorted_out
from workbench.connectors.redis.entries import Entry, letter_of, mark_of, position_of, records
from workbench.connectors.redis.entry_ids import BEGINNING, Id, before, parsed_id, written_id
from workbench.connectors.redis.server import RedisServer
from workbench.connectors.redis.stream_facts import StreamEnd, StreamFacts
from workbench.errors import SettingError, SourceError
from workbench.expressions import ColumnName, column_name
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.functions.dead_letters import OnError, check_on_error
from workbench.operators.functions.user_function import SchemaLike, declared_schema
from workbench.operators.snapshots.pieces import value_in
from workbench.origin import caller

_STARTS = ("earliest", "latest")


@dataclass(frozen=True, init=False)
class RedisSource(Source):
    """The entries of Redis streams, whose fields become columns.

    Each stream is a split with its own watermark; its position is the ID of the last entry read. Positions are stored
    in the checkpoint, not on the server (there is no consumer group), so a recovery neither loses nor repeats entries.
    If entries were trimmed (``MAXLEN``, ``MINID``) before they were read, this is an error; entries that are deleted
    one by one (``XDEL``) are skipped. A stream that was deleted and begun again is read on if its IDs are greater than
    the position and the former one was read to its end; otherwise, this is an error.

    When the server is unreachable, the source retries after 100 ms, then after twice as long, up to 5 s.

    Source: F2-8: recovery needs sources that can be read again from a position; Kafka's offsets in Flink's checkpoints.

    Args:
        url: ``redis://[user:password@]host:port/database``, ``rediss://`` for TLS, or ``unix://path``; the password is
            masked wherever the URL is shown.
        streams: one or several keys; subtasks share them.
        schema: the names and types of the fields to read; a missing field is null. Values are text, such as ``7``,
            ``0.5``, ``true`` or ``2026-03-29T01:30:00Z``, or raw bytes for ``pa.binary()``.
        event_time: the event-time column (timestamp, date, or int64 microseconds), or None.
        start: where to start without a checkpoint: ``"earliest"``, ``"latest"`` (entries added from now on), or the ID
            of the last entry to skip.
        bounded: stop after the entries that exist at the start.
        on_error: how to handle an entry that is not a record: ``"fail"`` fails the task, ``"dead_letter"`` sends it
            to ``dead_letters()`` with its stream and ID.
        retries: the number of retries in a row before the task fails.
        unit: what a number in a field of timestamps counts since 1970: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``. The
            conversion is exact; without it such numbers are refused.

    Raises:
        SettingError: the URL, a key, the unit, start or a number is invalid.
        PlanError: the event-time column does not exist, or `on_error` is unknown.
        MissingPackageError: the package redis is not installed.
        SourceError: while running: no connection, a refused login, no such stream, lost entries, or an entry that is
            not a record.

    Example::

        orders = wb.Stream.from_source(
            wb.RedisSource("redis://localhost:6379", "orders", {"id": pa.int64(), "at": pa.date32()}, event_time="at"),
            out_of_orderness="5s",
        )
    """

    url: str = field(repr=False)
    streams: tuple[str, ...]
    schema: pa.Schema = field(repr=False)
    event_time: str | None
    start: str
    bounded: bool
    on_error: OnError
    retries: int
    unit: TimeUnit | None
    kind: ClassVar[str] = "redis"

    def __init__(
        self,
        url: str,
        streams: str | Sequence[str],
        schema: SchemaLike,
        *,
        event_time: ColumnName | None = None,
        start: str = "earliest",
        bounded: bool = False,
        on_error: OnError = "fail",
        retries: int = 12,
        unit: TimeUnit | None = None,
    ) -> None:
        RedisServer(url)
        if text_of(start, "start", "earliest") not in _STARTS:
            try:
                parsed_id(start)
            except ValueError as error:
                raise SettingError(f"start is {start!r}: write 'earliest', 'latest' or an ID ({error})") from None
        columns = declared_schema(schema, "the source", caller())
        time_column = None if event_time is None else column_name(event_time, "event_time")
        values = {
            "url": url,
            "streams": split_names(streams, "streams", "orders"),
            "schema": columns,
            "event_time": time_column,
            "start": start,
            "bounded": true_or_false(bounded, "bounded"),
            "on_error": on_error,
            "retries": whole_number(retries, "retries", 0),
            "unit": unit,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        check_event_time(columns, time_column)
        check_on_error(on_error, None)
        check_unit(unit)

    @cached_property
    def server(self) -> RedisServer:
        """The server of the streams."""
        return RedisServer(self.url)

    def describe(self) -> str:
        return f"{', '.join(self.streams)} of {self.server}"

    def create(self) -> SourceReader:
        return RedisReader(self)


class RedisReader(SourceReader):
    """Reads all streams of one subtask with one call, and delivers the entries stream by stream.

    A position counts delivered entries, so entries that are fetched but not delivered are fetched again. The call is a
    transaction that also reads the facts about the streams, so no trimming goes unnoticed.
    """

    shares_event_time = False

    def __init__(self, source: RedisSource) -> None:
        self._source = source
        self._client: Any = None
        self._positions: dict[str, Id] = {}
        self._behind: dict[str, int] = {}  # the number of entries up to a position, if known
        self._facts: dict[str, StreamFacts] = {}
        self._told_us = 0
        self._ends: dict[str, Id] = {}
        self._marks: dict[str, str] = {}  # of the entries at the positions
        self._known: dict[str, StreamEnd] = {}
        self._unchecked: set[str] = set()  # restored, and not compared with the stream yet
        self._fetched: dict[str, list[Entry]] = {}
        self._restored: set[str] = set()
        self._given = None if source.start in _STARTS else parsed_id(source.start)
        self._located = False
        self._retries = Retries(source.retries, server=str(source.server))
        self._looks = Looks()

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._clock = context.clock
        own = self._source.streams[context.subtask :: context.parallelism]
        self._positions = dict.fromkeys(own, BEGINNING)
        self._client = self._source.server.connect()

    def splits(self) -> Sequence[str]:
        return tuple(self._positions) if not self._located else tuple(filter(self._is_open, self._positions))

    @property
    def outage(self) -> Outage | None:
        return self._retries.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        found = {}
        for stream, position in self._positions.items():
            facts = self._facts.get(stream)
            lag = None if facts is None else facts.lag(position, self._behind.get(stream))
            where = "the beginning" if position == BEGINNING else written_id(position)
            found[stream] = SplitProgress(where, lag, self._told_us)
        return found

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        if not self._positions:
            return Exhausted()
        now_us = self._clock.now_us()
        if now_us < self._retries.retry_us:
            return WaitUntil(self._retries.retry_us)
        try:
            self._locate()
            if not self.splits():
                return Exhausted()
            if not any(self._fetched.values()):
                self._fetch(max_records, now_us)
            self._retries.succeeded()
        except self._source.server.errors as error:
            return self._failed(error, now_us)
        for stream in self._fetched:
            if self._fetched[stream]:
                self._looks.found()
                return self._deliver(stream, max_records)
        if not self.splits():
            return Exhausted()
        return self._looks.next(now_us)

    def snapshot(self) -> Snapshot:
        known = self._positions if self._located else self._restored
        return {
            "positions": {stream: written_id(self._positions[stream]) for stream in sorted(known)},
            "ends": {stream: written_id(end) for stream, end in self._ends.items()},
            "behind": {stream: self._behind[stream] for stream in sorted(known) if stream in self._behind},
            "marks": {stream: self._marks[stream] for stream in sorted(self._marks)},
            "known": {stream: [written_id(end.last), end.added] for stream, end in sorted(self._known.items())},
        }

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            for name, into in (("positions", self._positions), ("ends", self._ends)):
                if name not in snapshot:
                    continue
                for stream, written in value_in(snapshot, name, dict[str, str]).items():
                    if stream in self._positions:
                        into[stream] = parsed_id(written)
                        self._restored.add(stream)
            if "behind" in snapshot:
                counts = value_in(snapshot, "behind", dict[str, int])
                self._behind |= {stream: count for stream, count in counts.items() if stream in self._positions}
            if "marks" in snapshot:
                marks = value_in(snapshot, "marks", dict[str, str])
                self._marks |= {stream: mark for stream, mark in marks.items() if stream in self._positions}
            if "known" in snapshot:
                ends = value_in(snapshot, "known", dict[str, tuple[str, int]])
                for stream, (last, added) in ends.items():
                    if stream in self._positions:
                        self._known[stream] = StreamEnd(parsed_id(last), added)
        self._unchecked = set(self._marks)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        self._fetched = {}

    def _is_open(self, stream: str) -> bool:
        is_over = self._source.bounded and self._positions[stream] >= self._ends[stream]
        return not is_over or stream in self._unchecked

    def _locate(self) -> None:
        """Determine the streams' ends and where to start, when the server answers for the first time."""
        if self._located:
            return
        source = self._source
        for stream in self._positions:
            if not self._client.exists(stream):
                raise SourceError(
                    f"there is no stream {stream!r} at {source.server}: check its name, or add its first entry (XADD)"
                )
            facts = StreamFacts.of(self._client.xinfo_stream(stream))
            if stream not in self._restored:
                begin = {"earliest": BEGINNING, "latest": facts.last}.get(source.start)
                self._positions[stream] = parsed_id(source.start) if begin is None else begin
            if source.bounded:
                self._ends.setdefault(stream, facts.last)
            self._note(stream, facts)
        self._located = True

    def _note(self, stream: str, facts: StreamFacts) -> None:
        """Note the facts about a stream before its entries are read.

        Raises:
            SourceError: it was trimmed beyond the position, or it is another stream.
        """
        position, behind = self._positions[stream], self._behind.get(stream)
        is_given = stream not in self._marks and position == self._given  # which can be after the end
        if not is_given and (fact := facts.replaced(position, behind, self._known.get(stream))):
            raise self._begun_again(stream, fact)
        if lost := facts.lost(position, behind):
            raise SourceError(
                f"the stream {stream!r} of {self._source.server} was trimmed: {lost:,} entries after the position"
                f" {written_id(position)} were removed before they were read; keep more entries (MAXLEN, MINID), or "
                "start without the checkpoint"
            )
        self._facts[stream] = facts
        self._known[stream] = facts.end
        self._count(stream, facts.behind(position, behind))

    def _begun_again(self, stream: str, fact: str) -> SourceError:
        position = self._positions[stream]
        return SourceError(
            f"the stream {stream!r} of {self._source.server} was deleted or begun again since the position "
            f"{written_id(position)}: {fact}, so entries are lost; start without the checkpoint, which reads the new "
            "stream from its beginning"
        )

    def _count(self, stream: str, behind: int | None) -> None:
        """Update the number of entries up to the position."""
        if behind is None:
            self._behind.pop(stream, None)
        else:
            self._behind[stream] = behind

    def _fetch(self, count: int, now_us: int) -> None:
        wanted = {stream: self._wanted(stream) for stream in self.splits()}
        with self._client.pipeline(transaction=True) as transaction:
            transaction.xread(wanted, count=count + 1)
            for stream in wanted:
                transaction.xinfo_stream(stream)
            answer, *told = transaction.execute(raise_on_error=False)
        if isinstance(answer, Exception):
            raise answer
        found = {stream.decode(): entries for stream, entries in answer}
        for stream, info in zip(wanted, told, strict=True):
            if isinstance(info, Exception):  # the stream was deleted
                self._facts.pop(stream, None)
                if (known := self._known.get(stream)) is not None and known.last > self._positions[stream]:
                    raise self._begun_again(stream, f"the former one ended at {written_id(known.last)}")
            else:
                self._note(stream, facts := StreamFacts.of(info))
                found[stream] = self._after_position(stream, facts, found.get(stream, []))[:count]
        self._told_us = now_us
        self._fetched = {}
        for stream in wanted:
            entries = found.get(stream, [])
            if self._source.bounded:
                end = self._ends[stream]
                entries = [entry for entry in entries if parsed_id(entry[0].decode()) <= end]
                if not entries:  # the entries up to the end were deleted
                    self._positions[stream] = end
                    self._marks.pop(stream, None)
                    self._count(stream, None)
            self._fetched[stream] = entries

    def _wanted(self, stream: str) -> str:
        """The ID after which to read: if an entry was read, it is read again, and compared."""
        position = self._positions[stream]
        return written_id(before(position) if stream in self._marks else position)

    def _after_position(self, stream: str, facts: StreamFacts, entries: list[Entry]) -> list[Entry]:
        """Compare the entry at the position with the one that was read there.

        Raises:
            SourceError: it is another one, so this is another stream.
        """
        self._unchecked.discard(stream)
        if (mark := self._marks.get(stream)) is None:
            return entries
        position = self._positions[stream]
        if not entries or entries[0][0].decode() != written_id(position):
            if facts.must_have(position):
                raise self._begun_again(stream, "it has no entry with this ID")
            return entries
        if mark_of(entries[0]) != mark:
            raise self._begun_again(stream, "its entry with this ID is another one")
        return entries[1:]

    def _deliver(self, stream: str, count: int) -> Fetched:
        source = self._source
        entries = self._fetched.pop(stream)
        self._fetched[stream] = entries[count:]  # the next turn is another stream's
        taken = entries[:count]
        position = self._positions[stream] = parsed_id(taken[-1][0].decode())
        self._marks[stream] = mark_of(taken[-1])
        behind = self._behind.get(stream)
        self._count(stream, self._facts[stream].behind(position, None if behind is None else behind + len(taken)))

        def place(at: int) -> str:
            return position_of(taken[at], stream, source.server)

        result = sorted_out(
            len(taken),
            lambda begin, end: records(taken[begin:end], source.schema, source.unit),
            lambda at, error: refused(letter_of(taken[at], place(at), error), error, source, called="entries"),
            source,
        )
        return result.fetched(source, stream, place, self._context)

    def _failed(self, error: Exception, now_us: int) -> WaitUntil:
        """Wait before the next attempt, or give up."""
        server = self._source.server
        retry_us = self._retries.failed(now_us, server.fact(error)) if server.may_return(error) else None
        if retry_us is None:
            streams = ", ".join(map(repr, self._positions))
            raise server.error(error, f"read {streams}", SourceError) from cause_of(error, server.url)
        return WaitUntil(retry_us)
