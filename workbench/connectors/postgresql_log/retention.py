"""What the server keeps for a slot, and whether the publication is still the same: asked now and then."""

from __future__ import annotations

from workbench.connectors.postgresql_log.background import Background, Call
from workbench.connectors.postgresql_log.server import Server, SlotFacts

Answer = tuple[SlotFacts | None, str | None]

_PAUSE_US = 5_000_000


class Retention:
    """What the server keeps for a slot; no call waits for the answer.

    Args:
        slot: its name.
        publication: its name.

    Attributes:
        known: the last answer about the slot, and when it came; None: there is none.
        publication: the mark of the publication as it was last, empty if it is gone; None: not known yet.
    """

    def __init__(self, slot: str, publication: str) -> None:
        self._slot, self._publication = slot, publication
        self._asked: Call[Answer] | None = None
        self._due_us = 0
        self.known: tuple[SlotFacts, int] | None = None
        self.publication: str | None = None

    def look(self, now_us: int, background: Background, server: Server, table: int) -> None:
        """Take the answer if it is there, and ask again when it is old; never raises.

        Args:
            now_us: processing time.
            background: makes the query.
            server: is asked.
            table: the id of the table that is read.
        """
        if self._asked is not None and self._asked.is_over:
            slot, mark = _answer(self._asked)
            self.known = None if slot is None else (slot, now_us)
            self.publication = mark
            self._asked = None
        elif self._asked is None and now_us >= self._due_us:
            self._due_us = now_us + _PAUSE_US
            self._asked = background.begin(
                lambda: (server.slot(self._slot), server.publication_mark(self._publication, table))
            )


def _answer(asked: Call[Answer]) -> Answer:
    try:
        return asked.result()
    except Exception:  # noqa: BLE001  a server that is gone is reported by those who read from it
        return None, None
