"""The passive connection of a feed, which the reader polls without waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ANSWER_US = 10_000_000
"""The time limit for a server to answer a new connection."""


@dataclass(frozen=True, slots=True)
class FeedMessage:
    """A message of a feed.

    Attributes:
        value: its content.
        position: the position from which the feed can continue after this message; empty: it cannot.
    """

    value: bytes
    position: str = ""


class LinkError(Exception):
    """A connection failed.

    Attributes:
        fatal: whether another attempt is pointless.
        fix: the likely fix, or empty.
    """

    def __init__(self, message: str, *, fatal: bool = False, fix: str = "") -> None:
        super().__init__(message)
        self.fatal = fatal
        self.fix = fix


class Link(Protocol):
    """Successive connections to the server of a feed.

    Attributes:
        is_ready: whether the server has accepted the connection, so that messages arrive when there are any.
    """

    @property
    def is_ready(self) -> bool: ...

    def start(self, position: str) -> None:
        """Start connecting.

        Args:
            position: the position of the last received message, or empty.

        Raises:
            LinkError: the server is unknown, or refuses.
        """

    def receive(self) -> Sequence[FeedMessage]:
        """Advance the connection and return the received messages, possibly none.

        Raises:
            LinkError: the connection is lost, or the server refuses.
        """

    def check(self, now_us: int) -> None:
        """Ask a server that has sent nothing for a while whether it still answers.

        Args:
            now_us: processing time.

        Raises:
            LinkError: it has not answered in time.
        """

    def close(self) -> None:
        """Release the connection; never raises."""
