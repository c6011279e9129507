"""The backing store: one row for each range of keys, which is one subtask's, and atomic writes to it.

A writer of a range has a *sequencer* token. A new writer of the range claims the next token; from then on every write
with an older one fails. So a task that continues after it was replaced (a zombie) changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from workbench.elements import Element, Records
from workbench.errors import WorkbenchError
from workbench.from_json import Json


class FencedWriteError(WorkbenchError):
    """A write of a task that has been replaced in the meantime."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the rows of a job began from.

    Attributes:
        plan: identifies its ranges (see `plan_of`).
        checkpoint_id: the checkpoint whose state was written first; 0: none.
    """

    plan: str
    checkpoint_id: int = 0


@dataclass(frozen=True, slots=True)
class Production:
    """An element that a task has produced for one channel.

    Attributes:
        channel: key of the channel.
        first: its id; records have consecutive ids, of which this is the first.
        element: the element.
    """

    channel: str
    first: int
    element: Element


@dataclass(frozen=True, slots=True)
class Write:
    """What one transaction changes in the row of a range.

    Attributes:
        range: name of the task.
        token: its sequencer.
        states: encoded state of the operators whose state has changed, by uid.
        facts: the event time reached, and the next id of each outgoing channel.
        taken: ids of the records that were processed: key of the channel, first id, number.
        past: by incoming channel, the id below which nothing comes again.
        productions: what is to be sent.
        acknowledged: by outgoing channel, the id below which everything is durable at the receiver.
        rows: rows for sinks: uid, number, records.
        flushed: what sinks have handed over to a checkpoint: uid, checkpoint, number of the last row.
        written: by uid of a sink, the number up to which its rows are committed.
    """

    range: str
    token: int
    states: Mapping[str, bytes] = field(default_factory=dict)
    facts: Mapping[str, Json] | None = None
    taken: Sequence[tuple[str, int, int]] = ()
    past: Mapping[str, int] = field(default_factory=dict)
    productions: Sequence[Production] = ()
    acknowledged: Mapping[str, int] = field(default_factory=dict)
    rows: Sequence[tuple[str, int, Records]] = ()
    flushed: Sequence[tuple[str, int, int]] = ()
    written: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Row:
    """What the store holds of a range; fields as in `Write`.

    Attributes:
        token: the one that may write.
        taken: by channel, runs of ids: first and number, in order.
    """

    token: int = 0
    states: dict[str, bytes] = field(default_factory=dict)
    facts: Mapping[str, Json] = field(default_factory=dict)
    taken: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    productions: list[Production] = field(default_factory=list)
    rows: list[tuple[str, int, Records]] = field(default_factory=list)
    flushed: dict[str, dict[int, int]] = field(default_factory=dict)

    def apply(self, write: Write) -> None:
        """Change the row; the caller makes this atomic."""
        self.states |= write.states
        if write.facts is not None:
            self.facts = write.facts
        for channel, first, count in write.taken:
            runs = self.taken.setdefault(channel, [])
            if runs and runs[-1][0] + runs[-1][1] == first:
                runs[-1] = (runs[-1][0], runs[-1][1] + count)
            else:
                runs.append((first, count))
        for channel, below in write.past.items():
            self.taken[channel] = [
                (max(first, below), first + count - max(first, below))
                for first, count in self.taken.get(channel, ())
                if first + count > below
            ]
        if write.acknowledged:
            acknowledged = write.acknowledged
            self.productions = [each for each in self.productions if ends(each) > acknowledged.get(each.channel, 0)]
        self.productions += write.productions
        self.rows += write.rows
        for uid, checkpoint_id, number in write.flushed:
            self.flushed.setdefault(uid, {})[checkpoint_id] = number
        if write.written:
            self.rows = [row for row in self.rows if row[1] > write.written.get(row[0], 0)]


def ends(production: Production) -> int:
    """The id behind the last one of a production."""
    return production.first + ids_in(production.element)


def bytes_of(write: Write) -> int:
    """The bytes that a write adds to a store, about: of its state, productions and rows, and 24 for each run of ids.

    Example:
        >>> bytes_of(Write("counts[0]", 1, states={"counts": b"state"}, taken=[("a", 0, 2)]))
        29
    """
    records = [each.element for each in write.productions if isinstance(each.element, Records)]
    records += [rows for _, _, rows in write.rows]
    states = sum(map(len, write.states.values()))
    return states + sum(each.nbytes for each in records) + _ID_BYTES * (len(write.taken) + len(write.productions))


_ID_BYTES = 24


def ids_in(element: Element) -> int:
    """How many ids an element has: one for each record, or one."""
    return len(element) if type(element) is Records else 1


class Store(Protocol):
    """A store of rows; every method is one round trip, atomic, and callable from any thread."""

    def open(self, rows: str, owner: str, forget: str = "") -> None:
        """Own the rows of one job, which are there or come with `begin`; an earlier owner can claim no range from now
        on.

        Args:
            rows: names them in the store.
            owner: identifies this run of the job.
            forget: the name of rows that will not be continued.
        """

    @property
    def origin(self) -> Origin | None:
        """What the rows began from; None: there are none."""

    def begin(self, writes: Iterable[Write], origin: Origin) -> None:
        """Replace everything by these first writes of all ranges, whose tokens were claimed."""

    def knows(self, checkpoint_id: int) -> bool:
        """Whether a sink has handed rows over to this checkpoint, or all rows began from it."""

    def claim(self, range: str) -> int:
        """The next token of a range; writes with an older one fail from now on."""

    def write(self, write: Write) -> None:
        """Apply a transaction.

        Raises:
            FencedWriteError: another writer has claimed the range.
        """

    def row(self, range: str) -> Row:
        """A copy of the row of a range."""

    def taken(self, range: str, channel: str) -> list[tuple[int, int]]:
        """The ids that a range has processed of a channel: runs of first id and number."""

    def close(self) -> None:
        """The process ends without the job: release everything, the rows stay."""

    def end(self) -> None:
        """The job has ended: forget its rows, unless another owner has them, and release everything."""


def fenced(write: Write, token: int) -> FencedWriteError:
    """The error of a write with an old token."""
    return FencedWriteError(
        f"{write.range} wrote with the sequencer {write.token}, but {token or 'none'} owns its keys now: the task was "
        "replaced, and its write is refused"
    )
