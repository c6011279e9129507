"""Nine causes, each of which changes a running job in a way that a person is to recognize on the dashboard."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import workbench as wb
from workbench.lab.bench.works.latencies import now_us
from workbench.telemetry.latency import RECENT_US

ROUTES = ("JFK", "LGA", "EWR", "BOS", "ORD", "SFO", "DEN", "SEA", "MIA", "DFW", "LAX", "ATL")
SCHEMA = {"n": pa.int64(), "at": pa.timestamp("us"), "origin": pa.string(), "delay": pa.int64()}
_BEGIN_US = 1_372_636_800_000_000


class Latencies:
    """How long records took from their source to the sink, whatever markers say.

    A record is due at the rate of its source, which requests several once the last of them is due. A source that gets
    no processor for a while requests them later: that is no latency, and markers do not count it either.

    Args:
        rate: records a second of each subtask of the source.
    """

    def __init__(self, rate: float) -> None:
        self._gap_us = 1e6 / rate
        self._due_us: dict[int, float] = {}
        self._arrived: list[tuple[int, float]] = []  # when, and after how long

    def requested(self, first: int, count: int) -> None:
        """The source has asked for these records."""
        due_us = now_us() - self._gap_us * np.arange(count - 1, -1, -1)
        self._due_us.update(zip(range(first, first + count), due_us.tolist(), strict=True))

    def arrive(self, batch: pa.RecordBatch, times_us: Any) -> None:
        """Records have reached the sink; their event times tell which."""
        now = now_us()
        numbers = ((times_us - _BEGIN_US) // 1_000_000).tolist()
        self._arrived += [(now, now - self._due_us.pop(number)) for number in numbers]

    def usual_p50_ms(self, since_us: int, until_us: int) -> float:
        """The median of what `p50_ms` was over the markers' recent time, ten times a second."""
        arrived = np.array(list(self._arrived))
        looks = [
            (look - RECENT_US < arrived[:, 0]) & (arrived[:, 0] <= look) for look in range(since_us, until_us, 100_000)
        ]
        return float(np.median([np.median(arrived[seen, 1]) for seen in looks if seen.any()])) / 1_000

    def p50_ms(self, since_us: int, until_us: int) -> float:
        """Of the records that arrived in this time."""
        return float(np.median([took for at_us, took in list(self._arrived) if since_us < at_us <= until_us])) / 1_000


@dataclass
class Numbers:
    """The input of a scene: record `n` has event time `n` seconds, until a cause changes what comes.

    Attributes:
        hot: a key that most records have from now on.
        behind_s: every fourth record is so many seconds behind.
        latencies: takes note of the records that are requested.
    """

    hot: str | None = None
    behind_s: int = 0
    latencies: Latencies | None = None

    def rows(self, first: int, count: int) -> pa.RecordBatch:
        """Records `first` to ``first + count - 1``."""
        if self.latencies is not None:
            self.latencies.requested(first, count)
        n = np.arange(first, first + count)
        seconds = n - np.where(n % 4 == 3, self.behind_s, 0)
        origins = np.array(ROUTES)[(n * 7) % len(ROUTES)]
        if self.hot is not None:
            origins = np.where(n % 10 < 9, self.hot, origins)
        times = pa.array(seconds * 1_000_000 + _BEGIN_US, pa.timestamp("us"))
        columns = [pa.array(n), times, pa.array(origins), pa.array((n * 13) % 90)]
        return pa.RecordBatch.from_arrays(columns, names=list(SCHEMA))

    def stream(self, rate: float, out_of_orderness: str = "10s") -> wb.Stream:
        """The records as a stream, `rate` of them a second from each of two splits."""
        return wb.Stream.from_generator(
            self.rows, SCHEMA, event_time="at", out_of_orderness=out_of_orderness, rate=rate
        ).uid("flights")


def counted(flights: wb.Stream, window: str = "10min") -> wb.Pipeline:
    """Flights and delays of each origin, in windows."""
    windows = flights.key_by("origin").window(wb.tumbling(window))
    counts = windows.aggregate(flights=wb.count(), delay=wb.mean("delay")).uid("counts")
    return counts.sink_to(wb.TableSink("delays"))


def summed(flights: wb.Stream, sink: Any = None) -> wb.Pipeline:
    """The running sum of each origin: each record is passed on at once."""
    sums = flights.key_by("origin").aggregate(delay=wb.sum("delay")).uid("sums")
    return sums.sink_to(sink or wb.DiscardSink())


@dataclass
class Scene:
    """A job, and what is done to it.

    Attributes:
        job: runs.
        cause: does it.
        warm_s: how long the job runs before the first picture.
        latencies: of its records, where the scene measures them.
    """

    job: wb.types.Job
    cause: Callable[[], object]
    warm_s: float = 6.0
    latencies: Latencies | None = None


@dataclass(frozen=True)
class Act:
    """How a scene begins; `job` lasts as long as the block."""

    name: str
    opened: Callable[[], Any]


@contextmanager
def tuning(name: str, **change: str) -> Iterator[Scene]:
    """A running sum of 2,000 records a second, of which one setting is changed."""
    settings = {"checkpoint_interval": "2s", "buffer_timeout": "100ms"}
    if name == "buffer timeout":
        settings["buffer_timeout"] = "1s"
    if name == "checkpoint interval":
        settings["checkpoint_interval"] = "5s"
    latencies = Latencies(500)
    sink = wb.CallbackSink(latencies.arrive, event_times=True)
    stream = summed(Numbers(latencies=latencies).stream(1_000, "0s"), sink)
    with running(stream, name, parallelism=2, **settings) as job:
        yield Scene(job, lambda: job.tune(**change), latencies=latencies)


@contextmanager
def running(pipeline: wb.types.Pipeline, name: str, **settings: Any) -> Iterator[wb.types.Job]:
    """A job that ends with the block."""
    job = pipeline.run(name.replace(" ", "-"), **settings)
    try:
        yield job
    finally:
        job.cancel()
        job.wait("60s")


def buffer_timeout() -> Any:
    return tuning("buffer timeout", buffer_timeout="5ms")


def checkpoint_interval() -> Any:
    return tuning("checkpoint interval", checkpoint_interval="200ms")


@contextmanager
def checkpoint_mode() -> Iterator[Scene]:
    """Barriers wait behind the records of a slow operator, until they overtake them."""
    stream = summed(Numbers().stream(20_000))
    settings = {"checkpoint_interval": "1s", "buffer_size": 64, "checkpoint_mode": "exactly-once"}
    with running(stream, "checkpoint mode", parallelism=2, **settings) as job:
        job.faults.slow_down("sums", "20ms")
        yield Scene(job, lambda: job.tune(checkpoint_mode="unaligned"), 9)


@contextmanager
def slow_operator() -> Iterator[Scene]:
    with running(summed(Numbers().stream(1_000)), "slow operator", parallelism=2, checkpoint_interval="2s") as job:
        yield Scene(job, lambda: job.faults.slow_down("sums", "400ms"))


@contextmanager
def failed_task() -> Iterator[Scene]:
    stream = summed(Numbers().stream(1_000))
    with running(stream, "failed task", parallelism=2, checkpoint_interval="2s") as job:
        yield Scene(job, lambda: job.faults.fail(task="sums[1]"))


@contextmanager
def disorder() -> Iterator[Scene]:
    """Every fourth record comes half an hour late, where the watermarks wait for ten seconds."""
    numbers = Numbers()

    def cause() -> None:
        numbers.behind_s = 1_800

    with running(counted(numbers.stream(500)), "disorder", parallelism=2, checkpoint_interval="2s") as job:
        yield Scene(job, cause)


@contextmanager
def skew() -> Iterator[Scene]:
    """Nine records of ten have one key from now on."""
    numbers = Numbers()

    def cause() -> None:
        numbers.hot = "ATL"

    stream = summed(numbers.stream(1_000))
    with running(stream, "skewed keys", parallelism=4, checkpoint_interval="2s") as job:
        yield Scene(job, cause)


@contextmanager
def rescaling() -> Iterator[Scene]:
    """One subtask that cannot keep up, as it waits a millisecond for each record, becomes two."""

    def wait(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(0.001 * batch.num_rows)
        return batch

    sums = Numbers().stream(5_000).key_by("origin").aggregate(delay=wb.sum("delay")).uid("sums")
    stream = sums.map_batches(wait, {"origin": pa.string(), "delay": pa.int64()}).uid("enrich")
    settings = {"parallelism": 1, "checkpoint_interval": "2s", "buffer_size": 64}
    with running(stream.sink_to(wb.DiscardSink()), "rescaling", **settings) as job:
        yield Scene(job, lambda: job.rescale(2), 9)


def _record(n: int) -> dict[str, object]:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(_BEGIN_US // 1_000_000 + n))
    return {"n": n, "at": at, "origin": ROUTES[n % len(ROUTES)], "delay": n % 90}


class Feed:
    """A server that sends lines to whoever connects, 200 a second, until it is silenced."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.silent = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        line, _ = self._server.accept()
        with line, suppress(ConnectionError):  # the job has ended and hangs up
            n = 0
            while not self._over.wait(0.02):
                if self.silent.is_set():
                    continue
                line.sendall("".join(f"{json.dumps(_record(each))}\n" for each in range(n, n + 4)).encode())
                n += 4

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._server.close()


@contextmanager
def idle_source() -> Iterator[Scene]:
    """One of two sources has nothing to send any more."""
    feeds = [Feed(), Feed()]
    east, west = (
        wb.Stream.from_socket(
            "127.0.0.1", feed.port, SCHEMA, format="json", event_time="at", out_of_orderness="10s"
        ).uid(uid)
        for feed, uid in zip(feeds, ("east", "west"), strict=True)
    )
    try:
        with running(counted(east.union(west)), "idle source", parallelism=2, checkpoint_interval="2s") as job:
            yield Scene(job, feeds[1].silent.set)
    finally:
        for feed in feeds:
            feed.close()


SCENES: Mapping[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        buffer_timeout, checkpoint_interval, checkpoint_mode, slow_operator, failed_task, disorder, idle_source, skew,
        rescaling,
    )
}  # fmt: skip
