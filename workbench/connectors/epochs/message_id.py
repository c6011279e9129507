"""The identity of a message of an exactly-once sink."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote


@dataclass(frozen=True, slots=True)
class MessageId:
    """Identifies a message.

    Attributes:
        writer: the job and its sink.
        run: the run of the job that received the rows.
        epoch: the checkpoint that commits them.
        subtask: the subtask that received them.
        number: the index of the message among them.

    Example:
        >>> one = MessageId("delays/sink", "run 1", 7, 0, 3)
        >>> one.text(), MessageId.read(one.text()) == one
        ('7 0 3 run%201 delays/sink', True)
    """

    writer: str
    run: str
    epoch: int
    subtask: int
    number: int

    def text(self) -> str:
        """The text for a header of a message."""
        return f"{self.epoch} {self.subtask} {self.number} {quote(self.run)} {self.writer}"

    @classmethod
    def read(cls, text: str) -> MessageId | None:
        """Parse the identity in a header; None if it is another text."""
        parts = text.split(" ", 4)
        if len(parts) == 5 and all(part.isdecimal() for part in parts[:3]):
            return cls(parts[4], unquote(parts[3]), *map(int, parts[:3]))
        return None
