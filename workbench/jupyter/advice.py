"""Text that is displayed as it stands: what a person can do next."""

from __future__ import annotations

from html import escape


class Advice(str):
    """A text that shows itself without quotes, with its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"
