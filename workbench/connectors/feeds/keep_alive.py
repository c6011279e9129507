"""Keep-alive probes, by which the system finds a peer whose machine has vanished."""

from __future__ import annotations

import socket

_OPTIONS = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
"""Seconds of silence before the first probe, seconds between probes, and the number of unanswered probes that ends the
connection."""


def keep_alive(connection: socket.socket) -> None:
    """Let the system probe the peer of a connection; once it has vanished, reading fails."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _OPTIONS.items():
        if (number := getattr(socket, option, None)) is not None:
            connection.setsockopt(socket.IPPROTO_TCP, number, value)
