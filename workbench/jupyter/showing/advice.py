"""Text that is displayed verbatim: what the user can do next."""

from __future__ import annotations

from html import escape


class Advice(str):
    """Text that is displayed without quotes and with its line breaks."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap; word-break: normal">{escape(self)}</pre>'
