"""A connector compared with a program of its client, for the same rows."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass

import psutil


@dataclass(frozen=True, slots=True)
class Beside:
    """One measurement.

    Attributes:
        name: what was done.
        rows: how many.
        seconds: how long it took.
        cpu_s: processor time of this process, with the threads of the client, and of the server where it counts.
        shares: rows per CPU second, relative to other work of the same round, by its name.
        exact: whether every row was there.
    """

    name: str
    rows: int
    seconds: float
    cpu_s: float
    shares: Mapping[str, float]
    exact: bool

    def describe(self) -> str:
        """One line.

        Example:
            >>> Beside("the client", 1000, 0.5, 0.25, {"a loop": 0.5}, True).describe()
            'the client: 2,000 rows/s, 4,000 rows per CPU second, 50% of a loop'
        """
        share = "".join(f", {share:.0%} of {name}" for name, share in self.shares.items())
        wrong = "" if self.exact else "; WRONG"
        per_cpu = self.rows / self.cpu_s
        return f"{self.name}: {self.rows / self.seconds:,.0f} rows/s, {per_cpu:,.0f} rows per CPU second{share}{wrong}"

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps({"peer": "workbench", **asdict(self)})


def measured(
    name: str, rows: int, work: Callable[[], bool], others: Iterable[Beside] = (), server: psutil.Process | None = None
) -> Beside:
    """Do it once.

    Args:
        name: of the work.
        rows: that it handles.
        work: returns whether every row was there.
        others: what to compare it with.
        server: whose processor time counts, too.
    """
    begun_s, cpu_s = time.perf_counter(), _cpu_s(server)
    exact = work()
    seconds, cpu_s = time.perf_counter() - begun_s, _cpu_s(server) - cpu_s
    shares = {other.name: (rows / cpu_s) / (other.rows / other.cpu_s) for other in others}
    return Beside(name, rows, seconds, cpu_s, shares, exact)


def _cpu_s(server: psutil.Process | None) -> float:
    own = time.process_time()
    if server is None:
        return own
    ended = server.cpu_times()
    total: float = own + ended.user + ended.system + ended.children_user + ended.children_system
    for child in server.children():
        # A server process may end between the list and its reading.
        with contextlib.suppress(psutil.NoSuchProcess):
            running = child.cpu_times()
            total += running.user + running.system
    return total
