"""Says where something else than the buffer timeout decides when buffers are shipped."""

from __future__ import annotations

from workbench.durations import parse_duration


def timeout_idle(timeout: str, fill_ms: float | None) -> str:
    """Says that buffers are full before the buffer timeout ends, where they are; else empty.

    Example:
        >>> timeout_idle("500ms", 15.2), timeout_idle("5ms", 15.2), timeout_idle("disabled", None)
        ('buffers are full after 15 ms at this rate: the timeout has no effect', '', '')
        >>> timeout_idle("500ms", 0.2)
        'buffers are full at once: the timeout has no effect'
    """
    if fill_ms is None or timeout == "disabled" or fill_ms * 1_000 >= 0.8 * parse_duration(timeout, "buffer_timeout"):
        return ""
    full = f"after {fill_ms:.0f} ms at this rate" if fill_ms >= 0.5 else "at once"
    return f"buffers are full {full}: the timeout has no effect"


def barriers_first(timeout: str, gap_ms: float | None) -> str:
    """Says that barriers ship buffers before the buffer timeout ends, where they do; else empty.

    Example:
        >>> barriers_first("1s", 202.4), barriers_first("100ms", 202.4), barriers_first("1s", None)
        ('the barriers of checkpoints ship buffers every 202 ms, before the timeout ends', '', '')
    """
    if gap_ms is None or (timeout != "disabled" and gap_ms * 1_000 >= 0.8 * parse_duration(timeout, "buffer_timeout")):
        return ""
    return f"the barriers of checkpoints ship buffers every {gap_ms:,.0f} ms, before the timeout ends"
