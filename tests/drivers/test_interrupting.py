"""An exception in another thread, and threads that are traced meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from workbench.drivers.contract.interrupting import interrupt
from workbench.raised import EndedFromOutside

TRACED = """
import contextlib
import sys
import threading

from workbench.drivers.contract.interrupting import interrupt
from workbench.lessons.exercises.time_limit import TooLongError, time_limit
from workbench.raised import EndedFromOutside


def never_returns():
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.acquire, daemon=True)
    thread.start()
    interrupt(thread.ident)


def has_ended():
    ended = threading.Event()

    def run():
        with contextlib.suppress(EndedFromOutside):
            ended.wait()

    thread = threading.Thread(target=run)
    thread.start()
    interrupt(thread.ident)
    ended.set()
    thread.join()


def within_a_time():
    def run():
        try:
            with time_limit(float(sys.argv[2])):
                for _ in range(1_000_000 if sys.argv[2] == "0.01" else 1):
                    pass
        except TooLongError:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def called():
    return "is called"


globals()[sys.argv[1]]()
sys.setprofile(lambda *_: None)
said = called()
sys.setprofile(None)
print(said)
"""


@pytest.mark.parametrize("what", ["never_returns", "has_ended", "within_a_time 60", "within_a_time 0.01"])
def test_a_traced_thread_goes_on_whatever_became_of_the_other_one(what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRACED, *what.split()], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr[-500:]) == ("is called\n", "")


def test_a_thread_that_runs_python_code_is_interrupted() -> None:
    seen: list[BaseException] = []

    def run() -> None:
        try:
            while True:
                time.sleep(0)
        except EndedFromOutside as error:
            seen.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert thread.ident is not None
    interrupt(thread.ident)
    thread.join(60)
    assert [type(error) for error in seen] == [EndedFromOutside]
