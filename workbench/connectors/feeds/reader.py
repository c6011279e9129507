"""Reads a feed over one connection of the first subtask, with bounded retries."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Protocol

from workbench.connectors.contract.base import Exhausted, Fetched, SourceReader, SplitProgress, WaitUntil
from workbench.connectors.contract.looks import Looks
from workbench.connectors.contract.retries import PAUSE_US_MAX, Retries
from workbench.connectors.contract.secrets import cause_of, hidden, hidden_options
from workbench.connectors.feeds.link import ANSWER_US, FeedMessage, Link, LinkError
from workbench.connectors.messages.message_format import MessageFormat
from workbench.connectors.messages.sorting import FormattedSource, letters_of, sorted_out
from workbench.errors import SourceError
from workbench.operators.contract.base import OperatorContext, Snapshot
from workbench.operators.contract.outage import Outage
from workbench.operators.contract.positions import Parts, Position
from workbench.operators.snapshots.pieces import value_in
from workbench.redaction import redacted

_STEADY_US = PAUSE_US_MAX
"""A connection that lasts at least this long resets the retries, even if it receives no message."""


class Feed(FormattedSource, Protocol):
    """The parts of a feed's description that its reader needs."""

    @property
    def retries(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def message_format(self) -> MessageFormat: ...
    @property
    def server(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str] | None: ...
    def describe(self) -> str: ...


class FeedReader(SourceReader):
    """Delivers received messages when it is polled.

    Args:
        feed: its description.
        link: creates the connection.
    """

    shares_event_time = False

    def __init__(self, feed: Feed, link: Callable[[], Link]) -> None:
        self._feed = feed
        self._make = link
        self._link: Link | None = None
        self._begun_us = self._told_us = 0
        self._waiting: deque[FeedMessage] = deque()
        self._position = self._received = ""
        self._retries = Retries(feed.retries, keeps=False, server=feed.server)
        self._looks = Looks()
        self._is_own = False
        self._count = 0

    def open(self, context: OperatorContext) -> None:
        self._context = context
        self._clock = context.clock
        self._is_own = context.subtask == 0

    def splits(self) -> Sequence[str]:
        return (self._feed.describe(),) if self._is_own else ()

    @property
    def outage(self) -> Outage | None:
        link = self._link  # another thread asks for it
        return None if link is not None and link.is_ready else self._retries.outage

    def progress(self) -> Mapping[str, SplitProgress]:
        if not self._is_own:
            return {}
        where = self._position or f"{self._count:,} messages"
        lag = len(self._waiting) if self._told_us else None
        return {self._feed.describe(): SplitProgress(where, lag, self._told_us)}

    def poll(self, max_records: int) -> Fetched | WaitUntil | Exhausted:
        if not self._is_own:
            return Exhausted()
        now_us = self._clock.now_us()
        if not self._waiting and now_us >= self._retries.retry_us:
            try:
                self._receive(now_us)
            except LinkError as error:
                self._failed(error, now_us)
        if self._waiting:
            self._looks.found()
            return self._deliver(max_records)
        if now_us < self._retries.retry_us:
            return WaitUntil(self._retries.retry_us)
        return self._looks.next(now_us)

    def snapshot(self) -> Snapshot:
        return {"position": self._position} if self._is_own else {}

    def restore(self, snapshots: Sequence[Snapshot]) -> None:
        for snapshot in snapshots:
            if "position" in snapshot:
                self._position = self._received = value_in(snapshot, "position", str)

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._waiting.clear()

    def _receive(self, now_us: int) -> None:
        """Take received messages, and connect first if necessary."""
        if (link := self._link) is None:
            link = self._link = self._make()
            self._begun_us = now_us
            link.start(self._received)
        messages = link.receive()
        link.check(now_us)
        if link.is_ready:
            self._told_us = now_us
        elif now_us > self._begun_us + ANSWER_US:
            raise LinkError("it does not answer")
        if messages or (link.is_ready and now_us > self._begun_us + _STEADY_US):
            self._retries.succeeded()
        if messages:
            self._waiting.extend(messages)
            self._received = messages[-1].position or self._received

    def _deliver(self, count: int) -> Fetched:
        feed = self._feed
        taken = list(islice(self._waiting, count))
        for _ in taken:
            self._waiting.popleft()
        values = [message.value for message in taken]
        self._position = taken[-1].position or self._position
        self._count += len(taken)

        def place(at: int) -> Position:
            topic, found = feed.describe(), taken[at].position
            return Position(f"{topic} {found}".rstrip(), Parts(feed.kind, topic, id=found or None))

        result = sorted_out(
            len(taken),
            lambda begin, end: feed.message_format.decode(values[begin:end], feed.schema),
            letters_of(values, place, feed),
            feed,
        )
        return result.fetched(feed, feed.describe(), place, self._context)

    def _failed(self, error: LinkError, now_us: int) -> None:
        """Wait before the next attempt, or give up."""
        if self._link is not None:
            self._link.close()
            self._link = None
        headers = self._feed.headers or {}
        secrets = (self._feed.url, *headers.values())
        fact = redacted(hidden_options(hidden(str(error), *secrets), headers))
        if error.fatal or self._retries.failed(now_us, fact) is None:
            tries = "" if error.fatal or not self._feed.retries else f" {self._feed.retries + 1} times in a row"
            fix = error.fix or "check the address"
            raise SourceError(f"no messages from {self._feed.describe()}{tries}: {fact}; {fix}") from cause_of(
                error, *secrets
            )
