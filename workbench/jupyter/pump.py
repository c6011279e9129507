"""The thread that sends frames of the jobs to every page that looks."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from workbench.drivers.contract.leaving import end_with_process
from workbench.jupyter.told import Jobs, hello_of, sent_head
from workbench.wire.messages import EVERY_JOB, See, message
from workbench.wire.patches import patch
from workbench.wire.values import plain

PERIOD_S = 0.1
"""Between two looks at the jobs at least: frames are sampled as often."""
LOOK_S = 0.25
"""Between two looks at the list of jobs at most: a page docks the dashboard of a new one."""
MAX_FRONT_ENDS = 8
"""A page that crashed never closes its comms. Polling for it would keep an idle kernel from being culled, so the number
of comms is bounded instead, and the newest are kept."""

Plain = Mapping[str, Any]


class Comm(Protocol):
    """The part of ipykernel's comm that is used."""

    comm_id: str
    handle_msg: Callable[[dict[str, Any]], None]

    def send(self, data: dict[str, Any]) -> None: ...
    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None: ...
    def close(self) -> None: ...


class FramePump:
    """The one thread that sends frames; it lives while there is a page.

    It looks at the jobs as often as the most eager page wants, and when a job or a page comes, or a page asks for
    other sections or has acted; a page receives only what has changed since its last frame.

    Args:
        jobs: returns the jobs by name.
    """

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._lock = threading.Lock()
        self._pages: dict[str, _Page] = {}
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()

    def add(self, comm: Comm, see: See) -> None:
        """Feed a comm; the first messages are sent at once. If there are too many, the oldest is closed."""
        with self._lock:
            self._pages[comm.comm_id] = _Page(comm, see)
            oldest = self._pages.pop(next(iter(self._pages))) if len(self._pages) > MAX_FRONT_ENDS else None
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="workbench-telemetry", daemon=True)
                self._thread.start()
                end_with_process(self)
        self._wake.set()
        if oldest is not None:
            close(oldest.comm)

    def see(self, comm_id: str, see: See) -> None:
        """A page wants other sections; all that it wants comes whole, and at once."""
        with self._lock:
            if (page := self._pages.get(comm_id)) is not None:
                self._pages[comm_id] = _Page(page.comm, see)
        self._wake.set()

    def hurry(self) -> None:
        """Send what is new at once: someone has acted."""
        with self._lock:
            for page in self._pages.values():
                page.hurry()
        self._wake.set()

    def remove(self, comm_id: str) -> None:
        """Stop feeding a comm that was closed."""
        with self._lock:
            self._pages.pop(comm_id, None)
        self._wake.set()

    def stop(self) -> None:
        """Close every page's comm, and wait until the thread has ended."""
        with self._lock:
            pages, self._pages, thread = tuple(self._pages.values()), {}, self._thread
        self._wake.set()
        for page in pages:
            close(page.comm)
        if thread is not None:
            thread.join(timeout=5.0)

    def leave(self) -> list[threading.Thread]:
        """The process ends: feed nothing more, since a kernel's socket takes messages of one thread only by then."""
        with self._lock:
            self._pages, thread = {}, self._thread
        self._wake.set()
        return [] if thread is None else [thread]

    @property
    def running(self) -> bool:
        """Whether the thread is running."""
        with self._lock:
            return self._thread is not None

    def _run(self) -> None:
        while pages := self._pages_or_end():
            now = time.monotonic()
            try:
                jobs = self._jobs()
                hello = plain(hello_of(jobs))
                due = [page for page in pages if page.is_due(now, hello)]
                heads = {name: sent_head(job) for name, job in jobs.items()} if due else {}
            except Exception:  # noqa: BLE001 - a look that failed must not end the thread: every page would fall silent
                due = []
            for page in due:
                if not page.tell(hello, heads, now):
                    self.remove(page.comm.comm_id)
            left = min((page.due_s for page in pages), default=now) - time.monotonic()
            self._wake.wait(min(max(left, PERIOD_S), LOOK_S))
            self._wake.clear()

    def _pages_or_end(self) -> tuple[_Page, ...]:
        """The pages to feed now; if there is none, the thread ends under the lock, so that `add` starts another."""
        with self._lock:
            if not self._pages:
                self._thread = None
            return tuple(self._pages.values())


class _Page:
    """One open comm, what is wanted on it, and what was last sent.

    Attributes:
        due_s: when the next frame is due, on the monotonic clock.
    """

    __slots__ = ("_heads", "_hello", "_period_s", "_see", "_seq", "comm", "due_s")

    def __init__(self, comm: Comm, see: See) -> None:
        self.comm = comm
        self.due_s = 0.0
        self._see = see
        self._period_s = min((self._every_s(job) for job in see.sections), default=1.0)
        self._hello: Plain | None = None
        self._heads: dict[str, Plain] = {}
        self._seq: dict[str, int] = {}

    def is_due(self, now_s: float, hello: Plain) -> bool:
        """Whether it is time for a frame, or the list of jobs is another."""
        return now_s >= self.due_s or hello != self._hello

    def hurry(self) -> None:
        """Let the next frame be due now."""
        self.due_s = 0.0

    def tell(self, hello: Plain, heads: Mapping[str, Plain], now_s: float) -> bool:
        """Send what is new; False if the comm cannot send it."""
        self.due_s = now_s + self._period_s
        try:
            if hello != self._hello:
                self.comm.send(message("hello", hello))
                self._hello = hello
            for job, head in heads.items():
                if self._wants(job):
                    self._tell_head(job, head)
        except Exception:  # noqa: BLE001 - whatever is wrong with one page, the others must still be fed
            return False
        for job in self._heads.keys() - heads.keys():
            del self._heads[job], self._seq[job]
        return True

    def _tell_head(self, job: str, head: Plain) -> None:
        before = self._heads.get(job)
        new = head if before is None else patch(before, head)
        if not new:
            return
        base = self._seq.get(job)
        self._seq[job] = 0 if base is None else base + 1
        self.comm.send(message("frame", {"job": job, "seq": self._seq[job], "base": base, "head": new}))
        self._heads[job] = head

    def _wants(self, job: str) -> bool:
        return any("head" in self._see.sections.get(name, {}) for name in (EVERY_JOB, job))

    def _every_s(self, job: str) -> float:
        wanted = self._see.sections[job].values()
        return max(PERIOD_S, min(wanted, default=1_000) / 1_000)


def close(comm: Comm) -> None:
    """Close a comm that may be gone already."""
    with contextlib.suppress(Exception):  # whatever the error, the comm is gone
        comm.close()
