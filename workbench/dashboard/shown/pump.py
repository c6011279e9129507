"""One thread in the kernel that carries the newest frame of every shown job to each of its open displays."""

from __future__ import annotations

import atexit
import importlib
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Event, Lock, Thread
from time import monotonic

from workbench.dashboard.page.pace import Share
from workbench.dashboard.shown.display import Display

LOOK_S = 0.03
"""How often the pump checks whether a page can take a frame."""

PATIENCE_S = 5.0
"""At the end of the process."""

_log = logging.getLogger(__name__)


class Pump:
    """Feeds displays as long as there are any; a display is released when its job has ended and it shows the last
    frame, and suspended while its page is silent.

    Args:
        look_s: time between two checks whether a page can take a frame.
    """

    def __init__(self, look_s: float = LOOK_S) -> None:
        self._look_s = look_s
        self._share = Share()
        self._displays: list[Display] = []
        self._lock = Lock()
        self._thread: Thread | None = None
        self._wake = Event()

    @property
    def displays(self) -> tuple[Display, ...]:
        """The displays that are fed."""
        with self._lock:
            return tuple(self._displays)

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive."""
        with self._lock:
            return self._thread is not None

    def add(self, display: Display) -> None:
        """Feed a display from now on, unless it was closed: what it began before may end later."""
        with self._lock:
            if display.is_closed:
                return
            if display not in self._displays:
                self._displays.append(display)
            if self._thread is None:
                self._thread = Thread(target=self._run, name="dashboard pump", daemon=True)
                self._thread.start()
                _end_first(self.end)

    def remove(self, display: Display) -> None:
        """Stop feeding a display; the thread ends when there is none left."""
        with self._lock:
            if display in self._displays:
                self._displays.remove(display)
        self._wake.set()

    def end(self) -> None:
        """The process ends: feed nothing more, and wait until what is being sent is sent."""
        with self._lock:
            self._displays, thread = [], self._thread
        self._wake.set()
        if thread is not None:
            thread.join(PATIENCE_S)
            with suppress(AttributeError, OSError, ValueError):  # there is none, or it is closed
                sys.stdout.flush()  # a kernel's returns when everything is sent that was handed over before

    def _run(self) -> None:
        while self._has_work():
            with self._share.taken():
                self._round(monotonic())
            self._fill()
            self._wake.wait(max(self._look_s, self._share.rest_s()))
            self._wake.clear()

    def _has_work(self) -> bool:
        """Whether to continue; if not, the thread ends under the same lock, so that no display is left unfed."""
        with self._lock:
            if not self._displays:
                self._thread = None
            return self._thread is not None

    def _round(self, now: float) -> None:
        for display in self.displays:
            if display.pace.is_lost(now):
                self.remove(display)
            elif display.is_due(now):
                self._feed(display, now)

    def _fill(self) -> None:
        """Make the cards that pages lack; not part of the share of one core, since each is made once."""
        for display in self.displays:
            self._try(display, partial(display.fill, monotonic()))

    def _feed(self, display: Display, now: float) -> None:
        if self._try(display, lambda: display.show(now)) and display.is_finished:
            self.remove(display)
            if not display.is_finished:  # its page has sent a request meanwhile
                self.add(display)

    def _try(self, display: Display, act: Callable[[], None]) -> bool:
        """A display that fails must stop neither the others nor the job: it is dropped, and the reason is logged."""
        try:
            act()
        except Exception:  # noqa: BLE001 - whatever broke, the pump goes on
            _log.exception("a display of the dashboard of %s failed and is closed", display.job.name)
            self.remove(display)
            display.line.close()
            return False
        return True


def _end_first(end: Callable[[], None]) -> None:
    """Call this at the end of the process, before whatever was registered until now.

    That includes zmq's collector of large messages. Without it, a kernel's socket sends one half of such a message, and
    its page takes the next message for the other half.
    """
    if "zmq" in sys.modules:
        importlib.import_module("zmq.utils.garbage")  # it registers itself with the first large message at the latest
    atexit.unregister(end)
    atexit.register(end)
