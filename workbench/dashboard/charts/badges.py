"""The colour and the symbol of each state of a job."""

from __future__ import annotations

BADGES = {
    "CREATED": ("muted", "○"), "INITIALIZING": ("accent", "◔"), "RUNNING": ("good", "●"), "FAILING": ("bad", "▲"),
    "RESTARTING": ("warn", "↺"), "CANCELLING": ("warn", "◑"), "CANCELED": ("muted", "■"), "FINISHED": ("accent", "✓"),
    "FAILED": ("bad", "✗"), "SUSPENDED": ("warn", "❚❚"),
}  # fmt: skip
