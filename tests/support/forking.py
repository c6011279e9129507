"""A process that starts jobs in processes of their own, quickly: it has imported everything, and forks.

Each line on its input is one of these, in JSON:

- a dictionary, the arguments of a job: start it; answers with its process ID.
- ``"kill"``: kill it with SIGKILL; answers with its exit status, or the number of the signal as a negative number.
- ``"wait"``: wait until it ends; answers with the same.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any

from child_program import ChildProgram


class Processes:
    """One process after the other, each of which continues the job in a folder.

    Args:
        script: a program of this folder that calls `serve`.
    """

    def __init__(self, script: str) -> None:
        self._program = ChildProgram(script)

    def start(self, **job: object) -> int:
        """Start the job; returns its process ID."""
        return self._tell(job)

    def kill(self) -> int:
        """Kill the process; returns the negative number of the signal that ended it, or its exit status."""
        return self._tell("kill")

    def wait(self) -> int:
        """Wait for its end; returns the same as `kill`."""
        return self._tell("wait")

    def _tell(self, what: object) -> int:
        return self._program.ask(json.dumps(what))

    def close(self) -> None:
        """Let the program end."""
        self._program.close()


DRIVERS = ("confluent_kafka", "redis", "psycopg", "adbc_driver_postgresql.dbapi", "duckdb")
"""Packages that connectors import when they connect."""


def serve(run: Callable[..., str], pipelines: Callable[[], object]) -> None:
    """Do what the lines on the input ask for.

    Args:
        run: a job, until it ends; returns its state.
        pipelines: builds one of each kind, which imports what they need. A process that imports it anew takes seconds
            before its job begins.
    """
    from workbench.compiled import warm_up

    warm_up()
    import_module("workbench.api.launching.launch")
    for driver in DRIVERS:
        with suppress(ImportError):
            import_module(driver)
    pipelines()
    child = 0
    for line in sys.stdin:
        told: Any = json.loads(line)
        if isinstance(told, dict):
            child = os.fork()
            if child == 0:
                try:
                    ended = run(**told)
                except BaseException as error:  # noqa: BLE001
                    ended = f"{type(error).__name__}: {error}"
                    sys.stderr.write(f"{ended}\n")
                sys.stderr.flush()
                os._exit(ended != "FINISHED")
            answer = child
        else:
            if told == "kill":
                os.kill(child, signal.SIGKILL)  # nobody has waited for it, so the number is still its own
            answer = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
