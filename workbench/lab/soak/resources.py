"""The resources of the process, and whether they keep growing: threads, open files, sockets, memory."""

from __future__ import annotations

import ctypes
import gc
import os
import statistics
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from workbench.lab.bench.works.memory import GROWTH_MAX, resident_mb

_DESCRIPTORS = Path("/proc/self/fd")
_M_ARENA_MAX, _M_MMAP_THRESHOLD = -8, -3
"""As in glibc's ``malloc.h``."""
ARENAS = 2
LARGE_BLOCK = 262_144
JUDGED_FROM = 40
"""With fewer samples (one for each fault) growth is not checked."""


@dataclass(frozen=True, slots=True)
class Held:
    """The resources at one moment.

    Attributes:
        threads: of Python.
        files: open descriptors, including sockets; 0 if the system does not say.
        sockets: those that are sockets.
        rss_mb: resident memory.
    """

    threads: int
    files: int
    sockets: int
    rss_mb: float

    @classmethod
    def now(cls) -> Held:
        """At this moment."""
        targets = _open_files()
        sockets = sum(target.startswith("socket:") for target in targets)
        return cls(threading.active_count(), len(targets), sockets, round(resident_mb(), 1))


def malloc_gives_back() -> None:
    """Let malloc keep its free memory in few places, so that more of it can be returned; only with glibc.

    It has up to eight arenas for each core, and a thread takes one that no other uses. The threads of attempts come and
    go, and each leaves small pieces in another arena: in half an hour 20 MB more that are free and cannot be returned.
        Large blocks keep separate mappings, as they have at first; usually malloc takes ever larger ones from its
        arenas.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, ARENAS)
        set_option(_M_MMAP_THRESHOLD, LARGE_BLOCK)


@contextmanager
def arrow_gives_back() -> Iterator[None]:
    """Let Arrow use a memory pool that returns free memory within a second, whichever thread used it.

    Its default pool, mimalloc's, has heaps for each thread. While the threads of attempts come and go, 20 MB of
    resident
    memory come and go with them in a soak, unused: more than the growth to detect. With jemalloc it is half of that. If
    Arrow was built without jemalloc, nothing changes.
    """
    before = pa.default_memory_pool()
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def settled_mb() -> float:
    """Resident memory without unused memory: takes a fifth of a second, in which nothing else runs.

    What allocators keep for later depends on the threads so far: each new one may use another of malloc's arenas, a
    dozen on two cores, until each of them has some free megabytes. And the objects of an ended job stay until the
    garbage collector runs, when there are a quarter more objects.
    """
    gc.collect()
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
    return round(resident_mb(), 1)


def threads_of(job: str) -> int:
    """The number of threads of a job."""
    return sum(thread.name.startswith(f"{job} ") for thread in threading.enumerate())


def leaks(samples: Sequence[Held]) -> list[str]:
    """Resources that kept growing: the minimum of the last quarter of the samples exceeds the maximum of the first.

    A sample may be taken while a file is being written, so single ones prove nothing.

    Example:
        >>> leaks([Held(5, 9, 0, 100.0)] * 60)
        []
        >>> leaks([Held(5, 9 + number, 0, 100.0) for number in range(60)])
        ['open files grew from at most 23 to at least 54']
    """
    if len(samples) < JUDGED_FROM:
        return []
    part = len(samples) // 4
    found = []
    for name, title in (("threads", "threads"), ("files", "open files"), ("sockets", "sockets")):
        most = max(getattr(held, name) for held in samples[:part])
        least = min(getattr(held, name) for held in samples[-part:])
        if least > most:
            found.append(f"{title} grew from at most {most} to at least {least}")
    return found


def growth(resident: Sequence[tuple[int, float]]) -> float | None:
    """The growth of memory from the first quarter of the samples to the last, by medians, as a share.

    Only samples at the same parallelism are compared, because each slot has separate buffers, some 60 MB. Several
    shares are averaged, weighted by the number of samples at both ends.

    Args:
        resident: parallelism and megabytes, in the order of time.

    Returns:
        The share; None when no parallelism is in both quarters.

    Example:
        >>> growth([(2, 100.0)] * 5 + [(2, 103.0)] * 5)
        0.03
        >>> growth([(1, 100.0), (2, 160.0), *[(3, 220.0)] * 4, (2, 176.0), (1, 100.0)])
        0.05
    """
    part = max(1, len(resident) // 4)
    begin, end = _by_parallelism(resident[:part]), _by_parallelism(resident[-part:])
    weights = {key: min(len(begin[key]), len(end[key])) for key in begin.keys() & end.keys()}
    if not weights:
        return None
    shares = {key: statistics.median(end[key]) / statistics.median(begin[key]) for key in weights}
    return round(sum(shares[key] * weight for key, weight in weights.items()) / sum(weights.values()) - 1, 4)


def _by_parallelism(resident: Sequence[tuple[int, float]]) -> dict[int, list[float]]:
    found: dict[int, list[float]] = {}
    for parallelism, megabytes in resident:
        found.setdefault(parallelism, []).append(megabytes)
    return found


def too_much(share: float | None) -> bool:
    """Whether this growth is more than noise."""
    return share is not None and share > GROWTH_MAX


def _open_files() -> list[str]:
    if not _DESCRIPTORS.exists():
        return []
    found = []
    for entry in os.listdir(_DESCRIPTORS):  # noqa: PTH208  a Path for each descriptor would be ten times the work
        try:
            found.append(os.readlink(_DESCRIPTORS / entry))  # noqa: PTH115
        except OSError:  # the descriptor of the listing itself, or one that was closed in the meantime
            continue
    return found
