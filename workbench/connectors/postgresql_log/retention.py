"""How much of its log the server keeps for a slot, asked now and then."""

from __future__ import annotations

from workbench.connectors.postgresql_log.background import Background, Call
from workbench.connectors.postgresql_log.server import Server, SlotFacts

_PAUSE_US = 5_000_000


class Retention:
    """What the server keeps for a slot; no call waits for the answer.

    Args:
        slot: its name.

    Attributes:
        known: the last answer, and when it came; None: there is none.
    """

    def __init__(self, slot: str) -> None:
        self._slot = slot
        self._asked: Call[SlotFacts | None] | None = None
        self._due_us = 0
        self.known: tuple[SlotFacts, int] | None = None

    def look(self, now_us: int, background: Background, server: Server) -> None:
        """Take the answer if it is there, and ask again when it is old; never raises.

        Args:
            now_us: processing time.
            background: makes the query.
            server: is asked.
        """
        if self._asked is not None and self._asked.is_over:
            self.known = _facts(self._asked, now_us)
            self._asked = None
        elif self._asked is None and now_us >= self._due_us:
            self._due_us = now_us + _PAUSE_US
            self._asked = background.begin(lambda: server.slot(self._slot))


def _facts(asked: Call[SlotFacts | None], now_us: int) -> tuple[SlotFacts, int] | None:
    try:
        facts = asked.result()
    except Exception:  # noqa: BLE001  a server that is gone is reported by those who read from it
        return None
    return None if facts is None else (facts, now_us)
