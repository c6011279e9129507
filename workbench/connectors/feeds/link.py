"""The connection of a feed: passive, so that the reader polls it and never waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

ANSWER_US = 10_000_000
"""How long a server may take to answer a new connection."""


@dataclass(frozen=True, slots=True)
class FeedMessage:
    """A message of a feed.

    Attributes:
        value: its content.
        position: from which the feed can be read again after this message; empty: it cannot.
    """

    value: bytes
    position: str = ""


class LinkError(Exception):
    """A connection failed.

    Attributes:
        fatal: another attempt cannot help.
    """

    def __init__(self, message: str, *, fatal: bool = False) -> None:
        super().__init__(message)
        self.fatal = fatal


class Link(Protocol):
    """One connection after the other to the server of a feed.

    Attributes:
        is_ready: the server has accepted this one, so messages come as soon as there are some.
    """

    @property
    def is_ready(self) -> bool: ...

    def start(self, position: str) -> None:
        """Begin to connect.

        Args:
            position: of the last message received; empty: none.

        Raises:
            LinkError: the server is not known, or refuses.
        """

    def receive(self) -> Sequence[FeedMessage]:
        """What has arrived, after some progress of the connection; empty: nothing.

        Raises:
            LinkError: the connection is lost, or the server refuses.
        """

    def close(self) -> None:
        """Let go of the connection; never raises."""
