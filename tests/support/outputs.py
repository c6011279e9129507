"""An output for operators that tests drive by hand."""

from __future__ import annotations

from workbench.elements import Records


class Collected:
    """Keeps what is emitted; nothing is to go to a side."""

    def __init__(self) -> None:
        self.records: list[Records] = []

    def emit(self, records: Records) -> None:
        self.records.append(records)

    def emit_side(self, tag: str, records: Records) -> None:
        raise AssertionError(tag)
