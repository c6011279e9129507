"""What the dashboard needs of a job: its newest frames, and its handle."""

from __future__ import annotations

from typing import Any, Protocol

from workbench.telemetry.frames import Frame

OVER = frozenset({"FINISHED", "FAILED", "CANCELED"})
"""The states after which a job shows nothing new."""


class Recorder(Protocol):
    """The flight recorder of a job."""

    def latest(self) -> Frame | None:
        """The newest frame, or None before the first."""

    def frames(self, after: int = ...) -> tuple[Frame, ...]:
        """The last minutes of frames, oldest first; `after`: only those with a higher sequence number."""


class Faults(Protocol):
    """Crashes a part of a job, or makes it slow."""

    def fail(self, task: str | None = None, *, taskmanager: str | None = None, coordinator: bool = False) -> object: ...

    def slow_down(self, operator: str, by: str) -> object: ...

    def stall(self, operator: str, stalled: bool = True) -> object: ...


class Watched(Protocol):
    """A job as the dashboard sees it. A method returns at once unless it says otherwise, or raises a WorkbenchError.

    Attributes:
        name: the job's name.
    """

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str:
        """The job's state."""

    def operator_state(self, operator: str) -> Any:
        """The keyed state of an operator."""

    @property
    def live(self) -> bool:
        """Whether it advances by itself."""

    @property
    def recorder(self) -> Recorder: ...

    def tune(self, **settings: object) -> object:
        """Change settings while the job runs; values as text: ``"5ms"``, ``"disabled"``, ``"600x"``, ``"max"``."""

    def pause(self) -> object: ...

    def resume(self) -> object: ...

    def checkpoint(self) -> object: ...

    def seek(self, position: str) -> object: ...

    def savepoint(self, name: str) -> object:
        """Take a savepoint; it may take a minute."""

    def savepoints(self) -> list[str]: ...

    def restore(self, savepoint: str) -> Watched:
        """End this job and run its pipeline again; it may take long."""

    def run_again(self, fault_tolerance: str = ..., *, engine: Any = ..., spark: object | None = ...) -> Any:
        """End this job and run its pipeline from the beginning under another architecture, or on Spark; it may take
        long.
        """

    @property
    def faults(self) -> Faults: ...

    @property
    def stepper(self) -> Any:
        """The verbs of a stepping job."""

    def stop(self, *, wait: bool) -> object: ...

    def table(self, name: str) -> Any:
        """The committed rows of a TableSink, as a ``pyarrow.Table``."""
