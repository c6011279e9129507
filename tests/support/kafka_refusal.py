"""A listener that speaks as much of Kafka's protocol as it takes to refuse a login.

Source: the Apache Kafka protocol guide: ApiVersions 3, SaslHandshake 1, SaslAuthenticate 0, error 58.
"""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

FACT = "Authentication failed: Invalid username or password"
_HANDSHAKE, _VERSIONS, _AUTHENTICATE = 17, 18, 36
_SASL_AUTHENTICATION_FAILED = 58


class _Refusal(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        while len(size := self.rfile.read(4)) == 4:
            request = self.rfile.read(struct.unpack(">i", size)[0])
            kind, version, correlation = struct.unpack(">hhi", request[:8])
            answer = struct.pack(">i", correlation) + _answer(kind, version)
            self.wfile.write(struct.pack(">i", len(answer)) + answer)


def _answer(kind: int, version: int) -> bytes:
    if kind == _VERSIONS:
        known = ((_HANDSHAKE, 1), (_VERSIONS, 3), (_AUTHENTICATE, 0), (3, 4))
        listed = b"".join(struct.pack(">hhhB", key, 0, most, 0) for key, most in known)
        return struct.pack(">hB", 0, len(known) + 1) + listed + struct.pack(">iB", 0, 0)
    if kind == _HANDSHAKE:
        return struct.pack(">hi", 0, 1) + _text("PLAIN")
    assert kind == _AUTHENTICATE, f"a client that is not logged in sends {kind} {version}"
    return struct.pack(">h", _SASL_AUTHENTICATION_FAILED) + _text(FACT) + struct.pack(">i", 0)


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


@contextmanager
def refusing() -> Iterator[str]:
    """The address of the listener."""
    with _Server(("127.0.0.1", 0), _Refusal) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
