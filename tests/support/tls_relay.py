"""Adds TLS to a server that has none: a relay that decrypts what clients send."""

from __future__ import annotations

import asyncio
import ssl
import threading
from contextlib import suppress

from certificates import Certificate

_CHUNK = 1 << 16


class TlsRelay:
    """Passes encrypted connections on to a port of this machine.

    Attributes:
        port: where it listens.
    """

    def __init__(self, target: int, certificate: Certificate) -> None:
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.chain, certificate.key)
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """End all connections, and accept none."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        back: asyncio.StreamWriter | None = None
        try:
            source, back = await asyncio.open_connection("127.0.0.1", self._target)
            await asyncio.gather(_pass_on(reader, back), _pass_on(source, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for each in (writer, back):
                if each is not None:
                    each.transport.abort()


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
    sink.close()
