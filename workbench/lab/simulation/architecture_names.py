"""The names of the architectures of fault tolerance, for the help of a command, which does not import the runtime."""

from __future__ import annotations

ARCHITECTURES = ("acks", "at-most-once", "changelog", "micro-batches", "stop-the-world", "transactions")
