"""The contract of sources: stopped at any record and restored at any parallelism, they lose and repeat nothing."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import chain

import pyarrow as pa

from workbench.clock import VirtualClock
from workbench.connectors.contract.base import Exhausted, Fetched, Source, SourceReader, WaitUntil
from workbench.lab.connectors.contract_error import ContractError, compare
from workbench.lab.connectors.stored import Stored
from workbench.operators.contract.base import OperatorContext, Snapshot

Row = tuple[object, ...]
Rows = Mapping[str, Sequence[Row]]

_READ = 3  # records per poll
_LOST = 3  # polls after a snapshot
_QUIET = 2  # polls behind the end
_SILENT_MAX = 300  # rounds of polls without a record
_AT_ONCE = 20  # of them without a rest, because a reader only waits for its clock
_REST_S = 0.005


def check_source(
    source: Source,
    rows: pa.Table | int,
    *,
    parallelism: Sequence[tuple[int, int]] = ((1, 1), (2, 3), (3, 2)),
) -> int:
    """Run a source through the contract of sources.

    It is read to its end without a failure, and its records are compared with `rows`. Then, for each parallelism and at
    each record boundary, its subtasks are stopped there with a snapshot, after which they read further records that are
    lost in the crash; new subtasks restore the snapshot and read to the end. Finally the subtasks crash after each
    record in turn. Each time, every split has the records of the first run, in their order: none lost, none repeated.
    A reader whose splits are one sequence may deliver a record under any of them.
    The snapshots pass through the format of checkpoints. On the way each result of ``poll`` is checked.

    A run takes as many steps as there are records, and there is a run for each: a hundred records are many.

    Source: F2-8: recovery needs sources that can be read again from a position.

    Args:
        source: the source; what it reads must not change meanwhile. If it never ends, its end is where `rows` are
            complete and nothing follows.
        rows: what it has to yield, in any order; or only how many records.
        parallelism: before and after each crash.

    Returns:
        The number of crashes.

    Raises:
        ContractError: the source breaks the contract.

    Example:
        >>> from workbench.connectors.tables.table_source import TableSource
        >>> table = pa.table({"n": list(range(10))})
        >>> check_source(TableSource(table, splits=4), table)
        43
    """
    if not source.resettable:
        raise ContractError(f"the source {source.describe()!r} is not resettable, so a recovery loses records")
    count = rows if isinstance(rows, int) else rows.num_rows
    with Reading(source, 1) as undisturbed:
        undisturbed.to_end(count, "without a failure")
        expected = undisturbed.seen
    if isinstance(rows, pa.Table):
        wanted = [tuple(map(repr, row.values())) for row in rows.to_pylist()]
        compare((row[:-1] for split in expected.values() for row in split), wanted, "without a failure")
    crashes = 0
    for before, after in parallelism:
        for boundary in range(count + 1):
            moment = f"after a crash at record {boundary} and a restore at parallelism {after} instead of {before}"
            with Reading(source, before) as first:
                stored = first.stop_at(boundary, moment)
                seen = first.seen
            with Reading(source, after, stored.restored(), seen) as second:
                second.to_end(count, moment, expected)
            crashes += 1
    return crashes + _at_every_record(source, count, expected, parallelism)


def _at_every_record(source: Source, count: int, expected: Rows, parallelism: Sequence[tuple[int, int]]) -> int:
    """One run that crashes after each record; returns the number of crashes."""
    widths = [width for pair in parallelism for width in pair]
    restored: list[Snapshot] = []
    seen: Rows = {}
    for number in range(count):
        width = widths[number % len(widths)]
        moment = f"after {number} crashes, one at each record, at parallelism {width}"
        with Reading(source, width, restored, seen) as reading:
            restored, seen = reading.stop_at(1, moment).restored(), reading.seen
    with Reading(source, 2, restored, seen) as last:
        last.to_end(count, "after a crash at each record", expected)
    return count


def _same(seen: Rows, expected: Rows, moment: str, joined: bool) -> None:
    """Compare the rows of each split; of `joined` readers, those of all splits, which may come under any of them."""
    if joined:
        compare(chain.from_iterable(seen.values()), chain.from_iterable(expected.values()), moment)
    for split in sorted({*seen, *expected}):
        has, wants = seen.get(split, ()), expected.get(split, ())
        if not joined:
            compare(has, wants, f"{moment}, in the split {split!r},")
        elif Counter(has) != Counter(wants):
            continue
        if list(has) != list(wants):
            at = next(at for at, (one, other) in enumerate(zip(has, wants, strict=True)) if one != other)
            raise ContractError(f"{moment} the split {split!r} has other records from its record {at} on")


class Reading:
    """The readers of all subtasks, driven by hand; closes them at its end.

    Args:
        source: to read.
        parallelism: number of subtasks.
        restored: the snapshots to restore.
        seen: by split: the rows that were read before.

    Attributes:
        seen: by split: the rows read so far, each as text with its event time.

    Example:
        >>> from workbench.connectors.tables.table_source import TableSource
        >>> with Reading(TableSource(pa.table({"n": [7]})), 2) as reading:
        ...     reading.to_end(1, "now")
        ...     dict(reading.seen)
        {'0': [('7', 'None')]}
    """

    def __init__(
        self, source: Source, parallelism: int, restored: Sequence[Snapshot] = (), seen: Rows | None = None
    ) -> None:
        self._source = source
        self._clock = VirtualClock(1)
        self._exhausted: set[int] = set()
        self.seen: defaultdict[str, list[Row]] = defaultdict(list)
        for split, rows in (seen or {}).items():
            self.seen[split] += rows
        self._readers = [source.create() for _ in range(parallelism)]
        for subtask, reader in enumerate(self._readers):
            reader.open(OperatorContext(subtask=subtask, parallelism=parallelism, clock=self._clock))
            if restored:
                reader.restore(restored)

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers:
            reader.close()

    @property
    def count(self) -> int:
        """The number of rows read so far."""
        return sum(map(len, self.seen.values()))

    def to_end(self, count: int, moment: str, expected: Rows | None = None) -> None:
        """Read until there are `count` rows, and a while longer.

        Raises:
            ContractError: there are fewer or more, others than expected, or a result of ``poll`` is not valid.
        """
        self._read(count, _READ, moment)
        for _ in range(_QUIET):
            for reader in self._readers:
                self._poll(reader, _READ, moment)
            self._advance()
        if expected is not None:
            joined = all(reader.shares_event_time for reader in self._readers)
            _same(self.seen, expected, moment, joined)
        if self.count != count:
            raise ContractError(f"{moment} there are {self.count:,} records and not {count:,}")

    def stop_at(self, records: int, moment: str) -> Stored:
        """Read some records, fewer at a time at the end, so that a reader has fetched more than it has delivered,
        and take a snapshot; what is read after it is not kept.

        Raises:
            ContractError: there are fewer, or a result of ``poll`` is not valid.
        """
        wanted = self.count + records
        self._read(wanted, _READ, moment)
        if self.count != wanted:
            raise ContractError(f"{moment} there are {self.count:,} records and not {wanted:,}")
        stored = Stored([reader.snapshot() for reader in self._readers])
        kept = {split: list(rows) for split, rows in self.seen.items()}
        for _ in range(_LOST):
            for reader in self._readers:
                self._poll(reader, 2, moment)
        stored.write()
        self.seen = defaultdict(list, kept)
        return stored

    def _read(self, count: int, size: int, moment: str) -> None:
        """Read until there are this many rows, or no more arrive."""
        silent = 0
        while self.count < count and silent < _SILENT_MAX and not (silent and self._all_exhausted):
            before, turn = self.count, self.count % len(self._readers)
            for reader in (*self._readers[turn:], *self._readers[:turn]):
                if self.count < count:
                    self._poll(reader, min(size, count - self.count), moment)
            silent = 0 if self.count > before else silent + 1
            if silent:
                self._advance()
            if silent > _AT_ONCE:
                threading.Event().wait(_REST_S)

    @property
    def _all_exhausted(self) -> bool:
        return len(self._exhausted) == len(self._readers)

    def _advance(self) -> None:
        """Let a second pass on the readers' clock."""
        self._clock.advance_to(self._clock.now_us() + 1_000_000)

    def _poll(self, reader: SourceReader, size: int, moment: str) -> None:
        """Poll once, and check the result."""
        splits = set(reader.splits())
        fetched = reader.poll(size)
        if isinstance(fetched, WaitUntil):
            if fetched.time_us is not None and fetched.time_us <= self._clock.now_us():
                raise ContractError(f"{moment} a reader waits until a time that is over: return what is due")
            return
        if isinstance(fetched, Exhausted):
            if left := list(reader.splits()):
                raise ContractError(f"{moment} a reader is exhausted, and has the splits {left}")
            self._exhausted.add(id(reader))
            return
        self._check(fetched, size, splits | set(reader.splits()), moment)
        columns = [column.to_pylist() for column in fetched.records.batch.columns]
        times = fetched.records.timestamps
        told = [None] * len(fetched.records) if times is None else [int(time) for time in times]
        self.seen[fetched.split] += [tuple(map(repr, row)) for row in zip(*columns, told, strict=True)]

    def _check(self, fetched: Fetched, size: int, splits: set[str], moment: str) -> None:
        records, has_times = fetched.records, fetched.records.timestamps is not None
        wrong = (
            f"{len(records)} records where at most {size} were asked for" * (len(records) > size)
            or "no records: return WaitUntil" * (not len(records) and fetched.dead_letters is None)
            or "columns other than the schema's" * (records.batch.schema != self._source.schema)
            or "event times, or lacks them, unlike its source" * (has_times != (self._source.event_time is not None))
            or f"the split {fetched.split!r}, which is none of {sorted(splits)}" * (fetched.split not in splits)
        )
        if wrong:
            raise ContractError(f"{moment} a reader returns {wrong}")
