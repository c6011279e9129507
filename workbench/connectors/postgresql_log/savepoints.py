"""The slots of savepoints: copies of a source's slot, which stay where they are while the slot moves on.

A slot only moves forward, so it cannot give again what came after an old savepoint. Its copy can: whatever it keeps
includes everything after the position that the slot had when it was copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from workbench.connectors.postgresql_log.background import Background, Call
from workbench.connectors.postgresql_log.server import Server, SlotFacts
from workbench.connectors.postgresql_log.wire import IN_USE, WireError
from workbench.connectors.sql.session import fact_of

_COPY = re.compile(r"(?P<slot>[a-z0-9_]{1,50})_at_[0-9]{1,9}")


def is_copy(name: str) -> bool:
    """Whether a slot has the name of a savepoint's.

    Example:
        >>> is_copy(copy_name("orders", 12)), is_copy("orders")
        (True, False)
    """
    return _COPY.fullmatch(name) is not None


def copy_name(slot: str, checkpoint_id: int) -> str:
    """The name of the copy of a slot for a savepoint.

    Args:
        slot: of the source.
        checkpoint_id: of the savepoint.
    """
    return f"{slot}_at_{checkpoint_id}"


def copy_for(slots: Iterable[SlotFacts], slot: str, done: int) -> SlotFacts | None:
    """The copy of a slot from which the log can be read from a position on; None: there is none.

    Args:
        slots: of the database.
        slot: the name of the source's.
        done: the position.
    """
    found = [
        each
        for each in slots
        if (copy := _COPY.fullmatch(each.name)) is not None
        and copy["slot"] == slot
        and each.status != "lost"
        and 0 < each.confirmed <= done
    ]
    return max(found, key=lambda each: each.confirmed, default=None)


def slot_for(server: Server, name: str, done: int | None) -> SlotFacts | None:
    """The slot of a source; made anew from a savepoint's copy if it has passed the position, or is gone or lost.

    Args:
        server: is asked.
        name: of the slot.
        done: the position to go on at; None: there is none.

    Raises:
        WireError: another connection reads the slot.
    """
    slot = server.slot(name)
    if done is None or (slot is not None and slot.status != "lost" and slot.confirmed <= done):
        return slot
    slots = server.slots()
    copy = copy_for(slots, name, done)
    if copy is None or (slot is not None and name not in [each.name for each in slots]):
        return slot
    if slot is not None and slot.active_pid:
        raise WireError(f"the slot {name!r} {IN_USE} {slot.active_pid}")
    server.drop_slot(name)
    server.copy_slot(copy.name, name)
    return server.slot(name)


class Copies:
    """Copies a slot for each savepoint; no call waits for it.

    Args:
        slot: its name.
        url: of the database, with references to secrets.

    Attributes:
        problem: why the last savepoint has no slot; empty: it has one.
    """

    def __init__(self, slot: str, url: str) -> None:
        self._slot, self._url = slot, url
        self._begun: list[tuple[int, Call[None]]] = []
        self.problem = ""

    def begin(self, checkpoint_id: int, background: Background, server: Server) -> None:
        """Begin to copy it, as far as it was confirmed by now.

        Args:
            checkpoint_id: of the savepoint.
            background: makes the query.
            server: is asked.
        """
        copy = copy_name(self._slot, checkpoint_id)
        self._begun.append((checkpoint_id, background.begin(lambda: server.copy_slot(self._slot, copy))))

    def are_made(self) -> bool:
        """Whether the slot may move on: none is being copied."""
        while self._begun and self._begun[0][1].is_over:
            checkpoint_id, call = self._begun.pop(0)
            try:
                call.result()
                self.problem = ""
            except Exception as error:  # noqa: BLE001  the job goes on: its checkpoints do not need the copy
                fact = fact_of(error, self._url)
                self.problem = f"the savepoint of checkpoint {checkpoint_id} has no slot: {fact}"
        return not self._begun
