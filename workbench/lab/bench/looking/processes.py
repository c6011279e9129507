"""Processor time of processes and threads, from the system."""

from __future__ import annotations

import threading
from contextlib import suppress

import psutil


def cpu_seconds(pid: int) -> float:
    """Of a process and of all its running descendants."""
    total = 0.0
    with suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                total += times.user + times.system
    return total


def thread_cpu_seconds(names: str) -> float:
    """Of the threads of this process whose names begin with `names`; ended ones are not counted."""
    wanted = {thread.native_id for thread in threading.enumerate() if thread.name.startswith(names)}
    times = psutil.Process().threads()
    return float(sum(one.user_time + one.system_time for one in times if one.id in wanted))
