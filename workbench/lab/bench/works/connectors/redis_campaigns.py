"""W3 with a Redis server (E6): campaigns are looked up there, and it holds each window's views so far."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote
from weakref import finalize

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.clock import rest
from workbench.connectors.redis.server import RedisServer
from workbench.elements import Int64s
from workbench.errors import SettingError
from workbench.lab.bench.works.ad_events import CAMPAIGN_OF, WINDOW, AdEvents, are_expected, counts_of
from workbench.lab.bench.works.work import Work

COUNTS = "views"
_OF_AD = "campaign"
_WAIT_S, _LOOK_S = 30.0, 0.02


class RedisCampaigns(Work):
    """As `Campaigns`, in a Redis server of its own at a socket: the hash ``campaign`` is looked up by ad, and the hash
    ``views`` holds the counts so far, written once a second.

    Args:
        rate: events per second; None for full speed.

    Raises:
        SettingError: there is no redis-server on the PATH, or it does not start.
    """

    workload = "W3"
    fires_at_end = True

    def __init__(self, rate: float | None = None) -> None:
        self._events = AdEvents()
        self._rate = rate
        self.emitted = self._events.emitted
        self.url, end = _started()
        self._client = RedisServer(self.url).connect()
        self._client.hset(_OF_AD, mapping={str(row["ad"]): row["campaign"] for row in CAMPAIGN_OF.to_pylist()})
        finalize(self, end)

    def config(self) -> dict[str, object]:
        return {"sink": "redis"}

    def start_measuring(self) -> None:
        """Only events are measured."""

    def pipeline(self, limit: int | None) -> wb.types.Pipeline:
        client = self._client

        def campaign_of(ad: int) -> dict[str, int]:
            return {"campaign": int(client.hget(_OF_AD, ad))}

        return (
            self._events.views(limit, self._rate)
            .lookup_async(campaign_of, key="ad", schema={"campaign": pa.int64()}, how="inner", cache="10min")
            .key_by("campaign")
            .window(wb.tumbling(WINDOW), trigger=wb.triggers.early("1s"))
            .aggregate(views=wb.count())
            .sink_to(wb.RedisSink(self.url, COUNTS, upsert_key=["campaign", "window_start"], value="views"))
        )

    def counts(self) -> Int64s:
        """Shape (windows, CAMPAIGNS): the present content of the hash, as another program reads it."""
        rows = [_row(field.decode(), int(views)) for field, views in self._client.hgetall(COUNTS).items()]
        found: Int64s = np.array(rows, np.int64).reshape(-1, 3)
        return counts_of(found[:, 0], found[:, 1], found[:, 2])

    def stored(self) -> int:
        """The views that the present content of the hash counts."""
        return sum(map(int, self._client.hvals(COUNTS)))

    def exact(self) -> bool:
        return are_expected(self.counts(), self.emitted)


def _row(field: str, views: int) -> tuple[int, int, int]:
    campaign, _, start = field.partition(":")
    ms = np.datetime64(unquote(start).rstrip("Z"), "ms").astype(np.int64)
    return int(ms), int(campaign), views


def _started() -> tuple[str, Callable[[], object]]:
    """The URL of a server that keeps nothing on disk, and what ends it."""
    program = shutil.which("redis-server")
    if program is None:
        raise SettingError("there is no redis-server on the PATH: install it (apt-get install redis-server)")
    folder = tempfile.mkdtemp(prefix="wb-redis-")  # a socket's path is short
    socket = Path(folder) / "s"
    command = [program, "--port", "0", "--unixsocket", str(socket), "--dir", folder, "--save", ""]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def end() -> None:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)

    for _ in range(int(_WAIT_S / _LOOK_S)):
        if socket.exists() or process.poll() is not None:
            break
        rest(_LOOK_S)
    if process.poll() is not None or not socket.exists():
        raise SettingError(f"{program} does not start: run it by hand to see why")
    return f"unix://{socket}", end
