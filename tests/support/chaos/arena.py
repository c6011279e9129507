"""The servers and the program of jobs that several runs share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from forking import Processes

from . import stores, systems
from .attack import Attack, Outcome
from .plans import Plan
from .systems import System

MAKE: dict[str, Callable[[], AbstractContextManager[System]]] = {
    "kafka": systems.kafka,
    "nats": systems.nats,
    "redis": systems.redis,
    "mqtt": systems.mqtt,
    "postgresql": stores.postgresql,
    "": stores.files,
}
"""By name; each skips the test where its server is missing."""


class Arena:
    """Starts each server when the first run needs it, and ends all of them at the end of the ``with`` block."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._systems: dict[str, System] = {}
        self._processes: Processes | None = None

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, plan: Plan) -> Outcome:
        """Run a plan, whose number no other run of this arena has."""
        for name in (*plan.servers, ""):
            if name not in self._systems:
                self._systems[name] = self._stack.enter_context(MAKE[name]())
        if self._processes is None:
            self._processes = Processes("chaos_job.py")
            self._stack.callback(self._processes.close)
        taking_part = {name: self._systems[name] for name in (*plan.servers, "")}
        with TemporaryDirectory(prefix="chaos-job-") as folder:
            return Attack(plan, taking_part, self._processes, Path(folder)).run()
