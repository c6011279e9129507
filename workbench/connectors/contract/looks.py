"""Pauses between polls for new records, for servers that do not announce them."""

from __future__ import annotations

from workbench.connectors.contract.base import WaitUntil

_REST_US_MIN, _REST_US_MAX = 1_000, 16_000


class Looks:
    """When to poll again: after 1 ms, 2 ms, 4 ms, ... up to 16 ms, until records are found.

    Example:
        >>> looks = Looks()
        >>> [looks.next(0).time_us, looks.next(1_000).time_us]
        [1000, 3000]
    """

    __slots__ = ("_rest_us",)

    def __init__(self) -> None:
        self._rest_us = _REST_US_MIN

    def next(self, now_us: int, due_us: int = 0) -> WaitUntil:
        """The time of the next poll after one that found nothing.

        Args:
            now_us: processing time.
            due_us: do not look before.
        """
        rest_us = self._rest_us
        self._rest_us = min(2 * rest_us, _REST_US_MAX)
        return WaitUntil(max(now_us + rest_us, due_us))

    def found(self) -> None:
        """Note that records were found."""
        self._rest_us = _REST_US_MIN
