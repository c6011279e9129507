"""What the dashboard needs of a job: its newest frames to read, and its handle to touch."""

from __future__ import annotations

from typing import Protocol

from workbench.telemetry.frames import Frame

OVER = frozenset({"FINISHED", "FAILED", "CANCELED"})
"""The states after which a job shows nothing new."""


class Recorder(Protocol):
    """The flight recorder of a job."""

    def latest(self) -> Frame | None:
        """The newest frame, or None before the first."""

    def frames(self) -> tuple[Frame, ...]:
        """The last minutes of frames, oldest first."""


class Watched(Protocol):
    """A job as the dashboard sees it. Every method returns at once, or raises a WorkbenchError of one sentence.

    Attributes:
        name: the job's name.
    """

    @property
    def name(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def recorder(self) -> Recorder: ...

    def tune(
        self,
        *,
        buffer_timeout: str | None = None,
        checkpoint_interval: str | None = None,
        speed: str | None = None,
    ) -> object:
        """Change settings while the job runs; values as text: ``"5ms"``, ``"disabled"``, ``"600x"``, ``"max"``."""

    def pause(self) -> object: ...

    def resume(self) -> object: ...

    def checkpoint(self) -> object: ...

    def fail(self, task: str) -> object: ...

    def stop(self) -> object: ...
